"""What the panel shows, as HTML: escaped, in words, and the same for the same facts."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

import pytest
from histories import (
    absent,
    collective,
    in_collective,
    on_nodes,
    raised,
    rank,
    sleeping,
    snapshot,
    working,
)
from msgspec.structs import replace
from panel_fakes import text_of

from helpers.labs.asked import Asked
from helpers.labs.results import Check, Judgement
from helpers.model.facts import (
    Blocker,
    ChildView,
    ErrorView,
    Job,
    Port,
    ProcessView,
    RankView,
    Report,
    Snapshot,
    Verdict,
)
from helpers.model.frames import Frame
from helpers.model.waits import InCollective, InStore
from helpers.panel.learn import learn_view
from helpers.panel.run.log_view import LINES, log
from helpers.panel.show import view, words
from helpers.panel.show.ports import port_map
from helpers.panel.show.ranks import rank_table
from helpers.panel.show.style import STATE_GLYPHS, style_tag
from helpers.panel.show.tabs import memory_bars, process_tree, stack
from helpers.report.draw import head
from helpers.report.history import MOST, MOST_PROCESSES, History
from helpers.report.source_lines import Sources

EVIL = "<script>alert(1)</script>"
THEMES = Path(sys.prefix) / "share/jupyter/lab/themes/@jupyterlab"


def two_ranks(**more: object) -> Snapshot:
    """Rank 0 waits in an all_reduce for rank 1, which runs."""
    wait = InCollective(op="all_reduce", group="default", members=(0, 1), seq=7, sizes=((1,),))
    zero = ProcessView(
        10,
        "rank",
        state="waiting",
        where=Frame("train.py", 41, "validate"),
        waits=(wait,),
        ports=(Port("127.0.0.1", 41001, "store"),),
        memory=312_000_000,
        cpu=0.4,
    )
    one = ProcessView(
        11,
        "rank",
        state="running",
        where=Frame("prep.py", 12, "main"),
        asleep="nanosleep",
        cpu=99.6,
    )
    return Snapshot(
        4.0,
        Job(("python", "train.py"), world_size=2, backends=("gloo",)),
        ranks=(
            RankView(0, 0, state="waiting", process=zero),
            RankView(1, 1, state="running", process=one),
        ),
        **more,  # type: ignore[arg-type]
    )


def test_two_rank_table_says_who_stands_where() -> None:
    shown = text_of(rank_table(two_ranks()))
    waits = "all_reduce #7, sizes [1]"
    assert f"rank 0 ◆ waiting train.py:41 validate {waits} 0 % 312 MB 41001 store" in shown
    assert "rank 1 ▶ running prep.py:12 main 100 %" in shown


@pytest.mark.parametrize("state", list(STATE_GLYPHS))
def test_a_state_is_a_glyph_and_a_word(state: str) -> None:
    html = rank_table(Snapshot(0.0, Job(()), ranks=(RankView(0, state=state),)))  # type: ignore[arg-type]
    glyph = STATE_GLYPHS[state]  # type: ignore[index]
    assert f'<span aria-hidden="true">{glyph}</span> {state}' in html


def test_an_end_says_how() -> None:
    failed = ProcessView(1, "rank", state="exited", ended=1.0, exit_code=3)
    killed = ProcessView(2, "rank", state="exited", ended=1.0, signal=9)
    ranks = (
        RankView(0, state="exited", process=failed),
        RankView(1, state="exited", process=killed),
    )
    shown = text_of(rank_table(Snapshot(2.0, Job(()), ranks=ranks)))
    assert "rank 0 ✕ exited with code 3" in shown
    assert "rank 1 ✕ ended by SIGKILL" in shown


def rows(html: str) -> list[str]:
    """The text of each row below the head."""
    return [text_of(row) for row in re.findall(r"<tr.*?</tr>", html.partition("<tbody>")[2], re.S)]


def test_many_ranks_that_are_alike_share_a_row() -> None:
    views = [
        in_collective(n, "all_reduce", start=7, cpu=float(n % 3), memory=300_000_000 + 1_000_000 * n)
        for n in range(16_384)
    ]
    views[17] = sleeping(17, "prep.py:12 f", memory=5_000_000, ports=(Port("::", 4711, "store"),))

    assert rows(rank_table(snapshot(*on_nodes(views, 8)))) == [
        "16,383 ranks 0-16, 18-16383 2,048 nodes ◆ waiting train.py:10 step "
        "all_reduce #7 0-2 % 300-16683 MB",
        "rank 17 node 2 (host n2) ▶ running prep.py:12 f 0 % 5 MB 4711 store",
    ]


@pytest.mark.parametrize(
    ("views", "culprits", "names"),
    [
        ([working(n) for n in range(16)], (), [f"rank {n}" for n in range(16)]),
        ([working(n) for n in range(40)], (), ["40 ranks 0-39"]),
        ([working(n) for n in range(40)], (5,), ["39 ranks 0-4, 6-39", "rank 5"]),
        ([working(n, at=f"a.py:{n + 1} f") for n in range(40)], (), ["40 ranks 0-39"]),
        ([working(0), *(absent(n, "unseen") for n in range(1, 99))], (), ["rank 0", "98 ranks 1-98"]),
    ],
)
def test_the_rows_of_the_table(
    views: list[RankView], culprits: tuple[int, ...], names: list[str]
) -> None:
    said = rows(rank_table(snapshot(*views), "Ranks", culprits))

    assert len(said) == len(names)
    assert all(row.startswith(f"{name} ") for row, name in zip(said, names, strict=True))


def test_errors_of_many_ranks_are_one_row_and_only_when_they_may_be_told() -> None:
    same = snapshot(*(raised(n, "ValueError", "no such file") for n in range(40)))
    each = snapshot(*(raised(n, "ValueError", f"no file {n}") for n in range(40)))

    assert rows(rank_table(same))[1:] == ["ValueError: no such file"]
    assert rows(rank_table(each))[1:] == ["40 different errors"]
    assert "no such file" not in rank_table(same, reveal=False)
    assert len(rows(rank_table(each, reveal=False))) == 1


def test_the_bars_of_too_many_processes_are_those_with_the_most_memory() -> None:
    views = [rank(n, memory=1_000_000 * (n + 1)) for n in range(1000)]
    html = memory_bars([snapshot(*views)])

    assert html.count('<th scope="row">') == 200
    assert "rank 999<" in html and "rank 800<" in html and "rank 799<" not in html
    assert text_of(html).endswith("and 800 more")


def test_children_are_rows_below_their_rank() -> None:
    worker = ProcessView(
        12,
        "dataloader-worker",
        state="exited",
        ended=3.0,
        exit_code=1,
        error=ErrorView("DistNetworkError", "port 29500 is taken"),
    )
    rank = RankView(
        0,
        state="waiting",
        process=ProcessView(10, "rank"),
        children=(ChildView(worker, worker_id=0, joined_as_rank=1),),
    )
    html = rank_table(Snapshot(4.0, Job(()), ranks=(rank,)))
    shown = text_of(html)
    assert '<tr class="sr-child">' in html
    assert "DataLoader worker 0, joined as rank 1 ✕ exited with code 1" in shown
    assert "DistNetworkError: port 29500 is taken" in shown


def test_everything_from_the_job_is_escaped() -> None:
    process = ProcessView(
        1,
        "rank",
        state="running",
        where=Frame(EVIL, 1, EVIL),
        command=(EVIL,),
        waits=(
            InStore(op=EVIL, key=EVIL, thread=EVIL),
            InCollective(op=EVIL, group=EVIL, thread=EVIL),
        ),
        ports=(Port(EVIL, 1, EVIL),),
        error=ErrorView(EVIL, EVIL),
    )
    snapshot = Snapshot(
        1.0,
        Job((EVIL,), backends=(EVIL,)),
        ranks=(RankView(0, state="running", process=process, children=(ChildView(process),)),),
        launchers=(process,),
        strangers=((1, Blocker(1, EVIL, EVIL)),),
        not_seen=(EVIL,),
    )
    verdict = Verdict("error", "error", summary=EVIL, where=Frame(EVIL, 1, EVIL), masked=(EVIL,))
    pieces = [
        view.header(EVIL, words.hardware_line(snapshot.job)),
        view.status_line(EVIL),
        rank_table(snapshot),
        port_map(snapshot),
        process_tree(snapshot),
        stack(EVIL, process, Sources(None, {f"{EVIL}:1": EVIL})),
        log([EVIL], EVIL),
        view.rendezvous(EVIL),
        view.recorded(EVIL),
        view.live_verdict(verdict),
        view.live_verdict(Verdict("running", "none", suspicion=EVIL)),
        view.final_verdict(Report(verdict, snapshot)),
        view.result(Report(verdict, snapshot)),
        view.advice(Report(verdict, snapshot, explanation=EVIL, fix=f"`{EVIL}`")),
    ]
    for html in pieces:
        assert "<script" not in html
        assert "&lt;script&gt;" in html


@pytest.mark.parametrize("why", ["rank 1 was killed", "Rank 1 was killed."])
def test_why_an_answer_is_right_is_told_as_a_sentence(why: str) -> None:
    asked = Asked("Which one?", ("a", "b"), frozenset("a"), why)
    assert "Right. Rank 1 was killed." in text_of(learn_view.scored([(asked, ("a",))]))
    assert "killed.." not in learn_view.scored([(asked, ("a",))])


def test_text_of_the_job_that_looks_like_html_stays_text_in_every_part_of_the_lesson() -> None:
    asked = Asked(EVIL, (EVIL, "other"), frozenset([EVIL]), EVIL)
    pieces = [
        learn_view.note(f"**{EVIL}**"),
        learn_view.answer(f"Right. {EVIL}"),
        learn_view.scored([(asked, (EVIL,))]),
        learn_view.steps([(EVIL, True)]),
        learn_view.judged(Judgement((Check(EVIL, EVIL),))),
        view.hints([EVIL]),
    ]
    for html in pieces:
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_terminal_codes_of_the_job_never_reach_the_page() -> None:
    assert text_of(view.header("\x1b[31mred\x1b[0m\n  job", "")) == "red job"


def test_log_keeps_the_newest_lines_without_terminal_codes() -> None:
    lines = [f"line {number}" for number in range(LINES + 50)] + ["red"]
    html = log(lines, "rank 0")
    assert "line 50\n" not in html and "line 51\n" in html
    assert html.partition("</pre>")[0].count("\n") == LINES - 1
    assert f"the newest {LINES} of {LINES + 51} lines" in html


def test_a_result_shows_what_its_text_says_and_marks_the_odd_one_out() -> None:
    calls = {0: collective("barrier", 7), 1: collective("all_reduce", 7), 2: collective("all_reduce", 7)}
    ranks = [rank(number, wait, at="train.py:41 save") for number, wait in calls.items()]
    verdict = Verdict("hang", "collective-mismatch", proved=True, culprits=(0,))
    html = view.result(Report(verdict, snapshot(*ranks)))
    rows = [text_of(row) for row in re.findall(r"<tr>.*?</tr>", html, re.S)]
    assert "hang (proved)" in text_of(html)
    assert [row.split(" ", 2)[:2] for row in rows] == [["rank", "0"], ["rank", "1,"]]
    assert ["odd one out" in row for row in rows] == [True, False]


def test_the_evidence_of_a_verdict_is_shown() -> None:
    told = Verdict("error", "out-of-memory", culprits=(0,), evidence=("the kernel counted 1 kill",))
    assert "the kernel counted 1 kill" in text_of(view.advice(Report(told, snapshot(rank(0)))))


def test_a_suspicion_is_said() -> None:
    html = view.live_verdict(Verdict("running", "none", suspicion="rank 1 has not moved for 31 s"))
    assert text_of(html) == "rank 1 has not moved for 31 s"
    assert view.live_verdict(Verdict("running", "none")) == ""


def test_final_verdict_has_summary_cause_and_fix() -> None:
    verdict = Verdict(
        "hang",
        "collective-mismatch",
        summary="Rank 1 calls barrier.",
        where=Frame("train.py", 41, "validate"),
        masked=("RuntimeError: closed",),
    )
    report = Report(
        verdict,
        two_ranks(not_seen=("rank 1: no beacon",)),
        explanation="Because.",
        fix="- call `all_reduce`",
    )
    html = view.final_verdict(report) + view.advice(report)
    assert "<code>collective-mismatch</code>" in html
    assert "<ul>\n<li>call <code>all_reduce</code></li>\n</ul>" in html
    shown = text_of(html)
    for part in (
        "◆ hang",
        "Rank 1 calls barrier.",
        "train.py:41 validate",
        "Because.",
        "RuntimeError: closed",
        "no beacon",
    ):
        assert part in shown


def test_the_picture_starts_with_the_first_process() -> None:
    assert view.lanes([Snapshot(0.0, Job(()), ranks=(RankView(0),))]) == ""
    html = view.lanes([two_ranks(), replace(two_ranks(), time=5.0)])
    assert "<svg" in html and "Timeline of 2 ranks" in html


def test_history_is_bounded_and_keeps_both_ends() -> None:
    history = History()
    for step in range(20 * MOST):
        history.add(Snapshot(step * 0.22, Job(())))
        assert len(history.snapshots) <= MOST
    times = [snapshot.time for snapshot in history.snapshots]
    assert times == sorted(times)
    assert times[0] == 0 and times[-1] == pytest.approx((20 * MOST - 1) * 0.22)
    assert len(times) > MOST / 4
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert max(gaps) < 10 * times[-1] / MOST


def test_history_of_many_ranks_is_bounded_by_their_number() -> None:
    many = tuple(RankView(rank, process=ProcessView(rank, "rank")) for rank in range(127))
    history = History()
    for step in range(400):
        history.add(Snapshot(step * 0.22, Job(()), ranks=many))
    assert MOST_PROCESSES / 128 / 2 < len(history.snapshots) <= MOST_PROCESSES / 128


def test_history_holds_once_what_does_not_change() -> None:
    history = History()
    for step in range(3):
        same = ProcessView(1, "rank", stack=(Frame("a.py", 1, "f"),), cpu=float(step))
        history.add(Snapshot(float(step), Job(()), ranks=(RankView(0, process=same),)))
    processes = [snapshot.ranks[0].process for snapshot in history.snapshots]
    assert [p.cpu for p in processes if p] == [0.0, 1.0, 2.0]
    assert len({id(p.stack) for p in processes if p}) == 1


def test_history_keeps_what_frames_held_though_they_are_equal() -> None:
    history = History()
    for step in range(2):
        frames = [Frame("a.py", 1, "f", values={"step": step, "rank": rank}) for rank in (0, 1)]
        views = [RankView(n, process=ProcessView(n, "rank", stack=(f,))) for n, f in enumerate(frames)]
        history.add(Snapshot(float(step), Job(()), ranks=tuple(views)))
    held = [[v.process.stack[0].values for v in s.ranks if v.process] for s in history.snapshots]
    assert held == [[{"step": step, "rank": rank} for rank in (0, 1)] for step in (0, 1)]


def test_hardware_line() -> None:
    assert words.hardware_line(two_ranks().job) == "cpu, gloo, 2 ranks"
    assert words.hardware_line(Job((), world_size=1)) == "cpu, 1 rank"


def test_style_sets_no_text_colour_of_its_own() -> None:
    """Text takes the theme's colour; every other colour has a fallback where no theme is."""
    css = style_tag()
    assert all(
        "--sr-text" in rule or "inherit" in rule for rule in re.findall(r"[{; ]color: ([^;]+);", css)
    )
    assert all("," in use for use in re.findall(r"var\(--jp-([^)]*\)?)", css))


def _theme(name: str) -> dict[str, tuple[float, float, float, float]]:
    css = (THEMES / f"theme-{name}-extension/index.css").read_text(encoding="utf-8")
    found = {}
    for variable, value in re.findall(r"(--jp-[\w-]+): ?([^;}]+)", css):
        colour = _colour(value)
        if colour:
            found[variable] = colour
    return found


def _colour(value: str) -> tuple[float, float, float, float] | None:
    value = {"white": "#fff", "black": "#000"}.get(value, value)
    rgba = re.fullmatch(r"rgba\((\d+), ?(\d+), ?(\d+), ?([\d.]+)\)", value)
    if rgba:
        return (float(rgba[1]), float(rgba[2]), float(rgba[3]), float(rgba[4]))
    digits = re.search(r"#([0-9a-f]{6}|[0-9a-f]{3})\)?$", value)
    if not digits:
        return None
    full = digits[1] if len(digits[1]) == 6 else "".join(2 * digit for digit in digits[1])
    red, green, blue = (float(int(full[at : at + 2], 16)) for at in (0, 2, 4))
    return (red, green, blue, 1.0)


Colour = tuple[float, float, float, float]


def _over(top: Colour, bottom: Colour, share: float = 1.0) -> Colour:
    alpha = top[3] * share
    red, green, blue = (alpha * t + (1 - alpha) * b for t, b in zip(top[:3], bottom[:3], strict=True))
    return (red, green, blue, 1.0)


def _luminance(colour: Colour) -> float:
    # WCAG 2.2, definition of relative luminance
    parts = [value / 255 for value in colour[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: Colour, other: Colour) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.skipif(not THEMES.is_dir(), reason="JupyterLab's themes are not beside this Python")
@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("tone", ["--jp-warn-color1", "--jp-error-color1", "--jp-success-color1"])
def test_text_on_a_tint_is_readable(name: str, tone: str) -> None:
    """WCAG AA asks for 4.5:1. Every tint of the stylesheet has the same strength."""
    theme = _theme(name)
    shares = set(re.findall(r"var\(--sr-(?:warn|bad|good)\) (\d+)%", style_tag()))
    assert len(shares) == 1
    for page in ("--jp-layout-color0", "--jp-layout-color1"):
        back = _over(theme[tone], theme[page], int(shares.pop()) / 100 if shares else 0.14)
        assert _contrast(_over(theme["--jp-ui-font-color1"], back), back) >= 4.5


@pytest.mark.skipif(not THEMES.is_dir(), reason="JupyterLab's themes are not beside this Python")
@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize(
    ("tone", "share"),
    [("success", 0.3), ("success", 0.16), ("warn", 0.16), ("error", 0.16), ("info", 0.16)],
)
def test_words_in_the_picture_are_readable(name: str, tone: str, share: float) -> None:
    """On the tint of every kind of segment; around each word lies the page's own colour."""
    theme = _theme(name)
    back = _over(theme[f"--jp-{tone}-color1"], theme["--jp-layout-color0"], share)
    assert _contrast(_over(theme["--jp-ui-font-color1"], back), back) >= 4.5
    rules = head("p", {"collective", "running"})
    assert 'fill-opacity=".16"' in rules and "fill:var(--good);fill-opacity:.3" in rules


@pytest.mark.skipif(not THEMES.is_dir(), reason="JupyterLab's themes are not beside this Python")
@pytest.mark.parametrize("name", ["light", "dark"])
def test_marks_that_carry_meaning_stand_out(name: str) -> None:
    """WCAG AA asks for 3:1 of what is no text: the bars beside a state, lines and crosses."""
    theme = _theme(name)
    for tone in ("--jp-error-color1", "--jp-ui-font-color1"):
        for page in ("--jp-layout-color0", "--jp-layout-color1"):
            mark = _over(theme[tone], theme[page])
            assert _contrast(mark, _over(theme[page], theme[page])) >= 3, (tone, page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_of_its_own_is_readable(scheme: str) -> None:
    """The fallbacks of the picture, which a saved page shows: text on the page and on every tint."""
    styles = head("p", {"collective", "held", "importing"}).split("@media (prefers-color-scheme:dark)")
    values = dict(re.findall(r"--(\w+):var\(--jp-[\w-]+,(#[0-9a-f]{6})\)", styles[scheme == "dark"]))
    colours = {name: _colour(value) for name, value in values.items()}
    back, text = colours["back"], colours["text"]
    assert back is not None and text is not None
    assert _contrast(text, back) >= 7
    for tone in ("good", "wait", "bad", "calm"):
        colour = colours[tone]
        assert colour is not None
        assert _contrast(colour, back) >= 3
        tint = _over(colour, back, 0.3)
        assert _contrast(text, tint) >= 4.5

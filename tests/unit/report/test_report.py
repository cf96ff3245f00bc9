"""A report in all its forms, from verdicts and snapshots written by hand."""

import json
import re
from html.parser import HTMLParser

import pytest
from contract import violations
from msgspec.structs import replace

from helpers.diagnose.pages import names, page
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
from helpers.model.waits import (
    AtRendezvous,
    InCollective,
    InP2P,
    InStore,
    OnChild,
    OnCondition,
    OnInput,
    OnIO,
    OnLock,
    Wait,
)
from helpers.model.wording import (
    LONGEST,
    MOST_RUNS,
    MOST_SENTENCES,
    abridged,
    clipped,
    printable,
    spans,
    spoken,
)
from helpers.report.page import to_html
from helpers.report.report import (
    MOST_MEMBERS,
    build,
    stable_text,
    to_json,
    to_markdown,
    to_text,
)
from helpers.report.stable import where_it_ended

TELLTALES = ("88123", "88124", "88125", "88126", "29577", "41077", "777.25", "778.5", "779.75")
"""Pids, ports and seconds that no stable text may hold."""

SAVE = Frame("train.py", 41, "save")
STEP = Frame("train.py", 30, "step")
TORCH = Frame("/opt/env/lib/torch/distributed/distributed_c10d.py", 4800, "barrier", user=False)


def waiting(rank: int, op: str, where: Frame, pid: int) -> RankView:
    wait = InCollective(
        op=op,
        group="default",
        members=(0, 1, 2),
        seq=7,
        sizes=((1, 4),),
        where=where,
    )
    return RankView(
        rank=rank,
        local_rank=rank,
        state="waiting",
        joined=True,
        process=ProcessView(
            pid=pid,
            kind="rank",
            state="waiting",
            stack=(TORCH, where),
            where=where,
            waits=(wait,),
            ports=(Port("127.0.0.1", 41077, "gloo"),),
            started=777.25,
            memory=88126,
        ),
    )


def hang() -> Report:
    job = Job(
        command=("torchrun", "--nproc-per-node", "3", "train.py"),
        launcher="torchrun",
        world_size=3,
        backends=("gloo",),
        master="127.0.0.1:29577",
    )
    snapshot = Snapshot(
        time=779.75,
        job=job,
        ranks=(
            waiting(2, "all_reduce", STEP, 88125),
            waiting(0, "barrier", SAVE, 88123),
            waiting(1, "all_reduce", STEP, 88124),
        ),
        not_seen=("memory of the host is not readable",),
    )
    verdict = Verdict(
        outcome="hang",
        cause="collective-mismatch",
        detail="barrier against all_reduce at #7 of the default group",
        culprits=(0,),
        where=SAVE,
        summary="Rank 0 is in a barrier that ranks 1 and 2 never enter.",
        evidence=("rank 0, pid 88123: barrier #7", "rank 1, pid 88124: all_reduce #7"),
        since=778.5,
    )
    return build(verdict, snapshot, first_rank=777.25, verdict_at=779.75)


def failed_worker() -> Report:
    error = ErrorView(
        type="DistNetworkError",
        message="failed to listen, port: 29577, EADDRINUSE\nmore on a second line",
        stack=(TORCH, Frame("/home/me/elsewhere/launch.py", 7, "<module>")),
    )
    worker = ChildView(
        ProcessView(
            pid=88124,
            kind="dataloader-worker",
            state="exited",
            ended=778.5,
            exit_code=1,
            error=error,
            ports=(Port("127.0.0.1", 41077, "store"),),
        ),
        worker_id=0,
    )
    twin = ChildView(
        ProcessView(pid=88126, kind="dataloader-worker", state="waiting"),
        worker_id=0,
        joined_as_rank=1,
    )
    idle = ChildView(
        ProcessView(
            pid=88199,
            kind="dataloader-worker",
            state="waiting",
            waits=(OnChild(op="wait"),),
        ),
        worker_id=1,
    )
    first = ProcessView(
        pid=88123,
        kind="rank",
        state="exited",
        ended=779.75,
        exit_code=1,
        error=ErrorView("RuntimeError", "DataLoader worker (pid 88124) exited unexpectedly"),
    )
    second = ProcessView(pid=88125, kind="rank", state="exited", ended=779.75, signal=15)
    snapshot = Snapshot(
        time=779.75,
        job=Job(command=("python", "train.py"), world_size=3, exit_code=1),
        ranks=(
            RankView(None, state="starting", process=ProcessView(pid=88127, kind="rank")),
            RankView(0, 0, state="exited", process=first, children=(worker, idle)),
            RankView(1, 1, state="exited", process=second, children=(twin,)),
            RankView(2),
        ),
    )
    verdict = Verdict(
        outcome="error",
        cause="address-in-use",
        culprits=(0,),
        blockers=(Blocker(88126, "owns port 29577", "python old_job.py --token | tee log"),),
        where=Frame("/home/me/elsewhere/launch.py", 7, "<module>"),
        summary="A worker of rank 0 wants port 29577, on which rank 0 listens.",
        masked=("RuntimeError: DataLoader worker (pid 88124) exited unexpectedly", "no type here"),
        evidence=("pid 88123 listens on 29577 since 777.25",),
    )
    return build(verdict, snapshot, first_rank=777.254, stall=778.5, verdict_at=779.756)


def fine() -> Report:
    process = ProcessView(pid=88123, kind="rank", state="exited", exit_code=0, ended=779.75)
    snapshot = Snapshot(
        time=779.75,
        job=Job(command=("python", "train.py"), world_size=1, exit_code=0),
        ranks=(RankView(0, 0, state="exited", process=process),),
    )
    verdict = Verdict(outcome="ok", cause="none", summary="One rank ran to its end.")
    return build(verdict, snapshot, first_rank=777.25)


REPORTS = {"hang": hang, "failed worker": failed_worker, "fine": fine}
each_report = pytest.mark.parametrize("name", REPORTS)


def with_text(text: str) -> Report:
    """A report in which every text that a job can choose is the given one."""
    report = failed_worker()
    frame = Frame(text, 3, text)
    error = ErrorView(text, text, stack=(frame,))
    process = ProcessView(pid=1, kind="rank", state="exited", exit_code=1, error=error)
    waits = (
        OnLock(op=text, path=text, thread=text, where=frame),
        InCollective(op=text, group=text, barrier_key=text),
    )
    stuck = ProcessView(pid=2, kind="rank", state="waiting", stack=(frame,), where=frame, waits=waits)
    child = ChildView(replace(process, kind=text))
    snapshot = Snapshot(
        time=1.0,
        job=Job(command=(text,), launcher=text, world_size=2, backends=(text,)),
        ranks=(
            RankView(0, state="exited", process=process, children=(child,)),
            RankView(1, state="waiting", process=stuck),
        ),
        not_seen=(text,),
    )
    verdict = replace(
        report.verdict,
        detail=text,
        summary=text,
        masked=(text,),
        evidence=(text,),
        blockers=(Blocker(1, text, text),),
        where=frame,
    )
    return build(verdict, snapshot)


# JSON


@each_report
def test_json_keeps_the_contract(name: str) -> None:
    assert violations(json.loads(json.dumps(to_json(REPORTS[name]())))) == []


def test_json_of_a_hang() -> None:
    said = to_json(hang())

    assert said["schema"] == 1
    assert (said["outcome"], said["proved"], said["interrupted"]) == ("hang", True, False)
    assert said["where"] == {"file": "train.py", "line": 41, "function": "save"}
    assert said["seconds"] == {"first_rank": 777.25, "stall": 778.5, "verdict": 779.75}
    assert said["references"] == list(page("collective-mismatch").references)
    assert [rank["rank"] for rank in said["ranks"]] == [0, 1, 2]
    assert said["ranks"][0]["waits"] == [
        {
            "kind": "collective",
            "op": "barrier",
            "group": "default",
            "group_ranks": [0, 1, 2],
            "seq": 7,
            "sizes": [[1, 4]],
            "peers": [],
            "key": None,
            "detail": None,
            "thread": "MainThread",
            "where": {"file": "train.py", "line": 41, "function": "save"},
        }
    ]
    assert [frame["function"] for frame in said["ranks"][0]["stack"]] == ["barrier", "save"]


GROUP = {"group": "tp", "members": (0, 1), "sizes": ((4, 2),)}
SAID_OF_GROUP = {"group": "tp", "group_ranks": [0, 1], "sizes": [[4, 2]]}
MANY = tuple(range(MOST_MEMBERS))
OF_EACH_KIND = [
    (InCollective(op="reduce", members=MANY), {"group_ranks": [*MANY]}),
    (InCollective(op="reduce", members=(*MANY, MOST_MEMBERS)), {}),
    (InP2P(op="recv", members=(*MANY, MOST_MEMBERS)), {}),
    (InCollective(op="reduce", seq=7, root=1, **GROUP), {"seq": 7, **SAID_OF_GROUP}),
    (InCollective(op="new_group", group_number=2, barrier_key="/k/1"), {"key": "/k/1"}),
    (InP2P(op="send", peers=(1,), **GROUP), {"peers": [1], **SAID_OF_GROUP}),
    (AtRendezvous(op="join", address="env://"), {"group": "default", "key": "env://"}),
    (InStore(op="get", key="ready"), {"key": "ready"}),
    (OnLock(op="flock", path="a.lock", holder=7), {"key": "a.lock"}),
    (OnChild(op="wait"), {}),
    (OnInput(op="read", source="/dev/pts/0"), {"key": "/dev/pts/0"}),
    (OnIO(op="read", target="pipe:[7]"), {"key": "pipe:[7]"}),
    (OnCondition(op="not done"), {"detail": None}),
    (
        OnCondition(op="not (done or path.exists())", values=("done = False", "path = 'go'")),
        {"detail": "done = False, path = 'go'"},
    ),
]


@pytest.mark.parametrize(("wait", "own"), OF_EACH_KIND)
def test_json_of_a_wait_has_the_keys_of_every_kind(wait: Wait, own: dict[str, object]) -> None:
    report = hang()
    process = ProcessView(pid=1, kind="rank", waits=(wait,))
    snapshot = replace(report.snapshot, ranks=(RankView(0, process=process),))
    (said,) = to_json(replace(report, snapshot=snapshot))["ranks"][0]["waits"]
    lacks = {"group": None, "group_ranks": [], "seq": None, "sizes": [], "peers": []}
    lacks |= {"key": None, "detail": None}
    all_keys = {"kind": wait.kind, "op": wait.op, **lacks, "thread": "MainThread", "where": None}
    assert json.dumps(said) == json.dumps({**all_keys, **own})


def test_json_of_an_error_in_a_worker() -> None:
    said = to_json(failed_worker())

    first, second, never, unnumbered = said["ranks"]
    assert first["error"] == "RuntimeError: DataLoader worker (pid 88124) exited unexpectedly"
    assert first["children"][0]["error"] == (
        "DistNetworkError: failed to listen, port: 29577, EADDRINUSE"
    )
    assert first["children"][0]["where"]["function"] == "<module>"
    assert first["children"][1]["where"] is None
    assert (second["signal"], second["exit_code"], second["error"]) == (15, None, None)
    assert second["children"][0]["joined_as_rank"] == 1
    assert (never["pid"], never["state"], never["where"]) == (None, "missing", None)
    assert unnumbered["rank"] is None
    assert said["seconds"] == {"first_rank": 777.25, "stall": 778.5, "verdict": 779.76}


def test_json_names_the_signal_that_ended_a_child() -> None:
    child = ChildView(ProcessView(pid=5, kind="process", state="exited", ended=1.0, signal=9))
    rank = RankView(0, process=ProcessView(pid=4, kind="rank"), children=(child,))
    report = build(Verdict("error", "error"), Snapshot(1.0, Job(("x",)), ranks=(rank,)))

    assert to_json(report)["ranks"][0]["children"][0]["exit_code"] == -9


@pytest.mark.parametrize(
    ("process", "told"),
    [
        (ProcessView(pid=5, kind="process", state="exited", ended=1.0, exit_code=1), False),
        (ProcessView(pid=5, kind="process", state="exited", ended=1.0, exit_code=1, beacon=True), True),
        (ProcessView(pid=5, kind="dataloader-worker", state="exited", ended=1.0, exit_code=1), True),
        (ProcessView(pid=5, kind="process", state="exited", ended=1.0, signal=9), True),
        (ProcessView(pid=5, kind="dataloader-worker", state="exited", ended=1.0, signal=15), False),
        (ProcessView(pid=5, kind="dataloader-worker", gil_held=True), False),
    ],
    ids=["a program", "a Python", "a worker", "killed", "ended by its rank", "about to end"],
)
def test_what_a_child_adds_to_a_run_that_ended_well(process: ProcessView, told: bool) -> None:
    rank = RankView(0, process=ProcessView(pid=4, kind="rank"), children=(ChildView(process),))
    text = stable_text(build(Verdict("ok", "none"), Snapshot(1.0, Job(("x",)), ranks=(rank,))))
    assert ("\n  " in text) is told


@pytest.mark.parametrize(("kind", "told"), [("helper", False), ("process", True)])
def test_bookkeeping_of_multiprocessing_is_not_told(kind: str, told: bool) -> None:
    child = ChildView(ProcessView(pid=5, kind=kind, state="starting", gil_held=True))
    rank = RankView(0, process=ProcessView(pid=4, kind="rank", exit_code=1), children=(child,))
    found = Verdict("error", "error", culprits=(0,))
    text = stable_text(build(found, Snapshot(1.0, Job(("x",)), ranks=(rank,))))
    assert ("\n  " in text) is told


def test_culprits_are_sorted_and_what_never_happened_is_null() -> None:
    verdict = Verdict("running", "missing-rank", culprits=(3, 1, 2))
    said = to_json(build(verdict, Snapshot(1.0, Job(("x",))), interrupted=True))

    assert said["culprits"] == [1, 2, 3]
    assert said["seconds"] == {"first_rank": None, "stall": None, "verdict": None}
    assert said["interrupted"] is True
    assert (said["where"], said["ranks"], said["blockers"]) == (None, [], [])


@pytest.mark.parametrize("cause", names())
def test_every_cause_weaves_its_page_in(cause: str) -> None:
    report = build(Verdict("error", cause), Snapshot(1.0, Job(("x",))))

    assert page(cause).meaning in report.explanation
    assert page(cause).fix in report.fix
    assert page(cause).confirm in report.confirm
    assert report.references == page(cause).references
    for show in (to_markdown, to_html):
        assert report.references[0] in show(report)
    assert f"stuck-ranks explain {cause}" in to_text(report)


# Text


def test_text_starts_with_outcome_cause_and_summary() -> None:
    lines = to_text(hang()).splitlines()

    assert lines[0] == "HANG (proved): collective-mismatch"
    assert lines[1] == "Rank 0 is in a barrier that ranks 1 and 2 never enter."


def test_equal_ranks_share_a_row() -> None:
    text = to_text(hang())

    row = next(line for line in text.splitlines() if line.startswith("1, 2 "))
    assert "all_reduce #7, sizes [1, 4]" in row
    assert row.endswith("train.py:30 step")
    assert sum("all_reduce #7, sizes" in line for line in text.splitlines()) == 1


def test_text_shows_the_children_that_matter_under_their_rank() -> None:
    text = to_text(failed_worker())

    assert "DataLoader worker 0: exited; exit code 1: DistNetworkError" in text
    assert "DataLoader worker 0: has joined as rank 1; waiting" in text
    assert "DataLoader worker 1" not in text
    assert text.index("DistNetworkError") < text.index("SIGTERM") < text.index("joined as rank 1")


def test_workers_of_which_the_same_is_true_share_a_line() -> None:
    gone = [
        ProcessView(90 + n, "dataloader-worker", state="exited", ended=1.0, signal=9 if n == 4 else 15)
        for n in range(5)
    ]
    children = tuple(ChildView(process, worker_id=n) for n, process in enumerate(gone))
    view = RankView(0, state="running", process=ProcessView(1, "rank"), children=children)
    text = to_text(build(Verdict("error", "worker-stall"), Snapshot(1.0, Job(("x",)), (view,))))
    assert "    DataLoader workers 0-3: exited; signal 15 (SIGTERM)\n" in text
    assert "    DataLoader worker 4: exited; signal 9 (SIGKILL)\n" in text


@each_report
def test_text_is_at_most_100_columns_wide(name: str) -> None:
    wide = [line for line in to_text(REPORTS[name]()).splitlines() if len(line) > 100]

    assert all("http" in line and " " not in line.strip("- ") for line in wide)


def test_text_of_a_good_run_is_three_lines_at_most() -> None:
    text = to_text(fine())

    assert text.splitlines()[0] == "OK"
    assert len(text.splitlines()) <= 3


def test_text_tells_what_is_not_proved_and_what_was_interrupted() -> None:
    verdict = Verdict("hang", "missing-rank", proved=False)
    report = build(verdict, Snapshot(1.0, Job(("x",))), interrupted=True)

    assert to_text(report).startswith("HANG (not proved, interrupted): missing-rank\n")


@pytest.mark.parametrize(
    ("numbers", "label"),
    [
        ([0], "0"),
        ([1, 0], "0, 1"),
        ([5, 2, 3, 4, 0], "0, 2-5"),
        ([None], "?"),
        ([0, None, None], "0, ? (x2)"),
        ([*range(0, 30, 2), None], "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 3 more, ?"),
        ([], ""),
    ],
)
def test_spans(numbers: list[int | None], label: str) -> None:
    assert spans(numbers) == label


# Text from the job stays text

SCRIPT = "<script>alert('x')</script>"


class Tags(HTMLParser):
    """Collects the tags and the attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def tags(html: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(html)
    parser.close()
    return parser.found


@pytest.mark.parametrize("text", [SCRIPT, '"><img src=x onerror=alert(1)>', "</style><b>", "&lt;"])
def test_html_escapes_whatever_the_job_says(text: str) -> None:
    hostile, harmless = tags(to_html(with_text(text))), tags(to_html(with_text("harmless")))

    assert [tag for tag, _ in hostile] == [tag for tag, _ in harmless]
    assert "alert" not in str([attributes for _, attributes in hostile])


@each_report
def test_html_loads_nothing_and_runs_nothing(name: str) -> None:
    found = tags(to_html(REPORTS[name]()))

    assert not {tag for tag, _ in found} & {"script", "link", "img", "iframe", "object", "base"}
    for _, attributes in found:
        assert "src" not in attributes
        assert not [attribute for attribute in attributes if attribute.startswith("on")]
    assert "@import" not in to_html(REPORTS[name]())
    assert all(attributes.get("scope") in ("row", "col") for tag, attributes in found if tag == "th")


def test_html_has_an_outline_a_title_and_a_language() -> None:
    html = to_html(hang())

    assert html.startswith("<!DOCTYPE html>")
    assert '<html lang="en">' in html
    assert "<title>HANG (proved): collective-mismatch</title>" in html
    assert html.count("<h1") == 1
    assert "prefers-color-scheme" in html


@pytest.mark.parametrize("text", [SCRIPT, "a | b", "`a` | ``b``", "# not a title\n| x | y |", "\\|"])
def test_markdown_keeps_its_table_and_lets_no_tag_through(text: str) -> None:
    markdown = to_markdown(with_text(text))

    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert {_columns(row) for row in rows} == {4}
    outside_code = re.sub(r"(`+) ?.*?[^`]\1(?!`)", "", markdown)
    assert "<script" not in outside_code
    assert "\n# not a title" not in markdown


def _columns(row: str) -> int:
    return len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) - 1


def test_terminal_codes_of_the_job_do_not_reach_the_terminal() -> None:
    text = "\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07 \u202eback \x9b31m \udc80"
    report = with_text(text)

    for show in (to_text, to_markdown, to_html, stable_text):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", show(report))
        show(report).encode()
    said = json.dumps(to_json(report), ensure_ascii=False)
    assert said.encode()
    assert not re.search(r"\\u00[0189]|[\x7f-\x9f\u202e]", said)
    assert printable("a\tb\r\nc\rd") == "a\tb\nc\nd"


# The text that notebook tests compare


@each_report
def test_stable_text_has_no_pid_port_second_or_foreign_path(name: str) -> None:
    text = stable_text(REPORTS[name]())

    assert not [telltale for telltale in TELLTALES if telltale in text]
    assert "/" not in text


def test_stable_text_of_a_hang() -> None:
    assert stable_text(hang()).splitlines() == [
        "outcome: hang (proved)",
        "cause: collective-mismatch",
        "culprits: 0",
        "where: train.py:41 save",
        "job: torchrun, world size 3",
        "rank 0: waiting, collective barrier #7 in group default size [1, 4], at train.py:41 save",
        "rank 1, 2: waiting, collective all_reduce #7 in group default size [1, 4], at train.py:30 step",
    ]


def test_stable_text_of_an_error_tells_how_the_culprit_ended_and_no_more() -> None:
    assert stable_text(failed_worker()).splitlines() == [
        "outcome: error",
        "cause: address-in-use",
        "culprits: 0",
        "where: launch.py:7 <module>",
        "job: python, world size 3",
        "rank 0: failed",
        "  DataLoader worker 0: exit code 1, DistNetworkError, at launch.py:7 <module>",
        "masked: RuntimeError",
    ]


def test_stable_text_has_sequence_numbers_only_where_the_program_decides_them() -> None:
    report = hang()

    suspected = replace(report, verdict=replace(report.verdict, proved=False))
    crashed = replace(report, verdict=replace(report.verdict, cause="rank-crashed"))
    assert "#7" in stable_text(report)
    assert "#7" not in stable_text(suspected)
    assert "#7" not in stable_text(crashed)


def test_stable_text_does_not_name_the_rank_that_the_kernel_chose() -> None:
    report = hang()
    killed = replace(report, verdict=replace(report.verdict, cause="out-of-memory"))

    assert stable_text(killed).splitlines() == [
        "outcome: hang (proved)",
        "cause: out-of-memory",
        "job: torchrun, world size 3",
    ]


def test_stable_text_leaves_out_where_a_busy_rank_happens_to_be() -> None:
    report = hang()
    ranks = list(report.snapshot.ranks)
    busy = replace(ranks[0], state="running")
    snapshot = replace(report.snapshot, ranks=(busy, *ranks[1:]))
    verdict = replace(report.verdict, proved=False, cause="missing-rank", culprits=(2,))

    bystander = stable_text(build(replace(verdict, culprits=()), snapshot))
    culprit = stable_text(build(verdict, snapshot))
    assert "rank 2: running, collective all_reduce in group default size [1, 4]\n" in (bystander + "\n")
    assert "rank 2: running" in culprit
    assert culprit.count("at train.py:30 step") == bystander.count("at train.py:30 step") + 1


def test_where_a_run_ended_in_one_phrase() -> None:
    proved = hang()
    suspected = replace(proved, verdict=replace(proved.verdict, proved=False))
    killed = replace(proved, verdict=replace(proved.verdict, cause="out-of-memory"))

    hanging = "rank 0 in barrier{} at train.py:41, ranks 1 and 2 in all_reduce{} at train.py:30"
    assert where_it_ended(proved) == hanging.format(" #7", " #7")
    assert where_it_ended(suspected) == hanging.format("", "")
    assert where_it_ended(killed) == ""
    assert where_it_ended(failed_worker()) == "DistNetworkError at launch.py:7"


def test_stable_text_of_a_good_run() -> None:
    assert stable_text(fine()).splitlines() == [
        "outcome: ok",
        "cause: none",
        "culprits: none",
        "job: python, world size 1, exit code zero",
        "rank 0: exited, exit code 0",
    ]


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        (range(0, 2 * MOST_RUNS, 2), f"{2 * MOST_RUNS - 4} and {2 * MOST_RUNS - 2}"),
        (range(0, 2 * MOST_RUNS + 2, 2), f"{2 * MOST_RUNS - 2} and 1 more"),
        (range(0, 16384, 2), f"{2 * MOST_RUNS - 2} and {8192 - MOST_RUNS} more"),
    ],
)
def test_of_many_ranks_apart_some_are_named(ranks: range, said: str) -> None:
    assert spoken(ranks).startswith("ranks 0, 2, 4, ")
    assert spoken(ranks).endswith(f", {said}")


@pytest.mark.parametrize(
    ("number", "said"),
    [(1, "all"), (MOST_SENTENCES, "all"), (MOST_SENTENCES + 1, "1 more like these")],
)
def test_of_many_sentences_some_are_said(number: int, said: str) -> None:
    sentences = tuple(f"rank {rank} waits" for rank in range(number))
    kept = sentences[:MOST_SENTENCES]
    assert abridged(sentences) == (kept if said == "all" else (*kept, said))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a" * LONGEST, "a" * LONGEST),
        ("rank 0 waits; " * LONGEST, "; ".join(["rank 0 waits"] * (LONGEST // 14)) + "; and so on."),
        ("rank " * LONGEST, " ".join(["rank"] * (LONGEST // 5)) + "; and so on."),
    ],
    ids=["a long word", "clauses", "words"],
)
def test_a_sentence_ends_before_it_is_a_list_of_thousands(text: str, said: str) -> None:
    assert clipped(text) == said

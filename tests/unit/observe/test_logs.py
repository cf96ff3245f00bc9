"""What the processes of a job print, by label: a bounded copy."""

from __future__ import annotations

import pytest
from histories import absent, child, launcher, rank, snapshot, worker, working
from msgspec.structs import replace

from helpers.model.facts import RankView, Snapshot
from helpers.observe import logs as logs_module
from helpers.observe.logs import KEEP, OWN, Logs

ROOT = 900

NEWEST = snapshot(
    working(0, children=[worker(0, 0), worker(0, 1), child(0)]),
    working(1),
    absent(2),
    launchers=[replace(launcher(), command=("python", "/env/bin/torchrun", "train.py"))],
)


def printed(
    *pieces: tuple[int | None, str | bytes], newest: Snapshot = NEWEST, root: int = ROOT
) -> Logs:
    """The logs once processes have printed."""
    logs = Logs(root)
    for pid, text in pieces:
        logs.add(pid, text if isinstance(text, bytes) else text.encode())
    logs.take(newest)
    return logs


def test_each_process_has_its_label() -> None:
    logs = printed(*((pid, f"{pid}\n") for pid in (1000, 1001, 2000, 2001, 3000, 4711)), (None, "900\n"))
    assert {label: logs.tail(label) for label in logs.labels()} == {
        "rank 0": ["1000"],
        "rank 1": ["1001"],
        "rank 0 worker 0": ["2000"],
        "rank 0 worker 1": ["2001"],
        "rank 0 child": ["3000"],
        "job": ["4711"],
        "launcher": ["900"],
    }
    assert logs.labels()[:2] == ["rank 0", "rank 0 child"]
    assert logs.labels()[-2:] == ["job", "launcher"]


def test_labels_of_ranks_stand_in_the_order_of_their_numbers() -> None:
    many = snapshot(*(working(n) for n in range(12)))
    logs = printed(*((1000 + number, "x\n") for number in (10, 2, 1)), newest=many)
    assert logs.labels() == ["rank 1", "rank 2", "rank 10"]


def test_what_a_process_has_printed_before_it_was_a_rank_is_the_rank_s() -> None:
    logs = printed((1000, "before\n"), newest=snapshot(world=0))
    assert (logs.label(1000), logs.tail("job")) == (None, ["before"])
    logs.take(snapshot(working(0)))
    assert (logs.label(1000), logs.labels()) == ("rank 0", ["rank 0"])


def test_a_process_of_unknown_rank_is_the_job() -> None:
    assert printed((1099, "x\n"), newest=snapshot(rank(None))).labels() == ["job"]


ALONE = replace(working(0), rank=None, local_rank=None, joined=False)


@pytest.mark.parametrize("newest", [ALONE, replace(ALONE, rank=0)], ids=["running", "ended"])
def test_a_program_of_no_rank_keeps_its_name_to_the_end(newest: RankView) -> None:
    """At its end it counts as rank 0, since there was no other; what it prints has one label."""
    assert printed((1000, "x\n"), newest=snapshot(newest, world=1)).labels() == ["job"]


def test_a_program_that_launches_its_ranks_itself_is_the_job() -> None:
    newest = snapshot(working(0), launchers=[replace(launcher(), command=("python", "train.py"))])
    assert printed((None, "x\n"), newest=newest).labels() == ["job"]


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        (["one\ntwo\n"], ["one", "two"]),
        (["one\n\nthree\n"], ["one", "", "three"]),
        (["load", "ing\nne"], ["loading", "ne"]),
        (["\N{SNOWMAN}".encode()[:1], "\N{SNOWMAN}".encode()[1:]], ["\N{SNOWMAN}"]),
        ([" 10%\r 20%\r 30%"], [" 30%"]),
        ([" 10%\r 20%\r"], [" 20%"]),
        (["one\r\ntwo\r\n"], ["one", "two"]),
        ([b"\xff ok\n"], ["\N{REPLACEMENT CHARACTER} ok"]),
        (["--token hf_abcdefghijklmnopqrstuvwxyz\n"], ["--token ***"]),
    ],
)
def test_the_lines_as_a_terminal_shows_them(pieces: list[str | bytes], lines: list[str]) -> None:
    assert printed(*((1000, piece) for piece in pieces)).tail("rank 0") == lines


def test_a_tail_is_bounded() -> None:
    logs = printed((1000, "".join(f"{n}\n" for n in range(KEEP + 10))))
    assert logs.tail("rank 0", lines=2) == [str(KEEP + 8), str(KEEP + 9)]
    assert logs.tail("rank 0", lines=KEEP)[:2] == ["... 11 lines before these are not kept ...", "11"]
    assert logs.tail("rank 0", lines=KEEP + 1)[:2] == [
        "... 10 lines before these are not kept ...",
        "10",
    ]
    assert logs.tail("rank 7") == []


@pytest.mark.parametrize("piece", [100, OWN // 2, 10 * OWN])
def test_what_is_not_kept_is_counted(piece: int) -> None:
    line = b"x" * 99 + b"\n"
    text = line * (20 * OWN // len(line)) + b"Traceback of the end\n"
    logs = printed(*((1000, text[at : at + piece]) for at in range(0, len(text), piece)))
    note, *kept = logs.tail("rank 0", 1 << 20)
    assert kept[-1] == "Traceback of the end"
    assert len(kept) * len(line) <= 2 * OWN
    dropped = text.count(b"\n") - len(kept)
    assert note == f"... {dropped} lines before these are not kept ..."


def test_of_many_processes_those_that_have_printed_lately_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs_module, "ALL", 100)
    logs = printed((1, "a" * 40), (2, "b" * 40), (1, "a" * 10), (3, "c" * 40), newest=snapshot(world=0))
    assert logs.tail("job") == ["a" * 50, "c" * 40]


def test_the_last_words_of_a_process() -> None:
    logs = printed((1000, "x" * 99_999 + "Traceback\n"), (None, "of the command\n"))
    assert logs.end(1000).endswith("xTraceback\n") and len(logs.end(1000)) == logs_module.END
    assert logs.end(1001) == logs.end(ROOT) == "of the command\n"
    assert Logs(ROOT).end(1000) == ""


def test_a_private_key_that_comes_line_by_line_is_no_line_s() -> None:
    """Not each of its lines looks random."""
    logs = Logs(7)
    body = [
        "Proc-Type: 4,ENCRYPTED",
        "",
        "GiipqbAxaaaaaaaaaaaa",
        "MIIEowIBAAKCAQEAr7Xz0Pq3k9vJ2mN5sT8wY1bC4d",
    ]
    lines = ["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----", "step 1"]
    for line in lines:
        for piece in (line[:6], f"{line[6:]}\n"):  # a look may come in the middle of a line
            logs.add(7, piece.encode())
            assert not {"Proc-T", "MIIEow"} & {*logs.tail("job")}
    shown = logs.tail("job")
    assert len(shown) == len(lines)
    assert set(shown[1:-2]) == {"***"}
    assert shown[-1] == "step 1"

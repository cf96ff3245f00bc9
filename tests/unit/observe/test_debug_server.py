"""What torch's debug server tells, from pages as its templates make them (torch 2.13)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from dumps import done, dump, entry
from msgspec.structs import replace
from test_dumped import frame, record

from helpers.model.facts import Snapshot
from helpers.model.waits import InCollective
from helpers.observe import debug_probe, debug_server, no_beacon
from helpers.observe.interpreter import Interpreter
from helpers.observe.look import Dump, Issued, Look, Program, Usage, Watched
from helpers.observe.observer import Observer
from helpers.observe.probe import Probe

C10D = "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
FRONTEND = "/env/lib/python3.11/site-packages/torch/distributed/debug/_frontend.py"
FROM_0 = dump(done("barrier", 1), entry("all_reduce", 2, sizes=[[3]]))
FROM_1 = dump(done("barrier", 1), entry("all_reduce", 2, sizes=[[4]]))


def page(**told: str) -> str:
    """As JSON_RESP_TEMPLATE draws it, which escapes nothing."""
    parts = (
        f"<h2>Rank {rank[1:]}: http://n0:4711/handler/x?</h2>\n {text}\n" for rank, text in told.items()
    )
    return "<!doctype html><nav>...</nav>\n" + "".join(parts)


def pre(told: Any) -> str:
    return f"<pre>{json.dumps(told, indent=2)}</pre>"


BOTH = page(r0=pre(FROM_0), r1=pre(FROM_1))


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        (BOTH, ["0", "1"]),
        (
            page(r0="<p>Failed to fetch: status=503</p><pre>Connection refused</pre>", r1=pre(FROM_1)),
            ["1"],
        ),
        (page(r0=pre({"version": "2.10"})), []),
        (page(r0=pre(dump(entry("</pre><h2>Rank 7: x</h2>")))), ["0"]),
        ("", []),
    ],
    ids=["both", "one does not answer", "no entries", "a name that looks like the page", "nothing"],
)
def test_what_a_page_tells_of_which_rank(text: str, ranks: list[str]) -> None:
    assert list(debug_probe.dumps(text)) == ranks


def test_only_the_newest_entries_are_told() -> None:
    many = dump(*(done("barrier", seq) for seq in range(200)))
    (told,) = debug_probe.dumps(page(r0=pre(many))).values()
    assert [one["collective_seq_id"] for one in told["entries"]] == list(range(136, 200))


class Page(BaseHTTPRequestHandler):
    """Serves gloo's recorders, and an error where NCCL's would be."""

    def do_GET(self) -> None:
        known = self.path == "/fr_trace_json"
        self.send_response(200 if known else 500)
        self.end_headers()
        self.wfile.write(BOTH.encode() * 40 if known else b"no NCCL")

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("localhost", 0), Page) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"localhost:{found.server_port}"
        found.shutdown()


def test_the_look_is_a_process_of_its_own(server: str) -> None:
    probe = Probe(server, str(debug_probe.__file__), Interpreter())
    try:
        while (found := probe.result()) is None:
            pass
    finally:
        probe.close()
    assert set(found["ranks"]) == {"0", "1"} and found["at"] < time.monotonic()


def at_rank(rank: int) -> dict[str, Any]:
    """What py-spy reads in a rank that waits in all_reduce."""
    return dict(
        record(
            frame("all_reduce", C10D, group="None"),
            frame("step"),
            argv=("python", "train.py"),
            RANK=str(rank),
            WORLD_SIZE="2",
        )
    )


WATCHED = Watched(
    command=("torchrun", "train.py"),
    cwd="/job",
    pid=9,
    start=0.0,
    host="n0",
    stdin="pipe",
    attached=True,
)
SERVER = 12
RANKS = {10: 0, 11: 1}


def look(at: float, **more: Any) -> Look:
    """A launcher, two ranks, and the debug server below rank 0, which has inherited its socket."""
    parents = {9: 1, 10: 9, 11: 9, SERVER: 10}
    sockets = {10: (("::", 5000),), SERVER: (("::", 5000), ("::", 25999))}
    return Look(
        time=at,
        programs=tuple(
            Program(
                pid=pid,
                number=0,
                parent=parent,
                started=0.0,
                command=("torchrun",) if pid == 9 else ("python", "train.py"),
                environment={"RANK": str(RANKS[pid]), "WORLD_SIZE": "2"} if pid in RANKS else {},
            )
            for pid, parent in parents.items()
        ),
        alive=tuple(Usage(pid=pid, cpu=1.0, memory=1, sockets=sockets.get(pid, ())) for pid in parents),
        **more,
    )


def stacks(since: float = 1.0) -> tuple[Any, ...]:
    """What py-spy tells; the main threads are where they are since that time."""
    served = record(frame("_serve", FRONTEND), argv=("python", "train.py"))
    dumped = {10: at_rank(0), 11: at_rank(1), SERVER: dict(served)}
    for seen in dumped.values():
        seen["threads"][0]["since"] = since
    return tuple((Dump(pid), {**seen, "pid": pid}) for pid, seen in dumped.items())


def answer(at: float) -> tuple[Any, ...]:
    return ((Issued("localhost:25999"), {"at": at, "ranks": {"0": FROM_0, "1": FROM_1}}),)


def waits(seen: Snapshot) -> list[tuple[str, int | None]]:
    """Operation and sequence number of what the ranks wait in."""
    return [(wait.op, wait.seq) for wait in collectives(seen)]


def collectives(seen: Snapshot) -> list[InCollective]:
    views = (rank.process for rank in seen.ranks if rank.process is not None)
    return [wait for view in views for wait in view.waits if isinstance(wait, InCollective)]


def test_an_observer_asks_the_server_and_takes_in_what_it_tells() -> None:
    observer = Observer(WATCHED)
    observer.take(look(1.0))
    seen = observer.take(look(1.2, answers=stacks()))
    assert Issued("localhost:25999") in observer.wanted
    assert seen.asked
    seen = observer.take(look(1.4, answers=answer(1.3)))
    assert not seen.asked
    assert waits(seen) == [("all_reduce", 2), ("all_reduce", 2)]
    assert [wait.sizes for wait in collectives(seen)] == [((3,),), ((4,),)]
    assert not any("sequence numbers" in sentence for sentence in seen.not_seen)


def test_what_was_told_before_a_rank_moved_is_not_taken_in() -> None:
    observer = Observer(WATCHED)
    observer.take(look(1.0))
    observer.take(look(1.2, answers=stacks(since=1.2)))
    seen = observer.take(look(1.4, answers=answer(1.3)))
    assert ("all_reduce", 2) in waits(seen)
    seen = observer.take(look(1.6, answers=stacks(since=1.5)))
    assert ("all_reduce", None) in waits(seen)


def test_a_server_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    observer = Observer(WATCHED)
    observer.take(look(1.0))
    assert observer.take(look(1.2, answers=stacks())).asked
    assert observer.take(look(1.2 + debug_server.ANSWERS - 0.1)).asked
    assert not observer.take(look(1.2 + debug_server.ANSWERS)).asked


def test_a_job_that_has_a_pipe_for_it_is_said_to_have_one() -> None:
    without = Observer(WATCHED).take(look(1.0))
    assert not any("pipe" in sentence for sentence in without.not_seen)
    first = look(1.0)
    environment = {"RANK": "0", no_beacon.PIPE: "/tmp/ask", no_beacon.DUMPS[0]: "/shared/rank"}
    programs = tuple(replace(one, environment=environment) for one in first.programs)
    seen = Observer(WATCHED).take(replace(first, programs=programs))
    (told,) = (sentence for sentence in seen.not_seen if "pipe" in sentence)
    assert "for p in /tmp/ask*.pipe; do echo 1 > $p; done" in told
    assert "stuck-ranks read /shared/rank*" in told


def test_a_job_without_a_server_is_asked_nothing() -> None:
    observer = Observer(WATCHED)
    observer.take(look(1.0))
    without = tuple(one for one in stacks() if one[0] != Dump(SERVER))
    assert not observer.take(replace(look(1.2), answers=without)).asked
    assert not any(isinstance(question, Issued) for question in observer.wanted)

"""What a task asks is measured from looks, calls and files; each row is one way of not doing it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec.structs import replace

from helpers.labs.calls import FETCHES, Call, calls, environment
from helpers.labs.checkpoints import CheckpointError, tensors
from helpers.labs.conditions import Run, unmet, watched
from helpers.labs.declaration import Called, Checkpoints, Condition, HasWorkers, Outside, Private
from helpers.labs.lab import all_labs
from helpers.model.facts import ChildView, Job, ProcessView, RankView, Report, Snapshot, Verdict

MB = 1_000_000
SPAWNED = ("python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()")


def look(time: float, **private: int | None) -> Snapshot:
    """Ranks 0 and 1 (pids 100 and 101) with a worker each (200 and 201)."""
    ranks = []
    for rank in (0, 1):
        worker = ProcessView(200 + rank, "dataloader-worker", command=SPAWNED)
        process = ProcessView(100 + rank, "rank", private=private.get(f"rank_{rank}"))
        ranks.append(RankView(rank, process=process, children=(ChildView(worker, worker_id=0),)))
    return Snapshot(time, Job(("python", "x.py"), world_size=2), tuple(ranks))


def run(made: tuple[Call, ...] = (), folder: Path = Path(), **more: Any) -> Run:
    return Run(Report(Verdict("ok", "none"), look(9.0)), folder, 2, calls=made, **more)


def fetches(pid: int, parent: int, count: int = 8) -> tuple[Call, ...]:
    return (Call(FETCHES[0], pid, parent),) * count


WORKERS = HasWorkers(what="w", otherwise="o", command="spawn_main", batches=8)
FIT = Outside(what="w", otherwise="o", function="m:fit", block="m:init")
BOTH = Called(what="w", otherwise="o", functions=("m:broadcast", "m:all_gather"), times=2)
OTHERS = fetches(201, 101)
CALLS: list[tuple[str, Condition, tuple[Call, ...], str]] = [
    ("all batches by workers", WORKERS, (*fetches(200, 100), *OTHERS), ""),
    ("workers of a fork server", WORKERS, (*fetches(200, 300), *OTHERS), ""),
    ("a worker that no look has met", WORKERS, (*fetches(250, 100), *OTHERS), ""),
    (
        "other workers",
        HasWorkers(what="w", otherwise="o", command="fork"),
        (*fetches(200, 100), *OTHERS),
        "o (none was seen at rank 0)",
    ),
    (
        "the rank itself",
        WORKERS,
        (*fetches(200, 100), *OTHERS, *fetches(101, 1, 1)),
        "o (rank 1 made 1 batch itself)",
    ),
    (
        "too few",
        WORKERS,
        (*fetches(200, 100, 3), *OTHERS),
        "o (the workers of rank 0 made 3 batches, not 8)",
    ),
    ("none", WORKERS, OTHERS, "o (the workers of rank 0 made no batch, not 8)"),
    ("outside", FIT, (Call("m:init", 100, 1), Call("m:fit", 100, 1)), ""),
    ("inside", FIT, (Call("m:fit", 100, 1), Call("m:fit", 101, 1, ("m:init",))), "o (`fit` ran inside)"),
    ("inside of something else", FIT, (Call("m:fit", 100, 1, ("m:other",)),), ""),
    ("never", FIT, (Call("m:init", 100, 1),), "o (`fit` was not called)"),
    (
        "often enough, together",
        BOTH,
        (Call("m:broadcast", 100, 1), Call("m:all_gather", 100, 1), *(Call("m:broadcast", 101, 1),) * 2),
        "",
    ),
    (
        "a rank too rarely",
        BOTH,
        (*(Call("m:broadcast", 100, 1),) * 5, Call("m:broadcast", 101, 1)),
        "o (not on rank 1)",
    ),
]


@pytest.mark.parametrize(
    ("condition", "made", "said"), [row[1:] for row in CALLS], ids=[r[0] for r in CALLS]
)
def test_calls_tell_what_a_task_asks(condition: Condition, made: tuple[Call, ...], said: str) -> None:
    assert unmet(condition, run(made)) == said


def test_memory_counts_at_every_look_and_only_that_of_the_rank_itself() -> None:
    condition = Private(what="w", otherwise="o", most_mb=500)
    before = look(1.0, rank_0=900 * MB)
    [first, second] = before.ranks
    assert first.process is not None
    prepares = replace(before, ranks=(replace(first, process=replace(first.process, pid=99)), second))
    assert unmet(condition, run(looks=(prepares, look(2.0, rank_0=500 * MB)))) == ""
    assert unmet(condition, run(looks=(look(1.0, rank_0=200 * MB, rank_1=501 * MB), look(2.0)))) == (
        "o (rank 1 had 501 MB; 500 MB beyond torch is the limit)"
    )


def test_what_torch_takes_by_itself_is_not_counted() -> None:
    condition = Private(what="w", otherwise="o", most_mb=500)
    looks = (look(1.0, rank_0=900 * MB),)
    assert unmet(condition, run(looks=looks, with_torch=400 * MB)) == ""
    assert "rank 0 had 501 MB" in unmet(condition, run(looks=looks, with_torch=399 * MB))


def save(path: Path, *values: float, names: tuple[str, ...] = ("a", "b")) -> None:
    state = {name: torch.tensor(values) for name in names}
    torch.save({"model": state, "epoch": 3, "path": path.name}, path)


FILES = Checkpoints(what="w", otherwise="o", files=("0.pt", "1.pt"), tensors=2, sum_is="sum")
ENDED = [{"sum": 14.0}, {"sum": 14.0}]


def test_checkpoints_that_are_complete_pass(tmp_path: Path) -> None:
    save(tmp_path / "0.pt", 1.0, 2.0)
    save(tmp_path / "1.pt", 3.0, 4.0)
    assert unmet(FILES, run(folder=tmp_path, results=ENDED)) == ""
    assert "another state than the one that the ranks ended with" in unmet(
        FILES, run(folder=tmp_path, results=[ENDED[0], {"sum": 15.0}])
    )


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.unlink(), "0.pt does not exist"),
        (lambda file: file.write_bytes(b"7 bytes"), "0.pt cannot be opened as a checkpoint"),
        (
            lambda file: file.write_bytes(file.read_bytes()[:900]),
            "0.pt cannot be opened as a checkpoint",
        ),
        (lambda file: save(file, 3.0, 4.0), "1.pt holds the same state as 0.pt"),
        (lambda file: save(file, 1.0, names=("a",)), "0.pt holds 1 tensors, not 2"),
        (lambda file: save(file, float("nan")), "0.pt holds numbers that are not finite"),
    ],
)
def test_a_checkpoint_that_is_none_is_noticed(tmp_path: Path, spoil: Any, said: str) -> None:
    save(tmp_path / "0.pt", 1.0, 2.0)
    save(tmp_path / "1.pt", 3.0, 4.0)
    spoil(tmp_path / "0.pt")
    assert unmet(FILES, run(folder=tmp_path, results=ENDED)) == f"o ({said})"


def test_tensors_are_read_as_torch_wrote_them(tmp_path: Path) -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    model = torch.nn.Linear(2, 2)
    torch.save({"part": whole[1:], "net": model.state_dict()}, tmp_path / "x.pt")
    read = tensors(tmp_path / "x.pt")
    assert {*read} == {"part", "net.weight", "net.bias"}
    assert (read["part"].shape, [*read["part"].values]) == ((2, 4), [*range(4, 12)])
    assert [*read["net.bias"].values] == model.bias.tolist()


def test_nothing_in_a_checkpoint_is_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(tmp_path / "made"),))

    torch.save({"evil": Evil()}, tmp_path / "x.pt")
    with contextlib.suppress(CheckpointError):
        assert tensors(tmp_path / "x.pt") == {}
    assert not (tmp_path / "made").exists()


LIBRARY = """
from contextlib import contextmanager

class Trainer:
    @contextmanager
    def init(self):
        yield

    def fit(self):
        return "fitted"
"""

PROGRAM = """
from contextlib import ExitStack
import library.trainer
trainer = library.trainer.Trainer()
trainer.fit()
with trainer.init():
    trainer.fit()
trainer.init()
with ExitStack() as stack:
    stack.enter_context(trainer.init())
    assert trainer.fit() == "fitted"
trainer.fit()
"""


def test_calls_are_noted_with_the_contexts_around_them(tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "trainer.py").write_text(LIBRARY)
    (tmp_path / "program.py").write_text(PROGRAM)
    fit, init = "library.trainer:Trainer.fit", "library.trainer:Trainer.init"
    env = os.environ | environment((fit, init), tmp_path)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    noted = calls(tmp_path)
    assert [call.inside for call in noted if call.function == fit] == [(), (init,), (init,), ()]
    assert {call.parent for call in noted} == {os.getpid()}


def test_every_watched_function_is_there() -> None:
    """Names are imported by a process of their own: a wrong one would be found nowhere else."""
    names = {one for lab in all_labs() for turn in lab.file.turns.values() for one in watched(turn)}
    assert names > set(FETCHES)
    lines = ["import functools, importlib"]
    for name in sorted(names):
        module, _, function = name.partition(":")
        lines.append(
            f"functools.reduce(getattr, {function.split('.')}, importlib.import_module({module!r}))"
        )
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)

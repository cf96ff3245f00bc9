"""What the observer makes of looks, where that takes more than one of its parts."""

from __future__ import annotations

from typing import Any

import pytest
from beacon_records import call, record, thread
from looks import watched
from msgspec.structs import replace

from helpers.beacon.record import FrameEntry, Record
from helpers.model.facts import Group, Snapshot
from helpers.model.frames import Frame
from helpers.model.waits import InRPC, JoinsRPC
from helpers.observe.look import (
    Cell,
    Dump,
    Ends,
    Holder,
    Look,
    Movement,
    Output,
    Program,
    Threads,
    Told,
    Usage,
)
from helpers.observe.observer import Observer
from helpers.observe.picture import MOST_ENDED

PYTHON = ("python", "train.py")
LINE = ("/job/train.py", 41, "step", True)
FUTEX = {"call": "futex", "fd": None, "target": None, "limited": False}
ASLEEP = {**FUTEX, "call": "nanosleep"}
RPC = "/env/lib/python3.11/site-packages/torch/distributed/rpc/internal.py"


def run(*looks: Look, command: tuple[str, ...] = PYTHON) -> tuple[Observer, Snapshot]:
    """An observer that has taken in looks at a job whose root has the pid 900; its last snapshot."""
    observer = Observer(watched(command))
    snapshots = [observer.take(look) for look in looks]
    return observer, snapshots[-1]


def look(time: float, *programs: Program, told: tuple[Told, ...] = (), **facts: Any) -> Look:
    """A look at which these programs are alive and new, unless `alive` says otherwise."""
    alive = tuple(Usage(program.pid) for program in programs)
    return Look(time, programs=programs, **{"alive": alive, "told": told, **facts})


def python(pid: int = 900, parent: int = 1, **environment: str) -> Program:
    return Program(pid, 0, parent, 0.5, PYTHON, environment)


def standing(**facts: Any) -> Record:
    """A process whose main thread stands at a line of the user's."""
    return record(thread(**{"frames": [LINE], "native": FUTEX, "native_id": 900, **facts}))


def test_a_process_without_a_beacon_is_seen_when_py_spy_has_read_it() -> None:
    seen = {**standing(), "source": "py-spy", "read": 2.0}
    observer = Observer(replace(watched(PYTHON), attached=True))
    for time in (2.1, 9.0):
        process = observer.take(look(time, python(), answers=((Dump(900), seen),))).ranks[0].process
        assert process is not None
    assert process.read_at == 2.0


# A beacon that cannot run


def told(time: float) -> Look:
    """A look at a process whose beacon has written at 1.0 and, before this look at `time`, not again."""
    before = (Told(900, 1.0, record=standing()),) if time == 1.0 else ()
    return look(time, python(), told=before)


def read(line: int) -> tuple[Dump, Record]:
    seen = standing(frames=[("/job/ext.py", line, "call", True)], holds_gil=True)
    return Dump(900), {**seen, "source": "py-spy"}


def test_a_process_whose_beacon_cannot_run_is_read_from_outside_once() -> None:
    observer, _ = run(told(1.0), told(2.0))
    assert Dump(900) not in observer.wanted
    observer.take(told(3.0))
    assert Dump(900) in observer.wanted
    snapshot = observer.take(replace(told(3.1), answers=(read(7),)))
    assert snapshot.ranks[0].process.where == Frame("ext.py", 7, "call")
    assert Dump(900) not in observer.wanted, "nothing moves while the lock is held"
    again = observer.take(told(3.3)).ranks[0].process
    assert (again.gil_held, again.where.line, again.beacon) == (True, 7, True)


def test_what_was_read_is_forgotten_once_the_beacon_runs_again() -> None:
    observer, _ = run(told(1.0), told(3.0), replace(told(3.1), answers=(read(7),)))
    free = observer.take(look(4.0, python(), told=(Told(900, 3.9),))).ranks[0].process
    assert (free.gil_held, free.where.line) == (False, 41)
    observer.take(told(6.0))
    assert Dump(900) in observer.wanted
    assert observer.take(replace(told(6.1), answers=(read(9),))).ranks[0].process.where.line == 9


def test_the_lock_may_be_held_from_the_start() -> None:
    """Then the beacon has opened its file for the stacks of a crash, and has written nothing yet."""
    begun = (Told(900, 0.5, stacks=""),)
    _, snapshot = run(look(0.6, python(), told=begun), told(5.0))
    assert [sentence for sentence in snapshot.not_seen if "never ran" in sentence]


def test_it_is_said_where_a_process_cannot_be_read_from_outside_either() -> None:
    refused = (Dump(900), "py-spy may not read it")
    observer, snapshot = run(told(1.0), told(3.0), replace(told(6.1), answers=(refused,)))
    assert (snapshot.ranks[0].process.gil_held, snapshot.ranks[0].process.where.line) == (True, 41)
    assert snapshot.not_seen == (
        "what is shown of the process `python train.py` is 5 s old, as its beacon last saw it: "
        "py-spy may not read it",
    )
    assert Dump(900) in observer.wanted, "it may be allowed later"
    assert observer.take(look(7.0, python(), told=(Told(900, 6.9),))).not_seen == ()


def test_while_the_lock_is_held_its_holder_counts_whatever_the_main_thread_does() -> None:
    """The main thread asks for the lock again and again; read at such a moment, it runs."""
    asks = {**standing(native=None, holds_gil=True), "source": "py-spy"}
    still = (Movement(900, (900,)), ((900, False, 5),))
    looks = [told(1.0), told(3.0), replace(told(3.2), answers=((Dump(900), asks),))]
    looks += [replace(told(3.4 + 0.2 * number), answers=(still,)) for number in range(11)]
    _, snapshot = run(*looks)
    process = snapshot.ranks[0].process
    assert process is not None and process.gil_held
    assert process.woken == pytest.approx(2.0)


def test_a_record_does_not_outlive_the_program_that_wrote_it() -> None:
    """A child that runs Python before `exec`, as with `preexec_fn`, has had a beacon."""
    before = replace(python(), exe="/usr/bin/python3.11")
    written = (Told(900, 1.0, record={**standing(), "exe": "/opt/env/bin/python3.11"}),)
    observer, _ = run(look(1.0, before, told=written))
    assert observer.records.keys() == {900}, "the same program, by another path"
    after = replace(before, command=("sleep", "1000"), exe="/usr/bin/sleep")
    observer.take(look(4.0, after))
    assert observer.records == {}


@pytest.mark.parametrize(("runs", "held"), [(True, False), (False, True)])
def test_a_beacon_that_gets_no_processor_is_no_held_lock(runs: bool, held: bool) -> None:
    written = (Told(900, 1.0, record={**standing(), "beacon_thread": 907}),)
    movement = (Movement(900, (907,)), ((907, runs, 5),))
    observer, _ = run(look(1.0, python(), told=written), told(3.0))
    assert Movement(900, (907,)) in observer.wanted
    snapshot = observer.take(replace(told(9.0), answers=(movement,)))
    process = snapshot.ranks[0].process
    assert process is not None
    assert (process.gil_held, process.starved) == (held, not held)
    why = "a call in C holds the interpreter lock" if held else "it gets no processor"
    assert snapshot.not_seen == (
        f"what is shown of the process `python train.py` is 8 s old, as its beacon last saw it: {why}",
    )


def test_what_was_read_from_outside_meanwhile_is_not_old() -> None:
    _, snapshot = run(told(1.0), told(3.0), replace(told(9.0), answers=(read(7),)))
    assert snapshot.not_seen == ()


def test_of_the_processes_that_have_ended_well_only_the_newest_are_kept() -> None:
    """A job that runs for weeks may start any number of them."""
    observer = Observer(watched(PYTHON))
    first = python(901, 900)
    failed = look(1.0, python(), first, told=(Told(900, 1.0, standing()),))
    observer.take(failed)
    for number in range(200):
        time, pid = 2.0 + number, 1000 + number
        reaped = {901: 256, **({pid - 1: 0} if number else {})}
        told_of = (Told(900, time, standing()), Told(pid, time, standing()))
        child = replace(python(pid, 900), command=("python", "-c", "pass"))
        snapshot = observer.take(look(time, python(), child, told=told_of, reaped=reaped))
    kept = {900, 901, *range(1199 - MOST_ENDED, 1200)}
    assert observer.table.rows.keys() == observer.identities.keys() == kept
    assert observer.records.keys() == kept - {901}
    assert snapshot.ranks[0].process is not None


def test_a_part_of_a_look_that_fails_is_told() -> None:
    failed = {"its process groups": "RuntimeError('no name')"}
    _, snapshot = run(
        look(1.0, python(), told=(Told(900, 1.0, record={**standing(), "faults": failed}),))
    )
    said = "its process groups cannot be read: RuntimeError('no name')"
    assert any(said in sentence for sentence in snapshot.not_seen)


# One process


def test_a_program_of_one_process_is_rank_0_of_one_from_its_first_look() -> None:
    _, snapshot = run(look(1.0, python()))
    assert [(view.rank, view.process is not None) for view in snapshot.ranks] == [(0, True)]
    assert snapshot.job.world_size == 1


def test_a_task_of_several_is_its_rank_from_its_first_look_and_the_others_are_out_of_sight() -> None:
    tasks = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "2", "SLURM_NTASKS": "4"}
    _, snapshot = run(look(1.0, python(**tasks)))
    assert [view.state for view in snapshot.ranks] == ["unseen", "unseen", "starting", "unseen"]
    assert (snapshot.job.world_size, snapshot.job.single_node) == (4, False)


def test_a_script_that_is_not_there_is_told_although_its_command_was_never_seen() -> None:
    said = "python: can't open file '/job/train.py': [Errno 2] No such file or directory"
    answers = ((Output(900), said),)
    dying = Program(900, 0, 1, 0.5, (), {})
    gone = look(2.0, status=2 << 8, answers=answers)
    _, snapshot = run(look(1.0, dying), gone)
    assert snapshot.job.script_error is not None


def test_what_it_starts_are_its_children() -> None:
    _, snapshot = run(look(1.0, python(), python(901, 900)))
    assert [child.process.pid for view in snapshot.ranks for child in view.children] == [901]


def test_once_ranks_have_numbers_it_is_none_any_more() -> None:
    ranks = [python(901 + n, 900, RANK=str(n), WORLD_SIZE="2") for n in range(2)]
    _, snapshot = run(look(1.0, python()), look(2.0, python(), *ranks))
    assert [view.process and view.process.pid for view in snapshot.ranks] == [901, 902]
    assert snapshot.job.world_size == 2


def test_of_programs_one_after_the_other_the_one_that_runs_is_rank_0() -> None:
    shell = Program(900, 0, 1, 0.0, ("bash", "run.sh"), {})
    first, second = python(901, 900), python(902, 900)
    _, snapshot = run(
        look(1.0, shell, first),
        look(2.0, shell, second, alive=(Usage(900), Usage(902))),
    )
    assert [view.process and view.process.pid for view in snapshot.ranks] == [902]


def test_between_two_programs_there_is_no_rank_that_could_have_failed() -> None:
    shell = Program(900, 0, 1, 0.0, ("bash", "run.sh"), {})
    ended = look(2.0, alive=(Usage(900),), reaped={901: 256})
    _, snapshot = run(look(1.0, shell, python(901, 900)), ended)
    assert snapshot.ranks == ()
    _, snapshot = run(look(1.0, shell, python(901, 900)), look(2.0, status=256, reaped={901: 256}))
    assert [view.process and view.process.exit_code for view in snapshot.ranks] == [1]


# Seen from outside


@pytest.mark.parametrize(
    ("more", "state"),
    [({"TORCHELASTIC_RESTART_COUNT": "0"}, "exited"), ({}, "missing")],
    ids=["torchrun starts all", "a shell may start the other one later"],
)
def test_a_rank_that_nobody_has_seen(more: dict[str, str], state: str) -> None:
    first = python(901, 900, RANK="0", WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", **more)
    observer = Observer(replace(watched(("torchrun", "train.py")), attached=True))
    seen = observer.take(look(1.0, python(), first))
    assert [(view.rank, view.state) for view in seen.ranks][1] == (1, state)


# Threads


QUEUE = ("/env/lib/python3.11/queue.py", 171, "get", False)
LIBRARY = ("/env/lib/python3.11/site-packages/library/feeder.py", 9, "feed", False)


@pytest.mark.parametrize(
    ("stands", "beside", "idle"),
    [
        pytest.param([LINE], [LINE], 6.0, id="at a line of the user's"),
        pytest.param([QUEUE, LINE], [LINE], 6.0, id="in a queue, which the other one does not fill"),
        pytest.param([QUEUE, LINE], [LIBRARY], 0.0, id="in a queue, which a library may fill"),
    ],
)
def test_a_thread_that_ticks_beside_a_main_thread_that_stands(
    stands: list[FrameEntry], beside: list[FrameEntry], idle: float
) -> None:
    beat = thread(name="beat", main=False, frames=beside, native_id=901, since=5.0)
    told = record(*standing(since=1.0, frames=stands)["threads"], beat, beacon_thread=902)
    looks = []
    for second in range(1, 8):
        used = [[900, 1.0, ""], [901, 0.2 * second, ""], [902, 0.2 * second, ""]]
        looks.append(
            look(
                float(second),
                python(),
                told=(Told(900, float(second), told if second == 1 else None),),
                alive=(Usage(900, cpu=1.0 + 0.4 * second),),
                answers=((Threads(900), used),),
            )
        )
    observer, snapshot = run(*looks)
    assert Threads(900) in observer.wanted
    (view,) = snapshot.ranks
    assert view.process is not None
    assert view.process.idle == pytest.approx(idle)


def test_while_the_main_thread_moves_nobody_asks_what_the_threads_do() -> None:
    told = record(thread(frames=[LINE]))
    observer, _ = run(look(1.0, python(), told=(Told(900, 1.0, told),)))
    assert Threads(900) not in observer.wanted


# Debuggers


def test_a_process_that_a_debugger_holds_is_not_blocked() -> None:
    held = (Usage(900, stopped=True, traced=True),)
    _, snapshot = run(look(1.0, python()), look(9.0, python(), alive=held))
    (view,) = snapshot.ranks
    assert view.process is not None
    assert (view.process.state, view.process.traced) == ("stopped", True)
    assert not view.process.blocked
    assert view.process.may_act


# Remote calls


def test_a_process_in_init_rpc() -> None:
    joins = call("rpc", "init_rpc", rank=1, world_size=3, key="tcp://127.0.0.1:29400")
    _, snapshot = run(look(9.0, python(), told=(Told(900, 9.0, standing(call=joins)),)))
    view = next(view for view in snapshot.ranks if view.rank == 1)
    assert view.state == "rendezvous" and not view.rpc
    assert view.process is not None
    assert [type(wait) for wait in view.process.waits] == [JoinsRPC]
    assert view.master == "127.0.0.1:29400"
    assert [other.state for other in snapshot.ranks] == ["missing", "rendezvous", "missing"]


def test_the_thread_that_serves_a_call_is_the_one_for_which_others_wait() -> None:
    ends = call("rpc", "shutdown")
    serving = thread(
        name="thread 7",
        main=False,
        frames=[("/job/train.py", 12, "answer", True), (RPC, 200, "_run_function", False)],
        since=2.0,
    )
    told = record(*standing(call=ends)["threads"], serving, rpc=(2, 4))
    _, snapshot = run(look(9.0, python(), told=(Told(900, 9.0, told),)))
    view = next(view for view in snapshot.ranks if view.rank == 2)
    assert view.rpc and snapshot.job.world_size == 4
    assert view.process is not None and view.process.where is not None
    assert view.process.where.line == 12
    assert [(type(wait), wait.blocking) for wait in view.process.waits] == [(InRPC, False)]


# Groups


def test_the_groups_of_a_rank_and_the_one_that_it_is_making() -> None:
    makes = call("collective", "new_group", group="default", ranks=[0, 1], counted=True)
    made = [{"name": "default", "id": "0", "ranks": [0, 1, 2, 3], "backend": "gloo"}]
    told = standing(call=makes)
    told["dist"] = {"rank": 0, "world_size": 4, "groups": made, "made": 2}  # type: ignore[typeddict-item]
    _, snapshot = run(look(9.0, python(), told=(Told(900, 9.0, told),)))
    assert snapshot.ranks[0].process is not None
    assert snapshot.ranks[0].process.groups == (
        Group("0", "default", (0, 1, 2, 3)),
        Group("1", "1", (0, 1)),
    )


# Compilers


def test_a_rank_whose_child_compiles() -> None:
    compiler = ("/usr/bin/c++", "-MMD", "-DTORCH_EXTENSION_NAME=fused_adam", "-c", "a.cpp")
    child = Program(901, 0, 900, 0.7, compiler, {})
    ninja = Program(902, 0, 900, 0.7, ("ninja", "-v"), {})
    _, snapshot = run(look(1.0, python(), ninja, child))
    assert snapshot.ranks[0].process is not None
    assert snapshot.ranks[0].process.compiles == "fused_adam with c++ and ninja"


# Processes outside the job


OUTSIDE = {
    "the holder of a lock": ("flock", "/job/lock", (Holder("flock", "/job/lock", 900), 5000)),
    "the other end of a socket": ("read", "socket:[7]", (Ends(900, "socket:[7]", True), (5000,))),
}


@pytest.mark.parametrize(("woken", "unmoved"), [(True, 0.0), (False, 4.8)])
@pytest.mark.parametrize("who", OUTSIDE)
def test_who_is_waited_for_outside_the_job_may_end_that_while_it_moves(
    who: str, woken: bool, unmoved: float
) -> None:
    blocking, target, known = OUTSIDE[who]
    native = {**FUTEX, "call": blocking, "target": target}
    waits = Told(900, 1.0, standing(native=native, since=1.0))
    own = Movement(900, (900,))
    observer, _ = run(replace(look(1.0, python(), told=(waits,)), answers=(known,)))
    for number in range(25):
        time = 1.2 + 0.2 * number
        moves = (Movement(5000, ()), ((5000, False, number if woken else 0),))
        answers = (known, (own, ((900, False, 3),)), moves)
        told_of = (Told(900, time),)
        snapshot = observer.take(replace(look(time, python(), told=told_of), answers=answers))
    assert Movement(5000, ()) in observer.wanted
    process = snapshot.ranks[0].process
    assert process is not None
    assert process.unmoved == pytest.approx(unmoved)


# Cells of a notebook

CELL = "/tmp/ipykernel_900/123.py"
ENTER = "def enter():\n    lock.acquire()\n"


def test_a_cell_is_looked_for_in_the_notebook_of_a_process_that_is_read_from_outside() -> None:
    dump = standing(frames=[(CELL, 2, "enter", True)])
    seen = replace(watched(PYTHON), attached=True)
    observer, asked = Observer(seen), Cell(900, CELL)
    answers = ((Dump(900), {**dump, "source": "py-spy"}),)
    before = observer.take(look(1.0, python(), answers=answers)).ranks[0].process
    assert before is not None and before.where is not None
    assert (before.where.file, before.where.text) == ("cell [?]", "")
    assert asked in observer.wanted
    found = observer.take(look(1.2, answers=((asked, [[2], ENTER]),), alive=(Usage(900),)))
    after = found.ranks[0].process
    assert after is not None and after.where is not None
    assert (after.where.file, after.where.text) == ("cell [2]", ENTER)
    assert asked in observer.wanted, "an answer that nobody asks for is forgotten"


def test_the_beacon_tells_the_cell_itself() -> None:
    told = standing(frames=[(CELL, 2, "enter", True)])
    told["cells"] = {CELL: (3, ENTER)}
    observer, snapshot = run(look(1.0, python(), told=(Told(900, 1.0, told),)))
    process = snapshot.ranks[0].process
    assert process is not None and process.where is not None
    assert (process.where.file, process.where.line, process.where.text) == ("cell [3]", 2, ENTER)
    assert not any(isinstance(asked, Cell) for asked in observer.wanted)


def test_what_a_beacon_has_told_of_its_cells_holds_for_what_is_read_from_outside() -> None:
    told = standing(frames=[(CELL, 2, "enter", True)])
    told["cells"] = {CELL: (3, ENTER)}
    dump = (
        Dump(900),
        {**standing(frames=[(CELL, 2, "enter", True)], holds_gil=True), "source": "py-spy"},
    )
    late = look(4.1, python(), answers=(dump,))
    _, snapshot = run(look(1.0, python(), told=(Told(900, 1.0, told),)), look(4.0, python()), late)
    process = snapshot.ranks[0].process
    assert process is not None and process.where is not None
    assert process.gil_held
    assert process.where.file == "cell [3]"

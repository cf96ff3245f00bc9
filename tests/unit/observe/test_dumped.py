"""What a dump of py-spy tells, from tables; the texts are as py-spy 0.4.3 prints them for torch 2.13."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from on_disk import sources

from helpers.diagnose.graph import Graph
from helpers.model.facts import Job, ProcessView, RankView, Snapshot
from helpers.model.waits import InCollective
from helpers.observe import no_beacon as blind
from helpers.observe import pyspy as dumps
from helpers.observe import pyspy_record as dumped
from helpers.observe.called import called_at
from helpers.observe.identity import Identity, spawned_number
from helpers.observe.process_table import Row

C10D = "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
LOGGER = "/env/lib/python3.11/site-packages/torch/distributed/c10d_logger.py"
SPAWN = "/env/lib/python3.11/site-packages/torch/multiprocessing/spawn.py"
LOADER = "/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
WORKER = "/env/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py"
RENDEZVOUS = "/env/lib/python3.11/site-packages/torch/distributed/rendezvous.py"
GROUP = "<torch._C._distributed_c10d.ProcessGroup at 0x7f91c7877430>"
TENSOR = "<Tensor at 0x7f91c77525d0>"

Frame = dict[str, Any]


def frame(name: str, file: str = "/job/train.py", line: int = 7, **values: str) -> Frame:
    variables = [{"name": key, "repr": text, "addr": 1, "arg": True} for key, text in values.items()]
    return {"name": name, "filename": file, "line": line, "locals": variables}


def wrapper(args: str = f"({TENSOR})", kwargs: str = "{}") -> Frame:
    return frame("_exception_logger.<locals>.wrapper", LOGGER, 83, args=args, kwargs=kwargs)


def record(*frames: Frame, argv: tuple[str, ...] = ("python", "train.py"), **env: str) -> Any:
    dump = [{"thread_id": 1, "os_thread_id": 40, "thread_name": "MainThread", "frames": list(frames)}]
    return dumped.record(dump, pid=40, parent=4, started=1.0, argv=argv, environment=env, cwd="/job")


MAIN = frame("<module>", line=20)
CALLS: list[tuple[str, list[Frame], dict[str, Any] | None]] = [
    ("no torch", [frame("load")], None),
    (
        "a collective: the function has put it in itself",
        [frame("all_reduce", C10D, group=GROUP), wrapper(), frame("step")],
        {"kind": "collective", "op": "all_reduce", "group": "default"},
    ),
    (
        "no wrapper, no group",
        [frame("monitored_barrier", C10D, group="None"), frame("step")],
        {"kind": "collective", "op": "monitored_barrier", "group": "default"},
    ),
    (
        "a group by name",
        [frame("all_reduce", C10D, group=GROUP), wrapper(kwargs=f'{{"group": {GROUP}}}')],
        {"kind": "collective", "group": None},
    ),
    (
        "a group by position",
        [frame("broadcast", C10D, group=GROUP), wrapper(args=f"({TENSOR}, 0, {GROUP})")],
        {"kind": "collective", "op": "broadcast", "group": None},
    ),
    (
        "None by name",
        [frame("all_reduce", C10D, group=GROUP), wrapper(kwargs='{"group": None}')],
        {"group": "default"},
    ),
    (
        "arguments that are cut off could hold a group",
        [frame("all_gather", C10D, group=GROUP), wrapper(args="([<Tensor at 0x1>, ...")],
        {"group": None},
    ),
    (
        "the outermost call is what the user wrote",
        [
            frame("all_gather", C10D, group=GROUP), wrapper(),
            frame("all_gather_object", C10D, group="None"), wrapper(),
        ],
        {"op": "all_gather_object", "group": "default"},
    ),
    (
        "recv",
        [frame("recv", C10D, src="1", group="None", group_src="None"), wrapper()],
        {"kind": "p2p", "op": "recv", "peers": [1], "group": "default"},
    ),
    ("send", [frame("send", C10D, dst="0", group="None")], {"kind": "p2p", "peers": [0]}),
    ("recv from anybody", [frame("recv", C10D, src="None", group="None")], {"peers": []}),
    (
        "joining",
        [frame("init_process_group", C10D, init_method='"env://"', rank="0", world_size="2")],
        {"kind": "rendezvous", "rank": 0, "world_size": 2, "key": "env://"},
    ),
    ("joining by variables", [frame("init_process_group", C10D, rank="-1")], {"rank": None}),
    (
        "new_group",
        [frame("_store_based_barrier", C10D, store_key='"k:1"'), frame("new_group", C10D)],
        {"kind": "collective", "op": "new_group", "key": "k:1", "group": None},
    ),
    ("new_group of all", [frame("new_group", C10D, ranks="None")], {"group": "default", "ranks": []}),
    (
        "new_group of two",
        [frame("new_group", C10D, ranks="[0, 2]")],
        {"group": "default", "ranks": [0, 2]},
    ),
    ("new_group of many", [frame("new_group", C10D, ranks="[0, 1, ...]")], {"group": None, "ranks": []}),
    (
        "a loader's worker",
        [frame("_try_get_data", LOADER, self="<_MultiProcessingDataLoaderIter at 0x7f>")],
        {"kind": "process", "op": "DataLoader"},
    ),
    ("a loader without workers", [frame("_next_data", LOADER, self="<_SingleProcess at 0x7>")], None),
    (
        "a loader's worker itself, forked below the loader",
        [frame("__init__", LOADER, self="<_MultiProcessingDataLoaderIter at 0x7>")],
        None,
    ),
    (
        "mp.spawn",
        [frame("ProcessContext.join", SPAWN), frame("start_processes", SPAWN, nprocs="4")],
        {"kind": "process", "op": "mp.spawn", "world_size": 4},
    ),
    (
        "a lock file",
        [frame("FileBaton.wait", "/env/site-packages/torch/utils/file_baton.py")],
        {"kind": "lock", "op": "lock file", "key": None},
    ),
    ("the user's own barrier", [frame("barrier")], None),
]  # fmt: skip


@pytest.mark.parametrize(("frames", "expected"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_the_call_on_a_stack(frames: list[Frame], expected: Mapping[str, Any] | None) -> None:
    call = record(*frames, MAIN)["threads"][0]["call"]
    if expected is None:
        assert call is None
    else:
        assert {key: call[key] for key in expected} == expected


USERS = [
    ("a script", ["python", "train.py"], "/job/train.py", True),
    ("a library", ["python", "train.py"], "/env/lib/python3.11/site-packages/numpy/x.py", False),
    ("the standard library", ["python", "train.py"], "/usr/lib/python3.12/threading.py", False),
    ("the beacon", ["python", "train.py"], "/home/me/run/path/stuck_ranks_beacon/agent.py", False),
    ("frozen", ["python", "train.py"], "<frozen runpy>", False),
    ("-c", ["python", "-c", "import x"], "<string>", True),
    (
        "-c of a spawned child",
        ["python", "-c", "from multiprocessing.spawn import x"],
        "<string>",
        False,
    ),
    ("made by a library", ["python", "train.py"], "<string>", False),
    ("what Python imports at its start", ["python", "train.py"], "/tool/sitecustomize.py", False),
]


@pytest.mark.parametrize(("argv", "file", "user"), [u[1:] for u in USERS], ids=[u[0] for u in USERS])
def test_what_is_the_users_own_code(argv: list[str], file: str, user: bool) -> None:
    assert dumped.is_user(file, argv) is user


def test_a_library_that_is_worked_on_in_place(tmp_path: Path) -> None:
    inner = tmp_path / "lightning" / "fabric"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").touch()
    assert not dumped.is_user(str(inner / "fabric.py"), ["python"])
    assert dumped.is_user(str(tmp_path / "train.py"), ["python"])


def test_a_relative_path_is_taken_from_the_jobs_own_folder(tmp_path: Path) -> None:
    """Python 3.8 names a script as its command line does."""
    (tmp_path / "__init__.py").touch()
    (tmp_path / "train.py").touch()
    one = frame("step", "train.py", 3)
    dump = [{"thread_id": 1, "os_thread_id": 40, "thread_name": None, "frames": [one]}]
    found = dumped.record(
        dump, pid=40, parent=4, started=1.0, argv=("python",), environment={}, cwd=str(tmp_path)
    )
    assert found["threads"][0]["frames"] == [(str(tmp_path / "train.py"), 3, "step", True)]


def test_the_target_of_m_is_the_users_wherever_it_lies() -> None:
    file = "/env/lib/python3.11/site-packages/recipes/train.py"
    found = record(frame("fit", file), frame("<module>", file), frame("_run_code", "<frozen runpy>"))
    assert [entry[3] for entry in found["threads"][0]["frames"]] == [True, True, False]


def test_a_record_has_the_shape_of_a_beacons() -> None:
    found = record(frame("Trainer.fit", line=9), MAIN, RANK="1", WORLD_SIZE="2", HOME="/root")
    thread = found["threads"][0]
    assert thread["frames"][0] == ("/job/train.py", 9, "fit", True)
    assert (thread["main"], found["phase"], found["env"]) == (
        True,
        "running",
        {"RANK": "1", "WORLD_SIZE": "2"},
    )
    identity = Identity()
    identity.update(found, {})
    assert (identity.rank, identity.world_size, identity.joined) == (1, 2, False)


def test_the_main_thread_of_an_older_python_runs_a_module() -> None:
    """py-spy 0.4.3 gives no kernel thread for Python 3.8 to 3.10 while it lets them run."""
    common = {"os_thread_id": None, "thread_name": None}
    dump = [
        {**common, "thread_id": 2, "frames": [frame("work"), frame("Thread._bootstrap")]},
        {**common, "thread_id": 1, "frames": [frame("wait", line=3), MAIN]},
    ]
    found = dumped.record(
        dump, pid=40, parent=4, started=1.0, argv=("python",), environment={}, cwd="/job"
    )
    told = [(thread["name"], thread["main"]) for thread in found["threads"]]
    assert told == [("thread 2", False), ("thread 1", True)]


def test_a_process_in_a_collective_has_joined() -> None:
    identity = Identity()
    identity.update(record(frame("barrier", C10D, group="None"), MAIN, RANK="0"), {})
    assert identity.joined


@pytest.mark.parametrize(
    ("name", "file", "variable"), [("_wrap", SPAWN, "i"), ("_worker_loop", WORKER, "worker_id")]
)
def test_which_child_of_several(name: str, file: str, variable: str) -> None:
    found = record(frame("work"), frame(name, file, **{variable: "3"}), frame("<module>", "<string>"))
    assert found["process"]["index"] == 3
    assert found["process"]["target"].endswith(f".{name}")


def test_the_store_is_where_the_rendezvous_looks_for_it() -> None:
    env = frame("_env_rendezvous_handler", RENDEZVOUS, master_addr='"127.0.0.1"', master_port="36737")
    found = record(env, frame("init_process_group", C10D), MAIN)
    assert found["env"] == {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "36737"}


def test_the_number_of_spawned_processes() -> None:
    joins = record(frame("join", SPAWN), frame("start_processes", SPAWN, nprocs="4"), MAIN)
    assert spawned_number(joins) == 4
    assert spawned_number(record(MAIN)) is None


SOURCE = (
    "def step(store, w):\n    store.get('ready')\n    w.wait()\n    store.get('a'), store.get('b')\n"
)
STORE = "<torch._C._distributed_c10d.PrefixStore at 0x7f99f5ad8f70>"
WORK = "<torch._C._distributed_c10d.Work at 0x7f5849b8c370>"
SITES = [
    ("a key", 2, ("Store", "get", "ready")),
    ("a handle", 3, ("Work", "wait", None)),
    ("two calls in one line", 4, None),
]


@pytest.mark.parametrize(("line", "expected"), [s[1:] for s in SITES], ids=[s[0] for s in SITES])
def test_the_line_tells_the_call_on_a_torch_object(tmp_path: Path, line: int, expected: Any) -> None:
    file = tmp_path / "train.py"
    file.write_text(SOURCE)
    found = record(frame("step", str(file), line, store=STORE, w=WORK), MAIN)
    assert called_at(found["threads"][0]["site"], sources()) == expected


def test_a_collective_of_an_unknown_group_may_always_end() -> None:
    """It proves nothing: who its members are is not known."""

    def snapshot(group: str | None) -> Snapshot:
        ops = (
            InCollective(op="all_reduce", group=group),
            InCollective(op="barrier", group="default"),
        )
        ranks = tuple(
            RankView(rank, state="waiting", process=ProcessView(
                pid=10 + rank, kind="rank", state="waiting", waits=(wait,), still=9.0, idle=9.0,
            ))
            for rank, wait in enumerate(ops)
        )  # fmt: skip
        return Snapshot(10.0, Job(("x",), world_size=2), ranks)

    assert Graph.of(snapshot("default")).stuck == {0, 1}
    assert Graph.of(snapshot(None)).stuck == set()


REASONS = [
    (
        "Permission Denied: Try running again with elevated permissions by going 'sudo ...'",
        "ptrace_scope",
    ),
    ("Error: Operation not permitted (os error 1)", "ptrace_scope"),
    ("Error: Failed to find python version from target process\n\nStack backtrace:\n", "no Python"),
    ("Error: Failed to get stack traces\n\nCaused by:", "moves too fast"),
    ("Error: something new\n\nStack backtrace:\n", "something new"),
    ("", "no reason"),
]


@pytest.mark.parametrize(("text", "says"), REASONS)
def test_why_a_process_cannot_be_read(text: str, says: str) -> None:
    assert says in dumps.reason(text)


PATH = {"STUCK_RANKS_PATH": "/run/path", "PYTHONPATH": "/run/path:/else"}
BLIND = [
    ("in order so far", ("python", "train.py"), PATH, "", False, "runs as another user"),
    ("-I", ("python", "-I", "train.py"), PATH, "", True, "runs with -I: no beacon"),
    ("-E among others", ("python", "-uE", "train.py"), PATH, "", True, "runs with -uE: no beacon"),
    ("an argument of the script", ("python", "train.py", "-E"), PATH, "", False, "another user"),
    ("text of -c", ("python", "-c", "I"), PATH, "", False, "another user"),
    ("emptied", ("python", "train.py"), {"HOME": "/"}, "", True, "stuck-ranks diagnose --"),
    ("reset", ("python", "train.py"), {**PATH, "PYTHONPATH": "/else"}, "", True, "export PYTHONPATH"),
    ("all gone", ("python", "train.py"), {}, "", True, "stuck-ranks diagnose --"),
    ("unreadable", ("python", "train.py"), None, "", False, "export PYTHONPATH"),
    ("failed", ("python", "train.py"), PATH, "OSError: no space", False, "OSError: no space"),
]


@pytest.mark.parametrize(
    ("command", "env", "failure", "certain", "says"), [b[1:] for b in BLIND], ids=[b[0] for b in BLIND]
)
def test_why_a_process_has_no_beacon(
    command: tuple[str, ...], env: Mapping[str, str] | None, failure: str, certain: bool, says: str
) -> None:
    row = Row(7, 1, 0.0, command, 0.0, environment=env)
    assert blind.is_certain(row) is certain
    assert says in blind.why(row, blind.name(row, 1), failure)
    assert blind.why(row, blind.name(row, 1), failure).startswith("rank 1 ")

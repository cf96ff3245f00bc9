"""Each torch that a job may have, by its private names: what the beacon finds in a stand-in of it.

Where the facts are from: the published wheels of 2.11.0, 2.12.0, 2.13.0, 2.14.1 and 2.15.0.

- `torch/distributed/distributed_c10d.py`: `_world` is an instance of `_World` with the properties
  default_pg, pg_map, pg_names and pg_group_ranks, in all of them. `all_gather_single` and
  `reduce_scatter_single` are there from 2.13 on, `gather_single` and `gather_into_tensor` from 2.14 on.
- `torch/distributed/c10d_logger.py`: `_WaitCounter(f"pytorch.wait_counter.c10d.{name}").guard()`, in
  all.
- `torch/_C/_distributed_c10d.pyi` and the strings of the library: `_dump_fr_trace_json` in all; from
  2.15 on with a third argument, `backend: str = "gloo"`.
- `torch/utils/data/_utils/worker.py`: `worker_id` is the 11th argument of `_worker_loop` in all;
  the second is `dataset_holder` in 2.15 and `dataset` before.
- `torch/multiprocessing/spawn.py`: `_wrap(fn, i, args, error_file)` in all; `start_processes` has
  `nprocs`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from beacon_records import record as beacon_record

from helpers.beacon import beacon, files, flight, joining, torch_names
from helpers.observe import no_beacon as blind
from helpers.observe.records import parsed

SINGLE_2_13 = ("all_gather_single", "reduce_scatter_single")
SINGLE_2_14 = (*SINGLE_2_13, "gather_single", "gather_into_tensor")
WORKER = ["dataset_kind", "dataset", "index_queue", "data_queue", "done_event", "auto_collation"]
WORKER += ["collate_fn", "drop_last", "base_seed", "init_fn", "worker_id", "num_workers"]
WORKER_2_15 = [
    word.replace("dataset", "dataset_holder") if i == 1 else word for i, word in enumerate(WORKER)
]
STATUS = {"pg_status": {"0": {"last_enqueued_collective": 2, "last_completed_collective": 1}}}


def dump(includeCollectives: Any = None, onlyActive: Any = None) -> bytes:  # noqa: N803
    entry = {
        "process_group": ["0", "default_pg"],
        "collective_seq_id": 2,
        "profiling_name": "gloo:all_reduce",
        "input_sizes": [[4]],
        "retired": False,
    }
    return json.dumps({"entries": [entry], **STATUS} if includeCollectives else STATUS).encode()


def dump_2_15(
    includeCollectives: Any = None,  # noqa: N803
    onlyActive: Any = None,  # noqa: N803
    backend: str = "gloo",
) -> bytes:
    return dump(includeCollectives, onlyActive)


@dataclass(frozen=True)
class Version:
    """What one torch has.

    Attributes:
        calls: collectives that it has beyond those of 2.11.
        worker: arguments of `_worker_loop`.
    """

    name: str
    dump: Callable[..., bytes]
    calls: tuple[str, ...] = ()
    worker: tuple[str, ...] = tuple(WORKER)


VERSIONS = [
    Version("2.11.0", dump),
    Version("2.12.0", dump),
    Version("2.13.0", dump, SINGLE_2_13),
    Version("2.14.1", dump, SINGLE_2_14),
    Version("2.15.0", dump_2_15, SINGLE_2_14, tuple(WORKER_2_15)),
]


class Group:
    group_name, group_desc = "0", "default_pg"

    def rank(self) -> int:
        return 1

    def size(self) -> int:
        return 2


class World:
    """`_World` of torch: its tables are properties."""

    def __init__(self, backend: str = "gloo") -> None:
        self._group, self._backend = Group(), backend

    @property
    def default_pg(self) -> Group:
        return self._group

    @property
    def pg_map(self) -> Mapping[Group, Any]:
        return {self._group: (self._backend, None)}

    @property
    def pg_names(self) -> Mapping[Group, str]:
        return {self._group: "0"}

    @property
    def pg_group_ranks(self) -> Mapping[Group, Mapping[int, int]]:
        return {self._group: {0: 0, 1: 1}}


@dataclass(frozen=True)
class StandIn:
    """Modules that stand where torch's would."""

    c10d: ModuleType
    bindings: ModuleType
    logger: ModuleType


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., StandIn]:
    """Puts a torch of some version in place of the real one."""

    def put(version: Version, backend: str = "gloo") -> StandIn:
        names = ("torch", torch_names.DISTRIBUTED, torch_names.BINDINGS, torch_names.CALL_LOGGER)
        torch, c10d, bindings, logger = (ModuleType(name) for name in names)
        vars(torch)["__version__"] = version.name
        for name in ("init_process_group", "destroy_process_group", *version.calls):
            vars(c10d)[name] = lambda *_, **__: None
        vars(c10d)["_world"] = World(backend)
        vars(bindings)["_dump_fr_trace_json"] = version.dump
        vars(logger)["_WaitCounter"] = lambda key: SimpleNamespace(key=key)
        for name, module in zip(names, (torch, c10d, bindings, logger), strict=True):
            monkeypatch.setitem(sys.modules, name, module)
        return StandIn(c10d, bindings, logger)

    return put


@pytest.mark.parametrize("version", VERSIONS, ids=[v.name for v in VERSIONS])
def test_everything_is_found_in_each_version(stand_in: Callable[..., StandIn], version: Version) -> None:
    modules = stand_in(version)
    assert torch_names.version() == version.name
    assert torch_names.unseen(True) == torch_names.unseen(False) == []
    groups = torch_names.process_groups()
    assert groups is not None
    assert (groups["rank"], groups["world_size"], groups["groups"][0]["ranks"]) == (1, 2, [0, 1])
    status = torch_names.flight_status()
    assert status is not None and torch_names.pending(torch_names.issued(status))
    (entry,), (call,), (issued,) = flight.read()
    assert (entry["group"], entry["seq"], entry["op"], entry["done"]) == ("0", 2, "all_reduce", False)
    assert (call["op"], issued["group"], issued["first"], issued["calls"]) == ("all_reduce", "0", 2, [0])
    joined: list[Any] = []
    grouped: list[Any] = []
    assert joining.watch(joined.append, grouped.append)
    made = vars(modules.logger)["_WaitCounter"]("pytorch.wait_counter.c10d.init_process_group")
    assert made.key.endswith("init_process_group") and (len(joined), len(grouped)) == (1, 0)
    vars(modules.logger)["_WaitCounter"]("pytorch.wait_counter.c10d.new_group")
    assert (len(joined), len(grouped)) == (1, 1)
    assert set(version.calls) <= torch_names.COLLECTIVE_CALLS
    place = torch_names.INDEX_ARGUMENT[torch_names.DATALOADER_WORKER]
    assert version.worker[place] == torch_names.INDEX_VARIABLE[torch_names.DATALOADER_WORKER][1]


def test_the_installed_torch_is_one_of_them() -> None:
    """The names that the stand-ins have are those that the real one has."""
    import torch
    import torch.distributed.distributed_c10d as c10d
    from torch._C import _distributed_c10d as bindings
    from torch.utils.data._utils import worker

    spawn = importlib.import_module("torch.multiprocessing.spawn")

    known = {version.name: version for version in VERSIONS}
    version = known.get(torch.__version__.partition("+")[0])
    assert callable(bindings._dump_fr_trace_json)
    assert all(hasattr(c10d._world, name) for name in torch_names.WORLD)
    assert list(inspect.signature(spawn._wrap).parameters) == ["fn", "i", "args", "error_file"]
    assert "nprocs" in inspect.signature(spawn.start_processes).parameters
    arguments = list(inspect.signature(worker._worker_loop).parameters)
    assert arguments[10] == "worker_id"
    if version is not None:
        assert all(hasattr(c10d, name) for name in version.calls)
        assert arguments[:12] == list(version.worker)


LOST = [
    ("_world", "groups"),
    ("pg_group_ranks", "groups"),
    ("_dump_fr_trace_json", "recorder"),
    ("a recorder that asks for more", "recorder"),
    ("_WaitCounter", "joining"),
]


@pytest.mark.parametrize(("lost", "word"), LOST, ids=[row[0] for row in LOST])
def test_without_a_name_the_beacon_goes_on_and_says_what_it_misses(
    stand_in: Callable[..., StandIn], tmp_path: Path, lost: str, word: str
) -> None:
    modules = stand_in(Version("2.16.0", dump))
    if lost == "pg_group_ranks":
        vars(modules.c10d)["_world"] = SimpleNamespace(default_pg=Group(), pg_map={}, pg_names={})
    elif lost.startswith("a recorder"):
        vars(modules.bindings)["_dump_fr_trace_json"] = lambda entries, active, backend: b"{}"
    else:
        for module in (modules.c10d, modules.bindings, modules.logger):
            vars(module).pop(lost, None)
    (tmp_path / "records").mkdir()
    one = beacon.Beacon(str(tmp_path))
    one.look()
    record = parsed(files.read(one.path) or b"")
    assert isinstance(record, dict)
    assert record["unseen"] == [word]
    (sentence,) = blind.kept_back(record)
    assert "cannot be seen" in sentence or "goes unnoticed" in sentence
    assert "2.16.0" in sentence


def test_groups_of_nccl_are_said_to_be_unnumbered(
    stand_in: Callable[..., StandIn], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(VERSIONS[-1], "cuda:nccl")
    cuda = ModuleType("torch.cuda")
    vars(cuda)["is_initialized"] = lambda: True
    monkeypatch.setitem(sys.modules, "torch.cuda", cuda)
    assert torch_names.unseen(True) == ["nccl"]
    assert "NCCL" in blind.kept_back(beacon_record(torch="2.15.0", unseen=["nccl"]))[0]


class Lazy(ModuleType):
    """A module that loads what it is asked for, and notes it."""

    asked: list[str]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__.setdefault("asked", []).append(name)
        raise ImportError(f"{name} cannot be loaded")


@pytest.mark.parametrize("kind", ["empty", "lazy", "no module", "half"])
def test_a_torch_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    """A package of that name, one that is still being loaded, or something else in its place."""
    made: dict[str, Any] = {
        "empty": ModuleType("torch"),
        "lazy": Lazy("torch"),
        "no module": object(),
        "half": ModuleType("torch"),
    }
    for name in (
        "torch",
        torch_names.DISTRIBUTED,
        torch_names.BINDINGS,
        torch_names.CALL_LOGGER,
        "torch.cuda",
    ):
        monkeypatch.setitem(sys.modules, name, made[kind])
    if kind == "half":

        def initialized() -> bool:
            raise NameError("_initialized")

        vars(made[kind])["is_initialized"] = initialized
        vars(made[kind])["_world"] = None
    (tmp_path / "records").mkdir()
    one = beacon.Beacon(str(tmp_path))
    one.look()
    record = parsed(files.read(one.path) or b"")
    assert isinstance(record, dict)
    assert (record["dist"], record["flight"], record["accelerator"]) == (None, None, "cpu")
    assert record["unseen"] == []
    assert not getattr(made[kind], "__dict__", {}).get("asked")


def test_a_torch_that_a_thread_is_loading(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Names come one after another; each look takes what is there."""
    module = ModuleType(torch_names.DISTRIBUTED)
    monkeypatch.setitem(sys.modules, torch_names.DISTRIBUTED, module)
    (tmp_path / "records").mkdir()
    one = beacon.Beacon(str(tmp_path))
    names = {"_world": World(), "init_process_group": len, "destroy_process_group": len}
    go, done = threading.Semaphore(0), threading.Semaphore(0)

    def load() -> None:
        for name, value in names.items():
            go.acquire()
            vars(module)[name] = value
            done.release()

    loader = threading.Thread(target=load)
    loader.start()
    seen = []
    for _ in names:
        go.release()
        done.acquire()
        one.look()
        record = parsed(files.read(one.path) or b"")
        assert isinstance(record, dict)
        seen.append(record["dist"] is not None)
    loader.join()
    assert seen == [False, False, True]


def test_the_beacon_is_written_for_python_3_8() -> None:
    folder = Path(beacon.__file__).parent
    for file in (*folder.glob("*.py"), *(folder / "inject").glob("*.py")):
        ast.parse(file.read_text(), str(file), feature_version=(3, 8))


@pytest.mark.parametrize(
    ("key", "rank"),
    [
        ("/default_pg/0//cpu//0/3", 3),
        ("/default_pg/0//cpu//0/rank_3", None),
        ("/1/0//cpu//0/3", None),
        ("torchelastic/assigned_ranks/3", None),
    ],
)
def test_the_key_under_which_a_rank_leaves_its_address(key: str, rank: int | None) -> None:
    assert torch_names.rank_of_key(key) == rank

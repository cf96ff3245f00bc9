"""Every private torch name, behind feature detection (torch 2.0 to 2.15).

Nothing here imports torch: each function looks at modules that the job has loaded and returns None or
an empty list when a name is not there. Names by which a `Snapshot` is judged are in `model.facts`.
"""

from __future__ import annotations

import _thread
import importlib
import json
import os
import re
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from . import signal_handlers
from .membership import members

if TYPE_CHECKING:
    from .record import Group, Groups, Members, Unseen

PACKAGE = "torch.distributed"
DISTRIBUTED = "torch.distributed.distributed_c10d"
BINDINGS = "torch._C._distributed_c10d"
EVAL_FRAME = "torch._C._dynamo.eval_frame"

COLLECTIVE_CALLS = frozenset(
    (
        *("all_reduce", "all_reduce_coalesced", "broadcast", "barrier", "reduce", "gather", "scatter"),
        *("all_gather", "all_gather_into_tensor", "all_gather_coalesced", "all_gather_object"),
        *("all_gather_single", "gather_object", "broadcast_object_list", "scatter_object_list"),
        *("reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_single", "all_to_all"),
        *("all_to_all_single", "monitored_barrier", "gather_single", "gather_into_tensor"),
        *("_all_gather_base", "_reduce_scatter_base", "shrink_group"),
        *("new_group", "_new_group_with_tag", "split_group", "destroy_process_group"),
    )
)
UNRECORDED = frozenset(("new_group", "monitored_barrier", "destroy_process_group"))
"""Collectives that leave no entry in the Flight Recorder."""

FROM_ROOT = frozenset(("broadcast", "broadcast_object_list", "scatter", "scatter_object_list"))
"""Collectives that send from one rank, `src`; others that have a root send to it, `dst`."""

NEW_GROUP_CALLS = frozenset(("new_group", "_new_group_with_tag", "split_group"))
P2P_CALLS = frozenset(("send", "recv", "isend", "irecv", "send_object_list", "recv_object_list"))
CALLS = COLLECTIVE_CALLS | P2P_CALLS
WORK_TYPES = {
    0: "broadcast",
    1: "all_reduce",
    3: "reduce",
    4: "all_gather",
    7: "gather",
    8: "scatter",
    12: "isend",
    13: "irecv",
    14: "irecv",
    15: "barrier",
}
"""Operation by the number that a `Work` gives for its own (torch's `OpType`, 2.11 to 2.15)."""

RPC_BINDINGS = "torch._C._distributed_rpc"
RPC_CALLS = frozenset(("init_rpc", "rpc_sync", "shutdown"))
RPC_SERVED = "_run_function"
"""The function in which a thread of a process runs what another one has called."""

REMOTE = ("method", "method_name", "to_here")
"""The function that stands for each method of an `RRef`, its variable with that method's name, and the
method that waits."""

FUTURE = (os.path.join("torch", "futures", "__init__.py"), ("wait", "wait_all"))

BATCHED_WAIT = (os.path.join("distributed", "pipelining", "schedules.py"), "_wait_batch_p2p", "w")
"""The function in which a stage of a pipeline waits for handles: source file, name, variable."""

RENDEZVOUS_CALLS = frozenset(("init_process_group",))
CALL_LOGGER = "torch.distributed.c10d_logger"
CALL_WRAPPER = "c10d_logger.py"
WAIT_COUNTER = "_WaitCounter"
STORE_BARRIER = "_store_based_barrier"
ASKS_MEMBERSHIP = "_rank_not_in_group"
WORLD = ("default_pg", "pg_map", "pg_names", "pg_group_ranks")
"""The tables of groups that torch keeps in `_world`."""

DATALOADER_WORKER = "torch.utils.data._utils.worker._worker_loop"
MP_SPAWN = "torch.multiprocessing.spawn._wrap"
SPAWN_FILE = os.path.join("torch", "multiprocessing", "spawn.py")
INDEX_ARGUMENT = {DATALOADER_WORKER: 10, MP_SPAWN: 1}
"""Which positional argument of a process's target is its worker id or process index."""

INDEX_VARIABLE = {
    DATALOADER_WORKER: (os.path.join("utils", "data", "_utils", "worker.py"), "worker_id"),
    MP_SPAWN: (SPAWN_FILE, "i"),
}
"""The source file of that target, and its own variable for the index."""

GROUP_CLASS = "ProcessGroup"
LOADER_ITERATOR = "_MultiProcessingDataLoaderIter"
LOADER_WAITS = ("_try_get_data", "_get_data", "_next_data", "_shutdown_workers")
"""Methods of that class in which a rank waits for its workers. The method that starts a worker is not
one of them: a forked worker has it on its own stack."""

LOCK_CALLS = {
    "wait": (os.path.join("torch", "utils", "file_baton.py"), "lock_file_path"),
    "acquire": (os.path.join("filelock", "_api.py"), "lock_file"),
}
"""Functions that wait for a lock file: source file, attribute that names the lock file."""

ENDLESS_BARRIER = (os.path.join("fabric", "utilities", "distributed.py"), ("__call__", "__exit__"))
"""Lightning's barrier without a timeout calls a method of its group, not a function of torch's: source
file, and the methods that call it."""

_RANK_KEY = re.compile(r"default_pg/\d+//\w+//\d+/(\d+)$")
"""The key under which a rank leaves its gloo address in the store."""


def name_in(module: str, name: str) -> Any:
    """The value of `name` in a loaded module, else None; nothing is loaded by asking."""
    return getattr(sys.modules.get(module), "__dict__", {}).get(name)


def c10d() -> Any:
    """The module `torch.distributed.distributed_c10d` once it is fully loaded, else None."""
    loaded = name_in(DISTRIBUTED, "destroy_process_group") is not None
    return sys.modules[DISTRIBUTED] if loaded else None


def unseen(joined: bool) -> List[Unseen]:
    """What this torch keeps from the beacon.

    Empty while torch.distributed is not loaded, or is not a torch that is known here.

    Args:
        joined: True once this process has a group; before that only `groups` can be known.
    """
    if not callable(name_in(DISTRIBUTED, "init_process_group")):
        return []
    world = name_in(DISTRIBUTED, "_world")
    if any(not hasattr(world, name) for name in WORLD):
        return ["groups"]
    if not joined:
        return []
    parts: List[Unseen] = []
    if _dump(False) is None:
        parts.append("recorder")
    if nccl_status() is None and "nccl" in _backend(default_group()):
        parts.append("nccl")
    if name_in(CALL_LOGGER, WAIT_COUNTER) is None:
        parts.append("joining")
    return parts


def version() -> str:
    """The version of the loaded torch, empty when it has none."""
    return str(name_in("torch", "__version__") or "")


def is_distributed_file(file: str) -> bool:
    """True for the source file that defines the collectives."""
    return file.endswith("distributed_c10d.py")


DDP_FILE = os.path.join("nn", "parallel", "distributed.py")
UTILITIES_FILE = os.path.join("torch", "distributed", "utils.py")
UNNAMED = {
    "_engine_run_backward": (os.path.join("autograd", "graph.py"), "backward"),
    "_distributed_broadcast_coalesced": (DDP_FILE, "broadcast"),
    "_register_delay_all_reduce_hook": (DDP_FILE, "broadcast"),
    "_pre_forward": (DDP_FILE, "broadcast"),  # Reducer::sync_bucket_indices
    "main_hook": (DDP_FILE, "broadcast"),
    "_match_all_reduce_for_bwd_pass": (DDP_FILE, "all_reduce"),
    "_match_unused_params_allreduce": (DDP_FILE, "all_reduce"),
    "_verify_param_shape_across_processes": (UTILITIES_FILE, "all_gather"),
    "_sync_params_and_buffers": (UTILITIES_FILE, "broadcast"),
    "wait_tensor": (os.path.join("distributed", "_functional_collectives.py"), "wait_tensor"),
    "_wait_batch_p2p": (os.path.join("distributed", "pipelining", "schedules.py"), "wait"),
}
"""Functions that communicate in C++, or wait for what others have issued: their source file, and what to
call the wait (torch/csrc/distributed/c10d/reducer.cpp for those of DDP)."""


def unnamed(file: str, function: str) -> Optional[str]:
    """What to call the wait in a function that communicates without a call of `torch.distributed`."""
    ending, name = UNNAMED.get(function, ("", None))
    return name if name is not None and file.endswith(os.sep + ending) else None


def is_call_wrapper(file: str) -> bool:
    """True for the source file of the wrapper around the collectives."""
    return file.endswith(CALL_WRAPPER)


def is_rendezvous_file(file: str) -> bool:
    """True for the source file in which `init_process_group` finds its store."""
    return file.endswith(os.path.join("torch", "distributed", "rendezvous.py"))


def is_debug_server(file: str) -> bool:
    """True for the source file of the page that torch's debug server shows."""
    return file.endswith(os.path.join("torch", "distributed", "debug", "_frontend.py"))


def is_rpc_file(file: str) -> bool:
    """True for a source file of `torch.distributed.rpc`."""
    return file.rpartition(os.sep)[0].endswith(os.path.join("torch", "distributed", "rpc"))


def is_future(file: str, function: str) -> bool:
    """True for a function that waits for a future of torch's."""
    return function in FUTURE[1] and file.endswith(FUTURE[0])


def rpc_rank() -> Optional[Tuple[int, int]]:
    """The rank of this process in `torch.distributed.rpc`, and the number of ranks; None outside."""
    agent = _rpc_agent()
    try:
        return (
            None if agent is None else (int(agent.get_worker_info().id), len(agent.get_worker_infos()))
        )
    except (AttributeError, RuntimeError):
        return None


def rpc_peer(to: Any) -> Optional[int]:
    """The rank that a remote call goes to: given as such, by its name, or by what `rpc` knows of it."""
    agent, number = _rpc_agent(), getattr(to, "id", to)
    if isinstance(number, int):
        return number
    try:
        return None if agent is None else int(agent.get_worker_info(to).id)
    except (AttributeError, RuntimeError, TypeError):
        return None


def rpc_owner(reference: Any) -> Optional[int]:
    """The rank that has the value of an `RRef`."""
    try:
        return int(reference.owner().id)
    except (AttributeError, RuntimeError, TypeError):
        return None


def _rpc_agent() -> Any:
    """What serves the remote calls of this process, None before there is one."""
    current = name_in(RPC_BINDINGS, "_get_current_rpc_agent")
    is_set = name_in(RPC_BINDINGS, "_is_current_rpc_agent_set")
    try:
        return current() if callable(current) and callable(is_set) and is_set() else None
    except RuntimeError:
        return None


def is_batched_wait(file: str, function: str) -> bool:
    """True for the function in which a stage of a pipeline waits for its neighbours."""
    return function == BATCHED_WAIT[1] and file.endswith(BATCHED_WAIT[0])


def point_to_point(value: Any) -> Optional[Tuple[str, int]]:
    """Operation and global rank at the other end of a `P2POp`; None for anything else."""
    if type(value).__name__ != "P2POp" or type(value).__module__ != DISTRIBUTED:
        return None
    operation, peer = getattr(value.op, "__name__", ""), value.peer
    return (operation, peer) if isinstance(peer, int) else None


def is_lock_file(file: str, function: str) -> bool:
    """True for a function that waits for a lock file."""
    return function in LOCK_CALLS and file.endswith(LOCK_CALLS[function][0])


def is_endless_barrier(file: str, function: str) -> bool:
    """True for a method in which Lightning's barrier without a timeout may wait."""
    return function in ENDLESS_BARRIER[1] and file.endswith(ENDLESS_BARRIER[0])


def is_dataloader_file(file: str) -> bool:
    """True for the source file of the DataLoader's parent side."""
    return file.endswith(os.path.join("utils", "data", "dataloader.py"))


def is_loader(value: Any) -> bool:
    """True for a DataLoader's iterator that has workers."""
    return LOADER_ITERATOR in _class_names(value)


def is_tensor(value: Any) -> bool:
    """True for a plain tensor, and not for one of a class of its own."""
    return type(value) is name_in("torch", "Tensor")


def rows(tensor: Any) -> Optional[int]:
    """The size of a tensor's first dimension; None where it has none, or a mode would be asked.

    `torch.device` as a context is such a mode: it is a function that is called for each attribute.
    """
    active = name_in("torch._C", "_len_torch_function_stack")
    if active is None or active():
        return None
    shape = tensor.shape
    return int(shape[0]) if len(shape) else None


def is_kernel_lock(value: Any) -> bool:
    """True for a lock file of `filelock` that is locked by the kernel."""
    return "UnixFileLock" in _class_names(value)


def dataloader_workers(iterator: Any) -> Dict[int, int]:
    """Pid -> worker id of the worker processes of a DataLoader's iterator."""
    workers = getattr(iterator, "_workers", ())
    return {int(worker.pid): number for number, worker in enumerate(workers) if worker.pid}


def is_told_to_parent_alone(frame: FrameType) -> bool:
    """True for the function that runs a process of `mp.spawn`, where a queue takes its exception.

    Only the parent can read it there (torch 2.0); later versions write a file.
    """
    code = frame.f_code
    return code.co_filename.endswith(SPAWN_FILE) and "error_queue" in code.co_varnames


def is_spawn_join(file: str, function: str) -> bool:
    """True for the function in which the caller of `mp.spawn` waits for its processes."""
    return function == "join" and file.endswith(SPAWN_FILE)


def spawned(context: Any) -> Dict[int, int]:
    """Pid -> process index of the processes of an `mp.spawn` context."""
    processes = getattr(context, "processes", ())
    return {int(process.pid): index for index, process in enumerate(processes) if process.pid}


def default_group() -> Any:
    """The default process group of this process, None before there is one."""
    return getattr(getattr(c10d(), "_world", None), "default_pg", None)


def process_groups() -> Optional[Groups]:
    """The groups of this process, or None before there is one."""
    world = getattr(c10d(), "_world", None)
    default = default_group()
    if world is None or default is None:
        return None
    groups: List[Group] = []
    names = dict(getattr(world, "pg_names", {}))
    ranks = dict(getattr(world, "pg_group_ranks", {}))
    for group in list(getattr(world, "pg_map", {})):
        groups.append(
            {
                "name": group_label(group, default),
                "id": str(names[group] if group in names else group_name(group)),
                **members(ranks.get(group, {})),
                "backend": _backend(group),
                "guessed": False,
            }
        )
    return {
        "rank": int(default.rank()),
        "world_size": int(default.size()),
        "groups": groups,
        "made": getattr(world, "group_count", None),
    }


def group_name(group: Any) -> str:
    """torch's own name for a group; one of a class in Python without a name raises (2.0 to 2.15)."""
    try:
        return str(group.group_name)
    except (AttributeError, RuntimeError):
        return ""


def _backend(group: Any) -> str:
    """The backend of a group for the devices of this job, empty when unknown.

    A group for which none was named has one for each kind of device: `cpu:gloo,cuda:nccl`.
    """
    world = getattr(c10d(), "_world", None)
    by_device = str(getattr(world, "pg_backend_config", {}).get(group, ""))
    for pair in by_device.split(","):
        device, _, backend = pair.partition(":")
        if device == accelerator() and backend:
            return backend
    entry = getattr(world, "pg_map", {}).get(group)
    return str(entry[0]) if entry else ""


def has_nccl() -> bool:
    """True for a torch that is built with NCCL, or RCCL (2.0 to 2.15)."""
    return name_in(DISTRIBUTED, "_NCCL_AVAILABLE") is True


def nccl_groups() -> Dict[str, int]:
    """torch's own name of each group that NCCL serves -> its number in NCCL's recorder (2.1 to 2.14)."""
    names = dict(getattr(getattr(c10d(), "_world", None), "pg_names", {}))
    uids = {str(name): _nccl_uid(group) for group, name in names.items() if "nccl" in _backend(group)}
    return {name: uid for name, uid in uids.items() if uid is not None}


def _nccl_uid(group: Any) -> Optional[int]:
    try:
        uid = group._get_backend(vars(sys.modules["torch"])["device"]("cuda")).uid
        return uid if isinstance(uid, int) else None
    except (AttributeError, RuntimeError):  # a group of a class in Python, or another torch
        return None


def has_tags(group: Any) -> bool:
    """True for a group whose sends find their receives by tag: NCCL has none.

    https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.send
    """
    return _backend(default_group() if group is None else group) == "gloo"


def group_label(group: Any, default: Any) -> str:
    """`default`, the description that the program gave it, or its name: in a table with torch 2.0."""
    if group is default:
        return "default"
    description = str(getattr(group, "group_desc", "") or "")
    names = getattr(getattr(c10d(), "_world", None), "pg_names", {})
    name = group_name(group) or str(names.get(group, ""))
    return description if description not in ("", "undefined", "default_pg") else name


def label_of(value: Any) -> str:
    """Label of a `group` argument; None means the default group."""
    default = getattr(getattr(c10d(), "_world", None), "default_pg", None)
    return group_label(default if value is None else value, default)


def group_of(value: Any) -> Tuple[str, Members]:
    """Label and members of a `group` argument; None means the default group."""
    module = c10d()
    world = getattr(module, "_world", None)
    default = getattr(world, "default_pg", None)
    group = default if value is None else value
    ranks = getattr(world, "pg_group_ranks", {}).get(group, {})
    return group_label(group, default), members(ranks)


def global_rank(group: Any, group_rank: Any) -> Optional[int]:
    """The global rank of `group_rank` in `group` (None: the default group)."""
    world = getattr(c10d(), "_world", None)
    group = getattr(world, "default_pg", None) if group is None else group
    for rank, within in dict(getattr(world, "pg_group_ranks", {}).get(group, {})).items():
        if within == group_rank:
            return int(rank)
    return None


def flight_status() -> Optional[bytes]:
    """Flight Recorder's status without entries: cheap (0.02 ms); it changes with every collective."""
    return _dump(False)


def pending(issued: Dict[str, Tuple[int, int]]) -> bool:
    """True where a collective is enqueued and not completed.

    Point-to-point operations stay enqueued for ever (gloo, torch 2.13), so this may be True without
    need, never False by mistake.

    Args:
        issued: what `issued` has found.
    """
    return any(enqueued != completed for enqueued, completed in issued.values())


def issued(status: bytes) -> Dict[str, Tuple[int, int]]:
    """torch's own name of a group -> the number of its newest collective that was enqueued, and done."""
    groups = json.loads(status).get("pg_status", {})
    return {
        name: (
            int(group.get("last_enqueued_collective", 0)),
            int(group.get("last_completed_collective", 0)),
        )
        for name, group in groups.items()
    }


def nccl_status() -> Optional[Callable[[bool, bool], bytes]]:
    """What tells of NCCL's recorder, without entries if so asked; None without NCCL, before torch 2.5.

    Its entries are not asked for here: to read them queries events of CUDA, which breaks a graph that is
    being captured.
    """
    tell: Optional[Callable[[bool, bool], bytes]] = name_in(BINDINGS, "_dump_nccl_trace_json")
    return tell


class _NoInductor:
    """Stands for `torch._inductor` while that has not been imported, for this thread only.

    To name its frames, the recorder asks for `torch._inductor.codecache`, which torch imports when it is
    asked for (`torch/csrc/profiler/python/combined_traceback.cpp`, torch 2.13): a second of work, and a
    module more in the job.
    """

    def __init__(self) -> None:
        self._thread = _thread.get_ident()

    def __getattr__(self, name: str) -> Any:
        if _thread.get_ident() == self._thread:
            raise AttributeError(name)
        return getattr(importlib.import_module("torch._inductor"), name)


def flight_entries() -> List[Dict[str, Any]]:
    """What the Flight Recorder holds, oldest first: with stacks as torch pickles it, else without."""
    import pickle

    dump = name_in(BINDINGS, "_dump_fr_trace")
    torch = vars(sys.modules["torch"]) if "torch" in sys.modules else {}
    instead = _NoInductor()
    try:
        if callable(dump):
            torch.setdefault("_inductor", instead)
            return list(pickle.loads(dump(True, True, False)).get("entries", ()))
    except Exception as problem:  # another signature
        if signal_handlers.raised(problem):
            raise
    finally:
        if torch.get("_inductor") is instead:
            del torch["_inductor"]
    raw = _dump(True)
    return list(json.loads(raw).get("entries", ())) if raw is not None else []


def accelerator() -> str:
    """`cuda` when the job has initialised CUDA, else `cpu`."""
    check = name_in("torch.cuda", "is_initialized")
    try:
        return "cuda" if callable(check) and check() else "cpu"
    except Exception as problem:  # a module that is still being loaded, or not the torch we know
        if signal_handlers.raised(problem):
            raise
        return "cpu"


def class_named(name: str) -> Optional[str]:
    """`Store`, `Work` or `ProcessGroup` for the name of one of torch's classes, else None."""
    if name in ("Work", GROUP_CLASS):
        return name
    return "Store" if name in ("Store", "TCPStore", "FileStore", "HashStore", "PrefixStore") else None


def class_of(value: Any) -> Optional[str]:
    """`Store`, `Work` or `ProcessGroup` when `value` is one of torch's, else None."""
    for base in type(value).__mro__:
        if base.__module__ in (BINDINGS, DISTRIBUTED) and base.__name__ in (
            "Store",
            "Work",
            "ProcessGroup",
        ):
            return base.__name__
    return None


def store_timeout(store: Any) -> Any:
    """How long a call of a store waits where it is given no timeout of its own; None if unknown."""
    try:
        return getattr(store, "timeout", None)
    except Exception as problem:  # a store of the job's own class
        if signal_handlers.raised(problem):
            raise
        return None


def operation_of(work: Any) -> Optional[str]:
    """The operation that a `Work` is the handle of; None when it cannot be told."""
    tell = getattr(work, "_get_op_type", None)
    try:
        return WORK_TYPES.get(int(tell())) if callable(tell) else None
    except (RuntimeError, TypeError, ValueError):
        return None


def rank_of_key(key: str) -> Optional[int]:
    """The rank that leaves its gloo address for the default group under this key of the store."""
    match = _RANK_KEY.search(key)
    return int(match[1]) if match else None


def _class_names(value: Any) -> List[str]:
    return [base.__name__ for base in type(value).__mro__]


def _dump(entries: bool) -> Optional[bytes]:
    if c10d() is None:
        return None
    dump = name_in(BINDINGS, "_dump_fr_trace_json")
    if dump is None:
        return None
    try:
        return bytes(dump(entries, False))
    except Exception as problem:  # another signature, or a recorder that is switched off
        if signal_handlers.raised(problem):
            raise
        return None

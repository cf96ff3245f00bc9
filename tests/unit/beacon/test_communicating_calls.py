"""Every call of torch's C++ by which DDP, FSDP and DTensor communicate, from the installed sources.

A call that a new torch adds fails here until it is known whether it communicates.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.beacon.torch_names import COLLECTIVE_CALLS, P2P_CALLS, unnamed
from helpers.observe.device_reads import METHODS

SPEC = importlib.util.find_spec("torch")
assert SPEC is not None and SPEC.origin is not None
TORCH = Path(SPEC.origin).parent
ROOMS = ("nn/parallel/distributed.py", "distributed/utils.py", "distributed/fsdp", "distributed/tensor")

COMMUNICATE = {
    *("_broadcast_coalesced", "_verify_params_across_processes", "_rebuild_buckets", "_run_comm_hook"),
}
"""Names of C++ that communicate, or wait for what was issued."""

QUIET = {
    *("Logger", "Reducer", "get_debug_level", "_compute_bucket_assignment_by_size", "set_logger"),
    *("_register_builtin_comm_hook", "_register_comm_hook", "_autograd_hook", "prepare_for_forward"),
    *("prepare_for_backward", "_check_reducer_finalized", "_get_zeros_like_grad_buckets"),
    *("_install_post_backward_futures", "_push_all_rebuilt_params", "_remove_autograd_hooks"),
    *("_reset_state", "_set_ddp_runtime_logging_sample_rate", "_set_forward_pass_work_handle"),
    *("_set_mixed_precision_param_dtype", "_set_optimizer_in_backward", "_set_sparse_metadata"),
    *("_set_static_graph", "_update_process_group", "_get_local_used_map"),
}
"""Names of C++ that do not: they set, read or only issue (torch/csrc/distributed/c10d/reducer.cpp)."""

FUNCTIONAL = "_c10d_functional"
"""Operators that issue; what they return is waited for in `wait_tensor`, and by a handle's `wait`."""


def functions(path: Path) -> Iterator[tuple[str, ast.Call, ast.Attribute]]:
    """Each call of a method in a file, with the innermost function around it."""

    def walk(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.Call, ast.Attribute]]:
        for child in ast.iter_child_nodes(node):
            name = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else inside
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
                yield inside, child, child.func
            yield from walk(child, name)

    yield from walk(ast.parse(path.read_text()), "<module>")


def native_calls() -> list[tuple[str, str, str]]:
    """File, function and name of each call of torch's C++ that may communicate."""
    import torch._C._distributed_c10d as bindings

    files = [file for room in ROOMS for file in sorted({TORCH / room, *(TORCH / room).rglob("*.py")})]
    found = []
    for file in (file for file in files if file.suffix == ".py"):
        for function, _, called in functions(file):
            owner = ast.unparse(called.value)
            bound = owner in ("dist", "torch.distributed") and hasattr(bindings, called.attr)
            if bound or owner.split(".")[-1] == "reducer":
                found.append((str(file), function, called.attr))
    return found


NATIVE = native_calls()


def test_there_are_such_calls() -> None:
    assert {name for _, _, name in NATIVE} >= COMMUNICATE


@pytest.mark.parametrize("name", sorted({name for _, _, name in NATIVE}))
def test_of_each_call_it_is_known_whether_it_communicates(name: str) -> None:
    public = name in COLLECTIVE_CALLS | P2P_CALLS
    assert (name in COMMUNICATE) + (name in QUIET) + public == 1, name


@pytest.mark.parametrize(
    ("file", "function"), sorted({place[:2] for place in NATIVE if place[2] in COMMUNICATE})
)
def test_what_communicates_is_a_wait_by_its_function(file: str, function: str) -> None:
    assert unnamed(file, function) is not None


def test_what_waits_for_a_device_is_known_as_such() -> None:
    waits = {
        called.attr
        for file in (TORCH / "distributed" / "fsdp").rglob("*.py")
        for _, _, called in functions(file)
        if "synchronize" in called.attr
    }
    assert waits and waits <= METHODS


def test_what_operators_issue_is_waited_for_where_that_is_known() -> None:
    called = {
        ast.unparse(call).partition(FUNCTIONAL)[2].lstrip(".").partition(".")[0].partition("(")[0]
        for file in (TORCH / "distributed" / "tensor").rglob("*.py")
        for _, call, name in functions(file)
        if FUNCTIONAL in ast.unparse(name.value)
    }
    issue = {"all_gather_into_tensor", "wait_tensor"}
    assert called <= issue, called - issue
    assert unnamed(str(TORCH / "distributed" / "_functional_collectives.py"), "wait_tensor")

"""Operations in the words of torch's C++ (`OpType`), and in the user's. No I/O."""

from __future__ import annotations

_OP_TYPES = {
    "ALLREDUCE": "all_reduce",
    "ALLREDUCE_COALESCED": "all_reduce_coalesced",
    "ALLGATHER": "all_gather",
    "_ALLGATHER_BASE": "all_gather_into_tensor",
    "REDUCE_SCATTER": "reduce_scatter",
    "_REDUCE_SCATTER_BASE": "reduce_scatter_tensor",
    "ALLTOALL": "all_to_all",
    "ALLTOALL_BASE": "all_to_all",
}
"""Those that are not the same in small letters: torch/csrc/distributed/c10d/ProcessGroup.cpp,
`opTypeToString`, and ProcessGroupNCCL.cpp."""


def users_name(op_type: str) -> str:
    """`all_gather_into_tensor` for `_ALLGATHER_BASE`."""
    return _OP_TYPES.get(op_type, op_type.lower())

"""Flight Recorder dumps as torch writes them, made of a few words each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Shapes = list[list[int]]

PLAIN: Shapes = [[4, 4]]


def entry(
    op: str,
    seq: int = 1,
    *,
    state: str = "scheduled",
    sizes: Shapes = PLAIN,
    outputs: Shapes | None = None,
    dtype: str = "Float",
    group: tuple[str, str] = ("0", "default_pg"),
    line: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """One entry; a `line` is that of the user's `train.py` which issued it."""
    p2p = " " in op
    frames = (
        []
        if line is None
        else [
            {"name": "wrapper", "filename": "/opt/site-packages/torch/c10d_logger.py", "line": 83},
            {"name": "train", "filename": "/home/user/train.py", "line": line},
        ]
    )
    return {
        "record_id": seq,
        "profiling_name": f"nccl:{op}",
        "state": state,
        "process_group": group,
        "input_sizes": sizes,
        "output_sizes": sizes if outputs is None else outputs,
        "input_dtypes": [dtype],
        "output_dtypes": [dtype],
        "collective_seq_id": 0 if p2p else seq,
        "p2p_seq_id": seq if p2p else 0,
        "time_created_ns": 1_700_000_000_000_000_000 + seq,
        "frames": frames,
        "is_p2p": p2p,
        "retired": state == "completed",
        **more,
    }


def done(op: str, seq: int = 1, **more: Any) -> dict[str, Any]:
    """An entry that has completed."""
    return entry(op, seq, state="completed", **more)


def dump(*entries: dict[str, Any], ranks: Sequence[int] = (0, 1), **more: Any) -> dict[str, Any]:
    """The dump of one rank; `ranks` are those of the default group."""
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(ranks))}}
    return {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": list(entries), **more}

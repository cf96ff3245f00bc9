"""Processes without a beacon: why they have none, what would help, and what cannot be seen."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from ..beacon.nccl import DUMPS, PIPE
from ..beacon.record import Record, Unseen
from .process_table import Row

EXPORT = 'export PYTHONPATH="$STUCK_RANKS_PATH:$PYTHONPATH"'

_WITHOUT_RECORDER = (
    "the job runs without a beacon, its stacks are read from outside by py-spy: sequence numbers, "
    "tensor sizes, asynchronous operations, the members of groups other than the default one, and the "
    "values of global variables and attributes cannot be seen"
)
_WITH_RECORDER = (
    "the job runs without a beacon, its stacks are read from outside by py-spy, its calls from torch's "
    "debug server in it: the values of global variables and attributes cannot be seen"
)
_BEFORE = "what happened before this look cannot be seen: exceptions, exit codes, what was printed"


def of_attached(environments: Iterable[Mapping[str, str] | None], *, recorder: bool) -> list[str]:
    """What cannot be seen in a job that was started without the instrument.

    Args:
        environments: of its processes.
        recorder: whether the job itself has told what its Flight Recorders hold.
    """
    if recorder:
        return [_WITH_RECORDER, _BEFORE]
    requests = (_on_request(environment) for environment in environments if environment)
    return [_WITHOUT_RECORDER, *dict.fromkeys(filter(None, requests)), _BEFORE]


def _on_request(environment: Mapping[str, str]) -> str:
    """How to have NCCL's Flight Recorder dumped where the job was started with a pipe for that."""
    pipe = environment.get(PIPE)
    dumps = next((environment[name] for name in DUMPS if environment.get(name)), None)
    if not pipe:
        return ""
    read = f"then `stuck-ranks read {dumps}*`" if dumps else "then `stuck-ranks read` on what it writes"
    return (
        "what the ranks have issued can be had from the job, which has opened a pipe for that: "
        f"`for p in {pipe}*.pipe; do echo 1 > $p; done`, {read}"
    )


def is_certain(row: Row) -> bool:
    """True when the process can never have a beacon, however new it is."""
    return bool(_flag(row)) or (row.environment is not None and not _on_path(row.environment))


def name(row: Row, rank: int | None) -> str:
    """`rank 1`, or the first words of the command."""
    return f"rank {rank}" if rank is not None else f"the process `{' '.join(row.command[:3])}`"


def why(row: Row, subject: str, failure: str, *, begun: bool = False) -> str:
    """Why a process has no beacon, and what to do.

    Args:
        subject: the process, as the sentence names it.
        failure: what its beacon said when it could not start; empty when it never tried.
        begun: whether its beacon has started, and has not come to a look since.
    """
    if failure:
        return f"{subject} has no beacon: it failed there ({failure})"
    if begun:
        return (
            f"{subject} has a beacon that never ran: a C call holds the interpreter lock from the start"
        )
    flag = _flag(row)
    if flag:
        return f"{subject} runs with {flag}: no beacon"
    if row.environment is not None and "STUCK_RANKS_PATH" not in row.environment:
        return (
            f"{subject} has no beacon: its environment was emptied (`env -i`, sudo, a container); start "
            "stuck-ranks behind that, as in `env -i NAME=VALUE ... stuck-ranks diagnose -- COMMAND`"
        )
    if row.environment is not None and _on_path(row.environment):
        return (
            f"{subject} has no beacon, although PYTHONPATH leads there: it runs as another user, who "
            "cannot open the run's folder, or in a namespace of its own (a container), or a "
            "`sitecustomize` before it hides it; start stuck-ranks as the job's user, in its container"
        )
    return f"{subject} has no beacon: something resets PYTHONPATH; add `{EXPORT}` after it"


def instead(subject: str, is_read: bool, problem: str | None) -> list[str]:
    """What is seen of a process that has no beacon; nothing before the first look."""
    if problem is not None:
        return [f"the stack of {subject} cannot be seen: {problem}"]
    if is_read:
        return [
            f"the stack of {subject} is read from outside, by py-spy; sequence numbers, sizes and "
            "asynchronous operations cannot be seen there"
        ]
    return []


def old(subject: str, age: float, why: str) -> str:
    """What is seen of a process whose beacon has not run for some seconds, and why it has not."""
    return f"what is shown of {subject} is {age:.0f} s old, as its beacon last saw it: {why}"


HELD = "a call in C holds the interpreter lock"
STARVED = "it gets no processor"
SILENT = "it has not looked since, and nothing tells why"


def _flag(row: Row) -> str:
    """The option that makes Python ignore `sitecustomize` or PYTHONPATH, else an empty text."""
    for word in row.command[1:]:
        if not word.startswith("-"):
            break
        if not word.startswith("--") and set(word[1:].partition("c")[0]) & set("IES"):
            return word
    return ""


def _on_path(environment: Mapping[str, str]) -> bool:
    wanted = environment.get("STUCK_RANKS_PATH", "")
    return bool(wanted) and wanted in environment.get("PYTHONPATH", "").split(os.pathsep)


EDITED = "{file} was changed after the job was started: what its lines say is not looked at"
"""A source that no longer shows what runs."""

FAULT = "{subject}: {part} cannot be read: {why}"
"""What is said where a part of a beacon's look fails."""

UNSEEN: dict[Unseen, str] = {
    "groups": "this torch{version} keeps its process groups in a place that is not known here: their "
    "members and sizes cannot be seen",
    "recorder": "this torch{version} has no Flight Recorder that can be read: sequence numbers and "
    "asynchronous operations cannot be seen",
    "nccl": "this torch{version} does not tell how far NCCL is: ranks that wait for their GPUs are not "
    "judged by what they have issued",
    "joining": "this torch{version} does not tell when a process joins: one that has joined and left "
    "its group between two looks goes unnoticed",
}
"""What a torch keeps from the beacon, as `torch_names.unseen` names it."""


def kept_back(record: Record) -> list[str]:
    """One sentence for each thing that the torch of a process keeps from its beacon."""
    version = f" ({record['torch']})" if record["torch"] else ""
    return [UNSEEN[word].format(version=version) for word in record["unseen"]]

"""The JSON form of a report, key for key: a contract that scripts depend on.

Every key is always there; what is not known is null, or empty. `docs/report.schema.json` holds what
`schema` returns: `tools/make_schema.py` writes it.
"""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ..model.facts import Cause, Outcome, PortRole, State
from ..model.parting import Kind
from ..model.slow import SlowKind
from ..model.terms import TERMS
from ..model.waits import WaitKind

ID = "urn:stuck-ranks:report:1"
"""The name of the schema: it stays while a report's `schema` is 1, and is no address."""


class _Part(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A JSON object."""


Rank = Annotated[int, Meta(ge=0)]
Ranks = list[Rank]
Lines = list[str]
Number = Annotated[int, Meta(ge=0)]
Pid = Annotated[int, Meta(ge=1)]
Signal = Annotated[int, Meta(ge=1)]
Seconds = Annotated[
    float | None,
    Meta(
        description="Seconds since the command was started, to 0.01; null for what never happened.",
    ),
]


class FrameJSON(_Part):
    """A line of a program. `file` is relative to the job's working directory, or absolute outside of it;
    code of a notebook's cell is in `cell [2]`, or `cell [?]`. `line` is 0 where nothing tells it."""

    file: str
    line: Number
    function: str


Innermost = Annotated[
    FrameJSON | None,
    Meta(description="The innermost line of the user's code, in the thread that waits or the main one."),
]
Stack = Annotated[list[FrameJSON], Meta(description="Innermost frame first.")]


class PortJSON(_Part):
    """A TCP port on which a process listens: `store` is the job's TCPStore, `gloo` a process group."""

    address: str
    port: Annotated[int, Meta(ge=0, le=65535)]
    role: PortRole


class WaitJSON(_Part):
    """What a process waits for; what its kind does not have is null or empty.

    `op` is the operation, of a condition its source text, of a device the collective that it has to do
    first, else what asks for a value of it. `group_ranks` is empty in a group of more than 1,024.
    `peers` are the other ends of a send, a receive or a remote call, and empty for any. `key` is a
    store key, a file or an address; `detail` the values of the names in a condition.
    """

    kind: WaitKind
    op: str
    group: str | None
    group_ranks: Ranks
    seq: int | None
    sizes: list[list[Number]]
    peers: Ranks
    key: str | None
    detail: str | None
    thread: str
    where: Innermost


class ChildJSON(_Part):
    """A process that a rank has started and that is no rank.

    `kind` is `dataloader-worker`, `launcher`, `helper` (of multiprocessing) or `process`.
    `joined_as_rank` is the rank that it has taken and should not have. A signal that ended it is a
    negative `exit_code`.
    """

    kind: str
    worker_id: Number | None
    pid: int
    state: State
    joined_as_rank: Rank | None
    where: Innermost
    stack: Stack
    ports: list[PortJSON]
    exit_code: int | None
    error: str | None


class RankJSON(_Part):
    """A rank; one entry for each of the world size, in the order of their numbers.

    `rank` is null until it is known, `pid` for one that was never started. `missing`: never started;
    `unseen`: on a node that is not looked at from here. `waits`: all that is pending, oldest first.
    `error`: the exception that ended it, as `Type: first line of the message`.
    """

    rank: Rank | None
    local_rank: Number | None
    node: Number
    host: str | None
    pid: Pid | None
    state: State
    where: Innermost
    stack: Stack
    waits: list[WaitJSON]
    children: list[ChildJSON]
    ports: list[PortJSON]
    exit_code: int | None
    signal: Signal | None
    error: str | None


class BranchJSON(_Part):
    """A way that ranks took: `in its body`, `after it`."""

    label: str
    ranks: Ranks


class GuardJSON(_Part):
    """A statement that may have decided, and the odd ranks."""

    ranks: Ranks
    where: FrameJSON
    source: str


class CallJSON(_Part):
    """A call, the ranks that made it, and their line."""

    ranks: Ranks
    op: str
    where: FrameJSON | None


class MetJSON(_Part):
    """A place of a group at which the ranks' calls differ."""

    group: str
    seq: int
    calls: list[CallJSON]


class PartingJSON(_Part):
    """Where the ranks parted: the statement, who took which way, and the values of its names.

    `kind`, `where` and `source` are null where no statement can be named; then `guards` has those of
    which one has decided, the likeliest first. `values`: name -> rank -> its value now, as text, where
    it can be read and has not changed since; `differ`: the names whose values differ. `history`: the
    calls from which on the ranks no longer make the same, oldest first.
    """

    kind: Kind | None
    where: FrameJSON | None
    source: str | None
    branches: list[BranchJSON]
    values: dict[str, dict[Annotated[str, Meta(pattern="^[0-9]+$")], str]]
    differ: Lines
    guards: Annotated[list[GuardJSON], Meta(max_length=3)]
    history: list[MetJSON]


class BlockerJSON(_Part):
    """A process outside the job that stands in its way: `owns port 29500`."""

    pid: int
    what: str
    command: str


class PrintedJSON(_Part):
    """A line that only some ranks have printed since the last one that all printed alike."""

    ranks: Annotated[Ranks, Meta(min_length=1)]
    text: str


class JobJSON(_Part):
    """The job as a whole; `command` and `launcher` are null where it is not known how it was started."""

    command: Lines | None
    launcher: str | None
    world_size: Number | None
    nodes_seen: Number
    attempt: Number
    exit_code: int | None
    signal: Signal | None
    hardware: str | None
    backends: Lines
    test: Annotated[str | None, Meta(description="The node id of the test of pytest that runs it.")]


class SlowJSON(_Part):
    """Who was waited for while the job ran; `rank` is null for several."""

    rank: int | None
    ranks: list[int]
    where: FrameJSON | None
    share: Annotated[float, Meta(description="Of the time since all ranks had joined.")]
    kind: SlowKind
    seconds: float


class SecondsJSON(_Part):
    """When the first rank was seen, the stall began and the verdict was reached."""

    first_rank: Seconds
    stall: Seconds
    verdict: Seconds


class ReportJSON(_Part):
    """What `stuck-ranks diagnose`, `attach` and `read` write with `--json`.

    Every key is always there: what is not known is null, or empty.
    """

    schema: Literal[1]
    outcome: Annotated[Outcome, Meta(description="Exit codes: 2, 1, 0, and 3 for `running`.")]
    proved: Annotated[bool, Meta(description=f"{TERMS['proved']} False for `running`.")]
    interrupted: Annotated[bool, Meta(description="True when a person stopped the run.")]
    cause: Annotated[Cause, Meta(description="`stuck-ranks explain CAUSE` shows its page.")]
    detail: Annotated[str, Meta(description="The cause in this job, in a clause.")]
    culprits: Annotated[
        Ranks,
        Meta(
            description=f"The odd ones out, in order. {TERMS['odd one out']} Empty for a process "
            "outside the job, for none, or where it is unknown.",
            extra_json_schema={"uniqueItems": True},
        ),
    ]
    blockers: list[BlockerJSON]
    where: Annotated[
        FrameJSON | None, Meta(description=f"{TERMS['where']} It may be in a child of a rank.")
    ]
    parting: PartingJSON | None
    summary: Annotated[str, Meta(description="One sentence for a person.")]
    explanation: Annotated[str, Meta(description="From the cause's page, in Markdown.")]
    fix: Annotated[
        str,
        Meta(description="In Markdown: what fits, all fixes of the page, and how to confirm them."),
    ]
    applies: Annotated[
        list[Annotated[int, Meta(ge=1)]],
        Meta(description="Numbers of the fixes that fit, from 1 in the order of the cause's page."),
    ]
    references: list[Annotated[str, Meta(pattern="^https://")]]
    finding: Annotated[
        dict[str, Any] | None,
        Meta(
            description="What the cause has found: its `kind`, and fields that depend on it. Null where "
            "nothing is wrong.",
        ),
    ]
    printed: list[PrintedJSON]
    masked: Annotated[
        Lines,
        Meta(description=f"Exceptions, with whose they are. {TERMS['masked']}"),
    ]
    job: JobJSON
    ranks: list[RankJSON]
    slow: Annotated[SlowJSON | None, Meta(description=f"{TERMS['slow']} Never with a hang.")]
    evidence: Annotated[Lines, Meta(description="What the verdict rests on.")]
    not_seen: Annotated[Lines, Meta(description="What could not be looked at, and why.")]
    seconds: SecondsJSON


def schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    _, parts = msgspec.json.schema_components([ReportJSON], ref_template="#/$defs/{name}")
    for part in parts.values():
        part["description"] = inspect.cleandoc(part["description"])
    dialect = "https://json-schema.org/draft/2020-12/schema"
    report = parts.pop(ReportJSON.__name__) | {"title": "Report of stuck-ranks"}
    return {"$schema": dialect, "$id": ID, **report, "$defs": parts}

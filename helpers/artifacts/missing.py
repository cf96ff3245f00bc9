"""What files do not tell, and what brings it in the next time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..model.facts import Snapshot, Verdict
from ..model.findings import Unexplained
from ..model.wording import plural, spoken
from ..observe import flight_dump
from ..observe.account import Account

RECORD = (
    "what the ranks have issued: before the job, export TORCH_FR_BUFFER_SIZE=2000, "
    "TORCH_NCCL_DUMP_ON_TIMEOUT=1 and TORCH_FR_DUMP_TEMP_FILE=FOLDER/rank; NCCL's watchdog then leaves "
    "a dump of each rank (docs/clusters.md)"
)

READ = (
    "what is read: logs of any launcher and collector, recordings, Flight Recorder dumps, py-spy, gdb, "
    "pystack and faulthandler dumps, torchelastic's error files, the output of ncclras"
)

LISTED = 20
"""Files that are not recognised, and are named: a folder may have thousands beside its dumps."""

STACKS = (
    "where the ranks are: while the job hangs, `py-spy dump --json --locals --pid PID > rankN.json` for "
    "each rank, on its node"
)


def not_seen(
    snapshot: Snapshot,
    accounts: Sequence[Account],
    unrecognised: Sequence[tuple[Path, int]],
    damaged: Sequence[tuple[Path, str]],
    verdict: Verdict,
) -> Iterator[str]:
    """One sentence for each thing that is missing, and would help with this verdict."""
    if verdict.outcome != "error" or verdict.cause == "unknown":
        yield from _of_ranks(snapshot, accounts)
        if not _in_words_alone(verdict):
            yield from _of_dumps(accounts)
    if verdict.cause == "unknown":
        yield READ
    for file, problem in damaged:
        yield f"{file.name} is not used: {problem}"
    for file, size in unrecognised[:LISTED]:
        yield f"{file.name} ({size} bytes) is not recognised"
    if rest := unrecognised[LISTED:]:
        are = plural(rest, "file is", "files are")
        yield f"{len(rest)} more {are} not recognised ({sum(size for _, size in rest)} bytes)"


def _of_ranks(snapshot: Snapshot, accounts: Sequence[Account]) -> Iterator[str]:
    """The ranks of which no file tells, and the files that do not tell their rank."""
    unseen = [view.rank for view in snapshot.ranks if view.state == "unseen" and view.rank is not None]
    if unseen:
        yield f"no file tells of {spoken(unseen)}"
    nameless = [
        account for account in accounts if account.rank is None and (account.threads or account.error)
    ]
    if nameless:
        files = ", ".join(sorted({Path(account.file).name for account in nameless}))
        are = plural(nameless, "is not told by its file", "are not told by their files")
        yield f"which {plural(nameless, 'rank it is', 'ranks they are')} {are}: {files}"


def _of_dumps(accounts: Sequence[Account]) -> Iterator[str]:
    """The dumps to be taken the next time."""
    if all(account.kind != flight_dump.KIND for account in accounts):
        yield RECORD
    if not any(account.threads and account.kind != flight_dump.KIND for account in accounts):
        yield STACKS


def _in_words_alone(verdict: Verdict) -> bool:
    """True where more of the text would tell, and no dump: of an exception, or of who ended the job."""
    finding = verdict.finding
    return isinstance(finding, Unexplained) and (finding.cut_off or finding.from_outside)

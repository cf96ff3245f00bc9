"""Feeds damaged and hostile input to whatever reads: it may refuse, and never breaks or hangs.

`python -m soak.fuzz [NUMBER [SEED]]` with `tools/` on the path; an input depends on the seed and its own
number alone, so that a fault is met again with `--only NUMBER`.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import pickle
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import msgspec

from helpers.artifacts.artifacts import Artifacts, NothingError
from helpers.artifacts.files import Budget
from helpers.artifacts.moments import Unpacker
from helpers.artifacts.reading import FileContent, content_of
from helpers.beacon.files import framed, record_path
from helpers.cli import main as cli
from helpers.cli.arguments import UsageError
from helpers.labs import lab
from helpers.observe.recording import RecordingError
from helpers.observe.records import Beacons
from helpers.report import report as reports
from helpers.report.page import to_html
from helpers.session import report_of_artifacts

from .part import Part

ROOT = Path(__file__).resolve().parents[2]
NUMBER, SEED = 10_000, 1
LIMIT = 20
"""Seconds that one input may take on a busy machine."""
LARGEST = 64_000
"""Bytes of a packed recording that is damaged: thousands of inputs are to take minutes."""

CODES = {0, 1, 2, 3, cli.USAGE}
ODD = [
    "",
    "-",
    "--",
    "a\0b",
    "/",
    "..",
    "\udcff",
    "[/red]",
    "%s",
    "{}",
    "1e999",
    "nan",
    "9" * 5000,
    "\x1b[2J",
]
VALUES: list[object] = [
    *(None, True, -1, 0, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, -1e308, 1e308),
    *(
        float("nan"),
        float("inf"),
        "",
        "\0",
        "\ud800",
        "<script>",
        "\x1b]0;x\x07",
        [],
        {},
        [[]],
        {"a": {}},
    ),
]


class HangError(Exception):
    """An input has taken longer than `LIMIT`."""


def damaged(chance: random.Random, data: bytes) -> bytes:
    """Bytes with some of them changed, taken out, said twice or cut off."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        until = min(len(data), at + chance.choice((1, 1, 8, 200)))
        match chance.randrange(5):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + chance.randbytes(until - at) + data[until:]
            case 2:
                data = data[:at] + data[until:]
            case 3:
                data = data[:until] + data[at:]
            case _:
                data = (
                    data[:at]
                    + bytes(b ^ 1 << chance.randrange(8) for b in data[at : at + 1])
                    + data[at + 1 :]
                )
    return data


def distorted(chance: random.Random, value: object) -> object:
    """A JSON value in which one part, at any depth, is another or is missing."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.1:
        return chance.choice(VALUES)
    key = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
    changed = value.copy()
    if chance.random() < 0.05:
        del changed[key]
    else:
        changed[key] = distorted(chance, value[key])  # type: ignore[index]
    return changed


def of_command_line(chance: random.Random, _: Path) -> None:
    """Words for the verbs; nothing is started, for `diagnose` and `attach` are only understood."""
    verbs = ["diagnose", "attach", "read", "lab", "explain", "check", "-h", "--version"]
    flags = [
        "--json",
        "--html",
        "--record",
        "--patience",
        "--max-seconds",
        "--program",
        "--knob",
        "--all",
    ]
    words = [chance.choice(verbs)]
    for _ in range(chance.randint(0, 6)):
        words.append(
            chance.choice([*flags, *flags, *ODD, str(chance.randint(-9, 9)), chance.randbytes(3).hex()])
        )
    with contextlib.suppress(UsageError):
        options = cli.parse(words)
        if words[0] == "explain" or (words[0] == "read" and not {"/", ".."} & set(options.path)):
            code = cli.main(words)
            assert code in CODES, f"exit code {code}"


def of_lab(chance: random.Random, folder: Path) -> None:
    """A `lab.toml`."""
    original = chance.choice(sorted((ROOT / "notebooks").glob("0*/lab.toml")))
    where = folder / original.parent.name
    where.mkdir(exist_ok=True)
    text = original.read_bytes()
    if chance.random() < 0.5:
        text = damaged(chance, text)
    else:
        lines = text.splitlines(keepends=True)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(lines))
            key, equals, _ = lines[at].partition(b"=")
            odd = chance.choice(
                (b"-1", b"''", b"[]", b"{}", b"nan", b"1e400", b"'../../x'", b"true", b"[[]]")
            )
            lines[at] = key + b"= " + odd + b"\n" if equals and chance.random() < 0.7 else b""
        text = b"".join(lines)
    (where / "lab.toml").write_bytes(text)
    for program in original.parent.glob("*.py"):
        (where / program.name).touch()
    with contextlib.suppress(lab.LabError):
        lab.read_lab(where)


@cache
def _recordings() -> tuple[Path, ...]:
    found = sorted((ROOT / "tests" / "recordings").glob("*.jsonl.gz"))
    return tuple(file for file in found if file.stat().st_size < LARGEST)


def of_recording(chance: random.Random, folder: Path) -> None:
    """A recording: packed bytes, text, or values that no run has."""
    data = chance.choice(_recordings()).read_bytes()
    if chance.random() < 0.2:
        _read(folder / "run.jsonl.gz", damaged(chance, data))
        return
    lines = gzip.decompress(data).splitlines(keepends=True)
    for _ in range(chance.randint(1, 3)):
        at = chance.choice((0, len(lines) - 1, chance.randrange(len(lines))))
        if chance.random() < 0.3:
            lines[at] = damaged(chance, lines[at])
        else:
            with contextlib.suppress(ValueError):
                lines[at] = json.dumps(distorted(chance, json.loads(lines[at]))).encode() + b"\n"
    text = b"".join(lines)
    _read(folder / "run.jsonl.gz", text if chance.random() < 0.1 else gzip.compress(text, 1))


def _flight() -> dict[str, object]:
    """A dump as torch 2.13 writes it."""
    frame = {"name": "main", "filename": "/job/train.py", "line": 7}
    entry: dict[str, object] = {
        "record_id": 3,
        "pg_id": 0,
        "process_group": ["0", "default_pg"],
        "collective_seq_id": 4,
        "p2p_seq_id": 0,
        "op_id": 4,
        "profiling_name": "gloo:all_reduce",
        "state": "started",
        "time_created_ns": 1_700_000_000_000_000_000,
        "input_sizes": [[2]],
        "output_sizes": [[2]],
        "input_dtypes": ["Float"],
        "output_dtypes": ["Float"],
        "timeout_ms": 600_000,
        "is_p2p": False,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": False,
        "frames": [frame],
    }
    status = {
        "last_enqueued_collective": 4,
        "last_started_collective": 4,
        "last_completed_collective": 3,
    }
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    return {
        "version": "2.10",
        "pg_config": config,
        "pg_status": {"0": status},
        "entries": [entry],
        "rank": 0,
    }


class _Hostile:
    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (99,)


def of_dump(chance: random.Random, folder: Path) -> None:
    """A log, or a dump of the Flight Recorder as a pickle or as JSON."""
    if chance.random() < 0.5:
        log = chance.choice(sorted((ROOT / "tests" / "public_logs").glob("*.log")))
        _read(folder / "rank_0.log", damaged(chance, log.read_bytes()))
        return
    value = distorted(chance, _flight())
    if chance.random() < 0.5:
        data = json.dumps(value).encode()
    else:
        data = pickle.dumps([value, _Hostile()] if chance.random() < 0.05 else value, protocol=2)
    _read(folder / "dump_0", damaged(chance, data) if chance.random() < 0.5 else data)


def _read(file: Path, data: bytes) -> None:
    """As `read` does, but in this process: there, a fault would only end the process that reads."""
    file.write_bytes(data)
    try:
        # What the reader's process finds is held against its types on the way to the one that judges.
        found = msgspec.json.decode(msgspec.json.encode(content_of(file, Budget())), type=FileContent)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return
    with contextlib.suppress(NothingError, RecordingError):
        parts = ((file, Unpacker().part(found.part)),) if found.part else ()
        damage = ((file, found.damaged),) if found.damaged else ()
        report, history = report_of_artifacts(Artifacts(found.accounts, parts, (), damage))
        reports.to_text(report), json.dumps(reports.to_json(report)), to_html(report, history)


@cache
def _records() -> tuple[bytes, ...]:
    """Records of real beacons, out of the recordings."""
    found = set[bytes]()
    for file in _recordings()[:20]:
        for line in gzip.decompress(file.read_bytes()).splitlines()[1:]:
            told = json.loads(line).get("told", ())
            found |= {json.dumps(one["record"]).encode() for one in told if one.get("record")}
    return tuple(sorted(found))


def of_record(chance: random.Random, folder: Path) -> None:
    """A record of a beacon that is cut off, has other bytes, or other values."""
    data = chance.choice(_records())
    match chance.randrange(4):
        case 0:
            data = framed(data[: chance.randrange(len(data))])
        case 1:
            data = framed(damaged(chance, data))
        case 2:
            data = damaged(chance, framed(data))
        case _:
            data = framed(json.dumps(distorted(chance, json.loads(data))).encode())
    (folder / "records").mkdir(exist_ok=True)
    Path(record_path(str(folder), 7)).write_bytes(data)
    list(Beacons(folder).read())


KINDS: dict[str, Callable[[random.Random, Path], None]] = {
    "command lines": of_command_line,
    "lab.toml": of_lab,
    "recordings": of_recording,
    "dumps and logs": of_dump,
    "records of beacons": of_record,
}


def measure(number: int = NUMBER, seed: int = SEED, only: int | None = None) -> Part:
    """Feed so many inputs, all kinds in turn, and say which were not survived.

    Args:
        only: the number of one input; None for all.
    """
    began, counted, faults = time.monotonic(), Counter[str](), list[str]()
    for at in range(number) if only is None else (only,):
        kind = list(KINDS)[at % len(KINDS)]
        counted[kind] += 1
        try:
            with _limited(), tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                KINDS[kind](random.Random(f"{seed}/{at}"), Path(folder))
        except Exception as problem:
            last = traceback.extract_tb(problem.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            said = " ".join(f"{type(problem).__name__} at {place}: {problem}".split())[:200]
            faults.append(f"{kind}: {said} (python -m soak.fuzz {number} {seed} --only {at})")
    lines = [f"{sum(counted.values()):,} inputs, seed {seed}, {time.monotonic() - began:.0f} s:", ""]
    lines += [f"- {count:,} {kind}" for kind, count in counted.items()]
    return Part("Damaged and hostile input", tuple(lines), tuple(faults))


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Nothing is printed, a fault is raised and not said, and a hang ends."""

    def late(*_: object) -> None:
        raise HangError(f"more than {LIMIT} s")

    before, debug = signal.signal(signal.SIGALRM, late), os.environ.get("STUCK_RANKS_DEBUG")
    os.environ["STUCK_RANKS_DEBUG"] = "1"
    signal.alarm(LIMIT)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                yield
            except SystemExit as end:
                if end.code:
                    raise RuntimeError(f"exit code {end.code}") from None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        if debug is None:
            del os.environ["STUCK_RANKS_DEBUG"]


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("number", type=int, nargs="?", default=NUMBER)
    asked.add_argument("seed", type=int, nargs="?", default=SEED)
    asked.add_argument("--only", type=int)
    given = asked.parse_args()
    part = measure(given.number, given.seed, given.only)
    print("\n".join((*part.lines, *part.faults)))
    sys.exit(bool(part.faults))

"""A small lab of every kind of entry, for tests that need one."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from helpers.labs.declaration import LabFile
from helpers.labs.lab import Lab
from helpers.labs.toml_file import convert

GOOD: dict[str, Any] = {
    "title": "A lab",
    "place": 9,
    "minutes": 5,
    "needs": "nothing",
    "ranks": 2,
    "max_seconds": 30,
    "environment": {"CACHE": "{folder}/cache"},
    "hints": ["look here"],
    "references": ["https://example.org"],
    "programs": {
        "broken": {"file": "broken.py", "text": "fails"},
        "fixed": {"file": "fixed.py", "text": "works"},
        "alone": {"file": "fixed.py", "text": "has no knob", "knobs": []},
    },
    "knobs": {
        "launcher": {
            "label": "Started with",
            "default": "python",
            "values": {
                "python": {"launcher": ["python"]},
                "torchrun": {"launcher": ["torchrun", "--standalone"], "text": "by torchrun"},
            },
        },
        "method": {
            "label": "Method",
            "values": {
                "spawn": {"arguments": ["--method", "spawn"]},
                "fork": {"arguments": ["--method", "fork"]},
            },
            "default": "spawn",
        },
        "mode": {
            "label": "Mode",
            "default": "plain",
            "values": {"plain": {}, "lazy": {"environment": {"LAZY": "1"}, "arguments": ["-l"]}},
        },
        "hardware": {
            "label": "Hardware",
            "default": "best",
            "values": {
                "cpu": {},
                "one-gpu": {"needs": ["one-gpu"], "arguments": ["-g"], "ranks": 1},
                "multi-gpu": {"needs": ["gpu-per-rank", "compiler"], "arguments": ["-g"]},
            },
        },
    },
    "refused": [{"knobs": {"method": "fork", "hardware": ["multi-gpu"]}, "why": "CUDA does not fork."}],
    "expected": [
        {
            "program": "broken",
            "knobs": {"method": "spawn"},
            "outcome": "hang",
            "cause": "missing-rank",
            "culprits": [1],
        },
        {
            "program": "broken",
            "knobs": {"method": ["fork"]},
            "outcome": "ok",
            "cause": "none",
            "culprits": [],
        },
        {"program": "fixed", "outcome": "ok", "cause": "none", "culprits": []},
        {"program": "alone", "outcome": "ok", "cause": "none", "culprits": []},
    ],
    "results": {
        "environment": "RESULTS_DIR",
        "file": "result-rank{rank}.json",
        "equal": ["loss"],
        "finite": ["loss"],
    },
    "predict": {
        "question": "Who?",
        "field": "culprits",
        "explanation": "Because.",
        "answers": [{"text": "rank 0", "value": [0]}, {"text": "rank 1", "value": [1]}],
    },
    "by_hand": {
        "program": "broken",
        "knobs": {"mode": "lazy"},
        "question": "Who is `odd`?",
        "rank": 1,
        "calls": ["barrier", "Model"],
        "lines": ["broken.py:1", "model.py:7"],
        "explanation": "It never leaves.",
    },
    "quiz": [
        {
            "kind": "choice",
            "question": "Why?",
            "answers": ["so", "not so"],
            "right": "not so",
            "explanation": "No.",
            "wrong": ["If so, it would end."],
        },
        {
            "kind": "number",
            "question": "How many?",
            "least": 2,
            "explanation": "Two.",
            "otherwise": "Count.",
        },
    ],
    "document": {
        "title": "Titel",
        "translated": "Title",
        "language": "German",
        "published": "2025",
    },
    "claims": [{"claim": "It is so.", "verdict": "refuted here", "shown_by": "a run"}],
    "turns": {
        "mine": {
            "file": "your_turn.py",
            "copy_of": "broken",
            "solution": "fixed",
            "task": "Mend it.",
        }
    },
}


def write_programs(place: Path) -> Path:
    """A folder of that lab inside `place`, with its programs."""
    folder = place / "07_example"
    folder.mkdir()
    (folder / "broken.py").write_text("print('broken')\n")
    (folder / "fixed.py").write_text("print('fixed')\n")
    return folder


def example(folder: Path, raw: dict[str, Any] = GOOD) -> Lab:
    """The lab in a folder, as a `lab.toml` with that content declares it."""
    return Lab(folder, convert(raw, LabFile, "lab.toml"))


def changed(path: str, value: Any) -> dict[str, Any]:
    """GOOD with another value at a path of keys; `None` removes the key."""
    raw = copy.deepcopy(GOOD)
    *above, last = path.split("/")
    place: Any = raw
    for key in above:
        place = place[int(key) if isinstance(place, list) else key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return raw

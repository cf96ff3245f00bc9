"""How long it takes to look for secrets in a text, and how that grows where it is made to take long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count

from helpers.model.redaction import redacted, redacted_source

ROUNDS = 3
SHORT, LONG = 50_000, 200_000
"""Characters of the two texts that are compared."""

LINE = "[rank 3] epoch 7 step 1200 loss 0.6931 lr 1e-4 tokens/s 51234 grad_norm=0.87 mem 71.2 GB\n"

HOSTILE = (
    '\\"',
    "a",
    "=",
    ":",
    "/",
    "-",
    "A_",
    "&",
    "-a",
    "://",
    "eyJ",
    "sk-",
    "/:@",
    "token=",
    "token=(",
    "token='",
    "'",
    "x:y@",
)
"""What a text consists of that keeps patterns busy."""


def redaction() -> Iterator[str]:
    """The time for ordinary lines, and the largest growth among hostile texts."""
    yield "| function | a line of a log | 200,000 hostile characters | four times the length takes |"
    yield "|---|---|---|---|"
    numbers = count()
    for function in (redacted, redacted_source):
        usual = _seconds(lambda: [function(f"{next(numbers)} {LINE}") for _ in range(1000)])  # noqa: B023
        worst, growth = 0.0, 0.0
        for part in HOSTILE:
            short, long = (
                _seconds(lambda: function(part * (size // len(part))))  # noqa: B023
                for size in (SHORT, LONG)
            )
            worst, growth = max(worst, long), max(growth, long / short)
        yield (
            f"| `{function.__name__}` | {usual * 1000:.0f} us | at most {worst * 1000:.0f} ms "
            f"| at most {growth:.1f} times as long |"
        )
    yield ""
    yield f"Processor time, the least of {ROUNDS}; of lines that have not come before."


def _seconds(work: Callable[[], object]) -> float:
    spent = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent)

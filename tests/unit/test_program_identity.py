"""A source and an expression -> what it is on a rank, where that rank's number alone tells it."""

from __future__ import annotations

import ast
import textwrap

import pytest

from helpers.program.condition import truth
from helpers.program.identity import of_rank, says_rank
from helpers.program.syntax import parsed

CASES = [
    ("a function of torch's", "", "dist.get_rank() == 0", (True, False)),
    ("the same, imported by its name", "", "get_rank() == 0", (True, False)),
    ("the environment", "", 'os.environ["RANK"] == "0"', (True, False)),
    ("the environment, as a number", "", 'int(os.environ.get("RANK", 0)) == 0', (True, False)),
    ("the rank on its node", "", 'os.environ["LOCAL_RANK"] == "0"', None),
    ("what the environment has told", 'RANK = int(os.getenv("RANK"))', "RANK != 0", (False, True)),
    ("a flag", "rank = dist.get_rank()\nmain = rank == 0", "not main", (False, True)),
    (
        "a flag that is always true without a process group",
        "if ddp:\n    main = int(os.environ['RANK']) == 0\nelse:\n    main = True",
        "main",
        (True, False),
    ),
    (
        "a function of the program's",
        'def is_main():\n    """Whether to write."""\n    return dist.get_rank() == 0',
        "is_main() and due",
        (None, False),
    ),
    (
        "a property, of an argument",
        """
        class Saver:
            def __init__(self, rank):
                self.number = rank
            @property
            def writes(self):
                return self.number == 0
        rank, size = dist.get_rank(), 2
        """,
        "self.writes",
        (True, False),
    ),
    ("an argument of the command line", "args = parser.parse_args()", "args.rank == 0", (True, False)),
    ("a part of a configuration", "", "config['rank'] == 0", (True, False)),
    ("a function that does more", "def main():\n    log()\n    return get_rank() == 0", "main()", None),
    ("a function of an argument", "def main(of):\n    return of == 0", "main()", None),
    ("a loop over the ranks", "for rank in range(size):\n    PLACE", "rank == 0", None),
    (
        "a loop in another function",
        "def all():\n    for rank in range(size):\n        print(rank)\nrank = dist.get_rank()",
        "rank == 0",
        (True, False),
    ),
    ("what several set to different things", "n = get_rank()\nn = get_rank() + 1", "n == 1", None),
    ("the rank of a matrix", "rank = 8", "rank == 0", None),
    ("what is no rank at all", "step = 0", "step == 0", None),
    ("what is set from itself", "self.a = b\nb = self.a", "self.a == 0", None),
]


@pytest.mark.parametrize(
    ("text", "condition", "holds"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_a_condition_is_on_each_rank(
    text: str, condition: str, holds: tuple[bool | None, bool | None] | None
) -> None:
    """Of the last line of a source, or of its line `PLACE`."""
    text = textwrap.dedent(text)
    line = f"if {condition}: pass"
    text = text.replace("PLACE", line) if "PLACE" in text else f"{text}\n{line}\n"
    tree = parsed(text)
    assert tree is not None
    test = next(node.test for node in reversed([*ast.walk(tree)]) if isinstance(node, ast.If))
    seen = tuple(truth(test, of_rank(test, rank, text)) for rank in (0, 1))
    assert seen == (holds or (None, None))


SAID = [
    ("", "rank", True),
    ("", "trainer.is_global_zero", True),
    ("", "os.environ['LOCAL_RANK']", True),
    ("writes = local_rank == 0 and enabled", "writes", True),
    ("def writes():\n    return self.rank == 0", "writes()", True),
    ("seed = base + rank", "seed", False),
    ("shard = load(rank)", "shard", False),
    ("role = 'a' if rank else 'b'", "role", False),
    ("record = RECORDS[rank]", "record", False),
    ("a = b\nb = a", "a", False),
    ("", "frank", False),
]


@pytest.mark.parametrize(
    ("text", "name", "says"), SAID, ids=[f"{name} {text}" for text, name, _ in SAID]
)
def test_which_names_say_which_rank_it_is(text: str, name: str, says: bool) -> None:
    assert says_rank(name, text) is says

"""The words of the command line: verbs, options, and what is wrong with them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn


class UsageError(Exception):
    """The command line cannot be carried out; the text says why in one sentence."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The verb and its options; `command` is what stands after `--`, which is never parsed.

    Raises:
        UsageError: they cannot be understood.
    """
    given, command = list(words), list[str]()
    if "--" in given:
        at = given.index("--")
        given, command = given[:at], given[at + 1 :]
    return _parser().parse_args(given, argparse.Namespace(command=command))


def _parser() -> _Parser:
    parser = _Parser(prog="stuck-ranks", description="Say which rank, which call, which line, why.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    diagnose = verbs.add_parser(
        "diagnose",
        help="run a command and say why it stops",
        usage="stuck-ranks diagnose [options] -- COMMAND [ARG ...]",
    )
    _add_reports(diagnose)
    diagnose.add_argument("--max-seconds", type=_positive, metavar="N", help="end the job after N s")
    diagnose.add_argument(
        "--patience",
        type=_positive,
        default=30.0,
        metavar="S",
        help="seconds without CPU or movement after which a rank is suspect (30)",
    )
    diagnose.add_argument("--stop-on-suspicion", action="store_true", help="end on a suspicion")
    diagnose.add_argument("--record", metavar="FILE", help="write every look, for `replay`")
    diagnose.add_argument(
        "--keep-running", action="store_true", help="let the job go on after the verdict"
    )
    attach = verbs.add_parser("attach", help="say why a running job stands still; leave it as it is")
    attach.add_argument("pid", type=_pid, help="its launcher, or any of its ranks")
    _add_reports(attach)
    attach.add_argument(
        "--patience",
        type=_positive,
        default=10.0,
        metavar="S",
        help="seconds without CPU or movement after which a rank is suspect (10)",
    )
    verbs.add_parser("check", help="what is there on this machine, and what runs how")
    lab = verbs.add_parser("lab", help="run a program of a lab under the instrument")
    lab.add_argument("name", nargs="?", help="05_spawn_ports, or 05")
    lab.add_argument("--program", help="one of the lab's programs (broken)")
    lab.add_argument("--knob", action="append", default=[], metavar="K=V", help="turn a knob")
    lab.add_argument(
        "--all",
        action="store_true",
        help="run every program of the lab, or of all labs, with every combination of its knobs, and "
        "compare what comes with what lab.toml expects",
    )
    replay = verbs.add_parser("replay", help="the report of a recorded run")
    replay.add_argument("file")
    _add_page(replay)
    explain = verbs.add_parser("explain", help="what a cause is, and what to do")
    explain.add_argument("cause")
    score = verbs.add_parser("score", help="run a collection of jobs and count what is right")
    score.add_argument("folder", metavar="DIR", help="a folder with a jobs.toml, such as tests/jobs")
    score.add_argument("--jobs", metavar="A,B", help="only these jobs")
    score.add_argument("--repeat", type=_count, default=1, metavar="N", help="run each job N times")
    score.add_argument(
        "--controls", type=_count, default=0, metavar="N", help="repeat controls up to N runs"
    )
    score.add_argument("--at-once", type=_count, default=1, metavar="N", help="run N jobs at a time")
    score.add_argument("--record", metavar="DIR", help="write a recording of each job there")
    score.add_argument("--json", metavar="FILE", help="write the result as JSON, too")
    score.add_argument("--markdown", metavar="FILE", help="write the result as a page, too")
    refresh = verbs.add_parser("refresh", help="run notebooks and keep their new outputs")
    refresh.add_argument("notebooks", nargs="*")
    return parser


def _add_reports(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--json", metavar="FILE", help="write the report as JSON; - is stdout")
    _add_page(verb)


def _add_page(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--html", metavar="FILE", help="write the report as a page with its picture")


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not more than 0")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def _pid(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no process id")
    return int(text)


def knob(word: str) -> tuple[str, str]:
    """Name and value of a `--knob`.

    Raises:
        UsageError: it is no NAME=VALUE.
    """
    name, equals, value = word.partition("=")
    if not equals:
        raise UsageError(f"--knob takes NAME=VALUE, not {word!r}")
    return name.replace("-", "_"), value

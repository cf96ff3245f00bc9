"""Output of several processes as one stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.cli.line_stream import LONGEST, QUIET, LineStream

ASK = b"name? "


def written(*pieces: tuple[str, bytes] | float, end: bool = True) -> bytes:
    """What is written of (name, bytes); a number lets that many seconds pass."""
    stream, now, found = LineStream(), 0.0, b""
    for piece in pieces:
        if isinstance(piece, tuple):
            found += stream.add(ord(piece[0]), *piece, now)
        else:
            now += piece
            found += stream.quiet(now)
    return found + (stream.end() if end else b"")


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([("a", b"1\n2\n"), ("b", b"3\n")], b"[a] 1\n[a] 2\n[b] 3\n"),
        ([("a", b"1"), ("b", b"2\n"), ("a", b"3\n")], b"[b] 2\n[a] 13\n"),
        ([("a", b"1\n\n2\n")], b"[a] 1\n[a] \n[a] 2\n"),
        ([("a", b"\xff\xfe\x00\n")], b"[a] \xff\xfe\x00\n"),
        ([("a", b"10%\r20%\r"), ("a", b"30%\n")], b"[a] 10%\r20%\r30%\n"),
        ([("a", ASK), QUIET, ("a", b"hello\n")], b"[a] name? hello\n"),
        ([("a", ASK), QUIET, ("b", b"1\n"), ("a", b"hello\n")], b"[a] name? \n[b] 1\n[a] hello\n"),
        ([("a", ASK), QUIET, ("b", ASK), QUIET], b"[a] name? \n[b] name? \n"),
        ([("a", b"no end")], b"[a] no end\n"),
        ([], b""),
    ],
)
def test_lines_and_names(pieces: list[tuple[str, bytes] | float], text: bytes) -> None:
    assert written(*pieces) == text


def test_of_a_progress_bar_a_terminal_gets_what_it_shows_last() -> None:
    stream = LineStream(newest=True)
    shown = stream.add(1, "a", b"\r10%\r20%\nok\n30%\r40%\r", 0.0) + stream.quiet(QUIET)
    assert shown == b"[a] 20%\n[a] ok\n[a] 40%"


def test_a_prompt_is_shown_once_its_process_is_quiet_and_not_before() -> None:
    assert written(("a", ASK), QUIET / 2, end=False) == b""
    assert written(("a", ASK), QUIET / 2, ("a", b"x"), QUIET / 2, end=False) == b""
    assert written(("a", ASK), QUIET, end=False) == b"[a] " + ASK


def test_a_line_that_never_ends_is_not_kept_back() -> None:
    assert written(*[("a", b"x" * LONGEST)] * 3, end=False) == b"[a] " + b"x" * 3 * LONGEST


def test_a_line_of_our_own_does_not_go_into_one_of_the_job() -> None:
    stream = LineStream()
    stream.add(1, "a", ASK, 0.0)
    assert stream.quiet(QUIET) + stream.note("note") + stream.add(1, "a", b"x\n", 1.0) == (
        b"[a] name? \nnote\n[a] x\n"
    )


def test_processes_of_one_name_do_not_write_into_each_other_s_lines() -> None:
    stream = LineStream()
    pieces = [(1, b"one "), (2, b"two "), (1, b"of one\n"), (2, b"of two\n")]
    shown = b"".join(stream.add(pid, "job child", data, 0.0) for pid, data in pieces)
    assert shown == b"[job child] one of one\n[job child] two of two\n"


def test_a_person_s_answer_ends_the_line() -> None:
    stream = LineStream()
    stream.add(1, "a", ASK, 0.0)
    assert (stream.unfinished(), stream.quiet(QUIET)) == ([("a", ASK)], b"[a] name? ")
    stream.answered()
    assert (stream.unfinished(), stream.add(1, "a", b"hello\n", 1.0)) == ([], b"[a] hello\n")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.binary(max_size=5)) | st.just(QUIET)))
def test_no_byte_is_lost_or_moved(pieces: list[tuple[str, bytes] | float]) -> None:
    """Of each process: its bytes but for the line ends, which a stream may add."""
    pairs = [piece for piece in pieces if isinstance(piece, tuple)]
    clean = [(name, data.replace(b"[", b"(")) for name, data in pairs]
    found = written(*(p if isinstance(p, float) else (p[0], p[1].replace(b"[", b"(")) for p in pieces))
    for name in "ab":
        lines = [line[4:] for line in found.split(b"\n") if line.startswith(f"[{name}]".encode())]
        text = b"".join(data for owner, data in clean if owner == name)
        assert b"".join(lines) == text.replace(b"\n", b"")

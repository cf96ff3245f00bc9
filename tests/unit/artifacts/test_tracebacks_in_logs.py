"""Tracebacks in logs: woven with the lines of others, broken, quoted, cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.artifacts.artifacts import read
from helpers.model.facts import Verdict
from helpers.session import report_of_artifacts

HEAD = 'Traceback (most recent call last):\n  File "/app/train.py", line 88, in <module>\n'
FRAME = '  File "/app/data.py", line 9, in batch\n'
CODE = "    return rows[index]\n"
CARETS = "           ~~~~^^^^^^^\n"
KEY = "KeyError: 3\n"


def said(rank: int, text: str) -> str:
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


def judged(folder: Path, text: str) -> Verdict:
    (folder / "job.log").write_text(text)
    return report_of_artifacts(read([str(folder)]))[0].verdict


WOVEN = {
    "before the code": HEAD + FRAME + "using 2 GPUs\n" + CODE + KEY,
    "before a frame": HEAD + "using 2 GPUs\n" + FRAME + CODE + KEY,
    "before the exception": HEAD + FRAME + CODE + "using 2 GPUs\n" + KEY,
    "of the form of an exception": HEAD + FRAME + "Epoch: 3\n" + CODE + KEY,
    "of the form of an exception, at the end": HEAD + FRAME + CODE + "Epoch: 3\n" + KEY,
    "and another traceback after it": HEAD + FRAME + "epoch 1\n" + CODE + KEY + HEAD + CODE,
    "work after it": HEAD + FRAME + "step 1\nstep 2\nstep 3\nstep 4\n" + CODE + KEY,
    "a file name that is broken": HEAD + FRAME.replace("data.py", "da\nta.py") + CODE + KEY,
    "no first line": FRAME + "using 2 GPUs\n" + CODE + KEY,
}


@pytest.mark.parametrize("case", WOVEN)
def test_the_line_of_another_process_ends_no_traceback(tmp_path: Path, case: str) -> None:
    verdict = judged(tmp_path, WOVEN[case])
    assert (verdict.outcome, verdict.cause) == ("error", "error")
    assert "KeyError: 3" in verdict.summary
    assert "data.py:9" in verdict.summary
    assert verdict.evidence[-1].endswith(": KeyError: 3")


BARE = {
    "below a frame": FRAME + "AssertionError\n",
    "below code": CODE + "AssertionError\n",
    "below markers": CARETS + "AssertionError\n",
}


@pytest.mark.parametrize("case", BARE)
def test_an_exception_without_a_message_ends_its_rank(tmp_path: Path, case: str) -> None:
    verdict = judged(tmp_path, said(1, BARE[case]))
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("error", "error", (1,))
    assert "AssertionError" in verdict.summary


NO_EXCEPTION = {
    "a name on its own": "ValueError\n",
    "code alone": CODE + "AssertionErrors are counted\n",
    "a list": "the checks:\n    - types\nError\n",
}


@pytest.mark.parametrize("case", NO_EXCEPTION)
def test_a_word_is_no_exception(tmp_path: Path, case: str) -> None:
    assert judged(tmp_path, said(1, NO_EXCEPTION[case])).cause != "error"


FAILED = (
    "E0213 12:00:00.1 87 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) "
    "local_rank: 0 (pid: 876) of binary: python\n"
)
AGENT = (
    "Traceback (most recent call last):\n"
    '  File "/opt/venv/bin/torchrun", line 8, in <module>\n'
    "    sys.exit(main())\n"
    '  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/run.py", line 901, in main\n'
    "    run(args)\n"
)
CLOSED = "torch.distributed.elastic.rendezvous.api.RendezvousClosedError\n"
LAUNCHERS = {
    "cut off": FAILED + AGENT,
    "of the rendezvous": FAILED + AGENT + CLOSED,
    "of the rank": FAILED
    + AGENT
    + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n",
    "after a restart": FAILED
    + "[default] Worker group FAILED. 3/3 attempts left; will restart worker group\n"
    + AGENT,
}


@pytest.mark.parametrize("case", LAUNCHERS)
def test_what_a_launcher_raises_is_no_ranks(tmp_path: Path, case: str) -> None:
    verdict = judged(tmp_path, LAUNCHERS[case])
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("error", "error", (0,))
    assert verdict.where is None
    assert verdict.summary == "Rank 0 raised an exception that is not in what was read."


def test_a_launcher_alone_is_no_rank(tmp_path: Path) -> None:
    verdict = judged(tmp_path, AGENT + CLOSED)
    assert (verdict.outcome, verdict.culprits, verdict.where) == ("error", (), None)


def test_a_rank_that_fails_before_its_launcher_has_its_own_exception(tmp_path: Path) -> None:
    verdict = judged(tmp_path, HEAD + FRAME + CODE + KEY + FAILED + AGENT + CLOSED)
    assert "KeyError: 3" in verdict.summary and "data.py:9" in verdict.summary


CUT = said(2, HEAD + FRAME + CODE)
TWICE = (
    "Parameter at index 3 with name layer.0.weight has been marked as ready twice. This means that x\n"
)


def test_a_traceback_that_is_cut_off_accuses_nobody(tmp_path: Path) -> None:
    verdict = judged(tmp_path, CUT)
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("error", "unknown", ())


def test_the_message_of_another_rank_counts_before_a_traceback_without_an_end(tmp_path: Path) -> None:
    verdict = judged(tmp_path, said(1, TWICE) + CUT)
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("error", "error", (1,))


def test_the_message_before_a_traceback_is_told(tmp_path: Path) -> None:
    label = "(VllmWorkerProcess pid=73) ERROR 06-13 01:30:49 multiproc_worker_utils.py:225] "
    head = "Exception in worker VllmWorkerProcess while processing method start: Invalid device, "
    lines = (head + HEAD + FRAME).splitlines()
    verdict = judged(tmp_path, "".join(f"{label}{line}\n" for line in lines))
    assert "Invalid device" in verdict.summary and "cut off" not in verdict.summary
    assert "Invalid device" in verdict.evidence[0]


STALLED = "[1,0]<stderr>:Stalled ranks:\n\n[1,0]<stderr>:0: [Allreduce][1,0]<stderr>:\n"
PASTED = {
    "bold": HEAD + FRAME + CODE + "**KeyError: 3**\n",
    "ticks": "".join(f" `{line}`\n" for line in (HEAD + FRAME + CODE + KEY).splitlines()),
    "a tick before and behind all of it": f"`{HEAD}{FRAME}{CODE}{KEY.rstrip()}`\n",
    "quoted": "".join(f"> {line}\n" for line in (HEAD + FRAME + CODE + KEY).splitlines()),
}


@pytest.mark.parametrize("case", PASTED)
def test_markdown_is_no_part_of_a_line(tmp_path: Path, case: str) -> None:
    verdict = judged(tmp_path, PASTED[case])
    assert verdict.cause == "error"
    assert verdict.summary == "A process raised KeyError: 3 at /app/data.py:9."


def test_padding_makes_two_lines_one(tmp_path: Path) -> None:
    at = "2026-11-23 12:00:02,477 - trainer - INFO - [rank3]: "
    joined = f"{at}{HEAD.splitlines()[0]}{' ' * 30}{at}{FRAME.rstrip()}\n{at}{CODE.rstrip()}   {at}{KEY}"
    verdict = judged(tmp_path, joined)
    assert verdict.culprits == (3,)
    assert "KeyError: 3 at /app/data.py:9" in verdict.summary


@pytest.mark.parametrize("before", ["", "2026-11-23 12:00:02 UTC master.0 -- "])
def test_mpirun_labels_every_piece_that_is_written(tmp_path: Path, before: str) -> None:
    text = "".join(f"{before if line else ''}{line}\n" for line in STALLED.splitlines())
    assert judged(tmp_path, text).culprits == (0,)


LATE = (
    "[rank2]:[E1212 12:00:00.1 ProcessGroupNCCL.cpp:1515] [PG 0 (default_pg) Rank 2] Process group "
    "watchdog thread terminated with exception: [Rank 2] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1890, OpType=ALLGATHER, NumelIn=1, NumelOut=4, Timeout(ms)=1800000) ran for "
    "1800022 milliseconds before timing out.\n"
)


@pytest.mark.parametrize("word", ["WorkNCCL(", "NCCL(", "OpType", "Timeout(", "ran for", "022 milli"])
def test_a_watchdogs_line_that_is_broken_is_one(tmp_path: Path, word: str) -> None:
    verdict = judged(tmp_path, LATE.replace(word, "\n" + word))
    assert verdict.outcome == "hang"
    assert "all_gather #1890" in verdict.summary


def test_a_broken_line_does_not_go_on_in_a_traceback(tmp_path: Path) -> None:
    broken = LATE.partition("before timing")[0].removeprefix("[rank2]:")
    assert judged(tmp_path, broken + "\n" + HEAD + FRAME + CODE + KEY).evidence


@pytest.mark.parametrize(
    "file",
    [
        "SOME_DIR/lib/python3.10/site-packages/torch/distributed/distributed_c10d.py",
        "site-packages/trainer/loop.py",
        "/src/pytorch/torch/distributed/distributed_c10d.py",
    ],
)
def test_library_code_is_known_by_its_path(tmp_path: Path, file: str) -> None:
    verdict = judged(tmp_path, HEAD + FRAME.replace("/app/data.py", file) + CODE + KEY)
    assert verdict.where is not None and verdict.where.file == "/app/train.py"


def test_a_folder_that_is_called_torch_is_the_users(tmp_path: Path) -> None:
    file = "/home/me/torch/distributed/train.py"
    verdict = judged(tmp_path, HEAD + FRAME.replace("/app/data.py", file) + CODE + KEY)
    assert verdict.where is not None and verdict.where.file == file


def test_a_long_line_is_quoted_around_what_tells(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "loading " * 100 + FAILED.replace("(exitcode: 1)", "(exitcode: -9)"))
    assert ":1: failed (exitcode: -9) local_rank: 0" in verdict.evidence[0]


def test_a_line_with_other_numbers_is_quoted_once(tmp_path: Path) -> None:
    lines = [f"Indexing.cu:1308: block: [{n},0], thread: [{n}] Assertion x failed.\n" for n in range(4)]
    frame = "frame #1: died() + 0x75 (0x7f in libc.so)\n"
    assert len(judged(tmp_path, frame + "".join(lines)).evidence) == 1

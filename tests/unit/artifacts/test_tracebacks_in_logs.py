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

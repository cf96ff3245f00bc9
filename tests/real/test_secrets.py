"""Secrets that a job has in all places, and every file and text that the tool makes of it."""

from __future__ import annotations

import gzip
import stat

import pytest
from command_line import Box

pytestmark = pytest.mark.real

SECRETS = {
    "argument": "zq-arg-1",
    "hydra": "zq-hydra-2",
    "environment": "zq-env-3",
    "url": "zq-url/4",
    "variable": "zq-var-5",
    "number": "48151623",
    "attribute": "zq-attr-7",
    "printed": "zq-print-8",
    "header": "zq-head-9",
    "literal": "zq-lit-10",
    "error": "zq-err-11",
    "masked": "zq-mask-12",
    "dsn": "zq-dsn-13",
    "condition": "zq-cond-14",
    "child": "zq-child-15",
}

PROGRAM = """
import os, sys, threading, time

class Config:
    auth = None

def main():
    api_key = "{variable}"
    pw = {number}
    config = Config()
    config.auth = "{attribute}"
    print("password: {printed}", flush=True)
    print("X-Api-Key: {header}", "host=h user=me password={dsn} dbname=x", flush=True)
    try:
        raise ValueError("invalid api_key '{masked}'")
    except ValueError:
        if len(sys.argv) > 1 and "fails" in sys.argv:
            raise RuntimeError("401 for https://me:{error}@host.org/x?token={error}")
        lock = threading.Lock()
        lock.acquire()
        if api_key != "{condition}" and pw and config.auth:
            lock.acquire(timeout=-1 if api_key else len("password={literal}"))

main()
"""


def everything(box: Box, done_out: str, done_err: str) -> dict[str, str]:
    found = {"report": done_out, "table": done_err}
    for path in (box.folder / "x.html", box.file, box.folder / "x.rec"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
        content = path.read_bytes()
        text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        found[path.name] = text.decode()
    return found


@pytest.mark.parametrize("end", ["hangs", pytest.param("fails", marks=pytest.mark.nightly)])
def test_no_secret_of_a_job_is_in_anything_that_is_made_of_it(box: Box, end: str) -> None:
    program = PROGRAM
    for name, value in SECRETS.items():
        program = program.replace(f"{{{name}}}", value)
    box.write("leaks.py", program)
    (box.folder / "x.rec").touch(mode=0o644)
    done = box.run(
        *("python", "leaks.py", end, "--token", SECRETS["argument"]),
        f"+wandb.api_key={SECRETS['hydra']}",
        f"redis://:{SECRETS['url']}@host/0",
        options=("--html", "x.html", "--record", "x.rec", "--patience", "1", "--max-seconds", "4"),
        env={"DB_PASSWORD": SECRETS["environment"], "NCCL_SOCKET_IFNAME": f"x,token={SECRETS['child']}"},
    )
    assert done.report["outcome"] == ("hang" if end == "hangs" else "error")
    printed = {SECRETS[name] for name in ("printed", "header", "dsn")}  # the user's own terminal has it
    texts = everything(box, done.out, done.err)
    assert all("leaks.py" in text for text in texts.values())
    for where, text in texts.items():
        passed = {
            name
            for name, value in SECRETS.items()
            if value in text and not (where == "table" and (value in printed or end == "fails"))
        }
        assert passed == set(), where

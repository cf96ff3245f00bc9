"""Text of a job that would be HTML, JavaScript, Markdown or a terminal's code is shown as text."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from browser_bench import (
    RUN_SECONDS,
    chromium,
    keep_picture,
    needs_browser,
    notebook_page,
    playwright,
    run_cell,
    serve,
    write_notebook,
)

EVIL = "<img src=x onerror='window.pwned=1'><script>window.pwned=1</script>[x](javascript:pwned) `$m$`"
SCRIPT = "<img src=x onerror=window.pwned=1>.py"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", SCRIPT)
SAYS = f"""evil = {EVIL!r}
print(evil, "\\x1b]0;title\\x07\\x1b]8;;http://x\\x1b\\\\link\\x1b[2J", flush=True)
"""
FAILS = f"""{SAYS}
if evil:
    raise RuntimeError(evil)
"""
HANGS = f"""import threading
import torch, torch.distributed as dist
{SAYS}
dist.init_process_group("gloo")
group = dist.new_group([0, 1], group_desc=evil)
threading.Thread(target=threading.Event().wait, name=evil, daemon=True).start()
mine = evil + str(dist.get_rank())
if mine.endswith("1"):
    dist.barrier(group)
dist.all_reduce(torch.ones(1), group=group)
"""
CELLS = (
    "from helpers.panel import open_artifacts, open_job, open_recording\njob = open_job()\njob",
    "result = await job.run({command!r})\nresult",
    "open_recording('run.rec')",
    "open_artifacts('left')",
)
PANELS = ("collective-mismatch", "collective-mismatch", "collective-mismatch", "error")
PARTS = "img:not([src^='data:']), [onerror], [href^='javascript:']"

pytestmark = [*needs_browser, pytest.mark.real, pytest.mark.nightly]


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[bytes]:
    """Diagnose a command, and keep its page and its recording."""
    asked = ("--html", str(folder / "page.html"), "--record", str(folder / "run.rec"))
    words = [sys.executable, "-m", "helpers", "diagnose", *asked, "--", *command]
    return subprocess.run(words, capture_output=True, cwd=folder)


def test_no_script_of_a_job_runs_on_its_page(tmp_path: Path) -> None:
    (tmp_path / SCRIPT).write_text(FAILS)
    done = run(tmp_path, sys.executable, SCRIPT)
    assert done.returncode == 1, done.stderr
    again = tmp_path / "again.html"
    words = [sys.executable, "-m", "helpers", "read", "--html", str(again), str(tmp_path / "run.rec")]
    read = subprocess.run(words, capture_output=True)
    assert read.returncode == 1, read.stderr
    for written in (done.stdout, read.stdout, read.stderr):
        assert b"\x1b]" not in written and b"\x1b[2J" not in written
    with chromium() as browser:
        page = browser.new_page()
        page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
        for file in (tmp_path / "page.html", again):
            page.goto(file.as_uri())
            text = page.locator("body").inner_text()
            assert "<img src=x onerror='window.pwned=1'><script>" in " ".join(text.split())
            assert page.evaluate("window.pwned") is None
            assert page.locator(PARTS).count() == 0


@pytest.mark.timeout(RUN_SECONDS * 3)
def test_no_script_of_a_job_runs_in_jupyterlab(tmp_path: Path) -> None:
    """Live, in the saved result of its cell, in a recording, and in what it has left."""
    folder = tmp_path / "notebooks" / "evil"
    command = shlex.join(TORCHRUN)
    write_notebook(folder / "evil.ipynb", *(cell.format(command=command) for cell in CELLS))
    (folder / "failing").mkdir()
    (folder / SCRIPT).write_text(HANGS)
    done = run(folder, *TORCHRUN)
    assert done.returncode == 2, done.stderr
    (folder / "left").mkdir()
    (folder / "failing" / SCRIPT).write_text(FAILS)
    with (folder / "left" / "all.log").open("wb") as log:
        subprocess.run(TORCHRUN, stdout=log, stderr=log, cwd=folder / "failing")
    expect = playwright.expect
    with serve(tmp_path) as jupyter, notebook_page(jupyter, "evil/evil.ipynb") as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
        for text in ("open_job()", "result", "open_recording('", "open_artifacts('"):
            cell = run_cell(page, text)
            expect(cell.locator(".jp-InputPrompt")).to_have_text("[*]:")
            expect(cell.locator(".jp-InputPrompt")).not_to_have_text("[*]:")
        panels = page.locator(".jp-OutputArea-output .stuck-ranks")
        expect(panels).to_have_count(len(PANELS))
        for panel, cause in zip(panels.all(), PANELS, strict=True):
            expect(panel).to_contain_text(cause)
            expect(panel).to_contain_text("onerror=")
            for tab in panel.get_by_role("tab").all():
                tab.click()
        keep_picture(page, "hostile")
        shown = page.locator(".jp-Notebook")
        assert shown.locator(f".jp-OutputArea :is({PARTS}), .jp-OutputArea script").count() == 0
        assert page.evaluate("window.pwned") is None

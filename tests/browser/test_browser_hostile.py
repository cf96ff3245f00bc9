"""Text of a job that would be HTML, JavaScript or Markdown is text on the page of its report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from browser_bench import CHROMIUM, needs_browser, playwright

EVIL = "<img src=x onerror='window.pwned=1'><script>window.pwned=1</script>[x](javascript:pwned) `$m$`"
JOB = f"""import sys
evil = {EVIL!r}
print(evil, "\\x1b]0;title\\x07\\x1b]8;;http://x\\x1b\\\\link\\x1b[2J", flush=True)
if evil:
    raise RuntimeError(evil)
"""

pytestmark = [*needs_browser, pytest.mark.real, pytest.mark.nightly]


def test_no_script_of_a_job_runs_on_its_page(tmp_path: Path) -> None:
    script = tmp_path / "<img src=x onerror=window.pwned=1>.py"
    script.write_text(JOB)
    page_file, recording = tmp_path / "page.html", tmp_path / "run.rec"
    words = [sys.executable, "-m", "helpers"]
    run = [*words, "diagnose", "--html", str(page_file), "--record", str(recording), "--"]
    done = subprocess.run([*run, sys.executable, str(script)], capture_output=True, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    again = tmp_path / "again.html"
    read = subprocess.run([*words, "read", "--html", str(again), str(recording)], capture_output=True)
    assert read.returncode == 1, read.stderr
    for written in (done.stdout, read.stdout, read.stderr):
        assert b"\x1b]" not in written and b"\x1b[2J" not in written
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
        for file in (page_file, again):
            page.goto(file.as_uri())
            text = page.locator("body").inner_text()
            assert "<img src=x onerror='window.pwned=1'><script>" in " ".join(text.split())
            assert page.evaluate("window.pwned") is None
            assert page.locator("img, [onerror], [href^='javascript:']").count() == 0
        browser.close()

"""A JupyterLab that serves a copy of the labs, and a Chromium that shows one of their notebooks."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from jupyter_client import BlockingKernelClient
from jupyter_env import dress, jupyter_env, transport
from repository import ARTIFACTS, NOTEBOOKS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
TOKEN = secrets.token_hex(16)
DOCKED = 1600
RUN_SECONDS = 180
"""Seconds that a run of a lab may take on a machine that does much else."""
playwright.expect.set_options(timeout=RUN_SECONDS * 1000)

NAME_OF_FOCUS = """() => {
    const element = document.activeElement;
    const label = element.labels?.[0] ?? element;
    return (element.getAttribute('aria-label') || label.textContent || element.tagName).trim();
}"""
"""The text that names the element with the focus."""

needs_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]

in_both_themes = pytest.mark.parametrize(
    "theme", ["Dark", pytest.param("Light", marks=pytest.mark.nightly)]
)


@dataclass(frozen=True)
class Jupyter:
    """A server of notebooks.

    Attributes:
        address: ends with a slash.
        notebooks: the copy that it serves.
        state: where it keeps how far a learner has come.
        runtime: where kernels leave their connection files.
    """

    address: str
    notebooks: Path
    state: Path
    runtime: Path

    def page(self, path: str) -> str:
        """The address at which JupyterLab opens one file."""
        return f"{self.address}lab/tree/{path}?reset&token={TOKEN}"

    @contextmanager
    def kernel(self, notebook: str) -> Iterator[None]:
        """A notebook's kernel, ready before a page opens the notebook, and ended after it."""
        wanted = {"path": notebook, "name": "", "type": "notebook", "kernel": {"name": "python3"}}
        session = _ask(f"{self.address}api/sessions", wanted)
        try:
            self._wait_for(session["kernel"]["id"])
            yield
        finally:
            _ask(f"{self.address}api/sessions/{session['id']}", method="DELETE")

    def _wait_for(self, kernel: str) -> None:
        client = BlockingKernelClient(connection_file=str(self.runtime / f"kernel-{kernel}.json"))
        client.load_connection_file()
        client.start_channels(hb=False)  # a busy machine misses heartbeats, which would count as dead
        try:
            client.wait_for_ready(timeout=RUN_SECONDS)
        finally:
            client.stop_channels()


@contextmanager
def serve(folder: Path, *labs: str) -> Iterator[Jupyter]:
    """Serve a copy of some labs from a folder that holds all that Jupyter writes, too."""
    notebooks, state = folder / "notebooks", folder / "state"
    for lab in labs:
        leave = shutil.ignore_patterns("your_turn*", ".*")
        shutil.copytree(NOTEBOOKS / lab, notebooks / lab, ignore=leave)
    env = jupyter_env(Path(sys.prefix), folder / "jupyter", os.environ)
    env |= {"STUCK_RANKS_NOTEBOOKS": str(notebooks), "STUCK_RANKS_STATE": str(state)}
    dress(Path(env["JUPYTER_CONFIG_DIR"]))
    settings = Path(env["JUPYTERLAB_SETTINGS_DIR"]) / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    token = f"--IdentityProvider.token={TOKEN}"
    flags = [token, "--ip=127.0.0.1", "--port=0", "--no-browser", "--allow-root"]
    with (
        TemporaryDirectory(dir="/tmp") as short,  # the path of a test's folder is too long
        (folder / "jupyterlab.log").open("wb") as log,
    ):
        runtime = Path(short)
        env["JUPYTER_RUNTIME_DIR"] = str(runtime)
        flags.append(f"--KernelManager.transport={transport(runtime)}")
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *flags, f"--ServerApp.root_dir={notebooks}"],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield Jupyter(_address(server, runtime), notebooks, state, runtime)
        finally:
            _end(server)


@contextmanager
def chromium() -> Iterator[playwright.Browser]:
    """Chromium without a window."""
    with playwright.sync_playwright() as driver:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@contextmanager
def notebook_page(
    jupyter: Jupyter, notebook: str, *, width: int = 1160, **context: Any
) -> Iterator[playwright.Page]:
    """A page of Chromium that shows a notebook whose kernel takes cells.

    Args:
        jupyter: serves the notebook.
        notebook: its path.
        width: of the window, in pixels; at `DOCKED` a panel opens beside its notebook.
        context: as for Playwright's `new_context`.
    """
    with jupyter.kernel(notebook), chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": 1500}, **context)
        page.set_default_timeout(RUN_SECONDS * 1000)
        go_to_notebook(page, jupyter.page(notebook))
        yield page


def go_to_notebook(page: playwright.Page, address: str) -> None:
    """Open a notebook; returns when its kernel has answered this page and is idle.

    A cell that runs before that can be dropped.
    """
    heard: list[str] = []

    def listen(socket: playwright.WebSocket) -> None:
        if "/api/kernels/" in socket.url:
            socket.on("framereceived", lambda _: heard.append(socket.url))

    page.on("websocket", listen)
    page.goto(address)
    deadline = time.monotonic() + RUN_SECONDS
    while not heard and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    assert heard, "the kernel has not answered"
    page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for()


def panel_on(page: playwright.Page) -> playwright.Locator:
    """The panel that a page shows, in a cell or beside the notebook."""
    return page.locator(".sr-panel")


def come_back(page: playwright.Page) -> None:
    """Wait until the learner's copy is open in a tab of its own, and go back to the notebook's."""
    playwright.expect(page.locator(".jp-FileEditor .cm-content")).to_be_focused()
    page.keyboard.press("Control+Shift+BracketLeft")


class Keys:
    """A learner without a mouse."""

    def __init__(self, page: playwright.Page) -> None:
        self.page = page

    def run_cell(self, text: str) -> playwright.Locator:
        """Go to the first code cell that contains a text, and run it; returns when it has ended.

        JupyterLab takes the focus back to the notebook at that moment: a key that is on its way to what
        the cell already shows would be lost.
        """
        cell = self.go_to(text)
        self.page.keyboard.press("Control+Enter")
        playwright.expect(cell.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"))
        return cell

    def go_to(self, text: str) -> playwright.Locator:
        """Go up or down to the first code cell that contains a text."""
        cell = self.page.locator(".jp-CodeCell", has_text=text).first
        self.page.keyboard.press("Escape")
        place = "cell => [...document.querySelectorAll('.jp-Notebook .jp-Cell')].indexOf(cell)"
        goal = cell.evaluate(place)
        for _ in range(60):
            now = self.page.locator(".jp-Cell.jp-mod-active").first.evaluate(place)
            if now == goal:
                return cell
            self.page.keyboard.press("ArrowDown" if now < goal else "ArrowUp")
        pytest.fail(f"no arrow comes to the cell with {text!r}; the focus is on {self.focused()}")

    def press(self, target: playwright.Locator, key: str = "Space") -> None:
        """Move on with Tab until the target has the focus, and press a key there."""
        self._reach(target)
        self.page.keyboard.press(key)

    def choose(self, answer: playwright.Locator) -> None:
        """Move on with Tab to the group of a radio button, and on with the arrows to the button."""
        group = answer.locator("xpath=ancestor::*[@role='radiogroup']")
        self._reach(group)
        self.page.keyboard.press("Space")
        for _ in range(group.get_by_role("radio").count()):
            if answer.is_checked():
                return
            self.page.keyboard.press("ArrowDown")
        pytest.fail(f"no arrow comes to {answer}")

    def focused(self) -> str:
        """The element that has the focus, in the words that a screen reader has for it."""
        return str(self.page.evaluate(NAME_OF_FOCUS))

    def _reach(self, target: playwright.Locator) -> None:
        target.wait_for()
        for _ in range(100):
            if target.evaluate("element => element.contains(document.activeElement)"):
                return
            self.page.keyboard.press("Tab")
        pytest.fail(f"Tab never comes to {target}; the focus is on {self.focused()}")


def run_cell(page: playwright.Page, text: str) -> playwright.Locator:
    """Run the first code cell that contains a text; returns the cell."""
    cell = page.locator(".jp-CodeCell", has_text=text).first
    cell.locator(".jp-InputPrompt").click()
    page.keyboard.press("Control+Enter")
    return cell


def save(page: playwright.Page, name: str) -> None:
    """Save the file in the active tab; returns when the server has it.

    A page that is left before that takes the save with it.
    """

    def saved(response: playwright.Response) -> bool:
        return response.request.method == "PUT" and f"/{name}" in response.url

    with page.expect_response(saved):
        page.keyboard.press("Control+S")


def violations(page: playwright.Page, part: str = ".stuck-ranks") -> list[str]:
    """What axe-core finds wrong with a part of the page, WCAG 2.2 AA, in words."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not there")
    # Without preloading: a page that is opened as a file may not read its stylesheet once more.
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"], "preload": False}
    found = axe.Axe().run(page, context={"include": [[part]]}, options=options).response["violations"]
    return [f"{v['id']}: {node['html']} {node['failureSummary']}" for v in found for node in v["nodes"]]


def write_notebook(path: Path, *sources: str) -> None:
    """A notebook of these code cells, in a folder of its own."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    kind = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**kind, "id": f"cell-{number}", "source": source} for number, source in enumerate(sources)]
    content = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content))


def choose_theme(folder: Path, name: str) -> None:
    """Make the JupyterLab of a folder open its next page in one of its themes, `Dark` or `Light`."""
    settings = folder / "jupyter" / "settings" / "@jupyterlab" / "apputils-extension"
    (settings / "themes.jupyterlab-settings").write_text(json.dumps({"theme": f"JupyterLab {name}"}))


def keep_picture(page: playwright.Page, name: str) -> None:
    """Keep what the page shows for people to look at."""
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png")


def _address(server: subprocess.Popen[bytes], runtime: Path) -> str:
    """Where the server answers; it tells the address before it listens."""
    told = runtime / f"jpserver-{server.pid}.json"
    deadline = time.monotonic() + RUN_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            address = str(json.loads(told.read_text())["url"])
            _ask(f"{address}api/status")
            return address
        except (OSError, ValueError):
            time.sleep(0.1)
    pytest.fail("JupyterLab did not start, see jupyterlab.log in the test's folder")


def _end(server: subprocess.Popen[bytes]) -> None:
    """SIGTERM makes the server stop its kernels; its process group is ours alone."""
    server.terminate()
    try:
        server.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _ask(url: str, body: object = None, *, method: str | None = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"token {TOKEN}"}
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=RUN_SECONDS) as answer:
        return dict(json.loads(answer.read() or "{}"))

"""A Jupyter server with one kernel that runs code, for a run whose owner is a kernel."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from jupyter_client import BlockingKernelClient

READY = 60.0
"""Seconds that a server or a kernel has to start."""


@contextmanager
def kernel(folder: Path, environment: Mapping[str, str], code: str) -> Iterator[psutil.Process]:
    """The kernel, when it has run the code; its parent is the server. Both are ended in the end."""
    token = secrets.token_hex(16)
    flags = [f"--IdentityProvider.token={token}", "--ip=127.0.0.1", "--port=0", "--no-browser"]
    folders = {
        f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("RUNTIME", "CONFIG", "DATA")
    }
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *flags, "--allow-root"],
            cwd=folder,
            env={**environment, **folders},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    one: psutil.Process | None = None
    try:
        runtime = folder / "runtime"
        until = time.monotonic() + READY
        id_ = _start(_address(server, runtime, until), token)
        one = _run(runtime / f"kernel-{id_}.json", code)
        yield one
    finally:
        server.kill()
        server.wait()
        if one is not None:
            with suppress(psutil.Error):
                one.kill()


def _address(server: subprocess.Popen[bytes], runtime: Path, until: float) -> str:
    while time.monotonic() < until and server.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            with suppress(ValueError, OSError):
                url = json.loads(file.read_text())["url"]
                urllib.request.urlopen(f"{url}api", timeout=5).close()
                return str(url)
        time.sleep(0.05)
    raise RuntimeError(f"no Jupyter server: {(runtime.parent / 'server.log').read_text()[-500:]}")


def _start(address: str, token: str) -> str:
    headers = {"Authorization": f"token {token}"}
    request = urllib.request.Request(
        f"{address}api/kernels", b'{"name": "python3"}', headers, method="POST"
    )
    with urllib.request.urlopen(request, timeout=READY) as answer:
        return str(json.load(answer)["id"])


def _run(connection: Path, code: str) -> psutil.Process:
    """Run the code to its end; the kernel's process. Raises RuntimeError with what went wrong."""
    said: list[str] = []

    def hear(message: Mapping[str, Any]) -> None:
        content = message["content"]
        said.append(content.get("text") or "\n".join(content.get("traceback", ())))

    client = BlockingKernelClient(connection_file=str(connection))
    client.load_connection_file()
    client.start_channels(hb=False)
    try:
        client.wait_for_ready(timeout=READY)
        code += "\nimport os; print('kernel', os.getpid())"
        answer = client.execute_interactive(code, timeout=READY, output_hook=hear)
    finally:
        client.stop_channels()
    if answer["content"]["status"] != "ok":
        raise RuntimeError("".join(said))
    return psutil.Process(int("".join(said).rpartition("kernel ")[2]))

"""A look into a real store."""

from __future__ import annotations

import os
import socketserver
import subprocess
import sys
import threading
import venv
from pathlib import Path

import psutil
import pytest
from torch.distributed import TCPStore
from waiting import until

from helpers.observe import store_probe
from helpers.observe.interpreter import Interpreter, with_torch
from helpers.observe.probe import FAILED, Probe

pytestmark = [pytest.mark.real, pytest.mark.nightly]


def looked_at(address: str, interpreter: Interpreter | None = None) -> dict[str, object]:
    probe = Probe(address, str(store_probe.__file__), interpreter or Interpreter())
    try:
        until(lambda: probe.result() is not None, 120)
        found = probe.result()
        assert found is not None
        return found
    finally:
        probe.close()


def test_all_keys_of_a_store_with_many_are_told() -> None:
    """A large job has an address of each rank in it: their names alone take more than a pipe holds."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    names = {f"default_pg/0//cpu//{rank:05}/{'address' * 8}" for rank in range(2_000)}
    for name in names:
        store.set(name, "x")
    found = looked_at(f"127.0.0.1:{store.port}")
    assert found["reachable"] is True
    keys = found["keys"]
    assert isinstance(keys, list) and names <= set(keys)


def test_where_no_store_is_nothing_is_found() -> None:
    found = looked_at("127.0.0.1:1")
    assert (found["reachable"], found["keys"]) == (False, [])
    assert found["problem"] == "refuses the connection: nobody listens there"


def test_a_python_without_torch_tells_that_somebody_answers(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    bare = Interpreter(str(tmp_path / "bare" / "bin" / "python"), {})
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    found = looked_at(f"127.0.0.1:{store.port}", bare)
    assert found == {"reachable": True, "problem": "", "keys": None}
    assert looked_at("127.0.0.1:1", bare)["problem"] == "refuses the connection: nobody listens there"


def test_where_the_python_of_the_job_cannot_be_started_ours_looks() -> None:
    gone = Interpreter("/nowhere/python", {})
    assert looked_at("127.0.0.1:1", gone)["problem"] == "refuses the connection: nobody listens there"


def test_a_look_that_breaks_off_is_not_taken_for_a_store_that_does_not_answer() -> None:
    assert looked_at("127.0.0.1:1", Interpreter("/bin/true")) is FAILED


def test_what_is_no_store_does_not_answer_as_one() -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), _HangsUp) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            found = looked_at(f"127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
    assert (found["reachable"], found["problem"]) == (False, "does not answer as a store")


class _HangsUp(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        """Read a little and close the connection."""
        self.request.recv(1)


def test_the_python_of_a_process_that_has_loaded_torch_is_taken() -> None:
    """Under the name that it was started by, since what that leads to has no torch."""
    program = "import sys; {}; print(flush=True); sys.stdin.read()"
    home = Path(sys.executable).parent
    started = [
        subprocess.Popen(
            ["python", "-c", program.format(first)],
            cwd="/",
            env={**os.environ, "PATH": str(home), "STUCK_RANKS_ID": "x"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for first in ("pass", "import torch")
    ]
    try:
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        without, has = (psutil.Process(process.pid) for process in started)
        found = with_torch([without, has])
        assert (found.path, found.owner) == (str(home / "python"), None)
        assert "STUCK_RANKS_ID" not in found.environment
        assert with_torch([without]) == Interpreter()
    finally:
        for process in started:
            process.communicate()

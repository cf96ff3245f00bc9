"""A notebook's test does not depend on ports that other tests bind meanwhile."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import nbval.kernel
import pytest


def test_nbval_reaches_its_kernels_by_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory(dir="/tmp") as runtime:  # elsewhere paths may be too long
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", runtime)
        manager, client = nbval.kernel.start_new_kernel(kernel_name=nbval.kernel.CURRENT_ENV_KERNEL_NAME)
        try:
            channels = [file.name[-1] for file in Path(runtime).iterdir() if file.is_socket()]
            assert sorted(channels) == ["1", "2", "3", "4", "5"]
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
        assert list(Path(runtime).iterdir()) == []

"""Names that come from a job: what they lead to is read, or is soon known not to answer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dead_server import Server, dead_server
from repository import ROOT
from waiting import until

from helpers.job_files import LARGEST, MOST, PATIENCE, ask, read, text
from helpers.model.frames import Frame
from helpers.observe import locks
from helpers.observe.pyspy_record import is_user
from helpers.report.source_lines import Sources

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="as Linux names devices")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "server"
    (folder / "package").mkdir(parents=True)
    for name in ("a.py", "b.py", "package/c.py"):
        (folder / name).write_text(f"# {name}\n")
    with dead_server(folder) as dead:
        yield dead


def refused(path: str) -> bool:
    """True for what is not read; a busy machine may take a while to say so."""
    try:
        read(path, patience=10.0)
    except TimeoutError:
        return False
    except OSError:
        return True
    return False


def fifo(path: Path) -> None:
    os.mkfifo(path)


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(5 << 30)


def loop(path: Path) -> None:
    path.symlink_to(path)


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def without_end(path: Path) -> None:
    """A regular file of the kernel's, of 0 bytes by its own account and with no end."""
    path.symlink_to("/proc/self/pagemap")


def terminal(path: Path) -> None:
    path.symlink_to("/dev/ptmx")


def nothing(path: Path) -> None:
    pass


@pytest.mark.parametrize(
    "make",
    [fifo, large, loop, zeros, without_end, terminal, nothing, Path.mkdir],
    ids=lambda make: make.__name__,
)
def test_what_is_no_file_of_a_fair_size_is_not_read(make: object, tmp_path: Path) -> None:
    assert callable(make)
    make(tmp_path / "name")
    assert refused(str(tmp_path / "name"))


@pytest.mark.parametrize("name", ["a\0b", "\ud800", ""])
def test_what_is_no_name_is_not_read(name: str) -> None:
    assert refused(name)


def test_a_text_is_read_whatever_its_letters_and_its_ends_of_lines(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_bytes(b"a = '\xe9'\r\nb = 1\r\n")
    found, changed = text(str(tmp_path / "old.py"))
    assert found == "a = '\ufffd'\nb = 1\n"
    assert changed == (tmp_path / "old.py").stat().st_mtime
    (tmp_path / "whole.py").write_bytes(b"x" * LARGEST)
    assert len(read(str(tmp_path / "whole.py"))[0]) == LARGEST


def test_a_writer_is_left_waiting_at_its_fifo(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with subprocess.Popen(
        [sys.executable, "-S", "-c", f"print(flush=True); open({str(path)!r}, 'w')"],
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        until(lambda: Path(f"/proc/{writer.pid}/wchan").read_text() in ("wait_for_partner", "fifo_open"))
        assert refused(str(path))
        assert writer.poll() is None
        writer.kill()


def test_a_file_that_is_a_fifo_once_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, whole = tmp_path / "a.py", os.open
    path.write_text("x = 1\n")

    def replaced(name: str, flags: int) -> int:
        path.unlink()
        os.mkfifo(path)
        return whole(name, flags)

    monkeypatch.setattr(os, "open", replaced)
    assert refused(str(path))


def test_a_dead_server_is_waited_for_once(server: Server, tmp_path: Path) -> None:
    names = ("a.py", "b.py", "package/c.py", "gone/d.py")
    begun = time.monotonic()
    for name in names * 10:
        with pytest.raises(TimeoutError):
            text(server.file(name))
    assert time.monotonic() - begun < 2 * PATIENCE
    assert server.asked == [server.folder], "one thread stands there, and no other is sent"
    (tmp_path / "beside.py").write_text("y = 2\n")
    assert text(str(tmp_path / "beside.py"))[0] == "y = 2\n"


def test_a_late_answer_is_taken(server: Server) -> None:
    with pytest.raises(TimeoutError):
        text(server.file("a.py"))
    server.come_back()
    asked = len(server.asked)
    assert text(server.file("a.py"))[0] == "# a.py\n"
    assert len(server.asked) == asked, "nobody has to ask again"
    assert text(server.file("b.py"))[0] == "# b.py\n"


def test_threads_that_are_left_behind_are_few(tmp_path: Path) -> None:
    with dead_server(tmp_path / "dead") as server:
        for number in range(3 * MOST):
            with pytest.raises(TimeoutError):
                ask(os.stat, f"{server.folder}{number}/a.py", patience=0.01)
        until(lambda: len(server.asked) >= MOST)
        assert len(server.asked) == MOST
        server.come_back()
        assert ask(os.stat, str(tmp_path)) == tmp_path.stat(), "they make room once they are back"


def test_a_process_ends_while_a_name_does_not_answer(tmp_path: Path) -> None:
    program = (
        "import os, threading\n"
        "from helpers.job_files import text\n"
        "os.stat = lambda path: threading.Event().wait()\n"
        "try:\n    text('/server/a.py')\n"
        "except TimeoutError:\n    print('silent')\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True, cwd=ROOT)
    assert done.stdout == "silent\n"


def test_a_line_is_shown_once_its_server_is_back(server: Server) -> None:
    sources = Sources(Path(server.folder))
    assert sources.line(Frame("a.py", 1, "f")) == sources.line(Frame("package/c.py", 1, "f")) == ""
    assert sources.lines() == {}
    server.come_back()
    assert sources.line(Frame("package/c.py", 1, "f")) == "# package/c.py"


def test_the_holder_of_a_lock_on_a_dead_server_is_not_known(server: Server) -> None:
    assert locks.holder_of_lock(server.file("lock"), os.getpid()) is None
    assert locks.holder("lock file", server.file("lock"), os.getpid()) is None
    assert locks.held_against(os.getpid()) == []
    assert len(server.asked) == 1


def test_a_file_whose_package_cannot_be_looked_at_is_the_user_s(server: Server) -> None:
    (Path(server.folder) / "torch").mkdir()
    (Path(server.folder) / "torch" / "__init__.py").touch()
    assert is_user(server.file("torch/a.py"), ())
    server.come_back()
    assert not is_user(server.file("torch/a.py"), ())

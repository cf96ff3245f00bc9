"""The process between the instrument and a job: it ends the whole job, whatever happens.

`helpers.launch.launch` starts it in a session of its own, as
`python -I -S guardian.py LIFELINE EVENTS FOLDER PARENT`. It needs the standard library only, and of
that little, because every run waits for it: with `json`, `signal` and `contextlib` it would take 14 ms
to start instead of 9.

LIFELINE is the read end of a pipe that only the parent writes to. Its first line is the job (see
`Guardian.start`). Whatever comes later means stop; so does the end of the pipe, which the kernel
delivers however the parent dies. EVENTS is the write end of a pipe to the parent, which gets one
dictionary a line (see `as_line`):

- `{"started": pid, "time": seconds since the epoch}` or `{"failed": sentence}`, always first;
- `{"reaped": pid, "status": status of waitpid}` for the command and for every orphan of the job;
- `{"empty": true}` after a stop, when no process of the job is left.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False  # `typing` would double the time that this program needs to start
if TYPE_CHECKING:
    from typing import Any

GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL, for the whole job together."""
TICK = 0.05
"""Seconds between two looks at the processes that a stop waits for, when none ends earlier."""
SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of linux/prctl.h: orphans below this process become its children."""


class Guardian:
    """One job, from its start until none of its processes is left.

    Attributes:
        stopping: True once the job has to end.
        abandoned: True once the parent is known to be gone.
    """

    def __init__(self, lifeline: int, events: int, parent: int) -> None:
        self.stopping = False
        self.abandoned = False
        self._lifeline = lifeline
        self._events = events
        self._backlog = b""
        self._full = False
        self._mark = b""
        self._group: str | None = None
        self._poller = select.poll()
        self._wake, wake = os.pipe()
        for end in (self._wake, wake, events):
            os.set_blocking(end, False)
        self._poller.register(self._wake, select.POLLIN)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # What the caller ignores (nohup) stays ignored, here and in the job, but for SIGINT:
            # a Jupyter kernel ignores it between two cells.
            if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        # A copy of the parent that it forked without exec holds the lifeline open: watch both.
        self._parent = _process_descriptor(parent)
        if self._parent is not None:
            self._poller.register(self._parent, select.POLLIN)
        if os.getppid() != parent:
            self._abandon()

    def run(self, folder: str) -> None:
        """Start the job that the lifeline describes and stay until it has to end."""
        line = b""
        while not line.endswith(b"\n") and not self.stopping:
            data = os.read(self._lifeline, 65536)
            line += data
            if not data:
                self._abandon()
        if not self.stopping:
            self._poller.register(self._lifeline, select.POLLIN)
            self.start(from_line(line), folder)
        while not self.stopping:
            self._wait()
            self._reap()

    def start(self, job: dict[str, Any], folder: str) -> None:
        """Start the command as a child of this process, in a process group of its own.

        Args:
            job: `path` of the program, `command` and `env` as bytes; `silent` (True for a standard
                input that never delivers); `mark`, the entry of `env` that every process of the run
                carries, in bytes; `group`, the control group to remove at the end, or None.
        """
        command, self._mark, self._group = job["command"], job["mark"], job["group"]
        try:
            log = os.open(f"{folder}/output/job.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            actions = [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
            if job["silent"]:
                # The write end stays open here for as long as the guardian lives.
                actions.append((os.POSIX_SPAWN_DUP2, os.pipe()[0], 0))
            pid = os.posix_spawn(
                job["path"],
                command,
                job["env"],
                file_actions=actions,
                setpgroup=0,
                setsigmask=(),
                setsigdef=(signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ),  # Python ignores two
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._report({"failed": f"{os.fsdecode(command[0])} cannot be started: {reason}"})
            self.stopping = True
        else:
            self._report({"started": pid, "time": time.time()})
        for descriptor in inheritable():  # the job's: who waits for their end waits for it alone
            os.close(descriptor)

    def end(self) -> None:
        """End every process of the job and report what became of them."""
        deadline = time.monotonic() + GRACE
        told: set[int] = set()
        while True:
            children = self._reap()
            members = below(os.getpid(), parents())
            if not told or not children:
                members |= carriers(self._mark)
            if not members and not children:
                break
            late = time.monotonic() >= deadline
            for pid in members if late else members - told:
                for number in (signal.SIGKILL,) if late else (signal.SIGCONT, signal.SIGTERM):
                    _send(pid, number)
            told |= members
            self._wait(TICK)
        self._remove_group()
        self._report({"empty": True})
        while self._backlog and not self.abandoned:
            self._wait()

    def _remove_group(self) -> None:
        """Remove the job's control group; the kernel may need a moment to find it empty."""
        deadline = time.monotonic() + GRACE
        while self._group and time.monotonic() < deadline:
            try:
                os.rmdir(self._group)
            except FileNotFoundError:
                return
            except OSError:
                self._wait(TICK)

    def _on_signal(self, *_: object) -> None:
        self.stopping = True

    def _abandon(self) -> None:
        self.abandoned = self.stopping = True

    def _wait(self, seconds: float | None = None) -> None:
        """Wait for a signal, the lifeline, the parent's end or room for events, and take it in."""
        for descriptor, _ in self._poller.poll(None if seconds is None else seconds * 1000):
            if descriptor == self._wake:
                os.read(self._wake, 4096)
            elif descriptor == self._events:
                self._flush()
            elif descriptor == self._lifeline and os.read(self._lifeline, 4096):
                self.stopping = True
            else:
                self._poller.unregister(descriptor)
                self._abandon()

    def _reap(self) -> bool:
        """Report every child that has ended. Returns whether any is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            self._report({"reaped": pid, "status": status})

    def _report(self, event: dict[str, Any]) -> None:
        self._backlog += as_line(event)
        self._flush()

    def _flush(self) -> None:
        """Write what the pipe takes now; the rest waits here, however long the parent sleeps."""
        try:
            while self._backlog:
                self._backlog = self._backlog[os.write(self._events, self._backlog) :]
        except BlockingIOError:
            self._poller.register(self._events, select.POLLOUT)
            self._full = True
            return
        except BrokenPipeError:
            self._backlog = b""
        if self._full:
            self._poller.unregister(self._events)
            self._full = False


def inheritable() -> list[int]:
    """The descriptors above 2 that this process was given to hand down; Python's own are none of them.

    `python <(...)`, a lock of the shell's, make's jobserver and the sockets of systemd are such.
    """
    found = []
    for name in os.listdir("/dev/fd") if os.path.isdir("/dev/fd") else ():
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            continue  # that of the listing
    return found


def as_line(value: dict[str, Any]) -> bytes:
    """A dictionary in one line, for a pipe whose other end runs the same Python (`marshal`)."""
    return marshal.dumps(value).hex().encode() + b"\n"


def from_line(line: bytes) -> dict[str, Any]:
    """The dictionary of a line; an empty one for a line without its end."""
    return dict(marshal.loads(bytes.fromhex(line.decode()))) if line.endswith(b"\n") else {}


def parents() -> dict[int, int]:
    """The parent of every process of this machine, by pid."""
    if not os.path.exists("/proc/self/stat"):
        return _parents_by_ps()
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
            if fields:
                found[int(name)] = int(fields[1])
    return found


def _parents_by_ps() -> dict[int, int]:
    import subprocess  # only without /proc (macOS)

    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return {int(pid): int(parent) for pid, parent in map(bytes.split, listing.stdout.splitlines())}


def below(root: int, parent_of: dict[int, int]) -> set[int]:
    """All descendants of `root` in a table made by `parents`."""
    children: dict[int, list[int]] = {}
    for pid, parent in parent_of.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    todo = [root]
    while todo:
        new = children.get(todo.pop(), [])
        found.update(new)
        todo += new
    return found


def carriers(mark: bytes) -> set[int]:
    """Processes whose environment at their start had the entry `mark`; none without /proc."""
    if not mark or not os.path.exists("/proc/self/environ"):
        return set()
    return {
        int(name)
        for name in os.listdir("/proc")
        if name.isdigit() and mark in _read(f"/proc/{name}/environ").split(b"\0")
    }


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:  # it has ended, or it belongs to someone else
        return b""


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return  # it has ended, or it runs as another user


def _process_descriptor(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # macOS, Linux before 5.3, or no such process
        return None


def _become_subreaper() -> None:
    try:
        import ctypes

        ctypes.CDLL(None).prctl(SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)
    except (ImportError, AttributeError, OSError):  # not Linux: orphans go to init
        pass


def main() -> None:
    """Guard one job, as the arguments say (see the top of this file)."""
    lifeline, events, parent = (int(sys.argv[i]) for i in (1, 2, 4))
    for descriptor in (lifeline, events):
        os.set_inheritable(descriptor, False)
    _become_subreaper()
    guardian = Guardian(lifeline, events, parent)
    try:
        guardian.run(sys.argv[3])
    finally:
        guardian.end()
        if guardian.abandoned:
            import shutil

            shutil.rmtree(sys.argv[3], ignore_errors=True)


if __name__ == "__main__":
    main()

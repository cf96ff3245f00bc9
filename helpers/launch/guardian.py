"""The process between the instrument and a job: it ends the whole job, whatever happens.

`helpers.launch.launch` starts it in a session of its own, with the arguments
`guardian.py LIFELINE EVENTS FOLDER PARENT`. It needs the standard library only, and of
that little, because every run waits for it: with `json`, `signal` and `contextlib` it would take 14 ms
to start instead of 9.

LIFELINE is the read end of a pipe that only the parent writes to, one dictionary a line (see
`as_line`). The first is the job (see `Guardian.start`). `{"signal": number, "received": time}` passes a
signal to the command's process group, and `{"stop": True, ...}` ends the job (see `Guardian.end`). So
does the end of the pipe, which the kernel delivers however the parent dies. EVENTS is the write end of
a pipe to the parent, in the same form:

- `{"started": pid, "time": seconds since the epoch}` or `{"failed": sentence}`, always first;
- `{"reaped": pid, "status": status of waitpid}` for the command and for every orphan of the job;
- `{"empty": true}` after a stop, when no process of the job is left that is to be ended.

No signal ends it: what comes from outside is the job's. It is the witness of whether everybody was
addressed, as Slurm and `kill -- -1` do: then the job has the signal already, and none is passed on.
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
    from collections.abc import Iterable
    from typing import Any

INTERRUPTED, TERMINATED = 0.5, 1.2
"""Seconds after the beginning of a stop at which processes that were sent SIGINT are sent SIGTERM, too,
and at which what is left is sent SIGKILL."""
WITNESSED, SAME = 0.05, 0.5
"""Seconds that this process waits for a signal which its parent has received, and by which it may have
been earlier than the parent's and still be the same."""
PASSED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2),
    *(signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH),
)
"""The signals that are a job's own; one that was ignored at the start stays ignored, here and there."""
EMPTIED = 0.5
"""Seconds that the kernel may need to find a control group empty."""
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
        self._orders = b""
        self._plan: dict[str, Any] = {}
        self._command, self._is_running = 0, False
        self._witnessed: dict[int, float] = {}
        self._signals: list[dict[str, Any]] = []
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
        for number in PASSED:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        self._mask = signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # A copy of the parent that it forked without exec holds the lifeline open: watch both.
        self._parent = _process_descriptor(parent)
        if self._parent is not None:
            self._poller.register(self._parent, select.POLLIN)
        if os.getppid() != parent:
            self._abandon()

    def run(self, folder: str) -> None:
        """Start the job that the lifeline describes and stay until it has to end."""
        self._poller.register(self._lifeline, select.POLLIN)
        while not self.stopping:
            self._wait(self._pass_on())
            self._reap()
            for order in self._take_orders():
                if "signal" in order:
                    self._signals.append(order)
                elif "stop" in order:
                    self._plan, self.stopping = order, True
                else:
                    self.start(order, folder)

    def start(self, job: dict[str, Any], folder: str) -> None:
        """Start the command as a child of this process, in a process group of its own.

        Args:
            job: `path` of the program, `command` and `env` as bytes; `silent` (True for a standard
                input that never delivers); `mark`, the entry of `env` that every process of the run
                carries, in bytes; `group`, the control group to remove at the end, or None;
                `default`, the signals that Python ignores and the command is not to.
        """
        command, self._mark, self._group = job["command"], job["mark"], job["group"]
        try:
            path = f"{folder}/output/job"  # see `output_pipes`
            os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # for as long as the guardian lives: no SIGPIPE
            pipe = os.open(path, os.O_WRONLY)
            actions = [(os.POSIX_SPAWN_DUP2, pipe, 1), (os.POSIX_SPAWN_DUP2, pipe, 2)]
            if job["silent"]:
                # The write end stays open here for as long as the guardian lives.
                actions.append((os.POSIX_SPAWN_DUP2, os.pipe()[0], 0))
            pid = os.posix_spawn(
                job["path"],
                command,
                job["env"],
                file_actions=actions,
                setpgroup=0,
                setsigmask=() if job["silent"] else self._mask,  # that of a kernel's thread is its own
                setsigdef=job["default"],
            )
            os.close(pipe)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._report({"failed": f"{os.fsdecode(command[0])} cannot be started: {reason}"})
            self.stopping = True
        else:
            self._command, self._is_running = pid, True
            self._report({"started": pid, "time": time.time()})
        for descriptor in inheritable():  # the job's: who waits for their end waits for it alone
            os.close(descriptor)

    def _pass_on(self) -> float | None:
        """Pass on the signals that did not go to everybody.

        Returns:
            Seconds until the next one is due, None where none is left.
        """
        now = time.monotonic()
        for order in list(self._signals):
            number, received = order["signal"], order["received"]
            everybody = self._witnessed.get(number, -SAME) >= received - SAME
            if everybody or now >= received + WITNESSED:
                self._signals.remove(order)
                if not everybody:
                    self._send_to_command(number)
        due = min((order["received"] for order in self._signals), default=None)
        return None if due is None else max(0.0, due + WITNESSED - now)

    def _send_to_command(self, number: int) -> None:
        """Send a signal to the process group of the command, or to what is left of that."""
        if self._is_running:
            _send(-self._command, number)
            return
        for pid in below(os.getpid(), parents()):
            try:
                if os.getpgid(pid) == self._command:
                    _send(pid, number)
            except OSError:  # it has ended
                continue

    def end(self, folder: str) -> None:
        """End every process of the job and report what became of them.

        The order to stop may hold pids: `freeze`, launchers that are stopped at once, so that they
        start no rank again; `interrupt`, ranks that get SIGINT first, so that Python runs `finally`;
        `spare`, sessions whose processes are left as they are.
        """
        begun = time.monotonic()
        interrupted = set(self._plan.get("interrupt", ()))
        for pid in self._plan.get("freeze", ()):
            _send(pid, signal.SIGSTOP)
        for pid in interrupted:
            _send(pid, signal.SIGINT)
        terminated: set[int] = set()
        while members := self._members(thorough=not terminated):
            waited = time.monotonic() - begun
            if waited >= TERMINATED:
                for pid in members:
                    _send(pid, signal.SIGKILL)
            elif waited >= INTERRUPTED or not any(_runs(pid) for pid in members & interrupted):
                for pid in members - terminated:
                    _send(pid, signal.SIGCONT)
                    _send(pid, signal.SIGTERM)
                terminated |= members
            self._wait(TICK)
        self._reap()
        self._remove_group()
        spared = below(os.getpid(), parents()) if self._plan.get("spare") else set()
        if spared:  # the beacons in them are not to end them when this process is gone
            os.close(os.open(f"{folder}/released", os.O_WRONLY | os.O_CREAT, 0o600))
        self._report({"empty": True})
        while self._backlog and not self.abandoned:
            self._wait()
        _read_on(spared, f"{os.path.realpath(folder)}/output/")

    def _members(self, thorough: bool) -> set[int]:
        """The processes that are to be ended; a `thorough` look reads every environment."""
        self._reap()
        members = below(os.getpid(), parents())
        if thorough or not members:
            members |= carriers(self._mark)
        return {pid for pid in members if session_of(pid) not in self._plan.get("spare", ())}

    def _remove_group(self) -> None:
        """Remove the job's control group; the kernel may need a moment to find it empty."""
        deadline = time.monotonic() + EMPTIED
        while self._group and time.monotonic() < deadline:
            try:
                os.rmdir(self._group)
            except FileNotFoundError:
                return
            except OSError:
                self._wait(TICK)

    def _on_signal(self, number: int, _: object) -> None:
        self._witnessed[number] = time.monotonic()

    def _take_orders(self) -> list[dict[str, Any]]:
        *lines, self._orders = self._orders.split(b"\n")
        return [from_line(line + b"\n") for line in lines]

    def _abandon(self) -> None:
        self.abandoned = self.stopping = True

    def _wait(self, seconds: float | None = None) -> None:
        """Wait for a signal, the lifeline, the parent's end or room for events, and take it in."""
        for descriptor, _ in self._poller.poll(None if seconds is None else seconds * 1000):
            if descriptor == self._wake:
                os.read(self._wake, 4096)
            elif descriptor == self._events:
                self._flush()
            elif descriptor == self._lifeline and (data := os.read(self._lifeline, 65536)):
                self._orders += data
            else:
                self._poller.unregister(descriptor)
                self._abandon()

    def _reap(self) -> None:
        """Report every child that has ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._command:
                self._is_running = False
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
    descriptors = []
    for name in os.listdir("/dev/fd") if os.path.isdir("/dev/fd") else ():
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                descriptors.append(int(name))
        except OSError:
            continue  # that of the listing
    return descriptors


def as_line(value: dict[str, Any]) -> bytes:
    """A dictionary in one line, for a pipe whose other end runs the same Python (`marshal`)."""
    return marshal.dumps(value).hex().encode() + b"\n"


def from_line(line: bytes) -> dict[str, Any]:
    """The dictionary of a line; an empty one for a line without its end."""
    return dict(marshal.loads(bytes.fromhex(line.decode()))) if line.endswith(b"\n") else {}


def parents(of: Iterable[int] | None = None) -> dict[int, int]:
    """The parent of each of these processes, of all of this machine where None are given, by pid."""
    if not os.path.exists("/proc/self/stat"):
        return _parents_by_ps()
    parent_of = {}
    for pid in os.listdir("/proc") if of is None else map(str, of):
        if pid.isdigit():
            fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            if fields:
                parent_of[int(pid)] = int(fields[1])
    return parent_of


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
    descendants: set[int] = set()
    todo = [root]
    while todo:
        new = children.get(todo.pop(), [])
        descendants.update(new)
        todo += new
    return descendants


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
    """What is in a file of /proc: with `open`, which asks what a file is and how long, half as fast."""
    content = b""
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            while part := os.read(descriptor, 1 << 16):
                content += part
        finally:
            os.close(descriptor)
    except OSError:  # it has ended, or it belongs to someone else
        return b""
    return content


def _runs(pid: int) -> bool:
    """True for a process that has not ended; one that its parent has not waited for yet has."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[:1] not in ([], [b"Z"])


def session_of(pid: int) -> int:
    """The session of a process, 0 when it has gone."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _read_on(pids: set[int], pipes: str) -> None:
    """Have a child read what processes print into the run's pipes, so that none of them blocks.

    It ends with the last process that has one of them open.
    """
    links = [f"/proc/{pid}/fd/{number}" for pid in pids for number in (1, 2)]
    readers = {}
    for link in links:
        try:
            pipe = os.readlink(link)
            if pipe.startswith(pipes) and pipe not in readers:
                readers[pipe] = os.open(link, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:  # it has ended, or it runs as another user
            continue
    if not readers or os.fork():
        return
    poller, low = select.poll(), 0
    for reader in sorted(readers.values()):
        poller.register(reader, select.POLLIN)
        os.closerange(low, reader)
        low = reader + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))
    open_readers = len(readers)
    while open_readers:
        for reader, _ in poller.poll():
            try:
                ended = not os.read(reader, 65536)
            except BlockingIOError:  # what relays the output of the run was faster
                ended = False
            if ended:
                poller.unregister(reader)
                open_readers -= 1
    os._exit(0)


def _send(pid: int, number: int) -> None:
    """Send a signal to a process, or to the process group of a negative number."""
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
    _, _, *descriptors, folder, parent = sys.argv
    lifeline, events = map(int, descriptors)
    for descriptor in (lifeline, events):
        os.set_inheritable(descriptor, False)
    _become_subreaper()
    guardian = Guardian(lifeline, events, int(parent))
    try:
        guardian.run(folder)
    finally:
        guardian.end(folder)
        if guardian.abandoned:
            import shutil

            shutil.rmtree(folder, ignore_errors=True)

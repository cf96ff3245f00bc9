"""Start any command under a guardian process, see what it starts, and end all of it.

Nothing of a run outlives the process that launched it: see `helpers.launch.guardian`. What the job
need not wait for is imported where it is used, psutil with its 10 ms above all.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import run_folder
from .guardian import as_line, from_line, inheritable, session_of
from .output_pipes import OutputPipes

if TYPE_CHECKING:
    import psutil

    from .members import Members
    from .memory_limit import Enforcer

GUARDIAN = Path(__file__).resolve().with_name("guardian.py")
START_GUARDIAN = (
    "import os, sys; sys.path.append(os.path.dirname(sys.argv[1])); import guardian; guardian.main()"
)
"""It is imported: a program is compiled at every start, for which the job would wait 7 ms."""

LIMIT = 2.0
"""Seconds that a guardian has to end its job before this process takes over."""


class LaunchError(Exception):
    """The command cannot be started; the text says why in one sentence."""


class Ending:
    """How a job is to be ended.

    Attributes:
        launchers: pids that are stopped at once, so that they start no rank again.
        ranks: pids that get SIGINT half a second before all get SIGTERM, so that Python runs `finally`.
        spared: sessions whose processes are left as they are.
    """

    # No NamedTuple: a job would wait 1 ms until it is made.
    def __init__(
        self,
        launchers: Collection[int] = (),
        ranks: Collection[int] = (),
        spared: Collection[int] = (),
    ) -> None:
        self.launchers, self.ranks, self.spared = launchers, ranks, spared


AT_ONCE = Ending()


class Launch:
    """One started command, the guardian above it and its run directory; made by `launch`.

    Attributes:
        run_id: name of the run; every process of the job carries it as STUCK_RANKS_ID.
        folder: the run directory (see `helpers.launch.run_folder`).
        guardian_pid: the guardian, which is not part of the job.
        pid: the command's own process.
        started: `time.time()` when the command was started.
        output: what its processes print.
    """

    guardian_pid: int
    pid: int
    started: float
    output: OutputPipes

    def __init__(self, folder: Path, limit: Enforcer | None = None) -> None:
        self.run_id = folder.name
        self.folder = folder
        self._limit = limit
        self._group: Path | None = None
        self._record: dict[str, Any] = {}
        self._reaped: dict[int, int] = {}
        self._empty = False
        self._over = threading.Event()
        self._looking = threading.Lock()
        self._members: Members | None = None
        self._processes: list[psutil.Process] = []
        self._guardian: subprocess.Popen[bytes] | None = None
        self._gate = threading.Lock()
        self._begun = self._cancelled = False
        self._ready = threading.Event()
        self._failure: BaseException | None = None

    def poll(self) -> int | None:
        """The command's status as `os.waitpid` gives it, None while the command runs."""
        return self._reaped.get(self.pid)

    def reaped(self) -> dict[int, int]:
        """Status by pid of every process the guardian has reaped: the command and all orphans."""
        return dict(self._reaped)

    def processes(self) -> list[psutil.Process]:
        """Everything of this run that is alive, the guardian excluded.

        That is what descends from the guardian, as of now, and what carries the run's id in its
        environment, as of at most 5 seconds ago (see `helpers.launch.members`).
        """
        from .members import Members

        with self._looking:
            if self._over.is_set():
                return []
            self._members = self._members or Members(self.guardian_pid, self.run_id)
            self._processes = self._members.look()
            return list(self._processes)

    @property
    def session(self) -> int:
        """The session in which the command was started: the guardian's."""
        return self.guardian_pid

    def sessions(self) -> dict[int, int]:
        """The session of each of its processes that has another one than its command."""
        sessions = {process.pid: session_of(process.pid) for process in self.processes()}
        return {pid: session for pid, session in sessions.items() if session not in (self.session, 0)}

    def signal(self, number: int, received: float) -> None:
        """Pass a signal to the command's process group, unless everybody has got it.

        Args:
            received: `time.monotonic()` when it came.
        """
        self._order({"signal": int(number), "received": received})

    def stop(self, ending: Ending = AT_ONCE) -> None:
        """End every process of this run; returns when none is left, within about 2 seconds.

        May be called from any thread, and more than once. A process that even SIGKILL does not
        end (it is blocked in the kernel, or runs as another user) does not keep it from returning.
        """
        self._order(
            {
                "stop": True,
                "freeze": list(ending.launchers),
                "interrupt": list(ending.ranks),
                "spare": list(ending.spared),
            }
        )
        if not self._over.wait(LIMIT) and self._guardian is not None:
            self.processes()  # remembers what descends from a guardian that does not answer
            self._guardian.kill()
            self._over.wait(LIMIT)

    def close(self) -> None:
        """Stop, then remove the run directory."""
        self.stop()
        # At once, for the beacons of what is left running: their run is over when the folder is gone.
        over = self.folder.with_name(f"{self.run_id}.over")
        with suppress(OSError):
            self.folder.rename(over)
        shutil.rmtree(over, ignore_errors=True)
        self._lifeline.close()
        self.output.close()

    def _order(self, order: dict[str, Any]) -> None:
        line = as_line(order)
        with suppress(OSError, ValueError):  # the guardian has gone, or `close` was here before
            self._lifeline.write(line)

    def _live(
        self, command: list[str], path: str, cwd: Path | None, env: dict[str, str], silent: bool
    ) -> None:
        """The run from its start to its end, in a thread that no KeyboardInterrupt reaches."""
        with self._gate:
            if self._cancelled:
                return
            self._begun = True
        try:
            with ExitStack() as undo:
                undo.callback(shutil.rmtree, self.folder, ignore_errors=True)
                self._record = {"run_id": self.run_id, "command": command, "processes": []}
                self._record["owner"] = run_folder.identity(os.getpid())
                run_folder.make(self.folder, self._record)
                command, path = self._limited(command, path, undo)
                self._start_guardian(cwd, silent, undo)
                run_folder.furnish(self.folder)  # while the guardian's interpreter starts
                self.output = OutputPipes(self.folder / "output")
                undo.callback(self.output.close)
                self._start_command(command, path, env, silent)
                undo.pop_all()
        except BaseException as error:
            self._failure = error
            self._ready.set()
        else:
            self._ready.set()
            self._listen()

    def _limited(self, command: list[str], path: str, undo: ExitStack) -> tuple[list[str], str]:
        """The command and its program, preceded by the words that put it under the memory limit."""
        if self._limit is None:
            return command, path
        undo.callback(self._limit.close)
        words = self._limit.open(self.run_id)
        self._group = self._limit.group
        if self._group is not None:
            self._record["group"] = str(self._group)
            run_folder.write_record(self.folder, self._record)
        return [*words, path, *command[1:]], words[0] if words else path

    def _start_guardian(self, cwd: Path | None, silent: bool, undo: ExitStack) -> None:
        _open_standard_streams()
        # Python makes pipes that are closed on exec: no program of ours holds the lifeline open.
        far_lifeline, near = os.pipe()
        self._lifeline = os.fdopen(near, "wb", buffering=0)
        near, far_events = os.pipe()
        self._events = os.fdopen(near, "rb")
        undo.callback(self._events.close)
        inherited = (far_lifeline, far_events)
        arguments = (*map(str, inherited), str(self.folder), str(os.getpid()))
        options = ("-I", "-S", *(["-B"] if sys.dont_write_bytecode else []))
        try:
            with open(self.folder / "guardian.log", "wb", opener=run_folder.owners_alone) as log:
                self._guardian = subprocess.Popen(
                    [sys.executable, *options, "-c", START_GUARDIAN, str(GUARDIAN), *arguments],
                    stdin=subprocess.DEVNULL if silent else None,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    cwd=cwd,
                    pass_fds=(*inherited, *(() if silent else inheritable())),
                    start_new_session=True,
                )
            undo.callback(self._guardian.wait)
            self.guardian_pid = self._guardian.pid
        finally:
            for end in inherited:
                os.close(end)
            undo.callback(self._lifeline.close)  # the first to be undone: the guardian ends then

    def _start_command(self, command: list[str], path: str, env: dict[str, str], silent: bool) -> None:
        env = env | run_folder.environment(self.folder, self.guardian_pid, env)
        if not silent:
            command, path = _as_named(command, path, env)
        job = {
            "path": os.fsencode(path),
            "command": [os.fsencode(part) for part in command],
            "env": {os.fsencode(name): os.fsencode(value) for name, value in env.items()},
            "mark": os.fsencode(f"STUCK_RANKS_ID={self.run_id}"),
            "silent": silent,
            # Python ignores the first two; a Jupyter kernel ignores SIGINT between two cells.
            "default": [int(signal.SIGPIPE), int(signal.SIGXFSZ), *[int(signal.SIGINT)] * silent],
            "group": str(self._group) if self._group is not None else None,
        }
        rest = as_line(job)
        with suppress(BrokenPipeError):  # the guardian has gone: its answer is empty
            while rest:
                rest = rest[self._lifeline.write(rest) :]
        self.output.take_stock()  # while the job starts: no process asks for one so soon
        from .processes import same_process

        answer = from_line(self._events.readline())
        if "started" not in answer:
            words = (self.folder / "guardian.log").read_text(errors="replace").splitlines()
            lost = f"the guardian of the job did not start: {words[-1] if words else 'it ended'}"
            raise LaunchError(answer.get("failed", lost))
        self.pid, self.started = answer["started"], answer["time"]
        who = run_folder.identity(self.pid)
        if (process := same_process(*who)) is not None:
            self._processes = [process]
        self._record["processes"] = [run_folder.identity(self.guardian_pid), who]
        with suppress(OSError):  # the job may have filled the disk; its processes carry the run's id
            run_folder.write_record(self.folder, self._record)

    def _listen(self) -> None:
        """Take in the guardian's events until it has gone. Without a guardian, end the job."""
        with self._events:
            for line in self._events:
                event = from_line(line)
                if "reaped" in event:
                    self._reaped.setdefault(event["reaped"], event["status"])
                self._empty |= "empty" in event
        if self._guardian is not None:
            self._guardian.wait()
        if not self._empty or sys.platform != "linux":
            from .processes import carriers, end_all

            end_all(lambda: [*self._processes, *carriers(self.run_id)])
            self._reaped.setdefault(self.pid, int(signal.SIGKILL))
        if self._group is not None:
            from .control_group import remove

            remove(self._group)
        self._over.set()

    def _cancel(self) -> None:
        """Undo a start that did not succeed or was interrupted."""
        with self._gate:
            self._cancelled = True
        if self._begun:
            self._ready.wait()
            if self._failure is None:
                self.close()


def launch(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Literal["inherit", "silent"] = "silent",
    kind_of_run: str = "job",
    limit: Enforcer | None = None,
) -> Launch:
    """Start a command under a guardian. An interrupt at any moment leaves nothing behind.

    Its standard output and error go to pipes (see `helpers.launch.output_pipes`).

    Args:
        command: the program, found as a shell finds it (in PATH of `env`), and its arguments.
        cwd: where it runs; the current folder when None.
        env: its whole environment, to which STUCK_RANKS_* is added and PYTHONPATH extended; that
            of this process when None.
        stdin: `inherit` gives it the standard input of this process, `silent` an open pipe that
            never delivers.
        kind_of_run: first part of the run's id.
        limit: what limits the memory of the job.

    Raises:
        LaunchError: the command or the folder does not exist or cannot be used, or the run
            directory cannot be made. Nothing is left running then.
    """
    environment = dict(os.environ if env is None else env)
    path = _find_program(command, cwd, environment)
    try:
        run = Launch(run_folder.home() / f"{kind_of_run}-{os.urandom(4).hex()}", limit)
        arguments = (list(command), path, cwd, environment, stdin == "silent")
        life = threading.Thread(target=run._live, args=arguments, name=run.run_id, daemon=True)
        try:
            life.start()
            run._ready.wait()
            if run._failure is not None:
                raise run._failure
            return run
        except BaseException:
            run._cancel()
            raise
    except OSError as error:
        raise LaunchError(_unprepared(error)) from error


def _as_named(command: list[str], path: str, env: Mapping[str, str]) -> tuple[list[str], str]:
    """The command and its program, under a shell where variables name this process instead of it.

    systemd gives sockets and a watchdog to one process, which it names: sd_listen_fds(3),
    sd_watchdog_enabled(3).
    """
    names = [name for name, value in env.items() if name.endswith("PID") and value == str(os.getpid())]
    if not names or not all(name.isidentifier() and name.isascii() for name in names):
        return command, path
    script = f'{" ".join(f"{name}=$$" for name in names)} exec "$@"'
    return ["sh", "-c", script, "sh", path, *command[1:]], "/bin/sh"


def _unprepared(error: OSError) -> str:
    """Why a run cannot be prepared, in one sentence, and what helps where the reason is its folder."""
    reason, file = error.strerror or str(error), error.filename2 or error.filename
    temporary = tempfile.gettempdir()
    in_it = isinstance(file, str) and Path(file).is_relative_to(temporary)
    if in_it or error.errno in (errno.ENOSPC, errno.EDQUOT):  # what cannot be written names no file
        return f"the run cannot be prepared in {temporary}: {reason}; set TMPDIR to another folder"
    return f"the run cannot be prepared: {reason}"


def clear_up(spared: Iterable[int] = ()) -> None:
    """Remove what was left behind by runs before, except for the run that one of these pids is part of.

    A failure to do so is logged: the new run has no part in it.
    """
    try:
        if run_folder.records():
            from .leftovers import reap_leftovers

            reap_leftovers(spared)
    except Exception as problem:
        import logging

        words = "What was left behind by runs before may still be there: %r"
        logging.getLogger(__name__).warning(words, problem)


def _find_program(command: Sequence[str], cwd: Path | None, env: Mapping[str, str]) -> str:
    """The path to execute; a name with a slash stays as it is. Raises LaunchError."""
    if not command or not command[0]:
        raise LaunchError("no command is given")
    if any("\0" in text for text in (*command, *env, *env.values())):
        raise LaunchError("a command and its environment cannot hold a NUL character")
    base = Path() if cwd is None else cwd
    if not base.is_dir():
        raise LaunchError(f"no such folder: {base}")
    if not os.access(base, os.X_OK):
        raise LaunchError(f"the folder {base} cannot be entered")
    name = command[0]
    has_slash = os.sep in name
    wanted = os.path.join(base, name) if has_slash else name
    places = env.get("PATH", os.defpath).split(os.pathsep)
    search = os.pathsep.join(str(base / place) for place in places)
    if program := shutil.which(wanted, path=search):
        return name if has_slash else os.path.abspath(program)
    if shutil.which(wanted, os.F_OK, search) or (has_slash and os.path.isdir(wanted)):
        raise LaunchError(f"{name} is not executable")
    raise LaunchError(f"command not found: {name}")


def _open_standard_streams() -> None:
    """Open /dev/null where 0, 1 or 2 is closed, so that no pipe of a run gets that number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)

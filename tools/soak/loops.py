"""Healthy programs that come back to the same line again and again, and hangs with a beat beside them.

A program is made of a *place* in which it waits for a *period*, and a *host*: what waits there. It goes
on for ever, and prints at each step.
"""

from __future__ import annotations

import random
import textwrap
from typing import NamedTuple

HEAD = """\
import asyncio, concurrent.futures, fcntl, multiprocessing, os, queue, select, signal, socket, sqlite3
import subprocess, sys, threading, time
from pathlib import Path

P = {period}
HERE = Path(__file__).with_suffix("")


def child(text):
    imports = "import fcntl, os, socket, sys, time"
    text = f"{{imports}}\\nwhile True:\\n    time.sleep({{P}})\\n    {{text}}\\n"
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)


"""

_FED = """
        items = queue.Queue()
        def put():
            while True:
                time.sleep(P)
                items.put(1)
        threading.Thread(target=put, daemon=True).start()
"""

PLACES = {
    "sleeps": "steps = lambda: time.sleep(P)",
    "waits for an event with a limit": "steps = lambda: threading.Event().wait(P)",
    "selects with a limit": "steps = lambda: select.select([], [], [], P)",
    "joins with a limit": """
        beside = threading.Thread(target=time.sleep, args=(10**6,), daemon=True)
        beside.start()
        steps = lambda: beside.join(P)
    """,
    "a socket with a limit": """
        here, there = socket.socketpair()
        here.settimeout(P)
        def steps():
            try:
                here.recv(1)
            except TimeoutError:
                pass
    """,
    "a queue with a limit, in a loop": _FED
    + """
        def steps():
            while True:
                try:
                    return items.get(timeout=0.3)
                except queue.Empty:
                    continue
    """,
    "items of a thread": _FED
    + """
        steps = items.get
    """,
    "items of a process": """
        def fill(items):
            while True:
                time.sleep(P)
                items.put(1)
        fork = multiprocessing.get_context("fork")
        items = fork.Queue()
        fork.Process(target=fill, args=(items,), daemon=True).start()
        steps = items.get
    """,
    "messages of a process": """
        fork = multiprocessing.get_context("fork")
        here, there = fork.Pipe()
        def send(there):
            while True:
                time.sleep(P)
                there.send(1)
        fork.Process(target=send, args=(there,), daemon=True).start()
        steps = here.recv
    """,
    "a file that another process opens": """
        path = str(HERE.with_suffix(f".fifo-{os.getpid()}"))
        os.mkfifo(path)
        child("open(%r, 'w').close()" % path)
        def steps():
            with open(path) as file:
                file.read()
    """,
    "lines of a pipe": """
        lines = child("print('x', flush=True)").stdout
        steps = lines.readline
    """,
    "bytes of a socket": """
        server = socket.create_server(("127.0.0.1", 0))
        address = server.getsockname()
        child(f"s = socket.create_connection({address}); s.send(b'x'); s.close()")
        def steps():
            made, _ = server.accept()
            made.recv(1)
            made.close()
    """,
    "a file that it polls": """
        child("open(%r, 'w').close()" % str(HERE.with_suffix(".flag")))
        def steps():
            flag = HERE.with_suffix(".flag")
            while not flag.exists():
                time.sleep(0.1)
            flag.unlink()
    """,
    "a flag of a thread that it polls": """
        class State:
            ready = False
        def work():
            while True:
                time.sleep(P)
                State.ready = True
        threading.Thread(target=work, daemon=True).start()
        def steps():
            while not State.ready:
                time.sleep(0.05)
            State.ready = False
    """,
    "a lock of another process": """
        path = str(HERE.with_suffix(".lock"))
        child("f = open(%r, 'w'); fcntl.flock(f, 2); time.sleep(%r); f.close()" % (path, P))
        def steps():
            with open(path, "w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(P)
    """,
    "a lock file that another process makes": """
        path = str(HERE.with_suffix(".taken"))
        child("open(%r, 'w').close(); time.sleep(%r); os.remove(%r)" % (path, P, path))
        def steps():
            while True:
                try:
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL))
                    break
                except FileExistsError:
                    time.sleep(0.1)
            try:
                os.remove(path)
            except FileNotFoundError:
                pass
            time.sleep(P)
    """,
    "the end of a child": """
        steps = lambda: subprocess.run([sys.executable, "-c", f"import time; time.sleep({P})"])
    """,
    "a shell": "steps = lambda: os.system(f'sleep {P}')",
    "the end of a thread": """
        def steps():
            beside = threading.Thread(target=time.sleep, args=(P,))
            beside.start()
            beside.join()
    """,
    "a notification": """
        changed = threading.Condition()
        def work():
            while True:
                time.sleep(P)
                with changed:
                    changed.notify_all()
        threading.Thread(target=work, daemon=True).start()
        def steps():
            with changed:
                changed.wait()
    """,
    "a predicate": """
        class State:
            number = 0
        changed = threading.Condition()
        def work():
            while True:
                time.sleep(P)
                with changed:
                    State.number += 1
                    changed.notify_all()
        threading.Thread(target=work, daemon=True).start()
        def steps():
            before = State.number
            with changed:
                changed.wait_for(lambda: State.number > before)
    """,
    "sockets that a thread writes to": """
        import selectors
        here, there = socket.socketpair()
        ready = selectors.DefaultSelector()
        ready.register(here, selectors.EVENT_READ)
        def work():
            while True:
                time.sleep(P)
                there.send(b"x")
        threading.Thread(target=work, daemon=True).start()
        def steps():
            ready.select()
            here.recv(1)
    """,
    "a result of an executor": """
        pool = concurrent.futures.ThreadPoolExecutor(1)
        steps = lambda: pool.submit(time.sleep, P).result()
    """,
    "a result of a pool of processes": """
        pool = multiprocessing.get_context("fork").Pool(2)
        steps = lambda: pool.map(time.sleep, [P])
    """,
    "the next result of a pool": """
        pool = multiprocessing.get_context("fork").Pool(1)
        results = pool.imap(time.sleep, [P] * 10_000)
        steps = results.next
    """,
    "a simple queue": """
        items = queue.SimpleQueue()
        def put():
            while True:
                time.sleep(P)
                items.put(1)
        threading.Thread(target=put, daemon=True).start()
        steps = lambda: items.get()
    """,
    "a semaphore of processes": """
        free = multiprocessing.get_context("fork").Semaphore(0)
        def release(free):
            while True:
                time.sleep(P)
                free.release()
        multiprocessing.get_context("fork").Process(target=release, args=(free,), daemon=True).start()
        steps = free.acquire
    """,
    "a signal": """
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        text = f"kill -USR1 {os.getpid()}"
        subprocess.Popen(["sh", "-c", f"while sleep {P} && {text}; do :; done"])
        steps = lambda: signal.sigwaitinfo([signal.SIGUSR1])
    """,
    "a timer": """
        def steps():
            rings = threading.Event()
            threading.Timer(P, rings.set).start()
            rings.wait()
    """,
    "a coroutine": """
        async def later():
            await asyncio.sleep(P)
        steps = lambda: asyncio.run(later())
    """,
    "a coroutine of another thread": """
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        steps = lambda: asyncio.run_coroutine_threadsafe(asyncio.sleep(P), loop).result()
    """,
    "a program that a coroutine starts": """
        async def wait_for_it():
            made = await asyncio.create_subprocess_exec("sleep", str(P))
            await made.wait()
        steps = lambda: asyncio.run(wait_for_it())
    """,
    "a lock that a thread holds": """
        lock = threading.Lock()
        def work():
            while True:
                with lock:
                    time.sleep(P)
                time.sleep(0.01)
        threading.Thread(target=work, daemon=True).start()
        def steps():
            with lock:
                pass
            time.sleep(0.02)
    """,
    "two threads that meet": """
        meets = threading.Barrier(2)
        def work():
            while True:
                time.sleep(P)
                meets.wait()
        threading.Thread(target=work, daemon=True).start()
        steps = meets.wait
    """,
    "a value of another process that it polls": """
        value = multiprocessing.Value("i", 0)
        def count(value):
            while True:
                time.sleep(P)
                value.value += 1
        multiprocessing.get_context("fork").Process(target=count, args=(value,), daemon=True).start()
        def steps():
            before = value.value
            while value.value == before:
                time.sleep(0.05)
    """,
    "a service that refuses": """
        def steps():
            try:
                socket.create_connection(("127.0.0.1", 9), 1).close()
            except OSError:
                time.sleep(P)
    """,
    "some work": """
        def steps():
            sum(range(100_000))
            time.sleep(P)
    """,
}
"""What a program waits in at each step."""

_FORKS = """
if os.fork():  # before there is a thread: it would be left behind
    os.wait()
    sys.exit()

"""

_STEPS = """
def go_on():
    number = 0
    while True:
        steps()
        number += 1
        print("step", number, flush=True)

"""

_TRAINS = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
number = 0
while True:
    if dist.get_rank() == 1:
        steps()
    dist.all_reduce(torch.ones(4))
    number += 1
    if dist.get_rank() == 0:
        print("step", number, flush=True)
"""

HOSTS = {
    "main": "go_on()\n",
    "thread": "runs = threading.Thread(target=go_on)\nruns.start()\nruns.join()\n",
    "process": "go_on()\n",
    "rank": _TRAINS,
}
"""Who waits there: the main thread, another thread, another process, or one rank of two."""

ONE_OR_TWO = {"rank": ("torchrun", "--standalone", "--nproc-per-node=2")}
"""Host -> what starts its program, where it is more than Python."""

PERIODS = (0.05, 0.2, 0.7, 1.3, 4.0, 9.0, 14.0, 21.0)
"""Seconds, from well below the pause between two looks to well above a short patience."""


class Loop(NamedTuple):
    """A healthy program."""

    place: str
    host: str
    period: float

    @property
    def text(self) -> str:
        """Its source."""
        place = textwrap.dedent(PLACES[self.place]).strip()
        steps = "" if self.host == "rank" else _STEPS
        head = HEAD.format(period=self.period) + (_FORKS if self.host == "process" else "")
        return head + place + "\n" + steps + "\n" + HOSTS[self.host]

    @property
    def starter(self) -> tuple[str, ...]:
        """The words before the name of its file."""
        return ONE_OR_TWO.get(self.host, ("python",))


def all_loops() -> list[Loop]:
    """Every place in every host, each with one period, which goes round."""
    pairs = [(place, host) for place in PLACES for host in HOSTS]
    return [Loop(*pair, PERIODS[number % len(PERIODS)]) for number, pair in enumerate(pairs)]


def some_loops(seed: int, number: int) -> list[Loop]:
    """Loops at random, with periods between the shortest and the longest."""
    chance = random.Random(seed)
    hosts = list(HOSTS)
    return [
        Loop(
            chance.choice(list(PLACES)),
            chance.choices(hosts, weights=(3, 2, 2, 1))[0],
            round(PERIODS[0] * (PERIODS[-1] / PERIODS[0]) ** chance.random(), 2),
        )
        for _ in range(number)
    ]


BEATS = {
    "prints": "time.sleep(1); print('alive', flush=True)",
    "computes": "sum(range(400_000)); time.sleep(0.3)",
    "writes": "Path(__file__).with_suffix('.beat').write_text(str(time.time())); time.sleep(0.5)",
    "measures": "usage.append(os.times()[0]); time.sleep(0.2)",
}
"""What a thread beside a hang does again and again."""

STUCK = {
    "a queue": "queue.Queue().get()",
    "an event": "threading.Event().wait()",
    "a lock": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "a simple queue": "queue.SimpleQueue().get()",
    "a semaphore": "multiprocessing.Semaphore(0).acquire()",
    "a thread": "t = threading.Thread(target=threading.Event().wait, daemon=True); t.start(); t.join()",
    "a pipe of its own": "os.read(os.pipe()[0], 1)",
    "a long sleep": "time.sleep(100_000)",
    "a rank that receives": "dist.recv(torch.ones(1), src=1 - dist.get_rank())",
    "a rank that never comes": "dist.get_rank() or time.sleep(100_000); dist.barrier()",
    "other calls": "dist.barrier() if dist.get_rank() else dist.all_reduce(torch.ones(1))",
    "a key": "dist.get_rank() or dist.distributed_c10d._get_default_store().get('x'); dist.barrier()",
}
"""What hangs, and all of it for ever."""


ARRIVES = b"about to hang\n"
"""What each process of such a program writes, in one piece, just before it hangs."""


class Hang(NamedTuple):
    """A program that hangs while a thread of it beats."""

    stuck: str
    beat: str

    @property
    def is_of_two(self) -> bool:
        """True where it is a job of two ranks."""
        return "dist." in STUCK[self.stuck]

    @property
    def text(self) -> str:
        """Its source."""
        imports = "import multiprocessing, os, queue, threading, time\nfrom pathlib import Path\n"
        if self.is_of_two:
            imports += "import torch, torch.distributed as dist\ndist.init_process_group('gloo')\n"
        beat = f"usage = []\ndef beat():\n    while True:\n        {BEATS[self.beat]}\n"
        starts = "threading.Thread(target=beat, daemon=True).start()\n"
        arrives = f"os.write(1, {ARRIVES!r})\n"
        return imports + beat + starts + arrives + STUCK[self.stuck] + "\n"

    @property
    def starter(self) -> tuple[str, ...]:
        """The words before the name of its file."""
        return ONE_OR_TWO["rank"] if self.is_of_two else ("python",)


def all_hangs() -> list[Hang]:
    """Every hang beside every beat."""
    return [Hang(stuck, beat) for stuck in STUCK for beat in BEATS]

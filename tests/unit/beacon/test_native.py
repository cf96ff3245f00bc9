"""When the system call that blocks a thread ends by itself, as the kernel tells it."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable

import pytest

from helpers.beacon import native
from helpers.beacon.record import NativeCall

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

LIMIT = 60.0
CALLS = ("nanosleep", "futex", "select", "poll", "epoll_wait", "recvfrom")


@pytest.fixture
def blocked() -> Callable[[Callable[[], object]], NativeCall]:
    """Gives the system call in which a function blocks, in a thread that ends with the tests."""

    def call_of(act: Callable[[], object]) -> NativeCall:
        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        assert thread.native_id is not None
        found = None
        while found is None or found["call"] not in CALLS:
            found = native.blocking_call(thread.native_id)
        while (later := native.blocking_call(thread.native_id)) is None or later != found:
            found = later if later is not None else found  # it has come to rest
        return later

    return call_of


@pytest.fixture
def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="sleeps by `select` before")
def test_a_sleep_has_its_deadline(blocked: Callable[[Callable[[], object]], NativeCall]) -> None:
    found = blocked(lambda: time.sleep(LIMIT))
    assert found["call"] == "nanosleep" and "lasts" not in found
    assert 0.0 < found["until"] - time.monotonic() <= LIMIT + 0.1


def test_a_lock_with_a_limit_has_its_deadline(
    blocked: Callable[[Callable[[], object]], NativeCall],
) -> None:
    found = blocked(lambda: threading.Event().wait(LIMIT))
    assert found["limited"] and 0.0 < found["until"] - time.monotonic() <= LIMIT + 0.1


def test_a_select_and_a_socket_tell_how_long_they_last(
    blocked: Callable[[Callable[[], object]], NativeCall], pair: tuple[socket.socket, socket.socket]
) -> None:
    here, _ = pair
    assert blocked(lambda: select.select([here], [], [], LIMIT))["lasts"] == LIMIT
    here.settimeout(LIMIT)
    assert blocked(lambda: here.recv(1))["lasts"] == pytest.approx(LIMIT, abs=1.0)


def test_what_has_no_limit_tells_none(
    blocked: Callable[[Callable[[], object]], NativeCall], pair: tuple[socket.socket, socket.socket]
) -> None:
    here, _ = pair
    rings = threading.Event()
    for act in (rings.wait, lambda: here.recv(1)):
        assert {"lasts", "until"}.isdisjoint(blocked(act))
    rings.set()
    pair[1].send(b"x")


def test_a_semaphore_of_several_processes_is_shared_and_a_lock_is_not(
    blocked: Callable[[Callable[[], object]], NativeCall],
) -> None:
    shared, own = multiprocessing.get_context("fork").Semaphore(0), threading.Semaphore(0)
    assert blocked(shared.acquire).get("shared") is True
    assert "shared" not in blocked(own.acquire)


def test_a_poll_tells_the_files_that_it_waits_for(
    blocked: Callable[[Callable[[], object]], NativeCall], pair: tuple[socket.socket, socket.socket]
) -> None:
    first, second = pair
    targets = [os.readlink(f"/proc/self/fd/{end.fileno()}") for end in pair]
    poll = select.poll()
    for end in pair:
        poll.register(end, select.POLLIN)
    assert sorted(blocked(poll.poll)["polled"]) == sorted(targets)
    with select.epoll() as epoll:
        epoll.register(second, select.EPOLLIN)
        assert blocked(epoll.poll)["polled"] == targets[1:]
        first.send(b"x")  # it ends before its descriptor is closed


def compute() -> None:
    """In C, without the interpreter lock."""
    hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 1_500_000)


def run_python() -> None:
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        sum(range(100))


def rest_often() -> None:
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        time.sleep(0.002)


@pytest.mark.parametrize(("act", "spins"), [(compute, True), (run_python, False), (rest_often, False)])
def test_a_thread_that_computes_in_c_spins(act: Callable[[], None], spins: bool) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    assert thread.native_id is not None
    spin, found = native.Spin(thread.native_id), []
    for _ in range(6):
        time.sleep(0.03)  # as the beacon does between two looks
        found.append(spin.look())
    assert found[:2] == [False, False]
    assert found[-1] is spins
    thread.join()


def test_a_thread_that_has_ended_does_not_spin() -> None:
    spin = native.Spin(1 << 22)
    assert [spin.look() for _ in range(5)] == [False] * 5

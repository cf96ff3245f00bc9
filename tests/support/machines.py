"""Machines of a cluster, as network namespaces: each with its own address, host name and loopback.

What runs on them shares the disk and the process table. Only root can make them, on Linux.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

NETWORK = "192.168.77"
"""All but the last number of the machines' addresses; the namespaces see nobody but each other."""

ENTER = """hostname "$1" && mount --make-rprivate / && mount --bind "$2" /etc/hosts \
    && shift 2 && exec "$@\""""
"""Takes a host name and a hosts file, then the command."""


@dataclass(frozen=True)
class Machine:
    """One machine.

    Attributes:
        name: of its network namespace; host: its host name.
        hosts: the file that is its `/etc/hosts`.
        hub: the network namespace of the switch; port: the switch's end of this machine's cable.
    """

    name: str
    host: str
    address: str
    hosts: Path
    hub: str
    port: str

    def words(self, *command: str) -> list[str]:
        """A command that runs another one on this machine."""
        enter = ("unshare", "--uts", "--mount", "sh", "-c", ENTER, "sh", self.host, str(self.hosts))
        return ["ip", "netns", "exec", self.name, *enter, *command]

    def rename(self, address: str) -> None:
        """Have its own name stand for another address of its own, as Debian's set-up does."""
        lines = self.hosts.read_text().replace(f"{self.address} {self.host}\n", "")
        self.hosts.write_text(f"{address} {self.host}\n{lines}")

    def add_interface(self, name: str, address: str) -> None:
        """Add a network interface that leads nowhere."""
        _ip("-n", self.name, "link", "add", name, "type", "bridge")
        _ip("-n", self.name, "addr", "add", f"{address}/24", "dev", name)
        _ip("-n", self.name, "link", "set", name, "up")

    def lose(self, network: str) -> None:
        """Send what is for a network to a machine that is not there."""
        nobody = f"{NETWORK}.250"
        address = ("lladdr", "02:00:00:00:00:99")
        _ip("-n", self.name, "neigh", "add", nobody, *address, "dev", "eth0")
        _ip("-n", self.name, "route", "add", network, "via", nobody)

    def cut(self) -> None:
        """Pull the cable: what is sent is lost, and nobody is told."""
        _ip("-n", self.hub, "link", "set", self.port, "down")

    def mend(self) -> None:
        """Plug the cable in again."""
        _ip("-n", self.hub, "link", "set", self.port, "up")

    def drop(self, port: int) -> None:
        """Lose every packet that comes for a port, as a firewall does."""
        rule = ("-n", self.name, "rule")
        _ip(*rule, "add", "pref", "100", "lookup", "local")
        _ip(*rule, "del", "pref", "0")
        _ip(*rule, "add", "pref", "10", "iif", "eth0", "ipproto", "tcp", "dport", str(port), "blackhole")

    def start(
        self,
        *command: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        output: int | IO[bytes] = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Start a command here, in a session of its own."""
        return subprocess.Popen(
            self.words(*command),
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def why_not() -> str:
    """Why there can be no machines here; empty where there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need root on Linux"
    missing = [tool for tool in ("ip", "unshare", "mount", "hostname") if shutil.which(tool) is None]
    if missing:
        return f"network namespaces need {', '.join(missing)}"
    try:
        with machines(1, Path("/tmp"), hosts=("try",)) as (one,):
            subprocess.run(one.words("true"), check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        return f"network namespaces cannot be made here: {problem}"
    return ""


@contextmanager
def machines(number: int, folder: Path, hosts: Sequence[str] = ()) -> Iterator[tuple[Machine, ...]]:
    """Machines on one network of their own; nothing is left of them.

    Args:
        number: how many.
        folder: for the files that they need.
        hosts: their host names: n0, n1, ... when empty.
    """
    names = hosts or [f"n{index}" for index in range(number)]
    mark = f"sr-{uuid.uuid4().hex[:8]}"
    listed = [f"{NETWORK}.{index + 1} {host}" for index, host in enumerate(names)]
    with ExitStack() as at_end:
        hub = f"{mark}-hub"
        _namespace(hub, at_end)
        _ip("-n", hub, "link", "add", "br0", "type", "bridge")
        _ip("-n", hub, "link", "set", "br0", "up")
        made = []
        for index, host in enumerate(names):
            name, address = f"{mark}-{index}", f"{NETWORK}.{index + 1}"
            one = Machine(name, host, address, folder / f"hosts-{name}", hub, f"p{index}")
            own = f"{one.address} {host}"
            one.hosts.write_text("\n".join(["127.0.0.1 localhost", own, *listed]) + "\n")
            at_end.callback(one.hosts.unlink)
            _namespace(one.name, at_end)
            _ip("-n", hub, "link", "add", one.port, "type", "veth", "peer", "eth0", "netns", one.name)
            _ip("-n", hub, "link", "set", one.port, "master", "br0", "up")
            _ip("-n", one.name, "addr", "add", f"{one.address}/24", "dev", "eth0")
            _ip("-n", one.name, "link", "set", "eth0", "up")
            made.append(one)
        yield tuple(made)


def _namespace(name: str, at_end: ExitStack) -> None:
    _ip("netns", "add", name)
    at_end.callback(_ip, "netns", "del", name)
    _ip("-n", name, "link", "set", "lo", "up")


def _ip(*words: str) -> None:
    subprocess.run(("ip", *words), check=True, capture_output=True)

"""What is known of the network between the machines of a job."""

from __future__ import annotations

import msgspec


class Rendezvous(msgspec.Struct, frozen=True):
    """Where a launcher meets those of the other nodes, as its command line says.

    Attributes:
        address: `address:port`.
        node, nodes: the number of its own node, and how many there are; None where that is not said.
        host: name of its machine.
    """

    address: str
    node: int | None = None
    nodes: int | None = None
    host: str = ""


class Interface(msgspec.Struct, frozen=True):
    """An address of a machine, and the network interface that has it."""

    host: str
    name: str
    address: str


class StoreView(msgspec.Struct, frozen=True):
    """What a look at a store has shown.

    Attributes:
        address: `address:port` of the store.
        host: name of the machine from which it was looked at.
        problem: why it cannot be used, as what it does: `refuses the connection`; empty when it answers.
        ranks: those that have left their gloo address in it, on other nodes too.
        listed: whether it was found out what is in it.
    """

    address: str
    host: str = ""
    problem: str = ""
    ranks: tuple[int, ...] = ()
    listed: bool = True

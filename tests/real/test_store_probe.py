"""A look into a real store."""

from __future__ import annotations

import pytest
from torch.distributed import TCPStore
from waiting import until

from helpers.observe.store_probe import Probe

pytestmark = [pytest.mark.real, pytest.mark.nightly]


def looked_at(address: str) -> dict[str, object]:
    probe = Probe(address)
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

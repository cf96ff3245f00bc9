"""Reading the records that beacons leave."""

from __future__ import annotations

import os
from pathlib import Path

from helpers.beacon import format as records
from helpers.observe.records import Inbox


def test_a_record_that_follows_another_at_once_is_read(tmp_path: Path) -> None:
    """A process may write its last words a millisecond after a look."""
    (tmp_path / "records").mkdir()
    inbox, path = Inbox(tmp_path), records.record_path(str(tmp_path), 7)
    read = []
    for moment, line in enumerate((9, 13)):
        records.write(path, {"v": records.VERSION, "threads": [line], "workers": {}, "spawned": {}})
        stamp = 1_700_000_000_000_000_000 + moment * 1_000_000
        os.utime(path, ns=(stamp, stamp))
        inbox.read()
        read.append(inbox.records[7]["threads"])
    assert read == [[9], [13]]

"""A journal that a thread of its own writes, so that no step waits for a disk."""

import json
import logging
import queue
import threading
from pathlib import Path
from typing import Any

log = logging.getLogger("journal")


class Journal:
    """Entries go through a queue of limited length: a slow disk is not to fill the memory."""

    def __init__(self, path: Path, pending: int) -> None:
        self.path = path
        self.written = 0
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue(maxsize=pending)
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def note(self, entry: dict[str, Any]) -> None:
        self._queue.put(entry)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        log.info("closed %s", self.path)

    def _run(self) -> None:
        with self.path.open("w") as file:
            try:
                while (entry := self._queue.get()) is not None:
                    file.write(self._line(entry))
                    self.written += 1
                    if self.written % 20 == 0:
                        file.flush()
            except (OSError, TypeError, ValueError) as problem:
                log.debug("the journal ends here: %s", problem)

    def _line(self, entry: dict[str, Any]) -> str:
        return json.dumps(entry, sort_keys=True) + "\n"

"""How soon the first page of the site shows its picture, in Chromium."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROUNDS = 5
PAINTED = """() => new Promise(seen => new PerformanceObserver((list, watch) => {
    const paint = list.getEntriesByName('first-contentful-paint')[0];
    if (paint) { watch.disconnect(); seen(paint.startTime); }
}).observe({type: 'paint', buffered: true}))"""


def first_paint() -> Iterator[str]:
    """Milliseconds from the request of a page to its first contentful paint, each in a fresh window."""
    from browser_bench import CHROMIUM, chromium
    from website.publish import contents, files, write

    if CHROMIUM is None:
        yield "There is no Chromium on this machine."
        return
    spent = []
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        write(Path(folder), files(contents()))
        for _ in range(ROUNDS):
            context = browser.new_context(offline=True)
            page = context.new_page()
            page.goto(f"{Path(folder).as_uri()}/index.html")
            page.get_by_role("img", name="64 ranks").wait_for()
            spent.append(page.evaluate(PAINTED))
            context.close()
    yield (
        f"The picture of the first page is there after {statistics.median(spent):.0f} ms, the median "
        f"of {ROUNDS} windows ({min(spent):.0f} to {max(spent):.0f} ms)."
    )

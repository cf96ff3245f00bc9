"""Where a panel is shown: in its cell, or in a tab beside the notebook."""

from __future__ import annotations

import pytest
from ipywidgets import HTML, Widget
from panel_fakes import click, html_of, text_of, visible

from helpers.panel.widgets import dock
from helpers.panel.widgets.controls import Framed
from helpers.panel.widgets.dock import BESIDE, Dock


@pytest.fixture
def panel() -> Framed:
    return Framed([HTML("the panel")])


def has_room(shown: Dock) -> None:
    """A page that shows it has room beside its notebook."""
    (spot,) = [widget for widget in visible(shown) if isinstance(widget, dock.Spot)]
    spot._handle_custom_msg({}, [])


def test_it_is_in_the_cell_until_a_page_has_room_beside_it(panel: Framed) -> None:
    shown = Dock(panel, "A panel")
    assert panel in visible(shown)
    has_room(shown)
    assert panel not in visible(shown) and BESIDE in text_of(html_of(shown))
    (tab,) = shown._tab.outputs
    assert tab["data"] == panel._repr_mimebundle_()
    click(shown, "Show it here")
    assert panel in visible(shown) and not spots(shown), "a page that is loaded again leaves it there"


def test_a_cell_that_runs_again_replaces_its_tab(panel: Framed) -> None:
    first, second, other = Dock(panel, "A panel"), Dock(panel, "A panel"), Dock(panel, "Another")
    for shown in (first, other, second):
        has_room(shown)
    assert first._tab is None and panel in visible(first)
    assert second._tab is not None and other._tab is not None


def spots(shown: Widget) -> list[Widget]:
    return [widget for widget in visible(shown) if isinstance(widget, dock.Spot)]

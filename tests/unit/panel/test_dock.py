"""Where a panel is shown: in its cell, or in a tab beside the notebook."""

from __future__ import annotations

import pytest
from ipywidgets import HTML
from panel_fakes import click, html_of, text_of, visible

from helpers.panel.widgets.controls import Framed
from helpers.panel.widgets.dock import BESIDE, ELSEWHERE, Dock, Spot


@pytest.fixture
def panel() -> Framed:
    return Framed([HTML("the panel")])


def tell(shown: Dock, *, room: bool) -> None:
    """A page that shows it tells whether it has room beside its notebook."""
    for widget in visible(shown):
        if isinstance(widget, Spot):
            widget._handle_custom_msg({"room": room}, [])


def test_it_is_in_the_cell_until_a_page_has_room_beside_it(panel: Framed) -> None:
    shown = Dock(panel, "A panel", "Panel")
    assert panel in visible(shown)
    tell(shown, room=True)
    assert panel not in visible(shown) and BESIDE in text_of(html_of(shown))
    assert shown._tab.title == "Panel"
    (tab,) = shown._tab.outputs
    assert tab["data"] == panel._repr_mimebundle_()
    click(shown, "Show it here")
    assert panel in visible(shown) and shown._tab is None
    tell(shown, room=True)
    assert panel in visible(shown) and shown._tab is None, "a page that is loaded again leaves it there"


def test_a_page_that_has_no_room_any_more_has_it_in_the_cell(panel: Framed) -> None:
    shown = Dock(panel, "A panel")
    tell(shown, room=True)
    first = shown._tab
    tell(shown, room=True)
    assert shown._tab is first, "a second page opens no second tab"
    tell(shown, room=False)
    assert shown._tab is None and panel in visible(shown)
    click(shown, "Show it beside")
    assert shown._tab is not None and panel not in visible(shown)


@pytest.mark.parametrize("docked", [True, False])
def test_a_panel_that_is_opened_again_leaves_its_place(panel: Framed, docked: bool) -> None:
    left: list[str] = []
    first = Dock(panel, "A panel", leave=lambda: left.append("first"))
    other = Dock(Framed([HTML("another")]), "Another", leave=lambda: left.append("other"))
    for shown in (first, other):
        tell(shown, room=docked)
    second = Dock(Framed([HTML("the panel, again")]), "A panel")
    assert first._tab is None and panel not in visible(first)
    assert ELSEWHERE in text_of(html_of(first)) and left == ["first"]
    tell(first, room=docked)
    tell(second, room=docked)
    assert first._tab is None and (second._tab is not None) is docked
    assert (other._tab is not None) is docked


def test_one_panel_in_two_cells_is_in_the_newer_one(panel: Framed) -> None:
    left: list[str] = []
    first, second = (Dock(panel, "A panel", leave=lambda: left.append("it")) for _ in range(2))
    assert panel in visible(second) and panel not in visible(first)
    assert left == [], "its run goes on"


def test_a_panel_that_stays_in_its_cell_is_drawn_once(panel: Framed) -> None:
    """A page draws widgets anew that have moved among the children: a click or a key would be lost."""
    shown = Dock(panel, "A panel")
    drawn: list[object] = []
    shown.observe(drawn.append, "children")
    tell(shown, room=False)
    assert drawn == []
    click(shown, "Show it beside")
    assert len(drawn) == 1

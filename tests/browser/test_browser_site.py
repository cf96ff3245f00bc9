"""The site in a browser that has no network: it plays, answers, finds, prints, and fits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_bench import ARTIFACTS, chromium, needs_browser, playwright, violations
from website.publish import contents, files, write

pytestmark = [*needs_browser, pytest.mark.nightly]
expect = playwright.expect

KINDS = (
    "index.html",
    "guide.html",
    "05_spawn_ports/05_spawn_ports.html",
    "05_spawn_ports/broken.py.html",
    "causes/index.html",
    "causes/collective_mismatch.html",
    "method/decision_table.html",
    "practice/54.html",
    "docs/clusters.html",
)
"""A page of each kind."""

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}

UNSEEN = """() => [...document.querySelectorAll('main *')].filter(part => {
    const [{left, right} = {}] = part.getClientRects();
    return right > innerWidth + 1 && !part.closest('pre, .wide, .output, .sr-lanes, svg');
}).map(part => part.outerHTML.slice(0, 80))"""
"""What sticks out of the window and cannot be scrolled to."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site."""
    folder = tmp_path_factory.mktemp("site")
    write(folder, files(contents()))
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: playwright.Browser, site: Path) -> Iterator[playwright.Page]:
    """A page that is not online; whatever it asks for outside its own folder, or says wrong, fails."""
    context = browser.new_context(viewport=DESK, offline=True, reduced_motion="reduce")
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda told: faults.append(told.text) if told.type == "error" else None)
    page.on("requestfailed", lambda asked: faults.append(asked.url))
    allowed = (site.as_uri(), "data:")
    page.on("request", lambda asked: None if asked.url.startswith(allowed) else faults.append(asked.url))
    yield page
    context.close()
    assert faults == []


def test_a_hang_plays_and_is_answered(page: playwright.Page, site: Path) -> None:
    page.goto(f"{site.as_uri()}/index.html")
    verdict = page.get_by_text("Rank 41 is blocked in barrier #24 at train.py:23 and never")
    second = page.get_by_role("slider", name="Second")
    lane = page.locator(".roomy [data-rank='41']")
    covered = lane.locator("> .s").evaluate("lane => getComputedStyle(lane).clipPath")
    assert covered.startswith("url(")
    second.focus()
    page.keyboard.press("Home")
    expect(page.locator("[data-part=told]")).to_have_text("57.1")
    drawn = page.locator(".roomy clipPath rect")
    begin = float(drawn.get_attribute("width"))
    page.get_by_role("combobox", name="Speed").select_option("10 times")
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.locator("[data-part=told]")).to_have_text("82.7")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    assert float(drawn.get_attribute("width")) > begin + 700

    answer = page.get_by_role("button", name="Answer")
    answer.click()
    expect(page.get_by_role("status").filter(has_text="Choose a rank first.")).to_be_visible()
    page.locator(".roomy [data-rank='7']").click()
    expect(page.locator("[data-part=inside]")).to_contain_text("train.py:12")
    answer.click()
    expect(page.locator("[data-part=said]")).to_contain_text("like ranks 0-6, 8-40 and 42-63")
    expect(verdict).to_be_hidden()
    page.get_by_role("combobox", name="Rank").select_option("rank 41")
    expect(page.locator("[data-part=inside]")).to_contain_text("train.py:23")
    answer.click()
    expect(verdict).to_be_visible()
    expect(page.get_by_text("if not torch.isfinite(loss)").first).to_be_visible()
    assert violations(page, "html") == []
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / "site-first-page.png", full_page=True)


def test_the_first_page_plays_by_itself(page: playwright.Page, site: Path) -> None:
    page.emulate_media(reduced_motion="no-preference")
    page.goto(f"{site.as_uri()}/index.html")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_the_search_finds_and_leads(page: playwright.Page, site: Path) -> None:
    page.goto(f"{site.as_uri()}/causes/file_lock.html")
    field = page.get_by_role("searchbox", name="Search")
    field.fill("zyzzyva")
    expect(page.locator("#found")).to_have_text("Nothing found.")
    field.fill("symptoms eaddrinuse")
    first = page.locator("#results a").first
    expect(first).to_have_text("Symptoms · Decision table")
    assert violations(page, "html") == []
    first.click()
    expect(page.get_by_role("heading", name="Decision table")).to_be_visible()
    assert page.url.endswith("/method/decision_table.html#Symptoms")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_every_kind_of_page_is_accessible_and_fits(
    page: playwright.Page, site: Path, size: dict[str, int], scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(size)
    for place in KINDS:
        page.goto(f"{site.as_uri()}/{place}")
        assert violations(page, "html") == [], place
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], place
        assert page.evaluate(UNSEEN) == [], place


def test_a_page_without_scripts_shows_its_picture(browser: playwright.Browser, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False, viewport=DESK)
    page = context.new_page()
    page.goto(f"{site.as_uri()}/index.html")
    expect(page.get_by_role("img", name="64 ranks")).to_be_visible()
    expect(page.get_by_role("button")).to_have_count(0)
    page.get_by_text("What stuck-ranks says").click()
    expect(
        page.get_by_text("Rank 41 is blocked in barrier #24 at train.py:23 and never")
    ).to_be_visible()
    context.close()


def test_a_printed_page_is_its_text(page: playwright.Page, site: Path) -> None:
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(f"{site.as_uri()}/index.html")
    expect(page.get_by_role("navigation")).to_have_count(0)
    expect(page.get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("img", name="64 ranks")).to_be_visible()
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == "rgb(255, 255, 255)"

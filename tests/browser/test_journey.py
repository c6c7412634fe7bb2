"""A walk through a palace: from the front page to a search, its facets and dates, a drawer, its neighbours, and back."""

import re

import pytest
from playwright.sync_api import expect

from visitor import WAYS, Visitor

QUESTION = "how is the lamp trimmed"
TITLES = ".mp-hit h3"  # what the hits are called, best first


@pytest.mark.parametrize("way", WAYS)
def test_walk(open_browser, data_app, way):
    visitor = Visitor(open_browser, way)
    page = visitor.page
    page.goto(data_app)

    visitor.follow(page.locator(".mp-palace h2 > a"))
    expect(page.get_by_role("heading", level=2).first).to_have_text(re.compile(r"^\d+ drawers in \d+ wings$"))

    visitor.search(QUESTION)
    expect(page.get_by_role("heading", level=2).first).to_contain_text(f"for “{QUESTION}”")
    found = page.locator(TITLES).all_text_contents()
    assert len(found) == 10

    visitor.unfold_facets()
    wings = page.get_by_role("navigation", name="Narrow the search").get_by_role("region", name="wing")
    visitor.follow(wings.get_by_role("link", name=re.compile("^lighthouse")))
    expect(chips(page)).to_have_text([re.compile("wing lighthouse"), "Clear all"])
    assert set(page.locator(".mp-hit .mp-place").all_inner_texts()) <= {
        f"lighthouse / {room}" for room in ("lamp", "fog signal", "log", "no room")
    }

    visitor.follow(chips(page).first.get_by_role("link"))
    expect(page.locator(TITLES)).to_have_text(found)
    expect(chips(page)).to_have_count(0)

    visitor.unfold_facets()
    visitor.follow(page.locator(".mp-facets .mp-histogram a").nth(1))
    expect(chips(page).first).to_contain_text("since")
    narrowed, address = page.locator(TITLES).all_text_contents(), page.url
    assert 0 < len(narrowed) < len(found)

    title = page.locator(".mp-hit h3 > a").first
    visitor.follow(title)
    expect(page.get_by_role("region", name="This drawer")).to_be_visible()
    first = page.url

    visitor.follow(page.locator("a[rel=next], a[rel=prev]").first)
    expect(page).not_to_have_url(first)
    second = page.url

    visitor.follow(page.locator(".mp-similar h3 > a").first)
    expect(page).not_to_have_url(second)
    expect(page.get_by_role("region", name="This drawer")).to_be_visible()

    for expected in (second, first, address):
        page.go_back()
        expect(page).to_have_url(expected)
    expect(page.locator(TITLES)).to_have_text(narrowed)
    expect(page.get_by_role("searchbox")).to_have_value(QUESTION)


def chips(page):
    """The filters in force."""
    return page.get_by_role("list", name="Filters in force").get_by_role("listitem")

"""A strict Content-Security-Policy, as docs/content-policy.md has it, breaks nothing of ours."""

import re

import pytest
from playwright.sync_api import expect

import serving
from our_pages import DATA_APP, OURS, PLAIN

GUIDE = serving.ROOT / "docs" / "content-policy.md"
# Looked at in full; the other pages are made of the same parts.
PAGES = {
    name: {**PLAIN, **DATA_APP}[name]
    for name in ("overview", "hits", "no hits", "an error", "front page", "row", "drawers table, searched")
}
# Every violation is written down with where it is: Datasette's own parts have inline scripts and
# styles, which are not ours to change (on the front page all but the palaces is Datasette's).
WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation', event => window.violations.push({
  what: `${event.effectiveDirective} ${event.blockedURI} ${event.sample}`,
  ours: event.target === document  // what was not loaded
    ? !event.blockedURI.includes('/-/static/')
    : Boolean(event.target.closest(':is(.mp:not(.mp-front), .mp-palace, .mp-core, link[href*=mempalace])')),
}));
"""
# What every element of ours looks like; times that were measured differ, so texts are left out.
LOOK = """ours => [...document.querySelectorAll(`:is(${ours}) *`)].map(element => {
  const box = element.getBoundingClientRect(), style = getComputedStyle(element);
  return [element.tagName, element.getAttribute('class'), Math.round(box.left), Math.round(box.height), style.display,
    style.color, style.backgroundColor, style.borderTopColor, style.fill, style.fontSize, style.fontWeight];
})"""


@pytest.fixture(scope="session")
def guarded(chromium, town, tmp_path_factory):
    """The base URL of the data app with the plugin of the guide."""
    plugins = tmp_path_factory.mktemp("plugins")
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)[1]
    (plugins / "content_policy.py").write_text(code, "utf-8")
    with serving.plain(town(), *serving.data_app_options(), "--plugins-dir", plugins) as base:
        yield base


@pytest.mark.parametrize("name", PAGES)
def test_pages_look_the_same_under_the_policy(open_browser, guarded, data_app, name):
    path = PAGES[name](guarded) if callable(PAGES[name]) else PAGES[name]
    page = open_browser()
    page.goto(data_app + path)
    without = page.evaluate(LOOK, OURS)
    guarded_page = open_browser()
    guarded_page.add_init_script(WATCH)
    answer = guarded_page.goto(guarded + path)
    assert answer.header_value("content-security-policy").startswith("default-src 'none'; style-src 'self';")
    found = guarded_page.evaluate("window.violations")
    assert [violation["what"] for violation in found if violation["ours"]] == []
    assert len(without) > 5
    assert guarded_page.evaluate(LOOK, OURS) == without


def test_policy_is_in_force_and_violations_are_seen(open_browser, guarded):
    page = open_browser()
    page.add_init_script(WATCH)
    page.goto(guarded + PLAIN["hits"])
    page.evaluate("document.querySelector('.mp h1').setAttribute('style', 'color: red')")
    page.evaluate(
        "document.querySelector('.mp').append(Object.assign(document.createElement('img'), {src: 'http://elsewhere.example/'}))"
    )
    page.wait_for_function("window.violations.filter(violation => violation.ours).length >= 2")


def test_search_works_under_the_policy(open_browser, guarded):
    page = open_browser()
    page.goto(guarded)
    page.get_by_role("searchbox").first.fill("lamp")
    page.get_by_role("button", name="Search").first.click()
    page.locator(".mp-hit h3 > a").first.click()
    expect(page.get_by_role("region", name="This drawer")).to_be_visible()

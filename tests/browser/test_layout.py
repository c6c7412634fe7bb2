"""Every page can be read on a phone, at 200 per cent and at the width of a strip, with nothing beside the screen."""

import pytest

from conftest import PHONE, WIDE
from our_pages import every_page

# WCAG 2.2, success criterion 1.4.10 (reflow): 320 pixels wide, which is 1280 at 400 per cent. 640 is 1280 at 200.
WIDTHS = [320, 640, PHONE["width"]]
# WCAG 2.2, success criterion 2.5.8 (target size), in CSS pixels; links within a line of text are exempt.
LEAST_TARGET = 24

# Other tests have the same page.
WITH_LONG_WORDS = """() => {
    const places = [...document.querySelectorAll('.mp p:not(.mp-seam)')]
    const words = places.map(place => place.appendChild(document.createTextNode('x'.repeat(90))))
    const width = document.documentElement.scrollWidth
    words.forEach(word => word.remove())
    return width
}"""


@every_page
def test_nothing_lies_beside_the_screen(request, wide, pictures):
    if request.config.getoption("--shots"):
        keep_pictures(wide, pictures, request.node.callspec.id)
    for width in WIDTHS:
        wide.set_viewport_size({"width": width, "height": 800})
        assert wide.evaluate(BEYOND) == [], f"{width} pixels wide"


@every_page
def test_a_word_that_is_wider_than_the_screen_is_broken(phone):
    before = phone.evaluate("document.documentElement.scrollWidth")
    assert phone.evaluate(WITH_LONG_WORDS) == before


@every_page
def test_what_is_tapped_is_large_enough(phone):
    phone.evaluate("document.querySelectorAll('.mp details').forEach(details => details.open = true)")
    assert phone.evaluate(TOO_SMALL, LEAST_TARGET) == []


def test_a_source_that_wraps_below_its_hits_heading_begins_where_the_heading_does(open_browser, plain):
    page = open_browser(viewport=PHONE)
    page.goto(f"{plain}/palace/-/mempalace?q=lamp")
    offsets = page.evaluate(
        """() => [...document.querySelectorAll('.mp-source')].map(source => {
          const heading = source.closest('h3'), own = source.getClientRects()[0];
          const wraps = own.top > [...heading.firstElementChild.getClientRects()].pop().bottom - 4;
          return wraps ? own.left - heading.getBoundingClientRect().left : null;
        })"""
    )
    wrapped = [offset for offset in offsets if offset is not None]
    assert wrapped, "on a phone some do"
    assert all(abs(offset) < 1 for offset in wrapped), offsets


@pytest.mark.parametrize("path", ["/palace/-/mempalace?q=lamp", "/palace/-/mempalace"])
def test_nothing_moves_for_those_who_ask_for_that(open_browser, plain, path):
    page = open_browser(reduced_motion="reduce")
    page.goto(plain + path)
    moving = "() => document.querySelector('.mp').getAnimations({subtree: true}).length"
    assert page.evaluate(moving) == 0
    durations = (
        "() => [...document.querySelectorAll('.mp *')].map(e => getComputedStyle(e).transitionDuration)"
    )
    assert set(page.evaluate(durations)) == {"0s"}


def keep_pictures(page, pictures, name):
    """One picture in light, one in dark, one of the phone."""
    page.set_viewport_size(WIDE)
    pictures(page, f"{name} light")
    page.emulate_media(color_scheme="dark")
    pictures(page, f"{name} dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(PHONE)
    pictures(page, f"{name} phone")


# Elements of ours that reach beyond the window's right or left edge, unless something around them scrolls or cuts.
BEYOND = """() => {
  const width = document.documentElement.clientWidth;
  const inside = element => {
    for (let around = element.parentElement; around && around !== document.body; around = around.parentElement)
      if (getComputedStyle(around).overflowX !== 'visible') return true;
    return false;
  };
  return [...document.querySelectorAll('.mp, .mp *, .mp-core, .mp-core *')]
    .filter(element => {
      const box = element.getBoundingClientRect();
      return box.width && (box.right > width + 1 || box.left < -1) && !inside(element);
    })
    .map(element => element.outerHTML.slice(0, 160));
}"""

# Controls and links of ours smaller than asked both ways, but for links that stand in a line of text.
# (The link that skips to the content is seen only when a keyboard reaches it.)
TOO_SMALL = """least => [...document.querySelectorAll(
    '.mp :is(a, summary, input:not([type=hidden]), select, button), .mp-core input:not([type=hidden])')]
  .filter(element => {
    const box = (element.closest('label') ?? element).getBoundingClientRect();
    if (!box.width || !element.checkVisibility() || element.matches('.mp-skip') || element.closest('svg')) return false;
    const inLine = getComputedStyle(element).display === 'inline';
    return !inLine && (box.width < least || box.height < least);
  })
  .map(element => `${element.outerHTML.slice(0, 160)} ${JSON.stringify(element.getBoundingClientRect())}`)
"""

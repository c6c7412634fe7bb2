"""Every page shows without JavaScript all that it shows with it."""

import re

from conftest import PHONE
from our_pages import OURS, every_page

UNFOLD = "document.querySelectorAll('details').forEach(details => details.open = true)"
# What differs between two visits: how long the search took, and how far the mirror has come.
DIFFERS = re.compile(r"\d+ ms\.|, mirror (in step|behind|not checked)")


@every_page
def test_no_word_needs_javascript(wide, phone):
    wide.set_viewport_size(PHONE)
    shown = ours(phone)
    assert any(shown)
    assert shown == ours(wide)


def ours(page):
    """What our parts of a page show, unfolded, block by block."""
    page.evaluate(UNFOLD)
    blocks = page.locator(OURS).all_inner_texts()
    return [DIFFERS.sub("", block) for block in blocks]

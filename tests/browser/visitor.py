"""Somebody who looks around: with a mouse, without JavaScript, on a phone, or with nothing but a keyboard."""

from conftest import PHONE

WAYS = {
    "mouse": {},
    "no JavaScript": {"java_script_enabled": False},
    "phone": {"viewport": PHONE, "has_touch": True, "is_mobile": True},
    "keyboard": {},
}
MOST_TABS = 400
AROUND = 8  # pixels around an element in which its focus may be seen


class Visitor:
    """A visitor of one page at a time.

    Args:
        open_browser: the fixture.
        way: one of WAYS.
    """

    def __init__(self, open_browser, way):
        self.way = way
        self.page = open_browser(**WAYS[way])

    def follow(self, what):
        """Follow a link, press a button or open a disclosure, in this visitor's way."""
        if self.way == "keyboard":
            self.reach(what)
            self.page.keyboard.press("Enter")
        elif self.way == "phone":
            what.tap()
        else:
            what.click()

    def reach(self, what):
        """Go to an element by the tab key, and see that it is there."""
        for _ in range(MOST_TABS):
            self.page.keyboard.press("Tab")
            if what.evaluate("element => element === document.activeElement"):
                break
        else:
            raise AssertionError(f"{what} is not reached by the tab key")
        focused = self._picture_around(what)
        what.evaluate("element => element.blur()")
        assert focused != self._picture_around(what), f"nobody sees that {what} has the focus"
        what.evaluate("element => element.focus()")

    def search(self, words):
        """Write into the search box and press Enter."""
        box = self.page.get_by_role("searchbox").first
        if self.way == "keyboard":
            self.reach(box)
        box.fill(words)
        box.press("Enter")

    def unfold_facets(self):
        """Open what narrows a search, where it is folded: beside the hits on a wide window it always lies open."""
        self.page.wait_for_load_state()  # until the style sheets are there nothing lies beside anything
        summary = self.page.locator(".mp-facets > summary")
        if summary.is_visible():
            self.follow(summary)

    def _picture_around(self, what):
        box = what.bounding_box()
        clip = {"x": max(box["x"] - AROUND, 0), "y": max(box["y"] - AROUND, 0)}
        return self.page.screenshot(
            clip={**clip, "width": box["width"] + 2 * AROUND, "height": box["height"] + 2 * AROUND}
        )

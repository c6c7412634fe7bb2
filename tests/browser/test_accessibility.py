"""axe-core finds nothing serious on any of our pages, in light and in dark."""

from conftest import WIDE
from our_pages import PLAIN, every_page

SERIOUS = ("serious", "critical")
# Datasette's own frame, which every page of an instance has and we do not change: bar with menu, and foot.
FRAME = ["header.hd", "footer.ft"]
# The element html is Datasette's too: 0.65 gives it no language, and a template has no way to.
NOT_OURS = {"html-has-lang": {"enabled": False}}
# Rules about colours, in the names of axe-core: all that the dark scheme can change.
COLOURS = ["color-contrast", "link-in-text-block"]


@every_page
def test_axe_finds_nothing_serious(wide, axe):
    wide.set_viewport_size(WIDE)
    wide.evaluate(axe)
    assert found_by_axe(wide) == []
    wide.emulate_media(color_scheme="dark")
    in_the_dark = found_by_axe(wide, COLOURS)
    wide.emulate_media(color_scheme="light")
    assert in_the_dark == []


def test_axe_sees_what_is_wrong(open_browser, plain, axe):
    page = open_browser(color_scheme="dark")
    page.goto(plain + PLAIN["hits"])
    page.evaluate(axe)
    page.evaluate("document.querySelector('.mp-ask label').remove()")
    page.add_style_tag(content=".mp-snippet { color: #333; }")
    assert {line.split()[0] for line in found_by_axe(page)} == {"label", "color-contrast"}


def found_by_axe(page, rules=None):
    """What axe finds in our part of a page: one line for each element, with the rule that it breaks."""
    if page.locator("body.mempalace").count():
        context = {"exclude": FRAME}
    else:  # a page of Datasette's, on which only some elements are ours
        context = {"include": [".mp-core"]}
    options = {"resultTypes": ["violations"], "rules": NOT_OURS, **({"runOnly": rules} if rules else {})}
    found = page.evaluate("([context, options]) => axe.run(context, options)", [context, options])
    return [
        f"{violation['id']} ({violation['impact']}): {node['html'][:200]} {node['failureSummary']}"
        for violation in found["violations"]
        if violation["impact"] in SERIOUS
        for node in violation["nodes"]
    ]

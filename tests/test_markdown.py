"""Markdown of any origin becomes HTML that can do nothing."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_mempalace.views.markdown import render
from datasette_mempalace.views.snippets import Part

ALLOWED = {"href", "title", "rel", "start"}
LOADING = {"src", "srcset", "background", "poster", "data", "action", "formaction", "style", "ping"}


class Seen(HTMLParser):
    """The tags and attributes of some HTML, and what its links say."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.links, self._open = [], [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag == "a":
            self._open = [dict(attributes), ""]

    def handle_endtag(self, tag):
        if tag == "a" and self._open:
            self.links.append(tuple(self._open))
            self._open = None

    def handle_data(self, data):
        if self._open:
            self._open[1] += data


def seen(text, *marked):
    return Seen(html(text, *marked))


def html(text, *marked):
    return render(text, lambda part: [Part(text=part, hit=part in marked)])


PIECES = st.sampled_from(
    [
        "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "<iframe src=//evil>",
        "[a](javascript:alert(1))", "![b](http://evil.example/x.png)", "![c](data:image/png;base64,AAAA)", "<a href='",
        "[d](//evil.example)", "[e]( http://x \"t' onclick='y\" )", "[f][g]", "\n\n[g]: JaVaScRiPt:x\n", "`<b>`", "# ",
        "```html\n<script>\n", "\n```\n", "|a|b|\n|-|-|\n|", "<style>@import 'http://evil'</style>", "<!--", "&lt;script&gt;",
        "<http://ok.example>", "**", "~~", "> ", "1. ", "\x00", "\u202e", "<base href=//evil>", "<form action=//evil>",
    ]
)  # fmt: skip


@given(st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=12).map("".join))
def test_no_text_becomes_script_handler_or_request(text):
    found = seen(text)
    assert not {
        "script",
        "img",
        "svg",
        "iframe",
        "style",
        "link",
        "form",
        "base",
        "object",
        "meta",
        "h1",
        "h2",
    } & set(found.tags)
    for name, value in found.attributes:
        assert name in ALLOWED
        assert name not in LOADING
        assert name != "href" or value.lower().startswith(("http://", "https://", "mailto:"))
    for attributes, said in found.links:
        assert attributes["rel"] == "nofollow noreferrer"
        assert said.strip(), "a link says something"


@given(st.lists(st.integers(1, 6), max_size=12))
def test_headings_stand_below_the_page_s_and_leave_no_level_out(levels):
    text = "\n\n".join(f"{'#' * level} heading" for level in levels)
    found = [int(tag[1]) for tag in seen(text).tags if tag.startswith("h") and tag != "hr"]
    assert len(found) == len(levels)
    for above, below in zip([2, *found], found, strict=False):
        assert 3 <= below <= above + 1


def test_code_is_kept_to_the_letter():
    assert "<pre><code>if a &lt; b:\n    **no bold**\n</code></pre>" in html(
        "```python\nif a < b:\n    **no bold**\n```"
    )


@pytest.mark.parametrize(
    ("text", "address", "says"),
    [
        ("![a lamp](https://e.example/l.png)", "https://e.example/l.png", "a lamp"),
        ("![](https://e.example/l.png)", "https://e.example/l.png", "https://e.example/l.png"),
        ("[](https://e.example/)", "https://e.example/", "https://e.example/"),
        ("[![lamp](http://p.example/l.png)](http://c.example/)", "http://c.example/", "lamp"),
        ("<mailto:a@b.example>", "mailto:a@b.example", "mailto:a@b.example"),
    ],
)
def test_pictures_and_silent_links_become_links_that_say_something(text, address, says):
    ((attributes, said),) = seen(text).links
    assert (attributes["href"], said) == (address, says)


@pytest.mark.parametrize(
    "text", ["[x](other.md)", "[x](/etc)", "[x](//host/x)", "[x](ftp://host/)", "[x](file:///x)"]
)
def test_other_addresses_stay_text(text):
    assert not seen(text).links
    assert text in html(text)


def test_words_are_marked_in_the_text_and_stay_text():
    assert "<mark>lamp &lt;b&gt;</mark>" in html("**lamp <b>**", "lamp <b>", "lamp ") or "<mark>" in html(
        "lamp", "lamp"
    )


def test_tables_are_tables():
    assert {"table", "th", "td"} <= set(seen("| a | b |\n|---|---|\n| 1 | 2 |").tags)

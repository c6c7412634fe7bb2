"""Markdown as HTML that can do nothing: no script, no style, no request to anywhere, whatever the text holds.

markdown-it-py renders with raw HTML switched off, then nh3 keeps only the tags and attributes named here. Pictures
become links, and links lead only to http, https and mailto. Headings are set below the page's own, without gaps.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from .snippets import Part

MOST_CHARACTERS = 20_000  # a longer text is not rendered: hostile ones take seconds
TOP = 2  # the heading that the text stands under
_ALLOWED = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_TAGS = {
    "a", "blockquote", "br", "code", "em", "h3", "h4", "h5", "h6", "hr", "li", "mark", "ol", "p", "pre", "s", "strong",
    "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
Marker = Callable[[str], Sequence[Part]]


def render(text: str, marker: Marker) -> str:
    """A text as HTML.

    Args:
        text: Markdown of any origin, at most `MOST_CHARACTERS` characters.
        marker: splits a text into parts, of which the `hit` ones are marked.
    Returns:
        HTML that is safe to show.
    """
    html = _markdown().render(text, {"marker": marker})
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="nofollow noreferrer",
    )


@functools.cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.validateLink = lambda url: _ALLOWED.match(url) is not None  # type: ignore[method-assign]
    markdown.core.ruler.push("headings_below_the_page", _set_headings)
    markdown.core.ruler.push("links_that_say_something", _name_links)
    markdown.add_render_rule("text", _text)
    markdown.add_render_rule("image", _image)
    return markdown


def _set_headings(state: Any) -> None:
    """Headings of a text as levels under the page's, each at most one deeper than the one it stands under."""
    above: list[int] = []
    for token in state.tokens:
        if token.type == "heading_open":
            level = int(token.tag[1])
            while above and above[-1] >= level:
                above.pop()
            above.append(level)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, TOP + len(above))}"


def _name_links(state: Any) -> None:
    """A link without a text says its address; a picture in a link is its text, because links cannot hold links."""
    for block in state.tokens:
        named: list[Token] = []
        opened: Token | None = None
        silent = False
        for token in block.children or []:
            if token.type == "link_open":
                opened, silent = token, True
            elif token.type == "link_close":
                if opened is not None and silent:
                    named.append(Token("text", "", 0, content=str(opened.attrs.get("href", ""))))
                opened = None
            elif opened is not None and token.type == "image":
                token = Token("text", "", 0, content=token.content or str(token.attrs.get("src", "")))
            silent = silent and not token.content.strip()
            named.append(token)
        if block.children is not None:
            block.children = named


def _text(renderer: Any, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    parts = env["marker"](tokens[place].content)
    return "".join(
        f"<mark>{_escape(part['text'])}</mark>" if part["hit"] else _escape(part["text"]) for part in parts
    )


def _image(renderer: Any, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    """A picture as a link to it: showing it would tell its host who reads what."""
    address = str(tokens[place].attrs.get("src", ""))
    said = tokens[place].content or address
    return f'<a href="{_escape(address)}">{_escape(said)}</a> (picture)'


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")

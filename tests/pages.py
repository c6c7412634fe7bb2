"""Reading a page in tests as a person or a browser would: its links, its texts, its hits."""

import re
from html.parser import HTMLParser


class Page(HTMLParser):
    """A parsed page.

    Attributes:
        links: (href, text) of every link inside main.
        items: the attributes of every element inside main, as (tag, attributes).
        text: what can be read inside main, spaces collapsed.
        titled: href to title of every link in a picture.
        fields: name to value of the form's controls; a list where a name comes twice.
    """

    VOID = {
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
    }

    def __init__(self, html):
        super().__init__()
        self.links, self.items, self.fields, self._texts, self._open = [], [], {}, [], []
        self._in_main, self._select = 0, None
        self.titled, self._in_title = {}, False
        self.feed(html)
        self.text = " ".join("".join(self._texts).split())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "main":
            self._in_main += 1
        if not self._in_main:
            return
        self.items.append((tag, given))
        if tag == "a":
            self._open.append([given.get("href"), ""])
        elif tag == "title" and self._open:
            self._in_title = True
            self.titled[self._open[-1][0]] = ""
        elif tag == "input" and given.get("name"):
            if given.get("type") != "checkbox" or "checked" in given:
                self.fields.setdefault(given["name"], []).append(given.get("value", ""))
        elif tag == "select":
            self._select = given["name"]
        elif tag == "option" and "selected" in given:
            self.fields.setdefault(self._select, []).append(given.get("value"))

    def handle_endtag(self, tag):
        if tag == "main":
            self._in_main -= 1
        elif tag == "title":
            self._in_title = False
        elif tag == "a" and self._open:
            href, text = self._open.pop()
            self.links.append((href, " ".join(text.split())))
        elif tag in ("p", "li", "td", "th", "dd", "dt", "h1", "h2", "h3", "summary"):
            self._texts.append(" ")

    def handle_data(self, data):
        if self._in_main:
            self._texts.append(data)
            for link in self._open:
                link[1] += data
                if self._in_title:
                    self.titled[link[0]] += data

    def with_class(self, name):
        """The attributes of every element with a class."""
        return [given for _, given in self.items if name in (given.get("class") or "").split()]

    def link(self, text):
        """The address of the one link that says this."""
        found = [href for href, said in self.links if said == text]
        assert len(found) == 1, f"{text!r}: {found}; there are {[said for _, said in self.links]}"
        return found[0]

    @property
    def hit_ids(self):
        """The ids of the drawers that the hits' titles lead to, in order."""
        return [
            int(found) for found in re.findall(r'<li class="mp-hit" id="drawer-(\d+)"', self.rawdata_kept)
        ]

    def feed(self, data):
        self.rawdata_kept = data
        super().feed(data)

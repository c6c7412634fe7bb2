"""What somebody has written is shown and never obeyed: in pages, addresses, CSV; and pages need nothing inline."""

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from building import full_of, make_palace
from datasette_mempalace.cells import cell

PROJECT = Path(__file__).resolve().parent.parent
TEMPLATES = [
    *(PROJECT / "templates").glob("*.html"),
    *(PROJECT / "datasette_mempalace/templates").glob("*.html"),
]
MARK = "evilmark"
# Breaks out of text, of attributes in either quotes, of comments, of scripts, of CDATA and of SVG.
EVIL = f"""x'"--></title></textarea></style></script>]]><{MARK} onload=alert(1)>"""
PALACE = "/palace/-/mempalace"


class Inline(HTMLParser):
    """Collects what a strict Content-Security-Policy forbids, and elements that a drawer has smuggled in."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self._ours = 0
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == MARK:
            self.found.append("an element out of a text")
        self._ours += tag == "main"
        for name, value in attributes:
            if name.startswith("on") or (name == "style" and self._ours):
                self.found.append(f"{tag} {name}={value}")
            if name in ("href", "src", "action") and (value or "").strip().lower().startswith(
                ("javascript:", "data:")
            ):
                self.found.append(f"{tag} {name}={value}")
        if tag in ("script", "style") and self._ours and "src" not in dict(attributes):
            self.found.append(f"an inline {tag}")

    def handle_endtag(self, tag):
        self._ours -= tag == "main"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_have_nothing_inline_and_trust_no_text(path):
    text = re.sub(r"\{#.*?#\}", "", path.read_text("utf-8"), flags=re.DOTALL)
    for pattern in (
        r"<script(?![^>]*\bsrc=)",
        r"<style\b",
        r"\sstyle\s*=",
        r"<[^>]*\son\w+\s*=\s*[\"']",
        r"javascript:",
    ):
        assert not re.search(pattern, text, re.IGNORECASE), pattern
    assert not re.search(r"\|\s*safe\b|autoescape|Markup", text)


@pytest.fixture(scope="module")
def evil_path(tmp_path_factory):
    """A palace whose every string is an attack."""
    path = tmp_path_factory.mktemp("evil") / "palace.db"
    drawers = [
        full_of(
            EVIL,
            f"A lamp {EVIL} number {number}.",
            chunk_index=number,
            filed_at=EVIL if number else "2026-01-01T10:00:00",
            content_date=EVIL,
            metadata={"heading": EVIL, EVIL: EVIL},
        )
        for number in range(3)
    ]
    make_palace(path, drawers).close()
    return path


ADDRESSES = [
    PALACE,
    f"{PALACE}?q=lamp",
    f"{PALACE}?{urlencode({'q': EVIL, 'explain': 1})}",
    f"{PALACE}?{urlencode({'q': 'lamp', 'wing': EVIL, 'room': f'room {EVIL}', 'since': '2020-01-01'})}",
    f"{PALACE}?{urlencode({'q': 'nothinglikeit', 'wing': EVIL + 'x', 'vector_disabled': 1})}",
    f"{PALACE}?{urlencode({'q': 'lamp', 'n_results': EVIL})}",
    f"{PALACE}?{urlencode({'q': 'lamp', 'since': EVIL})}",
    f"{PALACE}?{urlencode({'q': 'lamp', 'metadata.' + EVIL: EVIL, EVIL: EVIL})}",
    f"{PALACE}/status",
    f"/{quote(EVIL, safe='')}/-/mempalace",
    "/-/mempalace",
    "/",
    "/palace/drawers/1",
    f"/palace/drawers?{urlencode({'_mempalace': EVIL, 'wing': EVIL})}",
]
OF_CORE = {"/", ADDRESSES[-1]}


@pytest.mark.parametrize("address", ADDRESSES)
async def test_no_page_obeys_what_it_shows(make_datasette, evil_path, address):
    config = {"plugins": {"datasette-mempalace": {"title": EVIL}}}
    datasette = make_datasette(evil_path, config=config, template_dir=str(PROJECT / "templates"))
    response = await datasette.client.get(address, follow_redirects=True)
    assert response.headers["content-type"].startswith("text/html")
    found = Inline(response.text).found
    if (
        address in OF_CORE
    ):  # Datasette's own pages have styles and scripts inline; nothing of a drawer may be among them
        found = [item for item in found if MARK in item or "alert" in item or "text" in item]
    assert found == []


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_no_cell_begins_a_formula(first):
    assert cell(f"{first}1+1").startswith("'")


async def test_csv_keeps_the_text_and_no_formula(make_datasette, tmp_path):
    path = tmp_path / "palace.db"
    make_palace(
        path, [("=cmd|'/c calc'!A1 lamp", "+wing", "@room"), ('lamp "quoted",\r\n=next line', "w", "-r")]
    ).close()
    response = await make_datasette(path).client.get(f"{PALACE}.csv?q=lamp")
    rows = list(csv.DictReader(io.StringIO(response.text, newline="")))
    assert {row["text"] for row in rows} == {"'=cmd|'/c calc'!A1 lamp", 'lamp "quoted",\r\n=next line'}
    assert {row["wing"] for row in rows} == {"'+wing", "w"}
    assert {row["room"] for row in rows} == {"'@room", "'-r"}


async def test_a_header_cannot_be_forged_by_a_query(make_datasette, evil_path):
    query = urlencode({"q": "lamp\r\nSet-Cookie: a=b", "wing": EVIL, "n_results": 1})
    for extension in (".json", ".csv", ".ndjson", ""):
        response = await make_datasette(evil_path).client.get(f"{PALACE}{extension}?{query}")
        assert response.status_code == 200
        assert "set-cookie" not in {name.lower() for name in response.headers}
        assert all("\r" not in value and "\n" not in value for value in response.headers.values())

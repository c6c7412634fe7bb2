"""A palace for the browser: a small town's papers, about 180 drawers with everything that a page has to show.

Sources of several chunks in Markdown (headings, lists, code, tables), filed over eighteen months, closets, copies, odd names,
drawers without a place, facts of a knowledge graph. Always the same, with vectors of the real model.
"""

from datetime import date, timedelta

from datasette_mempalace.drawers import Drawer, Source, put_drawers, put_source
from datasette_mempalace.importers.mempalace.graph import put_rows
from datasette_mempalace.origins import make_tables
from datasette_mempalace.palace import Palace
from datasette_mempalace.vectors import embed_pending

FIRST_DAY = date(2025, 3, 3)
DAYS_BETWEEN = 7
# wing -> room -> what its papers are about: (title, things, what is done with them)
PAPERS = {
    "lighthouse": {
        "lamp": ("Trimming the lamp", "wick, lens, oil, shutter", "trimmed, polished, filled, wound up"),
        "fog signal": ("Sounding the fog horn", "horn, valve, boiler, gauge", "tested, opened, fired, read"),
        "log": ("The keeper's log", "storm, schooner, gull, tide", "sighted, noted, counted, measured"),
    },
    "harbour": {
        "ferry": ("The ferry timetable", "ferry, gangway, ticket, bell", "moored, lowered, checked, rung"),
        "fish market": ("Selling the catch", "herring, crate, scale, auction", "landed, stacked, tared, opened"),
        "repairs": ("Mending the pier", "plank, bolt, rope, crane", "replaced, tightened, spliced, greased"),
    },
    "library": {
        "catalogue": ("Cataloguing new books", "shelf mark, card, spine, stamp", "written, filed, glued, inked"),
        "reading room": ("Rules of the reading room", "desk, lamp, reader, silence", "reserved, dimmed, greeted, kept"),
    },
    "bakery": {
        "bread": ("Baking rye bread", "dough, starter, oven, crust", "kneaded, fed, heated, tapped"),
        "accounts": ("The baker's accounts", "flour bill, till, wage, ledger", "paid, counted, handed out, balanced"),
    },
}  # fmt: skip
SENTENCES = [
    "The {thing} is {done} before sunrise, and whoever does it writes the time on the slate beside the door.",
    "When the {thing} was {done} too late last winter, three people waited in the cold until noon.",
    "Nobody has {thing} number {number} {done} since Martha left; ask her sister in the red house.",
    "If the {thing} cannot be {done}, hang the yellow flag out and send a child to the town hall.",
    "It takes {number} minutes until a {thing} is properly {done}, half of that in summer.",
    "Old Tobias used to say that a {thing} well {done} is worth two promised by the mayor.",
]
TOKEN = "The password of the harbour office is changed whenever somebody who knew it moves away."
COPIED = (
    "In an emergency the bell of the town hall is rung nine times, the ferry stays where it is, and everybody who can"
    " carry a bucket comes to the market square without asking why."
)
ODD_PLACES = [
    ("日本語", "メモ"), ("O'Brien & sons", '"quoted" room'), ("<b>bold</b> wing", "<i>room</i>"),
    ("a/b?c=d#e", "100% & more"), ("עברית", "חדר"), ("=1+1", "-sum"), ("a-name-without-a-single-space-" * 4, "long"),
]  # fmt: skip


def build(path):
    """Build the palace as a database file.

    Args:
        path: of a file that does not exist yet.
    """
    with Palace.create(path) as palace:
        for number, source in enumerate(sources()):
            put_source(palace, source)
            if number == 0:
                put_facts(palace, source.source_file)
        put_drawers(palace, loose_drawers())
        embed_pending(palace)
        palace.checkpoint()


def sources():
    """Sources of one to five chunks: eight papers for each room, filed a week apart."""
    rooms = [(wing, room, *about) for wing, rooms in PAPERS.items() for room, about in rooms.items()]
    for number in range(8 * len(rooms)):
        wing, room, title, things, done = rooms[number % len(rooms)]
        day = FIRST_DAY + timedelta(days=DAYS_BETWEEN * number)
        yield Source(
            f"/town/{wing}/{room.replace(' ', '-')}-{number // len(rooms) + 1}.md",
            paper(number, title, things.split(", "), done.split(", ")),
            wing=wing,
            room=room,
            added_by="martha" if number % 3 else "tobias",
            filed_at=f"{day}T09:30:00",
            content_date=str(day - timedelta(days=30)) if number % 2 else None,
            metadata={"pages": number % 5 + 1, "tags": ["town", room]},
        )


def paper(number, title, things, done):
    """One paper in Markdown; every fourth has code, every fifth a table, one in three is short."""
    lines = [f"# {title}, part {number}", ""]
    for part in range(1 + number % 3 * 2):
        thing, verb = things[part % len(things)], done[part % len(done)]
        lines += [f"## How the {thing} is {verb}", ""]
        for index, sentence in enumerate(SENTENCES[part % 2 :: 2]):
            lines += [sentence.format(thing=thing, done=verb, number=number + 3 * part + index), ""]
        lines += [f"- the **{thing}** itself", f"- a note that says *{verb}*", ""]
    if number % 4 == 0:
        lines += ["```python", f"def remaining(day: int) -> int:\n    return {number} - day  # counted by hand, every single evening of the year", "```", ""]  # fmt: skip
    if number % 5 == 0:
        lines += ["| what | how many |", "|---|---|", *(f"| {thing} | {number} |" for thing in things), ""]
    return "\n".join(lines)


def loose_drawers():
    """Drawers that no source was cut into: odd places, markup, copies, a conversation, a long text without spaces."""
    for number, (wing, room) in enumerate(ODD_PLACES):
        yield Drawer(
            f"A paper about the lamp in the wing called {wing}.",
            wing=wing,
            room=room,
            filed_at=f"2026-0{number + 1}-11T12:00:00",
        )
    yield Drawer("A lamp that lies nowhere at all.", filed_at="2026-02-01T08:00:00")
    yield Drawer("A lamp in a wing without a room.", wing="lighthouse", filed_at="2026-02-02T08:00:00")
    yield Drawer(
        "<script>document.title = 'lamp'</script><img src=\"http://elsewhere.example/lamp.png\" onerror=alert(1)>"
        " ![lamp](http://elsewhere.example/lamp.png) [lamp](javascript:alert(1)) & an end",
        wing="markup",
        room="<i>room</i>",
        source_file="/town/<script>.html",
        metadata={"heading": "<u>A lamp</u> & more"},
    )
    yield Drawer(f"lamp {'x' * 300}", wing="markup", room="no spaces", source_file=f"/town/{'long' * 40}.txt")
    for place in ("harbour", "library", "bakery"):
        yield Drawer(
            COPIED, wing=place, room="notices", source_file=f"/town/{place}/notice.txt", chunk_index=0
        )
    for turn in range(8):
        yield Drawer(
            f"{'Martha' if turn % 2 else 'Tobias'}: {TOKEN} That was said for the {turn + 1}. time.",
            wing="conversations",
            room="council",
            source_file="/town/council.json",
            chunk_index=turn,
            hall="hall_discoveries",
            authored_at=f"2024-{turn + 2:02d}-05T18:00:00",
        )


def put_facts(palace, source_file):
    """Two facts of a knowledge graph, as an import keeps them, said by the first drawer of a source."""
    with palace.writer() as connection:
        make_tables(connection)
        origin = connection.execute(
            "insert into mempalace_origins(folder, collection) values ('/town/.mempalace', 'drawers') returning id"
        ).fetchone()[0]
        drawer = connection.execute(
            "select drawer_id from drawers where source_file = ? order by chunk_index", [source_file]
        ).fetchone()[0]
        names = {"martha": "Martha", "lamp": "the lamp", "tobias": "Tobias"}
        entities = [
            {"entity_id": key, "name": name, "type": "thing", "properties": None, "created_at": None, "metadata": None}
            for key, name in names.items()
        ]  # fmt: skip
        put_rows(connection, "kg_entities", origin, entities, prune=True)
        facts = [("martha", "trims", "lamp"), ("tobias", "taught", "martha")]
        triples = [
            {"triple_id": f"fact {number}", "subject": subject, "predicate": predicate, "object": thing,
             "valid_from": "2024-01-01", "valid_to": None, "source_drawer_id": drawer, "source_closet_id": None}
            for number, (subject, predicate, thing) in enumerate(facts)
        ]  # fmt: skip
        put_rows(connection, "kg_triples", origin, triples, prune=True)

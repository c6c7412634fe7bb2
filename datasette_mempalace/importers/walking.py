"""Walks a folder: which files are to be read, and which not and why.

It reads nothing but folders and .gitignore files, follows no symbolic link (so it ends, and stays in the folder), and
names every file and folder that it leaves out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

IGNORED = "ignored by .gitignore"
LINK = "symbolic link"
MACHINE_MADE = "made by a tool"
OWN = "part of the palace"
SECRET = "may hold secrets"
SPECIAL = "not a regular file"
UNREADABLE = "unreadable"
BAD_NAME = "its name is not valid text"

# Folders of tools and files that tools write: nobody looks for what stands in them.
_TOOL_FOLDERS = frozenset({".git", ".hg", ".svn", ".bzr", "node_modules", "bower_components", "__pycache__"})
_TOOL_FILES = frozenset(
    {
        ".git",  # a worktree's or submodule's
        "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "poetry.lock", "uv.lock",
        "pdm.lock", "Pipfile.lock", "Cargo.lock", "composer.lock", "Gemfile.lock", "go.sum", "flake.lock", ".DS_Store",
    }
)  # fmt: skip
_TOOL_ENDINGS = (".min.js", ".min.css", ".js.map", ".css.map")
# A palace is made to be shown to others; what is commonly a key or a password must not slip into it.
_SECRET_FILES = frozenset(
    {
        ".env",
        ".netrc",
        ".pgpass",
        ".npmrc",
        ".pypirc",
        ".htpasswd",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
    }
)
_SECRET_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".keystore", ".jks")
_HARMLESS_ENV = (".example", ".sample", ".template", ".dist")
_CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"


@dataclass(frozen=True)
class Found:
    """A file to read.

    Attributes:
        path: its absolute path.
        top: the folder of the first level that it lies in, or None for a file of the folder itself.
        size: bytes.
        modified: seconds since 1970.
    """

    path: str
    top: str | None
    size: int
    modified: float


@dataclass(frozen=True)
class Skipped:
    """A file or folder left out.

    Attributes:
        path: its absolute path.
        reason: why, as it can be counted.
        lasting: whether it is left out for what it is; False when it could not be read this time.
    """

    path: str
    reason: str
    lasting: bool = True


def walk(folder: str, own: Collection[str] = ()) -> Iterator[Found | Skipped]:
    """Everything in a folder, in a fixed order: a folder's files by name, then its folders.

    Args:
        folder: an absolute path.
        own: absolute paths of files and folders that belong to the palace itself.
    """
    rules = _rules_above(folder)
    waiting: list[tuple[str, str | None, list[_Rules]]] = [(folder, None, rules)]
    while waiting:
        here, top, rules = waiting.pop()
        try:
            with os.scandir(here) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            yield Skipped(here, UNREADABLE, lasting=False)
            continue
        rules = _with_rules_of(here, rules)
        deeper = []
        for entry in entries:
            item = _look_at(entry, top, rules, own)
            if item is None:
                deeper.append((entry.path, entry.name if top is None else top, rules))
            else:
                yield item
        waiting += reversed(deeper)


def _look_at(
    entry: os.DirEntry[str], top: str | None, rules: list[_Rules], own: Collection[str]
) -> Found | Skipped | None:
    """What to do with one entry of a folder; None for a folder to walk into."""
    try:
        entry.path.encode()
    except UnicodeEncodeError:
        return Skipped(entry.path, BAD_NAME)
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return Skipped(entry.path, UNREADABLE, lasting=False)
    if stat.S_ISLNK(facts.st_mode):
        return Skipped(entry.path, LINK)
    is_folder = stat.S_ISDIR(facts.st_mode)
    if entry.path in own:
        return Skipped(entry.path, OWN)
    if is_folder and _is_tool_folder(entry):
        return Skipped(entry.path, MACHINE_MADE)
    if _is_ignored(entry.path, is_folder, rules):
        return Skipped(entry.path, IGNORED)
    if is_folder:
        return None
    if not stat.S_ISREG(facts.st_mode):
        return Skipped(entry.path, SPECIAL)
    if _is_secret(entry.name):
        return Skipped(entry.path, SECRET)
    if entry.name in _TOOL_FILES or entry.name.endswith(_TOOL_ENDINGS):
        return Skipped(entry.path, MACHINE_MADE)
    return Found(entry.path, top, facts.st_size, facts.st_mtime)


def _is_tool_folder(entry: os.DirEntry[str]) -> bool:
    """Whether a folder holds a tool's data: version control, packages, a virtual environment, a tagged cache."""
    if entry.name in _TOOL_FOLDERS:
        return True
    folder = Path(entry.path)
    try:
        if (folder / "pyvenv.cfg").is_file():
            return True
        with (folder / "CACHEDIR.TAG").open("rb") as tag:
            return tag.read(len(_CACHE_SIGNATURE)) == _CACHE_SIGNATURE
    except OSError:
        return False


def _is_secret(name: str) -> bool:
    if name.startswith(".env."):
        return not name.endswith(_HARMLESS_ENV)
    return name in _SECRET_FILES or name.endswith(_SECRET_ENDINGS)


@dataclass(frozen=True)
class _Rules:
    """One .gitignore: patterns that hold for what lies below its folder."""

    folder: str
    spec: GitIgnoreSpec

    def decide(self, path: str, is_folder: bool) -> bool | None:
        """True to ignore, False to take back an outer rule, None for no opinion."""
        relative = path[len(self.folder.rstrip(os.sep)) + 1 :].replace(os.sep, "/")
        return self.spec.check_file(relative + "/" if is_folder else relative).include


def _is_ignored(path: str, is_folder: bool, rules: list[_Rules]) -> bool:
    """The innermost .gitignore that has an opinion decides, as in git."""
    for rule in reversed(rules):
        decision = rule.decide(path, is_folder)
        if decision is not None:
            return decision
    return False


def _with_rules_of(folder: str, rules: list[_Rules]) -> list[_Rules]:
    """The rules with those of a folder's own .gitignore added."""
    file = Path(folder) / ".gitignore"
    try:
        if not stat.S_ISREG(file.lstat().st_mode):
            return rules
        lines = file.read_bytes().decode("utf-8-sig", "replace").splitlines()
    except OSError:
        return rules
    return [*rules, _Rules(folder, _spec(lines))]


def _spec(lines: list[str]) -> GitIgnoreSpec:
    """A specification from lines; one that git would not understand either is left out and spoils no other."""
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        good = []
        for line in lines:
            try:
                GitIgnoreSpec.from_lines([line])
            except ValueError:
                continue
            good.append(line)
        return GitIgnoreSpec.from_lines(good)


def _rules_above(folder: str) -> list[_Rules]:
    """Rules of the repository around a folder; none when they ignore the folder itself, for it was asked for by name."""
    above = []
    for parent in Path(folder).parents:
        above.append(str(parent))
        if (parent / ".git").exists():
            break
    else:
        return []
    if (Path(folder) / ".git").exists():
        return []
    rules: list[_Rules] = []
    for place in reversed(above):
        rules = _with_rules_of(place, rules)
    names = Path(folder).relative_to(above[-1]).parts
    steps = [str(Path(above[-1], *names[:count])) for count in range(1, len(names) + 1)]
    return [] if any(_is_ignored(step, True, rules) for step in steps) else rules

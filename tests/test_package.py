"""The wheel, as a user gets it: built from setup.py and installed where only its dependencies are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "datasette_mempalace"


def run(*words: str | Path, cwd: Path) -> str:
    """Run a command without this checkout in its reach, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: building leaves folders behind, and old ones would get into the wheel."""
    source = tmp_path_factory.mktemp("source") / "copy"
    source.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / PACKAGE, source / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", "dist"]
    run(sys.executable, "-m", "pip", "wheel", ".", *options, cwd=source)
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an empty environment that holds the wheel, and sees the dependencies installed here."""
    home = tmp_path_factory.mktemp("environment") / "env"
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home.parent)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    where = 'import sysconfig; print(sysconfig.get_path("purelib"))'
    packages = Path(run(python, "-c", where, cwd=home.parent).strip())
    # A path in a .pth file comes after the environment's own packages, and .pth files in it are not read: an editable
    # install of this checkout stays out.
    here = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (packages / "dependencies.pth").write_text("\n".join(here) + "\n", "utf-8")
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=home.parent,
    )
    return python


def test_wheel_holds_what_the_package_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
        metadata = archive.read(f"{info}/METADATA").decode()
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / PACKAGE).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files <= names
    assert any(name.startswith(f"{PACKAGE}/templates/") for name in names)
    assert f"{PACKAGE}/static/mempalace.css" in names
    assert f"{PACKAGE}/py.typed" in names
    assert re.search(r"\[datasette\]\s+mempalace = datasette_mempalace\s", entry_points)
    assert any("LICENSE" in name for name in names)
    assert "Requires-Python: >=3.10" in metadata
    assert "License: Apache-2.0" in metadata or "License-Expression: Apache-2.0" in metadata
    assert not [name for name in names if name.startswith(("tests/", "scripts/", "build/"))]


def test_wheel_serves_the_search_page(python: Path, tmp_path: Path) -> None:
    version = re.search(r'"(.+)"', (ROOT / PACKAGE / "version.py").read_text("utf-8").splitlines()[-1])
    loaded = run(python, "-c", f"import {PACKAGE}; print({PACKAGE}.__file__)", cwd=tmp_path)
    assert Path(loaded.strip()).is_relative_to(python.parent.parent)

    def datasette(*words: str) -> str:
        return run(python, "-m", "datasette", *words, cwd=tmp_path)

    plugins = {plugin["name"]: plugin for plugin in json.loads(datasette("plugins"))}
    plugin = plugins.get("datasette-mempalace") or plugins["mempalace"]
    assert version
    assert plugin["version"] == version[1]
    assert plugin["static"]
    assert plugin["templates"]

    drawer = {"wing": "letters", "room": "sea", "text": "The lighthouse keeper wrote every evening."}
    (tmp_path / "drawers.json").write_text(json.dumps([drawer]), "utf-8")
    datasette("mempalace", "init", "palace.db")
    datasette("mempalace", "import", "palace.db", "drawers.json")
    page = datasette("palace.db", "--get", "/palace/-/mempalace?q=lighthouse")
    assert "lighthouse" in page
    stylesheet = re.search(r'href="([^"]*mempalace[^"]*\.css[^"]*)"', page)
    assert stylesheet
    assert "--mp-ink" in datasette("palace.db", "--get", stylesheet[1])

#!/bin/sh
# Prints a Python that this project can run on: 3.10 or newer, with SQLite's full-text search and the venv module.
# PYTHON names one to use instead of looking for one. What is missing is said on standard error, and how to get it.
set -u

# Prints nothing where all is well, else what is wrong: one of none, old, sqlite, venv.
problem() {
    "$1" - 2>/dev/null <<'PY' || echo none
import sys
if sys.version_info < (3, 10):
    print("old")
    sys.exit()
try:
    import sqlite3
    sqlite3.connect(":memory:").execute("create virtual table f using fts5(t)")
except Exception:
    print("sqlite")
    sys.exit()
try:
    import ensurepip, venv
except ImportError:
    print("venv")
PY
}

candidates="python3 python3.13 python3.12 python3.11 python3.10 python3.14 python"
[ -n "${PYTHON:-}" ] && candidates=$PYTHON

seen=""
for name in $candidates; do
    path=$(command -v "$name" 2>/dev/null) || continue
    wrong=$(problem "$path")
    if [ -z "$wrong" ]; then
        echo "$path"
        exit 0
    fi
    seen="$seen $wrong:$path"
done

{
    case "$seen" in
        *venv:*)
            python=${seen##*venv:}
            python=${python%% *}
            echo "The venv module of $python is missing (Debian and Ubuntu package it apart)."
            echo "Install it, for instance:  sudo apt-get install python3-venv"
            ;;
        *sqlite:*)
            echo "The Python found here was built without SQLite, or without its full-text search (FTS5)."
            echo "Install another Python, for instance:  sudo apt-get install python3 python3-venv"
            ;;
        *)
            echo "This needs Python 3.10 or newer; none was found as: $candidates"
            echo "Install one, for instance:  sudo apt-get install python3 python3-venv"
            ;;
    esac
    echo "Then run make again. To use a Python of your choice:  make PYTHON=/path/to/python3 ..."
} >&2
exit 1

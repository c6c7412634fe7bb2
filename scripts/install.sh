#!/bin/sh
# install.sh ENVIRONMENT EXTRAS [DATASETTE]
# Makes the virtual environment where there is none, and installs this project into it with these extras; with DATASETTE
# (a version number), that version of Datasette. Safe to run again after a failure or a stop.
set -eu
environment=$1
extras=$2
datasette=${3:-}
cd "$(dirname "$0")/.."

# An environment whose Python is gone (a removed or upgraded interpreter) or that has no pip is made anew.
if ! "$environment/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(sh scripts/find_python.sh)
    echo "Making $environment with $python ($("$python" -c 'import platform; print(platform.python_version())'))"
    "$python" -m venv --clear "$environment" || {
        echo "Could not make $environment: see the lines above." >&2
        echo "On Debian or Ubuntu:  sudo apt-get install python3-venv   (then run make again)" >&2
        exit 1
    }
fi

set -- --editable ".[$extras]"
[ -z "$datasette" ] || set -- "$@" "datasette==$datasette"
echo "Installing datasette-mempalace[$extras]${datasette:+ with Datasette $datasette} into $environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --prefer-binary "$@" || {
    echo >&2
    echo "pip could not install the packages named above into $environment." >&2
    echo "  - Is the network there, and does pip reach its package index (proxy: HTTPS_PROXY; own index: PIP_INDEX_URL)?" >&2
    echo "  - Is the disk full? The environment needs about 1 GB." >&2
    echo "  - Is this Python very new? Packages may not support it yet; try  make PYTHON=python3.12 ..." >&2
    echo "Then run make again: it goes on from here. To start afresh, first:  make clean" >&2
    exit 1
}

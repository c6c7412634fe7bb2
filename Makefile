# make demo   builds a palace from Python's own documentation and serves it
# make test   runs the tests
# make help   lists the rest
#
# All that is needed is Python 3.10 or newer and make. Each target sets up what it needs under .venv, once.
#   PYTHON=python3.12      the Python to make the environment with
#   DATASETTE=1.0a41       another version of Datasette, in an environment of its own
#   PORT=9000 HOST=0.0.0.0 where make demo serves
#   KILLS=100              processes to kill in tests/test_kills.py, with SEED=... as an earlier run did
#   ARGS="-k ranking"      further arguments for pytest

SHELL := /bin/sh
export PYTHON KILLS SEED
DATASETTE ?=
DATASETTE_1 := 1.0a41
VENV := .venv$(addprefix -,$(DATASETTE))
BIN := $(VENV)/bin
DEMO := demo/palace.db
# As many at once as there are processors, up to four; a file's tests share what is costly to make. ARGS="-n 0" for one.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile
SOURCES := datasette_mempalace scripts tests docs setup.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-alpha test-browser test-browser-alpha check format reference docs clean fuzz

help:
	@echo "make demo        build a palace from Python's own documentation and serve it"
	@echo "make test        run the tests            (ARGS=\"-k ranking\" for some of them)"
	@echo "make test-alpha  run them on Datasette $(DATASETTE_1)"
	@echo "make test-browser and test-browser-alpha  drive the pages in Chromium, where it and npm are"
	@echo "make check       lint, format, types and the arrows between modules"
	@echo "make format      mend what ruff can mend"
	@echo "make reference   make the tables of the references in docs/ anew from the code"
	@echo "make docs        build the documentation as a site, in docs/_build/html"
	@echo "make fuzz        throw anything at a real server (ARGS=\"--requests 50000\" for long)"
	@echo "make clean       remove the environments, the demo palace and what tools leave behind"

# An environment's stamps: one for each set of extras, out of date when setup.py changes. The test set holds the demo's.
$(VENV)/.installed-offline $(VENV)/.installed-test $(VENV)/.installed-browser $(VENV)/.installed-dev $(VENV)/.installed-docs $(VENV)/.installed-fuzz: $(VENV)/.installed-%: setup.py pyproject.toml
	@sh scripts/install.sh $(VENV) $* $(DATASETTE)
	@touch $@

# The command moves the palace into place when it is whole, so that an interrupted build leaves no $(DEMO).
$(DEMO): | $(VENV)/.installed-offline
	@echo "Building the demo palace from Python's own documentation: a minute or two, once"
	@mkdir -p $(@D)
	@$(BIN)/datasette mempalace demo $@ || { echo "$@ was not made; run make again to start over." >&2; exit 1; }

demo: $(VENV)/.installed-offline $(DEMO)
	@$(BIN)/python scripts/serve_demo.py $(DEMO)

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

test-alpha:
	@$(MAKE) test DATASETTE=$(DATASETTE_1)

# Without npm the tests that need axe-core say so; without Chromium all of them do.
test-browser: $(VENV)/.installed-browser
	@if command -v npm >/dev/null; then npm ci --prefix tests/browser --silent --no-audit --no-fund; fi
	$(BIN)/python -m pytest tests/browser $(ARGS)

test-browser-alpha:
	@$(MAKE) test-browser DATASETTE=$(DATASETTE_1)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

reference: $(VENV)/.installed-docs
	$(BIN)/cog -r -I scripts --markers='<!--cog cog--> <!--end-->' docs/*.md

fuzz: $(VENV)/.installed-fuzz
	$(BIN)/python scripts/fuzz.py $(ARGS)

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf .venv .venv-* demo build dist docs/_build *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

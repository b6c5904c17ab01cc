# Everything a newcomer needs: `make demo`, `make test`. One virtual environment, .venv.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
OURS := config dags datatasks executors mixture operators forebay examples tests benchmarks
# Three at a time, since many of them wait, file by file (tests of a file share what they started),
# the slow folders first. Hundreds of processes import what is compiled once here, also where
# PYTHONDONTWRITEBYTECODE is set.
WORKERS ?= 3
PYTEST := $(BIN)/python -m compileall -q $(OURS) && $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: help setup demo wheel test test-embedded chaos mutants pages captures docs lint counts lock clean

help:  ## What there is
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16
	echo
	echo 'make demo AIRFLOW=0      without Airflow: one `forebay run`; goes with what follows too'
	echo 'make demo STREAM=kafka   the stream on a real Kafka broker'
	echo 'make demo KILL=1         kills three processes on the way'
	echo 'make demo WAIT=3h        the stream comes too early for its labels'
	echo 'make demo LIVE=1         two minutes of a stream that is trained while it comes'

setup: $(READY)  ## Create .venv from requirements.lock (about 3 GB)

$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
	  echo "error: $(PYTHON) is not installed: install Python 3.11, 3.12 or 3.13," \
	       "or name it with PYTHON=" >&2; exit 1; }
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
	  echo "error: $(PYTHON) is not Python 3.11, 3.12 or 3.13: name one that is with PYTHON=" >&2; exit 1; }
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "error: $(PYTHON) cannot make environments: install python3-venv" >&2; exit 1; }
	echo "setting up $(VENV) from requirements.lock: about 3 GB on disk, several minutes"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	# The lock has hashes of uv too, and of what builds packages that have no wheel: a file that a
	# stranger put in its place is refused.
	awk '/^[^ ]/ { wanted = /^uv==/ } wanted' requirements.lock > $(VENV)/uv.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  --requirement $(VENV)/uv.txt
	UV=$$(command -v $(BIN)/uv)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $$UV pip sync --compile-bytecode --require-hashes \
	  --require-build-hashes --build-constraints requirements.lock requirements.lock
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $$UV pip install --no-deps --no-build-isolation --editable .
	touch $@

demo: $(READY)  ## Train on real flights through Airflow; AIRFLOW=0, STREAM=kafka, KILL=1, WAIT=3h, LIVE=1
	@export AIRFLOW='$(AIRFLOW)' STREAM='$(STREAM)' KILL='$(KILL)' WAIT='$(WAIT)' LIVE='$(LIVE)'
	exec $(BIN)/python -m examples.demo

wheel: $(READY)  ## Build dist/forebay-….whl for a project of your own; needs no network
	@rm -rf build dist/forebay-*.whl
	trap 'rm -rf build forebay.egg-info' EXIT  # else Python finds stale metadata in the checkout
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-index --no-deps \
	  --no-build-isolation --wheel-dir dist .
	echo "pip install '$(CURDIR)/dist/$$(cd dist && echo forebay-*.whl)[train]'"

test: $(READY) lint  ## Lint, types and every test but those of chaos; real Kafka and Airflow included
	@$(PYTEST) -m 'not chaos'

test-embedded: $(READY) lint  ## The same without a Kafka broker
	@$(PYTEST) -m 'not chaos and not kafka'

chaos: $(READY)  ## Long kills, each extra alone, a stock Airflow, the demo: more than an hour
	@$(PYTEST) -v -m chaos  # names a failure at once: an hour may be cut short

mutants: $(READY)  ## Plant 40 small faults in pure rules, see the tests find them; SEED=7
	@$(BIN)/python tests/mutants.py $(if $(SEED),--seed $(SEED)) --count $(or $(COUNT),40)

pages: $(READY)  ## Write docs/reference.md, cli.md, internals/cases.md, tables of learning.md
	@$(BIN)/python tests/pages.py

captures: $(READY)  ## Put what commands print in a terminal into the pages
	@$(BIN)/python tests/captures.py

docs: $(READY)  ## The pages as a site, in .site/; every link is checked
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky \
	  --conf-dir docs/site . .site
	echo "open .site/index.html"

lint: $(READY) counts  ## Style, types and layers
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

counts: $(READY)  ## How much there is to read, and how often a check is switched off
	@$(BIN)/python tests/counts.py
	for word in 'type: ignore' 'noqa'; do
	  total=$$({ grep -rIo --include='*.py' "# $$word" $(OURS) || true; } | wc -l)
	  echo "$$word: $$total"
	done

lock:  ## Resolve requirements.lock anew
	@$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --all-extras pyproject.toml -o requirements.lock

clean:  ## Remove what runs and tests leave behind; the environment stays
	@rm -rf .site build dist forebay.egg-info .forebay .forebay-* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

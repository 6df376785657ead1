# `make` or `make help` lists what can be made.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test lint docs clean
.PHONY: bench bench-endpoints bench-documents bench-peers bench-flat bench-memory bench-docs

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/installed  ## start the server with the demo app (ARGS="--port 0" passes flags)
	$(BIN)/python server.py --demo $(ARGS)

test: $(VENV)/installed-test  ## run the tests (ARGS="tests/test_settings.py -x" passes arguments)
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/installed-test  ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: bench-endpoints bench-documents  ## measure the endpoints and hosted documents, in 15 minutes (needs wrk)

bench-endpoints: $(VENV)/installed-bench  ## measure every endpoint beside its ceilings (ARGS="--rounds 2 --burst 1")
	$(BIN)/python -m bench.endpoints $(ARGS)

bench-documents: $(VENV)/installed-bench  ## measure hosted documents (ARGS="--documents 10,1000")
	$(BIN)/python -m bench.documents $(ARGS)

bench-peers: $(VENV)/installed-bench  ## install other servers, measure Latchkey beside them, in 20 minutes
	$(BIN)/python -m bench.peers $(ARGS)

bench-flat: $(VENV)/installed-bench  ## measure over a full store, in 20 minutes and 12 GB (ARGS="--users 10000")
	$(BIN)/python -m bench.flat $(ARGS)

bench-memory: $(VENV)/installed-bench  ## measure what things take in Redis and in Valkey, in 4 minutes
	$(BIN)/python -m bench.memory $(ARGS)

bench-docs: $(VENV)/installed-bench  ## write docs/benchmarks.md and docs/capacity.md from the last results
	$(BIN)/python -m bench.report

docs: $(VENV)/installed  ## write docs/settings.md from settings.py
	$(BIN)/python settings.py > docs/settings.md.new
	mv docs/settings.md.new docs/settings.md

clean:  ## remove what make and the tools made; data/ stays
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp files say when the environment last took what setup.cfg asks for.
$(VENV)/installed: setup.cfg pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check .
	touch $@

$(VENV)/installed-test: setup.cfg pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[test]'
	touch $@ $(VENV)/installed

$(VENV)/installed-bench: setup.cfg pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[bench]'
	touch $@ $(VENV)/installed

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Latchkey needs Python 3.11 or newer; set PYTHON=")'
	@$(PYTHON) -c 'import ensurepip' || { echo 'On Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# `make` or `make help` lists what can be made.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test crosscheck test-cluster lint bench bench-documents bench-ai docs clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/installed  ## start the server with the demo app (ARGS="--port 0" passes flags)
	$(BIN)/python server.py --demo $(ARGS)

test: $(VENV)/installed-test  ## run the tests (ARGS="tests/test_settings.py -x" passes arguments)
	$(BIN)/python -m pytest $(ARGS)

# The tests run the fast HTTP server on asyncio's loop, and server processes on uvloop.
crosscheck: $(VENV)/installed-test  ## run what speaks HTTP on Tornado's HTTP server, and the fast one on uvloop
	LATCHKEY_TEST_HTTP=tornado $(BIN)/python -m pytest -m "http and not front" $(ARGS)
	LATCHKEY_TEST_LOOP=uvloop $(BIN)/python -m pytest -m front $(ARGS)

test-cluster: $(VENV)/installed-test  ## run them with clusters of Valkey and of Redis 7 for stores
	LATCHKEY_TEST_ENGINES=cluster,cluster7 $(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/installed-test  ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: bench-documents bench-ai  ## measure everything, in 9 minutes (ARGS="--seconds 10" passes flags to all)

bench-documents: $(VENV)/installed-bench  ## measure hosted documents (ARGS="--documents 10,1000")
	$(BIN)/python -m bench.documents $(ARGS)

bench-ai: $(VENV)/installed-bench  ## measure AI calls (ARGS="--seconds 10 --asked 100000")
	$(BIN)/python -m bench.ai $(ARGS)

docs: $(VENV)/installed  ## write docs/settings.md from settings.py
	$(BIN)/python settings.py > docs/settings.md.new
	mv docs/settings.md.new docs/settings.md

clean:  ## remove what make and the tools made; data/ stays
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis tests/node/node_modules
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

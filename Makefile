# `make` or `make help` lists what can be made.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# One version of each package for every platform and Python that setup.cfg allows, with the registry's hashes.
LOCK := $(BIN)/uv pip compile setup.cfg --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-annotate --custom-compile-command "make lock"
# A test file stays in one process, so that its fixtures are made once. Files run in the order of their names: sorted by
# their number of tests, the slow browser tests would come last.
PARALLEL ?= -n 4 --dist loadfile --no-loadscope-reorder

# Tests start hundreds of processes, and each would need half a second to compile the modules.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test test-rest test-slow test-engines test-browser test-bench fuzz timing crosscheck test-cluster test-deploy test-fsck screenshots format lint lock
.PHONY: docs clean
.PHONY: bench bench-endpoints bench-documents bench-ai bench-streams bench-peers bench-flat bench-memory bench-directory bench-importing bench-waiting bench-holds bench-overload bench-metrics bench-starting bench-painting bench-versions bench-docs

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/installed  ## start the server with the demo app (ARGS="--port 0" passes flags)
	$(BIN)/python server.py --demo $(ARGS)

test: $(VENV)/installed-test  ## run all tests but those of the next target (ARGS="tests/cli/test_settings.py -x" passes arguments)
	$(BIN)/python -m pytest $(PARALLEL) -m "not browser and not bench and not slow and not engines" $(ARGS)

test-rest: $(VENV)/installed-bench  ## run the tests of the next four targets in one run, which is quicker than one after another
	$(BIN)/python -m pytest $(PARALLEL) -m "browser or bench or slow or engines" $(ARGS)

test-slow: $(VENV)/installed-test  ## run the tests that take long: many processes, or many cases
	$(BIN)/python -m pytest $(PARALLEL) -m slow $(ARGS)

test-engines: $(VENV)/installed-test  ## run the tests of the store on Redis and on a cluster; make test has memory and Valkey
	$(BIN)/python -m pytest $(PARALLEL) -m engines $(ARGS)

test-browser: $(VENV)/installed-test  ## run the tests that drive Chromium
	$(BIN)/python -m pytest $(PARALLEL) -m browser $(ARGS)

test-bench: $(VENV)/installed-bench  ## run the tests of the programs that measure
	$(BIN)/python -m pytest $(PARALLEL) -m bench $(ARGS)

fuzz: $(VENV)/installed-test  ## fuzz for ten minutes (ARGS="--seconds 36000 --http fast"); findings go to build/fuzz
	$(BIN)/python -m dev.fuzz $(ARGS)

# The tests run the fast HTTP server on asyncio's loop, and server processes on uvloop. Both servers run the same handlers:
# tests/runtime/http/test_both_servers.py asks each route on both. This target runs the tests of what a server can change.
# To run every test that speaks HTTP: LATCHKEY_TEST_HTTP=tornado make test ARGS="-m http".
# Two runs at once, for their tests wait a third of the time.
crosscheck: $(VENV)/installed-test  ## run the tests of requests and answers on Tornado's HTTP server, and on the fast one with uvloop
	$(MAKE) --jobs 2 --output-sync crosscheck-tornado crosscheck-uvloop

.PHONY: crosscheck-tornado crosscheck-uvloop
crosscheck-tornado: $(VENV)/installed-test
	LATCHKEY_TEST_HTTP=tornado $(BIN)/python -m pytest $(PARALLEL) -m "wire and not protocol" $(ARGS)

crosscheck-uvloop: $(VENV)/installed-test
	LATCHKEY_TEST_LOOP=uvloop $(BIN)/python -m pytest $(PARALLEL) -m protocol $(ARGS)

test-cluster: $(VENV)/installed-test  ## run all tests with clusters of Valkey and of Redis 7 for stores
	LATCHKEY_TEST_ENGINES=cluster,cluster7 $(BIN)/python -m pytest $(PARALLEL) $(ARGS)

test-fsck: $(VENV)/installed-test  ## check a store of 100,000 keys; the tests check one of 10,000
	LATCHKEY_FSCK_KEYS=100000 $(BIN)/python -m pytest tests/engine/keys/test_fsck_under_load.py $(ARGS)

test-deploy: $(VENV)/installed-test  ## check the files of deploy/ with the programs they are for (nginx-light, caddy, haproxy, systemd)
	$(BIN)/python -m pytest deploy $(ARGS)

.PHONY: two-hosts
two-hosts: $(VENV)/installed-test  ## upgrade two hosts one by one under load, then fail their store over (root, iproute2, haproxy, redis)
	$(BIN)/python -m dev.proof.two_hosts $(ARGS)

.PHONY: image image-base image-test
image-base: $(VENV)/installed-test  ## make a Debian 12 to build the image on, where no registry can be reached (needs mmdebstrap)
	$(BIN)/python -m deploy.image base $(ARGS)

image: $(VENV)/installed-test  ## build the container image with podman (ARGS="--engine docker", ARGS="--base localhost/latchkey-base:12")
	$(BIN)/python -m deploy.image build $(ARGS)

image-test: $(VENV)/installed-test  ## run the image as it should run: sign in, connect, write, drain; nothing written to its root
	$(BIN)/python -m deploy.image test $(ARGS)

timing: $(VENV)/installed-bench  ## measure whether response times leak secrets; writes docs/contributing/timing.md
	$(BIN)/python -m dev.timing $(ARGS)

.PHONY: proof
proof: $(VENV)/installed-test  ## break servers and stores under load, check every promise, in 10 minutes (ARGS="--store redis")
	$(BIN)/python -m dev.proof $(ARGS)

.PHONY: mutants
mutants: $(VENV)/installed-test  ## plant mistakes one by one: a test must notice each (ARGS="--some 10 --by-date")
	$(BIN)/python -m dev.mutants $(ARGS)

.PHONY: frozen
frozen: $(VENV)/installed-test  ## write what users and programs see into tests/frozen/snapshots, after a wanted change
	LATCHKEY_FROZEN=accept $(BIN)/python -m pytest tests/frozen $(ARGS)

screenshots: $(VENV)/installed-test  ## write pictures of all pages into build/screenshots (LANGUAGES="de ja": and in these languages)
	rm -rf build/screenshots
	LATCHKEY_SHOTS=build/screenshots LATCHKEY_TOUR="$(LANGUAGES)" $(BIN)/python -m pytest \
		tests/browser/test_browser_pages.py $(if $(LANGUAGES),tests/browser/test_browser_languages.py) $(ARGS)

format: $(VENV)/installed-test  ## format the code, and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lint: $(VENV)/installed-test  ## check style, format, types, imports, the shape of the tree, locked packages and secrets
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m dev.checks.house
	$(BIN)/python -m dev.checks.silenced
	$(BIN)/python -m dev.checks.imports
	$(BIN)/python -m dev.checks.words
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/python -m dev.checks.lock
	$(BIN)/python -m dev.checks.secret_scan
	$(BIN)/python -m dev.checks.audit

lock: | $(BIN)/python  ## renew the lock files, with the newest releases that setup.cfg allows
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13,<0.14'
	$(LOCK) --all-extras --output-file requirements-dev.lock
	$(LOCK) --extra fast --constraint requirements-dev.lock --output-file requirements.lock

bench: bench-endpoints bench-documents bench-ai  ## measure endpoints, hosted documents and AI calls, in 20 minutes (needs wrk)

bench-endpoints: $(VENV)/installed-bench  ## measure every endpoint against its ceilings (ARGS="--rounds 2 --burst 1")
	$(BIN)/python -m dev.bench.endpoints $(ARGS)

bench-documents: $(VENV)/installed-bench  ## measure hosted documents (ARGS="--documents 10,1000")
	$(BIN)/python -m dev.bench.documents $(ARGS)

bench-ai: $(VENV)/installed-bench  ## measure AI calls (ARGS="--seconds 10 --asked 100000")
	$(BIN)/python -m dev.bench.ai $(ARGS)

bench-streams: $(VENV)/installed-bench  ## measure the memory of 1,000 AI streams that wait between two events, after requests of 48 KB
	$(BIN)/python -m dev.bench.ai --only-memory --asked 48000 $(ARGS)

bench-peers: $(VENV)/installed-bench  ## install other servers and compare Latchkey with them, in 20 minutes
	$(BIN)/python -m dev.bench.peers $(ARGS)

bench-flat: $(VENV)/installed-bench  ## measure over a full store, in 20 minutes and 12 GB (ARGS="--users 10000")
	$(BIN)/python -m dev.bench.flat $(ARGS)

bench-memory: $(VENV)/installed-bench  ## measure memory in Redis and in Valkey, in 4 minutes
	$(BIN)/python -m dev.bench.memory $(ARGS)

bench-directory: $(VENV)/installed-bench  ## measure finding people among a million, in 10 minutes (ARGS="--people 100000")
	$(BIN)/python -m dev.bench.directory $(ARGS)

bench-importing: $(VENV)/installed-bench  ## measure moving in, in a minute (ARGS="--people 1000000 --killed": kill the import at half, check the store)
	$(BIN)/python -m dev.bench.importing $(ARGS)

bench-waiting: $(VENV)/installed-bench  ## measure the cost of waiting for a replica, in 3 minutes
	$(BIN)/python -m dev.bench.waiting $(ARGS)

bench-holds: $(VENV)/installed-bench  ## measure holds with tokens that came from other tokens, in a minute
	$(BIN)/python -m dev.bench.holds $(ARGS)

bench-overload: $(VENV)/installed-bench  ## measure twice the sustainable load, in 4 minutes; writes docs/overload.md
	$(BIN)/python -m dev.bench.overload $(ARGS)

bench-metrics: $(VENV)/installed-bench  ## measure the cost of metrics, in 3 minutes
	$(BIN)/python -m dev.bench.metrics $(ARGS)

bench-starting: $(VENV)/installed-bench  ## measure starts, and the memory of idle workers, in a minute
	$(BIN)/python -m dev.bench.starting $(ARGS)

bench-painting: $(VENV)/installed-bench  ## measure the first paint of ten pages in Chromium, in a minute
	$(BIN)/python -m dev.bench.painting $(ARGS)

bench-versions: $(VENV)/installed-bench  ## compare two versions by turns (ARGS="--before FOLDER" is the other checkout)
	$(BIN)/python -m dev.bench.versions $(ARGS)

bench-docs: $(VENV)/installed-bench  ## write docs/benchmarks.md and docs/capacity.md from the last results
	$(BIN)/python -m dev.bench.report

.PHONY: words
words: $(VENV)/installed  ## renew the catalogues of pages and mails, after a change of their English
	$(BIN)/python -m dev.checks.words --write

.PHONY: passwords
passwords: $(VENV)/installed  ## build the filter of refused passwords again, by the recorded hashes (ARGS=--record: new versions)
	$(BIN)/python -m dev.checks.common_passwords --fetch $(ARGS)

.PHONY: vendor
vendor: $(VENV)/installed  ## fetch files of other projects that pages load, by the recorded hashes (ARGS=--record: a new version)
	$(BIN)/python -m dev.checks.vendor --fetch $(ARGS)

docs: $(VENV)/installed  ## write docs/settings.md, and the generated parts of docs/clients.md, http.md and security.md
	$(BIN)/python -m settings > docs/settings.md.new
	mv docs/settings.md.new docs/settings.md
	$(BIN)/python -m tests.oauth.clients.document
	$(BIN)/python -m dev.tables

clean:  ## remove everything that make and the tools made; data/ stays
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis tests/support/node/node_modules tests/oauth/clients/node/node_modules
	rm -rf tests/ai/clients/node/node_modules tests/mcp/node/node_modules tests/support/elsewhere/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp files say when the environment last took what the lock files hold.
$(VENV)/installed: requirements.lock | $(BIN)/latchkey
	@echo "Installing packages. The first time, this takes some minutes."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	touch $@

$(VENV)/installed-test: requirements-dev.lock | $(BIN)/latchkey
	@echo "Installing packages for the tests. The first time, this takes some minutes."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock
	touch $@ $(VENV)/installed

$(VENV)/installed-bench: $(VENV)/installed-test
	touch $@

# `pip install .` puts another one there, which stays.
$(BIN)/latchkey: | $(BIN)/python
	cp cli/latchkey $@
	@[ "$(abspath $(VENV))" = "$(CURDIR)/.venv" ] || pwd > $(VENV)/checkout

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Latchkey needs Python 3.11 or newer; set PYTHON=")'
	@$(PYTHON) -c 'import ensurepip' || { echo 'On Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

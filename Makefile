# The whole developer's interface. `make demo` and `make test` are all that a newcomer needs.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test test-kill test-stores check format serve bench bench-peers soak test-long test-many test-lowest test-oracle test-differences test-clients test-clients-all test-workers test-openapi fuzz clean help

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ —/'

$(READY): pyproject.toml
	@echo "setting up $(VENV) (once; again only when pyproject.toml changes)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "workersai-emulator needs Python 3.11 or newer; name one with make PYTHON=…")'
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install -qq --upgrade pip
	@$(BIN)/python -m pip install -qq --editable . --group dev
	@touch $@

demo: $(READY)   ## put real documents through the queue and look at the answers
	@$(BIN)/python emulator/demo/documents.py

test: $(READY)   ## run the tests
	@$(BIN)/python -m pytest -q -n auto

test-long: $(READY) ## the same with random and many more generated inputs
	@HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -q -n auto

test-many: $(READY) ## a thousand tests with the pytest fixture: no growth, no interference
	@MANY_TESTS=1000 $(BIN)/python -m pytest -q tests/e2e/test_many_tests.py

test-kill: $(READY) ## SIGKILL under load: KILLS times over a file, KILLS_REDIS times over a Redis (redis-server)
	@KILLS=$(or $(KILLS),200) KILLS_REDIS=$(or $(KILLS_REDIS),50) $(BIN)/python -m pytest -q tests/e2e -m kills

test-stores: $(READY) ## the wire's tests with state in a file and in a Redis instead of memory
	@WORKERSAI_TEST_STATE=file $(BIN)/python -m pytest -q -n auto tests/emulator/wire
	@WORKERSAI_TEST_STATE=redis $(BIN)/python -m pytest -q -n auto tests/emulator/wire

.lowest/.ready: pyproject.toml
	@$(PYTHON) -m venv --clear .lowest && .lowest/bin/python -m pip install -qq --upgrade pip
	@$(PYTHON) -c 'import tomllib; told = tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]; print(*(one.partition(";")[0].replace(">=", "==") for one in told), sep="\n")' > .lowest/oldest.txt
	@.lowest/bin/python -m pip install -qq --constraint .lowest/oldest.txt --editable . --group dev
	@touch $@

test-lowest: .lowest/.ready ## the wire's and the client's tests with the oldest libraries that are allowed
	@.lowest/bin/python -m pytest -q -n auto tests/emulator/wire tests/client

test-oracle: $(READY) ## compare with the service's own public validator; needs Node
	@npm ci --no-audit --no-fund --loglevel=error --prefix tests/oracle
	@$(BIN)/python -m pytest -q tests/oracle -m oracle

test-differences: $(READY) ## the contract suite against whole targets: planted differences, recordings, drift
	@$(BIN)/python -m pytest -q -n auto tests/contracts/suite -m differences

test-clients: $(READY) ## the SDKs that most programs use, against the emulator; the first time installs them
	@$(BIN)/python -m pytest -q tests/clients -m clients

test-clients-all: $(READY) ## every real client that is known; CLIENTS_NEWEST=1 takes the newest of each
	@$(BIN)/python -m pytest -q tests/clients -m "clients or clients_all"

test-workers: $(READY) ## real Worker runtimes with their AI binding on the emulator, offline; the first time installs them
	@command -v npm >/dev/null || { echo "test-workers skipped: npm is not here"; exit 0; }; \
	$(BIN)/python tests/workers/worker_environments.py && \
	tests/workers/offline.sh $(BIN)/python -m pytest -q tests/workers -m workers $(WORKERS)

test-openapi: $(READY) ## Schemathesis against the served OpenAPI document; OPENAPI=--short takes a minute; the first time installs it
	@$(BIN)/python tests/openapi/run_checks.py $(OPENAPI)

fuzz: $(READY)   ## break exchanges of every dialect on the raw socket, for FUZZ_SECONDS (600)
	@$(BIN)/python tests/security/fuzz.py $(or $(FUZZ_SECONDS),600) $(FUZZ_SEED)

bench: $(READY)  ## costs as ratios to limits of the same run, in .bench/; BENCH=--short takes half a minute
	@$(BIN)/python emulator/bench/run.py --json .bench/bench.json --picture .bench/bench.svg $(BENCH)

bench-peers: $(READY) ## the same beside other stand-ins, which it installs into .bench/; needs npm
	@test -x .bench/py/bin/python || $(PYTHON) -m venv .bench/py
	@.bench/py/bin/python -m pip install -qq -r emulator/bench/peers/requirements.txt
	@mkdir -p .bench/npm && cp emulator/bench/peers/package.json .bench/npm/
	@npm install --no-audit --no-fund --loglevel=error --prefix .bench/npm
	@$(BIN)/python emulator/bench/run.py --json .bench/peers.json --picture .bench/peers.svg $(BENCH) peer_servers

soak: $(READY)   ## mixed traffic with moving clocks for SOAK_SECONDS (180): replies valid, memory flat, nothing leaked
	@$(BIN)/python emulator/bench/soak.py $(SOAK_SECONDS)

serve: $(READY)  ## run the emulator on 127.0.0.1:8799
	@$(BIN)/workersai-emulator serve

check: $(READY)  ## formatting, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(READY) ## format and sort
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .

clean:           ## remove what setup made
	rm -rf $(VENV) dist

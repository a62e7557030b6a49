# The whole developer's interface. `make demo` and `make test` are all that a newcomer needs.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test check format serve bench test-long test-many test-oracle clean help

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

test-oracle: $(READY) ## compare with the service's own public validator; needs Node
	@npm ci --no-audit --no-fund --loglevel=error --prefix tests/oracle
	@$(BIN)/python -m pytest -q tests/oracle -m oracle

bench: $(READY)  ## polls and submits as ratios to a bare server; the pollers' latency beside a 10 MB batch
	@$(BIN)/python emulator/bench/exchanges.py $(BENCH)
	@$(BIN)/python emulator/bench/large_batch.py $(BENCH)

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

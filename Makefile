# Every target works from a fresh clone: the environment is made when it is missing and renewed when the lock changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SEQUENCES ?= 200
N ?= 5
BASE ?= HEAD
PYTEST := $(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder

.PHONY: up down test test-quick test-changed flaky prepare-tests soak lint gen bench lock clean

up: $(STAMP)  ## a running plane from a bare checkout
	$(BIN)/kairship up

down: $(STAMP)  ## stop the plane, keep its data
	$(BIN)/kairship down

test: lint prepare-tests  ## everything CI runs
	$(PYTEST) --durations 15

test-quick: lint prepare-tests  ## for daily work: lint, unit tests, and the client against a real API server
	$(PYTEST) -q tests/unit tests/contract tests/engine/kube

test-changed: prepare-tests  ## the tests that edits since the commit BASE can touch
	@tests=$$(PYTHONPATH=tests $(BIN)/python -m support.changed_tests $(BASE)) && \
	  if [ -n "$$tests" ]; then $(PYTEST) $$tests; else echo "no test depends on the edits since $(BASE)"; fi

flaky: prepare-tests  ## the suite N times on a loaded machine, and what failed once
	PYTHONPATH=tests $(BIN)/python -m support.flaky_tests --count $(N)

prepare-tests: $(STAMP)
	tests/install-servers.sh
	$(BIN)/kairship engine build --group plane --group test --group gen
	PYTHONPATH=tests $(BIN)/python -m support.go_programs

soak: $(STAMP)  ## the long forms of the tests that have one; hours, not minutes
	$(BIN)/kairship engine build --group plane --group test
	KAIRSHIP_SOAK=1 KAIRSHIP_SOAK_SECONDS=900 $(BIN)/pytest tests/faults tests/e2e/test_entrance_schema.py
	PYTHONPATH=tests $(BIN)/python -m support.sequences --count $(SEQUENCES) --report docs/soak.md

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

gen: $(STAMP)  ## everything that is generated; CI fails when it differs from what is committed
	$(BIN)/kairship engine build --group gen
	$(BIN)/python -m kairship.resources deploy/crds
	$(BIN)/python api/generate.py

bench: $(STAMP)  ## every benchmark; results in benchmarks/results/
	$(BIN)/kairship engine build --group plane
	for script in $(filter-out benchmarks/report.py benchmarks/lean_client.py,$(wildcard benchmarks/*.py)); do $(BIN)/python $$script || exit 1; done

lock: $(STAMP)  ## resolve the Python dependencies afresh
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --group dev pyproject.toml -o requirements.txt

$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "kairship needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing (Debian: apt install python3-venv)"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

clean:
	rm -rf $(VENV) console/node_modules .mypy_cache .ruff_cache .pytest_cache

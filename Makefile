# Every target works from a fresh clone: the environment is made when it is missing and renewed when the lock changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SEQUENCES ?= 200

.PHONY: up down test soak lint gen bench lock clean

up: $(STAMP)  ## a running plane from a bare checkout
	$(BIN)/kairship up

down: $(STAMP)  ## stop the plane, keep its data
	$(BIN)/kairship down

test: lint  ## everything CI runs
	tests/install-servers.sh
	$(BIN)/kairship engine build --group plane --group test --group gen
	PYTHONPATH=tests $(BIN)/python -m support.go_programs
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --durations 15

soak: $(STAMP)  ## the long forms of the tests that have one; hours, not minutes
	$(BIN)/kairship engine build --group plane --group test
	KAIRSHIP_SOAK=1 KAIRSHIP_SOAK_SECONDS=900 $(BIN)/pytest tests/faults
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

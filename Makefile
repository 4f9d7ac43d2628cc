# Every target sets up its own virtual environment: a fresh machine needs Python 3.11, pip and make.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test check attack bench docs clean

demo: $(READY)
	$(BIN)/casemate demo

test: $(READY)
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/reachable.py

# 20,000 statements on neighbouring tables; STATEMENTS and SEED say otherwise.
attack: $(READY)
	PYTHONPATH=tests $(BIN)/python -m neighbours.attack

bench: $(READY) .venv/.peers
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/python -m pytest tests/docs -q

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.venv/.peers: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,oracle,bench]'
	touch .venv/.peers

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("casemate needs Python 3.11 or newer: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(READY)

# `make demo` and `make test` need nothing but Python 3.11 or newer; they create .venv themselves.
PYTHON ?= python3
SEED ?= 42
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test lint format results clean

demo: $(STAMP)
	$(BIN)/tampl demo --out runs/demo --seed $(SEED)

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# README's table from the records in results/.
results: $(STAMP)
	$(BIN)/python results/render.py

# The pins (torch above all) come from constraints.txt; pyproject.toml has lower bounds only.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "tampl needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

clean:
	rm -rf .venv runs build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache

# `make demo` and `make test` need nothing but Python 3.11 or newer; they create .venv themselves.
PYTHON ?= python3
SEED ?= 42
BIN := .venv/bin
STAMP := .venv/.installed
STUDIO := .venv/.installed-studio
DEV := .venv/.installed-dev
DOCS := .venv/.installed-docs

.PHONY: demo studio test lint format results docs dist lowest clean

demo: $(STAMP)
	$(BIN)/tampl demo --out runs/demo --seed $(SEED)

# Trains the demo's model, in a few minutes, where `make demo` has not.
studio: $(STUDIO)
	$(BIN)/tampl studio

test: $(DEV)
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The results in README.md and docs/results.md, and their figures, from the records in results/.
results: $(STAMP)
	$(BIN)/python results/render.py

# The site, in build/site. The first build runs all code of the pages, in some minutes; a later one only
# what has changed.
docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Wheel and source archive, in dist/, each installed into an empty environment and used there.
dist:
	$(PYTHON) tools/check_wheel.py

# The lower bounds of pyproject.toml, in build/lowest, under the tests of the core.
lowest:
	$(PYTHON) tools/lowest.py

# The pins (torch above all) come from constraints.txt; pyproject.toml has lower bounds only.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "tampl needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $(STAMP)

$(STUDIO): $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[studio]'
	touch $(STUDIO)

# What tests and lint need beyond what the library needs.
$(DEV): $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(DEV)

# What the site needs beyond what the library needs.
$(DOCS): $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $(DOCS)

clean:
	rm -rf .venv runs build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache

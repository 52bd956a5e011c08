PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder
AUDIT  := $(VENV)-audit
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# TorchRec asks for FBGEMM's build for NVIDIA, so both come without what they ask for; the extra 'distributed' has the rest.
# There are no wheels for other systems: tests that need them are skipped there and say so.
TORCHREC := torchrec==1.8.0 fbgemm-gpu-cpu==1.8.0

.DEFAULT_GOAL := help
.PHONY: help install demo quick test test-long check audit docs dist bench clean

help:  ## Show what each command does
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.core  ## Make a virtual environment and install the package and the brane command

demo: $(VENV)/.core  ## Learn vectors from a real graph shipped with the package (offline, under two minutes)
	$(BIN)/brane demo --output demo

quick: $(VENV)/.dev  ## Run the fast tests, in under a minute
	$(PYTEST) -m "not slow and not long"

test: $(VENV)/.dev  ## Run the tests
	$(PYTEST) -m "not long"

test-long: $(VENV)/.dev  ## Run what takes long: kills, random inputs, the GPU's kernels in an interpreter, benchmarks
	$(PYTEST) -m long

check: $(VENV)/.dev  ## Lint, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

audit: $(VENV)/.core $(AUDIT)/bin/pip-audit  ## Look for known vulnerabilities of the packages installed (needs a network)
	$(BIN)/python -m pip freeze --exclude-editable > $(AUDIT)/installed.txt
	@$(AUDIT)/bin/pip-audit --strict --disable-pip --no-deps --progress-spinner off -r $(AUDIT)/installed.txt || { \
	echo "make audit: a vulnerability is listed above, or the advisory database could not be reached" >&2; exit 1; }

docs: $(VENV)/.dev  ## Draw the generated pictures and tables again and build the site in docs/_build
	$(BIN)/python scripts/draw_packages.py
	$(BIN)/python scripts/methods_table.py
	$(BIN)/python scripts/formats_table.py
	$(BIN)/python scripts/messy_table.py
	$(BIN)/python scripts/ten_graphs.py
	$(BIN)/python scripts/readme_table.py
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build
	@echo "open docs/_build/index.html"

dist: $(VENV)/.dev  ## Build the wheel and the source distribution in dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation

bench: $(VENV)/.dev  ## Measure a training step against its floor
	$(BIN)/python benchmarks/cpu_step.py

clean:  ## Remove the virtual environment, compiled kernels, the site, the distributions and the demo's output
	rm -rf $(VENV) $(AUDIT) demo dist docs/_build docs/gallery
	find src -name '*.nb[ci]' -delete

$(VENV)/.core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/.dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[dev]'
	case "$$(uname -sm)" in "Linux x86_64"|"Linux aarch64") $(PIP) --no-deps $(TORCHREC);; esac
	touch $(VENV)/.core $@

$(AUDIT)/bin/pip-audit:
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.7' || { rm -rf $(AUDIT); \
	echo "make audit: pip-audit could not be installed; run it where a package index can be reached" >&2; exit 1; }

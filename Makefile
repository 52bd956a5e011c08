PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help install demo test check bench clean

help:  ## Show what each command does
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.core  ## Make a virtual environment and install the package and the brane command

demo: $(VENV)/.core  ## Learn vectors from a real graph shipped with the package (offline, under two minutes)
	$(BIN)/brane demo --output demo

test: $(VENV)/.dev  ## Run all tests
	$(BIN)/python -m pytest

check: $(VENV)/.dev  ## Lint, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev  ## Measure a training step against its floor
	$(BIN)/python benchmarks/cpu_step.py

clean:  ## Remove the virtual environment, compiled kernels and the demo's output
	rm -rf $(VENV) demo
	find src -name '*.nb[ci]' -delete

$(VENV)/.core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

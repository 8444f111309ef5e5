# Tradewind. `make` alone lists the targets; Python 3.11 or newer and make are all they assume.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# One BLAS thread: proposals are computed with one, and timings are steadier for it.
export OMP_NUM_THREADS      := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS      := 1

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test check docs chaos fuzz bench dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## tune a classifier for accuracy and training time (about a minute)
	$(BIN)/python examples/demo.py

test: $(VENV)/.test ## run every test
	$(BIN)/python -m pytest -n 3 --dist worksteal

check: $(VENV)/.test ## lint, types and the fast tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "not slow"

docs: $(VENV)/.docs ## build the documentation as a site, in build/site
	$(BIN)/python tools/build_site.py

chaos: $(VENV)/.test ## break what a study must survive, or go on with it (about an hour)
	$(BIN)/python -m tests.chaos --state build/chaos

fuzz: $(VENV)/.test ## damage files of every kind at random, and read them (10 minutes)
	$(BIN)/python -m tests.hostile.fuzz --seconds 600 --seed $$$$

bench: $(VENV)/.demo ## time proposals, the import and the store against their budgets
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/storage.py

dist: $(VENV)/.dist ## build the packages, check them, and try the wheel in an empty environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python tools/check_dist.py dist

clean: ## remove the environment, builds and caches
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- the environment: each step writes its stamp last, so a broken step is done again ----

.NOTPARALLEL: # all steps install into one environment

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Tradewind needs Python 3.11 or newer, but '$(PYTHON)' says:" \
		"$$($(PYTHON) --version 2>&1). Name another one: make PYTHON=python3.12 test"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[pandas]"
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[test,dev,docs]"
	@touch $@

$(VENV)/.docs: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[docs]"
	@touch $@

$(VENV)/.dist: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet "build>=1.2" "twine>=6.1" "check-wheel-contents>=0.6"
	@touch $@

# An environment is made anew if its Python no longer starts, or if it was made in another folder: its
# scripts and the package in it would still be those of that folder.
HERE := import pip, sys; print(f" {sys.prefix}\n" in open(f"{sys.prefix}/pyvenv.cfg").read())
ifneq ($(shell $(BIN)/python -c '$(HERE)' 2>/dev/null),True)
.PHONY: $(VENV)/.made
endif

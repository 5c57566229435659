# Two commands are enough: `make demo` and `make test`. Everything they need goes into .venv.
#
#   make demo     tune a real model on a real data set and print the best parameters
#   make test     the whole test suite, against the installed wheel
#   make quick    the part of it for each commit: the rooms of the engine, without what is slow
#   make test-cluster
#                 clusters over ssh and Slurm, with a real sshd and a real Slurm on this machine
#   make test-integrations
#                 the adapters to large libraries too, in an environment of its own (2 GB to install)
#   make mutants  plant known faults, one at a time, and see that the tests find each of them
#   make check    lint, format, import rule and types (what CI runs next to the tests)
#   make format   let ruff rewrite what it can
#   make tree     build/types: the layout of the installed package, for editors
#   make docs     build/site/index.html: the documentation as a site
#   make docs-version
#                 add the site of this version to those on the branch gh-pages of this repository
#   make images   the images of the documentation, in docs/images: needs Chromium
#   make wheel    build dist/*.whl
#   make bench    the budget table; next to Optuna, Ray Tune and NNI after `make peers`
#   make faults   kill processes for ten minutes, and see that nothing is lost (docs/reference/faults.md)
#   make simulate whole experiments on a simulated machine: MINUTES=60 for an hour of them, SEED=7 for others
#   make powercuts
#                 rebuild the disk of an experiment as 1,000 power cuts leave it, and resume each
#   make nth      each call to the kernel fails, once or for a while: half an hour of them
#   make kills    each process of an experiment is killed at each of its calls
#   make partitions
#                 a Ray of two nodes whose network fails: needs root
#   make clean    remove what was built (and .venv)

PYTHON ?= python3
VENV ?= .venv
BIN ?= $(VENV)/bin
# Three on two cores: the slow tests wait for processes more than they compute.
TEST_JOBS ?= 3
PYTEST_ARGS ?=
# These tests compute: more than one for each core costs their imports.
QUICK := -n 2 $(addprefix tests/,protocol search_space runner store telling dispatcher test_face.py)
INTEGRATIONS ?= .venv-integrations
PEERS ?= .peers
BENCH_ARGS ?=
MUTANTS_ARGS ?= --table tests/mutants/TABLE.md
FAULTS_ARGS ?= --seed 1 --minutes 10 --jobs 4
SEED ?= 1
MINUTES ?= 1
SIMULATE_ARGS ?=
POWERCUTS_ARGS ?= --cuts 1000
NTH_ARGS ?= --minutes 30
KILLS_ARGS ?=
PARTITIONS_ARGS ?=

# Bytecode is compiled once, at installation; without it every process that is started compiles Ray anew.
unexport PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME
export PIP_DISABLE_PIP_VERSION_CHECK = 1
PIP_INSTALL = $(BIN)/python -m pip install --quiet --quiet --compile

PACKAGES := pitchpipe protocol search_space numerics plugins sdk config tuners assessors testing trial_agent runner dispatcher store executors telling manager server integrations cli compat
# The folders are listed as well, so that a file that was deleted is noticed.
SOURCES := setup.cfg pyproject.toml README.md $(shell find $(PACKAGES) -not -path '*/__pycache__*' -not -path '*/.*')

VENV_READY := $(VENV)/.stamp-venv
USED_READY := $(VENV)/.stamp-extra-examples,ui
TEST_READY := $(VENV)/.stamp-extra-test
DOCS_READY := $(VENV)/.stamp-extra-docs
INSTALLED := $(VENV)/.stamp-installed
WHEEL_READY := dist/.stamp-wheel

# What a target needs before it runs; empty it to use the tools of another environment (make lint READY= BIN=...).
READY ?= $(INSTALLED) $(TEST_READY)
WHEEL = $$(ls dist/pitchpipe-*.whl)

.PHONY: ready demo test quick test-cluster mutants docs docs-version images bench faults simulate powercuts nth kills partitions peers check lint lint-ruff lint-format lint-imports types types-folders types-face tree format wheel install clean test-integrations install-integrations
.DELETE_ON_ERROR:
.NOTPARALLEL:

# Installs what all of them need, so that two of them may run at once.
ready: $(READY) $(DOCS_READY)

demo: $(INSTALLED)
	@echo "== demo: 40 trials of examples/digits, two at a time"
	@cd examples/digits && PATH="$(abspath $(BIN)):$$PATH" \
	    pitchpipe run experiment.yml --dir ../../build/demo

test: $(READY)
	@echo "== tests"
	@PATH="$(abspath $(BIN)):$$PATH" PITCHPIPE_WHEEL="$(CURDIR)/$(WHEEL)" \
	    $(BIN)/pytest -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder -m "not cluster" $(PYTEST_ARGS)

quick: $(READY)
	@echo "== the quick part of the tests"
	@PATH="$(abspath $(BIN)):$$PATH" PITCHPIPE_WHEEL="$(CURDIR)/$(WHEEL)" \
	    $(BIN)/pytest --dist worksteal -m "not slow and not ray and not cluster" $(QUICK) $(PYTEST_ARGS)

# Without openssh-server, slurm-wlm and munge these tests are skipped, each with a notice.
test-cluster: $(READY)
	@echo "== tests with sshd and Slurm"
	@PATH="$(abspath $(BIN)):$$PATH" PITCHPIPE_WHEEL="$(CURDIR)/$(WHEEL)" \
	    $(BIN)/pytest -m cluster tests/executors/clusters $(PYTEST_ARGS)

mutants: $(READY)
	@echo "== mutants"
	@$(BIN)/python -P tests/mutants/run.py $(MUTANTS_ARGS)

# Pages of the root lie beside docs/ in the site, so that the links between them hold there as well.
PAGES := README.md CHANGELOG.md CONTRIBUTING.md docs examples
docs: $(INSTALLED) $(DOCS_READY) tree
	@echo "== docs"
	@rm -rf build/pages
	@mkdir -p build/pages
	@ln -s $(addprefix ../../,$(PAGES)) build/pages
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "file://$(CURDIR)/build/site/index.html"

docs-version: docs
	@PATH="$(abspath $(BIN)):$$PATH" NO_MKDOCS_2_WARNING=1 mike deploy --update-aliases "$$($(BIN)/pitchpipe --version | cut -d' ' -f2)" latest
	@$(BIN)/mike set-default latest

images: $(READY)
	@echo "== images"
	@$(BIN)/python -P tests/server/screenshots.py docs/images

install-integrations: $(INTEGRATIONS)/.stamp

test-integrations: install-integrations $(READY)
	@echo "== tests of the adapters"
	@$(INTEGRATIONS)/bin/python -m pip install --quiet --quiet --force-reinstall --no-deps "$(WHEEL)"
	@PATH="$(abspath $(INTEGRATIONS)/bin):$$PATH" PITCHPIPE_WHEEL="$(CURDIR)/$(WHEEL)" \
	    $(INTEGRATIONS)/bin/python -P -m pytest $(PYTEST_ARGS) tests/integrations

# What .venv has is not installed again: its libraries are found through a path file. A wheel of torch among pip's
# find-links is taken first: such a one is for CPUs, while the one of the index brings gigabytes for GPUs.
$(INTEGRATIONS)/.stamp: setup.cfg | $(READY)
	@echo "== the libraries of the adapters in $(INTEGRATIONS) (this takes a few minutes)"
	@$(BIN)/python -m venv --clear $(INTEGRATIONS)
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	    > $$(echo $(INTEGRATIONS)/lib/python*/site-packages)/test.pth
	@$(INTEGRATIONS)/bin/python -m pip install --quiet --quiet --no-index --no-deps torch || true
	@$(INTEGRATIONS)/bin/python -m pip install --quiet --quiet pytest "$(WHEEL)[test-integrations]"
	@touch $@

bench: $(INSTALLED)
	@echo "== benchmarks"
	@$(BIN)/python benchmarks/run.py --peers $(PEERS) $(BENCH_ARGS)

faults: $(INSTALLED)
	@echo "== fault campaign"
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -P tests/faults/campaign.py $(FAULTS_ARGS)

simulate: $(INSTALLED)
	@echo "== simulated experiments"
	@$(BIN)/python -P tests/faults/simulation/simulate.py --seed $(SEED) --minutes $(MINUTES) $(SIMULATE_ARGS)

# These three need a C compiler.
powercuts: $(INSTALLED)
	@echo "== power cuts"
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -P tests/faults/powercuts.py $(POWERCUTS_ARGS)

nth: $(INSTALLED)
	@echo "== calls that fail"
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -P tests/faults/nth.py --fail $(NTH_ARGS)

partitions: $(INSTALLED)
	@echo "== partitions"
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -P tests/faults/partitions.py $(PARTITIONS_ARGS)

kills: $(INSTALLED)
	@echo "== kills at every call"
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -P tests/faults/nth.py --kill $(KILLS_ARGS)

peers: $(PEERS)/.stamp

$(PEERS)/.stamp: benchmarks/peers.txt
	@echo "== Optuna, Ray Tune and NNI in $(PEERS) (this takes a few minutes)"
	@$(PYTHON) -m venv --clear $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --compile -r benchmarks/peers.txt
	@touch $@

check: lint types

# `make -k check` shows what all of them have to say.
lint: lint-ruff lint-format lint-imports

lint-ruff: $(READY)
	@echo "== lint"
	@$(BIN)/ruff check --output-format concise .

lint-format: $(READY)
	@echo "== format"
	@$(BIN)/ruff format --check --output-format concise .

lint-imports: $(READY) tree
	@echo "== import rule"
	@$(BIN)/python tests/import_rules.py .
	@cd $(LAYOUT) && "$(abspath $(BIN))"/lint-imports --no-logo --no-cache

types: types-folders types-face

types-folders: $(READY)
	@echo "== types"
	@$(BIN)/basedpyright --pythonpath $(BIN)/python

types-face: $(READY) tree
	@echo "== types of pitchpipe/, and of its names in a script"
	@$(BIN)/basedpyright --pythonpath $(BIN)/python --project $(LAYOUT)

# The relative imports of pitchpipe/ lead to the other folders only in the layout of the installed package. It is made
# of links, so an editor that opens it resolves every import and edits the files of the checkout.
LAYOUT := build/types
tree:
	@rm -rf $(LAYOUT)
	@mkdir -p $(LAYOUT)/pitchpipe
	@ln -s $(addprefix ../../../,$(wildcard pitchpipe/*.py) $(filter-out pitchpipe,$(PACKAGES))) $(LAYOUT)/pitchpipe
	@ln -s ../../tests/typed_names.py $(LAYOUT)
	@sed 's/^include = .*/include = ["pitchpipe", "typed_names.py"]/' pyproject.toml > $(LAYOUT)/pyproject.toml

format: $(READY)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

wheel: $(WHEEL_READY)

install: $(INSTALLED)

$(VENV_READY):
	@echo "== a virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "Python 3.11 or newer is needed and '$(PYTHON)' is not one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "'$(PYTHON)' comes without venv and pip. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# build/ keeps modules that were deleted since: it goes first.
$(WHEEL_READY): $(SOURCES) | $(VENV_READY)
	@echo "== the wheel"
	@rm -rf build/lib build/bdist.* dist/pitchpipe-*.whl
	@$(BIN)/python -m pip wheel --quiet --quiet --no-deps --wheel-dir dist .
	@touch $@

# The libraries of one extra. They are installed again only when setup.cfg changed.
$(VENV)/.stamp-extra-%: setup.cfg | $(VENV_READY) $(WHEEL_READY)
	@echo "== the libraries for: $* (the first time this takes a few minutes)"
	@$(PIP_INSTALL) "$(WHEEL)[$*]"
	@touch $@

$(INSTALLED): $(WHEEL_READY) | $(USED_READY)
	@echo "== installing the wheel"
	@$(PIP_INSTALL) --force-reinstall --no-deps "$(WHEEL)"
	@touch $@

clean:
	rm -rf $(VENV) $(INTEGRATIONS) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis

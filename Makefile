# What there is to do here: `make help`. CI calls these targets and nothing else.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Everything that the native module is made of: a change in any of it builds it anew.
RUST := $(shell find crates -name '*.rs' -o -name '*.sql' -o -name Cargo.toml) Cargo.toml Cargo.lock
STAMP := $(VENV)/.pgdyno-built
DEPS := $(VENV)/.pgdyno-deps

# Each pgdyno that a test starts would compile its modules anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-slow test-all check bench docs fuzz setup clean fmt

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv and build the native module (the other targets do it themselves)

$(DEPS): pyproject.toml constraints.txt
	@command -v cargo >/dev/null || { echo "pgdyno needs cargo (Rust 1.86 or newer) to build; see README.md" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "pgdyno needs Python 3.11 or newer; this is $$($(PYTHON) -V). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "cannot make $(VENV); on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt maturin
	@touch $@

$(STAMP): $(DEPS) $(RUST)
	@echo "Installing Python packages and building the native module (a few minutes the first time) ..."
	@PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) \
	  $(BIN)/maturin develop --release --quiet --extras embedded,dev > $(VENV)/build.log 2>&1 || { cat $(VENV)/build.log >&2; exit 1; }
	@touch $@

demo: $(STAMP) ## The main job on a private PostgreSQL 18: two minutes, a table, a report
	@$(BIN)/pgdyno run quick --embedded

# Tests that no other load on the machine disturbs run several at a time. Those of pgdynos that load a server are each in a
# network of their own, where they do not see each other and cannot fetch anything (tests/conftest.py); only root can make
# one. Those marked `alone` measure, and have the machine to themselves.
BESIDE := tests/unit tests/heap tests/conformance
LOADING := tests/hostile tests/live tests/browser
AT_A_TIME := -n auto --maxprocesses 4 --dist loadscope
PYTEST := $(BIN)/python -m pytest --durations=20
IF_ROOT := $(if $(filter 0,$(shell id -u)),$(AT_A_TIME))

define run_tests
	$(PYTEST) $(BESIDE) -m "$(1)" $(AT_A_TIME)
	PGDYNO_TESTS_APART=1 $(PYTEST) $(LOADING) -m "$(1) and not alone" $(IF_ROOT)
	$(PYTEST) $(LOADING) -m "$(1) and alone"
endef

test: $(STAMP) ## Tests in a few minutes: Rust, Python, live ones on real servers
	cargo test --workspace --quiet
	$(call run_tests,not slow)

# SHARE=1/6: the second of six parts of them.
SHARE ?= 0/1
test-slow: export PGDYNO_TESTS_SHARE := $(SHARE)
test-slow: $(STAMP) ## The other tests: more versions, kills at every moment, full disks, browsers
	$(call run_tests,slow)

test-all: test test-slow ## Both

check: $(STAMP) ## Formatting, lints, types, layers, spelling
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff format --check python tests benches scripts
	$(BIN)/ruff check python tests benches scripts
	$(BIN)/mypy
	$(BIN)/mypy benches/*.py scripts/*.py
	$(BIN)/mypy --config-file tests/mypy.ini tests
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell python docs crates tests benches scripts README.md CONTRIBUTING.md CHANGELOG.md

bench: $(STAMP) ## Side-by-side measurements with pgbench and with a bare loop; prints ratios
	cargo build --release --quiet -p pgdyno-benches
	$(BIN)/python benches/startup.py
	$(BIN)/python benches/script.py
	$(BIN)/python benches/client.py
	$(BIN)/python benches/load.py
	$(BIN)/python benches/tpcc.py
	$(BIN)/python benches/drilling.py
	$(BIN)/python benches/relay.py
	$(BIN)/python benches/mysql.py
	$(BIN)/python benches/intervals.py
	$(BIN)/python benches/judging.py
	$(BIN)/python benches/simulated.py
	$(BIN)/python benches/collecting.py
	$(BIN)/python benches/causes.py
	$(BIN)/python benches/report.py

FUZZ_S ?= 60
fuzz: $(STAMP) ## Fuzz decoders and damaged runs, FUZZ_S seconds each (cargo-fuzz and a nightly toolchain)
	$(BIN)/python -m tests.hostile.fuzz_runs $(FUZZ_S) $$RANDOM
	cd fuzz && for t in backend conversation script; do cargo +nightly fuzz run $$t -- -max_total_time=$(FUZZ_S); done

docs: $(STAMP) ## Regenerate what the documentation quotes
	$(BIN)/python scripts/docs.py
	$(BIN)/python scripts/commands.py

fmt: $(DEPS) ## Format everything
	cargo fmt --all
	$(BIN)/ruff format python tests benches scripts
	$(BIN)/ruff check --fix python tests benches scripts

clean: ## Remove what was built
	rm -rf $(VENV) target python/pgdyno/*.so

# make run          serve handler/ on http://127.0.0.1:8000/mcp; long calls are kept in memory
# make run-dynamodb the same with long calls in a DynamoDB-compatible engine, and two processes that work on them
# make test         all tests (make test TESTS=tests/project for some of them)
# make check        format, lint, types
# make lowest       the tests of the wire, with the oldest libraries that are allowed
# make conformance  the official MCP conformance suite, over Lambda events
# make soak         hundreds of long calls with lost events, killed workers and a throttling store, for ten minutes
# make clean        remove everything that these made
#
# Each sets up what it needs first. Another Python: make test PYTHON=python3.12, with an environment of its own.

# The first Python that is new enough: on a Mac, plain python3 may be an old one beside a newer python3.X.
ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$python && break; done)
PYTHON := $(if $(PYTHON),$(PYTHON),python3)
VENV := .venv
else
VENV := .venv-$(patsubst python%,%,$(notdir $(PYTHON)))
endif

BIN := $(VENV)/bin
SAM_VENV := .cache/sam-venv
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
CLIENTS_VENV := .cache/clients-venv
CLIENTS := tests/clients/node
CONFORMANCE := tests/conformance
ENGINE := .cache/.engine-installed
# With the Node.js and npm of the clients' environment, or with them only where the machine has none.
WITH_NODE = PATH="$(CURDIR)/$(CLIENTS_VENV)/bin:$$PATH"
OR_NPM = PATH="$$PATH:$(CURDIR)/$(CLIENTS_VENV)/bin"
TESTS ?= tests
WIRE_TESTS := $(wildcard tests/auth tests/calls tests/definitions tests/http tests/lambda_entry tests/protocol tests/project/test_events.py)

.PHONY: run run-dynamodb soak test check lowest conformance clean setup sam build-Server build-Worker

run: $(VENV)/.installed
	$(BIN)/mcp-stateless dev handler.app:app

run-dynamodb: $(VENV)/.installed
	$(BIN)/python -m tests.project.with_engine $(BIN)/mcp-stateless dev --dynamodb handler.app:app

soak: $(VENV)/.installed $(SAM_VENV)/.installed
	$(BIN)/python -m tests.soak

test: $(VENV)/.installed $(SAM_VENV)/.installed $(CLIENTS)/node_modules/.installed $(ENGINE)
	$(OR_NPM) $(BIN)/python -m pytest $(TESTS)

check: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Old releases warn of their own old dependencies: here alone a warning is no error.
lowest: .venv-lowest/.installed
	.venv-lowest/bin/python -m pytest -o filterwarnings=default $(WIRE_TESTS)

conformance: $(VENV)/.installed $(CONFORMANCE)/node_modules/.installed $(ENGINE)
	$(WITH_NODE) $(BIN)/python -m tests.conformance

# `sam build` calls this through targets/<runtime>-<architecture>/Makefile, from this folder, and sets ARTIFACTS_DIR.
# A folder that ends in -auth stands for a build that can verify tokens.
# Wheels for Lambda's Linux are fetched in the versions that the tests run with; nothing is compiled here.
TARGET := $(notdir $(patsubst %/Makefile,%,$(filter %/Makefile,$(MAKEFILE_LIST))))
PLATFORM := manylinux2014_$(patsubst arm64,aarch64,$(word 2,$(subst -, ,$(TARGET))))

build-Server build-Worker: $(VENV)/.installed
	$(BIN)/python $(PIP_INSTALL) --target "$(ARTIFACTS_DIR)" --no-compile --constraint requirements-dev.txt \
	  --implementation cp --python-version $(patsubst python%,%,$(firstword $(subst -, ,$(TARGET)))) \
	  --platform $(PLATFORM) --only-binary=:all: --no-build-isolation '.$(if $(filter %-auth,$(TARGET)),[auth])'
	rm -rf "$(ARTIFACTS_DIR)/bin"
	cp -R handler "$(ARTIFACTS_DIR)/handler"
	find "$(ARTIFACTS_DIR)" -name __pycache__ -type d -prune -exec rm -rf {} +

setup: $(VENV)/.installed
sam: $(SAM_VENV)/.installed

# A file marks a finished set-up: a second run finds it and starts at once, a broken off one begins again.
define make_venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "mcp-stateless needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) --version 2>&1`." >&2; \
	  echo "Install one, or name it: make $(MAKECMDGOALS) PYTHON=python3.13" >&2; exit 1; }
	@echo "Setting up $(@D) with `$(PYTHON) --version`: once, about a minute"
	@$(PYTHON) -m venv --clear $(@D) || { \
	  echo "Could not make a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
endef

$(VENV)/.installed: requirements-dev.txt pyproject.toml
	$(make_venv)
	@$(BIN)/python $(PIP_INSTALL) -r requirements-dev.txt
	@$(BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

.venv-lowest/.installed: requirements-dev.txt pyproject.toml tests/lowest.txt
	$(make_venv)
	@$(@D)/bin/python $(PIP_INSTALL) -r requirements-dev.txt
	@$(@D)/bin/python $(PIP_INSTALL) -r tests/lowest.txt
	@$(@D)/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# Apart from $(VENV): the SAM CLI pins older releases of libraries that the server uses. No container is needed.
$(SAM_VENV)/.installed: tests/emulator/requirements.txt
	$(make_venv)
	@$(@D)/bin/python $(PIP_INSTALL) -r $<
	@touch $@

# Clients whose libraries bite with those of the server, and Node.js with npm as a wheel: the machine needs none.
$(CLIENTS_VENV)/.installed: tests/clients/requirements.txt
	$(make_venv)
	@$(@D)/bin/python $(PIP_INSTALL) -r $<
	@touch $@

$(CLIENTS)/node_modules/.installed $(CONFORMANCE)/node_modules/.installed: %/node_modules/.installed: \
  %/package-lock.json | $(CLIENTS_VENV)/.installed
	cd $* && $(WITH_NODE) npm ci --no-audit --no-fund --loglevel=error
	@touch $@

# Starts the DynamoDB-compatible engine once, which installs it.
$(ENGINE): $(wildcard tests/calls/*/package-lock.json tests/calls/*.txt) | $(VENV)/.installed $(CLIENTS_VENV)/.installed
	@$(OR_NPM) $(BIN)/python -m tests.project.with_engine true
	@touch $@

clean:
	rm -rf .venv .venv-* .cache .aws-sam .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov build dist
	rm -rf tests/*/node_modules tests/*/*/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

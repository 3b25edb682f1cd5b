# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Everything lands in the checkout: .venv (the newest Python of this machine), .build (all the rest).
# Only the lab and the browser's tests need packages of the distribution, and only `make lab`, `make browser` and
# `make test` ask for them.

SHELL := /bin/bash
.SHELLFLAGS := -e -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BUILD := .build
ROOM := $(BUILD)/ansible_collections/bettercompute/bcd
TOOLS := tests/tools
REQUIREMENTS := tests/requirements
RESULTS := $(BUILD)/results
RUN := $(VENV)/bin/python -m
JOBS ?= 2

# The tests that run ansible-playbook on simulated hosts, and the simulated hosts' own.
PLAYED := tests/sim
SIMULATOR := tests/unit/sim
# The tests of what is shipped to a managed host, where no ansible is installed: with the oldest Python too.
SHIPPED := $(wildcard $(addprefix tests/unit/,core look plan units intent front hosts))

# The checkout is the collection bettercompute.bcd, whatever else the caller has installed.
export ANSIBLE_COLLECTIONS_PATH := $(CURDIR)/$(BUILD)
export ANSIBLE_HOME := $(CURDIR)/$(BUILD)/home

.PHONY: help
help:  ## Say what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 24

# --- environments ---------------------------------------------------------------------------------------------------

.PHONY: venv
venv: $(VENV)/.develop  ## The developer's environment in .venv

$(ROOM):
	@mkdir -p $(dir $@)
	@ln -sfn ../../.. $@

$(VENV)/.controller: $(REQUIREMENTS)/controller.txt | $(ROOM)
	@python="$$($(PYTHON) $(TOOLS)/pythons.py best)"; $(PYTHON) $(TOOLS)/make_venv.py $(VENV) "$$python" $<
	@touch $@

$(VENV)/.develop: $(REQUIREMENTS)/develop.txt $(VENV)/.controller
	@python="$$($(PYTHON) $(TOOLS)/pythons.py best)"; \
	$(PYTHON) $(TOOLS)/make_venv.py $(VENV) "$$python" $(REQUIREMENTS)/controller.txt $<
	@touch $@

$(BUILD)/old-core/.ready: $(REQUIREMENTS)/oldest.txt | $(ROOM)
	@python="$$($(PYTHON) $(TOOLS)/pythons.py old-core)"; $(PYTHON) $(TOOLS)/make_venv.py $(@D) "$$python" $<
	@touch $@

$(BUILD)/host-oldest/.ready: $(REQUIREMENTS)/host.txt | $(ROOM)
	@python="$$($(PYTHON) $(TOOLS)/pythons.py $(notdir $(@D)))"; $(PYTHON) $(TOOLS)/make_venv.py $(@D) "$$python" $<
	@touch $@

# --- what there is to see -------------------------------------------------------------------------------------------

.PHONY: demo
demo: $(VENV)/.controller  ## Converge a small simulated fleet twice and print its report
	@$(RUN) tests.sim.demo

# --- tests ----------------------------------------------------------------------------------------------------------

.PHONY: test
test: $(VENV)/.develop  ## Every test that this machine can run, and a table of what ran (EVERYTHING=1: nothing left out)
	@$(RUN) tests.tools.run_tests $(if $(EVERYTHING),--everything) $(PARTS)

.PHONY: lint
lint: $(VENV)/.develop  ## Every linter
	@$(RUN) tests.tools.run_checks

.PHONY: format
format: $(VENV)/.develop  ## Put the Python files into ruff's format, and mend what ruff can mend
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

.PHONY: sanity
sanity: $(VENV)/.develop  ## ansible-test sanity
	@$(RUN) tests.tools.run_sanity

.PHONY: unit
unit: $(VENV)/.develop  ## Plans, looks, core and tools under the newest Python
	@$(VENV)/bin/pytest -n $(JOBS) --junitxml=$(RESULTS)/unit.xml tests/unit --ignore=$(SIMULATOR)

.PHONY: hosts
hosts: $(BUILD)/host-oldest/.ready  ## The modules' code under the oldest Python, without Ansible
	@$(BUILD)/host-oldest/bin/python --version
	@$(BUILD)/host-oldest/bin/pytest -n $(JOBS) --junitxml=$(RESULTS)/hosts.xml -m "not needs_ansible and not exhaustive" $(SHIPPED)

.PHONY: sim
sim: $(VENV)/.develop  ## Roles and modules on simulated hosts, newest ansible-core
	@$(VENV)/bin/pytest -n $(JOBS) --dist worksteal --junitxml=$(RESULTS)/sim.xml $(SIMULATOR) $(PLAYED)

.PHONY: oldest
oldest: $(BUILD)/old-core/.ready  ## The same on the oldest ansible-core, but for what is not Ansible's doing
	@$(BUILD)/old-core/bin/pytest -n $(JOBS) --dist worksteal --junitxml=$(RESULTS)/oldest.xml \
		-m "not newest_core" $(PLAYED)

.PHONY: matrix
matrix: sim oldest  ## Both

.PHONY: molecule
molecule: $(VENV)/.develop  ## Molecule scenarios on simulated hosts
	@$(RUN) tests.tools.run_molecule

.PHONY: browser
browser: $(VENV)/.develop  ## The report's page in a real Chromium; as root, installs it where it is not there
	@$(RUN) tests.browser.chromium
	@$(VENV)/bin/pytest --junitxml=$(RESULTS)/browser.xml tests/browser

.PHONY: lab-packages
lab-packages: $(VENV)/.develop
	@$(VENV)/bin/python tests/lab/lab.py check > /dev/null 2>&1 || $(VENV)/bin/python tests/lab/lab.py prerequisites

.PHONY: lab
lab: lab-packages  ## A real Debian in QEMU; as root, installs QEMU where it is not there
	@status=0; $(VENV)/bin/pytest --junitxml=$(RESULTS)/lab.xml tests/lab || status=1; \
	$(RUN) tests.tools.run_molecule --lab || status=1; exit $$status

# Of the cases, BENCH_CASES="sysctls,agent" picks those whose names have a word; docs/performance.md has the rest.
BENCH_ROUNDS ?= 5
BENCH_CASES ?=
PEERS := $(BUILD)/bench-peers

$(PEERS)/.ready: $(REQUIREMENTS)/peers.txt
	@python="$$($(PYTHON) $(TOOLS)/pythons.py best)"; $(PYTHON) $(TOOLS)/make_venv.py $(@D) "$$python" $<
	@touch $@

.PHONY: bench
bench: $(VENV)/.develop $(PEERS)/.ready  ## What passes cost, in ratios that are held to bounds; as root
	@PYTHONPATH=$(BUILD) $(RUN) tests.bench.run --peers $(PEERS) --rounds $(BENCH_ROUNDS) --cases "$(BENCH_CASES)"

.PHONY: bench-scale
bench-scale: $(VENV)/.develop  ## The same pass over 1 to 1,000 hosts, by forks, strategies and slices; as root
	@PYTHONPATH=$(BUILD) $(RUN) tests.bench.run --rounds 1 --turns 1 --cases "role over 50 hosts" --scale all

.PHONY: bench-holds
bench-holds: $(VENV)/.develop  ## What passes over 96, 384 and 1,000 assignments cost, and whether that grows linearly
	@PYTHONPATH=$(BUILD) $(RUN) tests.bench.holds

# --- what is shipped ------------------------------------------------------------------------------------------------

.PHONY: build
build: $(VENV)/.develop  ## The Galaxy tarball and the program bcd in .build/dist, tried
	@$(RUN) tests.tools.check_build

.PHONY: execution-environment
execution-environment: build  ## The context of the image for AWX in .build/execution-environment, ready for podman build
	@$(RUN) tests.tools.execution_environment

.PHONY: docs
docs: $(VENV)/.develop  ## The documentation pages in .build/docs
	@$(RUN) tests.tools.build_docs

.PHONY: clean
clean:  ## Remove everything that make made
	@rm -rf $(VENV) $(BUILD)

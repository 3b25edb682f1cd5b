# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Everything lands in the checkout: .venv (the newest Python of this machine), .build (all the rest).
# Only the lab needs packages of the distribution, and only `make lab` and `make test` ask for them.

SHELL := /bin/bash
.SHELLFLAGS := -e -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BUILD := .build
STAMPS := $(BUILD)/stamps
COLLECTIONS := $(CURDIR)/$(BUILD)
ROOM := $(BUILD)/ansible_collections/bettercompute/bcd
TOOLS := tests/tools
REQUIREMENTS := tests/requirements

export ANSIBLE_COLLECTIONS_PATH := $(COLLECTIONS)
export ANSIBLE_HOME := $(CURDIR)/$(BUILD)/ansible

.PHONY: help
help:  ## Say what each target does
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# --- environments ---------------------------------------------------------------------------------------------------

.PHONY: venv
venv: $(STAMPS)/develop  ## The developer's environment in .venv

$(ROOM):
	@mkdir -p $(dir $@)
	@ln -sfn ../../.. $@

$(STAMPS)/controller: $(REQUIREMENTS)/controller.txt $(TOOLS)/make_venv.py $(TOOLS)/pythons.py | $(ROOM)
	@mkdir -p $(STAMPS)
	@python="$$($(PYTHON) $(TOOLS)/pythons.py best)" && \
	$(PYTHON) $(TOOLS)/make_venv.py $(VENV) "$$python" $(REQUIREMENTS)/controller.txt
	@touch $@

$(STAMPS)/develop: $(STAMPS)/controller $(REQUIREMENTS)/develop.txt
	@$(PYTHON) $(TOOLS)/make_venv.py $(VENV) "$$($(PYTHON) $(TOOLS)/pythons.py best)" \
		$(REQUIREMENTS)/controller.txt $(REQUIREMENTS)/develop.txt
	@touch $@

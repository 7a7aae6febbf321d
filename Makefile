# Diptych's commands. PYTHON chooses the interpreter that makes the environment: make test PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORK := build
READY := $(VENV)/.ready

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1
# For all systems and for Python 3.11 and later. PyTorch is in requirements/torch.txt, because there are several
# builds of one version, with hashes of their own, and those for graphics cards ask for gigabytes of libraries; so has
# torchvision, whose build is that of PyTorch.
COMPILE = $(BIN)/uv pip compile --quiet --system-certs --universal --python-version 3.11 --generate-hashes \
	--no-emit-package torch --no-emit-package torchvision \
	--excludes requirements/excluded.txt --overrides requirements/overrides.txt \
	--custom-compile-command 'make lock' $(UPGRADE)
heading = @printf '\n== %s ==\n' '$(1)'

.DEFAULT_GOAL := help
.PHONY: help strace run test test-all test-methods test-collection test-service test-page test-documents lint types \
	quick browser docs-check package docs format bench pages campaigns \
	lock notice audit advisories sbom container pin-base clean

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(READY) ## set up and run the main job: search a demonstration collection
	@$(BIN)/diptych demo

# mypy runs beside the tests; its output is shown when they are done.
test: $(READY) browser ## set up and run the quick checks: lint, types, unit tests, one run of each large part
	@mkdir -p $(WORK); date +%s > $(WORK)/started
	@$(MAKE) --no-print-directory lint
	@{ nice $(MAKE) --no-print-directory types > $(WORK)/types.log 2>&1; \
			checked=$$?; cat $(WORK)/types.log; exit $$checked; } & types=$$!; \
		$(MAKE) --no-print-directory quick; tested=$$?; \
		wait $$types || { echo 'Types failed, see above.'; exit 1; }; exit $$tested
	@printf '\nAll quick checks passed in %d s.\n' $$(($$(date +%s) - $$(cat $(WORK)/started)))

# Each of these is a shard: they can run on machines of their own.
test-all: test-methods test-collection test-service test-page test-documents ## the rest: PyTorch, processes, servers, page, documents, package

test-methods: $(VENV)/.ready-torch ## shard: methods, encoders, data, studies; needs PyTorch
	$(call full,methods)

test-collection: $(READY) strace ## shard: collections and their processes
	$(call full,collection)

test-service: $(VENV)/.ready-torch strace ## shard: service and command line
	$(call full,service)

test-page: $(READY) browser ## shard: the page in a browser
	$(call full,page)

test-documents: $(VENV)/.ready-torch docs-check package ## shard: documents, examples, golden files, package
	$(call full,documents)

lint: $(READY) ## ruff: rules and format
	$(call heading,lint)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(READY) ## mypy, strict
	$(call heading,types)
	@$(BIN)/mypy

# One more than the cores that the tests are made for: a worker often waits for a server, a browser or a disk.
WORKERS ?= 3
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations 20 --durations-min 2
quick: $(READY) ## the quick tests alone
	$(call heading,quick tests)
	@$(PYTEST) --tier quick tests

define full
	$(call heading,tests of $(1))
	@$(PYTEST) --tier full --shard $(1) $(if $(filter documents,$(1)),--doctest-modules tests src/diptych,tests)
endef

docs-check: $(READY) ## build the documentation, any warning fails
	$(call heading,documentation)
	@DOCS_WITH_SEARCH=false DOCS_SIGNATURE_WIDTH=100000 $(BIN)/mkdocs build --strict --quiet --site-dir $(WORK)/site

# The tests build wheel and sdist and compare them; here pip builds, in an environment of its own, as it does for users.
package: $(READY) ## install into an empty environment, use it
	$(call heading,package)
	@rm -rf $(WORK)/package && mkdir -p $(WORK)/package/elsewhere
	@$(BIN)/python -m venv --without-pip $(WORK)/package/venv
	@$(BIN)/python -m pip --python $(WORK)/package/venv/bin/python install --no-compile --quiet --quiet .
	@$(BIN)/python -m pip --python $(WORK)/package/venv/bin/python check
	@cd $(WORK)/package/elsewhere && ../venv/bin/python -I -c 'import diptych, diptych.data, diptych.metrics, diptych.models'
	@cd $(WORK)/package/elsewhere && ../venv/bin/diptych --version && ../venv/bin/diptych methods
	@$(BIN)/python -m pip wheel --no-deps --quiet --quiet --wheel-dir $(WORK)/package .
	@cd $(WORK)/package/elsewhere && $(abspath $(BIN))/uvx --system-certs --isolated --from ../diptych-*.whl diptych --version
	@cd $(WORK)/package/elsewhere && $(abspath $(BIN))/uvx --system-certs --isolated pipx run --spec ../diptych-*.whl diptych --version

docs: $(READY) ## build the site into site/
	@$(BIN)/mkdocs build --strict --quiet
	@echo 'The site is in site/index.html.'

format: $(READY) ## apply ruff's fixes and format
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(READY) ## measure speed beside peers and write docs/results/performance.md; SCRIPTS="start search" measures some
	@$(BIN)/python -m bench.run $(SCRIPTS)

pages: $(READY) ## write the tables of the documents anew from bench/results
	@$(BIN)/diptych bench pages bench/results

# Each adds to the record of trials, bench/results/reliability.jsonl. TMPDIR=/dev/shm is quicker. Without TRIALS, each
# campaign has as many as it is made for; MINUTES are those of each kind of input, and of the load.
campaigns: $(READY) ## kills, power cuts, full disk, damage, fuzzing, load: TRIALS=n MINUTES=30
	@for campaign in $(foreach name,kill_trials power_cuts full_disk byte_flips,'$(name) $(TRIALS:%=--trials %)') \
			$(foreach fault,client server primary pause,'kill_trials --fault $(fault) $(TRIALS:%=--trials %)') \
			$(foreach name,fuzz hostile_pictures hostile_requests,'$(name) --minutes $(or $(MINUTES),30)') \
			'mixed_load --minutes $(or $(MINUTES),10)' 'mixed_load --fault postgres --minutes $(or $(MINUTES),10)'; do \
		printf '\n== %s ==\n' "$$campaign"; $(BIN)/python -m bench.$$campaign || failed=1; done; \
		$(BIN)/python -m bench.reliability_page; exit $${failed:-0}

lock: $(READY) ## write requirements/ after pyproject.toml has changed; UPGRADE=--upgrade takes newer versions
	@$(COMPILE) --extra dev --extra docs pyproject.toml --output-file requirements/test.txt
	@$(COMPILE) --extra postgres --extra search --extra serve --constraints requirements/test.txt pyproject.toml \
		--output-file requirements/container.txt
	@$(COMPILE) --group build --constraints requirements/test.txt --output-file requirements/build.txt
	@$(COMPILE) --group tools --output-file requirements/tools.txt

notice: $(READY) ## write NOTICE from the metadata of what is locked
	@$(BIN)/python scripts/notice.py

# OSV names an archive or a folder of advisories; those that `make advisories` kept are taken without being named.
OSV ?= $(wildcard requirements/advisories.zip)
audit: $(WORK)/tools/.ready ## known weaknesses of what is locked: OSV=all.zip without a network, PyPI is asked otherwise
	@if [ -n '$(OSV)' ]; then $(WORK)/tools/bin/python scripts/audit.py '$(OSV)'; \
		else $(WORK)/tools/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off \
			$(foreach lock,build container test tools,--requirement requirements/$(lock).txt); fi

advisories: $(WORK)/tools/.ready ## keep the advisories on what is locked in requirements/: OSV=all.zip
	@$(WORK)/tools/bin/python scripts/audit.py '$(OSV)' --keep requirements/advisories.zip

sbom: $(WORK)/container/.ready ## write the bill of materials of the container; PYTHON=python3.12 has its versions
	@$(WORK)/tools/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible $(WORK)/container/bin/python \
		| $(WORK)/tools/bin/python scripts/sbom.py dist/diptych.cdx.json

# podman or docker. UNPINNED=yes takes a base without a digest, for a try.
ENGINE ?= podman
container: ## build the image from a base that is pinned by its digest
	@grep -q '^ARG BASE_IMAGE=.*@sha256:' deploy/Containerfile || [ '$(UNPINNED)' = yes ] \
		|| { echo 'The base image is not pinned: make pin-base (needs skopeo and a network), or UNPINNED=yes for a try.'; exit 1; }
	@$(ENGINE) build --file deploy/Containerfile --tag diptych .

pin-base: ## write the present digest of the base image into deploy/Containerfile, for review and commit
	@base=$$(sed -n 's/^ARG BASE_IMAGE=\([^@]*\).*/\1/p' deploy/Containerfile); \
		mkdir -p $(WORK) && skopeo inspect --raw "docker://$$base" > $(WORK)/base.json && test -s $(WORK)/base.json \
		&& sed -i "s|^ARG BASE_IMAGE=.*|ARG BASE_IMAGE=$$base@sha256:$$(sha256sum < $(WORK)/base.json | cut -d ' ' -f 1)|" deploy/Containerfile \
		&& grep '^ARG BASE_IMAGE=' deploy/Containerfile

clean: ## remove the environment and everything built
	rm -rf $(VENV) $(WORK) dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Diptych needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(call heading,environment)
	@$(PYTHON) -m venv $(VENV)

# uv installs what the locks name. PyTorch comes by pip: it has several builds of one version, those for graphics cards
# ask for gigabytes of libraries, and pip's settings say which build is taken.
LOCKED := --no-deps --require-hashes
UV = $(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python
$(READY): requirements/build.txt requirements/test.txt pyproject.toml | $(BIN)/python
	$(call heading,installing what Diptych and its tests need)
	@$(BIN)/python -m pip install --quiet --quiet $(LOCKED) --requirement requirements/build.txt
	@$(UV) $(LOCKED) --no-build-isolation --requirement requirements/test.txt
	@$(UV) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.ready-torch: requirements/torch.txt $(READY)
	$(call heading,installing PyTorch)
	@$(BIN)/python -m pip install --quiet --quiet --requirement requirements/torch.txt
	@touch $@

$(WORK)/tools/.ready: requirements/tools.txt
	@$(PYTHON) -m venv $(WORK)/tools
	@$(WORK)/tools/bin/python -m pip install --quiet --quiet --no-deps --require-hashes --requirement $<
	@touch $@

# As in deploy/Containerfile: no pip inside, and nothing but what the lock names.
$(WORK)/container/.ready: requirements/container.txt $(WORK)/tools/.ready
	@rm -rf $(WORK)/container && $(PYTHON) -m venv --without-pip $(WORK)/container
	@$(WORK)/tools/bin/python -m pip --python $(WORK)/container/bin/python install --quiet --quiet \
		--no-deps --require-hashes --only-binary :all: --requirement $<
	@touch $@

# Debian's packages are installed where that can be done without asking; elsewhere the tests that need them are left out.
installed = command -v $(1) > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && apt-get update -qq \
	&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2) > /dev/null; }
browser: # what the tests of the page drive
	@command -v chromium > /dev/null || $(call installed,chromium-headless-shell,chromium-headless-shell) \
		|| echo 'No Chromium: the tests of the page are left out (sudo apt-get install chromium-headless-shell).'

strace: # what shows the files and connections of a process
	@$(call installed,strace,strace) || echo 'No strace: the test of privacy is left out (sudo apt-get install strace).'

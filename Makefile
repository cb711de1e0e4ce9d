# One command each; `make` alone lists them. PORT, PYTHON and the settings of the README are taken
# from the environment or from the command line: make run PORT=9000.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run build setup check format quick test judge bench release lock upgrade clean

PYTHON_IN_VENV := .venv/bin/python
# A release is taken a week after it appeared, when a bad one has been found out and withdrawn.
# Extras stay in a lock: without them pip takes the newest release of a package that another package
# asks for with an extra, and refuses that because its hash is not in the lock.
COMPILE := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-strip-extras --no-emit-index-url --exclude-newer "1 week" --custom-compile-command "make lock"

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The journal of this repository is about the API, so its contact page has the form that asks for access.
run build: export ACCESS_REQUESTS ?= $(or $(shell sed -n "s/^ACCESS_REQUESTS=[\"']*\([a-z]*\).*/\1/p" .env 2>/dev/null),on)

IS_DEMO := $(filter-out 0 no off false,$(DEMO))

run: $(if $(IS_DEMO),,.unserved build) ## build the site, prepare the store, serve on PORT (8000), publish what changes; DEMO=1 does so in demo/
	@$(if $(IS_DEMO),tools/setup run)
	@exec tools/run

.unserved: # an edge that serves the journal already would serve what is built here, for another PORT
	@tools/setup run
	@$(PYTHON_IN_VENV) -c 'from site_build.cli.run import refuse_second_edge; refuse_second_edge()'

build: ## build the site from content/, with only what running needs
	@tools/setup run
	@$(PYTHON_IN_VENV) -m site_build build || [ $$? = 3 ] # which has built all that is good

setup: ## make the whole development environment in .venv
	@tools/setup run test

check: setup ## lint, format, types and import rules
	@$(PYTHON_IN_VENV) -m ruff check --quiet
	@$(PYTHON_IN_VENV) -m ruff format --quiet --check || { echo "Run: make format"; exit 1; }
	@$(PYTHON_IN_VENV) -m mypy --no-error-summary
	@said=$$(.venv/bin/lint-imports --no-logo 2>&1) || { echo "$$said"; exit 1; }
	@echo "Lint, format, types and import rules hold."

format: setup ## format the code
	@$(PYTHON_IN_VENV) -m ruff format --quiet

quick: setup ## the tests that need no browser, no PostgreSQL and nothing from npm
	@tools/prove --size=quick

test: check ## check, then everything that shows that the product works
	@tools/provide chromium >/dev/null
	@tools/provide curl >/dev/null
	@tools/provide dovecot >/dev/null
	@$(PYTHON_IN_VENV) -m tools.judges
	@tools/prove --size=test

judge: setup ## the tests that .ci/run leaves out: every judge on every page, hundreds of kills
	@tools/provide chromium >/dev/null
	@tools/provide java >/dev/null
	@$(PYTHON_IN_VENV) -m tools.judges
	@$(PYTHON_IN_VENV) -m pytest --no-header --size=judge --above=ci

bench: setup ## measure speed and memory beside peers, write a report to REPORT (benchmarks/report), fail if a promise is missed
	@tools/provide wrk >/dev/null
	@tools/provide nginx >/dev/null
	@tools/provide openssl >/dev/null
	@$(PYTHON_IN_VENV) -m benchmarks $(if $(REPORT),--report "$(REPORT)")

release: setup ## build the wheel and the sdist into dist/, walk through a journal of the wheel, name the tag
	@$(PYTHON_IN_VENV) -m tools.release

lock: setup ## lock requirements/*.in again, keeping versions that still fit
	@$(COMPILE) $(UPGRADE) --output-file requirements/run.txt requirements/run.in
	@$(COMPILE) $(UPGRADE) --output-file requirements/test.txt requirements/test.in
	@$(COMPILE) $(UPGRADE) --output-file requirements/bench.txt requirements/bench.in
	@$(COMPILE) $(UPGRADE) --output-file requirements/judge.txt requirements/judge.in
	@$(COMPILE) $(UPGRADE) --output-file requirements/sqlite.txt requirements/sqlite.in
	@$(COMPILE) $(UPGRADE) --output-file requirements/moto.txt requirements/moto.in

upgrade: UPGRADE := --upgrade
upgrade: lock ## lock the newest versions that are a week old

clean: ## remove what commands made, and demo/ if its .env has DEMO=on, but never the store in var/
	@! grep -qsx 'DEMO=on' demo/.env || rm -rf demo
	@rm -rf .venv .venv-bench .venv-judge .venv-moto build dist tests/judges/node_modules .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

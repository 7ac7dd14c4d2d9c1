# The few commands a contributor needs. Each sets itself up; the first call takes minutes, later ones do not.
PYTHON ?= python3
ENGINE ?= simulated

.DEFAULT_GOAL := help
.PHONY: help demo demo-clean test lint units collection oracle oracle-anew story docs real venv

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## play the whole story on a simulated host with eight GPUs (needs root); ENGINE=sglang: on SGLang itself, on the CPU
	@$(PYTHON) tools/demo --engine $(ENGINE)

demo-clean: ## remove everything the demo and the tests made on this machine
	@$(PYTHON) tools/demo --clean

test: ## everything CI runs, on the oldest and the newest ansible-core (needs root for the story)
	@$(PYTHON) tests/run

lint: ## ruff, yamllint, mypy, ansible-lint, licences
	@$(PYTHON) tests/run lint --core oldest

units: ## unit and property tests
	@$(PYTHON) tests/run args units --core oldest

collection: ## sanity, syntax and documentation of the collection as released
	@$(PYTHON) tests/run collection --core oldest

oracle: ## what is recorded of SGLang's argument code: a sample executed anew, then the static tier against all of it
	@$(PYTHON) tests/run oracle --core oldest
	@$(PYTHON) tests/oracle/run.py --recorded

oracle-anew: ## new command lines for 14 releases, executed by SGLang's own code and by the static tier (an hour)
	@$(PYTHON) tests/oracle/run.py --seed $$(date +%s)

story: ## molecule scenarios on hosts with systemd
	@$(PYTHON) tests/run story --core oldest

docs: ## the documentation as a site, in out/docs/html
	@$(PYTHON) tools/docs_site

real: ## the real SGLang on this machine's processor: deploy, two stages, a failed upgrade (first time 700 MB)
	@$(PYTHON) tests/run real --core oldest

venv: ## the contributor's environment in .venv
	@$(PYTHON) tests/lab/lab venv

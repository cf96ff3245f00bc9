# Two commands: make lab, make test. Nothing is installed outside this folder but, by `make test`
# as root on Debian, Chromium. `make fresh`, as root, makes an ordinary user and removes it.
# Other settings: make lab LAB_ARGS="--no-browser --port=9000", make lab PYTHON=/path/to/python3.12

VENV := .venv
INPUTS := pyproject.toml requirements.lock requirements-test.lock requirements-torch.lock
FIND = python="$$(PYTHON='$(PYTHON)' sh tools/find_python.sh)"
SET_UP = $(FIND) && "$$python" -u tools/setup_env.py

.PHONY: help lab test nightly weekly steady score soak recordings gpu refresh fresh bench lint lock \
	site pictures upgrade upgrade-check clean
.DEFAULT_GOAL := help

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | column -t -s '|' 2>/dev/null \
		|| sed -n 's/^\([a-z-]*\):.*## /  make \1  /p' Makefile

lab: $(VENV)/stamp-lab ## open the guide in JupyterLab
	@$(VENV)/bin/python tools/run_lab.py $(LAB_ARGS)

test: $(VENV)/stamp-test ## lint, check types, run a test of every promise and two lessons: 6 minutes
	@$(VENV)/bin/python tools/run_tests.py

nightly: $(VENV)/stamp-test ## run more tests, every other lesson and every panel
	@$(VENV)/bin/python tools/run_tests.py nightly

weekly: $(VENV)/stamp-test ## run the tests of whose kind `make nightly` runs only some
	@$(VENV)/bin/python tools/run_tests.py weekly

steady: $(VENV)/stamp-test ## repeat the real and browser tests ten times, three of them on a busy machine
	@$(VENV)/bin/python tools/steady.py

score: $(VENV)/stamp-test ## run every job of tests/jobs and every lab with every setting; count what is right
	@$(VENV)/bin/python tools/make_score.py tests/jobs --controls 100 --outside --markdown benchmarks/score.md \
		&& $(VENV)/bin/python -m helpers lab --all
	@$(MAKE) --no-print-directory fresh

soak: $(VENV)/stamp-test ## kill runs at random, starve machines, feed damaged input, for hours; write what is left
	@$(VENV)/bin/python tools/make_soak.py

recordings: $(VENV)/stamp-test ## run every job of tests/jobs anew, and keep how it was looked at
	@$(VENV)/bin/python tools/make_recordings.py

gpu: $(VENV)/stamp-test ## run labs and jobs on NVIDIA GPUs, and keep their reports and recordings
	@$(VENV)/bin/python tools/gpu.py $(GPU_ARGS)

fresh: ## run both commands of the README as a new user, in an empty home (root makes that user)
	@$(FIND) && "$$python" tools/fresh.py

refresh: $(VENV)/stamp-test ## run the notebooks and keep their new outputs
	@$(VENV)/bin/python tools/refresh.py $(NOTEBOOKS)

site: $(VENV)/stamp-test ## make the guide as static pages, in site/
	@$(VENV)/bin/python tools/make_site.py

pictures: $(VENV)/stamp-test ## make the README's pictures from runs of today
	@KEEP_PICTURES=1 $(VENV)/bin/python -m pytest -q -m nightly tests/browser/test_browser_pictures.py

bench: $(VENV)/stamp-test ## measure what the instrument costs and how long a verdict takes
	@$(VENV)/bin/python benchmarks/bench.py

lint: $(VENV)/stamp-test ## lint, format, check types and floors only, changing files
	@$(VENV)/bin/ruff check --fix . && $(VENV)/bin/ruff format . && $(VENV)/bin/mypy \
		&& $(VENV)/bin/lint-imports --no-cache --no-logo && $(VENV)/bin/vulture

lock: ## make the lock files anew; TORCH=2.14.0 moves torch (needs the network)
	@$(FIND) && PYTHON="$$python" sh tools/make_lock.sh $(if $(TORCH),torch==$(TORCH))

upgrade: ## take the newest packages, run the lessons with them, list the sentences to read again
	@$(FIND) && PYTHON="$$python" sh tools/make_lock.sh --upgrade
	@$(MAKE) --no-print-directory refresh recordings
	@$(VENV)/bin/python tools/references.py

upgrade-check: ## say whether torch, Lightning or Jupyter have releases that the guide has not run with
	@$(FIND) && "$$python" tools/upgrade_check.py

$(VENV)/stamp-lab: $(INPUTS)
	@$(SET_UP) lab

$(VENV)/stamp-test: $(INPUTS)
	@$(SET_UP) test

clean: ## remove the environment, caches and what runs left, but no progress and no file of yours
	@test ! -d $(VENV)/jupyter/progress || { $(FIND) && "$$python" tools/carry_progress.py; }
	@rm -rf $(VENV) build dist site *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .runs \
		tests/artifacts tests/jobs/site-packages/stand_in_device/device.so
	@find . -path ./.git -prune -o -type d \( -name __pycache__ -o -name .ipynb_checkpoints \
		-o -name .runs -o -name .built \) -prune -exec rm -rf {} +
	@find . -path ./.git -prune -o -type f \( -name core -o -name 'core.[0-9]*' \) -exec rm -f {} +

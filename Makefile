# `make figures` regenerates everything, `make test` checks everything. Both make .venv first.
# Variables: SCALE=smoke|laptop|paper, CONFIG=<a config file, or several>,
# PAPERS="chen2024 hager2025" for some papers, ONLY=hager2025/fig3 for some items.

SCALE ?= laptop
# OpenMP's variables, which clusters set to 1, are of threads: nproc would take them for cores.
CORES ?= $(shell env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null || sysctl -n hw.ncpu)
CONFIG ?=
PAPERS ?=
ONLY ?=
PART ?=
PYTHON ?= $(firstword $(foreach version,3.13 3.12 3.11,$(shell command -v python$(version) >/dev/null && python$(version) --version >/dev/null 2>&1 && echo python$(version))) python3)

BIN := .venv/bin
comma := ,
# What callers see has types that are checked strictly.
STRICT := twotowers/__init__.py twotowers/__main__.py twotowers/errors.py twotowers/commands \
	twotowers/diagnosis twotowers/analysis twotowers/fits twotowers/simulations twotowers/logs/click_log.py
# Words -> the elements of a YAML list.
listed = $(subst $() ,$(comma),$(strip $(1)))
# Snakemake needs a cache folder. The home folder may be absent or full.
SNAKEMAKE := XDG_CACHE_HOME='$(CURDIR)/.cache' \
	$(BIN)/snakemake --cores $(CORES) \
	$(if $(CONFIG),--configfile config.yaml $(CONFIG)) --config scale=$(SCALE) \
	$(if $(PAPERS),papers='[$(call listed,$(PAPERS))]') $(if $(ONLY),only='[$(call listed,$(ONLY))]')

.PHONY: figures record configured docs test lint standins bench clean lock

figures: configured .venv/installed
	$(SNAKEMAKE)

# Keep the verdicts of a run with the papers: papers/<key>/recorded/.
record: figures
	PYTHONPATH=. $(BIN)/python -m scripts.record_evidence --scale $(SCALE) \
		$(if $(CONFIG),--config $(CONFIG)) $(if $(PAPERS),--papers $(PAPERS))

configured:
	@for file in $(CONFIG); do test -f "$$file" || { echo "CONFIG=$$file: there is no such file"; exit 1; }; done

# The documentation as a site, which works from disk: site/docs/index.html.
docs: .venv/installed
	PYTHONPATH=. $(BIN)/python -m sphinx -q -W --keep-going -b html -c docs . site

test: lint
	$(BIN)/pytest -n 2 --dist loadgroup --no-loadscope-reorder

lint: .venv/installed
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	@said=$$($(BIN)/lint-imports --no-logo --cache-dir .cache/imports) || { echo "$$said"; exit 1; }
	$(BIN)/pyrefly check --summary=none
	$(BIN)/pyrefly check --summary=none --preset strict --ignore missing-override-decorator $(STRICT)
	$(BIN)/snakemake --lint

# Measure the stand-ins against the real data sets: docs/standins/*.csv.
standins: .venv/installed
	$(BIN)/python -m scripts.standins

# Measure time and memory (benchmarks/README.md). PART=fits measures one part.
bench: .venv/installed
	$(BIN)/python -m benchmarks $(PART)

.venv/installed: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
		{ echo "Python 3.11, 3.12 or 3.13 is needed; name it with make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) cannot make an environment: on Debian, apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

# Remove everything that can be made again. The environment and downloads stay.
clean:
	rm -rf results results-* figures-* site .snakemake .cache
	[ ! -d figures ] || find figures -mindepth 1 ! -path figures/README.md -delete

# Resolve pyproject.toml for `make` (requirements.txt) and for conda (envs/): one version of each
# package for all supported Pythons. Versions that still fit are kept.
lock:
	$(PYTHON) -m venv --clear .cache/lock
	.cache/lock/bin/pip install --quiet uv
	.cache/lock/bin/python -m scripts.export_environments

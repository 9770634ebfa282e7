# `make` without a target lists the targets.
PYTHON ?= $(shell test -x .venv/bin/python && echo .venv/bin/python || command -v python3)
export PYTHON
export OMP_NUM_THREADS = 1

.DEFAULT_GOAL := help
.PHONY: help setup test test-all check lint types docs bench

help:   ## list the targets
	@sed -n 's/^\([a-z-]*\): *## */\1\t/p' $(MAKEFILE_LIST) | expand -t 10

setup:  ## create .venv with everything a developer needs
	python3 -m venv .venv
	.venv/bin/python -m pip install -e ".[test,lint,docs]"

test:   ## units, and laws at small sizes, in under two minutes on two cores
	$(PYTHON) -m pytest -n 2 --dist worksteal -q -m "not slow and not ratio and not engine"

test-all: ## all tests: comparisons of times, clusters, and everything else on two processes
	.ci/run ratios engines test

check:  ## everything CI runs, in a fresh environment
	PYTHON=python3 .ci/run

lint:   ## style, format and the direction of imports
	.ci/run lint

types:  ## static types
	.ci/run types

docs:   ## the documentation, warnings as errors, into docs/_build/html
	.ci/run docs

bench:  ## all benchmarks, hours: make bench DATA=folder with the archives
	@test -n "$(DATA)" || { echo "make bench DATA=folder; docs/benchmarks/data.rst lists its contents"; exit 1; }
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/cost.py --data $(DATA)
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/tuning_speed.py
	$(PYTHON) benchmarks/size.py
	$(PYTHON) benchmarks/same_fits.py
	$(PYTHON) benchmarks/determinism.py
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/first_fit.py --data $(DATA)
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/rounding.py
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/coverage.py
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/honesty.py
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/real_rows.py --data $(DATA)
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/noise.py
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/programs.py --loo --flips
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/novelty.py --data $(DATA)
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/components.py
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/components.py --oriented
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/canonical.py --data $(DATA)
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/invariances.py --data $(DATA)
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/tabular.py --data $(DATA) --honesty
	$(PYTHON) benchmarks/curves.py --data $(DATA)
	$(PYTHON) benchmarks/raw_tables.py --data $(DATA)
	$(PYTHON) benchmarks/columns.py --data $(DATA)
	$(PYTHON) benchmarks/several.py --data $(DATA)
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/structured.py --data $(DATA) --large 100000 --pairs 2000
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/speech.py --data $(DATA)
	$(PYTHON) benchmarks/fit_times.py
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/memory.py
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/threads.py
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/lapack.py
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/one_pass.py --data $(DATA)
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/centers.py --data $(DATA)
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/online.py --rows 1000000
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/online.py --rows 1000000 --flat
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/cluster.py
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/sparse_models.py --data $(DATA)
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/theses.py --data $(DATA)
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/digits.py --data $(DATA)
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/ida.py --data $(DATA)/ida --criteria
	env -u OMP_NUM_THREADS $(PYTHON) benchmarks/ida.py --data $(DATA)/ida

# Needs git, make, Python 3.11 or newer and the package registries; everything else is installed into this folder.
# PYTHON and PYTHON_VLLM name other interpreters, ARGS goes to the command that a target runs, WORKERS is how many run tests.

PYTHON ?= $(shell for p in python3 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PYTHON_VLLM ?= $(shell for p in python3.12 python3.11 $(PYTHON); do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null && echo $$p && break; done)
UV ?= $(or $(shell command -v uv 2>/dev/null),.tools/uv/bin/uv)
ARGS ?=
KILLS ?= 20
WORKERS ?= 3
SEED ?= 1

PACKAGES = headrace schemas streams connectors trainers deploy
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --only-binary :all: \
	--no-emit-index-url --no-header
export UV_PYTHON_DOWNLOADS = never

.PHONY: help setup setup-vllm setup-verl setup-registry demo test gpu-check chaos lint format lock clean
.DEFAULT_GOAL := help

help:
	@echo 'make setup      everything that the headrace command needs, in .venv'
	@echo 'make demo       train a small model on this machine and watch it learn'
	@echo 'make test       the whole suite on real Kafka (ARGS="-k broker" for a part of it)'
	@echo 'make gpu-check  the tests that need a CUDA device'
	@echo 'make chaos      kill processes of a whole pipeline at random, check that it cost nothing (KILLS=200 SEED=1)'
	@echo 'make lint       ruff and pyright; make format mends what it can'
	@echo 'make lock       resolve the requirements anew (ARGS=--upgrade for newer versions)'
	@echo 'make clean      remove what was installed here; downloads stay in the user cache'

# Byte code is written at installation: where PYTHONDONTWRITEBYTECODE is set, each of ten processes would compile anew.
setup: .venv/.installed .venv/.kafka
	@.venv/bin/python -m compileall -q $(PACKAGES)

setup-registry: .venv/.installed .venv/.registry

setup-vllm: .venv-vllm/.installed

setup-verl: .venv-verl/.installed

.tools/uv/bin/uv: requirements/uv.txt
	@test -n "$(PYTHON)" || { echo 'No Python 3.11 or newer: install one, or name it with make PYTHON=...' >&2; exit 1; }
	$(PYTHON) -m venv .tools/uv
	.tools/uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<

.venv/.installed: requirements/core.txt pyproject.toml | $(UV)
	@test -n "$(PYTHON)" || { echo 'No Python 3.11 or newer: install one, or name it with make PYTHON=...' >&2; exit 1; }
	test -x .venv/bin/python || $(UV) venv --quiet --python "$$(command -v $(PYTHON))" .venv
	$(UV) pip sync --python .venv/bin/python --require-hashes --compile-bytecode requirements/core.txt
	$(UV) pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.kafka: deploy/local/kafka.lock.toml .venv/.installed
	.venv/bin/headrace broker --prepare
	@touch $@

.venv/.registry: deploy/local/registry.lock.toml .venv/.kafka
	.venv/bin/headrace broker --prepare --registry
	@touch $@

.venv-vllm/.installed: requirements/vllm.txt | $(UV)
	@test -n "$(PYTHON_VLLM)" || { echo 'vLLM needs Python 3.11 or 3.12: make PYTHON_VLLM=...' >&2; exit 1; }
	test -x .venv-vllm/bin/python || $(UV) venv --quiet --python "$$(command -v $(PYTHON_VLLM))" .venv-vllm
	$(UV) pip sync --python .venv-vllm/bin/python --require-hashes --compile-bytecode requirements/vllm.txt
	@touch $@

.venv-verl/.installed: requirements/verl.txt | $(UV)
	@test -n "$(PYTHON_VLLM)" || { echo 'verl needs Python 3.11 or 3.12: make PYTHON_VLLM=...' >&2; exit 1; }
	test -x .venv-verl/bin/python || $(UV) venv --quiet --python "$$(command -v $(PYTHON_VLLM))" .venv-verl
	$(UV) pip sync --python .venv-verl/bin/python --require-hashes --compile-bytecode requirements/verl.txt
	@touch $@

demo: setup
	.venv/bin/headrace demo $(ARGS)

# What needs the machine for itself runs first, then the rest on workers: they wait for time-outs more than they compute.
# 5 is pytest's "no test was selected".
test: setup setup-registry setup-vllm setup-verl
	.venv/bin/python -m pytest --part alone $(ARGS) || test $$? -eq 5
	.venv/bin/python -m pytest --part beside -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS) || test $$? -eq 5

# The tests marked `gpu`; each says why it is skipped where there is no CUDA device.
gpu-check: setup setup-verl
	.venv/bin/python -m pytest -m gpu -rs $(ARGS)

chaos: setup
	.venv/bin/python -m tests.chaos --kills $(KILLS) --seed $(SEED) $(ARGS)

lint: .venv/.installed
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/pyright

format: .venv/.installed
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

lock: | $(UV)
	$(COMPILE) $(ARGS) pyproject.toml --extra torch --extra poml --extra parquet --extra litellm --extra lora --extra tensorboard --extra dev -o requirements/core.txt
	$(COMPILE) $(ARGS) requirements/vllm.in --overrides requirements/vllm.overrides -o requirements/vllm.txt
	$(COMPILE) $(ARGS) requirements/verl.in --no-binary antlr4-python3-runtime -o requirements/verl.txt
	$(COMPILE) $(ARGS) requirements/uv.in -o requirements/uv.txt

clean:
	rm -rf .venv .venv-vllm .venv-verl .tools .pytest_cache .ruff_cache .hypothesis dist demo-out
	find $(PACKAGES) tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Every target works from a fresh clone: it makes a virtual environment in .venv, unless one
# is active, and installs mlpcore into it.

PYTHON ?= python3
ifdef VIRTUAL_ENV
VENV := $(VIRTUAL_ENV)
else
VENV := .venv
endif
BIN := $(abspath $(VENV))/bin
INSTALLED := $(VENV)/.mlpcore-installed
LINTERS := $(VENV)/.mlpcore-linters
BUILT_FROM := setup.py pyproject.toml $(wildcard cpu_simd/*.[ch] mlpcore/*.p[yx][xd] mlpcore/backends/*.pyx)

.PHONY: install train test lint format sanitize speedup clean

install: $(INSTALLED)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): $(BUILT_FROM) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

$(LINTERS): pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[lint]'
	touch $@

# ARGS goes to the tool: make train ARGS='--arch net4 --epochs 10'
train: $(INSTALLED)
	$(BIN)/python tools/train.py $(ARGS)

speedup: $(INSTALLED)
	$(BIN)/python tools/speedup.py $(ARGS)

test: $(INSTALLED)
	$(BIN)/pytest $(ARGS)

lint: $(LINTERS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/cython-lint mlpcore
	$(BIN)/clang-format --dry-run --Werror $(wildcard cpu_simd/*.[ch])

format: $(LINTERS)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(wildcard cpu_simd/*.[ch])

# The C code under AddressSanitizer and UndefinedBehaviorSanitizer, in a build of its own.
# Python's own allocations at exit are not leaks of ours.
SANITIZED := build/sanitize
SANITIZERS := address,undefined
sanitize: $(INSTALLED)
	MLPCORE_SANITIZE=$(SANITIZERS) $(BIN)/pip install --quiet --no-deps --upgrade \
		--target $(SANITIZED) .
	ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$(abspath $(SANITIZED)) \
		LD_PRELOAD="$$($${CC:-gcc} -print-file-name=libasan.so) $$($${CC:-gcc} -print-file-name=libubsan.so)" \
		$(BIN)/pytest -p no:cacheprovider tests/test_backends.py tests/test_simd.py \
		tests/test_deformation.py tests/test_network.py $(ARGS)

clean:
	rm -rf build .venv *.egg-info mlpcore/*.so mlpcore/backends/*.so

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
CHECKERS := $(VENV)/.mlpcore-checkers
C_FILES := $(wildcard cpu_simd/*.[ch])
CUDA_FILES := $(wildcard cuda/*.cu cuda/*.cuh)
UNBUILT_FILES := $(wildcard cuda/emulation/*.h tests/support/*.cu)
BUILT_FROM := setup.py pyproject.toml $(C_FILES) $(wildcard mlpcore/*/*.p[yx][xd])

SANITIZED := build/sanitize
GPU_SANITIZERS := gpu-memcheck gpu-racecheck gpu-synccheck
GPU_STEPS := gpu-build gpu-tests $(GPU_SANITIZERS) gpu-speedup

.PHONY: install train reproduce pictures test lint cross format docs sanitize torture speedup gpu-check gpu-sanitize $(GPU_STEPS) clean $(SANITIZED) $(SANITIZED)-threads

install: $(INSTALLED)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): $(BUILT_FROM) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[test]'
	touch $@

$(CHECKERS): $(BUILT_FROM) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[test,docs,lint]'
	touch $(INSTALLED) $@

# Trains a network: make train ARGS='--epochs 5 --out runs/five'
train: $(INSTALLED)
	$(BIN)/mlpcore train $(ARGS)

# ARGS goes to the tool: make reproduce ARGS='--nets 1 --epochs 100'
reproduce: $(INSTALLED)
	$(BIN)/python tools/reproduce.py $(ARGS)

# Draws the pictures of what the program does: deformed digits, an answer, the page, read forms.
pictures: $(INSTALLED)
	$(BIN)/python tools/pictures.py

speedup: $(INSTALLED)
	$(BIN)/python tools/speedup.py $(ARGS)

test: $(INSTALLED)
	$(BIN)/pytest -n auto --dist worksteal $(ARGS)

# The stubs of the compiled modules are compared with what is compiled.
STUBTEST := --mypy-config-file pyproject.toml --ignore-disjoint-bases
lint: $(CHECKERS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=tools $(BIN)/lint-imports
	PATH="$(BIN):$$PATH" cython-lint mlpcore # it calls pycodestyle
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest $(STUBTEST) mlpcore.network.network mlpcore.backends.simd mlpcore.estimators.stream_network
	$(BIN)/clang-format --dry-run --Werror $(C_FILES) $(CUDA_FILES) $(UNBUILT_FILES)

# The C core for systems that are not here, by Zig: warnings are errors, and nothing runs.
CROSS := aarch64-macos x86_64-windows-gnu
cross: $(CHECKERS)
	for target in $(CROSS); do \
		CC="$(BIN)/python -m ziglang cc -target $$target" CFLAGS=-Werror \
		$(BIN)/python setup.py --quiet build_core --force --build-temp build/cross/$$target || exit 1; \
	done

format: $(CHECKERS)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(C_FILES) $(CUDA_FILES) $(UNBUILT_FILES)

# The documentation site in build/docs. The gallery's scripts run, with MNIST where it is found. A
# warning is an error.
docs: $(CHECKERS)
	rm -rf build/docs docs/generated
	$(BIN)/python -m sphinx -W --keep-going -q -j auto docs build/docs

# The C code under AddressSanitizer and UndefinedBehaviorSanitizer, then its threads under
# ThreadSanitizer, in separate builds. Leaks are not reported: Python frees little at exit.
SANITIZERS := address,undefined
SANITIZED_TESTS := $(filter-out %number_of_threads.py,$(wildcard tests/backends/test_*.py)) \
	tests/deformation tests/network \
	-k 'not emulated and not reference'
library = $(abspath $(shell $${CC:-gcc} -print-file-name=lib$(1).so))
$(SANITIZED): $(INSTALLED)
	rm -rf $@
	MLPCORE_SANITIZE=$(SANITIZERS) $(BIN)/python setup.py --quiet build --build-lib $@

$(SANITIZED)-threads: $(INSTALLED) | $(SANITIZED)
	rm -rf $@
	MLPCORE_SANITIZE=thread $(BIN)/python setup.py --quiet build --build-lib $@

sanitize: $(SANITIZED) $(SANITIZED)-threads
	ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$(abspath $(SANITIZED)) \
		LD_PRELOAD="$(call library,asan) $(call library,ubsan)" \
		$(BIN)/pytest -n auto --dist worksteal -p no:cacheprovider $(SANITIZED_TESTS) $(ARGS)
	TSAN_OPTIONS=halt_on_error=1 OPENBLAS_NUM_THREADS=1 \
		PYTHONPATH=$(abspath $(SANITIZED)-threads) LD_PRELOAD="$(call library,tsan)" \
		$(BIN)/python tests/support/data_races.py

# Rounds of hostile tries, each with other random numbers, until MINUTES are over or a promise is broken:
# hostile files, arrays of any kind, wrong arguments. See docs/robustness.md. Wrong arguments go to the C
# code under the sanitizers.
MINUTES ?= 60
SEED ?= 0
CAMPAIGNS ?= hostile_files any_array wrong_arguments
wrong_arguments_ENV := LD_PRELOAD="$(call library,asan) $(call library,ubsan)" OPENBLAS_NUM_THREADS=1 \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2000 \
	PYTHONPATH=$(abspath $(SANITIZED))
torture: export HYPOTHESIS_PROFILE = torture
torture: $(SANITIZED)
	end=$$(($$(date +%s) + 60 * $(MINUTES))); seed=$(SEED); \
	while [ $$(date +%s) -lt $$end ]; do \
		$(foreach name,$(CAMPAIGNS),echo "$(name), seed $$seed:" && \
			$($(name)_ENV) $(BIN)/pytest -p no:cacheprovider --hypothesis-seed=$$seed \
			tests/*/test_$(name).py $(ARGS) && ) seed=$$((seed + 1)) || exit 1; \
	done

# What only a GPU can show: tests, compute-sanitizer, and speed beside other programs. It uses the
# Python on the PATH and installs nothing, because a machine with a GPU may have no package index. What
# a step says, and its figures, go to the folder RESULTS. A step that fails does not stop the others,
# but for gpu-build, which says why a GPU cannot be used.
RESULTS ?= build/gpu-check
gpu-check:
	$(MAKE) -j1 --keep-going $(GPU_STEPS)

# Every CUDA kernel at small sizes under compute-sanitizer: memory, races, barriers.
gpu-sanitize:
	$(MAKE) -j1 --keep-going $(GPU_SANITIZERS)

$(GPU_STEPS): export COMMAND = $(STEP)
$(GPU_STEPS):
	@mkdir -p $(RESULTS)
	@export PATH="$$PATH:/usr/local/cuda/bin" PYTHONPATH="$(CURDIR):$(CURDIR)/tools:$$PYTHONPATH"; \
	if timeout --signal=KILL $(LIMIT) sh -c "$$COMMAND" > $(RESULTS)/$@.log 2>&1; \
	then echo "$@: ok"; else echo "$@: failed"; tail -n 30 $(RESULTS)/$@.log; exit 1; fi

gpu-build: LIMIT = 180
gpu-build: STEP = $(PYTHON) setup.py build_ext --inplace && $(PYTHON) -c '$(USES_GPU)'
USES_GPU := from mlpcore import backends; print(backends.get("cuda").description)

# A package that is missing stops the tests that import it, and no others.
GPU_TESTS := $(PYTHON) -m pytest -m gpu
gpu-tests: gpu-build
gpu-tests: LIMIT = 300
gpu-tests: STEP = $(GPU_TESTS) -v --continue-on-collection-errors --junitxml=$(RESULTS)/tests.xml

# cuda-bindings asks for functions that older drivers lack; mlpcore checks all its calls.
$(GPU_SANITIZERS): gpu-build
$(GPU_SANITIZERS): LIMIT = 90
$(GPU_SANITIZERS): STEP = compute-sanitizer --tool $(@:gpu-%=%) --report-api-errors no \
	--error-exitcode 9 $(GPU_TESTS) tests/gpu/test_every_kernel.py

# The peers on CPUs take minutes for the larger networks.
gpu-speedup: gpu-build
gpu-speedup: LIMIT = 180
gpu-speedup: STEP = $(PYTHON) tools/speedup.py --arch 'net1;net2;net3;net4;net5' --backend cuda \
	--routine step,step-streaming,deformation,inference --threads 1 --quick \
	--peers GPU --json $(RESULTS)/speedup.json

clean:
	rm -rf build docs/generated .venv *.egg-info mlpcore/*/*.so

# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# Needs a C++20 compiler, make, and Python >= 3.11 with venv. Everything else comes into .venv and build/.
#   make run          install into .venv, then move a generated set of tensors through its tiers
#   make test         C++ tests, Python tests, examples in the documentation
#   make test-all     the same with torch, which is large: make test skips its part of the tests and says so
#   make metal-stand-in   a Python in build/metal-stand-in where Metal works without a Mac; make test-metal tests it
#   make test-asan    the same tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   make test-tsan    the same tests under ThreadSanitizer
#   make fuzz         fuzzers, a minute each; make fuzz-check the same inputs every time
#   make lint         formatting, clang-tidy, ruff, types, floors, documentation
#   make format       formats everything
#   make bench        benchmarks; bench-cpp and bench-python alone
#   make clean        removes .venv and build/
# PYTHON=python3.13 and CXX=clang++-14 choose others; each has its own folders.

PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CLANG_FORMAT ?= $(firstword $(shell command -v clang-format-14 clang-format))
CLANG_TIDY ?= $(firstword $(shell command -v clang-tidy-14 clang-tidy))
PYTEST_ARGS ?= -q
WERROR ?= OFF
PCH ?= ON
# How the package is built; WHEEL="-C cmake.build-type=Debug" is sooner ready, and slow.
WHEEL ?=
# What test-asan and test-tsan run: C++ tests by a pattern of their names, Python tests by their paths.
SANITIZED_CPP ?= .
SANITIZED_TESTS ?= tests/python

version := $(shell $(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed") if sys.version_info < (3, 11) else print("%d.%d" % sys.version_info[:2])')
ifeq ($(version),)
$(error $(PYTHON) is no Python 3.11 or newer: choose another with PYTHON=...)
endif
tag := cp$(subst .,,$(version))
ifneq ($(origin CXX),default)
export CXX
suffix := -$(notdir $(firstword $(CXX)))
endif

# One environment of tools a Python, and for the package one a compiler too.
tools := .venv/$(tag)
bin := $(tools)/bin
venv := $(tools)$(suffix)
python := $(venv)/bin/python
cpp := build/cpp$(suffix)
deps := build/deps
export PATH := $(abspath $(bin)):$(PATH)
export GTest_ROOT := $(abspath $(deps))/usr
export benchmark_ROOT := $(abspath $(deps))/usr
export PIP_DISABLE_PIP_VERSION_CHECK := 1

build_files := CMakeLists.txt $(wildcard cmake/*)
core_files := $(build_files) $(shell find src include -type f 2>/dev/null)

.PHONY: run test test-all torch test-cpp test-python test-asan test-tsan bench bench-cpp bench-python format clean
.PHONY: lint lint-format lint-python lint-sources lint-docs lint-tidy stubs-check
.DELETE_ON_ERROR:

run: $(venv)/installed
	$(python) -m carrier_storage tier --budget 64MiB --passes 2

test: test-cpp
	@$(MAKE) --no-print-directory test-python
	@$(MAKE) --no-print-directory test-metal
test-all: torch
	@$(MAKE) --no-print-directory test
torch: $(venv)/torch
test-cpp: $(cpp)/built
	$(bin)/ctest --test-dir $(cpp) --output-on-failure -j$(JOBS)
test-python: $(venv)/installed
	$(python) -m pytest $(PYTEST_ARGS) -n $(JOBS) tests/python

include metal.mk
include fuzz.mk

# ---- tools and builds ---------------------------------------------------------------------------------------------------

$(sort $(tools)/tools $(venv)/tools): %/tools: pyproject.toml scripts/requirements.py
	$(PYTHON) -m venv $*
	$*/bin/python scripts/requirements.py build test cli plot > $*/requirements.txt
	$*/bin/python -m pip install -q --upgrade pip
	$*/bin/python -m pip install -q -r $*/requirements.txt
	touch $@

$(venv)/torch: $(venv)/tools
	$(python) scripts/requirements.py torch > $(venv)/torch-requirements.txt
	$(python) -m pip install -q -r $(venv)/torch-requirements.txt
	touch $@

$(tools)/lint-tools: $(tools)/tools
	$(bin)/python scripts/requirements.py lint > $(tools)/lint-requirements.txt
	$(bin)/python -m pip install -q -r $(tools)/lint-requirements.txt
	touch $@

$(venv)/installed: $(venv)/tools $(core_files) $(shell find python -type f -not -name '*.pyc' 2>/dev/null)
	PATH=$(abspath $(venv))/bin:$$PATH CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) \
		$(python) -m pip install -q --no-build-isolation --no-deps -C cmake.define.CARRIER_PCH=$(PCH) $(WHEEL) \
		-C build-dir='build/{wheel_tag}$(suffix)' .
	touch $@

$(deps)/ready: scripts/deps.sh scripts/packages.sh
	mkdir -p $(deps)
	sh scripts/deps.sh $(deps)
	touch $@

$(cpp)/built: $(tools)/tools $(deps)/ready $(metal_ready) $(metal_tests) $(core_files) $(shell find tests/cpp examples/cpp -type f 2>/dev/null)
	cmake -S . -B $(cpp) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO='-O2 -g1' \
		-DCARRIER_TESTS=ON -DCARRIER_WERROR=$(WERROR) -DCARRIER_PCH=$(PCH) $(metal_flags)
	cmake --build $(cpp) -j$(JOBS)
	touch $@

# ---- sanitizers ---------------------------------------------------------------------------------------------------------

sanitized := build/$(tag)$(suffix)
sanitizer_asan := address,undefined
sanitizer_tsan := thread
aslr_off_tsan := $(shell setarch -R true 2>/dev/null && echo setarch -R)

test-asan test-tsan: test-%: $(sanitized)-%/built
	$(aslr_off_$*) $(bin)/ctest --test-dir $(sanitized)-$* --output-on-failure -j$(JOBS) -R '$(SANITIZED_CPP)'
	PYTHONPATH=$(abspath $(sanitized))-$*/site sh scripts/sanitized.sh $* \
		$(bin)/python -m pytest $(PYTEST_ARGS) -p no:cacheprovider $(SANITIZED_TESTS)

# GNU's compiler warns of what its own instrumentation does.
$(sanitized)-%/built: $(tools)/tools $(deps)/ready $(metal_ready) $(metal_tests) $(core_files) $(shell find tests/cpp -type f 2>/dev/null)
	cmake -S . -B $(sanitized)-$* -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG='-O1 -g1' \
		-DCARRIER_SANITIZE=$(sanitizer_$*) -DCARRIER_TESTS=ON -DCARRIER_PYTHON=ON \
		-DPython_EXECUTABLE=$(abspath $(bin)/python) -DCARRIER_PCH=$(PCH) $(metal_flags_$*) \
		-DCARRIER_WERROR=$(if $(findstring clang,$(CXX)),$(WERROR),OFF)
	cmake --build $(sanitized)-$* -j$(JOBS)
	rm -rf $(sanitized)-$*/site
	mkdir -p $(sanitized)-$*/site
	cp -R python/carrier_storage $(sanitized)-$*/site
	cmake --install $(sanitized)-$* --component python --prefix $(sanitized)-$*/site
	touch $@

# ---- checks -------------------------------------------------------------------------------------------------------------

cxx_files = $(shell find include src tests/cpp tests/fuzz bench examples -name '*.hpp' -o -name '*.cpp' 2>/dev/null)
python_files := $(wildcard python tests/python bench examples scripts docs)

lint: lint-format lint-python lint-sources lint-docs stubs-check lint-tidy
lint-format:
	$(CLANG_FORMAT) --dry-run -Werror $(cxx_files)
lint-python: $(tools)/lint-tools
	$(bin)/ruff check $(python_files)
	$(bin)/ruff format --check $(python_files)
lint-sources:
	$(PYTHON) scripts/check_sources.py
lint-docs:
	$(PYTHON) scripts/check_docs.py
lint-tidy: $(tools)/tools
	cmake -S . -B build/tidy -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCARRIER_PYTHON=ON \
		-DPython_EXECUTABLE=$(abspath $(bin)/python) >/dev/null
	$(bin)/python scripts/tidy.py $(CLANG_TIDY) build/tidy $(JOBS)
stubs-check: $(tools)/lint-tools $(venv)/installed
	$(python) scripts/check_stubs.py

format: $(tools)/lint-tools
	$(CLANG_FORMAT) -i $(cxx_files)
	$(bin)/ruff check --fix --exit-zero $(python_files)
	$(bin)/ruff format $(python_files)

bench: bench-cpp bench-python
bench-cpp: $(tools)/tools $(deps)/ready
	cmake -S . -B build/bench$(suffix) -G Ninja -DCMAKE_BUILD_TYPE=Release -DCARRIER_BENCH=ON
	cmake --build build/bench$(suffix) -j$(JOBS)
	build/bench$(suffix)/carrier_bench $(BENCH_ARGS)
bench-python: $(venv)/installed
	$(python) bench/python $(BENCH_GROUPS)

clean:
	rm -rf build .venv

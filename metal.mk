# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# Metal without a Mac: the product's Metal module over a stand-in for Apple's API (see docs/metal-stand-in.md).
#   make metal-stand-in   build/metal-stand-in/bin/python, in which Metal(3) works
#   make test-metal       the tests of Metal and of hierarchies with Metal tiers there
# metal_flags adds the stand-in and its tests to a C++ build. On a Mac the real module is built, and nothing of this.

metal_venv := build/metal-stand-in$(suffix)
metal_python := $(metal_venv)/bin/python
metal_flags :=
metal_ready :=
ifeq ($(shell uname -s),Linux)
metal_flags := -DCARRIER_METAL_STANDIN=ON -DCARRIER_OBJC_ROOT=$(abspath $(deps))
metal_flags_asan := $(metal_flags)
metal_ready := $(deps)/metal-ready$(suffix)
endif
metal_tests := $(shell find tests/metal_standin -type f 2>/dev/null)

.PHONY: metal-stand-in test-metal
metal-stand-in: $(metal_venv)/installed
ifeq ($(metal_flags),)
test-metal: # on a Mac the other tests have the real module
else
test-metal: $(metal_venv)/installed
	$(metal_python) -m pytest $(PYTEST_ARGS) -p no:cacheprovider -k metal tests/python/metal tests/python/conformance
endif

$(deps)/metal-ready$(suffix): scripts/deps-metal.sh
	mkdir -p $(deps)
	sh scripts/deps-metal.sh $(deps)
	touch $@

$(metal_venv)/tools: pyproject.toml scripts/requirements.py
	$(PYTHON) -m venv $(metal_venv)
	$(PYTHON) scripts/requirements.py build test cli > $(metal_venv)/requirements.txt
	$(metal_python) -m pip install -q --upgrade pip
	$(metal_python) -m pip install -q -r $(metal_venv)/requirements.txt
	touch $@

$(metal_venv)/installed: $(metal_venv)/tools $(metal_ready) $(core_files) $(metal_tests) $(shell find python -type f -not -name '*.pyc' 2>/dev/null)
	PATH=$(abspath $(metal_venv))/bin:$$PATH CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) \
		$(metal_python) -m pip install -q --no-build-isolation --no-deps \
		-C build-dir='build/metal-{wheel_tag}$(suffix)' -C cmake.build-type=Release \
		$(patsubst -D%,-C cmake.define.%,$(metal_flags)) .
	$(metal_python) -c 'import carrier_storage; carrier_storage.Metal(3)'
	touch $@

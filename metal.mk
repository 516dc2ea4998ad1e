# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# Metal without a Mac: the product's Metal module over a stand-in for Apple's API (see docs/metal-stand-in.md).
#   make metal-stand-in   build/metal-stand-in/bin/python, in which Metal(3) works
#   make test-metal       the tests of Metal and of hierarchies with Metal tiers there
# metal_flags adds the stand-in and its tests to a C++ build. On a Mac the real module is built, and nothing of this.

metal_venv := build/metal-stand-in$(if $(filter file,$(origin PYTHON)),,-$(tag))$(suffix)
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

$(deps)/metal-ready$(suffix): scripts/deps-metal.sh scripts/packages.sh | $(deps)/ready
	sh scripts/deps-metal.sh $(deps)
	touch $@

# The installed package and, beside it, what the C++ build made of the module; all else comes from the package's own environment.
site = $(1)/lib/python$(version)/site-packages
$(metal_venv)/installed: $(venv)/installed $(cpp)/built
	$(PYTHON) -m venv --clear --without-pip $(metal_venv)
	cp -R $(call site,$(venv))/carrier_storage $(call site,$(metal_venv))
	cmake --install $(cpp) --component python --prefix $(call site,$(metal_venv)) >/dev/null
	echo $(abspath $(call site,$(venv))) > $(call site,$(metal_venv))/others.pth
	$(metal_python) -c 'import carrier_storage; carrier_storage.Metal(3)'
	touch $@

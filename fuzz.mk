# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# Fuzzers of what takes input, each against a plain model, under the address and undefined behaviour sanitizers:
#   make fuzz         runs each for FUZZ_SECONDS; what it learned stays in build/fuzz/corpus and the next run starts there
#   make fuzz-check   the same inputs every time, for a few seconds
# FUZZERS=layout_fuzz picks some. An input that breaks something is left in build/fuzz/found: run the program on that file.
# FUZZ_CXX is a clang with libFuzzer (Debian's clang-14 and libclang-rt-14-dev).

FUZZ_CXX ?= clang++-14
FUZZ_SECONDS ?= 60
FUZZERS ?= $(notdir $(basename $(wildcard tests/fuzz/*_fuzz.cpp)))
fuzz_runs_carriers_fuzz := 1500
fuzz_runs_values_fuzz := 4000
fuzz_runs_layout_fuzz := 8000
fuzz_run = mkdir -p build/fuzz/found && ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1 \
	build/fuzz/$(1) -artifact_prefix=build/fuzz/found/$(1)- -timeout=30 -rss_limit_mb=4096 -len_control=0 -max_len=600 -verbosity=0 -print_final_stats=1

.PHONY: fuzz fuzz-check
fuzz: $(addprefix fuzz-for-a-while-,$(FUZZERS))
fuzz-check: $(addprefix fuzz-check-,$(FUZZERS))

fuzz-for-a-while-%: build/fuzz/built
	mkdir -p build/fuzz/corpus/$*
	$(call fuzz_run,$*) -max_total_time=$(FUZZ_SECONDS) build/fuzz/corpus/$*
fuzz-check-%: build/fuzz/built
	$(call fuzz_run,$*) -runs=$(fuzz_runs_$*) -seed=1

build/fuzz/built: $(tools)/tools $(core_files) $(shell find tests/fuzz tests/cpp/support tests/cpp/layout -type f 2>/dev/null)
	cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG='-O1 -g' \
		-DCMAKE_CXX_COMPILER=$(FUZZ_CXX) -DCARRIER_FUZZ=ON
	cmake --build build/fuzz -j$(JOBS)
	touch $@

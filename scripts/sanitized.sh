#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# Runs an uninstrumented program (Python) that loads a sanitized module. Usage: sanitized.sh asan|tsan COMMAND...
# The runtime has to come first in the process; libasan without libstdc++ beside it dies at the first C++ exception.
set -eu
kind=$1
shift
cxx=${CXX:-g++}
stdcxx=$("$cxx" -print-file-name=libstdc++.so)
clang=false
if "$cxx" --version | grep -qi clang; then clang=true; fi
case $kind in
asan)
    runtime=libasan.so
    if $clang; then runtime=libclang_rt.asan-$(uname -m).so; fi
    # Python's objects hide leaks and Python leaks by design; live counters in the tests take their place.
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    PYTHONMALLOC=malloc
    export ASAN_OPTIONS UBSAN_OPTIONS PYTHONMALLOC
    LD_PRELOAD="$("$cxx" -print-file-name=$runtime) $stdcxx"
    ;;
tsan)
    if $clang; then
        echo "sanitized.sh: clang links its thread sanitizer statically; use g++" >&2
        exit 2
    fi
    TSAN_OPTIONS=die_after_fork=0:halt_on_error=0:exitcode=66
    export TSAN_OPTIONS
    LD_PRELOAD=$("$cxx" -print-file-name=libtsan.so)
    # Its shadow memory has fixed places, which address randomisation may take.
    if setarch -R true 2>/dev/null; then set -- setarch -R "$@"; fi
    ;;
*)
    echo "sanitized.sh: asan or tsan, not $kind" >&2
    exit 2
    ;;
esac
exec env LD_PRELOAD="$LD_PRELOAD" "$@"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# Puts GoogleTest and Google Benchmark where CMake finds them. Usage: deps.sh FOLDER
# Installed already: nothing to do. With apt: see packages.sh; if unpacked, point GTest_ROOT and benchmark_ROOT at FOLDER/usr.
# No apt: left to CMake, which fetches a pinned GoogleTest.
set -eu
folder=$1

has() {
    for prefix in "$folder/usr" /usr /usr/local /opt/homebrew; do
        for found in "$prefix"/lib/cmake/"$1" "$prefix"/lib/*/cmake/"$1" "$prefix"/lib64/cmake/"$1"; do
            if [ -e "$found" ]; then return 0; fi
        done
    done
    return 1
}
complete() { has GTest && has benchmark; }

if complete; then exit 0; fi
if ! command -v apt-get >/dev/null; then
    echo "deps.sh: no apt-get; CMake will look for GoogleTest, then fetch it" >&2
    exit 0
fi
sh "$(dirname "$0")/packages.sh" "$folder" libgtest-dev libgmock-dev libbenchmark-dev
complete || { echo "deps.sh: GoogleTest and Google Benchmark are still not where CMake looks" >&2; exit 1; }

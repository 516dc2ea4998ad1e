#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# Puts GoogleTest and Google Benchmark where CMake finds them. Usage: deps.sh FOLDER
# Installed already: nothing to do. Root with apt: installed. Anyone else with apt: the same packages, unpacked into FOLDER
# (point GTest_ROOT and benchmark_ROOT at FOLDER/usr). No apt: left to CMake, which fetches a pinned GoogleTest.
set -eu
folder=$1
packages="libgtest-dev libgmock-dev libbenchmark-dev"

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
if [ "$(id -u)" = 0 ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages </dev/null
else
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial"
    state=$(cd "$folder/apt" && pwd)
    : >"$state/status"
    options="-o Dir::State::Lists=$state/lists -o Dir::State::status=$state/status -o Dir::Cache=$state
        -o Dir::Cache::archives=$state/archives -o Debug::NoLocking=1"
    apt-get $options update -qq
    # The shared library has another name in each release.
    library=$(apt-cache $options depends libbenchmark-dev | sed -n 's/.*Depends: \(libbenchmark[^ ]*\)$/\1/p')
    (cd "$state" && apt-get $options download -qq $packages $library)
    for package in "$state"/*.deb; do dpkg-deb -x "$package" "$folder"; done
fi
complete || { echo "deps.sh: GoogleTest and Google Benchmark are still not where CMake looks" >&2; exit 1; }

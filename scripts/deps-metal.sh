#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# Puts GNU Objective-C++, which the Metal stand-in is built with, where CMake finds it. Usage: deps-metal.sh FOLDER
# Installed already, or not on Linux: nothing to do. Root with apt: installed. Anyone else with apt: unpacked into FOLDER
# (point CARRIER_OBJC_ROOT there). Anything else is an error: the stand-in is never left out in silence.
set -eu
folder=$1
if [ "$(uname -s)" != Linux ]; then exit 0; fi
gcc=${CXX:-g++}
case $gcc in *clang*) gcc=g++ ;; esac
version=$("$gcc" -dumpversion | cut -d. -f1)
packages="gobjc++-$version gobjc-$version libobjc-$version-dev libobjc4"

has() { [ -e "$1$(dirname "$("$gcc" -print-file-name=include)")/cc1objplus" ]; }

if has "" || has "$folder"; then exit 0; fi
if ! command -v apt-get >/dev/null; then
    echo "deps-metal.sh: no apt-get; install GNU Objective-C++ $version (gobjc++), which builds the Metal stand-in" >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages </dev/null
else
    mkdir -p "$folder/apt-metal/lists/partial" "$folder/apt-metal/archives/partial"
    state=$(cd "$folder/apt-metal" && pwd)
    : >"$state/status"
    options="-o Dir::State::Lists=$state/lists -o Dir::State::status=$state/status -o Dir::Cache=$state
        -o Dir::Cache::archives=$state/archives -o Debug::NoLocking=1"
    apt-get $options update -qq
    (cd "$state" && apt-get $options download -qq $packages)
    for package in "$state"/*.deb; do dpkg-deb -x "$package" "$folder"; done
fi
has "" || has "$folder" || { echo "deps-metal.sh: $packages brought no cc1objplus" >&2; exit 1; }

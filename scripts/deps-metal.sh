#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# Puts GNU Objective-C++, which the Metal stand-in is built with, where CMake finds it. Usage: deps-metal.sh FOLDER
# Installed already, or not on Linux: nothing to do. With apt: see packages.sh; if unpacked, point CARRIER_OBJC_ROOT at FOLDER.
# Anything else is an error: the stand-in is never left out in silence.
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
sh "$(dirname "$0")/packages.sh" "$folder" $packages
has "" || has "$folder" || { echo "deps-metal.sh: $packages brought no cc1objplus" >&2; exit 1; }

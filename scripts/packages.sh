#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# Brings Debian packages. Usage: packages.sh FOLDER PACKAGE...
# Root: installed. Anyone else: unpacked into FOLDER (FOLDER/usr/...), each -dev package with its shared library. Needs apt.
set -eu
folder=$1
shift
if [ "$(id -u)" = 0 ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null
    exit
fi
# A state of our own: the system's lists may be missing, and are not ours to refresh.
mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial"
state=$(cd "$folder/apt" && pwd)
: >"$state/status"
options="-o Dir::State::Lists=$state/lists -o Dir::State::status=$state/status -o Dir::Cache=$state
    -o Dir::Cache::archives=$state/archives -o Debug::NoLocking=1"
apt-get $options update -qq
for package in "$@"; do
    # A library's own name differs from release to release; its development package knows it.
    for needed in $(apt-cache $options depends "$package" | sed -n 's/^ *Depends: \([^ <>]*\)$/\1/p'); do
        case $package:$needed in *-dev:"${package%-dev}"*) set -- "$@" "$needed" ;; esac
    done
done
rm -f "$state"/*.deb
(cd "$state" && apt-get $options download -qq "$@")
for package in "$state"/*.deb; do dpkg-deb -x "$package" "$folder"; done

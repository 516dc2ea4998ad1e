#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# Brings Debian packages. Usage: packages.sh FOLDER PACKAGE...
# Root: installed. Anyone else: unpacked into FOLDER (FOLDER/usr/...), together with those of their direct dependencies that are
# not installed. Needs apt.
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
for package in $(apt-cache $options depends "$@" | sed -n 's/^ *Depends: \([^ <>]*\)$/\1/p' | sort -u); do
    if ! dpkg -s "$package" >/dev/null 2>&1; then set -- "$@" "$package"; fi
done
rm -f "$state"/*.deb
(cd "$state" && apt-get $options download -qq "$@")
for package in "$state"/*.deb; do dpkg-deb -x "$package" "$folder"; done

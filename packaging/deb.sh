#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deb.sh FOLDER: builds the Debian packages of the files that git knows into FOLDER, and lets lintian check them. Fails on
# an error of lintian.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
for program in dpkg-buildpackage dh lintian; do
    command -v "$program" >/dev/null 2>&1 ||
        { echo "deb: $program is missing: apt-get install dpkg-dev debhelper dh-python lintian" >&2; exit 1; }
done
rm -rf "$out/seqlstm"
mkdir "$out/seqlstm"
git -C "$root" ls-files -z | (cd "$root" && xargs -0 tar c --) | tar x -C "$out/seqlstm"
cp -r "$root/packaging/debian" "$out/seqlstm/debian"
cd "$out/seqlstm"
dpkg-buildpackage -us -uc -b
cd "$out"
lintian --fail-on error seqlstm_*.changes
ls "$out"/*.deb

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup-tests.sh BUILD [meson setup options]: makes the build folder BUILD, with tests. A folder that exists is kept as it
# is; only its tests are switched on.
set -u
build=$1
shift
if [ -f "$build/build.ninja" ]; then
    meson introspect "$build" --buildoptions | grep -q '"name": "tests", "value": true' && exit 0
    set -- --reconfigure
fi
exec meson setup "$build" -Dtests=true "$@"

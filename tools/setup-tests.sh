#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup-tests.sh BUILD [meson setup options]: makes the build folder BUILD, with tests. In an existing folder it only
# switches the tests on.
set -u
build=$1
shift
if [ -f "$build/build.ninja" ]; then
    meson introspect "$build" --buildoptions | grep -q '"name": "tests", "value": true' && exit 0
    set -- --reconfigure
fi
exec meson setup "$build" -Dtests=true "$@"

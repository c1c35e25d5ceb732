#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup-tests.sh BUILD [meson setup options]: makes the build folder BUILD, with tests. An existing folder is set up anew
# only if it has no tests, or other values of these options.
set -u
build=$1
shift
set -- -Dtests=true "$@"
if [ -f "$build/build.ninja" ]; then
    meson introspect "$build" --buildoptions | python3 -c '
import json, shlex, sys
have = {option["name"]: option["value"] for option in json.load(sys.stdin)}
for option in sys.argv[1:]:
    name, _, wanted = option[2:].partition("=")
    value = have.get(name)
    same = value == shlex.split(wanted) if isinstance(value, list) else str(value).lower() == wanted.lower()
    if not same:
        sys.exit(1)' "$@" && exit 0
    set -- --reconfigure "$@"
fi
exec meson setup "$build" "$@"

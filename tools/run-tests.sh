#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run-tests.sh BUILD [meson test arguments]: runs the tests, then prints the counts in one line. The log is
# BUILD/meson-logs/LOGBASE.json (with a wrapper, its name follows LOGBASE). SEQLSTM_LOGBASE sets LOGBASE (default:
# testlog).
set -u
build=$1
shift
logbase=${SEQLSTM_LOGBASE:-testlog}
rm -f "$build/meson-logs/$logbase".json "$build/meson-logs/$logbase"-*.json
meson test -C "$build" --print-errorlogs --logbase "$logbase" "$@"
status=$?
python3 "$(dirname "$0")/test_summary.py" "$build/meson-logs/$logbase"*.json || status=1
exit $status

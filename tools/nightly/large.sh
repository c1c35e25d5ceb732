#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The suite `large` under the address and undefined behaviour sanitizers, which .ci/run leaves out there, in the build
# folder BUILD (build-asan). Ends with `N tests, N failed`; exit status 1: one failed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=${BUILD:-build-asan}
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export LSAN_OPTIONS=print_suppressions=0:use_tls=0:suppressions=$PWD/tests/lsan.supp
tools/setup-tests.sh "$build" -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Dcuda-generic=disabled \
    -Dcuda-cudnn=disabled -Dc_args='-fno-sanitize-recover=all -g1' || exit 1
status=0
SEQLSTM_LOGBASE=large tools/run-tests.sh "$build" --suite large --timeout-multiplier 10 || status=1
python3 - "$build/meson-logs/large.json" <<'END' || status=1
import json, sys
results = [json.loads(line)['result'] for line in open(sys.argv[1])]
failed = sum(result not in ('OK', 'SKIP', 'EXPECTEDFAIL') for result in results)
print(f'{len(results)} tests, {failed} failed')
sys.exit(failed > 0 or not results)
END
exit $status

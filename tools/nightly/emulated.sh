#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every case of the conformance kit by every variant of cuda-generic, on the emulated device, in the build folder BUILD
# (build). Ends with `N cases, N failed`; exit status 1: one failed; 77: this build has no emulated device.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
tools/setup-tests.sh "$build"
ninja -C "$build"
module=$build/tests/gpu/libseqlstm_backend_cuda-generic.so
[ -e "$module" ] || { echo 'skipped: the emulated device needs a C++ compiler'; exit 77; }
out=$(mktemp)
trap 'rm -f "$out"' EXIT
LD_LIBRARY_PATH=$build/tests/gpu "$build/tests/conformance/conformance" "$module" --claims plugins/cuda-generic/claims.txt \
    --json "$@" >"$out" || true
python3 - "$out" <<'END'
import json, sys
cases = json.load(open(sys.argv[1]))['cases']
failed = [c for c in cases if c['verdict'] not in ('pass', 'skip', 'unsupported')]
for case in failed:
    print(case['case'], case['variant'], case['verdict'], case['reason'])
print(f'{len(cases)} cases, {len(failed)} failed')
sys.exit(bool(failed) or not cases)
END

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The random calls of the Python package with the library under the address and undefined behaviour sanitizers, in the
# build folder BUILD (build-asan): python_asan.sh PYTHON CALLS [SEED]. The sanitizers are loaded into Python first; its own
# leaks are not looked for. Ends with `N calls, N wrong`.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$PWD/${BUILD:-build-asan}
tools/setup-tests.sh "$build" -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Dcuda-generic=disabled \
    -Dcuda-cudnn=disabled -Dc_args='-fno-sanitize-recover=all -g1'
"$1" -c 'import cffi, numpy' || { echo "$1 has no cffi or numpy"; exit 77; }
package=$(ninja -C "$build" -t targets all | sed -n 's/^\(python\/seqlstm\/.*\): \(CUSTOM_COMMAND\|c_LINKER\)$/\1/p')
# shellcheck disable=SC2086 # one argument each
ninja -C "$build" installed $package
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
export LD_PRELOAD
export ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
PYTHONPATH=$build/python SEQLSTM_LIBRARY=$build/core/libseqlstm.so.0 SEQLSTM_BACKEND_PATH=$build/backends \
    "$1" python/tests/fuzz_calls.py "${@:2}"

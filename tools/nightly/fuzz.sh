#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes the targets of tests/fuzz one after the other, with libFuzzer and the address and undefined behaviour
# sanitizers.
#
#   tools/nightly/fuzz.sh SECONDS [TARGET ...]      each so long; TARGET: claims, costs, … (all of tests/fuzz)
#
# BUILD: the build folder (build-fuzz); what is found stays there in found/, a file TARGET-… for each, and inputs that
# reach new code in corpus/TARGET, where the next night begins. Ends with `N targets, N failed`; exit status 1: something
# was found; 77: there is no clang.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=$1
shift
build=${BUILD:-build-fuzz}
command -v clang >/dev/null || { echo 'skipped: no clang, whose libFuzzer runs the targets'; exit 77; }
if [ ! -f "$build/build.ninja" ]; then
    CC=clang CXX=clang++ meson setup "$build" -Dtests=true -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 \
        -Dcuda-generic=disabled -Dcuda-cudnn=disabled -Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=all -g1'
fi
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(cd tests/fuzz && printf '%s\n' fuzz_*.c | sed 's/fuzz_\(.*\)\.c/\1/')
modules=$(ninja -C "$build" -t targets all | sed -n 's/^\(modules\/lib[^:]*\.so\): .*/\1/p')
# shellcheck disable=SC2086 # one argument a module
ninja -C "$build" "${targets[@]/#/tests/fuzz/fuzz_}" $modules
export SEQLSTM_MODULE_PATH=$PWD/$build/modules ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
mkdir -p "$build/found"
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # for targets that write files

# Good inputs that are no copies in tests/fuzz/corpus.
inputs() {
    case $1 in
        claims) ls plugins/*/claims.txt ;;
        model) ls tests/fixtures/models/*/*.yaml configs/*.yaml ;;
        safetensors) ls tests/fixtures/interop/*/*.safetensors ;;
    esac
}

failed=0
for target in "${targets[@]}"; do
    corpus=$build/corpus/$target
    mkdir -p "$corpus"
    cp "tests/fuzz/corpus/$target"/* "$corpus"
    inputs "$target" | xargs -r cp --parents -t "$corpus"
    code=0
    SEQLSTM_FUZZ_SEEDS=$corpus "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=65536 -timeout=20 \
        -rss_limit_mb=4096 -error_exitcode=1 -artifact_prefix="$build/found/$target-" -print_final_stats=1 "$corpus" || code=$?
    if [ "$code" -eq 77 ]; then
        echo "==> $target: skipped"
    elif [ "$code" -ne 0 ]; then
        echo "==> $target: FAILED"
        failed=$((failed + 1))
    fi
done
echo "${#targets[@]} targets, $failed failed"
[ "$failed" -eq 0 ]

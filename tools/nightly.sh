#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains every model of the table below to its end and compares the results with its bar; then runs the long checks.
#
#   tools/nightly.sh DATA [NAME ...]       all of it, or what is named; DATA: folder of the data sets, as configs/ name them
#   tools/nightly.sh DATA translation      one alone: addition, sst, ewt, charlm, translation or autoencoder; or a check:
#                                          run_folders (10,000 changes of their files), kills (at 1,000 system calls),
#                                          ranks (200 kills of a rank), transport (comm-shm on 8 ranks),
#                                          writers (100 pairs of processes for one run folder), serving, serving_bits
#                                          and serving_follow (random requests), kubernetes (the manifest of
#                                          docs/serving.md), imports (400 random ONNX graphs), fuzz (each target of
#                                          tests/fuzz for an hour), large (large matrices under the sanitizers), emulated
#                                          (cuda-generic on the emulated device, each case by each variant), mutants
#                                          (bugs that tests must notice), bare (installing on a bare Debian 12), and
#                                          python_… (tools/nightly/checks.sh)
#
# PYTHON: an interpreter with PyTorch, Keras, pandas, scikit-learn and mypy, for the checks that need them.
# SEQLSTM: the program (build/seqlstm). THREADS: of each run (auto). RUNS: the folder of the runs (a temporary one); a
# run that exists there is continued, so that an interrupted night is not lost. OUT: the table
# (docs/measurements/archive/<date>-models.md). UPDATES: train only so many updates, to try the script; then checks run
# only if they are named. Exit status 1: a bar was missed or a run failed.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 1 ] || { sed -n '3,22s/^# \{0,1\}//p' "$0"; exit 2; }
SEQLSTM_DATA=$(cd "$1" && pwd)
export SEQLSTM_DATA
shift
program=${SEQLSTM:-$here/build/seqlstm}
threads=${THREADS:-auto}
runs=${RUNS:-$(mktemp -d)}
out=${OUT:-$here/docs/measurements/archive/$(date +%F)-models.md}
wanted=" $* "
. "$here/tools/nightly/models.sh"
. "$here/tools/nightly/checks.sh"
for name in "$@"; do
    [[ " $all $checks " == *" $name "* ]] || { printf 'no model %s: %s\n' "$name" "$all $checks" >&2; exit 2; }
done
missed=0
rows=()
mkdir -p "$runs"

fail() {
    missed=1
    rows+=("| $1 | | did not run | | missed | |")
}

[ -n "${UPDATES:-}" ] && [ "$wanted" = "  " ] || all="$all $checks"
for name in $all; do
    if [ "$wanted" = "  " ] || [[ $wanted == *" $name "* ]]; then
        # a model that fails must not stop the others
        code=0
        (set -e; $name; printf '%s\n' "$missed" "${rows[@]}" >"$runs/$name.rows") &
        wait $! || code=$?
        if [ "$code" -ne 0 ]; then
            fail "$name"
        else
            mapfile -t more <"$runs/$name.rows"
            missed=$((missed | more[0]))
            rows=("${more[@]:1}")
        fi
    fi
done

{
    printf '# The models, trained to their ends\n\n'
    printf '`tools/nightly.sh` at commit %s on %s, %s processors, threads: %s. Times are those of training, validation in it.\n\n' \
        "$(git -C "$here" rev-parse --short HEAD)" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" \
        "$(nproc)" "$threads"
    printf '| config | what | measured | bar | | time |\n| --- | --- | --- | --- | --- | --- |\n'
    printf '%s\n' "${rows[@]}"
} >"$out"
printf '%s\n' "$out"
exit $missed

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests and timings on a machine with a GPU, from the bundle that tools/bundle.sh makes. Needs no network or compiler.
#
#   run.sh [--quick|--full|--ptb-medium] [OUT]     OUT (default: ./gpu-results) gets results.json, results.md and every log
#
# Steps: the backends open; conformance of each CUDA plugin; compute-sanitizer on small cases, if it is installed;
# training on the GPU compared with the CPU; the perplexity of ptb-small, if the bundle contains its text; timings next to
# PyTorch's, if that is installed. --quick skips sanitizers, ptb-small on cuda-cudnn and most timings. --ptb-medium only
# trains that model and checks its perplexity, however long it takes. Steps that cannot run are reported as not run. Exit
# status: 0; 1 if a step failed; 3 without a GPU, where the report has every table, but nothing measured.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mode=quick
case "${1:-}" in --quick | --full | --ptb-medium) mode=${1#--}; shift ;; esac
out=${1:-$PWD/gpu-results}
mkdir -p "$out"
# cuDNN: that of PyTorch's wheels if Python has them, so that both run the same one; otherwise the system's.
cudnn=$(python3 -c 'import nvidia.cudnn as c; print(list(c.__path__)[0] + "/lib")' 2>/dev/null || true)
export LD_LIBRARY_PATH=$here/lib${cudnn:+:$cudnn}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export SEQLSTM_BACKEND_PATH=$here/lib/seqlstm/backends SEQLSTM_TRUST=1
program=$here/bin/seqlstm
status=0
: >"$out/steps.tsv"

# step NAME LIMIT_S COMMAND...: the log is OUT/NAME.log
step() {
    local name=$1 limit=$2 start=$SECONDS code=0
    shift 2
    timeout "$limit" "$@" >"$out/$name.log" 2>&1 || code=$?
    printf '%s\t%s\t%s\n' "$name" "$code" "$((SECONDS - start))" >>"$out/steps.tsv"
    echo "$name: exit $code, $((SECONDS - start)) s"
    [ "$code" = 0 ] || { status=1; tail -5 "$out/$name.log" | sed 's/^/    /'; }
}

not_run() { printf '%s\tnot run: %s\t0\n' "$1" "$2" >>"$out/steps.tsv"; echo "$1: not run: $2"; }

nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader >"$out/device.txt" 2>/dev/null || true
"$program" backends >"$out/backends.txt" 2>&1
cat "$out/backends.txt"
plugins=$(awk '$1 ~ /^cuda-/ && $2 == "ok" {print $1}' "$out/backends.txt")
if [ -z "$plugins" ]; then
    why=$(awk '$1 == "cuda-generic" {$1 = $2 = ""; print}' "$out/backends.txt" | sed 's/^ *//' | head -1)
    why="no CUDA plugin works here${why:+: $why}"
    for name in conformance memcheck racecheck train ptb-small timings; do not_run "$name" "$why"; done
    python3 "$here/tests/timings.py" --mode "${mode/ptb-medium/full}" --not-run "$why" --out "$out/timings.json" >/dev/null
    python3 "$here/tests/report.py" "$out" >/dev/null
    echo "$why; $out/results.md says so"
    exit 3
fi

if [ "$mode" = ptb-medium ]; then
    plugin=$(grep -x cuda-generic <<<"$plugins" || echo "$plugins") # it has every operation
    step ptb-medium 40000 python3 "$here/tests/ptb.py" --program "$program" --plugin "$plugin" \
        --config "$here/configs/ptb-medium.yaml" --data "$here/data" --out "$out/ptb-medium"
    tail -n 2 "$out/ptb-medium.log"
    exit $status
fi

for plugin in $plugins; do
    full=()
    [ "$mode" = quick ] || full=(--full)
    step "conformance-$plugin" 240 "$program" conformance "$plugin" "${full[@]}"
    sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
    for tool in memcheck racecheck; do
        if [ "$mode" = quick ]; then
            not_run "$tool-$plugin" '--quick'
        elif [ -z "$sanitizer" ]; then
            not_run "$tool-$plugin" 'there is no compute-sanitizer'
        else
            step "$tool-$plugin" 120 "$sanitizer" --tool "$tool" --error-exitcode 9 "$program" conformance "$plugin" \
                --in-process --case 'lstm:bwd:T7B5I6H9:f32:ragged' --case 'gru:bwd:T7B5I6H9:f32:ragged' \
                --case 'lstm:bwd:T7B5I6H9L2:f32:ragged:initial,final' --case 'lstm:bwd:T7B5I6H9*:layer_norm*' \
                --case 'dense:bwd:*'
        fi
    done
    step "train-$plugin" 120 python3 "$here/tests/test_train.py" --program "$program" --plugin "$plugin"
    if [ ! -d "$here/data/ptb" ]; then
        not_run "ptb-small-$plugin" 'the text is not in the bundle'
    elif [ "$mode" = quick ] && [ "$plugin" != cuda-generic ]; then
        not_run "ptb-small-$plugin" '--quick'
    else
        step "ptb-small-$plugin" 180 python3 "$here/tests/ptb.py" --program "$program" --plugin "$plugin" \
            --config "$here/configs/ptb-small.yaml" --data "$here/data" --out "$out/ptb-small-$plugin"
    fi
done
# The timings get the rest of nine minutes.
left=$((530 - SECONDS))
step timings $((left + 60)) python3 "$here/tests/timings.py" --program "$program" --mode "$mode" \
    --out "$out/timings.json" --seconds "$left" --crossover "$here/configs/gpu-or-cpu.yaml"
python3 "$here/tests/report.py" "$out" || status=1
exit $status

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests and timings on a machine with a GPU, from the bundle that tools/bundle.sh makes. Needs no network or compiler.
#
#   run.sh [--quick|--full|--grid|--ptb-medium] [--seconds S] [--rehearse] [OUT]
#
# OUT (default: ./gpu-quick and so on) gets results.json, results.md and logs/. Each result is printed as soon as it is there, and
# the two files are renewed after each step. The script ends after S seconds; what did not fit is reported as not run.
#
#   --quick        150 s: kernels that are new, the first timings, steps of the recurrence, conformance of both plugins, a profile,
#                  latencies, training against the CPU
#   --full         400 s: kernels that are new, the 24 timings, steps of the recurrence, all cases of conformance and what their
#                  time consists of, ptb-small, GPU or CPU, the GPU beside the CPU, layers alone, compute-sanitizer
#   --grid         every timing, 570 s at a time: with the same OUT the next call goes on where this one ended
#   --ptb-medium   trains that model alone to its perplexity, without a limit
#   --rehearse     the same steps with small sizes: shows quickly, on any device, whether all of them run; the figures mean
#                  nothing
#
# Exit status: 0; 1 if a step failed; 2 for a wrong call; 3 without a GPU, where the report has every table, but nothing
# measured.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mode=quick seconds='' rehearsal=''
while [ $# -gt 0 ]; do
    case $1 in
    --quick | --full | --grid | --ptb-medium) mode=${1#--} ;;
    --rehearse) rehearsal=' (rehearsal)' && export SEQLSTM_GPU_REHEARSAL=1 ;;
    --seconds) seconds=${2:?--seconds needs a number} && shift ;;
    -*) echo "run.sh: unknown flag $1: --quick, --full, --grid, --ptb-medium, --rehearse or --seconds S" >&2 && exit 2 ;;
    *) break ;;
    esac
    shift
done
declare -A budgets=([quick]=150 [full]=400 [grid]=570 [ptb-medium]=40000)
seconds=${seconds:-${budgets[$mode]}}
out=${1:-$PWD/gpu-$mode${rehearsal:+-rehearsal}}
logs=$out/logs
mkdir -p "$logs"
# cuDNN: that of PyTorch's wheels if Python has them, so that both run the same one; otherwise the system's.
cudnn=$(python3 -c 'import nvidia.cudnn as c; print(list(c.__path__)[0] + "/lib")' 2>/dev/null || true)
export LD_LIBRARY_PATH=$here/lib${cudnn:+:$cudnn}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export SEQLSTM_BACKEND_PATH=$here/lib/seqlstm/backends SEQLSTM_TRUST=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
program=$here/bin/seqlstm
tests=$here/tests
closing=5 # seconds for the report and for steps that do not end at once
status=0
rm -f "$logs"/*.json "$logs"/*.log "$out/earlier.json"
: >"$logs/steps.tsv"

left() { echo $((seconds - SECONDS - closing)); }

# within LIMIT_S: the seconds that a script gets which ends by itself, before its step is stopped
within() {
    local rest
    rest=$(left)
    [ -z "$rehearsal" ] && [ "$1" -le "$rest" ] && rest=$1
    echo $((rest - 3))
}

report() { python3 "$tests/report.py" "$out" "$mode" >/dev/null || status=1; }

# record NAME EXIT SECONDS NOTE
record() {
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$logs/steps.tsv"
    echo "== $1: ${3:+exit }$2${4:+, $4}${3:+ ($3 s)}"
}

not_run() { record "$1" "not run: $2" '' ''; }

# step NAME LIMIT_S NEED_S COMMAND...: shows what the command prints, and keeps it as logs/NAME.log. It is not begun with less
# than NEED_S seconds left, and ends with the script's time. Exit status 77: what it needs is not there, as its last line says.
step() {
    local name=$1 limit=$2 need=$3 start=$SECONDS code=0 rest note=
    shift 3
    rest=$(left)
    [ "$rest" -ge "$need" ] || { not_run "$name" 'the time was over'; return 0; }
    [ -z "$rehearsal" ] && [ "$limit" -le "$rest" ] || limit=$rest
    timeout -k 2 "$limit" "$@" 2>&1 | tee "$logs/$name.log" || code=${PIPESTATUS[0]}
    [ "$code" != 77 ] || { not_run "$name" "$(tail -1 "$logs/$name.log")"; return 0; }
    [ "$code" != 124 ] || note="stopped after $limit s"
    [ "$code" = 0 ] || status=1
    record "$name" "$code" $((SECONDS - start)) "$note"
    report
}

# Conformance of every plugin at once: most of its time is the processor's.
conformance() { # LIMIT_S FLAGS...
    local limit=$1 plugin code start=$SECONDS rest note
    shift
    [ -z "$rehearsal" ] || set -- --level load --level contract
    rest=$(left)
    [ -n "$rehearsal" ] || [ "$rest" -le "$limit" ] || rest=$limit
    if [ "$rest" -lt 20 ]; then
        for plugin in $plugins; do not_run "conformance-$plugin" 'the time was over'; done
        return 0
    fi
    declare -A pids=()
    for plugin in $plugins; do
        timeout -k 2 "$rest" "$program" conformance "$plugin" "$@" >"$logs/conformance-$plugin.log" 2>&1 &
        pids[$plugin]=$!
    done
    for plugin in $plugins; do
        code=0
        wait "${pids[$plugin]}" || code=$?
        note=$(awk '/^level /{on = 1; next} on && NF == 6 {pass += $2; bad += $3 + $4; skip += $5; un += $6}
            END {if (on) printf "%d passed, %d failed, %d skipped, %d not supported", pass, bad, skip, un}' \
            "$logs/conformance-$plugin.log")
        [ "$code" != 124 ] || note="stopped after $rest s"
        [ "$code" = 0 ] || { status=1; grep -E '^(fail|crash)' "$logs/conformance-$plugin.log" | head -5; }
        record "conformance-$plugin" "$code" $((SECONDS - start)) "$note"
    done
    report
}

nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader 2>/dev/null |
    sed "s/\$/$rehearsal/" >"$logs/device.txt"
"$program" backends >"$logs/backends.txt" 2>&1
cat "$logs/backends.txt"
plugins=$(awk '$1 ~ /^cuda-/ && $2 == "ok" {print $1}' "$logs/backends.txt")
if [ -z "$plugins" ]; then
    why=$(awk '$1 == "cuda-generic" {$1 = $2 = ""; print}' "$logs/backends.txt" | sed 's/^ *//' | head -1)
    why="no CUDA plugin works here${why:+: $why}"
    for name in new-kernels timings recurrence conformance profile latencies train ptb-small crossover processors layers kit-times memcheck racecheck racecheck-large; do
        not_run "$name" "$why"
    done
    python3 "$tests/timings.py" --mode "${mode/ptb-medium/full}" --not-run "$why" --out "$logs/timings.json" >/dev/null
    report
    echo "$why; $out/results.md says so"
    exit 3
fi
generic=$(grep -x cuda-generic <<<"$plugins" || head -1 <<<"$plugins") # it has every operation

# A layer for each kernel that has not run on a device yet, by every variant. What is wrong or never ends shows before
# anything is timed.
new_cases=(--case 'lstm:bwd:T3B4I3H70:f32:ragged:initial,final' --case 'gru:bwd:T3B4I3H70:f32:ragged:initial'
    --case 'lstm:bwd:T3B4I3H130:f32:ragged:layer_norm,initial,final' --case 'gru:bwd:T3B9I3H180:f32:ragged:initial,final'
    --case 'lstm:bwd:T3B4I3H257:f32-bf16:ragged:layer_norm,initial,final' --case 'lstm:bwd:T3B4I3H257:f32-bf16:ragged:initial,final'
    --case 'lstm:bwd:T3B4I3H70P20:f32:ragged:initial,final'
    --case 'dense_loss:bwd:R33I17O31:f32:flat:kind=cross_entropy')
# In these, `resident` runs layers that clusters are too small for, and reads weights from L2 for which it has no room.
large_cases=(--case 'lstm:bwd:T2B3I3H520:f32:ragged:layer_norm,initial' --case 'gru:bwd:T2B3I3H520:f32:ragged:initial'
    --case 'lstm:bwd:T2B2I3H1100:f32:ragged:initial')
variants=() # all of them
[ -z "$rehearsal" ] || { variants=(--variant step_graph) && large_cases=("${new_cases[@]:0:2}"); }

new_kernels() {
    step new-kernels 15 5 "$program" conformance "$generic" "${variants[@]}" "${new_cases[@]}" "${large_cases[@]}"
}

timings() { # LIMIT_S
    local flags=()
    # so small models would run on the processor
    [ -z "$rehearsal" ] || flags=(--backends "$(sed 's/ /, /g' <<<"${plugins//$'\n'/ }")")
    step timings "$1" 10 python3 "$tests/timings.py" --program "$program" --mode "$mode" --out "$logs/timings.json" "${flags[@]}" \
        --seconds "$(within "$1")" --resume "$out/earlier.json" --device "$(cat "$logs/device.txt")"
}

profile() { # LIMIT_S COUNT
    step profile "$1" 15 python3 "$tests/profile_update.py" --library "$here/lib/libseqlstm.so.0" --out "$logs/profile.json" \
        --seconds "$(within "$1")" --count "$2"
}

recurrence() { # LIMIT_S COUNT
    step recurrence "$1" 15 python3 "$tests/recurrence.py" --library "$here/lib/libseqlstm.so.0" --out "$logs/recurrence.json" \
        --seconds "$(within "$1")" --count "$2"
}

processors() { # LIMIT_S
    local flags=()
    for plugin in $plugins; do flags+=(--plugin "$plugin"); done
    step processors "$1" 15 python3 "$tests/processors.py" --program "$program" "${flags[@]}" --out "$logs/processors.json" \
        --seconds "$(within "$1")"
}

latencies() {
    if [ -x "$here/bin/latencies" ]; then
        step latencies 20 5 "$here/bin/latencies"
    else
        not_run latencies 'the bundle has none: it was built without nvcc'
    fi
}

train() {
    for plugin in $plugins; do
        step "train-$plugin" 60 10 python3 "$tests/test_train.py" --program "$program" --plugin "$plugin"
    done
}

ptb() { # NAME LIMIT_S NEED_S
    if [ -d "$here/data/ptb" ]; then
        rm -rf "${out:?}/$1" # of an earlier call
        step "$1" "$2" "$3" python3 "$tests/ptb.py" --program "$program" --plugin "$generic" \
            --config "$here/configs/$1.yaml" --data "$here/data" --out "$out/$1" --result "$logs/$1.json"
    else
        not_run "$1" 'the text is not in the bundle'
    fi
}

crossover() { # LIMIT_S
    step crossover "$1" 15 python3 "$tests/crossover.py" --program "$program" --model "$here/configs/gpu-or-cpu.yaml" \
        --out "$logs/crossover.json" --seconds "$(within "$1")"
}

layers() { # LIMIT_S FLAGS...
    local flags=() limit=$1
    shift
    for plugin in $plugins; do flags+=(--plugin "$plugin"); done
    step layers "$limit" 10 python3 "$tests/layers.py" --program "$program" "${flags[@]}" --out "$logs/layers.json" \
        --seconds "$(within "$limit")" "$@"
}

kit_times() { # LIMIT_S
    local flags=()
    for plugin in $plugins; do flags+=(--plugin "$plugin"); done
    step kit-times "$1" 10 python3 "$tests/kit_times.py" --program "$program" "${flags[@]}" --out "$logs/kit_times.json" \
        --seconds "$(within "$1")"
}

sanitize() {
    local sanitizer tool cases
    sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
    for tool in memcheck racecheck; do
        if [ -z "$sanitizer" ]; then
            not_run "$tool" 'there is no compute-sanitizer'
        else
            cases=(--case 'lstm:bwd:T7B5I6H9:f32:ragged' --case 'gru:bwd:T7B5I6H9:f32:ragged'
                --case 'lstm:bwd:T7B5I6H9L2:f32:ragged:initial,final' --case 'lstm:bwd:T7B5I6H9*:layer_norm*'
                "${new_cases[@]}" --case 'dense:bwd:*')
            # Without the tool, the second run would be the same again.
            [ -z "$rehearsal" ] || [ "$tool" = memcheck ] || cases=("${cases[@]:0:4}")
            step "$tool" 60 15 "$sanitizer" --tool "$tool" --error-exitcode 9 "$program" conformance "$generic" \
                --in-process "${variants[@]}" "${cases[@]}"
        fi
    done
    # Layers of many units take long under it: only the variant whose blocks read each other's values from L2.
    if [ -z "$sanitizer" ]; then
        not_run racecheck-large 'there is no compute-sanitizer'
    else
        step racecheck-large 60 15 "$sanitizer" --tool racecheck --error-exitcode 9 "$program" conformance "$generic" \
            --in-process --variant resident "${large_cases[@]}"
    fi
}

case $mode in
quick)
    new_kernels
    timings 55
    recurrence 20 3
    layers 20 --steps-only
    conformance 45
    latencies
    profile 30 3
    train
    ;;
full)
    new_kernels
    timings 160
    recurrence 45 7
    conformance 120 --full
    kit_times 30
    profile 40 6
    latencies
    ptb ptb-small 100 70
    crossover 35
    processors 45
    train
    layers 60
    sanitize
    ;;
grid)
    # What an earlier call has measured on this device is kept.
    [ ! -f "$out/results.json" ] || cp "$out/results.json" "$out/earlier.json"
    timings "$seconds"
    ;;
ptb-medium) ptb ptb-medium "$seconds" 0 ;;
esac
report
rm -f "$out/earlier.json"
echo "$out/results.md and $out/results.json, after $SECONDS s"
exit $status

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains every model of the table below to its end and compares the results with its bar; then runs the long checks.
#
#   tools/nightly.sh DATA [NAME ...]       all of it, or what is named; DATA: folder of the data sets, as configs/ name them
#   tools/nightly.sh DATA translation      one alone: addition, sst, ewt, charlm, translation or autoencoder; or a check:
#                                          run_folders (10,000 changes of their files), kills (at 1,000 system calls),
#                                          writers (100 pairs of processes for one run folder)
#
# SEQLSTM: the program (build/seqlstm). THREADS: of each run (auto). RUNS: the folder of the runs (a temporary one); a
# run that exists there is continued, so that an interrupted night is not lost. OUT: the table
# (docs/measurements/archive/<date>-models.md). UPDATES: train only so many updates, to try the script; then checks run
# only if they are named. Exit status 1: a bar was missed or a run failed.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 1 ] || { sed -n '3,13s/^# \{0,1\}//p' "$0"; exit 2; }
SEQLSTM_DATA=$(cd "$1" && pwd)
export SEQLSTM_DATA
shift
program=${SEQLSTM:-$here/build/seqlstm}
threads=${THREADS:-auto}
runs=${RUNS:-$(mktemp -d)}
out=${OUT:-$here/docs/measurements/archive/$(date +%F)-models.md}
wanted=" $* "
all='addition sst ewt charlm translation autoencoder'
checks='run_folders kills writers'
for name in "$@"; do
    [[ " $all $checks " == *" $name "* ]] || { printf 'no model %s: %s\n' "$name" "$all $checks" >&2; exit 2; }
done
missed=0
rows=()
mkdir -p "$runs"

# A value from a run's summary: value RUN test bleu
value() {
    python3 -c 'import json, sys
print(json.load(open(sys.argv[1] + "/summary.json"))["metrics"][sys.argv[2]][sys.argv[3]])' "$@"
}

# The time of training with its validation, over all parts of the run.
seconds() {
    python3 -c 'import json, sys
print(round(sum(json.loads(open(run + "/metrics.jsonl").read().splitlines()[-1])["seconds"] for run in sys.argv[1:])))' "$@"
}

finished() {
    [ -e "$1/summary.json" ] && python3 -c 'import json, sys
sys.exit(json.load(open(sys.argv[1] + "/summary.json"))["end"] not in ("epochs", "updates", "early_stopping"))' "$1"
}

# Trains a config into $runs/NAME, or continues the run there: train NAME CONFIG [flags]
train() {
    local folder=$runs/$1 config=$here/configs/$2.yaml
    shift 2
    if finished "$folder"; then
        return
    elif [ -e "$folder/config.yaml" ]; then
        "$program" resume "$folder" --progress none >&2
    else
        "$program" run "$config" --out "$folder" --threads "$threads" --progress none "$@" \
            ${UPDATES:+--set "train.updates=$UPDATES"} >&2
    fi
}

# One line of the table: report NAME WHAT MEASURED RELATION BAR RUN...
report() {
    local name=$1 what=$2 measured=$3 relation=$4 bar=$5 verdict
    shift 5
    verdict=$(python3 -c 'import sys
a, relation, b = float(sys.argv[1]), sys.argv[2], float(sys.argv[3])
print("met" if (a >= b if relation == ">=" else a <= b) else "missed")' "$measured" "$relation" "$bar")
    [ "$verdict" = met ] || missed=1
    rows+=("| $name | $what | $measured | $relation $bar | $verdict | $(seconds "${@/#/$runs/}") s |")
    printf '%s\n' "${rows[-1]}" >&2
}

fail() {
    missed=1
    rows+=("| $1 | | did not run | | missed | |")
}

mean() {
    python3 -c 'import sys; print(round(sum(map(float, sys.argv[1:])) / (len(sys.argv) - 1), 4))' "$@"
}

addition() {
    train addition quickstart
    report addition 'exact match, unseen sums' "$(value "$runs/addition" test exact_match)" '>=' 0.99 addition
    report addition 'seconds' "$(seconds "$runs/addition")" '<=' 300 addition
}

translation() {
    train translation translation
    report translation 'BLEU, test 2016, beam 5' "$(value "$runs/translation" test bleu)" '>=' 33 translation
}

sst() {
    local seed scores=()
    for seed in 1 2 3; do
        train "sst-$seed" sst-classifier --seed "$seed"
        scores+=("$(value "$runs/sst-$seed" test accuracy)")
    done
    report sst-classifier 'test accuracy, mean of three seeds' "$(mean "${scores[@]}")" '>=' 0.81 sst-1 sst-2 sst-3
}

ewt() {
    train ewt ewt-tagger
    report ewt-tagger 'test accuracy' "$(value "$runs/ewt" test accuracy)" '>=' 0.9 ewt
}

# Tokens in the right position, in unseen sentences of up to ten words.
autoencoder() {
    local folder=$runs/autoencoder
    train autoencoder text-autoencoder
    awk 'NF > 0 && NF <= 10 { $1 = $1; print }' "$SEQLSTM_DATA/ptb/ptb.test.txt" >"$folder/short.txt"
    "$program" predict "$folder" --input "$folder/short.txt" >"$folder/rebuilt.txt"
    report text-autoencoder 'tokens rebuilt, up to 10 words' "$(python3 -c 'import sys
pairs = [[line.split() for line in open(name)] for name in sys.argv[1:]]
same = sum(a == b for said, meant in zip(*pairs) for a, b in zip(said, meant))
print(round(same / sum(map(len, pairs[1])), 4))' "$folder/rebuilt.txt" "$folder/short.txt")" '>=' 0.95 autoencoder
}

charlm() {
    train charlm char-lm
    report char-lm 'bits per character, last tenth' "$(value "$runs/charlm" valid bits_per_token)" '<=' 2.31 charlm
    "$program" generate "$runs/charlm" --prompt 'ROMEO:' --length 300 --temperature 0.8 --seed 1 >&2
}

# One line of a check whose last line of output is "N of them, N failed": check NAME WHAT COMMAND...
check() {
    local name=$1 what=$2 begin=$SECONDS failed
    shift 2
    "$@" >"$runs/$name.log" 2>&1 || missed=1
    failed=$(sed -n '$s/.*, \([0-9]*\) failed$/\1/p' "$runs/$name.log")
    [ "${failed:-none}" = 0 ] || missed=1
    rows+=("| $name | $what | ${failed:-did not run} | <= 0 | $([ "${failed:-none}" = 0 ] && echo met || echo missed) | $((SECONDS - begin)) s |")
    printf '%s\n' "${rows[-1]}" >&2
}

run_folders() {
    check run_folders 'changed run folders that crash, or change a result silently' \
        python3 "$here/tests/e2e/fuzz_runs.py" "$program" --mutations 10000 --keep "$runs/changed"
}

kills() {
    check kills 'kill -9 at a system call: other bits, or something left over' \
        python3 "$here/tests/e2e/kill_calls.py" "$program" --kills 1000
}

writers() {
    check writers 'two writers of a run folder: both work, or neither' \
        python3 "$here/tests/e2e/two_writers.py" "$program" --pairs 100
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

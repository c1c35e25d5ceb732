# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The models of tools/nightly.sh, which sources this file: a function each, which trains and reports.
all='addition sst ewt charlm translation autoencoder'

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

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_stream.sh PROGRAM SEQLSTM: trains a model of made-up frames, quiet ones and loud ones, and streams a made-up sound.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk 'BEGIN {
    srand(1); print "id,energy,changes,voice"
    for (s = 0; s < 40; s++) for (t = 0; t < 30; t++) {
        v = (t + s) % 20 < 10
        print s "," (v ? -2 : -5) + rand() "," (v ? 0.1 : 0.4) + rand() / 10 "," v
    }
}' >"$folder/train.csv"
cat >"$folder/voice.yaml" <<'END'
seqlstm: 1
seed: 1
data: {type: csv, group: id, inputs: [energy, changes], targets: [voice], train: {file: train.csv}, batch_size: 8}
model:
  - {type: lstm, units: 8, return_sequences: true}
  - {type: dense, units: from_target, activation: sigmoid}
train: {loss: mse, epochs: 60, optimizer: {type: adam, learning_rate: 0.02}}
END
"$2" run "$folder/voice.yaml" --out "$folder/run" >/dev/null 2>&1
# half a second of quiet, of a loud tone, and of quiet again
awk 'BEGIN {
    for (k = 0; k < 24000; k++) {
        loud = k >= 8000 && k < 16000
        v = loud ? int(9000 * sin(k / 2.5)) : (k * 7919 % 3 - 1) * 60
        if (v < 0) v += 65536
        printf "\\%03o\\%03o", v % 256, int(v / 256)
    }
}' >"$folder/sound.txt"
printf '%b' "$(sed 's/\\/\\0/g' "$folder/sound.txt")" >"$folder/sound" || true
"$1" "$folder/run" <"$folder/sound" >"$folder/out"
cat "$folder/out"
test "$(grep -c 'voice begins' "$folder/out")" = 1
grep -q '^0.5[0-9] s: voice begins' "$folder/out"
grep -q '^1.0[0-9] s: voice ends' "$folder/out"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the example for a few updates of the adding problem and checks its output.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$2" "$folder/run" train.updates=3 data.train.size=64 data.valid.size=32 data.test.size=32 >"$folder/out"
grep -q '^test mse [0-9]' "$folder/out"
grep -q '^sequence 1: predicted ' "$folder/out"
test -s "$folder/run/final.safetensors"

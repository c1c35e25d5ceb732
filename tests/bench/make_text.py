#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a large text with realistic statistics: word frequencies after Ferrer i Cancho and Sole (2001, the rank to the
power -1 up to 5000, -2 beyond), lines of 5 to 40 words.

make_text.py FILE [--bytes N] [--words N] [--seed N] [--flat]

--flat: the power -1 for all ranks, which draws rare words far more often than in a real text, so that lookups miss the
caches of the processor.

The text consists of 24 blocks of 1 MiB, repeated from different lines, so that it takes only seconds.
"""
import argparse
import random


def make_block(draw, words, weights, size):
    out, have = [], 0
    while have < size:
        line = ' '.join(draw.choices(words, cum_weights=weights, k=draw.randrange(5, 41)))
        out.append(line)
        have += len(line) + 1
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('file')
    parser.add_argument('--bytes', type=float, default=2e9)
    parser.add_argument('--words', type=int, default=200000)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--flat', action='store_true')
    options = parser.parse_args()
    draw = random.Random(options.seed)
    letters = 'etaoinshrdlucmfwypvbgkjqxz'
    words = [''.join(draw.choices(letters, k=draw.randrange(1, 3) + min(9, rank.bit_length() // 2)))
             for rank in range(options.words)]
    weights, total = [], 0.0
    for rank in range(options.words):
        total += 1 / (rank + 2.7) if rank < 5000 or options.flat else 5000 / (rank + 2.7) ** 2
        weights.append(total)
    blocks = [make_block(draw, words, weights, 1 << 20) for _ in range(24)]
    written = 0
    with open(options.file, 'w', encoding='utf-8') as file:
        while written < options.bytes:
            block = draw.choice(blocks)
            at = draw.randrange(len(block))
            text = '\n'.join(block[at:] + [f'block{written} begins'] + block[:at]) + '\n'
            file.write(text)
            written += len(text)


main()

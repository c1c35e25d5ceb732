#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""predict --stream: each line is answered before the next one is written."""
import json
import subprocess
import sys

sys.dont_write_bytecode = True
import harness
from harness import CLASSES, LANGUAGE, TINY, expect


def talk(t, lines, *args):
    """Writes one line at a time and waits for its answer; returns the answers, and the rest of stdout."""
    process = t.start('predict', *args, '--stream', stdin=subprocess.PIPE)
    answers = []
    for line in lines:
        process.stdin.write(line.encode() + b'\n')
        process.stdin.flush()
        answers.append(process.stdout.readline().decode().rstrip('\n'))
    rest, err = process.communicate()
    expect(process.returncode == 0 and rest == b'', f'exit {process.returncode}: {rest!r} {err!r}')
    return answers


def test_numbers(t):
    """Lines are the steps of one sequence: the answers are those of a model that sees it grow."""
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    steps = ['0.5,1', '0.25,0', '0.75,1', '0.125,0']
    answers = talk(t, steps, 'r')
    expect(len(set(answers)) == 4, answers)
    again = t.run('predict', 'r', '--stream', stdin='\n'.join(steps + ['', *steps]).encode()).text.splitlines()
    expect(again == answers + answers, f'an empty line begins a new sequence: {again}')
    t.write('in.txt', '\n'.join(steps))
    expect(t.run('predict', 'r', '--stream', '-i', 'in.txt').text.splitlines() == answers, 'a file')
    t.refuse(4, 'predict', 'r', '--stream', stdin=b'1,x\n').says('standard input:1: field 2, "x", is no number')
    t.refuse(4, 'predict', 'r', '--stream', stdin=b'3\n').says('standard input:1: the line has 1 field, expected 2')
    t.refuse(4, 'predict', 'r', '--stream', stdin=b'1,2,3\n').says('has 3 fields, expected 2', 'a first line that names them')
    t.refuse(2, 'predict', 'r', '--stream', '--format', 'npy', stdin=b'').says('--stream', 'npy')
    t.refuse(2, 'predict', 'r', '--stream', '--lengths', 'l.npy', stdin=b'').says('--lengths')
    t.refuse(2, 'predict', 'r', '--stream', '--attention', stdin=b'').says('`--stream` does not go with `--attention`')
    t.refuse(2, 'predict', 'r', '--stream', '--columns', 'a', stdin=b'').says('`--stream` does not go with `--columns`')


def test_texts(t):
    t.write('m.yaml', CLASSES)
    t.write('train.txt', 'good a fine film\nbad a dull film\ngood fine\nbad dull\n')
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    lines = ['a fine film', 'dull', 'something else']
    together = [json.loads(line) for line in t.run('predict', 'r', '--json', stdin='\n'.join(lines).encode()).text.splitlines()]
    answers = [json.loads(line) for line in talk(t, lines, 'r', '--json')]
    for one, other in zip(answers, together):
        a, b = one['predictions'][0], other['predictions'][0]
        expect(one['record'] == other['record'] and a['class'] == b['class'], (one, other))
        expect(abs(a['probability'] - b['probability']) <= 1e-5, (one, other))
    t.refuse(4, 'predict', 'r', '--stream', stdin=b'\n').says('standard input:1: the line is blank')


def test_refusals(t):
    """A model that needs the whole sequence is refused by layer and place."""
    t.write('m.yaml', TINY.replace('units: 4}', 'units: 4, direction: bidirectional, name: both}'))
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    t.refuse(3, 'predict', 'r', '--stream', stdin=b'1,2\n').says('`both` (', 'config.yaml:', 'is bidirectional')
    t.write('l.yaml', LANGUAGE)
    t.write('text.txt', 'abcabcabc ' * 40)
    t.run('run', 'l.yaml', '--out', 'l', '-q')
    t.refuse(3, 'predict', 'l', '--stream', stdin=b'abc\n').says('seqlstm generate')


harness.main(globals())

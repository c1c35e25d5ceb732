#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the program says about data: wrong files, odd files, and the records of a prediction."""
import sys

sys.dont_write_bytecode = True
import harness
from harness import CLASSES, LANGUAGE, TABLE, expect


def expect_shown(result, *pieces):
    """Nothing that a terminal would execute; the pieces, escaped, are there."""
    said = result.out + result.err.encode()
    controls = [c for c in said if c < 0x20 and c not in (0x0a, 0x09) or c == 0x7f]
    expect(not controls, f'{result.args}: control bytes {controls}: {said[:800]}')
    for piece in pieces:
        expect(piece in said.decode(), f'{result.args}: does not show {piece!r}: {said[:800]}')


def test_control_bytes_are_shown_as_escapes(t):
    header = b'a,\x1b[31mb,"y\rz"\n'
    t.write('train.csv', header + b'1,2,3\n4,5,9\n7,8,15\n1,1,2\n')
    t.write('missing.yaml', TABLE)
    expect_shown(t.refuse(4, 'check', 'missing.yaml'), '\\x1b[31mb', 'y\\rz')
    t.write('m.yaml', TABLE.replace('inputs: [a, b]', 'inputs: [a, "\\e[31mb"]').replace('[y]', '["y\\rz"]'))
    expect_shown(t.run('run', 'm.yaml', '--out', 'r'))
    expect_shown(t.run('data', 'stats', 'm.yaml'))
    expect_shown(t.run('predict', 'r', '--format', 'csv', stdin=header + b'1,2,3\n'), 'record,y\\rz')
    expect_shown(t.refuse(4, 'predict', 'r', stdin=header + b'\x1b[2J,2,3\n'), '\\x1b[2J')
    expect_shown(t.refuse(2, 'predict', '\x1b]0;title'), '\\x1b]0;title')
    expect_shown(t.refuse(2, 'check', 'a\x1b.yaml'), 'a\\x1b.yaml')
    expect_shown(t.refuse(2, '\x1bcommand'), '\\x1bcommand')
    t.write('train.txt', b'go\x1bod\tfine film\nbad\tdull film\n' * 4)
    t.write('classes.yaml', CLASSES)
    expect_shown(t.run('run', 'classes.yaml', '--out', 'c'))
    for format in 'text', 'csv', 'jsonl':
        said = t.run('predict', 'c', '--with-input', '--format', format, stdin=b'fine \x1b[2J film\n')
        expect_shown(said, '\\u001b[2J' if format == 'jsonl' else '\\x1b[2J')
    expect_shown(t.run('embed', 'c', '--nearest', '1', stdin=b'a \x1b[2J\nfilm\n'), '\\x1b[2J')
    t.write('text.txt', b'a\x1bb\x07c\n' * 200)
    t.write('letters.yaml', LANGUAGE)
    expect_shown(t.run('run', 'letters.yaml', '--out', 'l'))
    expect_shown(t.run('generate', 'l', '--prompt', 'a\x1b', '--length', '50'), 'a\\x1b')


if __name__ == '__main__':
    harness.main(globals())

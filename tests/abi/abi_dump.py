#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the layout of the contract, as the compiler sees it, with the dump beside this file.

abi_dump.py INCLUDE_DIR DUMP COMPILER...            exit 1 and the difference if they are not the same
abi_dump.py --update INCLUDE_DIR DUMP COMPILER...   writes the dump; part of every change of a header
abi_dump.py --self-test COMPILER...                 makes changes and checks that each is noticed

The dump lists every struct with size and alignment, every member with offset and size, and every enum constant.
"""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile


def strip(text):
    text = re.sub(r'/\*.*?\*/|//[^\n]*', ' ', text, flags=re.S)
    text = re.sub(r'\\\n', ' ', text)
    return re.sub(r'^\s*#.*$', '', text, flags=re.M)


def bodies(text, keyword):
    """Yields (name, body) of each `keyword NAME { body }` at any depth."""
    for match in re.finditer(r'\b' + keyword + r'\b\s*(\w*)\s*\{', text):
        depth, at = 1, match.end()
        while depth and at < len(text):
            depth += {'{': 1, '}': -1}.get(text[at], 0)
            at += 1
        yield match.group(1), text[match.end():at - 1]


def members(body):
    for declaration in body.split(';'):
        declaration = ' '.join(declaration.split())
        if not declaration or '{' in declaration or '}' in declaration:
            continue
        pointer = re.search(r'\(\s*\*\s*(\w+)\s*(?:\[[^\]]*\])?\s*\)\s*\(', declaration)
        if pointer:
            yield pointer.group(1)
            continue
        for declarator in re.sub(r'\[[^\]]*\]', '', declaration).split(','):
            yield re.findall(r'\w+', declarator)[-1]


def constants(body):
    depth, item = 0, ''
    for char in body + ',':
        depth += {'(': 1, ')': -1}.get(char, 0)
        if char == ',' and depth == 0:
            name = re.match(r'\s*(\w+)', item)
            if name:
                yield name.group(1)
            item = ''
        else:
            item += char


def dump(include, compiler):
    # the time loop is compiled into plugins, so its structs never cross the ABI
    headers = sorted(p.relative_to(include).as_posix() for p in include.rglob('*.h')
                     if not p.name.startswith('prim_loop'))
    lines = ['#include <stddef.h>', '#include <stdio.h>']
    lines += [f'#include <{h}>' for h in headers]
    lines += ['#define S(s) printf("%-52s %5zu align %zu\\n", #s, sizeof(s), _Alignof(s))',
              '#define M(s, m) printf("  %-50s %5zu + %zu\\n", #m, offsetof(s, m), '
              'sizeof(((s *)0)->m))',
              '#define C(c) printf("%-52s %lld\\n", #c, (long long)(c))',
              'int main(void) {']
    for header in headers:
        text = strip((include / header).read_text())
        for name, body in bodies(text, 'struct'):
            if name:
                lines.append(f'S(struct {name});')
                lines += [f'M(struct {name}, {m});' for m in members(body)]
        for _, body in bodies(text, 'enum'):
            lines += [f'C({c});' for c in constants(body)]
    lines.append('return 0; }')
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / 'dump.c', pathlib.Path(folder) / 'dump'
        source.write_text('\n'.join(lines) + '\n')
        subprocess.run(compiler + ['-std=c11', f'-I{include}', str(source), '-o', str(program)],
                       check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout


def compare(include, kept, compiler):
    now = dump(include, compiler)
    before = kept.read_text() if kept.exists() else ''
    if now == before:
        print(f'abi: {len(now.splitlines())} facts as kept')
        return 0
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), now.splitlines(True),
                                               'kept', 'now', n=1))
    print('abi: the headers changed. If that is meant: ninja -C build abi-update, and say so in '
          'the commit.')
    return 1


def self_test(compiler):
    base = ('#include <stdint.h>\nenum { A_ONE = 1, A_TWO = (1 << 3) };\n'
            'struct a { uint32_t x; /* y; */ int32_t (*call)(int a, int b); float f[3], g; };\n')
    changes = {
        'a member more': base.replace('float f[3]', 'double new; float f[3]'),
        'an order': base.replace('f[3], g', 'g, f[3]'),
        'a width': base.replace('uint32_t x', 'uint64_t x'),
        'a length': base.replace('f[3]', 'f[4]'),
        'a value': base.replace('1 << 3', '1 << 4'),
        'a constant more': base.replace('A_ONE = 1,', 'A_ONE = 1, A_NEW = 5,'),
    }
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        include = pathlib.Path(folder)
        (include / 'a.h').write_text(base)
        kept = dump(include, compiler)
        for fact in ('struct a', 'x', 'call', 'f', 'g', 'A_ONE', 'A_TWO'):
            if not re.search(rf'^\s*{fact} +', kept, re.M):
                print('not seen: ' + fact)
                wrong = 1
        for name, text in changes.items():
            (include / 'a.h').write_text(text)
            if dump(include, compiler) == kept:
                print('not seen: ' + name)
                wrong = 1
        (include / 'a.h').write_text(base + '/* a comment */\n')
        if dump(include, compiler) != kept:
            print('a comment counts')
            wrong = 1
    return wrong


def main():
    arguments = sys.argv[1:]
    if arguments[0] == '--self-test':
        return self_test(arguments[1:])
    update = arguments[0] == '--update'
    include, kept = pathlib.Path(arguments[update]), pathlib.Path(arguments[update + 1])
    compiler = arguments[update + 2:]
    if update:
        kept.write_text(dump(include, compiler))
        return 0
    return compare(include, kept, compiler)


if __name__ == '__main__':
    sys.exit(main())

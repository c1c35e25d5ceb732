#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every header of include/seqlstm alone, with all warnings as errors.

check_headers.py INCLUDE_DIR STD [COMPILER...]     TAP on stdout. Without a compiler: all skipped.
"""
import pathlib
import subprocess
import sys


def compile_alone(compiler, std, include, header):
    language = 'c++' if std.startswith('c++') else 'c'
    # Included twice, to notice a missing include guard; with a declaration, so that the unit is not empty.
    unit = f'#include <{header}>\n#include <{header}>\nextern int seqlstm_header_is_complete;\n'
    return subprocess.run(
        compiler + ['-x', language, f'-std={std}', '-Wall', '-Wextra', '-Wpedantic', '-Werror',
                    '-fsyntax-only', f'-I{include}', '-'],
        input=unit, text=True, capture_output=True)


def main():
    include, std, compiler = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    headers = sorted(p.relative_to(include).as_posix() for p in include.rglob('*.h'))
    if not headers:
        print('Bail out! no header found')
        return 1
    print(f'1..{len(headers)}')
    for number, header in enumerate(headers, 1):
        if not compiler:
            print(f'ok {number} {header} # SKIP no C++ compiler')
            continue
        result = compile_alone(compiler, std, include, header)
        print(f'{"ok" if result.returncode == 0 else "not ok"} {number} {header}')
        for line in result.stderr.splitlines():
            print('# ' + line)
    return 0


if __name__ == '__main__':
    sys.exit(main())

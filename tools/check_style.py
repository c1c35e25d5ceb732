#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of style that a program can check.

check_style.py [ROOT]       exit 1 and one line per violation; long files are listed, not refused
check_style.py --self-test  plants violations and checks that each is caught
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import checks

CODE = ('.c', '.h', '.cu', '.cuh', '.inc')
SCRIPTS = ('.py', '.sh')
TEXT = CODE + SCRIPTS + ('.md', '.yaml', '.yml', '.txt', '.map', '.in', '.pc')
GENERATED_DATA = ('tests/fixtures/', 'tests/fuzz/corpus/', 'configs/data/')
LONG_LINES = 600
# Spelled in parts, so that this file passes its own rule.
UNFINISHED = re.compile(r'\b(' + '|'.join(['TO' + 'DO', 'FIX' + 'ME', 'X' * 3]) + r')\b')
UNSAFE_MATH = re.compile(r'-ffast' + r'-math|-Ofa' + r'st|-funsafe' + r'-math')
EXITS = re.compile(r'(?<![\w.>])(exit|_exit|_Exit|abort|quick_exit)\s*\(')
PRINTS = re.compile(r'(?<![\w.>])(printf|puts|putchar|perror)\s*\(|\bfprintf\s*\(\s*std(err|out)\b')
DEVICE = re.compile(r'\b(cudaDeviceReset|cuDevicePrimaryCtx(Reset|Release)(_v2)?|cuCtx(Create|Destroy)(_v\d)?)\b')
# A function's type and name are on one line.
TYPE_ALONE = re.compile(r'(?!(return|else|do|goto|case|default|typedef)\b)[A-Za-z_][\w *]*$')
NAME_FIRST = re.compile(r'\*?[A-Za-z_]\w*\(')
TEMPORARY = re.compile(r'"/tmp/[^"]*X' + r'XXXXX')
SKIPS = re.compile(r'(?<![\w.>])skip\s*\(\s*\)')
# What the user reads as an error begins with `error[E0601]: ` (cli_print_error).
NO_CODE = re.compile(r'"error: ')
LOCALE = re.compile(r'(?<![\w.>])(strtod|strtof|strtold|atof|setlocale)\s*\(')


def strip_c(text):
    """Blanks comments and string literals; keeps line numbers."""
    keep_lines = lambda m: '\n' * m.group(0).count('\n') if m.group(0).startswith('/') else '""'
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', keep_lines, text, flags=re.S)


def check_file(name, text):
    """Yields complaints as (line, reason); `name` is relative to the root."""
    path = pathlib.PurePosixPath(name)
    lines = text.split('\n')
    head = '\n'.join(lines[:3])
    spdx = path.suffix in CODE + SCRIPTS or path.name in ('meson.build', 'meson_options.txt',
                                                          'Makefile')
    if spdx and 'SPDX-License-Identifier: Apache-2.0' not in head:
        yield 1, 'no SPDX line'
    if text and not text.endswith('\n'):
        yield len(lines), 'no newline at the end of the file'
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, 'trailing blanks'
        if '\t' in line and path.name != 'Makefile' and path.suffix not in ('.txt', '.md'):
            yield number, 'tab'
        if '\r' in line:
            yield number, 'carriage return'
        if UNFINISHED.search(line):
            yield number, 'unfinished work is not committed: ' + UNFINISHED.search(line).group(0)
        if UNSAFE_MATH.search(line) and path.suffix != '.md':
            yield number, 'unsafe floating-point flag'
        if path.suffix in CODE and len(line.expandtabs(8)) > 120:
            yield number, f'{len(line)} columns, at most 120'
    if path.suffix in CODE:
        code = strip_c(text).split('\n')
        for number, (line, after) in enumerate(zip(code, code[1:]), 1):
            if TYPE_ALONE.match(line) and NAME_FIRST.match(after):
                yield number, 'the type of a function stands beside its name'
    if path.suffix in CODE and path.parts[0] == 'tests':
        for number, line in enumerate(strip_c(text).split('\n'), 1):
            if SKIPS.search(line):
                yield number, 'meson counts what cmocka skips as failed: print_message and return'
        for number, line in enumerate(lines, 1):
            if TEMPORARY.search(line):
                yield number, 'TMPDIR says where temporary files lie: use unit/support/temporary.h'
    if path.suffix in CODE and path.parts[0] in ('core', 'plugins', 'include'):
        for number, line in enumerate(strip_c(text).split('\n'), 1):
            if path.parts[:2] != ('core', 'cli'):
                if EXITS.search(line):
                    yield number, 'only core/cli exits'
                if PRINTS.search(line):
                    yield number, 'only core/cli prints'
            if NO_CODE.search(lines[number - 1]):
                yield number, 'an error has a code, which `explain` knows: use cli_print_error'
            if DEVICE.search(line):
                yield number, 'the primary context is used as it is, and never reset: it belongs to all plugins'
            if LOCALE.search(line) and path.as_posix() != 'core/registry/watch/guard.c':  # which restores it
                yield number, 'depends on the locale: use base/text.h'


def check(root):
    problems = []
    for name in checks.tracked(root):
        path = root / name
        if not path.is_file() or path.is_symlink() or name.startswith(GENERATED_DATA):
            continue
        if not (path.suffix in TEXT or path.name in ('meson.build', 'Makefile')):
            continue
        text = path.read_bytes().decode('utf-8', errors='replace')
        problems += [f'{name}:{line}: {reason}' for line, reason in check_file(name, text)]
        if path.suffix in CODE and text.count('\n') > LONG_LINES:
            print(f'long: {name}: {text.count(chr(10))} lines')
    return problems


def self_test():
    spdx = '/* SPDX-License-Identifier: Apache-2.0 */\n'
    bad = {
        'core/base/a.c': 'int x;\n',
        'core/base/b.c': spdx + 'int x; \n',
        'core/base/c.c': spdx + '\tint x;\n',
        'core/base/d.c': spdx + '/* FIX' + 'ME later */\n',
        'core/base/e.c': spdx + 'void f(void) { exit(1); }\n',
        'core/base/f.c': spdx + 'void f(void) { printf("x"); }\n',
        'core/base/g.c': spdx + 'double f(void) { return strtod("1", 0); }\n',
        'core/base/h.c': spdx + 'int x;',
        'core/base/i.c': spdx + '/* ' + 'y' * 120 + ' */\n',
        'core/base/j.c': spdx + 'void f(void) { fprintf(stderr, "x"); }\n',
        'core/cli/l.c': spdx + 'void f(void) { fprintf(stderr, "error: x"); }\n',
        'core/base/k.c': spdx + 'static int\nf(void)\n{\n    return 0;\n}\n',
        'plugins/x/a.c': spdx + 'void f(void) { cudaDeviceReset(); }\n',
        'plugins/x/b.c': spdx + 'void *f = cuCtxCreate_v4;\n',
        'tests/unit/a.c': spdx + 'void f(void) { skip(); }\n',
        'tests/unit/b.c': spdx + 'char path[] = "/tmp/x-X' + 'XXXXX";\n',
        'plugins/x/meson.build': '# SPDX-License-Identifier: Apache-2.0\nx = "-ffast' + '-math"\n',
    }
    good = {
        'core/base/ok.c': spdx + '/* exit(1) and printf( in a comment */\n'
                          'const char *s = "abort(";\nint f(void) { return a->exit(1); }\n'
                          'extern const int\n    g;\nvoid h(void)\n{\n    g\n}\n',
        'core/cli/ok.c': spdx + 'void f(void) { printf("x"); exit(1); }\n',
        'tests/unit/ok.c': spdx + 'void f(void) { bool skip = p->skip(); skip_comma(); }\n',
        'docs/ok.md': 'text\n',
    }
    return checks.judge(check, {**bad, **good}, bad)


if __name__ == '__main__':
    checks.main('style', check, self_test)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a folder as C arrays, so that the program carries them.

embed.py OUT.c DEPENDENCIES FOLDER...   every file below each FOLDER, named "FOLDER's name/path"
"""
import pathlib
import sys


def main():
    out, depfile, folders = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    files = [(f'{pathlib.Path(folder).name}/{path.relative_to(folder).as_posix()}', path)
             for folder in folders for path in sorted(pathlib.Path(folder).rglob('*')) if path.is_file()]
    lines = ['#include "scaffold/templates.h"', '']
    for number, (_, path) in enumerate(files):
        data = ', '.join(str(byte) for byte in path.read_bytes() + b'\0')
        lines.append(f'static const char text_{number}[] = {{{data}}};')
    lines += ['', 'const struct sl_template sl_templates[] = {']
    lines += [f'    {{"{name}", text_{number}, sizeof text_{number} - 1}},' for number, (name, _) in enumerate(files)]
    lines += ['    {0, 0, 0},', '};', '']
    out.write_text('\n'.join(lines))
    # the folders, too: a new file changes them
    seen = [str(path) for _, path in files] + sorted({str(path.parent) for _, path in files})
    depfile.write_text(f'{out}: ' + ' '.join(path.replace(' ', '\\ ') for path in seen) + '\n')


main()

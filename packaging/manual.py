#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the manual pages and the completions that the program prints: manual.py PROGRAM FOLDER COMMAND…

A command of two words has a hyphen between them: runs-compare.
"""
import pathlib
import subprocess
import sys

program, folder, commands = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]


def call(*arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True).stdout


(folder / 'seqlstm.1').write_bytes(call('help', '--man'))
for command in commands:
    (folder / f'seqlstm-{command}.1').write_bytes(call('help', '--man', *command.split('-')))
for name, shell in (('seqlstm', 'bash'), ('_seqlstm', 'zsh'), ('seqlstm.fish', 'fish')):
    (folder / name).write_bytes(call('completion', shell))

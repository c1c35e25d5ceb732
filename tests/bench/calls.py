# SPDX-License-Identifier: Apache-2.0
"""Calls of programs, for the scripts of this folder."""
import subprocess
import sys


def call(*command, fails=True):
    """Returns what the program prints. If it fails, so does the script, with its output, unless `fails` is false."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0 and fails:
        sys.exit(f'{" ".join(map(str, command))}:\n{done.stdout}{done.stderr}')
    return done.stdout

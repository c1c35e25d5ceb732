#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs nvcc and keeps what ptxas says about each kernel's resources out of the build's output.

nvcc.py REPORT NVCC [ARGUMENTS]...     the report: one line a kernel and architecture,
                                       ARCHITECTURE KERNEL REGISTERS STACK SPILLS SHARED
"""
import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(sm_\w+)'")
STACK = re.compile(r'(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads')
USED = re.compile(r'Used (\d+) registers')
SHARED = re.compile(r'(\d+) bytes smem')


def get_name(mangled):
    """The kernel's own name, with the numbers and number types of a template."""
    match = re.match(r'_Z(?:N\d+_GLOBAL__N_\w*?_)?L?(\d+)', mangled)
    if not match:
        return mangled
    start = match.end()
    end = start + int(match.group(1))
    found = re.findall(r'Li(\d+)E|\dcg_(tf32|bf16|f16|f32)', mangled[end:])
    arguments = [number or name for number, name in found]
    return mangled[start:end] + (f'<{",".join(arguments)}>' if arguments else '')


def main():
    report, command = sys.argv[1], sys.argv[2:] + ['-Xptxas', '-v']
    done = subprocess.run(command, capture_output=True, text=True)
    lines, kernel, stack = [], None, (0, 0, 0)
    for line in done.stderr.split('\n'):
        if match := ENTRY.search(line):
            kernel, stack = f'{match.group(2)} {get_name(match.group(1))}', (0, 0, 0)
        elif match := STACK.search(line):
            stack = tuple(map(int, match.groups()))
        elif (match := USED.search(line)) and kernel:
            shared = SHARED.search(line)
            lines.append(f'{kernel} {match.group(1)} {stack[0]} {stack[1] + stack[2]} {shared.group(1) if shared else 0}')
            kernel = None
        elif line.strip() and not line.startswith('ptxas info'):
            print(line, file=sys.stderr)
    if done.stdout:
        print(done.stdout, end='')
    with open(report, 'w') as file:
        file.writelines(f'{line}\n' for line in sorted(lines))
    return done.returncode


if __name__ == '__main__':
    sys.exit(main())

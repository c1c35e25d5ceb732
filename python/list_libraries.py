#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints `SONAME PATH` of the system's libraries whose names begin with NAME…, and of those that they need, but for
the C and C++ libraries, which every Linux has: list_libraries.py NAME…"""
import re
import subprocess
import sys

EVERYWHERE = re.compile(r'(ld-linux|libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|linux-vdso)[.-]')


def read_cache():
    """{soname: path} of what the dynamic loader finds, for this architecture."""
    listed = subprocess.run(['/sbin/ldconfig', '-p'], check=True, capture_output=True, text=True).stdout
    found = {}
    for name, path in re.findall(r'^\t(\S+) \([^)]*x86-64[^)]*\) => (\S+)$', listed, re.M):
        found.setdefault(name, path)
    return found


def main():
    cache, wanted, done = read_cache(), [], {}
    for stem in sys.argv[1:]:
        names = sorted(name for name in cache if name.startswith(stem) and re.search(r'\.so\.\d', name))
        if not names:
            sys.exit(f'the dynamic loader finds no {stem}.*; `ldconfig -p` lists what it finds')
        wanted.append(names[-1])
    while wanted:
        name = wanted.pop()
        if name in done or EVERYWHERE.match(name):
            continue
        if name not in cache:
            sys.exit(f'the dynamic loader does not find {name}')
        done[name] = cache[name]
        header = subprocess.run(['readelf', '-d', cache[name]], check=True, capture_output=True, text=True).stdout
        wanted += re.findall(r'\(NEEDED\).*\[(.+)\]', header)
    for name in sorted(done):
        print(name, done[name])


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the module through which Python calls the C library: cdefs.py VERSION OUT.py HEADER…
(headers in the order of inclusion).

The declarations are those of the headers, read by cffi (ABI mode), so the module is plain Python and serves every
version of Python. Without cffi the exit status is 77.
"""
import pathlib
import re
import sys


def read_declarations(text):
    """The declarations of a header: without comments, directives, inline functions and attributes."""
    text = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
    text = re.sub(r'^[ \t]*#(?:[^\n\\]|\\.|\\\n)*$', '', text, flags=re.M)
    text = re.sub(r'extern "C" \{', '', text)
    text = re.sub(r'static inline.*?^\}', '', text, flags=re.S | re.M)
    text = re.sub(r'^\}\s*$', '', text, flags=re.M)
    # cffi reads constants, not expressions with suffixes; a pointer to void takes any buffer without a cast
    text = re.sub(r'1u << (\d+)', lambda m: str(1 << int(m.group(1))), text)
    text = re.sub(r'\bfloat \*y\b', 'void *y', text)
    return text.replace('SEQLSTM_API', '')


def main():
    version, out, headers = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    try:
        import cffi
    except ImportError:
        print('cffi is missing: install python3-cffi', file=sys.stderr)
        sys.exit(77)
    builder = cffi.FFI()
    builder.set_source('seqlstm._cdefs', None)
    builder.cdef('\n'.join(read_declarations(pathlib.Path(header).read_text()) for header in headers))
    builder.emit_python_code(str(out))
    out.write_text(out.read_text() + f'version = {version!r}\n')


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A backend exports its query function and nothing else: check_exports.py NM MODULE SYMBOL."""
import subprocess
import sys

nm, module, symbol = sys.argv[1:]
listed = subprocess.run([nm, '-D', '--defined-only', module], check=True, capture_output=True,
                        text=True).stdout
found = {line.split()[-1].split('@')[0] for line in listed.splitlines()}
# The instrumentation of the sanitizers may add its own.
found = {name for name in found if not name.startswith(('__asan', '__ubsan', '__tsan', '__odr'))}
if found != {symbol}:
    print(f'{module} exports {", ".join(sorted(found)) or "nothing"}; expected {symbol} alone')
    sys.exit(1)

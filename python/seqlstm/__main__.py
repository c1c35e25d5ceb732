# SPDX-License-Identifier: Apache-2.0
"""The program `seqlstm` of the package: replaces this process."""
from __future__ import annotations

import os
import sys

from ._library import folder


def main() -> None:
    inside = os.path.join(folder, 'bin', 'seqlstm')
    program = inside if os.path.exists(inside) else 'seqlstm'
    try:
        os.execvp(program, ['seqlstm', *sys.argv[1:]])
    except OSError as reason:
        sys.exit(f'the program seqlstm cannot be started: {reason}; install it with `make install`')


if __name__ == '__main__':
    main()

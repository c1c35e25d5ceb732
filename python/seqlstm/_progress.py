# SPDX-License-Identifier: Apache-2.0
"""Shows how training goes: a line in a terminal, a display that is updated in Jupyter."""
from __future__ import annotations

import sys


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _in_notebook() -> bool:
    module = sys.modules.get('IPython')
    shell = module.get_ipython() if module is not None else None
    return shell is not None and shell.__class__.__name__ == 'ZMQInteractiveShell'


class Progress:
    """Called with (update, epoch, loss) while training runs."""

    def __init__(self) -> None:
        self.display: Any = None
        self.notebook = _in_notebook()
        self.terminal = not self.notebook and sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, update: int, epoch: float, loss: float) -> None:
        line = f'epoch {epoch:.2f}, update {update}, loss {loss:.4g}'
        if self.notebook:
            from IPython.display import display
            if self.display is None:
                self.display = display({'text/plain': line}, raw=True, display_id=True)
            else:
                self.display.update({'text/plain': line}, raw=True)
        elif self.terminal:
            sys.stderr.write(f'\r\x1b[K{line}')
            sys.stderr.flush()

    def end(self) -> None:
        if self.terminal:
            sys.stderr.write('\r\x1b[K')
            sys.stderr.flush()

# SPDX-License-Identifier: Apache-2.0
"""Which backends a server runs small batches on: backends of known speed, of which each is the faster one at some width."""
import pathlib
import sys
import time

CLI = pathlib.Path(__file__).resolve().parents[1] / 'cli'
sys.path[:0] = [str(CLI), str(CLI / 'serve')]
import harness
from harness import TINY, expect
from paced import FOLDER, backends, policy
from serving import Server


def test_few_sequences_are_timed_at_several_widths(t):
    """A backend that is the slower one for eight sequences is the faster one for two, and so for few of any number."""
    t.write('m.yaml', TINY.replace('epochs: 3', 'epochs: 1'))
    t.run('run', 'm.yaml', '-q', *backends(('paced-a', {'row_us': 250}), ('paced-b', {'call_us': 9500, 'row_us': 75})), *policy('measured'))

    def ask(server):
        begin = time.monotonic()
        server.outputs('tiny', [('x', 'FP32', [8, 2], [0.5, 1] * 8), ('lengths', 'INT32', [2], [4, 4])])
        return time.monotonic() - begin
    with Server(t, 'tiny', '--max-steps', '8', '--backend-path', FOLDER) as server:
        expect(min(ask(server) for _ in range(20)) < 0.005, 'eight rows take 2 ms on the one and 10 ms on the other')


harness.main(globals())

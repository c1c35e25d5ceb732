# SPDX-License-Identifier: Apache-2.0
"""seqlstm conformance, for plugins for collectives."""
import os
import pathlib

import harness
from harness import expect

MODULE = pathlib.Path(os.environ['SEQLSTM_BUILD']) / 'plugins/libseqlstm_collectives_comm-shm.so'


def test_cases_run_on_ranks(t):
    said = t.run('conformance', 'comm-shm', '--ranks', '3', '--case', 'broadcast', '--case', 'death', '--case', 'ordered_sum')
    said.prints('comm-shm 0.1.0', '3 cases on 3 ranks: 3 passed, 0 failed')
    report = t.run('conformance', 'comm-shm', '--ranks', '2', '--case', 'barrier', '--json').json
    expect(report['ranks'] == 2 and [(c['case'], c['verdict']) for c in report['cases']] == [('barrier', 'pass')], report)


def test_a_file_is_a_plugin_too(t):
    said = t.run('conformance', str(MODULE), '--ranks', '2', '--case', 'barrier')
    said.prints('1 case on 2 ranks: 1 passed')
    listed = t.run('conformance', 'comm-shm', '--list')
    expect(listed.text.split()[:2] == ['all_reduce', 'reduce_scatter'] and 'times' not in listed.text, listed.text)


def test_flags_of_the_other_kind_are_refused(t):
    t.run('conformance', 'comm-shm', '--level', 'load', rc=2).says('`--level` is for backends')
    t.run('conformance', 'reference', '--ranks', '2', rc=2).says('`--ranks` is for plugins for collectives')
    t.run('conformance', 'comm-shm', '--case', 'juggling', rc=2).says('there is no case juggling')
    t.run('conformance', 'comm-shm', '--ranks', '1', rc=2).says('--ranks 1')


harness.main(globals())

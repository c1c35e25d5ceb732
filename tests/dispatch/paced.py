# SPDX-License-Identifier: Apache-2.0
"""Plans with backends of known speed (paced.c), for the tests of this folder."""
import os
import pathlib

from harness import expect
from formats import crc64

FOLDER = pathlib.Path(os.environ.get('SEQLSTM_BUILD', 'build')) / 'tests/dispatch'


def backends(*entries):
    """The list of backends; each is an id, or (id, {option: value})."""
    items = [entry if isinstance(entry, str) else
             f'{{plugin: {entry[0]}, options: {{{", ".join(f"{k}: {v}" for k, v in entry[1].items())}}}}}'
             for entry in entries]
    return ['--set', f'backends=[{", ".join(items)}]', '--backend-path', str(FOLDER)]


def policy(word):
    return ['--set', f'dispatch.policy={word}']


def plan(t, *args, **options):
    return t.run('plan', 'm.yaml', '--json', *args, **options).json


def find(made, name='lstm_1'):
    return next(layer for layer in made['layers'] if layer['name'] == name)


def variant_of(made, name='lstm_1'):
    layer = find(made, name)
    return f'{layer["backend"]}:{layer["variant"]}'


def settle(t, *entries, said=None):
    """Plans m.yaml, then replaces the times in the cache by those that the entries (see `backends`) set for their
    recurrent layers, without what other load on this machine added. `said`: {id: microseconds} to use instead.
    Returns the content of the file, which contains no comparison."""
    costs = t.folder / '.cache/seqlstm/costs'
    for _ in range(5):  # a busy machine has no time for all of them at once
        made = plan(t, *backends(*entries))
        if sources(made) == {'cache'}:
            break
    expect(sources(made) == {'cache'}, 'something is still timed')
    lines = []
    for line in costs.read_bytes().splitlines():
        key, forward, backward, label, checksum = line.split(b' ')
        expect(crc64(line[:-17]) == int(checksum, 16), line)
        pace = next((1000 * (said or {}).get(id, options['call_us']) for id, options in entries
                     if label.startswith(id.encode() + b':') and label.endswith(b'/recurrent')), None)
        if pace:
            line = b'%b %.1f %.1f %b' % (key, pace, pace if float(backward) else 0, label)
            line += b' %016x' % crc64(line)
        if not label.startswith(b'whole'):
            lines.append(line + b'\n')
    costs.write_bytes(b''.join(lines))
    return costs.read_bytes()


def sources(made):
    return {layer['cost_from'] for layer in made['layers'] + made['evaluate']['layers']}

# SPDX-License-Identifier: Apache-2.0
"""Plans with backends of known pace (paced.c), for the tests of this folder."""
import os
import pathlib

FOLDER = pathlib.Path(os.environ.get('SEQLSTM_BUILD', 'build')) / 'tests/dispatch'


def backends(*entries):
    """The list of backends; each an id, or (id, {option: value})."""
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


def who(made, name='lstm_1'):
    layer = find(made, name)
    return f'{layer["backend"]}:{layer["variant"]}'


def sources(made):
    return {layer['cost_from'] for layer in made['layers'] + made['evaluate']['layers']}

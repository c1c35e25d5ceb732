#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`seqlstm schema` is a JSON Schema by which a standard validator accepts every config and template, and refuses what
the program refuses: check_schema.py SEQLSTM. Each file begins with the line that names the schema to editors.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = sys.argv[1]
LINE = re.compile(r'# yaml-language-server: \$schema=(\S+)\n')
KINDS = ('language_model', 'classify', 'tag', 'regress', 'forecast', 'seq2seq', 'autoencoder')


class Core(yaml.SafeLoader):
    """The core schema of YAML 1.2: 1e-3 is a number, `no` is a text."""
    yaml_implicit_resolvers = {}


for tag, pattern, first in (('bool', r'true|false', 'tf'), ('null', r'null|~|', ['n', '~', '']),
                            ('int', r'[-+]?[0-9]+', '-+0123456789'),
                            ('float', r'[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?', '-+.0123456789')):
    Core.add_implicit_resolver(f'tag:yaml.org,2002:{tag}', re.compile(f'^(?:{pattern})$'), list(first))
Core.add_constructor('tag:yaml.org,2002:float', lambda loader, node: float(loader.construct_scalar(node)))


def check_file(validator, path, schema):
    text = path.read_text()
    named = LINE.match(text)
    assert named, f'{path} does not begin with the line of the schema'
    found = (path.parent / named.group(1)).resolve()
    assert json.loads(found.read_text()) == schema, f'{path} names {found}, which is not what `seqlstm schema` prints'
    errors = [f'{list(e.absolute_path)}: {e.message[:200]}' for e in validator.iter_errors(yaml.load(text, Core))]
    assert not errors, f'{path}: {errors}'


def main():
    schema = json.loads(subprocess.run([PROGRAM, 'schema'], check=True, capture_output=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    configs = sorted((ROOT / 'configs').glob('*.yaml'))
    assert len(configs) > 10
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, 'XDG_CACHE_HOME': folder}
        made = []
        for kind in KINDS:
            subprocess.run([PROGRAM, 'new', 'model', kind, '--dir', f'{folder}/{kind}'], check=True, capture_output=True,
                           env=environment)
            made.append(pathlib.Path(folder, kind, 'model.yaml'))
        subprocess.run([PROGRAM, 'new', 'backend', 'mine', '--dir', f'{folder}/mine'], check=True, capture_output=True,
                       env=environment)
        for path in [*configs, *made, pathlib.Path(folder, 'mine', 'model.yaml')]:
            check_file(validator, path, schema)
    good = yaml.load((ROOT / 'configs' / 'adding-problem.yaml').read_text(), Core)
    for key, value in (('modle', good['model']), ('train', {**good['train'], 'epochs': 'many'}), ('model', [{'type': 'lstn'}])):
        assert not validator.is_valid({**good, key: value}), f'the schema accepts {key}: {value}'
    print(f'{len(configs) + len(made) + 1} files fit the schema')


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the Kubernetes manifest of docs/serving.md to the schemas of Kubernetes, and its flags to the program: kubernetes.py PROGRAM.
Needs the packages kubernetes-validate and pyyaml; without them it ends with 77."""
import pathlib
import re
import subprocess
import sys

try:
    import kubernetes_validate
    import yaml
except ImportError as error:
    print(f'no {error.name}')
    sys.exit(77)

text = (pathlib.Path(__file__).resolve().parents[2] / 'docs/serving.md').read_text()
block = next(block for block in re.findall(r'```\n(.*?)```', text, re.S) if 'kind: Deployment' in block)
objects = list(yaml.safe_load_all(block))
failed = 0
for one in objects:
    try:
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
        print(f"{one['kind']}: {error}")
        failed += 1
container = objects[0]['spec']['template']['spec']['containers'][0]
known = subprocess.run([sys.argv[1], 'serve', '--help'], check=True, capture_output=True, text=True).stdout
for flag in container['args']:
    if flag.startswith('--') and f'{flag} ' not in known:
        print(f'serve has no {flag}')
        failed += 1
mounts, volumes = ({entry['name'] for entry in entries} for entries in (container['volumeMounts'], objects[0]['spec']['template']['spec']['volumes']))
if mounts != volumes:
    print(f'mounts {mounts}, volumes {volumes}')
    failed += 1
print(f'{len(objects)} objects, {failed} failed')
sys.exit(failed > 0)

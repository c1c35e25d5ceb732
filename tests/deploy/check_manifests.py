#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds examples/deploy against a schema of what it uses, and against itself; the schema must refuse mistakes.

check_manifests.py FOLDER SEQLSTM      FOLDER: examples/deploy
"""
import copy
import json
import pathlib
import re
import subprocess
import sys

import jsonschema
import yaml


def get_jobs(manifest):
    return {job['name']: job['template']['spec'] for job in manifest['spec']['replicatedJobs']}


def find_mistakes(manifest, validator, program):
    """What the schema refuses, names that do not exist, and flags that the program does not know."""
    mistakes = [f'{"/".join(map(str, e.absolute_path))}: {e.message}' for e in validator.iter_errors(manifest)]
    if mistakes:
        return mistakes
    jobs, spec = get_jobs(manifest), manifest['spec']
    for name in spec.get('successPolicy', {}).get('targetReplicatedJobs', []):
        mistakes += [] if name in jobs else [f'there is no job {name}']
    for job in spec['replicatedJobs']:
        mistakes += [f'there is no job {d["name"]}' for d in job.get('dependsOn', []) if d['name'] not in jobs]
    for name, job in jobs.items():
        pod = job['template']['spec']
        volumes = {volume['name'] for volume in pod.get('volumes', [])}
        containers = {container['name'] for container in pod['containers']}
        for container in pod['containers']:
            mistakes += [f'{name}: there is no volume {m["name"]}' for m in container.get('volumeMounts', [])
                         if m['name'] not in volumes]
        for rule in job.get('podFailurePolicy', {}).get('rules', []):
            if rule['onExitCodes'].get('containerName') not in containers:
                mistakes.append(f'{name}: there is no container {rule["onExitCodes"].get("containerName")}')
    text = jobs['launcher']['template']['spec']['containers'][0]['args'][0]
    network, workers = spec['network']['subdomain'], jobs['workers']
    hosts = re.search(r'--host (\S+)', text).group(1).split(',')
    expected = [f'{manifest["metadata"]["name"]}-workers-0-{k}.{network}' for k in range(workers['completions'])]
    if [host.split(':')[0] for host in hosts] != expected:
        mistakes.append(f'hosts are {hosts}, and the workers are {expected}')
    ranks = sum(int(host.split(':')[1]) for host in hosts)
    said = {int(n) for n in re.findall(r'mpirun -n (\d+)|parallel\.data=(\d+)', text) for n in n if n}
    mistakes += [] if said == {ranks} else [f'the hosts have {ranks} places, and {said} ranks are asked for']
    known = subprocess.run([program, 'help', 'run'], stdout=subprocess.PIPE, text=True, check=True).stdout
    for flag in re.findall(r'(--(?:out|set|restarts)) ', text):
        mistakes += [] if flag in known else [f'`run` has no {flag}']
    return mistakes


def main():
    folder, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    schema = json.loads((pathlib.Path(__file__).parent / 'jobset.schema.json').read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    manifest = yaml.safe_load((folder / 'jobset.yaml').read_text())
    mistakes = find_mistakes(manifest, validator, program)
    for change in (lambda m: m['spec'].update(failurepolicy={}), lambda m: m.update(apiVersion='v1'),
                   lambda m: get_jobs(m)['workers'].update(completions='2'),
                   lambda m: get_jobs(m)['workers'].update(completions=3),
                   lambda m: get_jobs(m)['launcher']['template']['spec'].update(volumes=[]),
                   lambda m: m['spec']['successPolicy'].update(targetReplicatedJobs=['none']),
                   lambda m: get_jobs(m)['launcher']['template']['spec'].update(restartPolicy='Always')):
        wrong = copy.deepcopy(manifest)
        change(wrong)
        if not find_mistakes(wrong, validator, program):
            mistakes.append('a mistake is not noticed')
    shell = subprocess.run(['bash', '-n', folder / 'slurm.sh'], stderr=subprocess.PIPE, text=True)
    mistakes += [shell.stderr] if shell.returncode else []
    print('\n'.join(mistakes) or 'ok 1 - manifests')
    sys.exit(bool(mistakes))


main()

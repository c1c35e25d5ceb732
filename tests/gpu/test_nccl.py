#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""comm-nccl on the emulated device and the fake NCCL of fakes/fake_nccl.c: the conformance kit, what it says when NCCL,
devices or other ranks fail, and training on several devices."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import tap

BUILD = pathlib.Path(os.environ.get('SEQLSTM_BUILD', '.')).resolve()
PROGRAM, HERE = BUILD / 'seqlstm', BUILD / 'tests/gpu'
PLUGIN = HERE / 'libseqlstm_collectives_comm-nccl.so'


MODEL = '''seqlstm: 1
seed: 3
data: {{type: generator, train: {{name: sine, size: 60, seed: 1, length: [3, 9], features: 1, horizon: 1}}, batch_size: 12}}
model: [{{type: lstm, units: 9, recurrent_dropout: 0.1}}, {{type: dense, units: from_target}}]
train: {{loss: mse, epochs: 2, optimizer: {{type: adam, learning_rate: 0.01}}}}
backends: [cuda-generic]
device: cuda
dispatch: {{policy: order}}
parallel: {{{parallel}}}
'''


def run(*arguments, devices=4, library=HERE, **variables):
    env = {key: value for key, value in os.environ.items() if key not in ('VIRTUAL_ENV', 'CONDA_PREFIX')}
    env.update(SEQLSTM_EMULATED_DEVICES=str(devices), LD_LIBRARY_PATH=str(library), **variables)
    done = subprocess.run([PROGRAM, *map(str, arguments)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=200, check=False)
    return done.returncode, done.stdout


def conformance(*arguments, **settings):
    return run('conformance', PLUGIN, *arguments, **settings)


def expect(holds, text):
    assert holds, text


def test_kit(_):
    code, text = conformance('--ranks', '4')
    expect(code == 0 and ' 0 failed' in text, text)


def test_slow_rank(_):
    code, text = conformance('--ranks', '2', '--case', 'barrier', FAKE_NCCL_SLOW='1,50')
    expect(code == 0, text)


def test_remote_error(_):
    code, text = conformance('--ranks', '2', '--case', 'all_reduce', FAKE_NCCL_FAIL='1,7')
    expect(code == 1 and 'rank 1 has failed' in text, text)


def test_exchanges_that_are_still_prepared(_):
    """A call that must not block may return before its exchange is in the stream: no other call comes until it is."""
    code, text = conformance('--ranks', '2', '--case', 'all_reduce', '--case', 'send_receive', FAKE_NCCL_BUSY='3')
    expect(code == 0 and ' 0 failed' in text, text)


def test_other_library(folder):
    for file in PLUGIN, HERE / 'libgpu_emulation.so':
        shutil.copy(file, folder)
    shutil.copy(HERE / 'libgpu_emulation.so', folder / 'libnccl.so.2')  # found before that of the system
    code, text = run('conformance', folder / PLUGIN.name, '--ranks', '2', '--case', 'barrier', library=folder)
    expect(code != 0 and 'has no function ncclGetVersion' in text, text)


def test_old_library(_):
    for version, name in ('2804', '2.8'), ('21304', '2.13'):
        code, text = conformance('--ranks', '2', '--case', 'barrier', FAKE_NCCL_VERSION=version)
        expect(code != 0 and f"NCCL's version {name}, and 2.14 is needed" in text, text)


def test_too_few_devices(_):
    code, text = conformance('--ranks', '4', '--case', 'barrier', devices=3)
    expect(code != 0 and 'a CUDA device for each of the 4 ranks, and there are 3' in text, text)


def train(folder, name, parallel, *arguments, expected=0, **settings):
    (folder / f'{name}.yaml').write_text(MODEL.format(parallel=parallel))
    code, text = run('run', folder / f'{name}.yaml', '--out', folder / name, '-v', '--backend-path', HERE, *arguments,
                     **settings)
    expect(code == expected, f'exit {code}\n{text}')
    return text


def read_losses(folder):
    rows = [json.loads(line) for line in (folder / 'metrics.jsonl').read_text().splitlines()]
    return [row['metrics']['loss'] for row in rows if row['span'] == 'epoch']


def test_ranks_on_devices(folder):
    """Each rank computes on a device of its own. The sum of two gradients has no order, so that the bits are those of
    the exchange through the host."""
    train(folder, 'nccl', 'data: 2', devices=2)
    train(folder, 'host', 'data: 2', '--collectives', 'comm-shm', devices=2)
    train(folder, 'alone', 'data: 1', devices=1)
    expect((folder / 'nccl/final.safetensors').read_bytes() == (folder / 'host/final.safetensors').read_bytes(),
           'NCCL and shared memory give other weights')
    for one, two in zip(read_losses(folder / 'alone'), read_losses(folder / 'nccl'), strict=True):
        expect(abs(one - two) <= 2e-4 * abs(one), f'one rank has the loss {one}, two have {two}')


def test_shards_on_devices(folder):
    """The same bits on one and two ranks, of which the exchange is NCCL's, in the order of the tree."""
    for data in 1, 2:
        train(folder, f'r{data}', f'data: {data}, shards: 3', devices=2)
    expect((folder / 'r1/final.safetensors').read_bytes() == (folder / 'r2/final.safetensors').read_bytes(),
           'two ranks give other weights than one')


def test_other_ways_to_add(folder):
    for name, parallel in {'central': 'reduce: central', 'narrow': 'reduce: {dtype: bfloat16}'}.items():
        train(folder, name, f'data: 2, {parallel}', devices=2)
        losses = read_losses(folder / name)
        expect(losses[1] < losses[0], f'{name}: {losses}')


def test_no_second_device(folder):
    text = train(folder, 'one', 'data: 2', devices=1, expected=3)
    expect('there is no CUDA device 1' in text, text)


def plan(folder, *arguments, devices=2, expected=0, **settings):
    (folder / 'plan.yaml').write_text(MODEL.format(parallel=''))
    code, text = run('plan', folder / 'plan.yaml', '--backend-path', HERE, *arguments, devices=devices, **settings)
    expect(code == expected, f'exit {code}\n{text}')
    return text


def test_plans_with_a_device_for_each_rank(folder):
    """A host has as many ranks as devices, from that of the model on, and each computes on its own."""
    def count(*arguments, **settings):
        made = json.loads(plan(folder, '--json', *arguments, **settings))
        return made['ranks_of_a_host'], made['ranks_measured'], made['gpus'], [row['hosts'] for row in made['rows']]
    link = '10Gb/s,5us'
    found = count('--ranks', '1,2,4', '--link', link)
    expect(found == (2, 2, 2, [1, 1, 2]), found)
    found = count('--ranks', '1,2', '--link', link, devices=1)
    expect(found == (1, 1, 1, [1, 2]), found)
    found = count('--ranks', '2', '--device', 'cuda:1', devices=3)
    expect(found == (2, 2, 2, [1]), found)
    found = count('--ranks', '16', '--link', f'{link},nvlink=8x300GB/s', devices=1)
    expect(found == (8, 1, 1, [2]), found)
    expect('each on a GPU of its own' in plan(folder, '--ranks', '2', '--set', 'parallel={data: 2, reduce: central}'), 'the table')
    for arguments, reason in ((['--ranks', '1,2'], '2 ranks are more than the 1 of a host; give the link'),
                              (['--ranks', '2', '--link', f'{link},nvlink=300GB/s'], 'a host like this machine has one'),
                              (['--ranks', '2', '--link', f'{link},nvlink=4096x300GB/s', '--device', 'cpu', '--set',
                                'backends=[reference]'], '`4096x` is for GPUs')):
        text = plan(folder, *arguments, devices=1, expected=2)
        expect(reason in text, text)


def test_pipeline_is_refused(folder):
    text = train(folder, 'pipe', 'pipeline: 2', devices=2, expected=3)
    expect('run on processors only, and' in text, text)


def test_failure_in_training(folder):
    text = train(folder, 'failing', 'data: 2', devices=2, expected=1, FAKE_NCCL_FAIL='1,9')
    expect('NCCL failed in an exchange: remote process exited' in text, text)


if __name__ == '__main__':
    sys.exit(tap.run([(name, test) for name, test in list(globals().items()) if name.startswith('test_')]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training with dense layers on cuBLASLt (the fake one of fake_cublaslt.c) on the emulated device, compared with the
reference, loss by loss; and the messages of `plan` if the library is missing, switched off or broken."""
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
import tap

BUILD = pathlib.Path(os.environ.get('SEQLSTM_BUILD', '.')).resolve()
PROGRAM, HERE = BUILD / 'seqlstm', BUILD / 'tests/gpu'
LIBRARY = HERE / 'libfake_cublasLt.so'
TOLERANCE = 2e-4  # as in test_cudnn.py

MODEL = '''seqlstm: 1
seed: 5
data: {type: generator, train: {name: adding_problem, size: 14, seed: 1, length: 6}, batch_size: 4}
model:
  - {type: lstm, units: 5}
  - {type: dense, name: hidden, units: 8, activation: relu}
  - {type: dense, name: out, units: from_target}
train: {loss: mse, epochs: 2, optimizer: {type: adam, learning_rate: 0.01}}
'''


def run(folder, command, name, backends, pin='', expect=0, model=MODEL, **environment):
    path = folder / f'{name}.yaml'
    path.write_text(f'{model}backends: [{backends}]\ndispatch: {{policy: order, pin: {{{pin}}}}}\n')
    arguments = [command, path] + (['--out', folder / name, '--quiet'] if command == 'run' else [])
    done = subprocess.run([PROGRAM, *map(str, arguments), '--backend-path', HERE], capture_output=True, text=True,
                          timeout=120, env={**os.environ, **environment})
    if done.returncode != expect:
        raise AssertionError(f'{arguments}: exit {done.returncode}, expected {expect}\n{done.stdout}\n{done.stderr}')
    return done.stdout + done.stderr


def generic(library):
    return f'{{plugin: cuda-generic, options: {{cublaslt: {library}}}}}'


def read_losses(folder, name):
    rows = [json.loads(line) for line in (folder / name / 'metrics.jsonl').read_text().splitlines()]
    return [row['metrics']['loss'] for row in rows if row['span'] == 'epoch']


def check_training(folder):
    run(folder, 'run', 'expected', 'reference')
    expected = read_losses(folder, 'expected')
    pin = 'hidden: "cuda-generic:cublaslt", out: "cuda-generic:cublaslt"'
    for name, environment in (('whole', {}), ('without-sums', {'FAKE_CUBLASLT_REFUSE': '512'}),
                              ('without-last-batch', {'FAKE_CUBLASLT_COLUMNS': '2'})):
        run(folder, 'run', name, generic(LIBRARY), pin, **environment)
        summary = json.loads((folder / name / 'summary.json').read_text())
        used = {layer['name']: layer['variant'] for layer in summary['layers']}
        losses = read_losses(folder, name)
        if used['hidden'] != 'cublaslt' or len(losses) != len(expected) or \
           not all(abs(a - b) <= TOLERANCE * max(1, abs(b)) for a, b in zip(losses, expected)):
            raise AssertionError(f'{name}: {losses} on {used}, expected {expected}')


def check_recurrent(folder):
    """Products of the recurrent layer (5 units, input of 2) outside its steps: of all rows at once, in batches of 4 and 2
    sequences of 6 steps. One heuristic each, however often a shape is bound; dW_x has one more, together with the sums for
    the bias."""
    log = folder / 'log.txt'
    run(folder, 'run', 'recurrent', generic(LIBRARY), FAKE_CUBLASLT_LOG=str(log))
    lines = log.read_text().splitlines()
    for rows in (24, 12):
        # u' = W_x x', dW_x' = x' du, dW_h' = h' dv
        for what, heuristics in ((f'20 {rows} 2', 1), (f'2 20 {rows}', 2), (f'5 20 {rows}', 1)):
            if f'product {what}' not in lines or lines.count(f'heuristic {what}') != heuristics:
                raise AssertionError(f'{what}: {lines}')


def check_refused(folder):
    """An epilogue without an algorithm (RELU and BIAS): the layer is refused with the reason, and runs on our
    kernels."""
    pin = 'hidden: "cuda-generic:cublaslt"'
    text = run(folder, 'plan', 'refused', generic(LIBRARY), pin, expect=3, FAKE_CUBLASLT_REFUSE='6')
    if 'refuses cublasLtMatmulAlgoGetHeuristic' not in text:
        raise AssertionError(f'the refusal hides its reason: {text}')
    run(folder, 'run', 'kernels', generic(LIBRARY), FAKE_CUBLASLT_REFUSE='6')


def check_absent(folder):
    pin = 'hidden: "cuda-generic:cublaslt"'
    cases = (('none', {}, 'cuBLASLt is switched off'),
             (LIBRARY, {'FAKE_CUBLASLT_BROKEN': '1'}, 'does not start on CUDA device'))
    for number, (library, environment, reason) in enumerate(cases):
        text = run(folder, 'plan', f'absent-{number}', generic(library), pin, expect=3, **environment)
        if reason not in text:
            raise AssertionError(f'expected `{reason}`: {text}')
        run(folder, 'run', f'goes-on-{number}', generic(library), **environment)
    text = run(folder, 'run', 'named', generic(folder).replace('plugin:', 'require: true, plugin:'), expect=3)
    if 'has no libcublasLt.so.' not in text:
        raise AssertionError(f'a library that is named and absent: {text}')


def check_f16x3(folder):
    """Float32 by three float16 products: trains as the reference does; with `f16x3: false` it is refused."""
    model = MODEL.replace('units: 5', 'units: 16').replace('units: 8', 'units: 400').replace('batch_size: 4', 'batch_size: 7')
    pin = 'lstm_1: "cuda-generic:step_graph+f16x3", hidden: "cuda-generic:f16x3"'
    run(folder, 'run', 'exact', 'reference', model=model)
    run(folder, 'run', 'f16x3', 'cuda-generic', pin, model=model)
    losses, expected = read_losses(folder, 'f16x3'), read_losses(folder, 'exact')
    if len(losses) != len(expected) or not all(abs(a - b) <= TOLERANCE * max(1, abs(b)) for a, b in zip(losses, expected)):
        raise AssertionError(f'{losses}, expected {expected}')
    text = run(folder, 'plan', 'off', '{plugin: cuda-generic, options: {f16x3: false}}', pin, expect=3, model=model)
    if 'the option f16x3 is false' not in text:
        raise AssertionError(f'the refusal hides its reason: {text}')


def check_narrow(folder):
    """A large dense layer (16 to 400 units) in bfloat16: all its products read operands in 16 bits."""
    model = MODEL.replace('units: 5', 'units: 16').replace('units: 8', 'units: 400').replace('batch_size: 4', 'batch_size: 7')
    log = folder / 'narrow.txt'
    run(folder, 'run', 'narrow', generic(LIBRARY), 'hidden: "cuda-generic:cublaslt"', model=f'{model}precision: bfloat16\n',
        FAKE_CUBLASLT_LOG=str(log))
    lines = log.read_text().splitlines()
    for what in ('400 7 16', '16 7 400', '16 400 7'):  # y' = W x', dx' = W' dz', dW' = x' dz
        if f'product16 {what}' not in lines or f'product {what}' in lines:
            raise AssertionError(f'{what}: {lines}')


def check_wide(folder):
    """The same where cuBLASLt has no algorithm for operands in 16 bits: it multiplies operands in float32, as exactly."""
    model = MODEL.replace('units: 5', 'units: 16').replace('units: 8', 'units: 400').replace('batch_size: 4', 'batch_size: 7')
    log, pin = folder / 'wide.txt', 'hidden: "cuda-generic:cublaslt"'
    run(folder, 'run', 'exact', 'reference', model=model)
    run(folder, 'run', 'wide', generic(LIBRARY), pin, model=f'{model}precision: bfloat16\n', FAKE_CUBLASLT_LOG=str(log),
        FAKE_CUBLASLT_WIDE='1')
    lines = log.read_text().splitlines()
    for what in ('400 7 16', '16 7 400', '16 400 7'):
        if f'product {what}' not in lines or f'product16 {what}' in lines:
            raise AssertionError(f'{what}: {lines}')
    losses, expected = read_losses(folder, 'wide'), read_losses(folder, 'exact')
    if len(losses) != len(expected) or not all(abs(a - b) <= 2e-2 * max(1, abs(b)) for a, b in zip(losses, expected)):
        raise AssertionError(f'{losses}, expected {expected}')


def check_narrow_recurrent(folder):
    """A recurrent layer (16 units, input of 8) in bfloat16: its input and its gradients are converted once, and all
    products of all rows read them. With two directions, both read the same input. Without algorithms for operands in 16
    bits, those in float32 are multiplied."""
    rows = 7 * 6
    both = '  - {type: lstm, units: 16, direction: bidirectional}\n'
    one = '  - {type: lstm, units: 16}\n'
    for name, layer, products, wide in (('one', one, 1, {}), ('two', both, 2, {}), ('wide', one, 1, {'FAKE_CUBLASLT_WIDE': '1'})):
        log = folder / f'{name}.txt'
        model = MODEL.replace('  - {type: lstm, units: 5}\n', '  - {type: dense, name: wide, units: 8}\n' + layer)
        model = model.replace('size: 14', 'size: 7').replace('batch_size: 4', 'batch_size: 7').replace('epochs: 2', 'epochs: 1')
        run(folder, 'run', f'narrow-{name}', generic(LIBRARY), model=f'{model}precision: bfloat16\n', FAKE_CUBLASLT_LOG=str(log), **wide)
        lines = log.read_text().splitlines()
        used, other = ('product', 'product16') if wide else ('product16', 'product')
        # u' = W_x x', dx' = W_x' du', dW_x' = x' du, dW_h' = h' dv
        for what in (f'64 {rows} 8', f'8 {rows} 64', f'8 64 {rows}', f'16 64 {rows}'):
            if lines.count(f'{used} {what}') != products or f'{other} {what}' in lines:
                raise AssertionError(f'{name}, {what}: {lines}')


LANGUAGE = """seqlstm: 1
seed: 3
data: {{type: text, train: {{file: {folder}/t.txt}}, tokenizer: whitespace, batch_size: 4, batching: {{unit: stream, bptt: 3}}}}
model: [{{type: embedding, dim: 64}}, {{type: lstm, units: 64, return_sequences: true{option}}}, {{type: output, activation: softmax}}]
train: {{epochs: 2, optimizer: {{type: adam, learning_rate: 0.001}}}}
"""
NODES_MOST = 19


def find_graph(folder, name, model, pin=''):
    """The largest graph of an update."""
    nodes = folder / f'{name}.txt'
    run(folder, 'run', name, generic(LIBRARY), pin, model=model, SEQLSTM_EMULATED_NODES=str(nodes))
    return max((json.loads(line) for line in nodes.read_text().splitlines()), key=len)


def write_text(folder):
    (folder / 't.txt').write_text(' '.join(f'w{(i * 7 + i // 5) % 11}' for i in range(80)) + '\n')


def check_nodes(folder):
    """The graph of an update of a language model with 64 units: no more nodes than the launch of one is worth. Masks are
    drawn by kernels that there are anyway, but for that of the input's gradient."""
    write_text(folder)
    for name, option, most in (('plain', '', NODES_MOST), ('masked', ', dropout: 0.2, recurrent_dropout: 0.1', NODES_MOST + 1)):
        graph = find_graph(folder, name, LANGUAGE.format(folder=folder, option=option), 'output_1: "cuda-generic:cublaslt"')
        if not 0 < len(graph) <= most:
            raise AssertionError(f'{name}: {len(graph)} nodes, at most {most}: {graph}')


def check_masks(folder):
    """Masks of two layers cost as many nodes as say here: the input of the second layer one, unless it is made where
    directions are merged or final states are written, and gradients of inputs one, unless the layer below reads them so."""
    write_text(folder)
    plain = MODEL.replace('  - {type: lstm, units: 5}\n',
                          '  - {type: dense, name: wide, units: 8}\n  - {type: lstm, name: r, units: 5, layers: 2OPTIONS}\n')
    stream = LANGUAGE.format(folder=folder, option=', name: r, layers: 2OPTIONS')
    for name, model, pin, options, most in (
            ('forward', plain, 'r: "cuda-generic:small"', '', 3), ('steps', plain, 'r: "cuda-generic:step_graph"', '', 2),
            ('states', stream, 'r: "cuda-generic:step_graph"', '', 1), ('both', plain, '', ', direction: bidirectional', 2)):
        without, masked = (find_graph(folder, f'{name}-{k}', model.replace('OPTIONS', options + masks), pin)
                           for k, masks in enumerate(('', ', dropout: 0.2, recurrent_dropout: 0.1')))
        if not len(without) <= len(masked) <= len(without) + most:
            raise AssertionError(f'{name}: {len(without)} nodes, {len(masked)} with masks: {masked}')


TESTS = [('training', check_training), ('recurrent layers', check_recurrent), ('an epilogue that is refused', check_refused),
         ('absent, switched off or broken', check_absent), ('three float16 products', check_f16x3),
         ('operands in 16 bits', check_narrow), ('none in 16 bits', check_wide),
         ('a recurrent layer in 16 bits', check_narrow_recurrent), ('nodes of an update', check_nodes), ('nodes for masks', check_masks)]


if __name__ == '__main__':
    sys.exit(tap.run(TESTS))

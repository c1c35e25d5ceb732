#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of one training step of small language models: seqlstm with the backend and variant that it measured to be the
fastest, seqlstm with its LSTM pinned to cuda-cudnn, and PyTorch with cuDNN, eager and with its whole step in a CUDA graph,
one after the other on the same device.

timings.py --program SEQLSTM --mode quick|full --out FILE.json

Model: embedding of the hidden size, one LSTM, output over 1000 words, cross-entropy, Adam, float32 (TF32 off). What
a side could not run has a `why` instead of `ms`; seqlstm's sides say which variant ran the LSTM.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

WORDS = 1000
MODEL = '''seqlstm: 1
data: {{type: text, train: {{file: {folder}/t.txt}}, tokenizer: whitespace, batch_size: {batch},
       batching: {{unit: stream, bptt: {steps}}}}}
model: [{{type: embedding, dim: {hidden}}}, {{type: lstm, units: {hidden}, return_sequences: true{option}}},
        {{type: output, activation: softmax}}]
train: {{epochs: 3, optimizer: {{type: adam, learning_rate: 0.001}}}}
backends: [cuda-cudnn, cuda-generic, cpu-blas]
dispatch: {{pin: {{{pin}}}}}
'''
UPDATES = 40


def time_seqlstm(program, case):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        count = case['batch'] * case['steps'] * UPDATES + case['batch']
        (folder / 't.txt').write_text(' '.join(f'w{(k * 7919 + k // 13) % WORDS}' for k in range(count)) + '\n')
        (folder / 'm.yaml').write_text(MODEL.format(folder=folder, **case))
        try:
            done = subprocess.run([program, 'run', folder / 'm.yaml', '--out', folder / 'out', '--quiet'],
                                  capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return {'why': 'it took longer than 120 s'}
        if done.returncode != 0:
            return {'why': (done.stderr.strip().split('\n') or ['?'])[0]}
        rows = [json.loads(line) for line in (folder / 'out/metrics.jsonl').read_text().splitlines()]
        layers = json.loads((folder / 'out/summary.json').read_text())['layers']
    epochs = [row for row in rows if row['split'] == 'train' and row['span'] == 'epoch']
    each = [1e3 * (b['seconds'] - a['seconds']) / (b['update'] - a['update']) for a, b in zip(epochs, epochs[1:])]
    chosen = [f'{layer["backend"]}:{layer["variant"]}' for layer in layers if layer['name'] == 'lstm_1']
    return {'ms': statistics.median(each), 'all': each, 'variant': ', '.join(chosen)}


def make_torch_step(torch, case):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    hidden, device = case['hidden'], 'cuda'
    embedding = torch.nn.Embedding(WORDS, hidden, device=device)
    lstm = torch.nn.LSTM(hidden, hidden, device=device)
    output = torch.nn.Linear(hidden, WORDS, device=device)
    parameters = [*embedding.parameters(), *lstm.parameters(), *output.parameters()]
    adam = torch.optim.Adam(parameters, lr=1e-3, capturable=True, fused=True)
    x = torch.randint(WORDS, (case['steps'], case['batch']), device=device)

    def step():
        adam.zero_grad(set_to_none=True)
        y, _ = lstm(embedding(x))
        torch.nn.functional.cross_entropy(output(y).view(-1, WORDS), x.view(-1)).backward()
        adam.step()
    return step


def time_torch(torch, case, graphed):
    try:
        step = make_torch_step(torch, case)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(5):
                step()
        torch.cuda.synchronize()
        if graphed:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
            step = graph.replay
        each = []
        for _ in range(5):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(20):
                step()
            torch.cuda.synchronize()
            each.append((time.perf_counter() - start) / 20 * 1e3)
        return {'ms': statistics.median(each), 'all': each}
    except Exception as error:  # whatever PyTorch says is the result
        return {'why': str(error).split('\n')[0][:200]}


def list_cases(mode):
    hidden = (64, 256) if mode == 'quick' else (64, 256, 650, 1024)
    batch = (1, 32) if mode == 'quick' else (1, 32, 128)
    cases = [{'hidden': h, 'batch': b, 'steps': 35, 'option': ''} for h in hidden for b in batch]
    for option in (', recurrent_dropout: 0.2', ', peephole: true', ', layer_norm: true'):
        cases.append({'hidden': 256, 'batch': 32, 'steps': 35, 'option': option})
    return cases


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--mode', default='quick')
    parser.add_argument('--out', required=True)
    arguments = parser.parse_args()
    try:
        import torch
        why = None if torch.cuda.is_available() else 'PyTorch finds no GPU'
    except ImportError:
        torch, why = None, 'PyTorch is not installed'
    results = []
    for case in list_cases(arguments.mode):
        plain = not case['option']
        result = {**case, 'seqlstm': time_seqlstm(arguments.program, {**case, 'pin': ''})}
        result['cudnn'] = time_seqlstm(arguments.program, {**case, 'pin': 'lstm_1: cuda-cudnn'}) if plain else \
            {'why': 'cuDNN has no such option'}
        for name, graphed in (('torch', False), ('torch_graph', True)):
            result[name] = {'why': why or 'PyTorch has no such option'} if why or not plain else \
                time_torch(torch, case, graphed)
        results.append(result)
        print(json.dumps(result), flush=True)
        pathlib.Path(arguments.out).write_text(json.dumps(results, indent=1))
    return 0


if __name__ == '__main__':
    sys.exit(main())

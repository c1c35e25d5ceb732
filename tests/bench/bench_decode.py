#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoding with configs/translation.yaml, compared with a plain PyTorch loop with the same weights.

bench_decode.py RUN SOURCES [--build DIR] [--threads N] [--rounds N] [--sentences N] [--only TEXT]

RUN is a run folder of that model, SOURCES a file of source sentences. Needs an interpreter with torch and safetensors
in a scratch environment. The loop is the usual one: nn.LSTM called step by step, padded attention with a mask,
log_softmax and topk over the vocabulary; a beam goes on until every hypothesis of the batch has ended.

Both run in turn, round after round, on the same sentences in the same batches. The encoder is included, loading and
planning are not. The table shows tokens per second (end marks included), the median of the rounds' ratios with the
smallest and the largest, and the share of equal texts. `floor` is the time of only the output layer's product,
torch.mm, for the rows of live hypotheses: no decoder with this output layer is faster.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from safetensors.torch import load_file

BOS, EOS = 1, 2
# name: batch, beam, sentences
CASES = {'greedy, batch 1': (1, 1, 200), 'greedy, batch 32': (32, 1, 320), 'beam 5, batch 32': (32, 5, 320),
         'beam 5, batch 1': (1, 5, 100)}


class Model:
    """Weights of configs/translation.yaml under PyTorch's names."""
    def __init__(self, weights):
        self.weights = weights
        self.reader = torch.nn.LSTM(256, 256, bidirectional=True, batch_first=True)
        self.writer = torch.nn.LSTM(256, 512)
        for name, module in (('reader', self.reader), ('writer', self.writer)):
            module.load_state_dict({key[len(name) + 1:]: value for key, value in weights.items()
                                    if key.startswith(name + '.')})

    def encode(self, sources):
        """Returns the memory [B, S, 512], its mask [B, S], and the initial states [1, B, 512] of the decoder."""
        lengths = torch.tensor([len(source) for source in sources])
        ids = torch.zeros(len(sources), int(lengths.max()), dtype=torch.long)
        for k, source in enumerate(sources):
            ids[k, :len(source)] = torch.tensor(source)
        x = torch.nn.functional.embedding(ids, self.weights['source.weight'])
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        memory, (h, c) = self.reader(packed)
        memory, _ = torch.nn.utils.rnn.pad_packed_sequence(memory, batch_first=True)
        mask = torch.arange(ids.shape[1])[None] >= lengths[:, None]
        return memory, mask, (torch.cat([h[0], h[1]], 1)[None].contiguous(),
                              torch.cat([c[0], c[1]], 1)[None].contiguous())

    def step(self, tokens, states, memory, mask):
        """Returns logits [B, V] and the next states."""
        w = self.weights
        x = torch.nn.functional.embedding(tokens, w['target.weight'])
        out, states = self.writer(x[None], states)
        out = out[0]
        query = torch.nn.functional.linear(out, w['attention_1.weight'])
        scores = torch.bmm(memory, query[:, :, None])[:, :, 0].masked_fill(mask, float('-inf'))
        context = torch.bmm(torch.softmax(scores, 1)[:, None], memory)[:, 0]
        hidden = torch.tanh(torch.nn.functional.linear(torch.cat([context, out], 1), w['dense_1.weight'],
                                                       w['dense_1.bias']))
        return torch.nn.functional.linear(hidden, w['target.weight'], w['output_1.bias']), states


def greedy(model, sources):
    memory, mask, states = model.encode(sources)
    tokens = torch.full((len(sources),), BOS)
    ended = torch.zeros(len(sources), dtype=torch.bool)
    texts, live = [], 0
    for _ in range(2 * memory.shape[1] + 10):
        live += int((~ended).sum())
        logits, states = model.step(tokens, states, memory, mask)
        tokens = torch.where(ended, EOS, logits.argmax(1))
        texts.append(tokens)
        ended |= tokens == EOS
        if bool(ended.all()):
            break
    return cut(torch.stack(texts, 1).tolist()), live


def beam_search(model, sources, beam):
    memory, mask, (h, c) = model.encode(sources)
    batch, classes = len(sources), model.weights['target.weight'].shape[0]
    memory, mask = memory.repeat_interleave(beam, 0), mask.repeat_interleave(beam, 0)
    states = h.repeat_interleave(beam, 1), c.repeat_interleave(beam, 1)
    scores = torch.full((batch, beam), float('-inf'))
    scores[:, 0] = 0
    tokens = torch.full((batch * beam,), BOS)
    ended = torch.zeros(batch, beam, dtype=torch.bool)
    lengths = torch.zeros(batch, beam)
    texts = torch.zeros(batch, beam, 0, dtype=torch.long)
    first = torch.arange(batch)[:, None] * beam
    only_end = torch.full((classes,), float('-inf'))
    only_end[EOS] = 0
    live = 0
    for _ in range(2 * mask.shape[1] + 10):
        live += int((~ended).sum())
        logits, states = model.step(tokens, states, memory, mask)
        chances = torch.log_softmax(logits, 1).view(batch, beam, classes)
        chances = torch.where(ended[:, :, None], only_end, chances)
        scores, best = (scores[:, :, None] + chances).view(batch, -1).topk(beam, 1)
        parents, tokens = best // classes, best % classes
        rows = (first + parents).view(-1)
        states = states[0].index_select(1, rows), states[1].index_select(1, rows)
        ended, lengths = ended.gather(1, parents), lengths.gather(1, parents)
        texts = torch.cat([texts.gather(1, parents[:, :, None].expand(-1, -1, texts.shape[2])), tokens[:, :, None]], 2)
        lengths = lengths + ~ended
        ended = ended | (tokens == EOS)
        tokens = tokens.view(-1)
        if bool(ended.all()):
            break
    best = (scores / lengths).argmax(1)
    return cut(texts[torch.arange(batch), best].tolist()), live


def cut(texts):
    return [text[:text.index(EOS)] if EOS in text else text for text in texts]


def run_torch(model, sources, batch, beam):
    """Returns texts, seconds, rows of live hypotheses."""
    texts, rows = [], 0
    with torch.inference_mode():
        begin = time.perf_counter()
        for k in range(0, len(sources), batch):
            more, live = (greedy(model, sources[k:k + batch]) if beam == 1
                          else beam_search(model, sources[k:k + batch], beam))
            texts, rows = texts + more, rows + live
        return texts, time.perf_counter() - begin, rows


def run_seqlstm(program, run, path, batch, beam, threads):
    """Returns texts, and the seconds that the program reports."""
    done = subprocess.run([program, 'predict', run, '--input', path, '--threads', str(threads),
                           '--set', f'data.batch_size={batch}', '--set', f'decode.beam={beam}',
                           '--set', 'decode.length_penalty=' + ('average' if beam > 1 else '~')],
                          capture_output=True, text=True)
    said = re.search(r'to (\d+) tokens in ([0-9.]+) s', done.stderr)
    if done.returncode or not said:
        sys.exit(f'{program}: {done.stderr}')
    return done.stdout.splitlines(), float(said[2])


def time_output(model, rows):
    """Seconds of the output layer's product for one row, among `rows`."""
    x = torch.randn(rows, 256)
    matrix = model.weights['target.weight'].t()
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        torch.mm(x, matrix)
        times.append(time.perf_counter() - begin)
    return min(times) / rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('run')
    parser.add_argument('sources')
    parser.add_argument('--build', default='build')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--sentences', type=int, help='fewer than the cases say')
    parser.add_argument('--only', default='', help='cases whose name holds this')
    args = parser.parse_args()
    program = str(pathlib.Path(args.build) / 'seqlstm')
    torch.set_num_threads(args.threads)
    words = json.loads((pathlib.Path(args.run) / 'data.json').read_text())
    source_ids = {text: k for k, text in enumerate(words['source_tokens']['texts'])}
    target_texts = words['tokens']['texts']
    lines = pathlib.Path(args.sources).read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        weights = os.path.join(folder, 'weights.safetensors')
        subprocess.run([program, 'export', args.run, '--to', 'pytorch-names', '--file', weights], check=True,
                       stdout=subprocess.DEVNULL)
        model = Model(load_file(weights))
        print(f'PyTorch {torch.__version__}, {args.threads} threads')
        print('case               tokens/s   PyTorch    ratio   least   most   floor of ours  equal texts')
        for name, (batch, beam, sentences) in CASES.items():
            if args.only not in name:
                continue
            some = lines[:min(sentences, args.sentences or sentences)]
            path = os.path.join(folder, 'sources.txt')
            pathlib.Path(path).write_text('\n'.join(some) + '\n')
            ids = [[source_ids.get(word, source_ids['<unk>']) for word in line.split()] for line in some]
            run_torch(model, ids[:2 * batch], batch, beam)
            rounds = []
            for _ in range(args.rounds):
                ours, seconds = run_seqlstm(program, args.run, path, batch, beam, args.threads)
                theirs, peer_seconds, live = run_torch(model, ids, batch, beam)
                rounds.append((peer_seconds / seconds, seconds, peer_seconds))
            floor = live * time_output(model, batch * beam)
            tokens = sum(len(text) + 1 for text in theirs)
            ratios = sorted(ratio for ratio, _, _ in rounds)
            equal = sum(a == ' '.join(target_texts[k] for k in b) for a, b in zip(ours, theirs)) / len(ours)
            seconds = statistics.median(s for _, s, _ in rounds)
            print(f'{name:18} {tokens / seconds:8.0f} {tokens / statistics.median(s for _, _, s in rounds):9.0f} '
                  f'{statistics.median(ratios):7.2f}x {ratios[0]:6.2f}x {ratios[-1]:5.2f}x {floor / seconds:11.0%} '
                  f'{equal:13.1%}', flush=True)


main()

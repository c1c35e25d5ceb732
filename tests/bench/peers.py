#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""seqlstm and its peers: the LSTM primitive of oneDNN (a bare C program) and PyTorch for CPU.

peers.py [--build DIR] [--backend ID[:VARIANT]] [--python PYTHON-WITH-TORCH] [--threads 1,2] [--mode train|infer]
         [--rounds N] [--only TEXT] [--cpu] [--out FILE]

Needs the build folder (ninja), libdnnl-dev for the C program and, with --python, an interpreter with torch in a scratch
environment (python3 -m venv …; pip install torch). A peer that is missing is left out, and the table says so.

The three run in turn, round after round, in separate processes. The table shows the smallest of the rounds' medians,
the median of the rounds' ratios, and the share of the multiply-add peak that seqlstm reached (median of the rounds;
for a shape of several parts also the share of each, by its hidden size). If --backend names no variant, the fastest
in a first round runs in all others, as measured dispatch would choose it. --only takes the shape of that name, or
all shapes whose names contain it. All do equal work: training computes the gradients of input and weights, and gets
new weights at every step. The time of a shape of several parts is their sum. --cpu counts processor time: for one
thread on a machine that others use, too.
"""
import argparse
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# name: parts of (T, B, I, H, L, D)
SHAPES = {f'lstm 64, lstm 32, T 30, batch {b}': [(30, b, 64, 64, 1, 1), (30, b, 64, 32, 1, 1)]
          for b in (1, 8, 32, 128, 512, 1024)}
SHAPES['2 x 650, T 35, batch 20'] = [(35, 20, 650, 650, 2, 1)]
SHAPES['1024, T 50, batch 64'] = [(50, 64, 1024, 1024, 1, 1)]
SHAPES['bidirectional 128, T 200, batch 32'] = [(200, 32, 128, 128, 1, 2)]
VARIANTS = {'cpu-blas': ['packed', 'tiles'], 'cpu-onednn': ['sliced', 'exclusive']}


def output(command, threads, may_refuse=False, **more):
    env = dict(more, **os.environ)
    env.update(OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env)
    if done.returncode != 0 and not (may_refuse and 'has no variant' in done.stderr):
        sys.exit(f'{command[0]}: {done.stderr.strip()}')
    return done.stdout


def run_variant(args, mode, part, threads, variant):
    """Returns median nanoseconds and the share of the peak; infinity if the variant does not run the case."""
    t, b, i, h, layers, directions = part
    case = f'lstm:{"bwd" if mode == "train" else "inf"}:T{t}B{b}I{i}H{h}L{layers}D{directions}:f32:uniform'
    flags = ['--variant', variant] if variant else []
    text = output([args.bench, '--threads', threads, '--rounds', 5, *flags, *args.cpu_flag, args.plugin, case],
                  threads, may_refuse=True,
                  OMP_WAIT_POLICY='passive', GOMP_SPINCOUNT='3000')  # as in the program itself
    args.notes['seqlstm', threads] = text.split('\n')[0] or args.notes.get(('seqlstm', threads), '')
    row = next((line.split('|') for line in text.split('\n') if line.startswith('| lstm:')), None)
    return (float(row[3]) * 1e3, float(row[6])) if row else (float('inf'), 0.0)


def run_seqlstm(args, mode, part, threads):
    key = mode, part, threads
    if key not in args.chosen:
        variants = args.variants
        if len(variants) > 1:
            variants = sorted(variants, key=lambda v: run_variant(args, mode, part, threads, v)[0])
        args.chosen[key] = variants[0]
    ns, share = run_variant(args, *key, args.chosen[key])
    args.shares.setdefault(key, []).append(share)
    return ns, args.notes['seqlstm', threads]


def run_other(command, args, mode, part, threads):
    words = output([*command, mode, *part, 5, *args.cpu_flag], threads).split()
    return float(words[1]), ' '.join(words[2:])


def build_onednn(folder):
    exe = pathlib.Path(folder) / 'bench_onednn'
    done = subprocess.run(['cc', '-O2', '-std=c11', '-D_GNU_SOURCE', HERE / 'bench_onednn.c', '-ldnnl', '-lm', '-o', exe],
                          capture_output=True, text=True)
    return [exe] if done.returncode == 0 else None


def share_of(args, mode, parts, threads, spent):
    """Returns the share of the peak over all parts (the mean of their shares, weighted by their times), and of each
    part."""
    shares = [statistics.median(args.shares[mode, part, threads]) for part in parts]
    each = ', '.join(f'{part[3]}: {share:.2f}' for part, share in zip(parts, shares))
    return f'{sum(share * ns for share, ns in zip(shares, spent)) / sum(spent):.2f}' + f' ({each})' * (len(parts) > 1)


def compare(args, peers, mode, threads, lines):
    names = list(peers)
    lines += ['', f'### {"Training" if mode == "train" else "Inference"}, {threads} thread{"s" * (threads > 1)}', '',
              '| shape | ' + ' | '.join(f'{n}, ms' for n in names) + ' | '
              + ' | '.join(f'{n} / seqlstm' for n in names[1:]) + ' | of peak | runs |',
              '|---' * (2 * len(names) + 2) + '|']
    shapes = [args.only] if args.only in SHAPES else [shape for shape in SHAPES if (args.only or '') in shape]
    for shape in shapes:
        parts = SHAPES[shape]
        best = {n: 0.0 for n in names}
        rounds = [dict(best) for _ in range(args.rounds)]
        spent = []
        for part in parts:
            least = {}
            for sums in rounds:
                for n in names:
                    ns, note = peers[n](args, mode, part, threads)
                    args.notes[n, threads] = note
                    least[n] = min(least.get(n, ns), ns)
                    sums[n] += ns
            spent.append(least['seqlstm'])
            for n in names:
                best[n] += least[n]
        lines.append(f'| {shape} | ' + ' | '.join(f'{best[n] / 1e6:.3f}' for n in names) + ' | '
                     + ' | '.join(f'{best[n] / best["seqlstm"]:.2f}, '
                                  f'{statistics.median(s[n] / s["seqlstm"] for s in rounds):.2f}' for n in names[1:])
                     + f' | {share_of(args, mode, parts, threads, spent)} | '
                     + ', '.join(dict.fromkeys(args.chosen[mode, part, threads] or 'first' for part in parts)) + ' |')
        print(lines[-1], file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--build', default='build')
    parser.add_argument('--backend', default='cpu-blas')
    parser.add_argument('--python')
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--mode', choices=['train', 'infer'])
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--only')
    parser.add_argument('--cpu', action='store_true')
    parser.add_argument('--out')
    args = parser.parse_args()
    build = pathlib.Path(args.build)
    subprocess.run(['ninja', '-C', build, 'tests/bench/bench_recurrent'], check=True, stdout=subprocess.DEVNULL)
    args.bench = build / 'tests/bench/bench_recurrent'
    backend, _, variant = args.backend.partition(':')
    args.plugin = build / f'backends/libseqlstm_backend_{backend}.so'
    args.variants = [variant] if variant else VARIANTS.get(backend, [''])
    args.chosen, args.shares = {}, {}
    args.cpu_flag = ['--cpu'] if args.cpu else []
    args.notes = {}
    with tempfile.TemporaryDirectory() as folder:
        peers = {'seqlstm': run_seqlstm}
        onednn = build_onednn(folder)
        if onednn:
            peers['oneDNN'] = lambda *a: run_other(onednn, *a)
        if args.python:
            torch = [args.python, HERE / 'bench_torch.py']
            peers['PyTorch'] = lambda *a: run_other(torch, *a)
        lines = []
        for threads in [int(t) for t in args.threads.split(',')]:
            for mode in [args.mode] if args.mode else ('train', 'infer'):
                compare(args, peers, mode, threads, lines)
    cpu = next((line.split(':', 1)[1].strip() for line in open('/proc/cpuinfo') if line.startswith('model name')), '')
    head = ['## seqlstm and its peers', '', f'{cpu}, {os.cpu_count()} processors, {platform.system()}; times are '
            + ('processor time' if args.cpu else 'real time') + f', least median of {args.rounds} rounds in turn.',
            f'seqlstm is {args.backend}.']
    head += [f'{n}, {t} threads: {note}.' for (n, t), note in args.notes.items() if note]
    if 'oneDNN' not in peers:
        head.append('oneDNN was not there (libdnnl-dev).')
    if 'PyTorch' not in peers:
        head.append('PyTorch was not asked for (--python).')
    text = '\n'.join(head + lines) + '\n'
    if args.out:
        pathlib.Path(args.out).write_text(text)
    else:
        print(text)


if __name__ == '__main__':
    main()

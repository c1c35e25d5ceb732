# SPDX-License-Identifier: Apache-2.0
"""Training on several ranks: the same bits with `shards`, errors, signals and ranks that die."""
import fcntl
import json
import os
import pathlib
import platform
import signal
import struct

import harness
from harness import expect, read_tensors, wait_for

ORDER = ('--set', 'dispatch.policy=order')
F_SETPIPE_SZ = 1031  # fcntl has it from Python 3.10 on
SYS_WRITE = {'x86_64': '1', 'aarch64': '64'}.get(platform.machine())
TEXT = 'the quick brown fox jumps over the lazy dog. ' * 40


def ranks(number, shards=None):
    flags = ['--set', f'parallel.data={number}']
    return flags + (['--set', f'parallel.shards={shards}'] if shards else [])


def read_weights(path):
    raw = b''.join(raw for _, (_, raw) in sorted(read_tensors(path.read_bytes()).items()))
    return struct.unpack(f'<{len(raw) // 4}f', raw)


def read_metrics(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [(row['update'], row['split'], row['metrics']) for row in rows if row['span'] != 'report']


def children(pid):
    return [int(p) for p in open(f'/proc/{pid}/task/{pid}/children').read().split()]


def test_shards_give_the_same_bits_on_any_number_of_ranks(t):
    t.write('m.yaml', harness.TINY)
    for n in (1, 2, 3, 4):
        t.run('run', 'm.yaml', '--out', f'r{n}', *ranks(n, 8), *ORDER, '-q')
    first = t.folder / 'r1'
    for n in (2, 3, 4):
        folder = t.folder / f'r{n}'
        expect((folder / 'final.safetensors').read_bytes() == (first / 'final.safetensors').read_bytes(), f'{n} ranks')
        expect(read_metrics(folder / 'metrics.jsonl') == read_metrics(first / 'metrics.jsonl'), f'metrics of {n} ranks')
    expect(sorted(p.name for p in t.folder.iterdir() if p.is_dir()) == ['r1', 'r2', 'r3', 'r4'], 'one folder a run')


def test_a_stream_goes_on_with_another_number_of_ranks(t):
    t.write('m.yaml', harness.LANGUAGE)
    t.write('text.txt', TEXT)
    long = ('--set', 'train.epochs=2')
    t.run('run', 'm.yaml', '--out', 'whole', *ranks(1, 4), *ORDER, *long, '-q')
    t.run('run', 'm.yaml', '--out', 'parts', *ranks(3, 4), *ORDER, *long, '--set', 'train.max_time=0.001s', '-q', rc=75)
    t.run('resume', 'parts', *ranks(2), '--set', 'train.max_time=1000s', '-q')
    whole, parts = t.folder / 'whole', t.folder / 'parts'
    expect((whole / 'final.safetensors').read_bytes() == (parts / 'final.safetensors').read_bytes(), 'other bits')
    last = 'checkpoints/' + max(p.name for p in (whole / 'checkpoints').iterdir())
    expect((whole / last).exists() and (parts / last).exists(), 'checkpoints')


LAYERS = harness.LANGUAGE.replace('  - {type: lstm, units: 8, return_sequences: true}\n', '''\
  - {type: lstm, units: 8, layers: 2, dropout: 0.1, return_sequences: true}
  - {type: dropout, rate: 0.1}
''').replace('train:\n  task', 'train:\n  clip_norm: 0.5\n  ema: {decay: 0.9}\n  task')


def pipeline(stages, pieces, **more):
    return ['--set', 'parallel=' + json.dumps({'pipeline': stages, 'pieces': pieces, **more})]


TIED = (LAYERS.replace('embedding, dim: 4', 'embedding, name: emb, dim: 8').replace('output, ', 'output, tie: emb, ')
        .replace('train:\n', 'train:\n  accumulate: 2\n'))


def test_pipelines_give_the_same_bits(t):
    t.write('m.yaml', LAYERS)
    t.write('text.txt', TEXT)
    t.write('tied.yaml', TIED)
    for model, groups in (('m.yaml', [[pipeline(n, 8) for n in (1, 2, 4)],
                                      [pipeline(1, 8, shards=4), pipeline(2, 8, shards=4, data=2)]]),
                          ('tied.yaml', [[pipeline(n, 5) for n in (1, 3)]])):
        for group, flags in enumerate(groups):
            runs = [t.folder / f'{model}-{group}-{n}' for n in range(len(flags))]
            for run, flag in zip(runs, flags):
                t.run('run', model, '--out', run, *flag, *ORDER, '-q')
            last = max(p.name for p in (runs[0] / 'checkpoints').iterdir())
            for run in runs[1:]:
                for name in ('final.safetensors', f'checkpoints/{last}'):
                    expect((run / name).read_bytes() == (runs[0] / name).read_bytes(), (run, name))
                expect(read_metrics(run / 'metrics.jsonl') == read_metrics(runs[0] / 'metrics.jsonl'), f'metrics of {run}')


PAIRS = """seqlstm: 1
seed: 3
data:
  type: lines
  train: {source: source.txt, target: target.txt}
  tokenizer: {type: char}
  batch_size: 4
model:
  encoder:
    - {type: embedding, dim: 4}
    - {type: lstm, name: reader, units: 4, direction: bidirectional, return_sequences: true}
  decoder:
    - {type: embedding, dim: 4}
    - {type: lstm, units: 8, return_sequences: true, initial_state: reader}
    - {type: attention, score: general}
    - {type: lstm, units: 8, return_sequences: true}
    - {type: output, activation: softmax}
train: {updates: 3, optimizer: {type: sgd, learning_rate: 1}, clip_norm: 1}
"""


def test_a_pipeline_of_an_encoder_and_a_decoder(t):
    """Only the first piece begins from the states of the encoder, which are layers of another unit."""
    t.write('m.yaml', PAIRS)
    for name, turn in (('source', 1), ('target', -1)):
        t.write(f'{name}.txt', ''.join(word[::turn] + '\n' for word in TEXT.split()[:16]))
    t.run('run', 'm.yaml', '--out', 'plain', '--threads', '1', *ORDER, '-q')
    for n in (1, 2, 4):
        t.run('run', 'm.yaml', '--out', f'p{n}', *pipeline(n, 3), *ORDER, '-q')
        expect((t.folder / f'p{n}/final.safetensors').read_bytes() == (t.folder / 'p1/final.safetensors').read_bytes(), n)
    plain, pieces = (read_weights(t.folder / f'{run}/final.safetensors') for run in ('plain', 'p1'))
    # float32 sums of at most some hundred terms, over three updates of length 1
    expect(max(abs(a - b) for a, b in zip(plain, pieces)) < 1e-5, 'gradients of pieces')


def test_an_embedding_of_two_stages_forgets_the_rows_of_both(t):
    """What an update of several batches has added to rows that only the other stage uses does not come into the next."""
    model = PAIRS.replace('embedding, dim: 4', 'embedding, name: emb, dim: 4', 1).replace('type: char', 'type: char, shared: true')
    t.write('m.yaml', model.replace('decoder:\n    - {type: embedding, dim: 4', 'decoder:\n    - {type: embedding, dim: 4, share: emb')
            .replace('train: {updates', 'train: {accumulate: 2, updates'))
    t.write('source.txt', ''.join(20 * word + '\n' for word in TEXT.split()[:32]))
    t.write('target.txt', ''.join(word.upper() + '\n' for word in TEXT.split()[:32]))
    t.run('plan', 'm.yaml', *pipeline(2, 3), *ORDER).prints('stages  0: emb to reader,')
    for n in (1, 2):
        t.run('run', 'm.yaml', '--out', f'p{n}', *pipeline(n, 3), *ORDER, '-q')
        expect((t.folder / f'p{n}/final.safetensors').read_bytes() == (t.folder / 'p1/final.safetensors').read_bytes(), n)


def test_a_pipeline_goes_on_with_other_stages(t):
    t.write('m.yaml', LAYERS)
    t.write('text.txt', TEXT)
    long = ('--set', 'train.epochs=2', '-q')
    t.run('run', 'm.yaml', '--out', 'whole', *pipeline(1, 3), *ORDER, *long)
    t.run('run', 'm.yaml', '--out', 'parts', *pipeline(3, 3), *ORDER, *long, '--set', 'train.max_time=0.001s', rc=75)
    t.run('resume', 'parts', '--set', 'parallel.pipeline=2', '--set', 'train.max_time=1000s', '-q')
    expect(((t.folder / 'whole') / 'final.safetensors').read_bytes() ==
           ((t.folder / 'parts') / 'final.safetensors').read_bytes(), 'other bits')


def test_a_pipeline_explains_itself(t):
    t.write('m.yaml', harness.TINY.replace('  - {type: lstm, units: 4}', '''\
  - {type: lstm, units: 4, return_sequences: true}
  - {type: gru, units: 4, direction: bidirectional, return_sequences: true}
  - {type: lstm, units: 4}'''))
    t.run('plan', 'm.yaml', *pipeline(2, 4), *ORDER).prints(
        'the steps of a batch run in 4', 'stages  0: lstm_1', 'MB less memory', '`gru_1` runs on all steps at once: it reads the')
    plan = json.loads(t.run('plan', 'm.yaml', '--set', 'parallel.pipeline=2', '--json', *ORDER).out)['parallel']
    expect(len(plan['stages']) == 2 and plan['pieces'] > 1, plan)
    expect(all(stage['untouched_bytes'] > 0 and stage['ns'] > 0 for stage in plan['stages']) and plan['step_ns'] > 0, plan)
    expect([b['layer'] for b in plan['barriers']] == ['gru_1'], plan)
    said = t.run('run', 'm.yaml', '--out', 'r', *pipeline(6, 4), '-q', rc=2).says('is more than the 5 parts')
    expect(said.err.count('error[E0509]') == 1, said.err)
    t.run('run', 'm.yaml', '--out', 'r', *pipeline(2, 4), '--threads', '2', '-q', rc=2).says('with `pieces` each rank')
    environment = {'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '3', 'OMPI_COMM_WORLD_LOCAL_SIZE': '3'}
    t.run('run', 'm.yaml', *pipeline(2, 4), rc=2, env=environment).says('`pipeline: 2` needs 2 ranks, or a multiple')


def test_the_gradient_is_that_of_one_rank(t):
    """One update of plain SGD: the weights differ by rounding of the sum over rows, at most."""
    t.write('m.yaml', harness.TINY)
    once = ('--set', 'train.optimizer={type: sgd, learning_rate: 1}', '--set', 'train.updates=1', '--set',
            'train.epochs=1', '-q', *ORDER)
    t.run('run', 'm.yaml', '--out', 'one', *once)
    one = read_weights((t.folder / 'one') / 'final.safetensors')
    for name, flags, bits in (('all', ranks(3), 24), ('pieces', pipeline(2, 3), 24), ('central', [*ranks(3), '--set', 'parallel.reduce=central'], 24),
                              ('shards', ranks(2, 5), 24),
                              ('bf16', [*ranks(2), '--set', 'parallel.reduce={dtype: bfloat16}'], 8)):
        t.run('run', 'm.yaml', '--out', name, *once, *flags)
        other = read_weights((t.folder / name) / 'final.safetensors')
        worst = max(abs(a - b) for a, b in zip(one, other))
        expect(worst <= 16 * 2.0 ** -bits * max(map(abs, one)), f'{name}: {worst}')
        expect(bits == 24 or worst > 0, 'bfloat16 rounds nothing')


def test_gradients_are_exchanged_while_others_are_computed(t):
    """Several bundles, and an embedding of which few rows are used: as on one rank."""
    layer = '  - {type: lstm, units: 64, return_sequences: true}\n'
    t.write('m.yaml', harness.LANGUAGE.replace('  - {type: lstm, units: 8, return_sequences: true}\n', 3 * layer))
    t.write('text.txt', TEXT)
    once = ('--set', 'train.optimizer={type: sgd, learning_rate: 1}', '--set', 'train.updates=1', '-q', *ORDER)
    t.run('run', 'm.yaml', '--out', 'one', *once)
    t.run('run', 'm.yaml', '--out', 'two', *once, *ranks(2))
    one, two = (read_weights(t.folder / name / 'final.safetensors') for name in ('one', 'two'))
    worst = max(abs(a - b) for a, b in zip(one, two))
    expect(worst <= 16 * 2.0 ** -24 * max(map(abs, one)), worst)


def test_rows_that_some_rank_uses_are_added(t):
    """Few of 500 rows are used: the sum is that of one rank, also over several batches, with an output layer that shares
    the matrix, so that it uses all, and with an embedding of encoder and decoder."""
    words = [f'w{k % 500}' for k in range(1000)]
    t.write('text.txt', ' '.join(words))
    for name in 'source', 'target':
        t.write(f'{name}.txt', ''.join(' '.join(words[k:k + 5]) + '\n' for k in range(0, 1000, 5)))
    few = harness.LANGUAGE.replace('type: char', 'type: whitespace')
    shared = PAIRS.replace('type: char', 'type: whitespace, shared: true')
    models = {
        'few': few,
        'tied': few.replace('embedding, dim: 4', 'embedding, name: emb, dim: 8').replace('output, ', 'output, tie: emb, '),
        'pairs': shared.replace('embedding, dim: 4', 'embedding, name: emb, dim: 4', 1).replace(
            'decoder:\n    - {type: embedding, dim: 4', 'decoder:\n    - {type: embedding, dim: 4, share: emb'),
    }
    once = ('--set', 'train.optimizer={type: sgd, learning_rate: 1}', '--set', 'train.updates=1', '--set', 'train.accumulate=2')
    for name, text in models.items():
        t.write('m.yaml', text)
        for count in 1, 3:
            t.run('run', 'm.yaml', '--out', f'{name}{count}', *once, *ranks(count), *ORDER, '-q')
        one, three = (read_weights(t.folder / f'{name}{count}/final.safetensors') for count in (1, 3))
        worst = max(abs(a - b) for a, b in zip(one, three))
        expect(worst <= 16 * 2.0 ** -24 * max(map(abs, one)), f'{name}: {worst}')


def test_compressed_gradients_train_as_well(t):
    t.write('m.yaml', harness.LANGUAGE.replace('units: 8', 'units: 32'))
    t.write('text.txt', TEXT)
    long = ('--set', 'train.epochs=6', '--set', 'train.optimizer={type: adam, learning_rate: 1e-2}', '-q', *ORDER)
    compress = ('--set', 'parallel.compress={type: powersgd, rank: 2}')
    t.run('run', 'm.yaml', '--out', 'plain', *long, *ranks(2))
    t.run('run', 'm.yaml', '--out', 'r', *long, *ranks(2), *compress, '--set', 'train.max_time=0.001s', rc=75)
    saved = max((t.folder / 'r/checkpoints').iterdir())
    expect(b'"compress.lstm_1' in saved.read_bytes()[:20000], 'no errors in the checkpoint')
    t.run('resume', 'r', *ranks(3), '--set', 'train.max_time=1000s', '-q')
    plain, packed = (read_metrics(t.folder / name / 'metrics.jsonl')[-1][2]['loss'] for name in ('plain', 'r'))
    expect(packed != plain and packed < plain + 0.05, (packed, plain))
    t.run('run', 'm.yaml', '--out', 'none', *ranks(2), '--set', 'parallel.compress={type: powersgd, rank: 1000}', '-q',
          rc=2).says('E0503', '`compress` has no effect')


def test_few_rows_of_an_embedding_are_not_compressed(t):
    """Of 3000 rows an update uses 80, which are exact; with batches as large as the text factors are less."""
    t.write('text.txt', ' '.join(f'w{k % 3000}' for k in range(6000)))
    t.write('m.yaml', harness.LANGUAGE.replace('type: char', 'type: whitespace'))
    errors = {}
    for name, steps in ('few', 10), ('many', 1000):
        t.run('run', 'm.yaml', '--out', name, *ranks(2), *ORDER, '-q', '--set', f'data.batching.bptt={steps}', '--set',
              'train.updates=2', '--set', 'parallel.compress={type: powersgd, rank: 1}')
        saved = read_tensors(max((t.folder / name / 'checkpoints').iterdir()).read_bytes())
        errors[name] = {key: any(raw) for key, (_, raw) in saved.items() if key.startswith('compress.')}
    expect(not errors['few']['compress.embedding_1.w'] and errors['few']['compress.output_1.w'], errors['few'])
    expect(errors['many']['compress.embedding_1.w'], errors['many'])


def test_a_rank_that_dies_ends_all(t):
    t.write('m.yaml', harness.ENDLESS)
    t.write('short.yaml', harness.TINY)
    for victim, flags in ((0, ranks(3, 4)), (2, ranks(3, 4)), (1, pipeline(3, 2))):
        process = t.start('run', 'm.yaml', '--out', f'r{victim}', *flags, *ORDER, '-q')
        saved = (t.folder / f'r{victim}') / 'checkpoints'
        wait_for(lambda: saved.exists() and any(saved.iterdir()), 'a checkpoint')
        pids = children(process.pid)
        expect(len(pids) == 3, pids)
        os.kill(pids[victim], signal.SIGKILL)
        _, err = process.communicate(timeout=30)
        expect(process.returncode == 128 + signal.SIGKILL, process.returncode)
        expect(f'error[E0615]: rank {victim} was ended by signal 9' in err.decode(), err)
        expect(not any(os.path.exists(f'/proc/{p}') for p in pids), 'a rank is still there')
        t.run('resume', f'r{victim}', '--set', 'train.epochs=1', '-q')
    t.run('run', 'short.yaml', '--out', 's', *ranks(1, 4), *ORDER, '--set', 'train.epochs=1', '-q')


def test_killed_ranks_start_again(t):
    """With the bits of an undisturbed run; also a training on one rank."""
    t.write('m.yaml', harness.TINY)
    long = ('--set', 'train.epochs=80', '--set', 'train.checkpoint.every=20u', *ORDER)
    t.run('run', 'm.yaml', '--out', 'whole', *ranks(1, 4), *long, '-q')
    t.run('run', 'm.yaml', '--out', 'single', *long, '-q')
    for name, like, flags, kills in (('r', 'whole', ranks(3, 4), (2, 0)), ('s', 'single', [], (0,))):
        process, last = t.start('run', 'm.yaml', '--out', name, *flags, *long, '--restarts', str(len(kills))), set()
        for kill in kills:
            saved, before = t.folder / name / 'checkpoints', last
            wait_for(lambda: saved.exists() and set(saved.iterdir()) and len(children(process.pid)) == max(1, 3 * bool(flags))
                     and before.isdisjoint(children(process.pid)), 'ranks and a checkpoint')
            last = set(children(process.pid))
            os.kill(sorted(last)[kill], signal.SIGKILL)
        _, err = process.communicate(timeout=60)
        expect(process.returncode == 0, (process.returncode, err))
        expect(err.decode().count('ended by signal 9 (Killed), so all ranks start again') == len(kills), err)
        expect((t.folder / name / 'final.safetensors').read_bytes() ==
               (t.folder / like / 'final.safetensors').read_bytes(), f'{name}: other bits')


def test_restarts_are_counted(t):
    t.write('m.yaml', harness.ENDLESS)
    process = t.start('run', 'm.yaml', '--out', 'r', *ranks(2), *ORDER, '--restarts', '1', '-q')
    saved = t.folder / 'r/checkpoints'
    seen = None
    for _ in range(2):
        wait_for(lambda: saved.exists() and {c for c in children(process.pid)} not in (seen, set()) and
                 len(children(process.pid)) == 2, 'two ranks')
        seen = set(children(process.pid))
        os.kill(max(seen), signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    expect(process.returncode == 128 + signal.SIGKILL and 'error[E0615]' in err.decode(), (process.returncode, err))
    environment = {'RANK': '0', 'WORLD_SIZE': '2', 'LOCAL_WORLD_SIZE': '2', 'TORCHELASTIC_RUN_ID': str(t.folder)}
    t.run('run', 'm.yaml', *ranks(2), '--restarts', '1', rc=2, env=environment).says('torchrun has started this one')


def test_ignored_signals_end_no_ranks(t):
    """Started with `nohup`, a hangup stops neither the ranks nor their restarts; nor does a parent that ignores SIGCHLD."""
    def ignore():
        for number in signal.SIGHUP, signal.SIGCHLD:
            signal.signal(number, signal.SIG_IGN)

    t.write('m.yaml', harness.ENDLESS)
    process, seen = t.start('run', 'm.yaml', '--out', 'r', *ranks(2), *ORDER, '--restarts', '1', prepare=ignore), set()
    for _ in range(2):
        wait_for(lambda: (t.folder / 'r/checkpoints').exists() and
                 len(set(children(process.pid)) - seen) == 2, 'two ranks')
        seen = set(children(process.pid))
        process.send_signal(signal.SIGHUP)
        os.kill(max(seen), signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    expect(process.returncode == 128 + signal.SIGKILL and 'so all ranks start again' in err.decode(), (process.returncode, err))


def test_plans_for_more_ranks_than_there_are(t):
    t.write('m.yaml', LAYERS)
    t.write('text.txt', TEXT)
    link = ('--link', '100Gb/s,5us')
    made = json.loads(t.run('plan', 'm.yaml', *ORDER, '--ranks', '1,2,64', *link, '--json').out)
    expect(made['schema'] == 'seqlstm.ranks/1' and [r['ranks'] for r in made['rows']] == [1, 2, 64], made)
    one, two, many = made['rows']
    expect(one['exchange_ns'] == 0 and one['update_ns'] > 0 and one['rows'] == two['rows'] == many['rows'], made)
    for row in made['rows']:
        expect((row['exchange_ns'] > 0) == (row['ranks'] > 1) and
               abs(row['compute_ns'] + row['exchange_ns'] - row['update_ns']) < 1e-4 * row['update_ns'], row)
    expect(many['hosts'] == 64 // made['ranks_of_a_host'] and many['exchange_ns'] > 0 and many['idle_ranks'] > 0, many)
    cores = made['ranks_of_a_host']
    if cores % 2 == 0 and cores < 64:  # two ranks leave no core free: 17 MB follow the step, at 50 GB/s or less
        t.write('wide.yaml', harness.TINY.replace('units: 4', 'units: 1024, recurrent_initializer: zeros')
                .replace('size: 160', 'size: 32'))
        wide = json.loads(t.run('plan', 'wide.yaml', *ORDER, *ranks(2), '--ranks', '2', '--threads', str(cores // 2),
                                '--json').out)['rows'][0]
        expect(wide['exchange_ns'] > 4 * 4 * 1024 * 1024 / 50, wide)
    slow = json.loads(t.run('plan', 'm.yaml', *ORDER, '--ranks', '64', '--link', '1Mb/s,5ms', '--json').out)['rows'][0]
    expect(slow['exchange_ns'] > 5e6 > many['exchange_ns'], (slow, many))
    grown = json.loads(t.run('plan', 'm.yaml', *ORDER, '--ranks', '1,64', *link, '--grow-batch', '--json').out)['rows']
    expect(abs(grown[1]['rows'] / grown[0]['rows'] - 64) < 4 and grown[1]['idle_ranks'] == 0, grown)
    t.run('plan', 'm.yaml', *ORDER, *pipeline(2, 4), '--ranks', '1,2,8', *link, '--html', 'page.html').prints(
        'ranks  hosts', '2 stages, 4 pieces', 'Between hosts, as given: 5 us and 12.5 GB/s')
    expect('</svg>' in (t.folder / 'page.html').read_text(), 'a plot')
    t.run('plan', 'm.yaml', *ORDER, '--ranks', '1', '--json', '--html', 'both.html')
    expect('</html>' in (t.folder / 'both.html').read_text(), 'JSON and a page')
    t.write('tied.yaml', TIED)  # on two cores each rank times some of the stages after others, alone
    for flags in ((), ('--set', 'train.accumulate=1000')):
        rows = json.loads(t.run('plan', 'tied.yaml', *ORDER, *pipeline(3, 5), *flags, '--ranks', '3,6', *link, '--json').out)['rows']
        expect(all(row['stages'] == 3 and row['waiting_ns'] > 0 and row['compute_ns'] > 0 for row in rows), rows)
    for flags, text in ((('--ranks', '2,1'), 'ascending numbers'), (('--ranks', '4096'), 'give the link between hosts'),
                        (('--ranks', '2', '--link', '5us'), 'expected a rate and a latency'), (link, 'with `--ranks` only'),
                        ((*pipeline(2, 4), '--ranks', '3'), 'the number of ranks is a multiple of 2')):
        said = t.run('plan', 'm.yaml', *ORDER, *flags, rc=2).says(text)
        expect(said.err.count('error[') == 1, said.err)


def test_a_signal_saves_once(t):
    t.write('m.yaml', harness.ENDLESS)
    for number in (signal.SIGTERM, signal.SIGHUP):  # SIGHUP: the terminal was closed
        process = t.start('run', 'm.yaml', '--out', f'r{number}', *ranks(3), '-q')
        saved = t.folder / f'r{number}/checkpoints'
        wait_for(lambda: saved.exists() and any(saved.iterdir()), 'a checkpoint')
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
        expect(process.returncode == 128 + number and err == b'', (process.returncode, err))
        expect(json.loads((t.folder / f'r{number}/summary.json').read_text())['end'] == 'interrupted', 'summary')
        t.run('resume', f'r{number}', '--set', 'train.epochs=1', '-q')


def test_what_is_wrong_is_said_once(t):
    t.write('m.yaml', harness.TINY)
    for flags, rc, text in ((ranks(2, 4) + ['--threads', '2'], 2, 'with `shards` each rank computes with one thread'),
                            (ranks(2) + ['--collectives', 'comm-none'], 2, 'no file libseqlstm_collectives_comm-none.so'),
                            (ranks(2) + ['--set', 'data.type=nothing'], 2, '`type` has no value `nothing`')):
        said = t.run('run', 'm.yaml', '--out', 'r', *flags, rc=rc).says(text)
        expect(said.err.count('error[') == 1, said.err)
    for flag, value in (('--collectives', 'comm-shm'), ('--stall-timeout', '9')):
        t.run('run', 'm.yaml', '--out', 'r', flag, value, rc=2).says(f'`{flag}` has no effect', '`parallel: {data: 2}`')
    expect(not (t.folder / 'r').exists(), 'a folder was made')
    environment = {'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '2', 'OMPI_COMM_WORLD_LOCAL_SIZE': '2'}
    t.run('run', 'm.yaml', *ranks(3), rc=2, env=environment).says('divides each batch among 3 ranks', 'there are 2')
    hosts = {'RANK': '0', 'WORLD_SIZE': '2', 'LOCAL_WORLD_SIZE': '1', 'TORCHELASTIC_RUN_ID': str(t.folder)}
    t.run('run', 'm.yaml', *ranks(2), rc=3, env=hosts).says('only 1 of the 2 ranks are on this host')
    environment['OMPI_COMM_WORLD_LOCAL_SIZE'] = '1'
    expect('comm-mpi' in t.run('run', 'm.yaml', *ranks(2), rc=None, env=environment).err, 'several hosts use MPI')
    t.run('run', 'm.yaml', '--out', 'alone', '-q', env=environment)


def test_ranks_warn_as_one_does(t):
    """Once the training goes on. What was said before it started is the launcher's."""
    t.write('m.yaml', harness.TINY.replace('adam, learning_rate: 1e-2', 'sgd, learning_rate: 1e25')
            .replace('epochs: 3', 'epochs: 1\n  on_divergence: skip'))

    def train(*flags):
        err = t.run(*flags, *ORDER, rc=5).err
        return [line for line in err.splitlines() if line.startswith(('warning: ', 'resuming from '))]

    alone = train('run', 'm.yaml', '--out', 'one', *ranks(1))
    expect(any('is skipped (2 in a row)' in line for line in alone), alone)
    expect(train('run', 'm.yaml', '--out', 'two', *ranks(2)) == alone, 'the warnings of two ranks are others')
    expect(train('run', 'm.yaml', '--out', 'quiet', *ranks(2), '-q') == [], 'warnings that -q leaves out')
    resumed = train('resume', 'two', '--set', 'train.epochs=2')
    expect(resumed[0].startswith('resuming from two/') and len(set(resumed)) == len(resumed) > 1, resumed)


def test_ranks_that_do_not_fit_the_division(t):
    """Refused before they meet; as many ranks as shards fit."""
    t.write('m.yaml', harness.TINY)
    fewer = 'parallel.data={}, or `shards`, with which the number of ranks changes nothing'
    for flags, started, said in (
            (ranks(2, 2), 3, ['3 ranks were started for 2 shards', 'use at most as many ranks']),
            (ranks(2), 3, ['divides each batch among 2 ranks, and there are 3', fewer.format(3)]),
            (ranks(2), 1, ['divides each batch among 2 ranks, and there is 1', fewer.format(1)]),
            (pipeline(2, 4), 3, ['`pipeline: 2` needs 2 ranks, or a multiple of that, and there are 3']),
            (pipeline(2, 4), 1, ['`pipeline: 2` needs 2 ranks, or a multiple of that, and there is 1']),
            (pipeline(2, 4), 4, ['{data: 1, pipeline: 2}` needs 2 ranks, and there are 4', 'parallel.data=2']),
            (pipeline(2, 4, shards=1), 4, ['4 ranks were started for 1 shard\n', 'use at most as many ranks'])):
        environment = {'RANK': '0', 'WORLD_SIZE': str(started), 'LOCAL_WORLD_SIZE': str(started), 'TORCHELASTIC_RUN_ID': 'x'}
        t.run('run', 'm.yaml', '--out', 'r', *flags, rc=2, env=environment).says(*said)
    link = ('--link', '100Gb/s,5us')
    t.run('plan', 'm.yaml', *ranks(2, 3), '--ranks', '1,4', *link, rc=2).says('`--ranks` has 4, and 3 shards are for 3 ranks')
    t.run('plan', 'm.yaml', *pipeline(2, 4, shards=3), '--ranks', '8', *link, rc=2).says('3 shards are for 6 ranks at most')
    t.run('plan', 'm.yaml', *ranks(2, 3), *ORDER, '--ranks', '3', *link).prints('ranks  hosts')
    t.run('run', 'm.yaml', '--out', 'equal', *ranks(2, 2), *ORDER, '-q')


def test_another_launcher_starts_the_ranks(t):
    t.write('m.yaml', harness.TINY)
    t.run('run', 'm.yaml', '--out', 'one', *ranks(1, 4), *ORDER, '--set', 'train.epochs=4', '-q')
    for command, epochs in ((('run', 'm.yaml', '--out', 'r'), 2), (('resume', 'r'), 4)):
        started = [t.start(*command, *ranks(3, 4), *ORDER, '--set', f'train.epochs={epochs}', '-q', env={
            'RANK': str(r), 'WORLD_SIZE': '3', 'LOCAL_WORLD_SIZE': '3', 'TORCHELASTIC_RUN_ID': str(t.folder)})
            for r in range(3)]
        for r, process in enumerate(started):
            _, err = process.communicate(timeout=60)
            expect(process.returncode == 0 and err == b'', (command, r, process.returncode, err))
    expect((t.folder / 'r/final.safetensors').read_bytes() == (t.folder / 'one/final.safetensors').read_bytes(), 'bits')


def test_a_rank_that_stands_still_is_given_up(t):
    t.write('m.yaml', harness.ENDLESS)
    process = t.start('run', 'm.yaml', '--out', 'r', *ranks(2), *ORDER, '--stall-timeout', '3', '-q')
    saved = (t.folder / 'r') / 'checkpoints'
    wait_for(lambda: saved.exists() and any(saved.iterdir()), 'a checkpoint')
    os.kill(children(process.pid)[1], signal.SIGSTOP)
    _, err = process.communicate(timeout=30)
    expect('rank 0: rank 1 did not come in time' in err.decode(), err)
    expect(process.returncode == 1, process.returncode)


def is_writing(pid, file):
    """Does the main thread wait until it can write to this descriptor?"""
    return pathlib.Path(f'/proc/{pid}/syscall').read_text().split()[:2] == [SYS_WRITE, hex(file)]


def test_the_exit_status_is_that_of_the_rank_that_failed(t):
    """Also if those that end because of it end before."""
    if SYS_WRITE is None:
        return 'the number of a system call is not known here'
    t.write('m.yaml', harness.ENDLESS)
    reader, writer = os.pipe()
    os.write(writer, b'x' * fcntl.fcntl(writer, F_SETPIPE_SZ, 4096))  # the next one to write waits for a reader
    process = t.start('run', 'm.yaml', '--out', 'r', *ranks(2), *ORDER, '--stall-timeout', '1', '-q', stderr=writer)
    os.close(writer)
    saved = (t.folder / 'r') / 'checkpoints'
    wait_for(lambda: saved.exists() and any(saved.iterdir()), 'a checkpoint')
    first, second = children(process.pid)
    os.kill(second, signal.SIGSTOP)
    wait_for(lambda: is_writing(first, 2), 'the message of rank 0')
    os.kill(second, signal.SIGCONT)
    wait_for(lambda: children(process.pid) == [first], 'the end of rank 1')
    with open(reader, 'rb') as file:
        err = file.read().decode().lstrip('x')
    expect(process.wait(30) == 1, process.returncode)
    expect('rank 0: rank 1 did not come in time' in err and err.count('error[') == 1, err)


def test_a_rank_that_does_not_end_is_killed_and_named(t):
    t.write('m.yaml', harness.ENDLESS)
    process = t.start('run', 'm.yaml', '--out', 'r', *ranks(2), *ORDER, '--progress', 'none')
    saved = t.folder / 'r/checkpoints'
    wait_for(lambda: saved.exists() and any(saved.iterdir()), 'a checkpoint')
    first, second = children(process.pid)
    os.kill(second, signal.SIGSTOP)
    os.kill(first, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    expect(process.returncode == 128 + signal.SIGKILL, process.returncode)
    expect('warning: rank 1 did not end within 2 s after another one had, and was killed' in err.decode(), err)


harness.main(globals())

# SPDX-License-Identifier: Apache-2.0
"""Encoder and decoder on the command line: training, resuming, texts in every format, vectors, refusals."""
import collections
import json
import math
import re

import harness
from harness import expect

ADDITION = """seqlstm: 1
name: sums
seed: 5
data:
  train: {type: generator, name: addition, digits: 2, size: 1500}
  valid: {type: generator, name: addition, digits: 2, size: 100, seed: 6}
  batch_size: 16
model:
  encoder:
    - {type: embedding, dim: 8}
    - {type: lstm, units: 32}
  decoder:
    - {type: embedding, dim: 8}
    - {type: lstm, units: 32, return_sequences: true}
    - {type: output, activation: softmax}
train:
  epochs: 8
  optimizer: {type: adam, learning_rate: 1e-2}
  metrics: [accuracy, exact_match]
"""

VECTOR = """seqlstm: 1
name: rebuild
seed: 5
data:
  type: lines
  train: {file: words.txt}
  tokenizer: {type: char, specials: [unk, bos, eos]}
  batch_size: 8
model:
  encoder:
    - {type: embedding, name: source, dim: 8}
    - {type: gru, name: reader, units: 8, direction: bidirectional}
    - {type: dense, name: vector, units: 12, activation: tanh}
  decoder:
    - {type: embedding, name: letters, dim: 8}
    - {type: repeat, name: context}
    - {type: concat, from: [letters, context]}
    - {type: gru, units: 16, return_sequences: true, initial_state: {from: vector, bridge: dense}}
    - {type: output, activation: softmax}
  embedding: vector
train: {epochs: 2}
"""

REVERSE = """seqlstm: 1
name: reverse
seed: 5
data:
  type: lines
  train: {source: train.in, target: train.out}
  valid: {source: valid.in, target: valid.out}
  tokenizer: whitespace
  batch_size: 16
model:
  encoder:
    - {type: embedding, dim: 8}
    - {type: lstm, units: 24}
  decoder:
    - {type: embedding, dim: 8}
    - {type: lstm, units: 24, return_sequences: true}
    - {type: output, activation: softmax}
train:
  epochs: 6
  optimizer: {type: adam, learning_rate: 2e-2}
  metrics: [exact_match, bleu, chrf]
  early_stopping: {monitor: valid.bleu, patience: 20}
  checkpoint: {monitor: valid.chrf, keep_best: 1}
"""

SUMS = ['3+4', '9+9', '1+0', '5+5', '2+6']


def train(t):
    t.write('model.yaml', ADDITION)
    t.run('run', 'model.yaml', '--out', 'run')
    t.write('sums.txt', '\n'.join(SUMS) + '\n')


def predict(t, *arguments):
    return t.run('predict', 'run', '--input', 'sums.txt', *arguments).text.splitlines()


def test_texts_in_every_format(t):
    train(t)
    summary = json.loads(t.read('run/summary.json'))
    expect(summary['metrics']['valid']['exact_match'] > 0.02, f'{summary["metrics"]}: it has learned nothing')
    expect('exact_match' not in summary['metrics']['train'], 'nothing is written for the training split')
    plain = predict(t)
    expect(len(plain) == len(SUMS), f'{plain}')
    records = [json.loads(line) for line in predict(t, '--format', 'jsonl', '--with-input')]
    expect([r['record'] for r in records] == list(range(5)) and [r['input'] for r in records] == SUMS, f'{records}')
    expect([r['text'] for r in records] == plain, f'{records} against {plain}')
    table = predict(t, '--format', 'csv')
    expect(table[0] == 'record,rank,score,text', table[0])
    expect([line.split(',')[3] for line in table[1:]] == plain, f'{table}')
    best = [json.loads(line) for line in predict(t, '--json', '--set', 'decode.beam=4', '--set', 'decode.n_best=3')]
    for record in best:
        scores = [text['score'] for text in record['texts']]
        expect(len(scores) == 3 and scores == sorted(scores, reverse=True), f'{record}')
        expect(len({text['text'] for text in record['texts']}) == 3, f'the same text twice: {record}')
    t.refuse(2, 'predict', 'run', '--input', 'sums.txt', '--format', 'npy').says('npy cannot hold texts')


def count_matches(hypotheses, references, order):
    """N-grams of the hypotheses, of the references, and those in both."""
    said = meant = both = 0
    for hypothesis, reference in zip(hypotheses, references):
        a, b = (collections.Counter(tuple(x[i:i + order]) for i in range(len(x) - order + 1))
                for x in (hypothesis, reference))
        said, meant, both = said + (a.total() if b else 0), meant + b.total(), both + (a & b).total()
    return said, meant, both


def compute_bleu(texts, references):
    """BLEU of words without punctuation, which all tokenizers split in the same way. Some n-gram of each order
    matches."""
    said, meant = ([text.split() for text in side] for side in (texts, references))
    words = sum(map(len, said))
    logs = 0
    for order in range(1, 5):
        total = sum(max(len(text) - order + 1, 0) for text in said)
        logs += math.log(count_matches(said, meant, order)[2] / total) / 4
    return 100 * math.exp(logs + min(0, 1 - sum(map(len, meant)) / words))


def compute_chrf(texts, references):
    said, meant = ([text.replace(' ', '') for text in side] for side in (texts, references))
    counts = [count_matches(said, meant, order) for order in range(1, 7)]
    counts = [c for c in counts if c[0] and c[1]]
    precision = sum(both / a for a, _, both in counts) / len(counts)
    recall = sum(both / b for _, b, both in counts) / len(counts)
    return 100 * 5 * precision * recall / (4 * precision + recall)


def write_reverse(t):
    """Words of the valid split contain blanks between them that no tokenizer reproduces."""
    names = 'alpha beta gamma delta epsilon'.split()
    words = [[names[(k * 7 + i * i * (k // 5 + 1)) % 5] for i in range(4 + k % 4)] for k in range(400)]
    for split, lines in (('train', words[:360]), ('valid', words[360:])):
        t.write(f'{split}.in', ''.join(' '.join(line) + '\n' for line in lines))
        t.write(f'{split}.out', ''.join('  '.join(line[::-1]) + '\n' for line in lines))
    t.write('model.yaml', REVERSE)


def test_scores_of_texts(t):
    write_reverse(t)
    t.run('run', 'model.yaml', '--out', 'run')
    signatures = json.loads(t.read('run/summary.json'))['signatures']
    expect(signatures == {'bleu': 'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp',
                          'chrf': 'nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no'}, f'{signatures}')
    run = t.run('eval', 'run', '--split', 'valid', '--json')
    expect(run.json['signatures'] == signatures, 'of eval')
    expect(re.search(r'decoded 40 inputs to \d+ tokens in [0-9.]+ s: \d+ tokens/s', run.err), 'no throughput')
    summary = json.loads(t.read('run/summary.json'))['metrics']
    expect('bleu' not in summary['train'] and 'chrf' not in summary['train'], f'{summary}')
    references = t.read('valid.out').decode().splitlines()
    for settings in ([], ['--set', 'decode.beam=3']):
        texts = t.run('predict', 'run', '--input', 'valid.in', *settings).text.splitlines()
        said = t.run('eval', 'run', '--split', 'valid', '--json', *settings).json['metrics']
        same = sum(text.split() == reference.split() for text, reference in zip(texts, references)) / len(references)
        for name, want in (('exact_match', same), ('bleu', compute_bleu(texts, references)),
                           ('chrf', compute_chrf(texts, references))):
            expect(math.isclose(said[name], want, rel_tol=1e-9), f'{settings} {name}: {said[name]}, {want} by hand')
            expect(settings or math.isclose(summary['valid'][name], want, rel_tol=1e-6), f'{name}: {summary}, {want}')
        expect(10 < said['bleu'] < 100, f'{said}: nothing is shown')
    config = t.run('config', 'model.yaml').text
    expect(config.count('mode: max') == 2, config)
    t.write('same.yaml', VECTOR.replace('train: {epochs: 2}', 'train: {epochs: 1, metrics: [bleu, exact_match]}')
            .replace('train: {file: words.txt}', 'train: {file: valid.in}\n  valid: {file: valid.in}'))
    t.run('run', 'same.yaml', '--out', 'same')
    expect(json.loads(t.read('same/summary.json'))['metrics']['valid']['bleu'] is not None, 'source and target are one')
    t.refuse(2, 'check', 'model.yaml', '--set', 'train.checkpoint.monitor=train.bleu').says('only on `valid` and `test`')


def test_drawing_depends_on_the_seed(t):
    train(t)
    warm = ['--set', 'decode.temperature=3']
    first = predict(t, *warm)
    expect(first == predict(t, *warm, '--set', 'data.batch_size=2'), 'another batch, other texts')
    expect(first != predict(t, *warm, '--seed', 77), 'the seed changes nothing')
    expect(predict(t, *warm, '--set', 'decode.top_k=1') == predict(t), 'the best of one is the best')


def test_resuming_changes_nothing(t):
    t.write('model.yaml', ADDITION.replace('epochs: 8', 'epochs: 4'))
    t.run('run', 'model.yaml', '--out', 'whole', '--threads', 1)
    t.run('run', 'model.yaml', '--out', 'parts', '--threads', 1, '--set', 'train.epochs=2')
    t.run('resume', 'parts', '--set', 'train.epochs=4')
    expect(t.read('whole/final.safetensors') == t.read('parts/final.safetensors'), 'other weights')
    text = t.run('eval', 'whole', '--split', 'valid', '--json').text
    expect('exact_match' in json.loads(text)['metrics'] and 'signatures' not in json.loads(text), text)


FED = ADDITION.replace('units: 32}', 'units: 32, return_sequences: true}', 1).replace(
    '    - {type: output', '    - {type: attention, input_feeding: true}\n    - {type: dense, units: 16, activation: tanh}\n'
    '    - {type: output').replace('epochs: 8', 'epochs: 4')


def test_scheduled_sampling(t):
    """With rate zero, training is teacher forcing, bit for bit; with sampling, a resumed run has the same bits."""
    def run(out, *settings):
        t.run('run', 'model.yaml', '--out', out, '--threads', 1, *(x for s in settings for x in ('--set', s)))
        return t.read(f'{out}/final.safetensors')

    fade = 'train.teacher_forcing={type: linear, to: 0.2, over: 200u}'
    for name, text in (('plain', ADDITION.replace('epochs: 8', 'epochs: 4')), ('fed', FED)):
        t.write('model.yaml', text)
        taught = run(f'{name}_taught')
        expect(run(f'{name}_one', 'train.teacher_forcing={type: constant, probability: 1}') == taught, 'p = 1')
        mixed = run(f'{name}_mixed', fade)
        expect(mixed != taught and mixed == run(f'{name}_again', fade), 'p < 1')
        expect(mixed != run(f'{name}_best', fade.replace('{', '{own: argmax, ')), 'argmax draws as sample does')
        run(f'{name}_parts', fade, 'train.epochs=2')
        t.run('resume', f'{name}_parts', '--set', 'train.epochs=4')
        expect(t.read(f'{name}_parts/final.safetensors') == mixed, f'{name}: other weights after resume')
    rows = [json.loads(line) for line in t.read('plain_mixed/metrics.jsonl').decode().splitlines()]
    shown = [row['teacher_forcing'] for row in rows if 'teacher_forcing' in row]
    expect(all(0.2 <= p <= 1 for p in shown), f'{shown}')
    t.refuse(2, 'check', 'model.yaml', '--set', 'train.teacher_forcing={type: exponential}').says('E0204', '`k`')
    t.write('vector.yaml', VECTOR.replace("    - {type: embedding, name: letters, dim: 8}\n", '')
            .replace("    - {type: concat, from: [letters, context]}\n", '')
            .replace('epochs: 2', 'epochs: 2, teacher_forcing: {type: linear}'))
    t.refuse(2, 'check', 'vector.yaml').says('E0205', '`teacher_forcing` has no effect without a decoder that reads')


def test_vectors(t):
    lines = ['ab', 'abc', 'cab', 'b', 'abcabc', 'ccc', 'a', 'bacab']
    t.write('words.txt', '\n'.join(lines) + '\n')
    t.write('model.yaml', VECTOR)
    t.run('run', 'model.yaml', '--out', 'run')
    rows = [json.loads(line) for line in
            t.run('embed', 'run', '--input', 'words.txt', '--format', 'jsonl', '--with-input').text.splitlines()]
    expect([row['input'] for row in rows] == lines, f'{rows}')
    expect(all(len(row['values']) == 1 and len(row['values'][0]) == 12 for row in rows), 'widths')
    t.write('one.txt', 'abcabc\n')
    (one,) = t.run('embed', 'run', '--input', 'one.txt', '--format', 'jsonl').text.splitlines()
    expect(all(abs(a - b) < 1e-5 for a, b in zip(json.loads(one)['values'][0], rows[4]['values'][0])), 'alone it differs')
    expect(len(t.run('predict', 'run', '--input', 'words.txt').text.splitlines()) == len(lines), 'texts')
    t.refuse(2, 'embed', 'run', '--input', 'words.txt', '--layer', 'letters').says('a layer of the decoder')


def test_refusals(t):
    t.write('model.yaml', ADDITION)
    t.run('plan', 'model.yaml').prints('lstm_2.l0.forward.h0')
    t.run('plan', 'model.yaml').prints('[B, S, 8]')


harness.main(globals())

# SPDX-License-Identifier: Apache-2.0
"""predict --attention: the tokens that each token of a text attended to, as jsonl and as a page of heat maps."""
import html.parser
import json
import math

import harness
from harness import expect

MODEL = """seqlstm: 1
name: reverse
seed: 5
data:
  type: lines
  train: {source: train.in, target: train.out}
  tokenizer: whitespace
  batch_size: 16
model:
  encoder:
    - {type: embedding, dim: 8}
    - {type: lstm, units: 8, direction: bidirectional, return_sequences: true}
  decoder:
    - {type: embedding, dim: 8}
    - {type: lstm, units: 16, return_sequences: true}
    - {type: attention, name: lower, score: additive, units: 8}
    - {type: dense, units: 16, activation: tanh}
    - {type: attention, name: upper, score: general}
    - {type: output, activation: softmax}
train:
  epochs: 6
  optimizer: {type: adam, learning_rate: 2e-2}
"""

SOURCES = ['alpha beta gamma delta', 'alpha', '', 'gamma unheard <b> & beta', 'beta beta alpha delta gamma']


def train(t):
    names = 'alpha beta gamma delta <b> &'.split()
    lines = [[names[(k * 7 + i * i * (k // 5 + 1)) % 6] for i in range(1 + k % 6)] for k in range(360)]
    t.write('train.in', ''.join(' '.join(line) + '\n' for line in lines))
    t.write('train.out', ''.join(' '.join(line[::-1]) + '\n' for line in lines))
    t.write('model.yaml', MODEL)
    t.write('in.txt', '\n'.join(SOURCES) + '\n')
    t.run('run', 'model.yaml', '--out', 'run')


def predict(t, *arguments):
    lines = t.run('predict', 'run', '--input', 'in.txt', '--attention', *arguments).text.splitlines()
    return [json.loads(line) for line in lines]


def get_texts(record):
    return record.get('texts', [record])


def close(a, b):
    return len(a) == len(b) and all(math.isclose(x, y, abs_tol=2e-5) for x, y in zip(a, b))


def check_shape(record, source):
    """Tokens of both sides, and weights that fit them."""
    for text in get_texts(record):
        attention = text['attention']
        known = [word if word != 'unheard' else '<unk>' for word in source.split()]
        expect(attention['source'] == known, f'{attention["source"]} of {source}')
        expect(attention['target'] in ([*text['text'].split(), '<eos>'], text['text'].split()), f'{attention["target"]}')
        expect([layer['name'] for layer in attention['layers']] == ['lower', 'upper'], f'{attention["layers"]}')
        for layer in attention['layers']:
            expect(len(layer['weights']) == len(attention['target']), 'a row for each token')
            for row in layer['weights']:
                expect(len(row) == len(known) and (not row or math.isclose(sum(row), 1, abs_tol=1e-5)), f'{row}')


def test_weights_follow_the_hypotheses(t):
    """Up to the first token that differs, two hypotheses for one source have the same weights."""
    train(t)
    records = predict(t, '--set', 'decode.beam=4', '--set', 'decode.n_best=4')
    shared = 0
    for record, source in zip(records, SOURCES):
        check_shape(record, source)
        texts = [text['attention'] for text in get_texts(record)]
        for other in texts[1:]:
            for step in range(min(len(other['target']), len(texts[0]['target']))):
                if other['target'][:step] != texts[0]['target'][:step]:
                    break
                shared += step > 0
                for a, b in zip(texts[0]['layers'], other['layers']):
                    expect(close(a['weights'][step], b['weights'][step]), f'{source}, step {step}: {a} and {b}')
    expect(shared > 10, f'{shared} steps compared')
    lower, upper = (layer['weights'] for layer in get_texts(records[0])[0]['attention']['layers'])
    expect(not close(lower[0], upper[0]), 'both layers look at the same')


def test_weights_are_the_same_everywhere(t):
    """Alone, in a batch, and on another backend; asking for weights changes no text."""
    train(t)
    records = predict(t)
    plain = t.run('predict', 'run', '--input', 'in.txt').text.splitlines()
    expect([record['text'] for record in records] == plain, f'{records} and {plain}')
    for settings in (['--set', 'data.batch_size=1'], ['--set', 'backends=[reference]']):
        for a, b in zip(records, predict(t, *settings)):
            expect(a['text'] == b['text'], f'{settings}: {a} and {b}')
            for one, other in zip(a['attention']['layers'], b['attention']['layers']):
                expect(all(close(x, y) for x, y in zip(one['weights'], other['weights'])), f'{settings}: {a}, {b}')


def test_the_end_is_a_token_unless_it_is_cut_off(t):
    train(t)
    for limit in (1, 2, 3, 30):
        for record, source in zip(predict(t, '--set', f'decode.max_length={limit}'), SOURCES):
            check_shape(record, source)
            target, words = record['attention']['target'], record['text'].split()
            expect(len(target) <= limit, f'{limit}: {target}')
            expect((target[-1] == '<eos>') == (len(words) < limit), f'{limit}: {target} of {record["text"]}')


def test_weights_of_layers_in_int8(t):
    """Values beyond the range of int8 are counted meanwhile, and the weights are still there."""
    train(t)
    t.run('quantize', 'run', '--max-regress', '90%', '-q')
    made = json.loads(t.read('run/quantization.json'))
    expect('lstm_2' in [layer['name'] for layer in made['layers']], made['layers'])
    records = predict(t)
    plain = t.run('predict', 'run', '--input', 'in.txt').text.splitlines()
    expect([record['text'] for record in records] == plain, f'{records} and {plain}')
    for record, source in zip(records, SOURCES):
        check_shape(record, source)


def test_kernels_get_real_steps(t):
    """Layers of both sides, and attention between them, over a whole training: nothing is padded."""
    train(t)
    sides = [t.read(f'train.{side}').decode().splitlines() for side in ('in', 'out')]
    source, target = (sum(len(line.split()) for line in side) for side in sides)
    layers = {part: layer['rows'] for layer in json.loads(t.read('run/summary.json'))['layers']
              for part in layer['name'].split('+')}   # an output and its loss may run as one operation
    expect(source < 0.7 * 6 * len(sides[0]), 'the lines are not of one length')
    for name in ('embedding_1', 'lstm_1', 'memory', 'lower.keys'):
        expect(layers[name] == 6 * source, f'{name}: {layers[name]} rows of {6 * source} real steps')
    for name in ('embedding_2', 'lstm_2', 'lower.query', 'lower', 'dense_1', 'upper', 'output_1'):
        expect(layers[name] == 6 * (target + len(sides[1])), f'{name}: {layers[name]} rows, with the ends')


class Page(html.parser.HTMLParser):
    """Collects the fields of all maps, and the texts of headings."""
    def __init__(self, text):
        super().__init__()
        self.fields, self.heads, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag == 'meta':
            self.open.pop()
        expect(tag not in ('script', 'link', 'img'), f'<{tag}>: not one file by itself')
        if tag == 'td':
            self.fields.append(float(dict(attributes)['title']))

    def handle_endtag(self, tag):
        expect(self.open.pop() == tag, f'</{tag}>')

    def handle_data(self, data):
        if 'h2' in self.open or 'th' in self.open:
            self.heads.append(data)


def test_page(t):
    train(t)
    texts = t.run('predict', 'run', '--input', 'in.txt', '--attention', '--html', 'page.html', '--format', 'text').text
    expect(len(texts.splitlines()) == len(SOURCES), texts)
    page = Page(t.read('page.html').decode())
    expect(page.open == [], f'left open: {page.open}')
    weights = [weight for record in predict(t) for layer in record['attention']['layers'] for row in layer['weights']
               for weight in row]
    expect(len(weights) == len(page.fields), f'{len(page.fields)} fields of {len(weights)}')
    expect(all(abs(a - b) < 0.0051 for a, b in zip(weights, page.fields)), 'other weights')
    expect('3: gamma unheard <b> & beta' in page.heads and '<unk>' in page.heads, f'{page.heads}')


def test_refusals(t):
    train(t)
    t.refuse(2, 'predict', 'run', '--input', 'in.txt', '--html', 'page.html').says('`--html` needs `--attention`')
    t.refuse(2, 'predict', 'run', '--input', 'in.txt', '--attention', '--format', 'csv').says(
        '`--attention` writes jsonl, or an HTML page')
    t.write('plain.yaml', MODEL.replace('    - {type: attention, name: lower, score: additive, units: 8}\n', '')
            .replace('    - {type: attention, name: upper, score: general}\n', '').replace('epochs: 6', 'epochs: 1'))
    t.run('run', 'plain.yaml', '--out', 'plain')
    t.refuse(2, 'predict', 'plain', '--input', 'in.txt', '--attention').says('no attention layer')


harness.main(globals())

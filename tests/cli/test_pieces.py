#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tokenizer `sentencepiece`: pieces learned from train or read from a file, a run that needs neither again, text
that is reproduced exactly, and the message if the module is missing."""
import base64
import json
import pathlib
import random
import re
import sys

sys.dont_write_bytecode = True
import harness
from harness import expect

MODEL = """seqlstm: 1
name: pieces
seed: 5
data:
  type: text
  train: {file: train.txt}
  valid: {split: 0.25}
  tokenizer: {type: sentencepiece, TOKENIZER}
  batch_size: 4
model:
  - {type: embedding, dim: 6}
  - {type: lstm, units: 8, return_sequences: true}
  - {type: output, activation: softmax}
train:
  task: language_model
  epochs: 1
"""

CLASSES = MODEL.replace('type: text', 'type: lines\n  label: first').replace(
    '{type: lstm, units: 8, return_sequences: true}', '{type: lstm, units: 8}').replace('  task: language_model\n', '')

PAIRS = """seqlstm: 1
name: pairs
seed: 5
data:
  train: {type: lines, source: train.de, target: train.en}
  valid: {split: 0.1}
  TOKENIZER
  batch_size: 8
model:
  encoder:
    - {type: embedding, dim: 16}
    - {type: lstm, units: 32}
  decoder:
    - {type: embedding, dim: 16}
    - {type: lstm, units: 32, return_sequences: true}
    - {type: output, activation: softmax}
train:
  epochs: EPOCHS
  optimizer: {type: adam, learning_rate: 1e-2}
  metrics: [bleu, chrf, exact_match]
"""

STEMS = ('walk', 'talk', 'jump', 'klett', 'schwimm', '\u6f22\u5b57')
ENDS = ('', 's', 'ed', 'ing', 'er')


def write(t, tokenizer='vocab_size: 60', text=MODEL):
    draw = random.Random(3)
    lines = [' '.join(draw.choice(STEMS) + draw.choice(ENDS) for _ in range(draw.randrange(2, 8))) for _ in range(80)]
    label = (lambda i: f'{"ab"[i % 2]} ') if text is CLASSES else (lambda i: '')
    t.write('train.txt', ''.join(f'{label(i)}{line}\n' for i, line in enumerate(lines)))
    t.write('m.yaml', text.replace('TOKENIZER', tokenizer))
    return lines


def is_absent(t):
    return not (pathlib.Path(t.program).parent / 'modules/libseqlstm_sentencepiece.so').exists()


def get_pieces(t, run):
    state = json.loads(t.read(f'{run}/data.json'))
    return state['tokens']['texts'], base64.b64decode(state['pieces']['model'])


def test_learned_in_train(t):
    if is_absent(t):
        return 'the module is not built'
    models = set()
    for method in ('bpe', 'unigram'):
        write(t, f'vocab_size: 40, method: {method}')
        first = t.run('run', 'm.yaml', '--out', method, '-q').silent().quiet()
        texts, model = get_pieces(t, method)
        expect(first.rc == 0 and texts[:2] == ['<unk>', '<eos>'] and len(texts) == 40, texts)
        expect(any(len(piece) > 3 for piece in texts[2:]) and '\u2581' in ''.join(texts), texts)
        t.run('run', 'm.yaml', '--out', f'{method}-again', '-q')
        expect(get_pieces(t, f'{method}-again') == (texts, model), 'learned twice, two models')
        expect(t.read(f'{method}/final.safetensors') == t.read(f'{method}-again/final.safetensors'), method)
        models.add(model)
    expect(len(models) == 2, 'both methods learn the same pieces')
    write(t, 'vocab_size: 5000')
    t.refuse(4, 'run', 'm.yaml', '--out', 'large').says('train.txt: `vocab_size: 5000` cannot be learned', 'too high')


def test_valid_is_not_learned_from(t):
    """The last quarter is valid; only its characters are unknown."""
    if is_absent(t):
        return 'the module is not built'
    lines = write(t, 'vocab_size: 40, specials: [unk, eos]')
    t.write('train.txt', '\n'.join(lines[:60] + ['QQQQ'] * 20) + '\n')
    t.run('run', 'm.yaml', '--out', 'a', '-q')
    texts, _ = get_pieces(t, 'a')
    expect(not any('Q' in piece for piece in texts), texts)


def test_from_a_file(t):
    """A model from elsewhere gives the same ids, and the run keeps it."""
    if is_absent(t):
        return 'the module is not built'
    write(t)
    t.run('run', 'm.yaml', '--out', 'learned', '-q')
    texts, model = get_pieces(t, 'learned')
    t.write('pieces.model', model)
    write(t, 'model: pieces.model')
    t.run('run', 'm.yaml', '--out', 'given', '-q')
    expect(get_pieces(t, 'given') == (texts, model), 'not the pieces of the file')
    expect(t.read('learned/final.safetensors') == t.read('given/final.safetensors'), 'other batches')
    (t.folder / 'pieces.model').unlink()
    (t.folder / 'train.txt').unlink()
    out = t.run('generate', 'given', '--prompt', 'walking schwimm', '--length', '12', '--seed', '1').text
    expect(out.startswith('walking schwimm') and '\u2581' not in out, out)
    t.write('pieces.model', b'not a model')
    write(t, 'model: pieces.model')
    t.refuse(4, 'run', 'm.yaml', '--out', 'bad').says('pieces.model: no model of sentencepiece')
    data = json.loads(t.read('given/data.json'))
    data['pieces']['model'] = data['pieces']['model'][:-8] + 'AAAAAAA='
    t.write('given/data.json', json.dumps(data))
    t.run('generate', 'given', '--prompt', 'walk', rc=None).says('pieces')


def add_piece(model, text, kind):
    """A model with one more piece: an entry (field 1) with its text (1), score (2) and type (3), as protobuf."""
    entry = b'\x0a' + bytes([len(text)]) + text.encode() + b'\x15' + bytes(4) + b'\x18' + bytes([kind])
    return model + b'\x0a' + bytes([len(entry)]) + entry


def test_pieces_without_text(t):
    """Control pieces, such as `<s>`, and unused ones stand for no text: they are no tokens, though the text has them."""
    if is_absent(t):
        return 'the module is not built'
    lines = write(t)
    t.run('run', 'm.yaml', '--out', 'learned', '-q')
    texts, model = get_pieces(t, 'learned')
    t.write('train.txt', ''.join(f'{line} <s> <pad>\n' for line in lines))
    normal, control, unused = 1, 3, 5
    for kind in (normal, control, unused):
        t.write('pieces.model', add_piece(model, '<s>', kind))
        t.write('m.yaml', MODEL.replace('TOKENIZER', 'model: pieces.model'))
        t.run('run', 'm.yaml', '--out', f'kind-{kind}', '-q', '--set', 'train.updates=1')
        got = get_pieces(t, f'kind-{kind}')[0]
        expect(got == (texts + ['<s>'] if kind == normal else texts), f'type {kind}: {got}')


def write_pairs(t, tokenizer, epochs=1):
    """Word by word: a stem and its ending in two languages."""
    draw = random.Random(7)
    german, english = ('renn', 'spring', 'sing'), ('run', 'leap', 'chant')
    lines = [[(draw.randrange(3), draw.randrange(2)) for _ in range(draw.randrange(1, 4))] for _ in range(500)]
    t.write('train.de', ''.join(' '.join(german[a] + ('t', 'en')[b] for a, b in line) + '\n' for line in lines))
    t.write('train.en', ''.join(' '.join(english[a] + ('s', 'ing')[b] for a, b in line) + '\n' for line in lines))
    t.write('m.yaml', PAIRS.replace('TOKENIZER', tokenizer).replace('EPOCHS', str(epochs)))


def read_sides(t, run):
    state = json.loads(t.read(f'{run}/data.json'))
    return [(state[key] or {}).get('texts') for key in ('tokens', 'source_tokens')] + [
        key in state for key in ('pieces', 'source_pieces')]


def test_pairs(t):
    """One tokenizer for both sides, one for each, and pieces on only one side. The output of a decoder is text
    again."""
    if is_absent(t):
        return 'the module is not built'
    write_pairs(t, 'tokenizer: {type: sentencepiece, vocab_size: 44, shared: true}')
    t.run('run', 'm.yaml', '--out', 'shared', '-q')
    tokens, source_tokens, *kept = read_sides(t, 'shared')
    expect(tokens[:3] == ['<unk>', '<bos>', '<eos>'] and source_tokens is None and kept == [True, False], tokens)
    expect({'\u2581springen', '\u2581leaping'} <= set(tokens), tokens)

    write_pairs(t, 'tokenizer: {type: sentencepiece, vocab_size: 28}', epochs=20)
    t.run('run', 'm.yaml', '--out', 'each', '-q')
    tokens, source_tokens, *kept = read_sides(t, 'each')
    expect(source_tokens[0] == '<unk>' and len(source_tokens) == 28 and kept == [True, True], source_tokens)
    expect('\u2581renn' in source_tokens and '\u2581chant' in tokens and '\u2581chant' not in source_tokens, tokens)
    metrics = json.loads(t.read('each/summary.json'))['metrics']['valid']
    expect(metrics['exact_match'] > 0.8 and metrics['chrf'] > 90, metrics)
    for name in ('train.de', 'train.en'):
        (t.folder / name).unlink()
    said = t.run('predict', 'each', stdin='singen rennt\nspringen\n'.encode()).text
    expect(said.splitlines() == ['chanting runs', 'leaping'], said)

    write_pairs(t, 'tokenizer: {type: sentencepiece, vocab_size: 28}\n  source_tokenizer: {type: char}')
    t.run('run', 'm.yaml', '--out', 'one', '-q')
    tokens, source_tokens, *kept = read_sides(t, 'one')
    expect('r' in source_tokens and '\u2581chant' in tokens and kept == [True, False], source_tokens)
    write_pairs(t, 'source_tokenizer: {type: sentencepiece, vocab_size: 28}')
    t.run('run', 'm.yaml', '--out', 'other', '-q')
    tokens, source_tokens, *kept = read_sides(t, 'other')
    expect('chanting' in tokens and '\u2581renn' in source_tokens and kept == [False, True], tokens)


def test_long_pairs_split(t):
    """`on_overflow: split` cuts between pieces of words. The output of a decoder is compared with the text of its
    part."""
    if is_absent(t):
        return 'the module is not built'
    write_pairs(t, 'tokenizer: {type: sentencepiece, vocab_size: 28}\n  batching: {max_length: 3, on_overflow: split}',
                epochs=20)
    t.write('m.yaml', re.sub(r'source: \S+, target: (\S+)}', r'file: \1}', t.read('m.yaml').decode()))
    t.run('run', 'm.yaml', '--out', 'r').says('sequences split into')
    expect(json.loads(t.read('r/summary.json'))['metrics']['valid']['exact_match'] > 0.8, 'other texts')


def test_pairs_from_files(t):
    """The models that a run learned give the same run again; without them `data.json` is not trusted."""
    if is_absent(t):
        return 'the module is not built'
    write_pairs(t, 'tokenizer: {type: sentencepiece, vocab_size: 28}')
    t.run('run', 'm.yaml', '--out', 'learned', '-q')
    data = json.loads(t.read('learned/data.json'))
    for key in ('pieces', 'source_pieces'):
        t.write(f'{key}.model', base64.b64decode(data[key]['model']))
    write_pairs(t, 'tokenizer: {type: sentencepiece, model: pieces.model}\n'
                   '  source_tokenizer: {type: sentencepiece, model: source_pieces.model}')
    t.run('run', 'm.yaml', '--out', 'given', '-q')
    expect(t.read('given/final.safetensors') == t.read('learned/final.safetensors'), 'other batches')
    del data['source_pieces']
    t.write('given/data.json', json.dumps(data))
    t.run('predict', 'given', stdin=b'rennt\n', rc=None).says('source_pieces')


def test_classes(t):
    if is_absent(t):
        return 'the module is not built'
    lines = write(t, text=CLASSES)
    t.run('run', 'm.yaml', '--out', 'a', '-q')
    out = t.run('predict', 'a', '--with-input', stdin=('\n'.join(lines[:3] + ['jumping XYZ']) + '\n').encode()).text
    expect(len(out.splitlines()) == 4 and 'jumping XYZ' in out, out)


def test_without_the_module(t):
    write(t)
    env = {'SEQLSTM_MODULE_PATH': str(t.folder / 'empty')}
    t.refuse(3, 'check', 'm.yaml', env=env).says('libsentencepiece-dev')
    t.refuse(3, 'run', 'm.yaml', '--out', 'a', env=env).says('libsentencepiece-dev', 'libseqlstm_sentencepiece.so')
    t.write('mods/libseqlstm_sentencepiece.so', b'no object').chmod(0o644)
    env = {'SEQLSTM_MODULE_PATH': str(t.folder / 'mods')}
    t.refuse(3, 'run', 'm.yaml', '--out', 'b', env=env).says('cannot be mapped')
    env = {'SEQLSTM_MODULE_PATH': 'mods'}  # not where the user happens to be
    t.refuse(3, 'run', 'm.yaml', '--out', 'b', env=env).says('there is no module')
    env = {'SEQLSTM_MODULE_PATH': str(t.folder / 'mods')}
    (t.folder / 'mods/libseqlstm_sentencepiece.so').chmod(0o666)
    t.refuse(3, 'run', 'm.yaml', '--out', 'c', env=env).says('any user may write to')


def test_contradictions(t):
    for tokenizer, code, words in (('lowercase: true, vocab_size: 60', 'E0202', 'lowercase'),
                                   ('model: x.model, vocab_size: 60', 'E0207', 'is a trained tokenizer'),
                                   ('model: x.model, method: bpe', 'E0205', 'method'),
                                   ('specials: [unk]', 'E0204', 'vocab_size: 8000')):
        write(t, tokenizer)
        t.run('check', 'm.yaml', rc=2).says(code, words)


harness.main(globals())

# SPDX-License-Identifier: Apache-2.0
"""The cases that timings.py and profile_update.py measure: small language models of one LSTM, and their text.

Model: embedding of the hidden size, one LSTM, output over 1000 words, cross-entropy, Adam.
"""
import random

import peers
from sizes import POLICY, REHEARSAL, shrink

STREAM = '''seqlstm: 1
data: {{type: text, train: {{file: {folder}/t.txt}}, tokenizer: whitespace, batch_size: {batch},
       batching: {{unit: stream, bptt: {steps}}}}}
'''
LINES = '''seqlstm: 1
data: {{type: text, train: {{file: {folder}/t.txt}}, tokenizer: whitespace, batch_size: {batch},
       batching: {{unit: sequence, bucketing: pools, pad_to: {pad_to}}}}}
'''
# No checkpoint is written between the epochs, whose times are compared.
MODEL = '''model: [{{type: embedding, dim: {hidden}}}, {{type: lstm, units: {hidden}, return_sequences: true{option}}},
        {{type: output, activation: softmax}}]
train: {{epochs: {epochs}, optimizer: {{type: adam, learning_rate: 0.001}}, checkpoint: {{every: 1000e}}}}
precision: {dtype}
backends: [{backends}]
dispatch: {{policy: {policy}}}
'''
DROPOUT, LEAKY, PEEPHOLE, ZONEOUT, NORM = OPTIONS = (
    ', recurrent_dropout: 0.2', ', activation: leaky_relu, cell_clip: 3', ', peephole: true',
    ', zoneout: {cell: 0.1, hidden: 0.1}', ', layer_norm: true')  # without the clip, a leaky ReLU diverges
DTYPES = ('float32', 'tf32', 'bfloat16', 'float16')
MEAN_LENGTH, LENGTHS_UPDATES = 21, shrink(100)
UPDATES_MOST, UPDATES_LEAST, TOKENS_MOST = 12 if REHEARSAL else 600, 8, 1500000
QUICK = 8
PERIOD = 13 * peers.WORDS  # after so many tokens the text begins again


def make_case(kind, hidden, batch, steps=35, dtype='float32', option=''):
    return {'kind': kind, 'hidden': hidden, 'batch': batch, 'steps': steps, 'dtype': dtype, 'option': option}


def list_full():
    """The 24 cases of --full, the most telling first; --quick takes the first of them."""
    plain = lambda hidden, batch, steps=35, dtype='float32': make_case('plain', hidden, batch, steps, dtype)
    option = lambda hidden, batch, text: make_case('option', hidden, batch, option=text)
    lengths = lambda text: make_case('lengths', 256, 64, MEAN_LENGTH, option=text)
    return [plain(64, 1), plain(256, 32), plain(64, 32), plain(64, 1024), plain(650, 32), plain(256, 1),
            option(256, 32, NORM), plain(1024, 128, dtype='bfloat16'), plain(512, 32), option(64, 32, NORM),
            option(64, 32, DROPOUT), option(256, 32, DROPOUT), plain(256, 128), lengths('mixed'), lengths('equal'),
            lengths('padded'), plain(128, 32), plain(650, 32, dtype='bfloat16'), plain(200, 20), option(256, 32, LEAKY),
            option(64, 32, PEEPHOLE), option(256, 32, ZONEOUT), plain(256, 32, 140), plain(256, 32, dtype='tf32')]


def list_grid():
    """Every size, batch, number of steps and precision, after the cases of --full."""
    cases = list_full()
    every = [make_case('option', h, b, option=o) for h, b in ((256, 32), (650, 32), (64, 1), (64, 32)) for o in OPTIONS]
    every += [make_case('plain', h, b, t, d) for t in (35, 200) for d in DTYPES for b in (32, 1, 128, 1024)
              for h in (64, 256, 650, 1024, 2048)]
    return cases + [case for case in every if case not in cases]


def list_cases(mode):
    return list_full()[:QUICK] if mode == 'quick' else list_grid() if mode == 'grid' else list_full()


def name_case(case):
    text = f'hidden {case["hidden"]}, batch {case["batch"]}, T {case["steps"]}, {case["dtype"]}'
    return text + (f', {case["option"]} lengths' if case['kind'] == 'lengths' else case['option'])


def shrink_case(case):
    return {**case, **{size: shrink(case[size]) for size in ('hidden', 'batch', 'steps')}}


def count_updates(case):
    """Of one epoch: enough that it lasts much longer than what happens between two epochs."""
    if case['kind'] == 'lengths':
        return LENGTHS_UPDATES
    return max(UPDATES_LEAST, min(UPDATES_MOST, TOKENS_MOST // (case['batch'] * case['steps'])))


def write_text(path, case, updates):
    """Returns the number of tokens of an epoch."""
    words = [f'w{k}' for k in range(peers.WORDS)]
    if case['kind'] != 'lengths':
        count = case['batch'] * (case['steps'] * updates + 1)
        period = ' '.join(words[(k * 7919 + k // 13) % peers.WORDS] for k in range(PERIOD))
        rest = period.split(' ')[:count % PERIOD]
        path.write_text(' '.join([period] * (count // PERIOD) + rest) + '\n')
        return updates * case['batch'] * case['steps']
    draw = random.Random(1)
    count = case['batch'] * updates
    mean = case['steps']
    lengths = [mean] * count if case['option'] == 'equal' else \
        [max(1, min(80, round(draw.gammavariate(4, mean / 4)))) for _ in range(count)]
    path.write_text(''.join(' '.join(draw.choices(words, k=n)) + '\n' for n in lengths))
    return sum(lengths)


def write_model(folder, case, backends, epochs, updates):
    """Writes the model file and its text into the folder. Returns the model's path and the tokens of an epoch."""
    case = shrink_case(case)
    tokens = write_text(folder / 't.txt', case, updates)
    lengths = case['kind'] == 'lengths'
    values = {**case, 'folder': folder, 'backends': backends, 'epochs': epochs, 'option': '' if lengths else case['option'],
              'pad_to': 'batch' if case['option'] == 'padded' else 'none', 'policy': POLICY}
    (folder / 'm.yaml').write_text(((LINES if lengths else STREAM) + MODEL).format(**values))
    return folder / 'm.yaml', tokens

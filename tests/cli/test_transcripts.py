#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What commands print and write, compared as a whole with `transcripts/NAME.txt`.

A transcript has blocks. `== FILE` is followed by the lines of an input file. `$ COMMAND` is followed by what the command
writes: standard output, then standard error with `! ` before each line, then `exit N` where the status is not 0.
`$ seqlstm …` runs the program; `$ echo TEXT | seqlstm …` gives it an input, in which \\n ends a line; `$ cat FILE` shows
a file, `$ text FILE` what a browser shows of a page, `$ drawings FILE` the elements of its drawings and the bars
of its tables, and `$ ls FOLDER` its names.

Everything runs on the reference with one thread, on the backends of `tests/dispatch` (the folder PLUGINS), on those with
planted faults of `tests/conformance` (FAULTY) or on the pretended devices of `tests/gpu` (DEVICES). Numbers are rounded
to five digits; times, sizes of memory and dates are masked, after `$ exact seqlstm …` only those that depend on the machine. A JSON object is written with a line for each
key. `test_transcripts.py PROGRAM --update NAME` writes a transcript anew: look at the difference.
"""
import html.parser
import json
import os
import pathlib
import re
import shlex
import sys

sys.dont_write_bytecode = True
import harness
from harness import expect

FOLDER = pathlib.Path(__file__).resolve().parent / 'transcripts'
TESTS = pathlib.Path(os.environ.get('SEQLSTM_BUILD', 'build')).resolve() / 'tests'
PLACES = {'PLUGINS': str(TESTS / 'dispatch'), 'DEVICES': str(TESTS / 'gpu'), 'FAULTY': str(TESTS / 'conformance')}
ENVIRONMENT = {'SEQLSTM_THREADS': '1', 'COLUMNS': '100'}

MASKS = [
    (r'(FOLDER\S*) +#', r'\1  #'),
    (r'"((?:\w*seconds|\w*_ns|rows_per_second|share|pid|host|started))": ?("[^"]*"|[-\d.e+]+)', r'"\1": TIME'),
    (r'"(\w*bytes)": ?[\d.e+-]+', r'"\1": SIZE'),
    (r' *\b\d+(\.\d+)? (ns|us|ms|s|min)\b', ' TIME'),
    (r'\b\d+\.\ds\b', 'TIME'),
    (r' *\b\d+(\.\d+)? [kMG]?B\b', ' SIZE'),
    (r'\d+ tokens/s', 'SPEED'),
    (r'\b[\d.]+ seconds', 'TIME'),
    (r'(memory +peak).*', r'\1 SIZE'),
    (r'TIME [\d.]+ %', 'TIME'),
    (r'(:loops +pass +)[\d.]+', r'\1ERROR'),
    (r'"error_over_tolerance": [\d.e+-]+', '"error_over_tolerance": ERROR'),
    (r'compiler [^")]*', 'compiler VERSION'),
    (r'"(build_id|abi)": "[^"]*"', r'"\1": BUILD'),
    (r'"ms": [\d.]+|time="[\d.]+"', 'TIME'),
    (r'\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?Z?', 'DATE'),
]
# Of costs that are estimated and of memory, what the machine decides, and the decoder's own structures.
EXACT_MASKS = [
    MASKS[0],
    (r'"((?:process|reached|peak|decoding)_bytes)": ?[1-9]\d*', r'"\1": SIZE'),
    (r'(peak|program and data) [\d.]+ [kMG]?B', r'\1 SIZE'),
    (r'"class": "cpu:[^"]*", "name": "[^"]*"', r'"class": "cpu", "name": NAME'),
]
NOISE = re.compile(r'^(timed \d+ candidates|waiting for data|\s+\(the peak was reached)')
MEMORY = re.compile(r'^(memory  peak|        activations)')


def round_numbers(text):
    def shorten(match):
        digits = re.sub(r'[eE].*', '', match[0]).replace('.', '').replace('-', '').lstrip('0')
        return f'{float(match[0]):.5g}' if len(digits) > 5 else match[0]
    return re.sub(r'(?<![\w.])-?\d+\.\d+(?:[eE][-+]?\d+)?', shorten, text)


def mask(text, folder, masks=MASKS):
    text = text.replace(str(folder), 'FOLDER')
    for name, place in PLACES.items():
        text = text.replace(place, name)
    for pattern, to in masks:
        text = re.sub(pattern, to, text)
    return round_numbers(text)


def read_blocks(text):
    """(kind, title, lines) of each block."""
    blocks = []
    for line in text.splitlines():
        if line.startswith(('== ', '$ ')):
            blocks.append((line[0], line[2:].strip(), []))
        else:
            blocks[-1][2].append(line)
    return blocks


class Page(html.parser.HTMLParser):
    """The texts of a page, and the elements of its drawings. Cells of a row are a line; of drawings, lines and points are
    no text. Elements that are not closed, or not in their order, are reported."""

    VOID = ('meta', 'br', 'link', 'line', 'circle', 'path', 'polyline', 'rect', 'img', 'input', 'hr')

    def __init__(self):
        super().__init__()
        self.lines, self.hidden, self.open, self.drawn, self.wrong = [''], 0, [], [], []

    def handle_starttag(self, tag, attributes):
        self.hidden += tag in ('style', 'script')
        if 'svg' in [*self.open, tag] or tag == 'i' and 'style' in dict(attributes) and 'td' in self.open:
            self.drawn.append(' '.join([tag, *(f'{name}={value}' for name, value in attributes)]))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag not in ('td', 'th', 'code', 'b', 'a', 'span', 'tspan'):
            self.lines.append('')

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.VOID and (not self.open or self.open.pop() != tag):
            self.wrong.append(f'(</{tag}> at {self.getpos()[0]} closes another element)')
        self.hidden -= tag in ('style', 'script')

    def handle_data(self, data):
        if not self.hidden:
            self.lines[-1] += ' ' + ' '.join(data.split())
        if 'svg' in self.open and data.strip():
            self.drawn.append('  ' + ' '.join(data.split()))


def read_page(text, drawings):
    page = Page()
    page.feed(text)
    wrong = page.wrong + [f'(<{tag}> is not closed)' for tag in page.open]
    return wrong + (page.drawn if drawings else [' '.join(line.split()) for line in page.lines if line.strip()])


def split_lines(text):
    """The lines of a text; of a JSON object of several lines, a line for each key."""
    if text.startswith('{\n'):
        return ['{', *(f'  {json.dumps(key)}: {json.dumps(value)}' for key, value in json.loads(text).items()), '}']
    return text.splitlines()


def find_place(word):
    folder, slash, rest = word.partition('/')
    return PLACES.get(folder, folder) + slash + rest


def run_command(t, command):
    stdin = None
    if command.startswith('echo '):
        text, command = re.fullmatch(r"echo '(.*)' \| (.*)", command).groups()
        stdin = (text.replace('\\n', '\n') + '\n').encode()
    words = [find_place(word) for word in shlex.split(command)]
    if words[0] in ('cat', 'ls', 'text', 'drawings') and not (t.folder / words[1]).exists():
        return ['(nothing there)']
    if words[0] in ('text', 'drawings'):
        return read_page(t.read(words[1]).decode(), words[0] == 'drawings')
    if words[0] == 'cat':
        return split_lines(t.read(words[1]).decode())
    if words[0] == 'ls':
        return sorted(path.name for path in (t.folder / words[1]).iterdir())
    result = t.run(*words[1:], rc=None, stdin=stdin, env=ENVIRONMENT)
    lines = split_lines(result.text) + ['! ' + line for line in result.err.splitlines()]
    return lines + ([f'exit {result.rc}'] if result.rc else [])


def is_noise(line, exact):
    return NOISE.match(line) or not exact and MEMORY.match(line)


def replay(t, text):
    """The transcript as it comes out now."""
    out = []
    for kind, title, lines in read_blocks(text):
        if kind == '=':
            t.write(title, ''.join(line + '\n' for line in lines))
            out += [f'== {title}', *lines]
        else:
            exact = title.startswith('exact ')
            now = [mask(line, t.folder, EXACT_MASKS if exact else MASKS)
                   for line in run_command(t, title.removeprefix('exact '))]
            out += [f'$ {title}', *(line.rstrip() for line in now if not is_noise(line.removeprefix('! '), exact))]
    return out


def compare(t, path):
    text = path.read_text()
    harness.expect_lines(path, replay(t, text), text.splitlines(), ('$ ', '== '))


for path in sorted(FOLDER.glob('*.txt')):
    globals()['test_' + path.stem] = lambda t, path=path: compare(t, path)


def test_masks_leave_what_counts(t):
    """Only times, sizes and late digits are masked."""
    expect(mask('loss 0.5123456  accuracy 1  lr 0.05', '/x') == 'loss 0.51235  accuracy 1  lr 0.05', 'numbers')
    expect(mask('12 sequences, 98 steps, 3 us', '/x') == '12 sequences, 98 steps, TIME', 'counts')
    expect(mask('1234567 -0.0001234567 v1.2.3', '/x') == '1234567 -0.00012346 v1.2.3', 'whole numbers and versions')
    expect(mask('file: /x/m.csv    # m.yaml:8', '/x') == 'file: FOLDER/m.csv  # m.yaml:8', 'as the path is long')


def test_one_is_singular(t):
    """In all that is compared as a whole, here, of the server and of wrong model files."""
    nouns = ('activities|allocations|backends|batches|blocks|buckets|candidates|cases|classes|columns|epochs|errors|features|fields|files|'
             'groups|inputs|layers|lines|models|numbers|parameters|parts|predictions|processors|prompts|ranks|records|rounds|rows|runs|'
             'sequences|shards|stages|steps|streams|strings|targets|tensors|threads|times|tokens|units|updates|values|words')
    plural = re.compile(rf'(?<![\w.,:=/+*^-])1 (?:[a-z]+ )?(?:{nouns})\b(?!:)')
    expect(plural.search('train: 1 target columns') and plural.search('(1 rows)') and not plural.search('1 row of 3 rows'), plural)
    bad_models = FOLDER.parents[1] / 'fixtures/models/bad'
    paths = [*FOLDER.glob('*.txt'), FOLDER.parent / 'serve/exchanges.txt', *bad_models.glob('*.txt')]
    found = [f'{path.name}: {line.strip()[:100]}' for path in paths for line in path.read_text().splitlines() if plural.search(line)]
    expect(not found, found)


if __name__ == '__main__':
    if '--update' in sys.argv:
        at = sys.argv.index('--update')
        for path in (FOLDER / f'{name}.txt' for name in sys.argv[at + 1:]):
            harness.update_file(sys.argv[1], path, lambda t, path=path: replay(t, path.read_text()))
    else:
        harness.main(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One word, one meaning: refuses the worst mixtures of the words that docs/architecture.md lists.

check_words.py [ROOT]       exit 1 and one line per violation, in comments, messages, documents and names
check_words.py --self-test  plants violations and checks that each is caught
"""
import re
import sys

sys.dont_write_bytecode = True
import checks

TEXT = ('.c', '.h', '.cu', '.cuh', '.inc', '.cc', '.py', '.sh', '.md', '.yaml', '.build')
TOPS = ('include', 'core', 'plugins', 'modules', 'docs', 'configs', 'examples', 'tests', 'tools')
# Old measurements, data, and this file.
SKIP = re.compile(r'^(docs/measurements/archive/|tests/fixtures/|configs/data/|tools/check_words\.py)')
# Files in which pieces are those of SentencePiece, and files in which they are ranges of the steps of a batch.
PIECES = re.compile(r'^(core/(data|model|session|cli)/|core/(base/(batch/|meson)|graph/|exec/|parallel/|train/)|'
                    r'core/dispatch/(plan|memory|explain|stages)/|tests/unit/(exec|graph|train|support/|meson|dispatch/test_(stages|plan_(dumps|oom)|units|layouts|footprints))|CHANGELOG|'
                    r'include/seqlstm/ext/|modules/|docs/|configs/|tests/(cli|figures|unit/data|'
                    r'unit/model|fuzz)/|.*pieces|tests/bench/(divisions|scaling|study_ranks)|'
                    r'tests/e2e/fuzz_runs|tests/unit/session/test_(run_files|division|measured_steps)|tests/unit/scaling/test_(exchange_costs|scaling_(costs|plan))|tests/README|tools/|core/base/system/module)')

# Files with spans of tags, or with the key `span` of metrics.jsonl.
SPANS = re.compile(r'^(core/(train|model)/|core/session/report/|core/runs/page|core/cli/output/attention_page|configs/|docs/|tests/|CHANGELOG|tools/)')

# (pattern, why it is refused, the files in which it is allowed)
RULES = [
    (re.compile(r'\b(whoever|nobody|somebody|everybody)\b', re.I), 'say which part of the program, or of the hardware', re.compile(r'tools/test-matrix\.sh$')),
    (re.compile(r'\b(backend|plugin|layer|operation|kernel|candidate|function|thread|call|option|file|tensor|batch|'
                r'sequence)s? who\b', re.I), 'things are "which"', None),
    (re.compile(r'(?<![\w-])pieces?(?![\w-])|(?<![a-z])pieces?_|_pieces?(?![a-z])', re.I),
     'pieces are tokens of SentencePiece, or ranges of steps: say part, chunk or segment', PIECES),
    (re.compile(r'\b(run-?off|runoff)s?\b', re.I), 'whole steps are compared', None),
    (re.compile(r'\b(contender|pairing)s?\b|\bsl_(party|contender|pairing)|(?<!third )(?<!third-)\bpart(y|ies)\b', re.I),
     'sides are compared, in matches', None),
    (re.compile(r'(?<![</\w.])(?:out_|\bsl_|\bseqlstm_)?spans?(?:_\w+)?(?![\w"])'),
     'spans are what tags mark: say range, interval, width or subgraph', SPANS),
    (re.compile(r'\bstands? in for\b|\bsends? home\b', re.I), 'say it without the image', None),
]


def check_text(name, text):
    for number, line in enumerate(text.split('\n'), 1):
        for pattern, reason, allowed in RULES:
            found = pattern.search(line)
            if found and not (allowed and (allowed.match(name) or 'SentencePiece' in line)):
                yield f'{name}:{number}: `{found.group(0)}`: {reason}'


def check(root):
    problems = []
    paths = [path for top in TOPS for path in (root / top).rglob('*')] + list(root.glob('*.md'))
    for path in sorted(paths):
        name = path.relative_to(root).as_posix()
        if path.suffix in TEXT and path.is_file() and not SKIP.match(name) and '__pycache__' not in name:
            problems += check_text(name, path.read_text(errors='replace'))
    return problems


def self_test():
    bad = {
        'core/exec/a.c': '/* whoever reads this */\n',
        'core/exec/b.c': '/* the layer who ran */\n',
        'plugins/x/c.c': '/* the first piece of dW */\n',
        'core/dispatch/d.c': 'int sl_piece_fill(void);\n',
        'core/dispatch/e.c': '/* the run-off */\n',
        'core/compare/f.c': 'struct sl_party;\n',
        'core/exec/k.c': 'struct sl_spans *spans;\n',
        'docs/g.md': 'A fake library stands in for cuDNN.\n',
    }
    good = {
        'core/data/text/pieces.c': '/* a piece */\n',
        'core/exec/h.c': '/* SentencePiece cuts it into pieces */\n',
        'core/train/l.c': '/* a span of tags */\n',
        'docs/i.md': 'A third party writes backends; the user who wrote it.\n',
        'docs/measurements/archive/j.md': 'the run-off\n',
    }
    return checks.judge(check, {**bad, **good}, bad)


if __name__ == '__main__':
    checks.main('words', check, self_test)

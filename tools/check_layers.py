#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads every #include of the tree against the table of layers.

check_layers.py [ROOT]      exit 1 and one line per violation
check_layers.py --self-test plants violations in a scratch tree and checks that each is caught
"""
import pathlib
import re
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

STANDARD = {
    'assert.h', 'complex.h', 'ctype.h', 'errno.h', 'fenv.h', 'float.h', 'inttypes.h', 'iso646.h',
    'limits.h', 'locale.h', 'math.h', 'setjmp.h', 'signal.h', 'stdalign.h', 'stdarg.h',
    'stdatomic.h', 'stdbool.h', 'stddef.h', 'stdint.h', 'stdio.h', 'stdlib.h', 'stdnoreturn.h',
    'string.h', 'tgmath.h', 'threads.h', 'time.h', 'uchar.h', 'wchar.h', 'wctype.h'}

CORE = ['base', 'model', 'data', 'graph', 'dispatch', 'exec', 'decode', 'interop', 'train',
        'session', 'lab', 'cli']
BELOW_SESSION = ['base', 'model', 'data', 'graph', 'dispatch', 'exec', 'decode', 'interop', 'train']
# layer -> core folders that it may include (besides itself)
MAY = {
    'base': [],
    'model': ['base'],
    'data': ['model', 'base'],
    'graph': ['model', 'base'],
    'dispatch': ['graph', 'base'],
    'exec': ['dispatch', 'graph', 'base'],
    'decode': ['exec', 'dispatch', 'graph', 'model', 'base'],
    'interop': ['model', 'graph', 'base'],
    'train': ['decode', 'exec', 'data', 'model', 'base', 'interop'],
    'session': BELOW_SESSION,
    'lab': BELOW_SESSION + ['session'],
    'cli': CORE,
}
# layers whose table row has no `include`: of the contract they see the error record alone
CONTRACT_STATUS_ONLY = {'model', 'data', 'train', 'interop'}
ONLY_DISPATCH = {'dlfcn.h'}
# private modules: who maps them, and who knows the contract of one
MODULE_OPENERS = {'core/base/module.c'}
MODULE_USERS = {'core/data/pieces.c'}
VENDOR = re.compile(r'^(cblas|lapacke|openblas|dnnl|oneapi|cuda|cudnn|cublas|nccl|mpi)')


def strip_comments(text):
    return re.sub(r'/\*.*?\*/', lambda m: '\n' * m.group(0).count('\n'), text, flags=re.S)


def includes(path):
    for number, line in enumerate(strip_comments(path.read_text(errors='replace')).split('\n'), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def core_folder(root, path, style, target):
    """The core folder that an include reaches, or None."""
    first = target.split('/')[0]
    if first in CORE and '/' in target:
        return first
    if style == '"' and (path.parent / target).exists():
        reached = (path.parent / target).resolve()
        core = (root / 'core').resolve()
        if core in reached.parents:
            return reached.relative_to(core).parts[0]
    return None


def complaint(root, path, style, target):
    parts = path.relative_to(root).parts
    folder = core_folder(root, path, style, target)
    if parts[0] == 'include':
        if target in STANDARD or target.startswith('seqlstm/'):
            return None
        if style == '"' and (path.parent / target).exists() and '..' not in target:
            return None
        return 'the contract includes C standard headers only'
    if parts[0] == 'plugins':
        if folder:
            return 'a plugin never includes the core'
        if '..' in target.split('/'):
            return 'a plugin includes by name, not through ".."'
        reached = target.split('/')[0]
        if style == '"' and reached != 'common' and reached != parts[1] and \
                (root / 'plugins' / reached).is_dir():
            return f'plugin {parts[1]} includes plugin {reached}'
        return None
    if parts[0] == 'core':
        if len(parts) < 3 or parts[1] not in MAY:
            return 'unknown layer' if len(parts) >= 3 else None
        layer = parts[1]
        if target.startswith('seqlstm/'):
            if layer in CONTRACT_STATUS_ONLY and \
                    target not in ('seqlstm/status.h', 'seqlstm/philox.h') and \
                    '/'.join(parts) not in MODULE_USERS:
                return f'core/{layer} sees of the contract only status.h and philox.h'
            return None
        if '..' in target.split('/'):
            return 'include core files as "layer/file.h"'
        if folder and folder != layer and folder not in MAY[layer]:
            return f'core/{layer} may not include core/{folder}'
        if target in ONLY_DISPATCH and layer != 'dispatch' and '/'.join(parts) not in MODULE_OPENERS:
            return 'only core/dispatch and base/module.c open shared objects'
        if VENDOR.match(target):
            return 'vendor headers belong to plugins'
    return None


def check(root):
    problems = []
    for top in ('include', 'core', 'plugins'):
        for path in sorted((root / top).rglob('*')):
            if path.suffix not in ('.c', '.h', '.cu', '.cuh', '.inc'):
                continue
            for number, style, target in includes(path):
                reason = complaint(root, path, style, target)
                if reason:
                    problems.append(f'{path.relative_to(root)}:{number}: {target}: {reason}')
    return problems


def self_test():
    bad = {
        'core/base/a.c': '#include "model/model.h"',
        'core/graph/a.c': '#include "data/dataset.h"',
        'core/graph/b.c': '#include "../data/dataset.h"',
        'core/exec/a.c': '#include "model/model.h"',
        'core/model/a.c': '#include <seqlstm/backend.h>',
        'core/session/a.c': '# include "cli/print.h"',
        'core/exec/b.c': '#include <dlfcn.h>',
        'core/exec/c.c': '#include <cblas.h>',
        'plugins/x/a.c': '#include "base/arena.h"',
        'plugins/x/b.c': '#include "y/y.h"',
        'include/seqlstm/a.h': '#include <pthread.h>',
    }
    good = {
        'core/graph/c.c': '#include "model/model.h"\n#include <seqlstm/ops.h>\n'
                          '/* #include "data/x.h" */\n',
        'core/dispatch/a.c': '#include <dlfcn.h>\n#include <seqlstm/backend.h>\n',
        'core/model/b.c': '#include <seqlstm/status.h>\n#include "model/local.h"\n',
        'core/cli/a.c': '#include "lab/lab.h"\n',
        'plugins/x/c.c': '#include "common/x.h"\n#include <seqlstm/ops.h>\n#include <cblas.h>\n',
        'plugins/y/y.h': '\n',
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**bad, **good}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text + '\n')
        found = {line.split(':')[0] for line in check(root)}
    missed, wrong = set(bad) - found, found - set(bad)
    for name in sorted(missed):
        print(f'not caught: {name}: {bad[name]}')
    for name in sorted(wrong):
        print(f'wrongly refused: {name}')
    return 1 if missed or wrong else 0


def main():
    if sys.argv[1:] == ['--self-test']:
        return self_test()
    problems = check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else '.').resolve())
    print('\n'.join(problems) if problems else 'layers: ok')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())

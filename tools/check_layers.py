#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds every #include of the tree to the layers of layers.txt.

check_layers.py [ROOT]      exit 1 and one line per violation:
                              * an include that the layers, or the order of a layer's folders, forbid
                              * a circle of more than CIRCLE_MOST modules (a source counts with its header)
                              * a folder with more source files than FOLDER_MOST
                              * a layer table in docs/architecture.md that says something else
check_layers.py --self-test plants violations in a scratch tree and checks that each is caught
"""
import collections
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import checks

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCE = ('.c', '.h', '.cu', '.cuh', '.inc', '.cc')

STANDARD = {
    'assert.h', 'complex.h', 'ctype.h', 'errno.h', 'fenv.h', 'float.h', 'inttypes.h', 'iso646.h',
    'limits.h', 'locale.h', 'math.h', 'setjmp.h', 'signal.h', 'stdalign.h', 'stdarg.h',
    'stdatomic.h', 'stdbool.h', 'stddef.h', 'stdint.h', 'stdio.h', 'stdlib.h', 'stdnoreturn.h',
    'string.h', 'tgmath.h', 'threads.h', 'time.h', 'uchar.h', 'wchar.h', 'wctype.h'}

# These layers use only the status codes and random numbers of the contract.
CONTRACT_STATUS_ONLY = {'model', 'data', 'train', 'interop'}
# The files that open shared objects (backends, and private modules), and those that know the contract of a private
# module.
OPENERS = re.compile(r'core/(registry/.*|base/system/module\.c|base/profilers/library\.c)$')
MODULE_USERS = re.compile(r'core/data/(\w+/)?pieces\.c$')
VENDOR = re.compile(r'^(cblas|lapacke|openblas|dnnl|oneapi|cuda|cudnn|cublas|nccl|mpi)')
# Written by the build, or by tests for the emulated device; not files of the tree.
GENERATED = {'config.h', 'emulation.h', 'emulated_mma.h'}

CIRCLE_MOST = 4
FOLDER_MOST = 35
FOLDER_MOST_OF = {'core/cli': 25, 'core/session': 25}


def read_layers(text):
    """Returns ({layer: [layers that it may include]}, {layer or plugins/ID: [folders, lowest first]})"""
    may, folders, last = {}, {}, None
    for line in text.split('\n'):
        words = line.split('#')[0]
        if not words.strip():
            continue
        if words[0].isspace():
            folders[last] = words.split()
        else:
            last, below = words.split(':')
            if not last.startswith('plugins/'):
                may[last] = below.split()
    return may, folders


def strip_comments(text):
    return re.sub(r'/\*.*?\*/', lambda m: '\n' * m.group(0).count('\n'), text, flags=re.S)


class Tree:
    """Returns the source files below include, core and plugins, and what each includes."""

    def __init__(self, root):
        self.root = root
        self.may, self.folders = read_layers((root / 'tools/layers.txt').read_text())
        self.files = sorted(
            path.relative_to(root).as_posix() for top in ('include', 'core', 'plugins')
            for path in (root / top).rglob('*') if path.suffix in SOURCE and 'templates' not in path.parts)
        self.known = set(self.files)

    def resolve(self, name, target):
        """Returns the file of the tree that `target` means in file `name`, or None."""
        for folder in (pathlib.PurePosixPath(name).parent.as_posix(), 'core', 'plugins'):
            if f'{folder}/{target}' in self.known:
                return f'{folder}/{target}'
        return None

    def includes(self, name):
        text = strip_comments((self.root / name).read_text(errors='replace'))
        for number, line in enumerate(text.split('\n'), 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1), match.group(2)


def part_of(name):
    """Returns (core layer or plugins/ID, folder inside it)"""
    parts = name.split('/')
    part = parts[1] if parts[0] == 'core' else '/'.join(parts[:2])
    return part, '/'.join(parts[2:-1]) or '.'


def order_complaint(tree, name, reached):
    """Inside one layer or plugin, folders may include themselves and lower ones."""
    part, folder = part_of(name)
    _, other = part_of(reached)
    order = tree.folders.get(part)
    if folder == other or order is None:
        return None
    for each in (folder, other):
        if each not in order:
            return f'the folder {each} of {part} is not in tools/layers.txt'
    if order.index(other) > order.index(folder):
        return f'in {part}, the folder {folder} stands below {other}'
    return None


def complaint(tree, name, style, target):
    parts = name.split('/')
    reached = tree.resolve(name, target) if style == '"' else None
    if '..' in target.split('/'):
        return 'files are included by name, not through ".."'
    if parts[0] == 'include':
        if target in STANDARD or target.startswith('seqlstm/') or reached:
            return None
        return 'the contract includes C standard headers only'
    if style == '"' and not reached and target.split('/')[-1] not in GENERATED:
        return 'there is no such file'
    if parts[0] == 'plugins':
        if reached and not reached.startswith('plugins/'):
            return 'a plugin never includes the core'
        other = reached.split('/')[1] if reached else parts[1]
        if other not in (parts[1], 'common'):
            return f'plugin {parts[1]} includes plugin {other}'
        return order_complaint(tree, name, reached) if other == parts[1] and reached else None
    if len(parts) < 3 or parts[1] not in tree.may:
        return 'unknown layer' if len(parts) >= 3 else None
    layer = parts[1]
    if target.startswith('seqlstm/'):
        if layer in CONTRACT_STATUS_ONLY and target not in ('seqlstm/status.h', 'seqlstm/philox.h') and \
                not MODULE_USERS.match(name):
            return f'core/{layer} sees of the contract only status.h and philox.h'
        return None
    if target == 'dlfcn.h' and not OPENERS.match(name):
        return 'only core/registry opens backends, base/system/module.c private modules, and base/profilers the library of a profiler'
    if VENDOR.match(target):
        return 'vendor headers belong to plugins'
    if not reached:
        return None
    other = part_of(reached)[0]
    if not reached.startswith('core/') or (other != layer and other not in tree.may[layer]):
        return f'core/{layer} may not include {reached}'
    return order_complaint(tree, name, reached) if other == layer else None


def find_circles(tree):
    """Returns sets of modules that include each other; a module is a source with its header."""
    module = lambda name: name.rsplit('.', 1)[0]
    edges = collections.defaultdict(set)
    for name in tree.files:
        for _, style, target in tree.includes(name):
            reached = tree.resolve(name, target) if style == '"' else None
            if reached and module(reached) != module(name):
                edges[module(name)].add(module(reached))
    index, low, stack, circles = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for after in sorted(edges.get(node, ())):
            if after not in index:
                visit(after)
                low[node] = min(low[node], low[after])
            elif after in stack:
                low[node] = min(low[node], index[after])
        if low[node] == index[node]:
            circle = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(circle) > 1:
                circles.append(sorted(circle))

    sys.setrecursionlimit(10000)
    for node in sorted(edges):
        if node not in index:
            visit(node)
    return sorted(circles, key=len, reverse=True)


def check_folders(root):
    for top in ('core', 'plugins', 'tests'):
        count = collections.Counter(
            path.parent.relative_to(root).as_posix() for path in (root / top).rglob('*')
            if path.suffix in SOURCE + ('.py',) and path.is_file())
        for folder, files in sorted(count.items()):
            most = next((FOLDER_MOST_OF[each] for each in FOLDER_MOST_OF if (folder + '/').startswith(each + '/')),
                        FOLDER_MOST)
            if files > most:
                yield f'{folder}: {files} source files, at most {most}'


def check_document(tree):
    """The table of docs/architecture.md must agree with layers.txt."""
    path = tree.root / 'docs/architecture.md'
    if not path.exists():
        return
    rows = re.findall(r'^\| `core/(\w+)` \| ([^|]*) \|$', path.read_text(), flags=re.M)
    for layer, below in tree.may.items():
        said = [words for name, words in rows if name == layer]
        if not said:
            yield f'docs/architecture.md: no row for core/{layer} in the table of layers'
        elif set(re.findall(r'\w+', said[0])) != set(below or ['nothing']):
            yield f'docs/architecture.md: core/{layer} includes {said[0]} there, {" ".join(below)} in tools/layers.txt'


def check(root):
    tree = Tree(root)
    problems = []
    for name in tree.files:
        for number, style, target in tree.includes(name):
            reason = complaint(tree, name, style, target)
            if reason:
                problems.append(f'{name}:{number}: {target}: {reason}')
    for circle in find_circles(tree):
        if len(circle) > CIRCLE_MOST:
            problems.append(f'{circle[0]}.h: a circle of {len(circle)} modules, at most {CIRCLE_MOST}: '
                            + ' '.join(circle))
    return problems + list(check_folders(root)) + list(check_document(tree))


def self_test():
    layers = 'base:\nmodel: base\ngraph: model base\nregistry: base\ndispatch: registry graph base\n' \
             '    low high .\nexec: dispatch base\nsession: exec\ncli: session base\nplugins/y:\n    a . b\n'
    bad = {
        'core/base/a.c': '#include "model/model.h"',
        'core/graph/a.c': '#include "exec/exec.h"',
        'core/graph/b.c': '#include "../exec/exec.h"',
        'core/exec/a.c': '#include "model/model.h"',
        'core/model/a.c': '#include <seqlstm/backend.h>',
        'core/session/a.c': '# include "cli/print.h"',
        'core/exec/b.c': '#include <dlfcn.h>',
        'core/dispatch/a.c': '#include <dlfcn.h>',
        'core/exec/c.c': '#include <cblas.h>',
        'core/exec/d.c': '#include "exec/absent.h"',
        'core/other/a.c': '#include "base/arena.h"',
        'core/dispatch/low/a.c': '#include "dispatch/high/high.h"',
        'core/dispatch/high/b.c': '#include "dispatch/plan.h"',
        'core/dispatch/unknown/a.c': '#include "dispatch/plan.h"',
        'plugins/x/a.c': '#include "base/arena.h"',
        'plugins/x/b.c': '#include "y/y.h"',
        'plugins/y/a/a.c': '#include "y/y.h"',
        'include/seqlstm/a.h': '#include <pthread.h>',
        'core/exec/ring0.h': f'#include "exec/ring{CIRCLE_MOST}.h"',
        'core/cli': ''.join(f'core/cli/many{n}.c ' for n in range(FOLDER_MOST_OF['core/cli'] + 1)),
        'docs/architecture.md': '\n'.join(
            f'| `core/{layer}` | {below or "nothing"} |' for layer, below in
            [('base', ''), ('model', 'base'), ('graph', 'model'), ('registry', 'base'),
             ('dispatch', 'registry, graph, base'), ('exec', 'dispatch, base'), ('session', 'exec'),
             ('cli', 'session, base')]),
    }
    good = {
        'core/base/memory/arena.h': '', 'core/model/model.h': '', 'core/exec/exec.h': '', 'core/cli/print.h': '',
        'core/dispatch/high/high.h': '', 'core/dispatch/plan.h': '#include "dispatch/high/high.h"',
        'core/graph/c.c': '#include "model/model.h"\n#include <seqlstm/ops.h>\n/* #include "exec/exec.h" */\n',
        'core/registry/a.c': '#include <dlfcn.h>\n#include <seqlstm/backend.h>\n',
        'core/model/b.c': '#include <seqlstm/status.h>\n#include "model/model.h"\n',
        'core/cli/a.c': '#include "cli/print.h"\n#include "base/config.h"\n',
        **{f'core/exec/ring{n}.h': f'#include "exec/ring{n - 1}.h"' for n in range(1, CIRCLE_MOST + 1)},
        'plugins/common/x.h': '', 'plugins/x/c.c': '#include "common/x.h"\n#include <seqlstm/ops.h>\n#include <cblas.h>\n',
        'plugins/y/y.h': '#include "y/a/a.h"', 'plugins/y/a/a.h': '', 'plugins/y/b/b.c': '#include "y/y.h"',
        'tools/layers.txt': layers,
    }
    files = {name: text + '\n' for name, text in {**bad, **good}.items() if name != 'core/cli'}
    files |= {name: '\n' for name in bad['core/cli'].split()}
    return checks.judge(check, files, bad)


if __name__ == '__main__':
    checks.main('layers', check, self_test)

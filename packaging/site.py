#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation site: site.py FOLDER. Needs mkdocs and mkdocs-material (Debian packages of these names).

The pages are those of docs/ and other Markdown files of the repository; files of sources that they link to become
pages, too. The references of C and Python come from the headers and the docstrings. Every link and every anchor of
the result must lead somewhere, or the exit status is 1.
"""
import ast
import html.parser
import pathlib
import posixpath
import re
import shutil
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'tools'))
sys.dont_write_bytecode = True
from check_links import INLINE, prose, slug

LANGUAGES = {'.h': 'c', '.c': 'c', '.py': 'python', '.yaml': 'yaml', '.txt': 'text'}
EXTRA = ['CONTRIBUTING.md', 'CHANGELOG.md', 'tests/README.md']
HEADERS = ['seqlstm', 'predictor', 'run', 'status']
# long names in a sentence break where the window ends, so that a page is never wider than a telephone
STYLE = '.md-typeset p, .md-typeset li { overflow-wrap: anywhere; }\n'
MODULES = ['_run', '_predictor', '_stream', '_convert', '_estimators', '_errors']


class Site:
    """Collects pages {path in the site: text} and copies of files."""

    def __init__(self):
        self.pages, self.files, self.wanted = {}, {}, []

    def place(self, source):
        """Where a file of the repository is in the site."""
        if source.startswith('docs/'):
            return 'index.md' if source == 'docs/README.md' else source[5:]
        if source.endswith('.md'):
            return source
        if (ROOT / source).suffix in ('.png', '.svg', '.json'):
            return f'files/{source}'
        return f'source/{source}.md'

    def add(self, source):
        """Adds a file of the repository, and what it links to."""
        path, place = ROOT / source, self.place(source)
        if place in self.pages or place in self.files:
            return place
        if path.is_dir():
            names = sorted(p.name for p in path.iterdir() if p.is_file() and not p.name.startswith('.'))
            self.pages[place] = f'# {source}\n\n' + '\n'.join(f'* {name}' for name in names) + '\n'
        elif path.suffix in ('.png', '.svg', '.json'):
            self.files[place] = path
        elif path.suffix == '.md':
            self.pages[place] = ''
            self.pages[place] = self.rewrite(source, path.read_text())
        else:
            fence = f'```{LANGUAGES.get(path.suffix, "text")}\n{path.read_text().rstrip()}\n```\n'
            self.pages[place] = f'# {path.name}\n\n`{source}`\n\n{fence}'
        return place

    def rewrite(self, source, text):
        lines, outside = text.split('\n'), {number for number, _ in prose(text)}
        folder, here = posixpath.dirname(source), posixpath.dirname(self.place(source))

        def move(match):
            target = match.group(1)
            if not target or re.match(r'[a-zA-Z][a-zA-Z0-9+.-]*:|#', target):
                return match.group(0)
            path, _, anchor = target.partition('#')
            found = posixpath.normpath(posixpath.join(folder, urllib.parse.unquote(path)))
            if (ROOT / found).is_dir() and (ROOT / found / 'README.md').exists():
                found += '/README.md'
            there = posixpath.relpath(self.add(found), here or '.')
            return match.group(0).replace(target, there + ('#' + anchor if anchor else ''))

        for k, line in enumerate(lines):
            if k + 1 in outside:
                parts = re.split(r'(`+.+?`+)', line)
                # a link may have code as its text: only its target matters
                lines[k] = INLINE.sub(move, line) if '](' in line else ''.join(parts)
        return '\n'.join(lines)


def read_c(name):
    """The declarations of a header with the comments before them."""
    text = (ROOT / 'include' / 'seqlstm' / f'{name}.h').read_text()
    head = re.search(r'SPDX[^\n]*\n/\*(.*?)\*/', text, re.S).group(1)
    out = [f'## {name}.h\n', clean(head)]
    found = re.finditer(r'^(?:/\*((?:(?!\*/).)*?)\*/\n)?((?:SEQLSTM_API|struct \w+ \{|typedef|enum \{|static inline)'
                        r'(?:[^;{]*\{.*?^\}[^\n]*|[^;{]*;[^\n]*))', text, re.S | re.M)
    for match in found:
        comment, code = match.group(1), match.group(2)
        if code.startswith('static inline'):
            continue
        title = re.search(r'(\w+)\s*\(|struct (\w+) \{|\(\*(\w+)\)|typedef \w+ (\w+);', code)
        if title is None:
            out.append(f'```c\n{code}\n```\n')
            continue
        pointer = re.match(r'typedef[^(]*\(\*(\w+)\)', code)
        label = pointer.group(1) if pointer else next(g for g in title.groups() if g)
        out += [f'### {label}\n', clean(comment or ''), f'```c\n{code.replace("SEQLSTM_API ", "")}\n```\n']
    return '\n'.join(out)


def clean(comment):
    """The text of a comment; lines that are indented are code."""
    lines = [re.sub(r'^ ?\*? ?', '', line) for line in comment.strip('\n').split('\n')]
    text = '\n'.join(line.rstrip() for line in lines)
    text = re.sub(r'-{5,}', '', text)
    escape = lambda line: '  ' + line if line.startswith('  ') else line.replace('<', '&lt;').replace('*', '\\*')
    return '\n'.join(map(escape, text.split('\n'))) + '\n'


def read_python(module):
    """Public classes and functions with their docstrings."""
    tree, out = ast.parse((ROOT / 'python' / 'seqlstm' / f'{module}.py').read_text()), []
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name.startswith('_') or not ast.get_docstring(node):
            continue
        if module in ('_run', '_convert') or isinstance(node, ast.ClassDef):
            out.append(describe(node, 'seqlstm.'))
        for member in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(member, ast.FunctionDef) and not member.name.startswith('_') and ast.get_docstring(member):
                out.append(describe(member, f'{node.name}.'))
    return '\n'.join(out)


def read_docstring(node):
    """Paragraphs; a line that begins with `name:` stays a line of its own, and its continuation is joined to it."""
    out = []
    for paragraph in ast.get_docstring(node).split('\n\n'):
        text = re.sub(r'\n(?!\w+(?: \([^)]*\))?: )\s*', ' ', paragraph)
        out.append(re.sub(r'(?m)^(\w+): ', r'**\1**: ', text.replace('<', '&lt;').replace('_', '\\_')
                          if '`' not in text else text.replace('<', '&lt;')).replace('\n', '  \n'))
    return '\n\n'.join(out)


def describe(node, owner):
    level = '##' if owner == 'seqlstm.' else '###'
    is_property = any(isinstance(d, ast.Name) and d.id == 'property' for d in getattr(node, 'decorator_list', []))
    shown = '' if isinstance(node, ast.ClassDef) or is_property else f'({ast.unparse(node.args)})'
    if isinstance(node, ast.ClassDef) and node.bases:
        shown = f'({", ".join(ast.unparse(base) for base in node.bases)})'
    kind = 'class ' if isinstance(node, ast.ClassDef) else ''
    return f'{level} {owner}{node.name}\n\n```python\n{kind}{node.name}{shown}\n```\n\n{read_docstring(node)}\n'


def read_sections():
    """The sections of docs/README.md and their pages: the menu."""
    menu, section = [{'Home': 'index.md'}], None
    for line in (ROOT / 'docs' / 'README.md').read_text().split('\n'):
        if line.startswith('## '):
            section = []
            menu.append({line[3:]: section})
        found = re.match(r'\| \[([^\]]+)\]\(([^)]+)\)', line)
        if found and section is not None:
            target = found.group(2) + ('README.md' if found.group(2).endswith('/') else '')
            title = (ROOT / 'docs' / target).read_text().split('\n')[0].lstrip('# ')
            section.append({title: target})
    menu.append({'Reference': [{'C': 'reference-c.md'}, {'Python': 'reference-python.md'}]})
    menu.append({'Project': [{'Changelog': 'CHANGELOG.md'}, {'Contributing': 'CONTRIBUTING.md'}, {'Tests': 'tests/README.md'}]})
    return menu


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.update(filter(None, (given.get('id'), given.get('name'))))
        for key in ('href', 'src'):
            if given.get(key):
                self.targets.append(given[key])


def find_dead(folder):
    """Links of the built site that lead nowhere."""
    pages = {p.relative_to(folder).as_posix(): Links(p.read_text()) for p in folder.rglob('*.html')}
    for name, page in sorted(pages.items()):
        for target in page.targets:
            if re.match(r'[a-z]+:|//', target) or name == '404.html':
                continue
            path, _, anchor = urllib.parse.unquote(target).partition('#')
            path = path.partition('?')[0]
            there = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if (folder / there).is_dir():
                there = posixpath.normpath(posixpath.join(there, 'index.html'))
            if not (folder / there).exists():
                yield f'{name}: {target} leads nowhere'
            elif anchor and there in pages and anchor not in pages[there].anchors and anchor != '__tabbed':
                yield f'{name}: {target}: the page has no such anchor'


def build(out):
    from mkdocs.commands.build import build as mkdocs_build
    from mkdocs.config import load_config
    site = Site()
    for path in sorted((ROOT / 'docs').rglob('*.md')):
        site.add(path.relative_to(ROOT).as_posix())
    for name in EXTRA:
        site.add(name)
    site.add('docs/images/report.png')
    site.add('docs/images/ranks-study.svg')
    site.pages['reference-c.md'] = '# C reference\n\n' + '\n'.join(read_c(name) for name in HEADERS)
    site.pages['reference-python.md'] = '# Python reference\n\n' + '\n'.join(read_python(m) for m in MODULES)
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder, 'pages')
        for place, text in site.pages.items():
            path = scratch / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for place, source in site.files.items():
            path = scratch / place
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, path)
        (scratch / 'site.css').write_text(STYLE)
        empty = pathlib.Path(folder, 'empty.yml')
        empty.write_text('{}')
        config = load_config(
            str(empty), site_name='seqlstm', docs_dir=str(scratch),
            site_dir=str(out), use_directory_urls=False, nav=read_sections(), extra_css=['site.css'],
            theme={'name': 'material', 'font': False, 'features': ['navigation.sections', 'toc.follow']},
            plugins=['search'], markdown_extensions=['tables', 'fenced_code', 'sane_lists', 'attr_list', {'codehilite': {'guess_lang': False, 'css_class': 'highlight'}},
                                 {'toc': {'slugify': lambda text, _: slug(text), 'toc_depth': 3}}])
        mkdocs_build(config)


def main():
    out = pathlib.Path(sys.argv[1]).resolve()
    try:
        import mkdocs, material  # noqa: F401, E401
    except ImportError as missing:
        sys.exit(f'{missing}: apt-get install mkdocs mkdocs-material')
    build(out)
    dead = list(find_dead(out))
    print('\n'.join(dead[:40]))
    print(f'{out}/index.html: {len(list(out.rglob("*.html")))} pages, {len(dead)} failed')
    sys.exit(bool(dead))


if __name__ == '__main__':
    main()

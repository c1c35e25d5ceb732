#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links between the documents of the repository.

check_links.py [ROOT]       exit 1 and one line per link that leads nowhere
check_links.py --self-test  plants broken links and checks that each is caught

In Markdown every relative link must name a file or folder of the repository, and its anchor a heading of that file.
Paths in inline code that begin with a folder of the sources, such as `core/base`, must exist; names in capitals are
placeholders, and pages of the archive may name files of their day. In all other text files, comments included, every
path that begins with `docs/` and ends with `.md` must exist. docs/README.md must list every page beside it.
"""
import pathlib
import posixpath
import re
import sys
import urllib.parse

sys.dont_write_bytecode = True
import checks

TEXT = ('.c', '.h', '.cu', '.cuh', '.inc', '.py', '.sh', '.md', '.yaml', '.txt', '.build', '.cc')
FENCE = re.compile(r'^ {0,3}(`{3,}|~{3,})')
HEADING = re.compile(r'^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$')
# [text](target "title"), where the text may contain an image or one level of brackets
INLINE = re.compile(r'\]\(\s*<?([^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?(?:\s+"[^"]*")?\s*\)')
DEFINITION = re.compile(r'^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$')
HTML = re.compile(r'<(?:a|img)\b[^>]*?\b(?:href|src)="([^"]*)"')
NAMED = re.compile(r'<a\b[^>]*?\b(?:name|id)="([^"]*)"')
SCHEME = re.compile(r'^[a-zA-Z][a-zA-Z0-9+.-]*:')
FOLDERS = 'core|plugins|modules|include|examples|tests|tools|configs|docs'
SOURCES = re.compile(r'(?<![\w./$}<-])((?:' + FOLDERS + r')/[\w./*{},-]*)')
ARCHIVE = 'docs/measurements/archive/'
MENTION = re.compile(r'(?<![\w./-])docs/[\w./-]*\w\.md\b')


def prose(text):
    """Yields the lines outside of fenced code, as (number, line)."""
    fence = None
    for number, line in enumerate(text.split('\n'), 1):
        mark = FENCE.match(line)
        if fence:
            if mark and mark.group(1).startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
        elif mark:
            fence = mark.group(1)
        else:
            yield number, line


def without_code(line):
    return re.sub(r'(`+).+?\1', '', line)


def named_sources(text):
    """Yields the paths of sources in inline code, as (line, path), except those with patterns or placeholders."""
    for number, line in prose(text):
        for _, code in re.findall(r'(`+)(.+?)\1', line):
            for path in SOURCES.findall(code):
                path = path.rstrip('/.,')
                if not re.search(r'[*{},]|\b[A-Z]{2,}\b(?!\.md)', path):
                    yield number, path


def slug(heading):
    """Returns the anchor that GitHub makes from a heading."""
    heading = re.sub(r'!?\[([^\]]*)\]\([^)]*\)', r'\1', heading)
    heading = re.sub(r'[*`]', '', heading).strip().lower()
    return re.sub(r'[^\w\- ]', '', heading).replace(' ', '-')


def anchors(text):
    found, seen = set(), {}
    for _, line in prose(text):
        found.update(NAMED.findall(line))
        match = HEADING.match(line)
        if match:
            name = slug(match.group(1))
            count = seen.get(name, 0)
            seen[name] = count + 1
            found.add(f'{name}-{count}' if count else name)
    return found


def links(text):
    """Yields every target in a Markdown file, as (line, target)."""
    for number, line in prose(text):
        line = without_code(line)
        for pattern in (INLINE, DEFINITION, HTML):
            for match in pattern.finditer(line):
                yield number, match.group(1)


def folders_of(names):
    return {parent.as_posix() for name in names for parent in pathlib.PurePosixPath(name).parents}


def read(path):
    return path.read_bytes().decode('utf-8', errors='replace')


def why_broken(root, places, name, target):
    """Returns what is wrong with a link in file `name`; None if it is right."""
    if not target:
        return 'an empty link'
    if SCHEME.match(target) or target.startswith('//'):
        return None
    path, _, anchor = urllib.parse.unquote(target).partition('#')
    if path.startswith('/'):
        return f'`{target}` is not relative'
    place = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
    if place not in places:
        return f'`{target}`: there is no {place}'
    if anchor and place.endswith('.md') and anchor not in anchors(read(root / place)):
        return f'`{target}`: no heading of {place} has the anchor #{anchor}'
    return None


def check(root):
    names = set(checks.tracked(root))
    places = names | folders_of(names)
    for name in sorted(names):
        path = root / name
        if path.suffix not in TEXT and path.name != 'Makefile' or path.is_symlink() or name.startswith('tools/check_'):
            continue
        text = read(path)
        if path.suffix == '.md':
            for line, target in links(text):
                reason = why_broken(root, places, name, target)
                if reason:
                    yield f'{name}:{line}: {reason}'
            for line, source in [] if name.startswith(ARCHIVE) else named_sources(text):
                if source not in places:
                    yield f'{name}:{line}: there is no {source}'
        else:
            for number, line in enumerate(text.split('\n'), 1):
                for mention in MENTION.findall(line):
                    if mention not in names:
                        yield f'{name}:{number}: there is no {mention}'
    yield from unlisted(root, names)


def unlisted(root, names):
    contents = 'docs/README.md'
    if contents in names:
        listed = {posixpath.normpath('docs/' + target.partition('#')[0]) for _, target in links(read(root / contents))}
        for name in sorted(names - listed - {contents}):
            if re.fullmatch(r'docs/[^/]+\.md', name):
                yield f'{name}: {contents} does not list it'


def self_test():
    files = {
        'README.md': '# Top\n[a](docs/a.md) [b](docs/a.md#two-words) ![p](docs/p.png "a picture")\n'
                     '[w](https://x.org/no)\n'
                     '[self](#top) [folder](docs/) [folder](docs)\n```\n[code](nowhere.md)\n```\n`[code](nowhere.md)`\n'
                     '[![p](docs/p.png)](docs/a.md)\n',
        'docs/a.md': '# A\n## Two words\n## Two words\n## `code`, and: more\n<a name="named"></a>\n'
                     '[up](../README.md) [second](#two-words-1) [third](#code-and-more) [fourth](#named)\n'
                     '```\n# no heading\n```\n[r]: a.md\n<img src="p.png">\n',
        'docs/README.md': '[a](a.md#a) `core/a.c` `core/` `cc core/a.c -o a` `core/*.c`\n'
                          '`configs/NAME.yaml` `build/core/b.c`\n',
        'docs/measurements/archive/old.md': '`core/gone.c`\n',
        'docs/deep/b.md': '',
        'docs/p.png': '',
        'core/a.c': '/* docs/a.md says why; tests/docs/no.md is no path from the root */\n',
    }
    broken = {
        'docs/unlisted.md': '',
        'bad/file.md': '[a](none.md)\n',
        'bad/anchor.md': '[a](../docs/a.md#three)\n',
        'bad/in_code.md': '[a](../docs/a.md#no-heading)\n',
        'bad/own_anchor.md': '# A\n[a](#b)\n',
        'bad/case.md': '[a](../Docs/a.md)\n',
        'bad/absolute.md': '[a](/docs/a.md)\n',
        'bad/image.md': '![a](none.png)\n',
        'bad/nested.md': '[![p](../docs/p.png)](none.md)\n',
        'bad/reference.md': '[a]: none.md\n',
        'bad/html.md': '<img src="none.png">\n',
        'bad/after_fence.md': '```\ncode\n```\n[a](none.md)\n',
        'bad/outside.md': '[a](../../none.md)\n',
        'bad/folder.md': '[a](../nowhere/)\n',
        'bad/third.md': '[a](../docs/a.md#two-words-2)\n',
        'bad/source.md': 'See `core/gone.c`.\n',
        'bad/source_folder.md': 'See ``cc plugins/gone/``.\n',
        'bad/mention.c': '/* docs/none.md */\n',
        'bad/mention.py': '# See docs/deep/none.md.\n',
    }
    return checks.judge(check, {**files, **broken}, broken)


if __name__ == '__main__':
    checks.main('links', check, self_test)

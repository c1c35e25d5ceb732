#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Colours of the pages that the program writes: can they be told from the background, light and dark?

check_contrast.py [ROOT]       exit 1 and one line per colour that cannot
check_contrast.py --self-test  plants weak colours and checks that each is caught

Style sheets are the string literals of core/ that define or use a colour by its name (`var(--dim)`). As in WCAG 2 AA, the
contrast with `--page` is at least 4.5 for text (`--ink`, `--dim`, and each colour of a `color:` or of the `fill:` of
`text`) and at least 3 for what is drawn, also where a rule makes it translucent. A page has both colours of a name, light
and dark, and no colour outside of `:root`.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import checks

TEXT, DRAWN = 4.5, 3.0
EXEMPT = {'page', 'grid'}  # the background itself, and lines that only guide the eye
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
ROOT_RULE = re.compile(r':root\{([^}]*)\}')
DARK = re.compile(r'@media\(prefers-color-scheme:dark\)\{(:root\{[^}]*\})\}')
RULE = re.compile(r'([^{}]+)\{([^{}]*)\}')
HEX = re.compile(r'#[0-9a-fA-F]{3,8}\b')


def styles(text):
    """The style sheet of a source file: its literals with CSS in them, joined."""
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    return ''.join(literal.replace('\\n', '') for literal in LITERAL.findall(text)
                   if 'var(--' in literal or ':root' in literal or re.match(r'^--?\w+[):]', literal)
                   or re.search(r'[\w.#)]\{[\w-]+:', literal) or re.match(r'^[\w.-]+(;|\}|\{|:)', literal))


def colours(rule):
    return dict(re.findall(r'--(\w+):(#[0-9a-fA-F]+)', rule))


def luminance(colour):
    digits = colour[1:]
    digits = ''.join(2 * d for d in digits) if len(digits) == 3 else digits
    parts = [int(digits[k:k + 2], 16) / 255 for k in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def blend(colour, page, share):
    pairs = [[int(c[1:][k:k + 2], 16) for k in (0, 2, 4)] for c in (colour, page)]
    return '#' + ''.join(f'{round(share * a + (1 - share) * b):02x}' for a, b in zip(*pairs))


def full(colour):
    return '#' + ''.join(2 * d for d in colour[1:]) if len(colour) == 4 else colour


def uses(sheet):
    """Each use of a named colour in the rules: (name, least contrast, opacity)."""
    for selector, body in RULE.findall(ROOT_RULE.sub('', DARK.sub('', sheet))):
        opacity = re.search(r'opacity:(\d*\.?\d+)', body)
        share = float(opacity.group(1)) if opacity and ':hover' not in selector else 1
        for name in re.findall(r'(?<![\w-])color:var\(--(\w+)\)', body):
            yield name, TEXT, share
        is_text = re.search(r'(^|[\s,.>])text\b', selector) is not None
        for name in re.findall(r'(?:fill|stroke|background):var\(--(\w+)\)', body):
            yield name, TEXT if is_text else DRAWN, share


def palettes(sheet):
    dark = DARK.search(sheet)
    return colours(''.join(ROOT_RULE.findall(DARK.sub('', sheet)))), colours(dark.group(1) if dark else '')


def shades(text):
    """The colours that a source mixes behind text, and the largest share of them: `SHADE_MOST = 50`, in per cent."""
    most = re.search(r'SHADE_MOST = (\d+)', text)
    return [(name, int(most.group(1)) / 100) for name in re.findall(r'"var\(--(\w+)\)"', text)] if most else []


def check_shades(name, text, shared, others):
    for one, share in shades(text):
        for scheme, own, palette in zip(('light', 'dark'), shared, others):
            found = contrast(own['ink'], blend(full(palette[one]), full(own['page']), share))
            if not found >= TEXT:
                yield f'{name}: text on --{one} in {scheme} pages has a contrast of {found:.2f}, at least {TEXT} is needed'


def check_sheet(name, sheet, shared, others=({}, {})):
    """Complaints about one file; `shared`: (light, dark) of the style that all pages have; `others`: of the files that
    may be on the same page."""
    own = palettes(sheet)
    used = {one for one, _, _ in uses(sheet)}
    light, dark = ({**{k: v for k, v in others[n].items() if k in used}, **shared[n], **own[n]} for n in (0, 1))
    for one in sorted(used - light.keys()):
        yield f'{name}: no style defines --{one}'
    for one in sorted(light.keys() ^ dark.keys()):
        yield f'{name}: --{one} has no {"dark" if one in light else "light"} colour'
    for colour in HEX.findall(ROOT_RULE.sub('', DARK.sub('', sheet))):
        yield f'{name}: {colour} is the same in light and dark pages: give it a name in :root'
    wanted = [('ink', TEXT, 1), ('dim', TEXT, 1)] + [(n, DRAWN, 1) for n in light] + list(uses(sheet))
    for one, least, share in sorted(set(wanted)):
        for scheme, palette in (('light', light), ('dark', dark)):
            if one in EXEMPT or one not in palette:
                continue
            page = full(palette['page'])
            found = contrast(blend(full(palette[one]), page, share), page)
            if not found >= least:
                yield f'{name}: --{one} in {scheme} pages has a contrast of {found:.2f}, at least {least} is needed'


def check(root):
    sheets, texts = {}, {}
    for path in sorted((root / 'core').rglob('*.c')):
        sheet = styles(path.read_text(encoding='utf-8'))
        if 'var(--' in sheet or ':root' in sheet:
            sheets[str(path.relative_to(root))] = sheet
            texts[str(path.relative_to(root))] = path.read_text(encoding='utf-8')
    shared = palettes(sheets.get('core/base/value/html.c', ''))
    others = ({}, {})
    for sheet in sheets.values():
        for all_of_them, own in zip(others, palettes(sheet)):
            all_of_them.update(own)
    return [line for name, sheet in sheets.items() for line in check_sheet(name, sheet, shared, others)] + \
        [line for name, text in texts.items() for line in check_shades(name, text, shared, others)]


def self_test():
    shared = ({'ink': '#000', 'dim': '#555', 'page': '#fff', 'grid': '#eee'},
              {'ink': '#fff', 'dim': '#aaa', 'page': '#111', 'grid': '#222'})
    planted = {
        ':root{--a:#2a6fc9}@media(prefers-color-scheme:dark){:root{--a:#6aa5f0}}.b{fill:var(--a)}': None,
        ':root{--a:#bbccdd}@media(prefers-color-scheme:dark){:root{--a:#6aa5f0}}': '--a in light pages',
        ':root{--a:#2a6fc9}@media(prefers-color-scheme:dark){:root{--a:#223344}}': '--a in dark pages',
        ':root{--a:#2a6fc9}': '--a has no dark colour',
        '.b{color:#777}': '#777 is the same',
        ':root{--a:#2a6fc9}@media(prefers-color-scheme:dark){:root{--a:#6aa5f0}}.b{fill:var(--a);fill-opacity:.3}': '--a in light',
        ':root{--a:#e06020}@media(prefers-color-scheme:dark){:root{--a:#f0935e}}text.b{fill:var(--a)}': 'at least 4.5',
    }
    for sheet, expected in planted.items():
        found = list(check_sheet('x.c', sheet, shared))
        if (expected is None) != (found == []) or (expected and not any(expected in line for line in found)):
            print(f'{sheet}: {found}, expected {expected}')
            return 1
    if styles('static const char s[] = ":root{--a:#fff}" "x{fill:var(--a)}\\n";') != ':root{--a:#fff}x{fill:var(--a)}':
        print('literals are not joined')
        return 1
    if not list(check_shades('x.c', 'enum { SHADE_MOST = 90 }; x("var(--a)");', shared, ({'a': '#2a6fc9'}, {'a': '#6aa5f0'}))):
        print('text on a strong colour')
        return 1
    if abs(contrast('#fff', '#000') - 21) > 1e-9:
        print('black on white')
        return 1
    return 0


if __name__ == '__main__':
    checks.main('contrast', check, self_test)

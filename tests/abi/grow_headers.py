# SPDX-License-Identifier: Apache-2.0
"""The contract as it will be after release 1.0: turns its headers into ABI 1.1, and into a 1.2 with additions.

In 1.2 every struct that begins with struct_size, and every descriptor, has one more member at its end; tables of
functions have one more function. Everything else is the text of the real headers, so the test covers new structs
without a change.
"""
import pathlib
import re

FUNCTION_TABLES = {'seqlstm_host', 'seqlstm_backend'}


def grow(text):
    """Returns (text with a member `grown` at the end of each struct that may grow, the names of those structs)."""
    names = []

    def one(match):
        name, body = match.group(1), match.group(2)
        first = re.sub(r'/\*.*?\*/', '', body, flags=re.S).split(';')[0].strip()
        grows = first == 'uint32_t struct_size' and name != 'seqlstm_desc' or first == 'struct seqlstm_desc head'
        if not grows:
            return match.group(0)
        names.append(name)
        member = 'int32_t (*grown)(void *context)' if name in FUNCTION_TABLES else 'uint64_t grown'
        return f'struct {name} {{{body}    {member};\n}};'

    text = re.sub(r'^struct (\w+) \{(.*?)^\};', one, text, flags=re.S | re.M)
    return re.sub(r'sizeof\(struct (seqlstm_\w+_desc)\) == (\d+)',
                  lambda m: f'sizeof(struct {m.group(1)}) == {int(m.group(2)) + 8}', text), names


def make(include, out, newer):
    """Writes the headers below `out`; returns the names of the structs with a new member."""
    grown = []
    for path in sorted(pathlib.Path(include).rglob('*.h')):
        text = path.read_text()
        if newer and not path.name.startswith('prim_loop'):
            text, names = grow(text)
            grown += names
        if path.name == 'backend.h':
            for name, value in (('MAJOR', '1u'), ('MINOR', '2u' if newer else '1u')):
                text, count = re.subn(rf'(#define SEQLSTM_ABI_{name}\s+)\w+', rf'\g<1>{value}', text)
                assert count == 1, name
            text = text.replace('seqlstm_backend_query_v0', 'seqlstm_backend_query_v1')
            if newer:
                text = text.replace('#define SEQLSTM_ABI_MAJOR', '#define SEQLSTM_GROWN 1\n#define SEQLSTM_ABI_MAJOR')
        target = pathlib.Path(out) / path.relative_to(include)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return grown

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules for additions to the ABI, tested with headers of two minors of major 1 (grow_headers.py): an older plugin
on a newer host and the reverse, under the address sanitizer if the compiler has it.

test_growth.py SOURCE BUILD COMPILER...
"""
import pathlib
import subprocess
import sys
import tempfile

import grow_headers

SOURCE, BUILD, COMPILER = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
HERE = SOURCE / 'tests' / 'abi'
# the loader and what it depends on: all of base
HOST = [HERE / 'growth_host.c', *sorted((SOURCE / 'core/base').rglob('*.c')),
        *(SOURCE / 'core/registry' / f'{name}.c' for name in (
            'kind/kind', 'kind/backend_kind', 'kind/elf', 'opening',
            'answer', 'host', 'instance', 'loader', 'mapped_files', 'objects', 'plugin', 'record', 'table',
            'watch/environment', 'watch/fp_state', 'watch/guard', 'watch/outlet', 'watch/plugin_text', 'watch/running',
            'watch/watch'))]
FLAGS = ['-std=c11', '-D_GNU_SOURCE', '-O0', '-w', f'-I{SOURCE / "core"}', f'-I{BUILD / "core"}', f'-I{HERE}']
HOST_FLAGS = ['-ffunction-sections', '-Wl,--gc-sections', '-pthread', '-ldl', '-lm']
SANITIZE = ['-fsanitize=address,undefined', '-fno-sanitize-recover=all']


def call(args):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    assert done.returncode == 0, f'{args[0]} … {args[-1]}: exit {done.returncode}\n{done.stderr[-4000:]}'
    return done.stdout


def has_sanitizer(folder):
    """Returns true if a program with the sanitizer can be built and run here."""
    source = folder / 'empty.c'
    source.write_text('int main(void) { return 0; }\n')
    made = subprocess.run(COMPILER + SANITIZE + [str(source), '-o', str(folder / 'empty')], capture_output=True)
    return made.returncode == 0 and subprocess.run([str(folder / 'empty')], capture_output=True).returncode == 0


def build(folder, flags):
    made = {}
    for age in ('older', 'newer'):
        include = folder / age
        grown = grow_headers.make(SOURCE / 'include', include, age == 'newer')
        if age == 'newer':
            for name in ('error', 'host', 'backend', 'answer', 'sizes', 'device_info', 'forward', 'step', 'axis',
                         'recurrent_desc', 'activation_desc'):
                assert f'seqlstm_{name}' in grown, f'{name} has not grown: {grown}'
        made[age] = folder / f'host_{age}'
        call(COMPILER + flags + FLAGS + [f'-I{include}'] + HOST + ['-o', made[age]] + HOST_FLAGS)
        plugins = [('plugin', '1')] + ([('demanding', '2')] if age == 'newer' else [])
        for kind, needed in plugins:
            made[f'{age} {kind}'] = folder / f'libseqlstm_backend_{kind}-{age}.so'
            call(COMPILER + flags + FLAGS + [f'-I{include}', f'-DNEEDED={needed}', '-fPIC', '-shared',
                                             '-fvisibility=hidden', '-Wl,--build-id', HERE / 'growth_plugin.c', '-o',
                                             made[f'{age} {kind}']])
    return made


def answers(host, plugin):
    return dict(line.split(' ', 1) for line in call([host, plugin]).splitlines())


BASIC = {'status': 'ok', 'plain': 'y 1', 'message': 'there is no device 5', 'blocks': '0'}


def check(made):
    both_old = answers(made['older'], made['older plugin'])
    assert both_old == {**BASIC, 'option': 'y 1'}, both_old

    # The host is newer: it answers no to descriptors that the plugin cannot read, and finds zeros in members that the
    # plugin did not fill.
    old_plugin = answers(made['newer'], made['older plugin'])
    refusal = old_plugin.pop('option')
    assert refusal.startswith('no ') and 'could not be honoured' in refusal, refusal
    assert old_plugin == {**BASIC, 'slot': '0', 'answer': '0', 'sizes': '0', 'device': '0'}, old_plugin

    # The plugin is newer: what the host does not have is off, and nothing is written behind the host's structs.
    new_plugin = answers(made['older'], made['newer plugin'])
    assert new_plugin == {**BASIC, 'option': 'y 1'}, new_plugin

    # Both are new: the host's new service (3) and the new option (twice) are used.
    both_new = answers(made['newer'], made['newer plugin'])
    assert both_new == {**BASIC, 'plain': 'y 3', 'option': 'y 6', 'slot': '7', 'answer': '7', 'sizes': '7',
                        'device': '7'}, both_new

    # A plugin that needs the newer host is refused, with both numbers, and loads on a host that is new enough.
    demanding = answers(made['older'], made['newer demanding'])
    assert demanding == {'status': 'it is built for ABI 1.2, this program has 1.1; use a build with the headers of this '
                                   'program'}, demanding
    assert answers(made['newer'], made['newer demanding'])['status'] == 'ok'


def main():
    with tempfile.TemporaryDirectory(prefix='seqlstm-growth-') as name:
        folder = pathlib.Path(name)
        sanitized = has_sanitizer(folder)
        check(build(folder, SANITIZE if sanitized else []))
        print('growth: fine', '(address sanitizer)' if sanitized else '(no address sanitizer on this machine)')


main()

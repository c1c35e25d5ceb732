#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plugins that lie, crash, end the process or change it (misdeeds.c): whatever a plugin does in whatever function, the
program names both, and nothing is wrong or lost with exit status 0.

By default each function and each misdeed is tried at least once; with MISDEEDS=all in the environment, each misdeed in
each function (a minute)."""
import os
import pathlib
import signal
import sys

sys.dont_write_bytecode = True
import harness
from harness import expect

MODEL = """seqlstm: 1
name: tiny
seed: 1
data:
  type: generator
  name: adding_problem
  length: [5, 8]
  train: {size: 32}
  valid: {size: 16}
  batch_size: 16
model:
  - {type: lstm, units: 4}
  - {type: dense, units: from_target}
train:
  loss: mse
  epochs: 2
backends:
  - {plugin: PLUGIN, require: true}
  - reference
dispatch: {policy: order}
"""

ALL = os.environ.get('MISDEEDS') == 'all'
LOADING = ['load', 'query', 'open']
WORKING = ['device_count', 'device_info', 'supports', 'op_create', 'op_sizes', 'op_bind', 'forward', 'backward',
           'binding_destroy', 'op_destroy', 'close']
# What the host undoes, and what it then says. While a plugin is loaded, the second list is a reason to refuse it.
HARMLESS = {'mask': 'signals are blocked', 'environment': 'variable HOME', 'no_environment': 'the environment',
            'umask': 'umask', 'limit': 'number of open files', 'timer': 'a timer that sends a signal', 'print': 'to stdout or stderr',
            'complain': 'to stdout or stderr'}
HARMFUL = {'flush': 'floating-point mode', 'x87': 'floating-point mode', 'round': 'floating-point mode',
           'handler': 'handler for signal', 'pipe': 'handler for signal', 'locale': 'the locale',
           'thread_locale': 'locale of its thread', 'folder': 'current folder', 'close': 'closed stderr',
           'close_all': 'closed stdin'}
if os.uname().machine != 'x86_64':
    del HARMFUL['flush'], HARMFUL['x87']
ENDS = {'crash': -signal.SIGSEGV, 'deep': -signal.SIGSEGV, 'abort': -signal.SIGABRT, 'exit': 1, '_exit': 1, 'quick_exit': 1, 'exec': 1,
        'thread_exit': 1}


def prepare(t):
    plugin = pathlib.Path(os.environ['SEQLSTM_BUILD']) / 'tests/cli/libseqlstm_backend_misdeeds.so'
    t.write('m.yaml', MODEL.replace('PLUGIN', str(plugin)))
    return str(plugin.parent)


def do(t, function, what, *args, rc=None):
    """Runs `seqlstm run`, or another command, with a misdeed. A failure of ours names it."""
    args = args or ('run', 'm.yaml', '--out', f'{function}-{what}', '--threads', '2')
    try:
        result = t.run(*args, rc=rc, env={'MISDEED': f'{function}:{what}', 'HOME': str(t.folder),
                                          'ASAN_OPTIONS': 'detect_leaks=0'})  # what a plugin leaks is its own
    except harness.Fail as reason:
        raise harness.Fail(f'{function}:{what}: {reason}') from None
    expect('\033' not in result.err and b'\033' not in result.out, f'{function}:{what}: a control character')
    return result


def says(result, function, what, *pieces):
    for piece in pieces:
        expect(piece in result.err, f'{function}:{what}: stderr does not say {piece!r}:\n{result.err[-1500:]}')


def pick(t, names, functions):
    """Pairs of function and misdeed: all of them, or so many that each name and each function is there once; under a
    sanitizer, which makes the program slow to start, a few."""
    if ALL:
        return [(f, n) for f in functions for n in names]
    names, count = list(names), 4 if t.sanitized else max(len(names), len(functions))
    return [(functions[k % len(functions)], names[k % len(names)]) for k in range(count)]


def test_without_a_misdeed_nothing_is_said(t):
    prepare(t)
    result = do(t, 'nothing', 'nothing', rc=0)
    expect('misbehaves' not in result.err and 'faulty' not in result.err, result.err)


def test_changes_are_undone_and_named(t):
    prepare(t)
    sound = do(t, 'nothing', 'nothing', rc=0)
    bits = t.read('nothing-nothing/final.safetensors')
    changes = {**HARMLESS, **HARMFUL}
    for function, what in pick(t, changes, WORKING):
        result = do(t, function, what, rc=0)
        says(result, function, what, f'the backend misdeeds misbehaves: its {function} ', changes[what])
        expect(result.out == sound.out, f'{function}:{what}: other output: {result.out!r}')
        if what != 'round':  # which its own results show
            expect(t.read(f'{function}-{what}/final.safetensors') == bits, f'{function}:{what}: other bits')
    result = do(t, 'member', 'flush' if 'flush' in HARMFUL else 'round', rc=0)
    says(result, 'member', 'mode', 'its forward changed the floating-point mode of a thread of the pool')


def test_changes_while_loading_refuse_what_could_do_harm(t):
    prepare(t)
    for function, what in pick(t, HARMLESS, LOADING):
        result = do(t, function, what, rc=0)
        word = {'load': 'constructor', 'query': 'query function', 'open': 'open'}[function]
        says(result, function, what, 'misdeeds', f'misbehaves: its {word} ', HARMLESS[what])
    for function, what in pick(t, HARMFUL, LOADING):
        result = do(t, function, what, rc=3)
        says(result, function, what, 'misdeeds', 'refused', HARMFUL[what])


def test_ends_are_named_and_no_success(t):
    folder = prepare(t)
    for function, what in pick(t, ENDS, LOADING + WORKING):
        if t.sanitized and what in ('crash', 'deep', 'abort'):
            continue  # the sanitizer reports them in its own way
        result = do(t, function, what, rc=ENDS[what])
        says(result, function, what, 'error[E0613]: the backend ', 'misdeeds', f'in its function {function}')
    for command in [['plan', 'm.yaml'], ['verify', 'm.yaml'], ['backends', '--backend-path', folder], ['eval', 'nothing-nothing', '--trust']]:
        if command[0] == 'eval':
            do(t, 'nothing', 'nothing', rc=0)
        result = do(t, 'open', 'exit', *command, rc=1).silent()
        says(result, 'open', 'exit', 'misdeeds', 'called exit() in its function open')
    # in a thread of its own, while none of its functions runs, or one of them does
    result = do(t, 'open', 'late_exit', 'run', 'm.yaml', '--out', 'late', '--set', 'train.epochs=100000', rc=1)
    says(result, 'open', 'late_exit', 'error[E0613]: ', 'misdeeds', 'called exit() while ')
    expect(not (t.folder / 'late/final.safetensors').exists(), 'the run ended before the exit')
    if not t.sanitized:
        do(t, 'forward', 'at_exit', rc=0)  # the program ends without what was registered for its end


def test_a_copy_of_the_program_ends(t):
    prepare(t)
    do(t, 'nothing', 'nothing', rc=0)
    bits = t.read('nothing-nothing/final.safetensors')
    for function in ('load', 'open', 'forward'):  # whose copy waits for threads that it lacks
        result = do(t, function, 'fork', rc=0)
        if function != 'forward':
            says(result, function, 'fork', 'error[E0613]: the backend ', 'misdeeds',
                 f'copied the program by fork(), and the copy ends: it returned in its function {function}')
        expect(t.read(f'{function}-fork/final.safetensors') == bits, f'{function}:fork: other bits')


def test_closed_files_end_the_program(t):
    prepare(t)
    for function in ('load', 'open', 'forward'):  # stderr is one of these files: there is nothing to read
        do(t, function, 'close_others', rc=1)
    do(t, 'nothing', 'nothing', rc=0)
    result = do(t, 'forward', 'close_stream', 'eval', 'nothing-nothing', '--trust', '--json', rc=1)
    says(result, 'forward', 'close_stream', 'its forward closed stdout', 'cannot write to stdout')


def test_lies_are_named(t):
    prepare(t)
    for function, what, *pieces in [
            ('op_create', 'null', 'its op_create returned OK but no operation'),
            ('op_bind', 'null', 'its op_bind returned OK but no binding'),
            ('op_sizes', 'most', 'its op_sizes asks for 18446744073709551615 bytes of workspace'),
            ('op_sizes', 'wrap', 'its op_sizes asks for 18446744073709551515 bytes of reserve'),
            ('op_sizes', 'huge', 'its op_sizes asks for 4611686018427387904 bytes of packed weights'),
            ('op_sizes', 'capture', 'its op_sizes sets capture to 77'),
            ('op_sizes', 'half', 'of workspace that its op_sizes asked for'),
            ('op_sizes', 'half_reserve', 'of reserve that its op_sizes asked for'),
            ('forward', 'beyond', 'of workspace that its op_sizes asked for'),
            ('forward', 'beyond_output', 'its forward wrote beyond its output `lstm_1.l0.forward.last`'),
            ('forward', 'change_input', 'its forward changed `input`, which it may only read'),
            ('backward', 'change_weight', 'its backward changed `lstm_1.l0.forward.w_x`, which it may only read'),
            ('forward', 'status', 'its forward returned 4711, which is no status')]:
        if not t.sanitized or ('asked for' not in pieces[0] and 'beyond' not in pieces[0]):
            says(do(t, function, what, rc=1), function, what, 'the backend misdeeds is faulty', *pieces)
    says(do(t, 'forward', 'nan', rc=5), 'forward', 'nan', 'no numbers come out of `lstm_1`, which misdeeds runs')
    t.write('deep.yaml', t.read('m.yaml').decode().replace('model:\n', 'model:\n  - {type: dense, units: 3}\n'))
    if not t.sanitized:
        result = do(t, 'backward', 'beyond_grad', 'run', 'deep.yaml', '--out', 'deep', rc=1)
        says(result, 'backward', 'beyond_grad', 'its backward wrote beyond the gradient of `dense_1`')
    # wrong numbers are no fault that a run can see: verify and conformance compare them with the reference
    result = do(t, 'forward', 'wrong', 'verify', 'm.yaml', rc=1)
    expect(b'lstm_1 on misdeeds:plain (train)' in result.out and b'(error 0.25,' in result.out, result.out)
    says(do(t, 'query', 'null', rc=3), 'query', 'null', 'misdeeds', 'its query function returned NULL')
    says(do(t, 'open', 'null', rc=3), 'open', 'null', 'misdeeds', 'its open returned OK but no instance')
    says(do(t, 'op_sizes', 'large', rc=6), 'op_sizes', 'large', 'no memory', 'of which lstm_1 on misdeeds takes 17592')
    if not t.sanitized:
        result = do(t, 'op_sizes', 'none')
        expect(result.rc in (1, -signal.SIGSEGV), f'op_sizes:none: exit {result.rc}: {result.err}')
        says(result, 'op_sizes', 'none', 'misdeeds')
    result = do(t, 'close', 'keep', rc=0)
    says(result, 'close', 'keep', 'the backend misdeeds misbehaves: after its close it still holds 4096 bytes')


def test_errors_name_the_plugin(t):
    prepare(t)
    for function in LOADING[2:] + WORKING[:-3]:
        result = do(t, function, 'error')
        expect(result.rc not in (0, None), f'{function}:error: exit {result.rc}')
        says(result, function, 'error', 'misdeeds', f'the {function} is out of order')
        if function in ('op_create', 'op_sizes'):
            says(result, function, 'error', f'the backend misdeeds failed in {function}: ')


def test_control_characters_do_not_reach_the_terminal(t):
    folder = prepare(t)
    for function in ('device_info', 'supports'):
        for command in [('plan', 'm.yaml'), ('plan', 'm.yaml', '--json'), ('backends', '--backend-path', folder, '-v'),
                        ('backends', '--backend-path', folder, '--json')]:
            result = do(t, function, 'escape', *command)
            expect(b'\\u001b' not in result.out, f'{function}: {command}: an escape in JSON')


harness.main(globals())

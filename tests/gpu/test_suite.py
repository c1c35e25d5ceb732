#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.sh and what it calls, on a machine without a GPU: time budgets, the cases, printing, resuming, profiles."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import types

sys.dont_write_bytecode = True
import cases
import layers
import processors
import profile_update
import recurrence
import tap
import timings

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get('SEQLSTM_BUILD', '.')).resolve()

# A program that knows `backends`, `conformance` and `run`, whose epochs take 500 updates of 2 ms.
PROGRAM = '''#!/usr/bin/env python3
import json, pathlib, sys
if sys.argv[1] == 'backends':
    print("cuda-generic  ok\\ncuda-cudnn  ok")
elif sys.argv[1] == 'conformance':
    print("level  pass fail crash skip unsupported\\nforward  7 0 0 0 2\\nbackward  5 0 0 1 2")
else:
    out = pathlib.Path(sys.argv[sys.argv.index('--out') + 1])
    out.mkdir()
    with open(pathlib.Path(sys.argv[0]).parent / 'calls', 'a') as calls:
        calls.write('run\\n')
    rows = [dict(split='train', span='epoch', update=500 * k, seconds=5 + k) for k in range(1, 7)]
    (out / 'metrics.jsonl').write_text(''.join(json.dumps(row) + '\\n' for row in rows))
    layer = dict(backend='cuda-generic', variant='resident')
    (out / 'summary.json').write_text(json.dumps(dict(layers=[layer], graphs=None)))
'''


def expect(got, expected, what):
    if got != expected:
        raise AssertionError(f'{what}: {got}, expected {expected}')


def make_program(folder):
    (folder / 'bin').mkdir()
    program = folder / 'bin/seqlstm'
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return program


def run_suite(folder, *arguments):
    for name in ('lib', 'tests'):
        (folder / name).mkdir(exist_ok=True)
    for file in HERE.glob('*.py'):
        shutil.copy(file, folder / 'tests')
    shutil.copy(HERE / 'run.sh', folder)
    with open(folder / 'tests/cases.py', 'a') as text:  # short texts, since nothing is trained
        text.write('UPDATES_MOST = UPDATES_LEAST = LENGTHS_UPDATES = 1\n')
    return subprocess.run([folder / 'run.sh', *arguments, folder / 'out'], capture_output=True, text=True)


def check_without_gpu(folder):
    for mode in ('--quick', '--full'):
        done = run_suite(folder, mode)
        expect(done.returncode, 3, f'exit status of {mode}: {done.stdout}{done.stderr}')
        results = json.loads((folder / 'out/results.json').read_text())
        expect(len(results['timings']['cases']), len(cases.list_cases(mode[2:])), f'timings of {mode}')
        if any('no CUDA plugin works here' not in step['exit'] for step in results['steps']):
            raise AssertionError(results['steps'])
        if 'not measured (0 of' not in (folder / 'out/results.md').read_text():
            raise AssertionError(f'{mode}: results.md has no bar')
    expect(run_suite(folder, '--fast').returncode, 2, 'exit status of an unknown flag')


def check_budget(folder):
    """With no time left nothing is begun, and all of it is reported."""
    make_program(folder)
    done = run_suite(folder, '--full', '--seconds', '0')
    steps = json.loads((folder / 'out/results.json').read_text())['steps']
    late = [step['name'] for step in steps if step['exit'] == 'not run: the time was over']
    expect(late, ['new-kernels', 'timings', 'recurrence', 'conformance-cuda-generic', 'conformance-cuda-cudnn', 'kit-times', 'profile', 'crossover',
                  'processors', 'train-cuda-generic', 'train-cuda-cudnn', 'layers'], f'steps without time: {done.stdout}{done.stderr}')
    expect((folder / 'bin/calls').exists(), False, 'a model was trained')


def check_quick(folder):
    make_program(folder)
    done = run_suite(folder, '--quick', '--seconds', '1000')
    results = json.loads((folder / 'out/results.json').read_text())
    steps = {step['name']: step for step in results['steps']}
    expect(next(iter(steps)), 'new-kernels', 'the first step')
    expect(steps['timings']['exit'], '0', done.stdout + done.stderr)
    expect(steps['layers']['exit'], '0', done.stdout + done.stderr)
    if ' f32 1120 ' in (folder / 'out/logs/layers.log').read_text() or 'cuda-cudnn bwd f32 32 512' not in done.stdout:
        raise AssertionError(f'steps of layers alone: {done.stdout}')
    expect(steps['conformance-cuda-cudnn']['note'], '12 passed, 0 failed, 1 skipped, 4 not supported', 'conformance')
    expect(len([line for line in done.stdout.splitlines() if ': 2000 us (spread 0 %)' in line]), cases.QUICK,
           f'lines of timings in\n{done.stdout}')


def check_cases(folder):
    """24, all different; --quick begins like --full, and --grid contains it."""
    full, grid = cases.list_cases('full'), cases.list_cases('grid')
    expect(len(full), 24, 'cases of --full')
    expect(len({timings.get_key(case) for case in grid}), len(grid), 'different cases')
    expect(cases.list_cases('quick'), full[:cases.QUICK], 'cases of --quick')
    expect(grid[:24], full, 'first cases of --grid')


def time_grid(folder, program, seconds, device):
    command = [sys.executable, HERE / 'timings.py', '--program', program, '--mode', 'quick', '--out', folder / 't.json',
               '--seconds', str(seconds), '--updates', '1', '--resume', folder / 'results.json', '--device', device]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    timed = json.loads((folder / 't.json').read_text())
    (folder / 'results.json').write_text(json.dumps({'device': 'a device', 'timings': timed}))
    calls = folder / 'bin/calls'
    return text, timed['cases'], len(calls.read_text().splitlines()) if calls.exists() else 0


def check_resume(folder):
    """What is measured is kept; what is not measured yet is measured by the next call, on the same device only."""
    program = make_program(folder)
    text, timed, calls = time_grid(folder, program, 0, 'a device')
    expect((calls, '0 of 8 cases are measured' in text), (0, True), 'a call without time')
    _, timed, calls = time_grid(folder, program, 1000, 'a device')
    expect((calls, {case['seqlstm']['ms'] for case in timed}), (8, {2.0}), 'the second call')
    results = json.loads((folder / 'results.json').read_text())
    results['timings']['cases'][3]['seqlstm'] = {'why': 'the time was over'}
    (folder / 'results.json').write_text(json.dumps(results))
    _, again, calls = time_grid(folder, program, 1000, 'a device')
    expect((calls, again), (9, timed), 'the third call')
    _, _, calls = time_grid(folder, program, 1000, 'another device')
    expect(calls, 17, 'calls on another device')


def check_leaky(folder):
    """A leaky ReLU without a clip diverges after some thirty updates, whatever computes it."""
    case = cases.make_case('option', 128, 2, option=cases.LEAKY)
    found = timings.time_seqlstm(BUILD / 'seqlstm', case, 'cpu-blas', updates=20)
    if not found.get('ms', 0) > 0:
        raise AssertionError(found)


def make_events(lengths, marker='optimize(cg_optimizer)'):
    """Updates of a marker of 2 us, a gap of 1, a kernel of 3 beside another that is 1 longer, then a gap up to the length."""
    events, at = [], 0
    for length in lengths:
        events += [(at, 2000, marker), (at + 3000, 3000, 'void product(cg_gemm)'), (at + 3000, 4000, 'copy')]
        at += length
    return sorted(events)


def check_profile(folder):
    """The median update of the second half; gaps between overlapping kernels; shares."""
    update, span = profile_update.find_update(make_events([90000] * 6 + [10000, 12000, 11000, 99000]), profile_update.OURS)
    found = profile_update.summarize(update, span)
    expect({key: found[key] for key in ('us', 'nodes', 'busy_us', 'idle_us', 'widest_gap_us', 'widest_gap_before')},
           {'us': 12.0, 'nodes': 3, 'busy_us': 9.0, 'idle_us': 6.0, 'widest_gap_us': 5.0,
            'widest_gap_before': 'optimize(cg_optimizer)'}, 'the update')
    expect(found['kernels'][1], {'name': 'product(cg_gemm)', 'count': 1, 'us': 3.0, 'share': 0.25}, 'a kernel')
    expect(profile_update.find_update(make_events([9000]), profile_update.OURS), None, 'one update')
    expect(profile_update.find_update(make_events([9000] * 9, 'other'), profile_update.OURS), None, 'no marker')


def check_library(folder):
    """profile_update.py trains through the C library, and hears why that fails."""
    library = profile_update.open_library(BUILD / 'core/libseqlstm.so')
    model, _ = cases.write_model(folder, cases.make_case('plain', 8, 2, 5), 'cpu-blas', 2, 3)
    expect(profile_update.train(library, model, folder / 'out'), '', 'training')
    layers_of = [name for call in profile_update.read_plan(folder / 'out') for name in call.split('+')]  # output and loss may be one call
    expect(sorted(layers_of), ['embedding_1', 'loss', 'lstm_1', 'output_1'], 'the plan')
    model.write_text(model.read_text().replace('lstm', 'lstn'))
    if 'lstn' not in profile_update.train(library, model, folder / 'out2'):
        raise AssertionError('a wrong model was trained')


def check_recurrence(folder):
    """Kernels of all steps are told from others by their names; what is not seen has a reason."""
    kernels = lambda forward, backward: {'kernels': [
        {'name': 'cluster_linked_forward<2, 256, 16>(cg_layer const*, cg_cluster_call)', 'us': forward},
        {'name': 'resident_scatter<2>(cg_layer const*, cg_resident_call)', 'us': backward},
        {'name': 'loss_backward(cg_loss, long, cg_live)', 'us': 7.0}, {'name': 'store_layer(cg_layer, cg_live)', 'us': 7.0}]}
    sums = [recurrence.sum_kernels(kernels(*us)) for us in ((50.0, 60.0), (155.0, 270.0))]
    expect(recurrence.get_slopes(*sums), {'forward': 1.0, 'backward': 2.0}, 'slopes')
    expect(recurrence.sum_kernels(kernels(0, 1)), {'why': 'the update has no such kernels'}, 'an update without kernels')
    expect(recurrence.get_slopes(sums[0], {'why': 'late'}), {'why': 'late'}, 'one number of steps')


def check_processors(folder):
    """The program is measured on both sides; without PyTorch that side says so."""
    arguments = types.SimpleNamespace(program=BUILD / 'seqlstm', plugin=['reference'], end=time.monotonic() + 60)
    processors.UPDATES = cases.UPDATES_MOST = 8
    row = processors.measure(arguments, None, 8, 2)
    for what in ('training', 'inference'):
        if not row[what]['gpu'].get('ms', 0) > 0 or not row[what]['cpu'].get('ms', 0) > 0:
            raise AssertionError(row)
    expect(row['training']['torch_cpu'], {'why': 'PyTorch is not installed'}, 'the side of PyTorch')


def check_slopes(folder):
    """A step is what is left of the difference: costs of a launch fall out."""
    answer = lambda steps, names: {'bench': [{'variant': name, 'median_ns': 7000 + 500 * steps, 'spread': 0.1} for name in names]}
    found = layers.get_slopes(answer(layers.SHORT, ['resident', 'cluster_8']), answer(layers.LONG, ['resident']))
    expect(found, {'resident': (0.5, 0.1)}, 'slopes')


TESTS = [('without a GPU', check_without_gpu), ('no time left', check_budget), ('--quick', check_quick), ('cases', check_cases),
         ('resume', check_resume), ('leaky ReLU', check_leaky), ('profile', check_profile), ('the C library', check_library),
         ('slopes', check_slopes), ('the recurrence', check_recurrence), ('GPU beside CPU', check_processors)]


if __name__ == '__main__':
    sys.exit(tap.run(TESTS))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels, gaps and shares of one update: seqlstm's, and that of PyTorch with the whole step in a CUDA graph.

profile_update.py --library libseqlstm.so --out FILE.json [--seconds S] [--count N]

Trains the plain cases of cases.py, most telling first, through the C library in this process, so that PyTorch's profiler
(CUPTI) sees the kernels of both. An update lasts from one kernel that runs once per update to its next run. Of the later
updates, the one of median length is shown.
"""
import argparse
import collections
import ctypes
import json
import pathlib
import sys
import tempfile
import time

import cases
import peers

OURS, THEIRS = ('optimize(',), ('nll_loss_forward', 'adam')
SHOWN, EPOCHS, UPDATES, REPLAYS = 9, 3, 40, 12
NOT_RUN = 77  # exit status: what this needs is not there


# ---- events of the device: (start, duration, name), in nanoseconds --------------------------------------------------------

def shorten(name):
    return name.replace('void ', '').replace('(anonymous namespace)::', '')[:72]


def find_marker(events, parts):
    """The name of the first kernel with one of the parts in it, or None."""
    names = dict.fromkeys(name for _, _, name in events)
    return next((name for part in parts for name in names if part in name.lower()), None)


def find_update(events, parts):
    """(events of the update of median length, its length) among those of the second half; None: there are too few."""
    marker = find_marker(events, parts)
    at = [k for k, event in enumerate(events) if event[2] == marker]
    spans = sorted((events[b][0] - events[a][0], a, b) for a, b in zip(at, at[1:]) if a >= at[len(at) // 2])
    if not spans:
        return None
    span, begin, end = spans[len(spans) // 2]
    return events[begin:end], span


def find_gaps(update, span):
    """[(length, name of the kernel behind it)] and the time in which at least one kernel ran."""
    gaps, covered, end = [], 0, update[0][0]
    for start, duration, name in update:
        if start > end:
            gaps.append((start - end, name))
        covered += max(0, start + duration - max(start, end))
        end = max(end, start + duration)
    last = update[0][0] + span
    return gaps + ([(last - end, update[0][2])] if last > end else []), covered


def summarize(update, span):
    gaps, covered = find_gaps(update, span)
    kernels = collections.OrderedDict()
    for _, duration, name in update:
        row = kernels.setdefault(shorten(name), [0, 0])
        row[0] += 1
        row[1] += duration
    widest = max(gaps, default=(0, ''))
    return {'us': span / 1e3, 'nodes': len(update), 'busy_us': sum(d for _, d, _ in update) / 1e3, 'idle_us': (span - covered) / 1e3,
            'widest_gap_us': widest[0] / 1e3, 'widest_gap_before': shorten(widest[1]),
            'kernels': [{'name': name, 'count': count, 'us': total / 1e3, 'share': total / span}
                        for name, (count, total) in sorted(kernels.items(), key=lambda item: -item[1][1])]}


def show(side, found):
    if 'why' in found:
        return f'  {side}: not measured: {found["why"]}'
    lines = [f'  {side}: {found["us"]:.1f} us, {found["nodes"]} nodes, busy {found["busy_us"]:.1f}, idle {found["idle_us"]:.1f}, '
             f'widest gap {found["widest_gap_us"]:.1f} before {found["widest_gap_before"]}']
    return '\n'.join(lines + [f'    {k["us"]:9.1f} us {100 * k["share"]:5.1f} %  x{k["count"]:<4d} {k["name"]}'
                              for k in found['kernels'][:SHOWN]])


# ---- the C library ---------------------------------------------------------------------------------------------------------

class Options(ctypes.Structure):
    """struct seqlstm_options of seqlstm/seqlstm.h"""
    _fields_ = [('struct_size', ctypes.c_uint32), ('flags', ctypes.c_uint32),
                ('overrides', ctypes.POINTER(ctypes.c_char_p)), ('override_count', ctypes.c_uint32),
                ('folder_count', ctypes.c_uint32), ('backend_folders', ctypes.c_void_p), ('backend', ctypes.c_char_p),
                ('out_dir', ctypes.c_char_p), ('threads', ctypes.c_int32), ('reserved0', ctypes.c_int32),
                ('context', ctypes.c_void_p), ('log', ctypes.c_void_p), ('stop', ctypes.c_void_p)]


class Error(ctypes.Structure):
    """struct seqlstm_error of seqlstm/status.h"""
    _fields_ = [('struct_size', ctypes.c_uint32), ('code', ctypes.c_int32), ('native_code', ctypes.c_int32),
                ('reserved0', ctypes.c_uint32), ('where', ctypes.c_char * 112), ('message', ctypes.c_char * 896)]


TRUST = 1


def open_library(path):
    library = ctypes.CDLL(str(path))
    library.seqlstm_close.argtypes = [ctypes.c_void_p]
    library.seqlstm_open_model.argtypes = [ctypes.c_char_p, ctypes.POINTER(Options), ctypes.c_void_p, ctypes.c_void_p]
    library.seqlstm_train.argtypes = [ctypes.c_void_p] * 4
    return library


def train(library, model, out):
    """Trains as `seqlstm run` does. Returns '' or what is wrong."""
    options, error, session = Options(), Error(), ctypes.c_void_p()
    options.struct_size, error.struct_size = ctypes.sizeof(Options), ctypes.sizeof(Error)
    options.flags, options.out_dir = TRUST, str(out).encode()
    status = library.seqlstm_open_model(str(model).encode(), ctypes.byref(options), ctypes.byref(session), ctypes.byref(error))
    if status == 0:
        status = library.seqlstm_train(session, None, None, ctypes.byref(error))
    library.seqlstm_close(session)
    return '' if status == 0 else f'status {status}: {error.message.decode(errors="replace")}'


# ---- both sides ------------------------------------------------------------------------------------------------------------

def read_events(profiler):
    """Kernels, copies and fills of the device, in the order in which they started."""
    def nanoseconds(event, name):
        return getattr(event, f'{name}_ns')() if hasattr(event, f'{name}_ns') else 1000 * getattr(event, f'{name}_us')()
    return sorted((nanoseconds(event, 'start'), nanoseconds(event, 'duration'), event.name())
                  for event in profiler.profiler.kineto_results.events() if str(event.device_type()).endswith('CUDA'))


def profile(torch, work, parts):
    """What an update of `work` consists of; `work` returns '' or what is wrong."""
    from torch.profiler import ProfilerActivity, profile as record
    try:
        with record(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
            why = work()
            torch.cuda.synchronize()
        found = None if why else find_update(read_events(profiler), parts)
    except Exception as error:  # whatever PyTorch says is the result
        return {'why': str(error).split('\n')[0][:200]}
    return summarize(*found) if found else {'why': why or 'no update was seen on the device'}


def read_plan(out):
    layers = json.loads((out / 'plan.json').read_text()).get('layers', [])
    return {layer['name']: f'{layer.get("backend", "")}:{layer.get("variant", "")}' for layer in layers}


def profile_ours(torch, library, case, backends):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model, _ = cases.write_model(folder, case, backends, EPOCHS, min(UPDATES, cases.count_updates(case)))
        found = profile(torch, lambda: train(library, model, folder / 'out'), OURS)
        if (folder / 'out/plan.json').exists():
            found['layers'] = read_plan(folder / 'out')
    return found


def profile_torch(torch, case):
    try:
        graph = peers.capture_step(torch, peers.make_step(torch, case, False))
    except Exception as error:  # whatever PyTorch says is the result
        return {'why': str(error).split('\n')[0][:200]}

    def replay():
        for _ in range(REPLAYS):
            graph.replay()
        return ''
    return profile(torch, replay, THEIRS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--library', required=True)
    parser.add_argument('--out', required=True)
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--backends', default='cuda-cudnn, cuda-generic')
    arguments = parser.parse_args()
    end, found = time.monotonic() + arguments.seconds, []
    try:
        import torch
    except ImportError:
        print('PyTorch, whose profiler this needs, is not installed')
        return NOT_RUN
    library = open_library(arguments.library)
    for case in [case for case in cases.list_full() if case['kind'] != 'lengths'][:arguments.count]:
        if end - time.monotonic() < 4:
            break
        result = {**case, 'seqlstm': profile_ours(torch, library, case, arguments.backends)}
        print(f'{cases.name_case(case)}\n{show("seqlstm", result["seqlstm"])}', flush=True)
        if case['kind'] == 'plain':
            result['torch_graph'] = profile_torch(torch, case)
            print(show('PyTorch in a graph', result['torch_graph']), flush=True)
        found.append(result)
        pathlib.Path(arguments.out).write_text(json.dumps(found, indent=1))
    return 0 if any('us' in result['seqlstm'] for result in found) else 1


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The profiler: what the emulated device has run meanwhile, and what graphs have replayed. The emulation knows the names of
kernels without their arguments, and those that `small` and others choose at run time it calls `kernel`; of these the first
of an update is that of the forward pass. SEQLSTM_EMULATION names its library."""
import ctypes
import os
import time
import types

ProfilerActivity = types.SimpleNamespace(CPU='CPU', CUDA='CUDA')
REPLAYED_NS = 1000
observer_type = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_double, ctypes.c_double)
emulation = ctypes.CDLL(os.environ['SEQLSTM_EMULATION'])
events = None  # those of the profile that runs


class Event:
    def __init__(self, name, begin_ns, end_ns):
        self.text, self.begin, self.end = name, int(begin_ns), int(end_ns)

    def name(self):
        return self.text

    def start_ns(self):
        return self.begin

    def duration_ns(self):
        return max(1, self.end - self.begin)

    def device_type(self):
        return 'DeviceType.CUDA'


def note(name):
    """A kernel that was replayed."""
    if events is not None:
        now = time.monotonic_ns()
        events.append(Event(name, now, now + REPLAYED_NS))


def name_kernel(name):
    """As a device names it."""
    if name == 'kernel':
        earlier = next((event.text for event in reversed(events) if event.text.startswith(('forward', 'optimize'))), '')
        name = 'backward' if earlier.startswith('forward') else 'forward'
    return f'{name.strip("()")}(cg_layer const*)'


@observer_type
def observe(kind, name, begin_ns, end_ns):
    if events is not None:
        events.append(Event(name_kernel(name.decode()) if kind == 1 else name.decode(), begin_ns, end_ns))


class profile:
    def __init__(self, activities):
        if not activities:
            raise ValueError('nothing to record')

    def __enter__(self):
        global events
        events = []
        emulation.emulated_observe(observe)
        return self

    def __exit__(self, *error):
        global events
        emulation.emulated_observe(None)
        found, events = events, None
        self.profiler = types.SimpleNamespace(kineto_results=types.SimpleNamespace(events=lambda: found))

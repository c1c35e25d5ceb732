# SPDX-License-Identifier: Apache-2.0
"""What the Trace Event Format asks of the events that the program writes, as Perfetto and chrome://tracing read them."""
import json
import re
from decimal import Decimal

COMMON = {'ph': str, 'pid': int, 'name': str}
PHASES = {  # of each phase, the keys beside the common ones
    'X': {'cat': str, 'tid': int, 'ts': Decimal, 'dur': Decimal, 'args': dict},
    'C': {'ts': Decimal, 'args': dict},
    'M': {'tid': int, 'args': dict},
}
METADATA = {'process_name', 'thread_name'}
UNITS = {'bytes', 'rows', 'backend'}  # of what an activity says about itself


def check(condition, message):
    if not condition:
        raise AssertionError(f'trace.json: {message}')


def read(text):
    """Numbers with a point as decimals: nanoseconds are not rounded."""
    return json.loads(text, parse_float=Decimal)


def check_types(event):
    check(event.get('ph') in PHASES, f'phase of {event}')
    keys = {**COMMON, **PHASES[event['ph']]}
    check(event.keys() == keys.keys(), f'keys of {event}')
    for key, kind in keys.items():
        check(isinstance(event[key], kind) and not isinstance(event[key], bool), f'{key} of {event}')
    check(event['name'], f'name of {event}')


def check_metadata(events):
    """Each process and thread is named once, and each of an event is named."""
    named = [(e['name'], e['pid'], e['tid'] if e['name'] == 'thread_name' else 0) for e in events if e['ph'] == 'M']
    check(all(name in METADATA for name, _, _ in named), f'names of metadata: {named}')
    check(len(set(named)) == len(named), f'a name is given twice: {named}')
    for e in events:
        check(('process_name', e['pid'], 0) in named, f'process of {e}')
        if e['ph'] == 'X':
            check(('thread_name', e['pid'], e['tid']) in named, f'thread of {e}')
        if e['ph'] == 'M':
            check(list(e['args']) == ['name'] and isinstance(e['args']['name'], str), f'arguments of {e}')


def check_nesting(events):
    """Complete events of a thread begin in order, and each lies within the one around it."""
    last, around = {}, {}
    for e in events:
        if e['ph'] != 'X':
            continue
        thread, begin, end = (e['pid'], e['tid']), e['ts'], e['ts'] + e['dur']
        ends = around.setdefault(thread, [])
        check(begin >= 0 and e['dur'] >= 0, f'times of {e}')
        check(begin >= last.get(thread, 0), f'{e} begins before the event ahead of it')
        last[thread] = begin
        while ends and ends[-1] <= begin:
            ends.pop()
        check(not ends or end <= ends[-1], f'{e} ends after the one around it')
        ends.append(end)
        check(all(isinstance(v, int) if k != 'backend' else isinstance(v, str) for k, v in e['args'].items())
              and e['args'].keys() <= UNITS, f'arguments of {e}')


def check_counters(events):
    """Values of a counter are numbers with one series, in the order of time."""
    last = {}
    for e in events:
        if e['ph'] != 'C':
            continue
        series, = e['args'].items()
        check(isinstance(series[1], (int, Decimal)), f'value of {e}')
        key = (e['pid'], e['name'])
        check(last.get(key, (series[0], 0)) <= (series[0], e['ts']), f'{e}: order or series')
        last[key] = (series[0], e['ts'])


def check_trace(text):
    """Raises AssertionError; returns the events."""
    trace = read(text)
    check(trace.keys() == {'displayTimeUnit', 'traceEvents'}, trace.keys())
    check(trace['displayTimeUnit'] in ('ms', 'ns'), trace['displayTimeUnit'])
    check(not re.search(r'"(?:ts|dur)": -|\b(?:NaN|Infinity)\b', text), 'numbers')
    events = trace['traceEvents']
    for event in events:
        check_types(event)
    check_metadata(events)
    check_nesting(events)
    check_counters(events)
    return events

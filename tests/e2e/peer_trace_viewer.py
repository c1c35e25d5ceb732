#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peer_trace_viewer.py PROGRAM CATAPULT [TRACE...]: the importer of chrome://tracing reads trace.json without a warning.

CATAPULT: a checkout of https://github.com/catapult-project/catapult, where the viewer of chrome://tracing comes from. Its
importer runs in headless Chromium; every event must arrive with its name, thread, begin, duration and parent. Of a run that
is made here, or of each TRACE. Needs the program `chromium`, so it is in no suite. Ends with status 1 if an event is lost."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from devtools import Page

MODULES = ['tracing.importer.import', 'tracing.extras.importer.trace_event_importer', 'tracing.model.model']
GENERATE = f"""import sys; sys.path.insert(0, '.'); import tracing_project; tracing_project.UpdateSysPathIfNeeded()
from py_vulcanize import generate
sequence = tracing_project.TracingProject().CreateVulcanizer().CalcLoadSequenceForModuleNames({MODULES})
sys.stdout.write(generate.GenerateStandaloneHTMLAsString(sequence, title='importer', flattened_js_url=None))"""
READ = """(() => { const m = new tr.Model(); new tr.importer.Import(m).importTraces([%s]);
const slices = [], counters = {};
for (const p of m.getAllProcesses()) {
  for (const t of Object.values(p.threads)) for (const s of t.sliceGroup.slices)
    slices.push([p.name, t.name, s.title, s.start, s.duration, s.parentSlice ? s.parentSlice.title : null, s.didNotFinish]);
  for (const c of Object.values(p.counters)) counters[p.name + ':' + c.name] = c.numSamples; }
return JSON.stringify({warnings: m.importWarnings.map(w => w.type + ': ' + w.message), slices, counters, unit: m.intrinsicTimeUnit.unitName}); })()"""


def make_importer(catapult):
    """The page with the importer alone: without the viewer, whose elements today's browsers do not have."""
    page = subprocess.run([sys.executable, '-c', GENERATE], cwd=catapult / 'tracing', capture_output=True, text=True, check=True).stdout
    page = re.sub(r'tr\.isHeadless = .*;', 'tr.isHeadless = true;', page, count=1)
    return re.sub(r'(?m)^  (global\.window = \{\}|delete global\.window);$', '', page)


def list_expected(events):
    """[process, thread, name, begin in ms, duration in ms, parent], and samples of each counter."""
    processes = {e['pid']: e['args']['name'] for e in events if e['name'] == 'process_name'}
    threads = {(e['pid'], e['tid']): e['args']['name'] for e in events if e['name'] == 'thread_name'}
    slices, counters, around = [], {}, {}
    for e in events:
        if e['ph'] == 'C':
            key = f'{processes[e["pid"]]}:{e["name"]}'
            counters[key] = counters.get(key, 0) + 1
        if e['ph'] != 'X':
            continue
        open_slices = around.setdefault((e['pid'], e['tid']), [])
        while open_slices and open_slices[-1][0] <= e['ts'] + 1e-6:
            open_slices.pop()
        slices.append([processes[e['pid']], threads[(e['pid'], e['tid'])], e['name'], e['ts'] / 1e3, e['dur'] / 1e3,
                       open_slices[-1][1] if open_slices else None])
        open_slices.append((e['ts'] + e['dur'], e['name']))
    return slices, counters


def check(page, path):
    text = path.read_text()
    got = json.loads(page.evaluate(READ % json.dumps(text)))
    slices, counters = list_expected(json.loads(text)['traceEvents'])
    first = min(s[3] for s in slices)  # the importer moves the first event to 0
    shift = first - min(s[3] for s in got['slices'])
    order = lambda s: (s[0], s[1], s[3], -s[4], s[2])
    wrong = [(a, b) for a, b in zip(sorted(slices, key=order), sorted(got['slices'], key=order))
             if a[:3] != b[:3] or a[5] != b[5] or abs(a[3] - shift - b[3]) > 1e-5 or abs(a[4] - b[4]) > 1e-5 or b[6]]
    fine = not got['warnings'] and len(slices) == len(got['slices']) and not wrong and counters == got['counters']
    print(f'{path}: {len(slices)} events, {len(counters)} counters: '
          + ('all read' if fine else f'BROKEN: {got["warnings"]}, {len(got["slices"])} read, {wrong[:3]}, {got["counters"]}'))
    return fine


def main():
    program, catapult = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    traces = [pathlib.Path(a) for a in sys.argv[3:]]
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        (folder / 'importer.html').write_text(make_importer(catapult))
        if not traces:
            subprocess.run([program, 'new', 'model', 'tag'], cwd=folder, check=True)
            subprocess.run([program, 'run', 'tag/model.yaml', '-q', '--out', 'run', '--profile'], cwd=folder, check=True)
            traces = [folder / 'run/trace.json']
        with Page('about:blank') as page:
            page.call('Page.navigate', url=f'file://{folder}/importer.html')
            for _ in range(100):
                if page.evaluate('typeof tr !== "undefined" && typeof tr.Model === "function"'):
                    break
                time.sleep(0.1)
            fine = [check(page, trace) for trace in traces]
    sys.exit(0 if all(fine) else 1)


main()

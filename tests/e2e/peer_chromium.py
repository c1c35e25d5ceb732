#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peer_chromium.py PROGRAM [--pictures DIR]: every page that the program writes, in headless Chromium.

At 390 and 1280 pixels, with scripts and without, no page may be wider than the window, each must show its words, and no key
in a table may be broken into more than three lines. Pages:
the report of a tagger, of a classifier and of a regression with a profile, `watch`, `runs --html`, `data stats --html`, `profile
--html`, and the page of a server. Needs the program `chromium`, so it is in no suite. `--pictures` keeps a picture of each,
light and dark, to be looked at. Ends with status 1 if a page is too wide."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli/serve'))
from serving import serve_new

FRAME = """<!doctype html><body style="margin:0"><iframe id="page" src="{page}" style="border:0;width:{width}px;height:3000px"
{sandbox}></iframe><pre id="said"></pre><script>document.getElementById('page').onload = function () {{
var d = document.getElementById('page').contentDocument, e = d.documentElement;
document.getElementById('said').textContent = 'wide ' + e.scrollWidth + ' high ' + e.scrollHeight + ' shown ' +
d.body.innerText.length + ' key ' + Math.max(0, ...Array.from(d.querySelectorAll('td code'), c => c.offsetHeight)); }}</script>"""
NO_SCRIPTS = 'sandbox="allow-same-origin"'


def call(program, folder, *args):
    done = subprocess.run([program, *map(str, args)], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'{args}: {done.stderr[-600:]}')
    return done


def fetch(address, has, out):
    """Keeps the page as soon as `has` is in it."""
    request = urllib.request.Request(address, headers={'Accept': 'text/html'})
    page = b''
    while has not in page:
        page = urllib.request.urlopen(request, timeout=20).read()
        time.sleep(0.1)
    out.write_bytes(page)


def fetch_run(program, folder, out):
    """The page of a run that is under way."""
    args = ['run', 'model.yaml', '--watch-port', '0', '--set', 'train.epochs=100000']
    process = subprocess.Popen([program, *args], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        for line in process.stderr:
            found = re.search(r'watch it at (http://\S+)', line)
            if found:
                fetch(found.group(1), b'<circle', out)
                return
        sys.exit(f'{args}: no address')
    finally:
        process.terminate()
        process.wait()


def write_pages(program, work, pages):
    for kind in ('tag', 'classify', 'regress'):
        call(program, work, 'new', 'model', kind)
        folder = work / kind
        call(program, folder, 'run', 'model.yaml', '-q', '--profile=10')
        (pages / f'report-{kind}.html').write_bytes((folder / f'runs/{kind}/001/report.html').read_bytes())
        call(program, folder, 'data', 'stats', 'model.yaml', '--html', pages / f'data-{kind}.html')
    for rate in ('1e-3', '1e-2'):
        call(program, folder, 'run', 'model.yaml', '-q', '--set', f'train.optimizer.learning_rate={rate}')
    call(program, folder, 'runs', '--html', pages / 'runs.html')
    call(program, folder, 'profile', 'model.yaml', '--seconds', '0', '--html', pages / 'profile.html')
    with serve_new(program, 'regress') as server:
        fetch(f'http://{server.host}:{server.port}/', b'<table', pages / 'serve.html')
    fetch_run(program, folder, pages / 'watch.html')


def browse(*args):
    return subprocess.run(['chromium', '--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars',
                           '--allow-file-access-from-files', '--virtual-time-budget=3000', *args],
                          capture_output=True, text=True, timeout=120).stdout


def check(page, width, sandbox):
    frame = page.parent / 'frame.htm'
    frame.write_text(FRAME.format(page=page.name, width=width, sandbox=sandbox))
    found = re.search(r'wide (\d+) high (\d+) shown (\d+) key (\d+)', browse('--dump-dom', f'file://{frame}'))
    wide, high, shown, key = map(int, found.groups()) if found else (0, 0, 0, 0)
    fine = 0 < wide <= width and shown > 100 and key < 80
    print(f'{page.stem:16} {width:5} {"no scripts" if sandbox else "scripts   "}  {wide} wide, {shown} letters, keys of {key}'
          + ('' if fine else '  BROKEN'))
    return fine, high


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program', type=pathlib.Path)
    parser.add_argument('--pictures', type=pathlib.Path)
    options = parser.parse_args()
    fine = True
    with tempfile.TemporaryDirectory() as path:
        work, pages = pathlib.Path(path), pathlib.Path(path) / 'pages'
        pages.mkdir()
        write_pages(options.program.resolve(), work, pages)
        for page in sorted(pages.glob('*.html')):
            for width in (390, 1280):
                for sandbox in (NO_SCRIPTS, ''):
                    good, high = check(page, width, sandbox)
                    fine = fine and good
                for scheme, number in (('light', 1), ('dark', 0)) if options.pictures else ():
                    options.pictures.mkdir(exist_ok=True)
                    browse(f'--window-size={max(width, 500)},{min(high, 4000)}',
                           f'--blink-settings=preferredColorScheme={number}',
                           f'--screenshot={options.pictures.resolve()}/{page.stem}-{width}-{scheme}.png',
                           f'file://{page.parent}/frame.htm')
    sys.exit(0 if fine else 1)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--watch-port: the page of a run while it grows, at an address that cannot be guessed."""
import re
import signal
import socket
import sys
import pathlib
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'cli'))
import harness
from harness import ENDLESS, TINY, expect, wait_for


def ask(address, headers={}):
    """The status and the page."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=20) as reply:
            return reply.status, reply.read().decode(), dict(reply.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


def read_address(process):
    """What the program says on stderr."""
    while True:
        line = process.stderr.readline().decode()
        expect(line, 'the program says no address')
        found = re.match(r'watch it at (http://127\.0\.0\.1:\d+/([0-9a-f]{32})/)\n', line)
        if found:
            return found.groups()


def test_run(t):
    t.write('m.yaml', ENDLESS + 'log: {every: 1u}\n')
    process = t.start('run', 'm.yaml', '--watch-port', '0', '-q')
    address, token = read_address(process)
    wait_for(lambda: 'circle' in ask(address)[1], 'curves')
    status, page, headers = ask(address)
    expect(status == 200 and 'runs/tiny/001' in page and headers['Refresh'] and headers['Cache-Control'] == 'no-store', headers)
    for wrong in (address.replace(token, '0' * 32), address[:-1], address.replace(token, token[:-1]), address + 'x',
                  address.replace(token + '/', '')):
        status, page, _ = ask(wrong)
        expect(status == 404 and token not in page and 'tiny' not in page, f'{wrong}: {status}')
    expect(ask(address, {'Host': 'example.com'})[0] == 404, 'a page of another site (DNS rebinding)')
    other = socket.socket(socket.AF_INET6)
    port = int(address.split(':')[2].split('/')[0])
    expect(other.connect_ex(('::', port)) != 0, 'only on the loopback')
    other.close()
    t.refuse(1, 'run', 'm.yaml', '--watch-port', str(port), '--out', 'second').says(str(port))
    expect(not (t.folder / 'second').exists(), 'nothing was started')
    t.stop(process, signal.SIGINT, 130)


def test_a_run_that_goes_on(t):
    """Its report is that of the training before, and is not shown as long as it grows."""
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '-q', '--set', 'train.epochs=1')
    report = t.folder / 'runs/tiny/001/report.html'
    before = report.read_text()
    process = t.start('resume', 'tiny', '--set', 'train.epochs=100000', '--watch-port', '0', '-q')
    address, _ = read_address(process)
    wait_for(lambda: 'runs/tiny/001' in ask(address)[1], 'the page of the run')
    page = ask(address)[1]
    expect(page != before and re.search(r'<p>live, epoch [1-9]', page), page[:400])
    t.stop(process, signal.SIGINT, 130)
    expect(report.read_text() != before, 'the end writes another report')


def test_watch(t):
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '-q')
    done = t.run('watch', 'tiny', '--once', '--watch-port', '0')
    expect(re.search(r'watch it at http://127\.0\.0\.1:\d+/[0-9a-f]{32}/', done.err), done.err)
    t.refuse(2, 'watch', 'tiny', '--watch-port', '70000').says('--watch-port')


harness.main(globals())

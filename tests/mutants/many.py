#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which of many bugs, all planted in one build, do the tests notice?

many.py setup SOURCE BUILD [-j N]   sets BUILD up with many-cc, which includes bug.h, and builds it
many.py record BUILD                runs every test once without a bug: how long it takes, and which bugs it comes by
many.py hunt BUILD                  runs the tests, the quickest first, with the bugs that they come by
many.py report BUILD                a line for each bug: the test that noticed it, `missed`, or `never reached`
many.py expand SOURCE BASE [N=TEST ...]
                                    prints bugs as *.txt of this folder has them, with the sources of commit BASE as `-` lines

A bug is written into a source as bug.h says: `BUG(number, buggy, right)`. In Python it is the same, where both values
can be computed, and `bug_is(number)` elsewhere. A test that passes with all the bugs in force that it comes by notices
none of them; where it fails, it is run with halves of them until each one that it notices is known. A bug counts as
noticed when a test has failed twice with that bug alone. Tests of the suite `lint` are left out.

What is known is in BUILD/bugs, a line for each run, so that `record` and `hunt` go on where they stopped: --seconds ends
them after so long, --suite and --test limit them, --longest leaves out slower tests.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
COUNT = 4096  # BUG_COUNT of bug.h
OPTIONS = ['-Dtests=true', '-Dcuda-generic=disabled']
ENOUGH = ('OK', 'skipped')


class Test:
    """A test of Meson, or one case of a file of tests/cli/harness.py, so that a slow file is not run for one of its cases."""

    def __init__(self, described, name, case=None):
        self.whole, self.name = name, f'{name}:{case}' if case else name
        self.suites = [suite.split(':')[-1] for suite in described['suite']]
        self.command, self.variables = described['cmd'] + (['--only', case] if case else []), described['env']
        self.folder, self.limit, self.tap = described['workdir'], described['timeout'], described['protocol'] == 'tap'


class State:
    """BUILD/bugs: runs.jsonl has a line for each run of a test: its bugs in force, its result, its time, what it reached."""

    def __init__(self, build):
        self.build, self.folder = build, build / 'bugs'
        self.folder.mkdir(exist_ok=True)
        self.lock = threading.Lock()
        self.seconds, self.reached, self.clean = {}, {}, {}
        self.passed, self.failed, self.noticed = set(), collections.Counter(), {}
        path, self.file = self.folder / 'runs.jsonl', None
        for line in path.read_text().splitlines() if path.exists() else []:
            self.learn(json.loads(line))
        self.file = path.open('a')

    def learn(self, run):
        test = run['test']
        if not run['bugs']:
            self.seconds[test], self.reached[test] = run['seconds'], set(run['reached'])
            self.clean[test] = run['result']
        elif run['result'] in ENOUGH:
            self.passed |= {(test, bug) for bug in run['bugs']}
        elif len(run['bugs']) == 1:
            bug = run['bugs'][0]
            self.failed[test, bug] += 1
            if self.failed[test, bug] == 2 and bug not in self.noticed:
                self.noticed[bug] = test
                if self.file:
                    print(f'{bug:5} noticed by {test}', flush=True)

    def note(self, **run):
        with self.lock:
            self.file.write(json.dumps(run) + '\n')
            self.file.flush()
            self.learn(run)

    def pending(self, test):
        return sorted(bug for bug in self.reached.get(test, ())
                      if bug not in self.noticed and (test, bug) not in self.passed)


def read_tests(build):
    done = subprocess.run(['meson', 'introspect', build, '--tests'], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    times = collections.Counter(described['name'] for described in found)
    tests = []
    for described in found:
        name = described['name']
        if times[name] > 1:
            name = f'{described["suite"][0].split(":")[-1]}/{name}'
        tests += [Test(described, name, case) for case in read_cases(described['cmd']) or [None]]
    return [test for test in tests if 'lint' not in test.suites]


def read_cases(command):
    """The cases of a file of tests/cli/harness.py; [] of any other test."""
    for path in (pathlib.Path(word) for word in command if word.endswith('.py')):
        text = path.read_text() if path.is_file() else ''
        if 'harness.main(globals())' in text:
            return re.findall(r'^def (test_\w+)\(t\)', text, re.MULTILINE)
    return []


def read_times(path):
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    return {run['name'].split(' / ')[-1]: run['duration'] for run in runs}


def run_test(state, test, bugs, seconds):
    """Runs a test with these bugs in force, and notes the result. A process group of its own ends with it."""
    if not os.access(test.command[0], os.X_OK):
        state.note(test=test.name, bugs=bugs, result='failed: not built', seconds=0, reached=[])
        return False
    log_path = state.folder / f'{test.name.replace("/", ".")}.log'
    reached = log_path.with_suffix(f'.{os.getpid()}.{threading.get_ident()}')
    reached.write_bytes(bytes(COUNT))
    reached.chmod(0o666)
    variables = {**os.environ, 'MALLOC_PERTURB_': '165', **test.variables, 'SEQLSTM_BUG': ','.join(map(str, bugs)),
                 'SEQLSTM_BUG_REACHED': str(reached)}
    variables['PYTHONPATH'] = os.pathsep.join(filter(None, [str(HERE / 'python'), variables.get('PYTHONPATH')]))
    start = time.monotonic()
    with log_path.open('wb') as log:
        process = subprocess.Popen(test.command, cwd=test.folder or state.build, env=variables, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = 'late'
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    took = time.monotonic() - start
    text = log_path.read_bytes()
    result = {0: 'OK', 77: 'skipped'}.get(status, f'failed: {status}')
    if test.tap and re.search(rb'^(not ok\b|Bail out!)', text, re.MULTILINE):
        result = 'failed: not ok'
    found = [number for number, byte in enumerate(reached.read_bytes()) if byte]
    reached.unlink()
    state.note(test=test.name, bugs=bugs, result=result, seconds=round(took, 3), reached=found)
    return result in ENOUGH


def hunt_with(state, test, late):
    """Finds what a test notices of the bugs that it comes by."""
    groups = [state.pending(test.name)]
    limit = 10 + 4 * state.seconds[test.name]
    while groups and not late():
        group = [bug for bug in groups.pop() if bug not in state.noticed]
        if not group or run_test(state, test, group, limit):
            continue
        if len(group) > 1:
            groups += [group[len(group) // 2:], group[:len(group) // 2]]
        elif run_test(state, test, group, limit):
            print(f'{group[0]:5} failed once only in {test.name}', flush=True)


def each(tests, work, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(work, test) for test in tests]:
            done.result()


def record(state, tests, options, late):
    def work(test):
        if test.name not in state.clean and not late():
            if not run_test(state, test, [], 3 * test.limit):
                print(f'{test.name} {state.clean[test.name]} without a bug, and is not used', flush=True)
    each(tests, work, options.jobs)
    left = [test.name for test in tests if test.name not in state.clean]
    print(f'{len(tests) - len(left)} of {len(tests)} tests are recorded')
    return 1 if left else 0


def hunt(state, tests, options, late):
    usable = [test for test in tests if state.clean.get(test.name) == 'OK']
    each(usable, lambda test: None if late() else hunt_with(state, test, late), options.jobs)
    left = sum(len(state.pending(test.name)) > 0 for test in usable)
    print(f'{left} tests are left, {len(state.noticed)} bugs are noticed')
    return 1 if left else 0


def planted(source):
    """The bugs of the sources: number, file and line."""
    done = subprocess.run(['git', '-C', source, 'grep', '-nP', r'\b(BUG|bug_is)\(\d+', '--', '*.[ch]', '*.py', '*.in'],
                          capture_output=True, text=True)
    found = {}
    for line in done.stdout.splitlines():
        file, number, text = line.split(':', 2)
        if not file.startswith('tests/mutants/'):
            for bug in re.findall(r'\b(?:BUG|bug_is)\((\d+)', text):
                found.setdefault(int(bug), (file, int(number)))
    return dict(sorted(found.items()))


def report(state, tests, source):
    bugs = planted(source)
    counts = collections.defaultdict(collections.Counter)
    for bug, (file, line) in bugs.items():
        by = [test.name for test in tests if bug in state.reached.get(test.name, ())]
        open_tests = [test.name for test in tests if bug in state.pending(test.name) and state.clean[test.name] == 'OK']
        verdict = 'noticed' if bug in state.noticed else 'never reached' if not by else 'open' if open_tests else 'missed'
        folder = '/'.join(pathlib.Path(file).parts[:2])
        counts[folder][verdict] += 1
        more = state.noticed.get(bug, f'{len(by)} tests come by, {len(open_tests)} to be run')
        print(f'{bug:5} {verdict:14} {file}:{line}  {more}')
    total = collections.Counter()
    for folder, count in sorted(counts.items()):
        total += count
        print(f'{folder:24} {count["noticed"]} of {sum(count.values())}')
    print(f'{len(bugs)} bugs: ' + ', '.join(f'{count} {verdict}' for verdict, count in total.most_common()))
    return 0


def setup(source, build, options):
    if not (build / 'build.ninja').exists():
        compilers = {name: f'{HERE / "many-cc"} {os.environ.get(name, default)}' for name, default in (('CC', 'cc'), ('CXX', 'c++'))}
        subprocess.run(['meson', 'setup', build, source, *OPTIONS], check=True, env={**os.environ, **compilers})
    return subprocess.run(['ninja', '-C', build, f'-j{options.jobs}']).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('command', choices=['setup', 'record', 'hunt', 'report', 'expand'])
    parser.add_argument('folders', nargs='+')
    parser.add_argument('-j', '--jobs', type=int, default=2)
    parser.add_argument('--seconds', type=float, default=float('inf'))
    parser.add_argument('--longest', type=float, default=float('inf'), help='tests that take longer are left out')
    parser.add_argument('--times', type=pathlib.Path, help='testlog.json of an earlier `meson test`, until tests are recorded')
    parser.add_argument('--suite', action='append', default=[])
    parser.add_argument('--test', action='append', default=[])
    options = parser.parse_args()
    if options.command == 'expand':
        import expand
        return expand.print_mutants(pathlib.Path(options.folders[0]), options.folders[1], options.folders[2:])
    if options.command == 'setup':
        return setup(pathlib.Path(options.folders[0]).resolve(), pathlib.Path(options.folders[1]).resolve(), options)
    build = pathlib.Path(options.folders[0]).resolve()
    state = State(build)
    earlier = read_times(options.times) if options.times else {}
    tests = [test for test in read_tests(build)
             if (not options.suite or set(test.suites) & set(options.suite))
             and (not options.test or test.name in options.test or test.whole in options.test)
             and state.seconds.get(test.name, earlier.get(test.whole, 0)) <= options.longest]
    tests.sort(key=lambda test: state.seconds.get(test.name, earlier.get(test.whole, test.limit)))
    end = time.monotonic() + options.seconds
    if options.command == 'report':
        done = subprocess.run(['meson', 'introspect', build, '--buildsystem-files'], capture_output=True, text=True, check=True)
        source = pathlib.Path(json.loads(done.stdout)[0])
        while not (source / 'core').is_dir():
            source = source.parent
        return report(state, tests, source)
    return (record if options.command == 'record' else hunt)(state, tests, options, lambda: time.monotonic() > end)


if __name__ == '__main__':
    sys.exit(main())

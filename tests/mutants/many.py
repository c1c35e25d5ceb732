#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which of many bugs, all planted in one build, do the tests notice?

many.py plant SOURCE COUNT FOLDER ...   plants COUNT bugs in these folders of SOURCE, as plant.py chooses them; --errors: in error paths
many.py setup SOURCE BUILD [-j N]   sets BUILD up with many-cc, which includes bug.h, and builds it
many.py hunt BUILD                  runs the tests, the quickest first, with the bugs that they come by
many.py report BUILD                a line for each bug: the test that noticed it, `missed`, `open`, or `never reached`
many.py expand SOURCE BASE [N=TEST ...]
                                    prints bugs as *.txt of this folder has them, with the sources of commit BASE as `-` lines

A bug is written into a source as bug.h says: `BUG(number, buggy, right)`. In Python it is the same, where both values
can be computed, and `bug_is(number)` elsewhere. A test that passes with all bugs in force that are not yet noticed
notices none of them. Where it fails, it is run once without a bug, which tells by which bugs it comes, and then with
halves of these until each one that it notices is known. A bug counts as noticed when a test has failed twice with that
bug alone. Tests of the suite `lint` are left out.

What is known is in BUILD/bugs, a line for each run, so that `hunt` goes on where it stopped, and several of them share
the tests: --seconds ends one after so long, --suite, --without and --test choose tests, --longest leaves out slower ones.
"""
import argparse
import collections
import concurrent.futures
import fcntl
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
running = set()  # process groups of tests


class Test:
    """A test of Meson, or one case of a file of tests/cli/harness.py, so that a slow file is not run for one of its cases."""

    def __init__(self, described, name, case=None):
        self.whole, self.name = name, f'{name}:{case}' if case else name
        self.suites = [suite.split(':')[-1] for suite in described['suite']]
        self.command, self.variables = described['cmd'] + (['--only', case] if case else []), described['env']
        self.folder, self.limit, self.tap = described['workdir'], described['timeout'], described['protocol'] == 'tap'


class State:
    """BUILD/bugs: runs.jsonl has a line for each run of a test: its bugs in force, its result, its time, what it reached.
    Several processes add lines to it."""

    def __init__(self, build):
        self.build, self.folder = build, build / 'bugs'
        self.folder.mkdir(exist_ok=True)
        self.lock = threading.Lock()
        self.seconds, self.reached, self.clean = {}, {}, {}
        self.planted, self.asked = set(), {}  # the bugs that are there, and for each test those of which it is known whether it comes by
        self.passed, self.failed, self.noticed = set(), collections.Counter(), {}
        self.file, self.read_bytes, self.speaks = (self.folder / 'runs.jsonl').open('a+b'), 0, False
        self.follow()
        self.speaks = True

    def follow(self):
        """Learns what was added since."""
        self.file.seek(self.read_bytes)
        for line in self.file.read().splitlines(keepends=True):
            if not line.endswith(b'\n'):
                break
            self.read_bytes += len(line)
            self.learn(json.loads(line))

    def learn(self, run):
        """A test that passes with all bugs in force is as good as one that passes without."""
        test = run['test']
        if not run['bugs'] or run['result'] in ENOUGH:
            asked = self.asked.setdefault(test, set())
            new = set(run.get('planted', ())) - asked
            asked |= new
            if test in self.reached:  # bugs were added since it was first run
                self.reached[test] |= new & set(run['reached'])
        if not run['bugs'] or (test not in self.clean and run['result'] in ENOUGH):
            self.seconds[test], self.reached[test] = run['seconds'], set(run['reached'])
            self.clean[test] = run['result']
        if run['bugs'] and run['result'] in ENOUGH:
            self.passed |= {(test, bug) for bug in run['bugs']}
        elif len(run['bugs']) == 1:
            bug = run['bugs'][0]
            self.failed[test, bug] += 1
            if self.failed[test, bug] == 2 and bug not in self.noticed:
                self.noticed[bug] = test
                if self.speaks:
                    print(f'{bug:5} noticed by {test}', flush=True)

    def note(self, **run):
        with self.lock:
            self.file.write(json.dumps(run).encode() + b'\n')
            self.file.flush()
            self.follow()

    def pending(self, test):
        return sorted(bug for bug in self.reached.get(test, ())
                      if bug not in self.noticed and (test, bug) not in self.passed)

    def added(self, test):
        """Bugs that were planted after the test was run."""
        return sorted(self.planted - self.asked.get(test, set()) - set(self.noticed))


def read_tests(build):
    done = subprocess.run(['meson', 'introspect', build, '--tests'], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    times = collections.Counter(described['name'] for described in found)
    tests = []
    for described in found:
        name = described['name']
        if times[name] > 1:
            name = f'{described["suite"][0].split(":")[-1]}/{name}'
        tests += [Test(described, name, case) for case in read_cases(described) or [None]]
    return [test for test in tests if 'lint' not in test.suites]


def read_cases(described):
    """The cases of a file of tests/cli/harness.py; [] of any other test."""
    for path in (pathlib.Path(word) for word in described['cmd'] if word.endswith('.py')):
        if path.is_file() and 'harness.main(globals())' in path.read_text():
            done = subprocess.run([*described['cmd'], '--list'], env={**os.environ, **described['env']}, cwd=described['workdir'],
                                  capture_output=True, text=True, check=True)
            return done.stdout.split()
    return []


def read_times(path):
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    return {run['name'].split(' / ')[-1]: run['duration'] for run in runs}


def kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end(number, frame):
    """A bug may make a test run for ever: none stays behind when this program is ended."""
    for group in list(running):
        kill_group(group)
    os._exit(128 + number)


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
        running.add(process.pid)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = 'late'
        kill_group(process.pid)
        process.wait()
        running.discard(process.pid)
    took = time.monotonic() - start
    text = log_path.read_bytes()
    result = {0: 'OK', 77: 'skipped'}.get(status, f'failed: {status}')
    if test.tap and re.search(rb'^(not ok\b|Bail out!)', text, re.MULTILINE):
        result = 'failed: not ok'
    found = [number for number, byte in enumerate(reached.read_bytes()) if byte]
    reached.unlink()
    new = state.added(test.name)
    state.note(test=test.name, bugs=bugs, result=result, seconds=round(took, 3), reached=found, planted=new)
    return result in ENOUGH


def find_noticed(state, test, late):
    """Finds what a test notices of the bugs that it comes by."""
    groups = [state.pending(test.name)]
    limit = 10 + 4 * state.seconds[test.name]
    while groups and not late():
        with state.lock:
            state.follow()
        group = [bug for bug in groups.pop() if bug not in state.noticed]
        if not group or run_test(state, test, group, limit):
            continue
        if len(group) > 1:
            groups += [group[len(group) // 2:], group[:len(group) // 2]]
        elif run_test(state, test, group, limit):
            print(f'{group[0]:5} failed once only in {test.name}', flush=True)


def hunt(state, tests, bugs, options, late):
    def work(test):
        with (state.folder / f'{test.name.replace("/", ".")}.claim').open('w') as claim:
            try:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # another hunt has this test
                return
            with state.lock:
                state.follow()
            unnoticed = [bug for bug in bugs if bug not in state.noticed]
            if late() or not unnoticed:
                return
            first = unnoticed if test.name not in state.clean else state.clean[test.name] == 'OK' and state.added(test.name)
            if first and not run_test(state, test, first, 20 + 4 * state.seconds.get(test.name, test.guess)):
                if not run_test(state, test, [], 3 * test.limit):
                    print(f'{test.name} {state.clean[test.name]} without a bug, and is not used', flush=True)
            if state.clean.get(test.name) == 'OK':
                find_noticed(state, test, late)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(work, test) for test in tests]:
            done.result()
    left = sum(test.name not in state.clean or
               (state.clean[test.name] == 'OK' and bool(state.pending(test.name) or state.added(test.name)))
               for test in tests)
    print(f'{left} tests are left, {len(state.noticed)} of {len(bugs)} bugs are noticed')
    return 1 if left else 0


def planted(source):
    """The bugs of the sources: number, file and line."""
    patterns = ('*.[ch]', '*.cc', '*.cu', '*.cuh', '*.py', '*.in')
    done = subprocess.run(['git', '-C', source, 'grep', '-nP', r'\b(BUG|bug_is)\(\d+', '--', *patterns], capture_output=True, text=True)
    found = {}
    for line in done.stdout.splitlines():
        file, number, text = line.split(':', 2)
        if not file.startswith('tests/mutants/'):
            for bug in re.findall(r'\b(?:BUG|bug_is)\((\d+)', text):
                found.setdefault(int(bug), (file, int(number)))
    return dict(sorted(found.items()))


def report(state, tests, bugs):
    counts = collections.defaultdict(collections.Counter)
    for bug, (file, line) in bugs.items():
        by = [test for test in tests if bug in state.reached.get(test.name, ())]
        left = [test for test in tests
                if test.name not in state.clean or (state.clean[test.name] == 'OK' and
                                                    (bug in state.pending(test.name) or bug in state.added(test.name)))]
        verdict = 'noticed' if bug in state.noticed else 'open' if left else 'missed' if by else 'never reached'
        counts['/'.join(pathlib.Path(file).parts[:2])][verdict] += 1
        more = state.noticed.get(bug, f'{len(by)} tests come by, {len(left)} to be run')
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


def choose(build, state, options):
    """The tests that are wanted, the quickest first. `guess`: how long one takes, before it has run."""
    earlier = read_times(options.times) if options.times else {}
    found = read_tests(build)
    cases = collections.Counter(test.whole for test in found)
    for test in found:
        test.guess = state.seconds.get(test.name, earlier.get(test.whole, test.limit) / cases[test.whole])
        test.known = test.name in state.seconds or test.whole in earlier
    return sorted((test for test in found
                   if (not options.suite or set(test.suites) & set(options.suite)) and not set(test.suites) & set(options.without)
                   and (not options.test or {test.name, test.whole} & set(options.test))
                   and (not test.known or test.guess <= options.longest)),
                  key=lambda test: test.guess)


def find_source(build):
    done = subprocess.run(['meson', 'introspect', build, '--buildsystem-files'], capture_output=True, text=True, check=True)
    source = pathlib.Path(json.loads(done.stdout)[0])
    while not (source / 'core').is_dir():
        source = source.parent
    return source


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('command', choices=['plant', 'setup', 'hunt', 'report', 'expand'])
    parser.add_argument('words', nargs='+')
    parser.add_argument('-j', '--jobs', type=int, default=2)
    parser.add_argument('--seed', type=int, default=1, help='of plant')
    parser.add_argument('--errors', action='store_true', help='plant bugs in lines about errors and memory')
    parser.add_argument('--seconds', type=float, default=float('inf'))
    parser.add_argument('--longest', type=float, default=float('inf'), help='tests that are known to take longer are left out')
    parser.add_argument('--times', type=pathlib.Path, help='testlog.json of an earlier `meson test`: how long tests take')
    parser.add_argument('--suite', action='append', default=[])
    parser.add_argument('--without', action='append', default=[], help='a suite that is left out')
    parser.add_argument('--test', action='append', default=[])
    options = parser.parse_args()
    first = pathlib.Path(options.words[0]).resolve()
    if options.command == 'plant':
        import plant
        return plant.plant(first, int(options.words[1]), options.words[2:], options.seed, options.errors)
    if options.command == 'expand':
        import expand
        return expand.print_mutants(first, options.words[1], options.words[2:])
    if options.command == 'setup':
        return setup(first, pathlib.Path(options.words[1]).resolve(), options)
    state, bugs = State(first), planted(find_source(first))
    state.planted = set(bugs)
    tests = choose(first, state, options)
    if options.command == 'report':
        return report(state, tests, bugs)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    last = time.monotonic() + options.seconds
    return hunt(state, tests, bugs, options, lambda: time.monotonic() > last)


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants bugs, one at a time, and checks that a test notices each.

run.py SOURCE [--build FOLDER] [NAME ...]   exit 1 if a bug is not noticed, 2 if it cannot be planted or does not build
run.py SOURCE --list                        the names
run.py SOURCE --check                       plants nothing, and checks that all can be planted and that their tests exist

The bugs are in the *.txt files of this folder:

    == NAME: what it would mean
    file: the file, from the top of the sources
    tests: names of tests, as `meson test` takes them; one of them must fail
    -the lines as they are, which occur once in the file
    +the lines as they become

The sources are copied, so that they stay as they are; the copy and its build folder are kept in FOLDER (by default a
temporary one that is removed). First all the named tests must pass without a bug.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
OPTIONS = ['-Dtests=true', '-Dcuda-generic=disabled', '-Dcuda-cudnn=auto']


class Mutant:
    def __init__(self, title):
        self.name, self.meaning = (part.strip() for part in title.split(':', 1))
        self.file, self.tests, self.old, self.new = '', [], [], []

    def plant(self, text):
        old, new = ('\n'.join(lines) + '\n' for lines in (self.old, self.new))
        if text.count(old) != 1:
            sys.exit(f'{self.name}: its lines occur {text.count(old)} times in {self.file}, expected once')
        return text.replace(old, new if self.new else '')


def read_mutants():
    mutants = []
    for path in sorted(HERE.glob('*.txt')):
        for line in path.read_text().splitlines():
            if line.startswith('== '):
                mutants.append(Mutant(line[3:]))
            elif line.startswith('file: '):
                mutants[-1].file = line[6:].strip()
            elif line.startswith('tests: '):
                mutants[-1].tests = line[7:].split()
            elif line[:1] in ('-', '+'):
                (mutants[-1].old if line[0] == '-' else mutants[-1].new).append(line[1:])
    return mutants


def list_sources(source):
    """The files that git knows, or without git all that are in no build folder."""
    if shutil.which('git'):
        done = subprocess.run(['git', '-C', source, 'ls-files', '-z'], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout:
            return [name for name in done.stdout.split('\0') if name]
    left_out = ('build', 'runs', '.git')
    return [str(path.relative_to(source)) for path in source.rglob('*')
            if path.is_file() and not path.relative_to(source).parts[0].startswith(left_out)]


def copy_sources(source, to):
    """Files that have not changed keep their times."""
    for name in list_sources(source):
        old, new = source / name, to / name
        if old.is_file() and not (new.is_file() and new.read_bytes() == old.read_bytes()):
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(old, new)


def run_tests(build, tests):
    """`passed`, `failed` or `no build`, and what meson printed."""
    log = build / 'meson-logs/testlog.json'
    log.unlink(missing_ok=True)
    done = subprocess.run(['meson', 'test', '-C', build, *tests], capture_output=True, text=True)
    if not log.exists():
        return 'no build', done.stdout + done.stderr
    results = [json.loads(line)['result'] for line in log.read_text().splitlines()]
    sound = results and all(result in ('OK', 'SKIP') for result in results)
    return ('passed' if sound else 'failed'), done.stdout


def list_plugins(build):
    """Few tests name the plugins that they load, so `meson test` does not build these."""
    done = subprocess.run(['meson', 'introspect', build, '--targets'], capture_output=True, text=True, check=True)
    return [str(pathlib.Path(name).relative_to(build)) for target in json.loads(done.stdout)
            if target['type'] in ('shared library', 'shared module') for name in target['filename']
            if '/plugins/' in name or '/modules/' in name]


def list_tests(build):
    """The names of the tests that this machine has: without some libraries, some are not there."""
    done = subprocess.run(['meson', 'test', '-C', build, '--list'], capture_output=True, text=True, check=True)
    return {line.split(' / ')[-1].strip() for line in done.stdout.splitlines()}


def check_tests(source, mutants):
    """A test that no meson.build names, with or without prefixes such as `serve-`, would be skipped as one that is not built."""
    words = {word for name in list_sources(source) if pathlib.Path(name).name == 'meson.build'
             for word in re.findall(r"'([\w-]+)'", (source / name).read_text())}
    for mutant in mutants:
        for test in mutant.tests:
            parts = test.split('-')
            if not words & {'-'.join(parts[k:]) for k in range(len(parts))}:
                sys.exit(f'{mutant.name}: there is no test {test}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('source', type=pathlib.Path)
    parser.add_argument('names', nargs='*')
    parser.add_argument('--build', type=pathlib.Path)
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--check', action='store_true')
    options = parser.parse_intermixed_args()
    mutants = read_mutants()
    if options.list:
        print('\n'.join(f'{m.name:24} {m.meaning}' for m in mutants))
        return 0
    if options.check:
        for mutant in mutants:
            mutant.plant((options.source / mutant.file).read_text())
        check_tests(options.source, mutants)
        print(f'{len(mutants)} bugs can be planted')
        return 0
    unknown = set(options.names) - {m.name for m in mutants}
    if unknown:
        sys.exit(f'no mutant {", ".join(sorted(unknown))}; --list prints their names')
    mutants = [m for m in mutants if not options.names or m.name in options.names]
    with tempfile.TemporaryDirectory(prefix='seqlstm-mutants.') as temporary:
        copy = (options.build or pathlib.Path(temporary)).resolve() / 'sources'
        build = copy.parent / 'build'
        copy_sources(options.source.resolve(), copy)
        if not (build / 'build.ninja').exists():
            subprocess.run(['meson', 'setup', build, copy, *OPTIONS], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(['ninja', '-C', build, *list_plugins(build)], check=True, stdout=subprocess.DEVNULL)
        there = list_tests(build)
        for mutant in [m for m in mutants if not set(m.tests) & there]:
            print(f'{"skipped":8} {mutant.name:24} none of its tests is built here: {" ".join(mutant.tests)}')
        mutants = [m for m in mutants if set(m.tests) & there]
        for mutant in mutants:
            mutant.tests = [test for test in mutant.tests if test in there]
        verdict, output = run_tests(build, sorted({test for m in mutants for test in m.tests}))
        if verdict != 'passed':
            sys.exit(f'{output}\nwithout a bug, the tests do not pass')
        missed = 0
        for mutant in mutants:
            path = copy / mutant.file
            text = path.read_text()
            path.write_text(mutant.plant(text))
            verdict, output = run_tests(build, mutant.tests)
            path.write_text(text)
            if verdict == 'no build':
                sys.exit(f'{output}\n{mutant.name}: does not build')
            missed += verdict == 'passed'
            print(f'{"missed" if verdict == "passed" else "noticed":8} {mutant.name:24} {mutant.meaning}', flush=True)
    print(f'{len(mutants)} bugs: {len(mutants) - missed} noticed, {missed} missed')
    return 1 if missed else 0


if __name__ == '__main__':
    sys.exit(main())

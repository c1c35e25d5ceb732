#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums up meson's test logs: test_summary.py LOG.json...   ends with `N passed, N failed, N skipped`.
test_summary.py --self-test   checks that each kind of result is counted as what it is

A TAP test counts by its points, any other as one. Skips are listed with their reasons, because a
green run must say what it did not prove; failures with the points that failed and the end of the
test's output, because only the end of a long log may be at hand. Exit 1 if anything failed or no test was run.
"""
import collections
import json
import pathlib
import re
import sys

POINT = re.compile(r'^(not )?ok\b[^#]*(?:#\s*(skip|todo)\b\s*(.*))?', re.I)
CLI_SKIP = re.compile(r'^skip (\w+ .*?)(?: \([\d.]+ s\))?$')  # as tests/cli/harness.py writes it
GOOD = ('OK', 'EXPECTEDFAIL')
LAST_LINES = 30  # of the output of a test that failed


def count(test):
    """Returns (passed, failed, [skip reasons]) of one line of the log."""
    result, passed, failed, skipped = test['result'], 0, 0, []
    for line in (test.get('stdout') or '').splitlines():
        match, whole = POINT.match(line), CLI_SKIP.match(line)
        if whole:
            skipped.append(whole.group(1))
        if not match:
            continue
        kind = (match.group(2) or '').lower()
        if kind == 'skip':
            skipped.append(match.group(3) or 'no reason given')
        elif match.group(1) and kind != 'todo':
            failed += 1
        else:
            passed += 1
    if result == 'SKIP':
        whole = re.search(r'^(?:1\.\.0\s*#\s*skip\w*|skipped:)\s*(.*)', test.get('stdout') or '', re.I | re.M)
        return passed, failed, skipped or [whole.group(1) if whole else 'skipped as a whole']
    if passed + failed + len(skipped) == 0:
        return (1, 0, []) if result in GOOD else (0, 1, [])
    if result not in GOOD and failed == 0:
        failed = 1  # it crashed, or ran out of time, between its points
    return passed, failed, skipped


def describe_failure(name, test):
    """Returns the lines that say which test failed, and how."""
    out, err = [(test.get(key) or '').splitlines() for key in ('stdout', 'stderr')]
    points = [line for line in out if line.startswith(('not ok', 'FAIL '))]
    lines = points + ['...'] + (out + err)[-LAST_LINES:]
    return [f'failed: {name}: {test["result"]} after {test.get("duration", 0):.0f} s'] + ['    ' + line for line in lines]


def self_test():
    cases = [('OK', None, (1, 0, [])), ('FAIL', None, (0, 1, [])), ('TIMEOUT', '', (0, 1, [])),
             ('EXPECTEDFAIL', None, (1, 0, [])), ('SKIP', 'skipped: no GPU\n', (0, 0, ['no GPU'])),
             ('SKIP', '1..0 # SKIP no reason\n', (0, 0, ['no reason'])), ('SKIP', None, (0, 0, ['skipped as a whole'])),
             ('OK', 'ok 1 - a\nok 2 - b # SKIP small\n1..2\n', (1, 0, ['small'])),
             ('FAIL', 'ok 1 - a\nnot ok 2 - b\n', (1, 1, [])), ('OK', 'ok 1 - a\nnot ok 2 - b # todo later\n', (2, 0, [])),
             ('ERROR', 'ok 1 - a\nok 2 - b\n', (2, 1, [])),  # it crashed behind its second point
             ('OK', 'books are ok\n', (1, 0, [])),
             ('FAIL', 'ok   test_a  (2.47 s)\nFAIL test_b: no\n', (1, 1, [])),
             ('OK', 'ok   test_a  (2.47 s)\nskip test_b no GPU (0.83 s)\n', (1, 0, ['test_b no GPU']))]
    wrong = [case for case in cases if count({'result': case[0], 'stdout': case[1]}) != case[2]]
    for result, stdout, _ in wrong:
        print(f'summary: {result} with {stdout!r} counts as {count({"result": result, "stdout": stdout})}')
    test = {'result': 'FAIL', 'stdout': 'not ok 2 - b\n' + 'ok\n' * LAST_LINES, 'stderr': 'why\n', 'duration': 1.7}
    lines = describe_failure('a', test)
    if lines[:3] != ['failed: a: FAIL after 2 s', '    not ok 2 - b', '    ...'] or lines[-1] != '    why' \
            or len(lines) != LAST_LINES + 3:
        wrong.append(lines)
        print('summary: a failure is described as', lines)
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ['--self-test']:
        return self_test()
    passed, failed, skips, failures = 0, 0, collections.Counter(), []
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        if not path.exists():
            print(f'no test log {name}')
            failed += 1
            continue
        for line in path.read_text().splitlines():
            test = json.loads(line)
            short = test['name'].split(' / ')[-1]
            good, bad, reasons = count(test)
            passed, failed = passed + good, failed + bad
            for reason in reasons:
                skips[f'{short}: {reason}'] += 1
            if bad:
                failures += describe_failure(f'{short} ({path.parts[-3]})' if len(path.parts) > 2 else short, test)
    for reason, times in sorted(skips.items()):
        print(f'skipped: {reason}' + (f' ({times} times)' if times > 1 else ''))
    for line in failures:
        print(line)
    print(f'{passed} passed, {failed} failed, {sum(skips.values())} skipped')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What the scripts check_*.py share: the files of the tree, the frame of a self-test, and the command line."""
import pathlib
import subprocess
import sys
import tempfile

SKIP_TOP = ('build', '.git', 'runs', '.cache')


def tracked(root):
    """The files that git knows or would add, sorted; without git, every file of the tree but what is built."""
    try:
        listed = subprocess.run(['git', '-C', str(root), 'ls-files', '-co', '--exclude-standard'], capture_output=True,
                                text=True)
        if listed.returncode == 0:
            return sorted(name for name in set(listed.stdout.splitlines()) if (root / name).exists())
    except FileNotFoundError:
        pass  # no git on this machine
    return sorted(p.relative_to(root).as_posix() for p in root.rglob('*')
                  if p.is_file() and not p.relative_to(root).parts[0].startswith(SKIP_TOP))


def plant(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def judge(check, files, bad, parts=1):
    """Plants `files` and runs `check(root)`, whose complaints begin with `file:`. The files, or with parts=2 the
    `file:line`s, that it complains about must be those in `bad`. Returns the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        plant(root, files)
        found = {':'.join(line.split(':')[:parts]) for line in check(root)}
    for name in sorted(set(bad) - found):
        print(f'not caught: {name}')
    for name in sorted(found - set(bad)):
        print(f'wrongly refused: {name}')
    return 1 if found != set(bad) else 0


def main(name, check, self_test):
    """`SCRIPT [ROOT]` prints the complaints of `check(root)`; `SCRIPT --self-test` runs `self_test()`."""
    if sys.argv[1:] == ['--self-test']:
        sys.exit(self_test())
    problems = list(check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else '.').resolve()))
    print('\n'.join(problems) if problems else f'{name}: ok')
    sys.exit(1 if problems else 0)

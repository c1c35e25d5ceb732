#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packages.sh and setup-tests.sh, with stand-ins for apt-get and meson that write down how they are called."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOOLS = pathlib.Path(__file__).resolve().parent
# the program fails for a package whose name contains `mpi`
APT = '''#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in *mpi*) echo "E: Unable to locate package libopenmpi-dev"; exit 100 ;; esac
'''
MESON = '''#!/bin/sh
[ "$1" != introspect ] || { cat "$HAVE"; exit; }
echo "$*" >>"$CALLS"
'''
HAVE = ('[{"name": "tests", "value": true}, {"name": "werror", "value": true}, {"name": "buildtype", "value": "release"}, '
        '{"name": "c_args", "value": ["-g1", "-O1"]}]')


class Scripts(unittest.TestCase):
    def call(self, *command, **programs):
        """The output of a script, and the calls of the programs that it finds first."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in programs.items():
                path = pathlib.Path(folder, name.replace('_', '-'))
                path.write_text(text)
                path.chmod(0o755)
            pathlib.Path(folder, 'have').write_text(HAVE)
            pathlib.Path(folder, 'build.ninja').touch()
            environment = {**os.environ, 'PATH': f'{folder}:{os.environ["PATH"]}', 'CALLS': f'{folder}/calls',
                           'HAVE': f'{folder}/have'}
            got = subprocess.run([str(word).replace('FOLDER', folder) for word in command], env=environment,
                                 capture_output=True, text=True)
            calls = pathlib.Path(folder, 'calls')
            lines = calls.read_text().replace(folder, 'FOLDER').splitlines() if calls.exists() else []
            return got.stdout + got.stderr, lines

    def test_one_package_does_not_stop_the_others(self):
        fails = '#!/bin/sh\nexit 1\n'
        said, calls = self.call(TOOLS / 'packages.sh', apt_get=APT, pkg_config=fails, id='#!/bin/sh\necho 0\n')
        self.assertIn('install -y libyaml-dev', calls)
        self.assertIn('install -y libevent-dev', calls)
        self.assertIn('update', calls)
        self.assertIn('packages: cannot install libopenmpi-dev: E: Unable to locate package libopenmpi-dev\n', said)
        self.assertEqual(said.count('cannot install'), 1)

    def test_a_folder_with_these_options_stays(self):
        for options in ([], ['-Dwerror=true'], ['--buildtype=release', '-Dc_args=-g1 -O1']):
            said, calls = self.call(TOOLS / 'setup-tests.sh', 'FOLDER', *options, meson=MESON)
            self.assertEqual((said, calls), ('', []), options)

    def test_other_options_are_set(self):
        for option in ('-Dwerror=false', '--buildtype=debug', '-Dc_args=-g1', '-Dcuda-cudnn=disabled'):
            _, calls = self.call(TOOLS / 'setup-tests.sh', 'FOLDER', option, meson=MESON)
            self.assertEqual(calls, [f'setup FOLDER --reconfigure -Dtests=true {option}'])


if __name__ == '__main__':
    unittest.main()

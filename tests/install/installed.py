# SPDX-License-Identifier: Apache-2.0
"""An installed seqlstm in another folder than it was built for, and the tools that its users have."""
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ['SEQLSTM_BUILD'])
SOURCE = pathlib.Path(os.environ['SEQLSTM_SOURCE'])


class Installed:
    """`prefix` moved to `folder/moved here`, and an environment without the source tree."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        stage = self.folder / 'stage'
        self.call(['meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir', stage], cwd=self.folder)
        found = list(stage.rglob('bin/seqlstm'))
        assert len(found) == 1, f'{len(found)} programs installed below {stage}'
        self.prefix = self.folder / 'moved here' / 'seqlstm'
        self.prefix.parent.mkdir()
        shutil.move(str(found[0].parent.parent), str(self.prefix))
        shutil.rmtree(stage)
        self.program = self.prefix / 'bin' / 'seqlstm'
        self.pkgconfig = next(self.prefix.rglob('seqlstm-backend.pc')).parent
        self.libraries = self.pkgconfig.parent

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(('SEQLSTM_', 'MESON', 'PKG_CONFIG', 'XDG_'))
               and k not in ('LD_LIBRARY_PATH', 'DESTDIR', 'CFLAGS', 'LDFLAGS', 'CC')}
        env['HOME'] = str(self.folder / 'home')
        env['PATH'] = f'{self.program.parent}:{env["PATH"]}'
        env['PKG_CONFIG_PATH'] = str(self.pkgconfig)
        return {**env, **more}

    def call(self, args, rc=0, cwd=None, **more):
        """stdout of a command that must end with `rc`; if it does not, the error shows its output."""
        env = self.environment(**more) if hasattr(self, 'program') else None
        done = subprocess.run([str(a) for a in args], cwd=cwd or self.folder, env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=500)
        assert done.returncode == rc, (f'{args}: exit {done.returncode}, expected {rc}\n'
                                       f'{done.stdout[-2000:]}\n{done.stderr[-3000:]}')
        return done.stdout

    def flags(self, package):
        """The output of pkg-config as a list; folders with blanks stay whole."""
        return shlex.split(self.call(['pkg-config', '--cflags', '--libs', package]))


def main(tests):
    """Runs test_*(installed) on one installation; the first argument of the script is the built program."""
    missing = [tool for tool in ('meson', 'pkg-config', 'cc') if shutil.which(tool) is None]
    if missing:
        print('skipped: not on this machine:', ', '.join(missing))
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix='seqlstm-install-')
    try:
        installed = Installed(folder)
        for name, test in list(tests.items()):
            if name.startswith('test_'):
                test(installed)
                print('ok  ', name, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

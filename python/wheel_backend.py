# SPDX-License-Identifier: Apache-2.0
"""The build backend of pyproject.toml: that of meson-python, whose wheel is then marked for this platform. meson-python
takes a package without extension modules for one that runs everywhere; ours has a library inside."""
import pathlib
import platform
import subprocess
import sys

import mesonpy
from mesonpy import build_sdist, get_requires_for_build_sdist, get_requires_for_build_wheel

__all__ = ['build_sdist', 'build_wheel', 'get_requires_for_build_sdist', 'get_requires_for_build_wheel']


def find_platform():
    """The C library that it was built with is the oldest with which it runs."""
    name, version = platform.libc_ver()
    if name != 'glibc':
        return f'linux_{platform.machine()}'
    return f'manylinux_{"_".join(version.split(".")[:2])}_{platform.machine()}'


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = mesonpy.build_wheel(wheel_directory, config_settings, metadata_directory)
    marked = subprocess.run([sys.executable, '-m', 'wheel', 'tags', '--remove', '--platform-tag', find_platform(),
                             str(pathlib.Path(wheel_directory, name))], check=True, capture_output=True, text=True)
    return marked.stdout.split()[-1]

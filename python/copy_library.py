#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies a library and lets it find others in its own folder: copy_library.py PATCHELF FROM TO"""
import shutil
import subprocess
import sys

patchelf, source, target = sys.argv[1:]
shutil.copyfile(source, target)
subprocess.run([patchelf, '--set-rpath', '$ORIGIN', target], check=True)

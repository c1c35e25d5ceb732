# SPDX-License-Identifier: Apache-2.0
"""Sizes of what the scripts of run.sh compute. With --rehearse every size is a small one, but keeps its name: all steps
run within minutes, also on an emulated device, and the figures mean nothing."""
import os

REHEARSAL = 'SEQLSTM_GPU_REHEARSAL' in os.environ
FEW, MORE, LARGE = 2, 4, 64  # few different sizes, so that dispatch finds most of its times in the cache
POLICY = 'order' if REHEARSAL else 'measured'  # of dispatch; measuring takes longer than small models


def shrink(size):
    """The size that is computed where `size` is meant."""
    return size if not REHEARSAL or size == 1 else FEW if size < LARGE else MORE

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build-program.sh BUILD: builds what `seqlstm run` needs on this machine. The kernels of the CUDA backends take
# minutes, so these are built only if there is an NVIDIA driver to run them, or with CUDA=1 in the environment; never
# with CUDA=0.
set -u
build=$1
targets=program

has_driver() {
    [ -e /dev/nvidiactl ] || { PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1 '; }
}

if [ "${CUDA:-}" != 0 ] && ninja -C "$build" -t query cuda >/dev/null 2>&1; then
    if [ -n "${CUDA:-}" ] || has_driver; then
        targets='program cuda'
    else
        echo 'make: no NVIDIA driver here: the CUDA backends are not built (CUDA=1 builds them)'
    fi
fi
# shellcheck disable=SC2086
exec ninja -C "$build" $targets

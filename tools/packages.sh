#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packages.sh [tests] [lint]: the packages of Debian and Ubuntu, beyond make, that building the program needs; with
# `tests` and `lint`, also what these need. Prints the command that installs them. If something is missing, the script
# installs it if that needs no password (as root, or with sudo). Otherwise it lists what is left out without an optional
# package, and fails without a required one.
set -u

packages='gcc g++ libc6-dev meson ninja-build pkg-config python3 libyaml-dev libjansson-dev libopenblas-dev libdnnl-dev libsentencepiece-dev libevent-dev libopenmpi-dev'
groups=" $* "
wants() { case "$groups" in *" $1 "*) true ;; *) false ;; esac; }
! wants tests || packages="$packages libcmocka-dev python3-dev python3-numpy python3-cffi python3-jsonschema python3-yaml"
! wants lint || packages="$packages clang-format-14"
line="apt-get install -y $packages"

has_command() { command -v "$1" >/dev/null 2>&1; }
has_header() { echo "#include <$1>" | cc -E -x c - >/dev/null 2>&1; }
has_library() { has_command pkg-config && pkg-config --exists "$1" 2>/dev/null; }

# Sets `missing` to all that is missing, and `needed` to the part of it that the build requires.
look() {
    missing='' needed=''
    if ! has_command cc || ! echo '#include <stdio.h>' | cc -E -x c - >/dev/null 2>&1; then
        missing="$missing cc" needed="$needed cc"
    fi
    for name in meson ninja pkg-config python3; do
        has_command "$name" || { missing="$missing $name"; needed="$needed $name"; }
    done
    for name in yaml-0.1 jansson; do
        has_library "$name" || { missing="$missing $name"; needed="$needed $name"; }
    done
    has_library openblas || missing="$missing openblas"
    has_header dnnl.h || missing="$missing onednn"
    has_library sentencepiece || missing="$missing sentencepiece"
    has_library libevent || missing="$missing libevent"
    has_library mpi-c || has_library mpich || missing="$missing mpi"
    ! wants tests || has_library cmocka || missing="$missing cmocka"
    ! wants tests || /usr/bin/python3 -c 'import numpy, cffi' 2>/dev/null || missing="$missing numpy-cffi"
    ! wants tests || /usr/bin/python3 -c 'import jsonschema, yaml' 2>/dev/null || missing="$missing jsonschema"
    ! wants lint || has_command clang-format-14 || missing="$missing clang-format-14"
}

# get PACKAGE...: installs them; what apt-get prints is in $log.
get() {
    # shellcheck disable=SC2086
    $as_root DEBIAN_FRONTEND=noninteractive apt-get install -y "$@" >"$log" 2>&1
}

# All at once; if that fails, one by one, so that one package which cannot be had does not stop the others.
get_all() {
    # shellcheck disable=SC2086
    get $packages && return
    $as_root apt-get update >"$log" 2>&1 || echo "packages: apt-get update: $(grep '^[EW]:' "$log" | tail -1)"
    # shellcheck disable=SC2086
    get $packages && return
    for package in $packages; do
        get "$package" || echo "packages: cannot install $package: $(grep '^E:' "$log" | tail -1)"
    done
}

# left_out NAME SENTENCE: prints what is left out if NAME is missing.
left_out() {
    case " $missing " in *" $1 "*) echo "packages: $2" ;; esac
}

look
echo "packages: $line"
[ -z "$missing" ] && exit 0
echo "packages: missing here:$missing"

as_root=''
if has_command apt-get; then
    if [ "$(id -u)" = 0 ]; then
        as_root='env'
    elif has_command sudo && sudo -n true 2>/dev/null; then
        as_root='sudo env'
    fi
fi
if [ -n "$as_root" ]; then
    echo "packages: installing"
    log=$(mktemp)
    get_all
    rm -f "$log"
    look
fi

if [ -n "$needed" ]; then
    echo "packages: cannot build without:$needed" >&2
    echo "packages: install them as root, then run make again:" >&2
    echo "    $line" >&2
    exit 1
fi
left_out openblas 'no OpenBLAS: the backend cpu-blas is left out'
left_out onednn 'no oneDNN: the backend cpu-onednn is left out'
left_out sentencepiece 'no sentencepiece: the tokenizer of that name is left out'
left_out libevent 'no libevent: `seqlstm serve` is left out'
left_out mpi 'no MPI: the collectives comm-mpi are left out'
left_out cmocka 'no cmocka: the unit tests are left out'
left_out jsonschema 'no jsonschema or yaml for python3: model files are not held against the schema'
left_out numpy-cffi 'no numpy or cffi for python3: the Python package is not tested'
left_out clang-format-14 'no clang-format 14: the format of the code is not checked'
exit 0

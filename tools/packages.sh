#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the build needs beyond make, as Debian and Ubuntu packages. Prints the line; when something is
# missing, installs it if that is possible without asking (root, or sudo without a password), else
# stops with the line. Optional ones that stay missing are named with what is then left out.
set -u

line='apt-get install -y gcc g++ libc6-dev meson ninja-build pkg-config python3 libyaml-dev libjansson-dev libcmocka-dev libopenblas-dev libdnnl-dev libsentencepiece-dev'

has_command() { command -v "$1" >/dev/null 2>&1; }
has_header() { echo "#include <$1>" | cc -E -x c - >/dev/null 2>&1; }
has_library() { has_command pkg-config && pkg-config --exists "$1" 2>/dev/null; }

# Names of what is missing, and of those without which nothing can be built.
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
    has_library cmocka || missing="$missing cmocka"
    has_library openblas || missing="$missing openblas"
    has_header dnnl.h || missing="$missing onednn"
    has_library sentencepiece || missing="$missing sentencepiece"
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
    # shellcheck disable=SC2086
    $as_root DEBIAN_FRONTEND=noninteractive $line >/tmp/seqlstm-packages.$$ 2>&1 ||
        { $as_root apt-get update >/dev/null 2>&1
          $as_root DEBIAN_FRONTEND=noninteractive $line >/tmp/seqlstm-packages.$$ 2>&1; } ||
        tail -5 /tmp/seqlstm-packages.$$
    rm -f /tmp/seqlstm-packages.$$
    look
fi

if [ -n "$needed" ]; then
    echo "packages: cannot build without:$needed" >&2
    echo "packages: install them as root, then run make again:" >&2
    echo "    $line" >&2
    exit 1
fi
case " $missing " in *' cmocka '*) echo 'packages: no cmocka: the unit tests are left out' ;; esac
case " $missing " in *' openblas '*) echo 'packages: no OpenBLAS: the backend cpu-blas is left out' ;; esac
case " $missing " in *' onednn '*) echo 'packages: no oneDNN: the backend cpu-onednn is left out' ;; esac
case " $missing " in *' sentencepiece '*) echo 'packages: no sentencepiece: the tokenizer of that name is left out' ;; esac
exit 0

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the program, the backends and the libraries that a bare CUDA machine lacks into one archive, which runs where it
# is unpacked (seqlstm-gpu/run.sh). The machine needs the same processor family and a C library of the same version or
# newer. The archive and the tracked files of the sources together have at most 64 MiB.
#
#   bundle.sh [--without-text] [--architecture NN] BUILD OUT.tar.gz
#
#   --without-text      If SEQLSTM_DATA contains ptb/, its three files are included, and run.sh trains
#                       configs/ptb-small.yaml. With this flag they are not: 2 MB less.
#   --architecture NN   kernels for one compute capability only, such as 90: about half as large. The CUDA backends are
#                       built for it in BUILD-smNN, with the CUDA options of BUILD.
#
# Exit status: 0; 1 if something is missing or too large; 2 for a wrong call.
set -euo pipefail
usage() { sed -n '3,/^set /s/^# \{0,1\}//p' "$0" | grep -v '^set '; }
text=yes architecture=
while [ $# -gt 0 ]; do
    case $1 in
    --without-text) text= ;;
    --architecture) architecture=${2:?--architecture needs a number such as 90} && shift ;;
    -h | --help) usage && exit 0 ;;
    -*) echo "bundle.sh: unknown flag $1: --without-text or --architecture NN" >&2 && exit 2 ;;
    *) break ;;
    esac
    shift
done
[ $# = 2 ] || { usage >&2 && exit 2; }
build=$(cd "$1" && pwd)
archive=$2
source=$(cd "$(dirname "$0")/.." && pwd)
most=$((64 * 1024 * 1024))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/seqlstm-gpu
ls "$build"/plugins/libseqlstm_backend_cuda-*.so >/dev/null 2>&1 ||
    { echo "$build has no CUDA backend: meson configure $build, then see \`cuda-generic\` and \`cuda-cudnn\` in its summary" >&2; exit 1; }
plugins=$build/plugins
if [ -n "$architecture" ]; then
    plugins=$build-sm$architecture/plugins
    mapfile -t options < <(meson introspect "$build" --buildoptions | python3 -c '
import json, sys
for option in json.load(sys.stdin):
    if option["name"] == "buildtype" or option["name"].startswith("cuda-") and option["name"] != "cuda-architectures":
        print("-D%s=%s" % (option["name"], option["value"]))')
    [ -f "$build-sm$architecture/build.ninja" ] ||
        meson setup "$build-sm$architecture" "$source" "${options[@]}" -Dcuda-architectures="$architecture"
    (cd "$build/plugins" && ls libseqlstm_backend_cuda-*.so) | sed 's|^|plugins/|' | xargs ninja -C "$build-sm$architecture"
fi
mkdir -p "$root/bin" "$root/lib/seqlstm/backends" "$root/tests" "$root/configs"

cp "$build/seqlstm" "$root/bin/"
cp -L "$build/core/libseqlstm.so.0" "$root/lib/" # profile_update.py trains through it
cp "$build"/plugins/libseqlstm_backend_*.so "$root/lib/seqlstm/backends/"
cp "$plugins"/libseqlstm_backend_cuda-*.so "$root/lib/seqlstm/backends/"
cp "$source/tests/gpu/run.sh" "$root/"
cp "$source"/tests/gpu/{tap,test_train,ptb,cases,sizes,timings,peers,crossover,layers,profile_update,recurrence,processors,kit_times,bars,report}.py "$root/tests/"
[ ! -x "$build/tests/gpu/latencies" ] || cp "$build/tests/gpu/latencies" "$root/bin/"
cp "$source"/configs/{gpu-or-cpu,ptb-small,ptb-medium}.yaml "$root/configs/"
if [ -n "$text" ] && [ -d "${SEQLSTM_DATA:-}/ptb" ]; then
    mkdir -p "$root/data/ptb"
    cp "$SEQLSTM_DATA"/ptb/ptb.{train,valid,test}.txt "$root/data/ptb/"
fi

# The libraries of the program and the plugins, and OpenBLAS, which cpu-blas opens itself; without the C library and the
# driver.
collect() { ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u; }
missing=$(ldd "$root/bin/seqlstm" "$root"/lib/*.so* "$root"/lib/seqlstm/backends/*.so | awk '/not found/ {print $1}' | sort -u | xargs)
[ -z "$missing" ] || { echo "libraries are missing here: $missing" >&2; exit 1; }
openblas=$(ldconfig -p | awk '/libopenblas\.so\.0 / && !path {path = $NF} END {print path}') # reads all, so that no SIGPIPE ends ldconfig
for library in $(collect "$root/bin/seqlstm" "$root"/lib/seqlstm/backends/*.so ${openblas:+"$openblas"}) ${openblas:-}; do
    case $(basename "$library") in
    libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | ld-linux* | libcuda.so* | linux-vdso*) ;;
    *) cp -L "$library" "$root/lib/" ;;
    esac
done
find "$root" -type f \( -name '*.so*' -o -name seqlstm \) -exec strip --strip-unneeded {} + 2>/dev/null || true
tar -C "$work" -czf "$archive" seqlstm-gpu
bytes=$(stat -c %s "$archive")
tracked=$(cd "$source" && git ls-files -z 2>/dev/null | xargs -0r stat -c %s 2>/dev/null | awk '{sum += $1} END {print sum + 0}')
echo "$archive: $((bytes / 1000000)) MB; with $((tracked / 1000000)) MB of tracked files, of $((most / 1000000)) MB"
[ $((bytes + tracked)) -le "$most" ] ||
    { echo 'too large: leave something out (--without-text, --architecture NN)' >&2; exit 1; }

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bundle.sh BUILD OUT.tar.gz: packs the program, the backends and the libraries that a bare CUDA machine lacks into one
# archive, which runs where it is unpacked (seqlstm-gpu/run.sh). The machine needs the same processor family and a C
# library of the same version or newer. If SEQLSTM_DATA contains ptb/, its three files are included, and run.sh trains
# configs/ptb-small.yaml.
set -euo pipefail
build=$(cd "$1" && pwd)
archive=$2
source=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/seqlstm-gpu
ls "$build"/plugins/libseqlstm_backend_cuda-*.so >/dev/null 2>&1 ||
    { echo "$build has no CUDA backend: meson configure $build, then see \`cuda-generic\` and \`cuda-cudnn\` in its summary" >&2; exit 1; }
mkdir -p "$root/bin" "$root/lib/seqlstm/backends" "$root/tests" "$root/configs"

cp "$build/seqlstm" "$root/bin/"
cp -L "$build/core/libseqlstm.so.0" "$root/lib/" # profile_update.py trains through it
cp "$build"/plugins/libseqlstm_backend_*.so "$root/lib/seqlstm/backends/"
cp "$source/tests/gpu/run.sh" "$root/"
cp "$source"/tests/gpu/{tap,test_train,ptb,cases,sizes,timings,peers,crossover,layers,profile_update,recurrence,processors,bars,report}.py "$root/tests/"
[ ! -x "$build/tests/gpu/latencies" ] || cp "$build/tests/gpu/latencies" "$root/bin/"
cp "$source"/configs/{gpu-or-cpu,ptb-small,ptb-medium}.yaml "$root/configs/"
if [ -d "${SEQLSTM_DATA:-}/ptb" ]; then
    mkdir -p "$root/data/ptb"
    cp "$SEQLSTM_DATA"/ptb/ptb.{train,valid,test}.txt "$root/data/ptb/"
fi

# The libraries of the program and the plugins, and OpenBLAS, which cpu-blas opens itself; without the C library and the
# driver.
collect() { ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u; }
missing=$(ldd "$root/bin/seqlstm" "$root"/lib/*.so* "$root"/lib/seqlstm/backends/*.so | awk '/not found/ {print $1}' | sort -u | xargs)
[ -z "$missing" ] || { echo "libraries are missing here: $missing" >&2; exit 1; }
openblas=$(ldconfig -p | awk '/libopenblas\.so\.0 / {print $NF; exit}')
for library in $(collect "$root/bin/seqlstm" "$root"/lib/seqlstm/backends/*.so ${openblas:+"$openblas"}) ${openblas:-}; do
    case $(basename "$library") in
    libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | ld-linux* | libcuda.so* | linux-vdso*) ;;
    *) cp -L "$library" "$root/lib/" ;;
    esac
done
find "$root" -type f \( -name '*.so*' -o -name seqlstm \) -exec strip --strip-unneeded {} + 2>/dev/null || true
tar -C "$work" -czf "$archive" seqlstm-gpu
bytes=$(stat -c %s "$archive")
echo "$archive: $((bytes / 1000000)) MB"
[ "$bytes" -lt 60000000 ] || { echo 'more than 60 MB' >&2; exit 1; }

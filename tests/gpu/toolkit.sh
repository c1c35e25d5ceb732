#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles both CUDA plugins with another CUDA toolkit than the build's; warnings are errors, and nothing is linked.
#
#   tests/gpu/toolkit.sh HOME [CLANG]
#
# HOME contains include/ and bin/ of CUDA 12 or 13. If it has bin/nvcc, this compiles the kernels (Debian 13 has that of
# 12.4). NVIDIA's Python wheels of CUDA 12 (nvidia-cuda-nvcc-cu12, -runtime-cu12, -cccl-cu12, -cublas-cu12, with their
# include/, bin/ and nvvm/ merged) contain no nvcc. Then CLANG (clang++, 16 or later) compiles the kernels with HOME's
# headers, and HOME's ptxas assembles them. clang 19 ignores __grid_constant__, which only saves a copy.
set -euo pipefail
home=$1 clang=${2:-clang++} source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source/plugins"
version=$(sed -n 's/#define CUDART_VERSION *\([0-9]*\).*/\1/p' "$home/include/cuda_runtime_api.h")
echo "CUDA $((version / 1000)).$((version % 1000 / 10)) in $home"

include=(-I"$source/include" -I. -isystem "$home/include")
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Werror -Wno-format-truncation)
for file in common/cuda_*.c common/vendor_library.c $(find cuda-generic -name '*.c' | sort); do
    ${CC:-gcc} -std=c11 -D_GNU_SOURCE -fsyntax-only "${warnings[@]}" "${include[@]}" -Icuda-generic \
        -DGPU_CAPABILITY_MIN=80 -DCG_VERSION='""' -DCG_BUILD='""' -DCG_LT_DEFAULT='"auto"' \
        -DGPU_KERNELS=1 \
        -DCG_CUDA_MAJOR=$((version / 1000)) "$file"
    echo "  $file"
done
if [ -f "$home/include/cudnn.h" ]; then
    for file in cuda-cudnn/*.c; do
        ${CC:-gcc} -std=c11 -D_GNU_SOURCE -fsyntax-only "${warnings[@]}" "${include[@]}" -Icuda-cudnn \
            -DGPU_CAPABILITY_MIN=75 -DCDN_VERSION='""' -DCDN_BUILD='""' -DGPU_KERNELS=1 "$file"
        echo "  $file"
    done
fi
for file in $(find common cuda-generic -name '*.cu' | sort); do
    for architecture in 80 90; do
        if [ -x "$home/bin/nvcc" ]; then
            "$home/bin/nvcc" -std=c++17 -O3 --expt-relaxed-constexpr -Werror all-warnings -I"$source/include" -I. \
                -Icuda-generic -gencode "arch=compute_$architecture,code=sm_$architecture" -c "$file" \
                -o "$work/object"
        else
            common=(-x cuda -std=c++17 -O3 -Wall -Wextra -Werror -Wno-unknown-cuda-version -Wno-unknown-attributes -Wno-pass-failed
                    --cuda-path="$home" -isystem "$home/include" --cuda-gpu-arch="sm_$architecture" -I"$source/include" -I. -Icuda-generic)
            "$clang" "${common[@]}" --cuda-host-only -fsyntax-only "$file"
            "$clang" "${common[@]}" --cuda-device-only -S "$file" -o "$work/ptx"
            "$home/bin/ptxas" --warning-as-error -arch "sm_$architecture" "$work/ptx" -o "$work/object"
        fi
        echo "  $file sm_$architecture"
    done
done
echo "no warning"

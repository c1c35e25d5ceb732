#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a single build on one machine with one user cannot show: gcc and clang in each build type (warnings are errors),
# C17, no OpenBLAS, oneDNN 3, a processor without AVX, a decimal comma, a user without a home folder, one core, an
# installed tree, and memory and descriptors over 10^5 steps. Slow. test-matrix.sh [STEP...] runs the named steps, or
# all. Ends with a table and `N passed, N failed, N skipped`.
set -uo pipefail
cd "$(dirname "$0")/.."
source_dir=$PWD
scratch=$(mktemp -d -t seqlstm-matrix.XXXXXX)
chmod 755 "$scratch"
trap 'rm -rf "$scratch"' EXIT
quick_suites=(--suite unit --suite abi --suite conformance --suite cli)
small_run="run configs/adding-problem.yaml --set train.updates=50 --progress none"
table=()
passed=0 failed=0 skipped=0

# Each step returns 0 (passed), 1 (failed), or 77 (skipped, with the reason in $why).
why=''

have_program() {
    [ -x build/seqlstm ] && [ -f configs/adding-problem.yaml ] || { why='no build/seqlstm or no model file'; return 77; }
}

have_build() {
    [ -f build/build.ninja ] || { why='no build folder'; return 77; }
    tools/setup-tests.sh build
}

# build_all FOLDER [meson options]: builds everything, tests included, in a separate build folder, which is kept between
# calls; warnings are errors. nvcc's kernels are left out: they take ten minutes and show nothing about another C
# compiler. The host code of cuda-generic is built for the emulated device.
build_all() {
    local folder=$1
    shift
    tools/setup-tests.sh "$folder" -Dwerror=true -Dcuda-generic=disabled "$@" >"$scratch/setup.log" 2>&1 ||
        { tail -5 "$scratch/setup.log"; return 1; }
    ninja -C "$folder" >"$scratch/build.log" 2>&1 || { grep -E 'error|FAILED' "$scratch/build.log" | head; return 1; }
}

# build_type COMPILER COMPILER++ TYPE [meson test arguments]
build_type() {
    local compiler=$1 cxx=$2 type=$3
    shift 3
    command -v "$compiler" >/dev/null || { why="no $compiler"; return 77; }
    command -v "$cxx" >/dev/null || { why="no $cxx"; return 77; }
    CC=$compiler CXX=$cxx build_all "build-$compiler-$type" --buildtype="$type" &&
        tools/run-tests.sh "build-$compiler-$type" "$@"
}

step_gcc() { build_type gcc g++ debugoptimized "${quick_suites[@]}"; }
step_gcc_release() { build_type gcc g++ release --suite unit --suite conformance; }
step_gcc_plain() { build_type gcc g++ plain --suite unit; }
step_clang() { build_type clang clang++ debugoptimized "${quick_suites[@]}"; }
step_clang_release() { build_type clang clang++ release --suite unit --suite conformance; }
step_clang_plain() { build_type clang clang++ plain --suite unit; }

step_c17() {
    build_all build-c17 -Dc_std=c17 --buildtype=release && tools/run-tests.sh build-c17 --suite unit --suite abi
}

# Without the suite cli: its models name no backend, and the reference runs only if it is named.
step_no_openblas() {
    build_all build-noblas -Dcpu-blas=disabled || return 1
    [ ! -e build-noblas/backends/libseqlstm_backend_cpu-blas.so ] || { echo 'built all the same'; return 1; }
    tools/run-tests.sh build-noblas --suite unit --suite abi --suite conformance || return 1
    # a model that names no backend stops, and says what to do
    local said
    said=$(SEQLSTM_BACKEND_PATH= build-noblas/seqlstm run configs/adding-problem.yaml --out "$scratch/no-backend" 2>&1)
    [ $? = 3 ] && [[ $said == *libopenblas-dev* && $said == *'backends=[reference]'* ]] || { echo "$said"; return 1; }
    build-noblas/seqlstm run configs/adding-problem.yaml --set 'backends=[reference]' --set train.updates=5 \
        --progress none --out "$scratch/no-openblas"
}

# cpu-onednn with oneDNN 3: compiled with the newest headers; then built with those of 3.2 and run on its library, the
# last one that is published for GNU OpenMP. They are wheels of PyPI, kept in build-wheels.
step_onednn3() {
    [ "$(uname -m)" = x86_64 ] || { why='not an x86-64 machine'; return 77; }
    local name wheels=build-wheels module=plugins/libseqlstm_backend_cpu-onednn.so
    for name in onednn-devel onednn-devel-cpu-gomp==2023.2.0 onednn-cpu-gomp==2023.2.0; do
        local unpacked=$wheels/${name%%=*}
        [ -d "$unpacked" ] && continue
        python3 -m pip download --quiet --no-deps --dest "$scratch/$name" "$name" >"$scratch/pip.log" 2>&1 ||
            { why="no wheel $name: $(tail -1 "$scratch/pip.log")"; return 77; }
        python3 -m zipfile -e "$scratch/$name"/*.whl "$scratch/$name/all" || return 1
        mkdir -p "$wheels" && mv "$scratch/$name"/all/*.data/data "$unpacked" || return 1
    done
    [ -f build-onednn-newest/build.ninja ] ||
        meson setup build-onednn-newest -Dcuda-generic=disabled -Dwerror=true -Dcpu-onednn=enabled \
            -Dcpu-onednn-include="$PWD/$wheels/onednn-devel/include" >"$scratch/setup.log" 2>&1 ||
        { tail -5 "$scratch/setup.log"; return 1; }
    ninja -C build-onednn-newest "$module" >"$scratch/build.log" 2>&1 ||
        { grep -E 'error|FAILED' "$scratch/build.log" | head; return 1; }
    echo "compiled with $(grep -ao 'oneDNN headers [0-9.]*' "build-onednn-newest/$module")"
    build_all build-onednn3 -Dcpu-onednn=enabled \
        -Dcpu-onednn-include="$PWD/$wheels/onednn-devel-cpu-gomp/include" || return 1
    local library=$PWD/$wheels/onednn-cpu-gomp/lib
    LD_LIBRARY_PATH=$library build-onednn3/seqlstm backends | grep 'cpu-onednn .* ok .* oneDNN 3\.' ||
        { LD_LIBRARY_PATH=$library build-onednn3/seqlstm backends; return 1; }
    LD_LIBRARY_PATH=$library tools/run-tests.sh build-onednn3 conformance-cpu-onednn conformance-random-cpu-onednn \
        conformance-large-cpu-onednn test_onednn_idle test_onednn_primitives commands quantize
}

# A processor of 2008, with SSE4 only. OPENBLAS_CORETYPE would make OpenBLAS use instructions that are missing. Left out
# is what does not depend on instructions and takes most of the time here: tests that force an instruction set (those
# without a suffix use this processor's), and long float64 loops.
step_no_avx() {
    local qemu names
    qemu=$(command -v qemu-x86_64 || command -v qemu-x86_64-static) || { why='no qemu-user (Debian: qemu-user)'; return 77; }
    [ "$(uname -m)" = x86_64 ] || { why='not an x86-64 machine'; return 77; }
    have_build || return
    mapfile -t names < <(meson test -C build --list --suite unit 2>/dev/null | sed -n 's|.* / ||p' |
        grep -vE -- '-(portable|avx2)$|^test_(ref_recurrent|orthonormal|interval|number)$')
    [ ${#names[@]} -gt 0 ] || { echo 'build has no unit tests'; return 1; }
    env -u OPENBLAS_CORETYPE SEQLSTM_LOGBASE=no-avx tools/run-tests.sh build --timeout-multiplier 10 \
        --wrapper "$qemu -cpu Nehalem" "${names[@]}" || return 1
    have_program || return
    env -u OPENBLAS_CORETYPE "$qemu" -cpu Nehalem build/seqlstm $small_run --set train.updates=5 --set data.valid.size=64 \
        --set data.test.size=64 --out "$scratch/no-avx"
}

step_decimal_comma() {
    have_build || return
    command -v localedef >/dev/null || { why='no localedef (Debian: locales)'; return 77; }
    localedef -i de_DE -f UTF-8 "$scratch/de_DE.UTF-8" || { why='no de_DE (Debian: locales)'; return 77; }
    LOCPATH=$scratch LC_ALL=de_DE.UTF-8 SEQLSTM_LOGBASE=comma tools/run-tests.sh build --suite unit --suite cli || return 1
    have_program || return
    LC_ALL=C build/seqlstm $small_run --out "$scratch/point" >/dev/null || return 1
    LOCPATH=$scratch LC_ALL=de_DE.UTF-8 build/seqlstm $small_run --out "$scratch/comma" || return 1
    cmp "$scratch/point/final.safetensors" "$scratch/comma/final.safetensors"
}

# user nobody, without a home folder and without environment variables; only a scratch folder is writable
step_unprivileged() {
    [ "$(id -u)" = 0 ] || { why='needs root to become another user'; return 77; }
    command -v setpriv >/dev/null || { why='no setpriv'; return 77; }
    have_program || return
    local copy=$scratch/copy
    DESTDIR=$copy meson install -C build >/dev/null || return 1
    local program
    program=$(find "$copy" -name seqlstm -type f -perm -u+x | head -1)
    cp configs/adding-problem.yaml "$scratch/model.yaml"
    mkdir "$scratch/nobody" && chown 65534:65534 "$scratch/nobody"
    chmod -R a+rX "$copy" "$scratch/model.yaml"
    (cd "$scratch/nobody" && setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH=/usr/bin:/bin \
        SEQLSTM_BACKEND_PATH="$(dirname "$program")/../lib/seqlstm/backends:$source_dir/build/backends" \
        "$program" run "$scratch/model.yaml" --set train.updates=50 --progress none)
}

step_one_core() {
    command -v taskset >/dev/null || { why='no taskset'; return 77; }
    have_build || return
    local first
    first=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
    SEQLSTM_LOGBASE=one-core taskset -c "$first" tools/run-tests.sh build "${quick_suites[@]}" --num-processes 1
}

# A tree under DESTDIR: a plugin outside the project compiles with the flags of pkg-config.
step_install() {
    have_build || return
    local root=$scratch/root
    DESTDIR=$root meson install -C build >/dev/null || return 1
    local folder
    folder=$(dirname "$(find "$root" -name seqlstm-backend.pc)")
    export PKG_CONFIG_PATH=$folder PKG_CONFIG_SYSROOT_DIR=$root
    printf '#include <seqlstm/backend.h>\nint main(void) { return sizeof(struct seqlstm_backend) == 0; }\n' >"$scratch/a.c"
    # shellcheck disable=SC2046
    cc -std=c11 $(pkg-config --cflags seqlstm-backend) "$scratch/a.c" -o "$scratch/a" && "$scratch/a" || return 1
    if [ -f include/seqlstm/seqlstm.h ]; then
        printf '#include <seqlstm/seqlstm.h>\nint main(void) { return 0; }\n' >"$scratch/b.c"
        # shellcheck disable=SC2046
        cc -std=c11 "$scratch/b.c" $(pkg-config --cflags --libs seqlstm) -o "$scratch/b" || return 1
    fi
    unset PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
}

# Resident memory and open descriptors of a run of 10^5 updates. They must not grow after the first tenth, which
# contains every shape of batch and two validations.
step_flat() {
    have_program || return
    build/seqlstm run configs/adding-problem.yaml --set train.updates=100000 --set data.batch_size=2 \
        --set train.early_stopping=null --set train.epochs=null --progress none --out "$scratch/flat" >"$scratch/flat.log" 2>&1 &
    local pid=$! early='' late='' fds_early='' fds_late='' update=0
    while kill -0 $pid 2>/dev/null; do
        sleep 1
        update=$(tail -n 1 "$scratch/flat/metrics.jsonl" 2>/dev/null | sed -n 's/.*"update":\([0-9]*\).*/\1/p')
        local rss fds
        rss=$(awk '/VmRSS/ {print $2}' /proc/$pid/status 2>/dev/null)
        fds=$(ls /proc/$pid/fd 2>/dev/null | wc -l)
        [ -n "$rss" ] || break
        [ "${update:-0}" -lt 100000 ] || continue # over: the test split and the report take memory of their own
        if [ -z "$early" ] && [ "${update:-0}" -ge 10000 ]; then early=$rss fds_early=$fds; fi
        late=$rss fds_late=$fds
    done
    wait $pid || { tail -5 "$scratch/flat.log"; return 1; }
    [ -n "$early" ] || { why='the run was over before it could be watched'; return 77; }
    echo "after a tenth: $early KiB, $fds_early descriptors; at the end: $late KiB, $fds_late descriptors"
    [ "$late" -le $((early + 1024)) ] && [ "$fds_late" -le $((fds_early + 1)) ]
}

steps=("$@")
[ $# -gt 0 ] || steps=(gcc gcc_release gcc_plain clang clang_release clang_plain c17 no_openblas onednn3 no_avx decimal_comma
    unprivileged one_core install flat)
for name in "${steps[@]}"; do
    echo "==> $name"
    why=''
    start=$SECONDS
    "step_$name"
    case $? in
    0) verdict=pass; passed=$((passed + 1)) ;;
    77) verdict="skip: $why"; skipped=$((skipped + 1)) ;;
    *) verdict=FAIL; failed=$((failed + 1)) ;;
    esac
    table+=("$(printf '%-16s %4d s  %s' "$name" $((SECONDS - start)) "$verdict")")
done
printf '%s\n' '' "${table[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]

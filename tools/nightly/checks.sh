# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The long checks of tools/nightly.sh, which sources this file: a function each.
checks='run_folders kills ranks transport mpi writers serving serving_bits serving_follow kubernetes imports python_calls python_asan python_memory python_models python_conversion python_frames python_types bare site fuzz large emulated mutants'

# One line of a check: check NAME WHAT COMMAND... The last line of its output is "N of them, N failed". A command that
# ends with 77 could not run here: its last line is the reason, and nothing is missed.
check() {
    local name=$1 what=$2 begin=$SECONDS code=0 last failed verdict=missed
    shift 2
    "$@" >"$runs/$name.log" 2>&1 || code=$?
    last=$(tail -n 1 "$runs/$name.log")
    failed=$(sed -n 's/.*, \([0-9]*\) \(failed\|wrong\|missed\)$/\1/p' <<<"$last")
    if [ "$code" -eq 77 ]; then
        failed=$last verdict=skipped
    elif [ "$code" -eq 0 ] && [ "$failed" = 0 ]; then
        verdict=met
    else
        missed=1
    fi
    rows+=("| $name | $what | ${failed:-did not run} | <= 0 | $verdict | $((SECONDS - begin)) s |")
    printf '%s\n' "${rows[-1]}" >&2
}

run_folders() {
    check run_folders 'changed run folders that crash, or change a result silently' \
        python3 "$here/tests/e2e/fuzz_runs.py" "$program" --mutations 10000 --keep "$runs/changed"
}

kills() {
    check kills 'kill -9 at a system call: other bits, or something left over' \
        python3 "$here/tests/e2e/kill_calls.py" "$program" --kills 1000
}

ranks() {
    check ranks 'kill -9 of a random rank: other bits, or a rank that stays' \
        python3 "$here/tests/e2e/kill_ranks.py" "$program" --kills 200
}

transport() {
    check transport 'conformance of comm-shm on 8 ranks, to 100 million elements' \
        "$program" conformance comm-shm --ranks 8 --full --timeout 1200
}

mpi() {
    check mpi 'conformance of comm-mpi on 4 ranks under mpirun, to 100 million elements' \
        "$program" conformance comm-mpi --ranks 4 --full --timeout 1200 --launcher 'mpirun --allow-run-as-root --oversubscribe'
}

writers() {
    check writers 'two writers of a run folder: both work, or neither' \
        python3 "$here/tests/e2e/two_writers.py" "$program" --pairs 100
}

serving() {
    check serving 'a million random requests to serve: a wrong answer, something lost, or memory that grows' \
        python3 "$here/tests/e2e/serve_requests.py" "$program" --requests 1000000
}

serving_bits() {
    check serving_bits 'random requests to serve --reproducible: other bits than alone' \
        python3 "$here/tests/e2e/serve_requests.py" "$program" --requests 300000 --flag=--reproducible
}

serving_follow() {
    check serving_follow 'random requests to serve while newer weights are taken over: a wrong answer, or something lost' \
        python3 "$here/tests/e2e/serve_requests.py" "$program" --requests 300000 --follow
}

kubernetes() {
    check kubernetes 'objects of the Kubernetes manifest that break its schemas' \
        python3 "$here/tests/e2e/kubernetes.py" "$program"
}

imports() {
    check imports 'random ONNX graphs: imported with other results, or refused though described' \
        python3 "$here/tests/fuzz/import_graphs.py" "$program"
}

# A test of the Python package, with the first Python that has what it imports: PYTHON, or that of the system.
package() {
    local needs=$1 candidate
    shift
    for candidate in "${PYTHON:-python3}" python3 /usr/bin/python3; do
        "$candidate" -c "import cffi, numpy, $needs" 2>/dev/null || continue
        PYTHONPATH=$here/build/python SEQLSTM_LIBRARY=$here/build/core/libseqlstm.so.0 \
            SEQLSTM_BACKEND_PATH=$here/build/backends "$candidate" "$@"
        return
    done
    echo "no python3 has cffi, numpy and $needs"
    return 77
}

python_calls() {
    check python_calls 'random calls of the Python package that end in something else than a result or an exception' \
        package sys "$here/python/tests/fuzz_calls.py" 10000
}

python_asan() {
    check python_asan 'the same under the address and undefined behaviour sanitizers' \
        "$here/tools/nightly/python_asan.sh" /usr/bin/python3 10000
}

python_memory() {
    check python_memory 'kinds of calls from Python that need more memory after a million' \
        package sys "$here/python/tests/flat_memory.py" 1000000
}

python_models() {
    check python_models 'checks of scikit-learn that the estimators fail' package sklearn "$here/python/tests/check_estimators.py"
}

python_conversion() {
    check python_conversion 'models of PyTorch and Keras that are converted wrongly' package torch "$here/python/tests/check_conversion.py"
}

python_frames() {
    check python_frames 'tables of pandas and tensors of PyTorch that are read wrongly' \
        package 'pandas, torch' "$here/python/tests/check_frames.py"
}

python_types() {
    check python_types 'types of the Python package that mypy refuses, or that differ from it' \
        package mypy "$here/python/tests/check_types.py"
}

bare() {
    check bare 'installations in a bare Debian 12 that fail' "$here/tools/nightly/bare.sh" "$runs/bare"
}

site() {
    if /usr/bin/python3 -c 'import mkdocs, material' 2>/dev/null; then
        check site 'dead links of the documentation site' /usr/bin/python3 "$here/packaging/site.py" "$runs/site"
    else
        check site 'dead links of the documentation site' sh -c 'echo "no mkdocs and mkdocs-material"; exit 77'
    fi
}

fuzz() {
    check fuzz 'fuzz targets, an hour each, that found an input' "$here/tools/nightly/fuzz.sh" 3600
}

large() {
    check large 'tests of the suite `large` under the address and undefined behaviour sanitizers' \
        "$here/tools/nightly/large.sh"
}

emulated() {
    check emulated 'cases that cuda-generic fails on the emulated device, by any variant' "$here/tools/nightly/emulated.sh"
}

mutants() {
    check mutants 'planted bugs that no test notices' python3 "$here/tests/mutants/run.py" "$here"
}

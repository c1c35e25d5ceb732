/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at the n-th allocation, for every n, while data are opened, batched, written and
 * read: a status, nothing lost (sanitizers), nothing written. The same with the n-th call that opens, looks at, reads
 * or maps a file: the answer names the file and the reason. */
#include "data_fixture.h"
#include "npy_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "data/batch/prefetch.h"
#include "data/batch/stats.h"
#include "data/dataset/fingerprint.h"
#include "data/table/columns.h"

#include "oom.h"

/* ---- calls that fail: read_faults_dep of meson.build leads them here ------------------------------------------- */

static _Atomic int read_calls, read_target, read_errno;

/* The n-th call from now on fails, and that one alone; n >= 1. */
static void read_fail_at(int n, int error_number)
{
    read_calls = 0;
    read_errno = error_number;
    read_target = n;
}

/* Stops failing. True if a failure has happened since read_fail_at. */
static bool read_disarm(void)
{
    const bool failed = read_target > 0 && read_calls >= read_target;
    read_target = 0;
    return failed;
}

static bool read_now(void)
{
    if (atomic_fetch_add(&read_calls, 1) + 1 != read_target)
        return false;
    errno = read_errno;
    return true;
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return read_now() ? -1 : __real_open64(path, flags, mode);
}

#define READ_WRAP(type, failed, name, parameters, arguments)                                                           \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        return read_now() ? failed : __real_##name arguments;                                                          \
    }

READ_WRAP(int, -1, fstat64, (int file, struct stat *out), (file, out))
READ_WRAP(ssize_t, -1, read, (int file, void *out, size_t bytes), (file, out, bytes))
READ_WRAP(ssize_t, -1, pread64, (int file, void *out, size_t bytes, off_t at), (file, out, bytes, at))
READ_WRAP(void *, MAP_FAILED, mmap64, (void *at, size_t bytes, int access, int flags, int file, off_t from),
          (at, bytes, access, flags, file, from))

/* ---- acts ------------------------------------------------------------------------------------------------------- */

static seqlstm_status read_fingerprints(const struct sl_model *model, struct seqlstm_error *err)
{
    struct sl_data_file files[SL_DATA_FILE_COUNT];
    const int count = sl_source_list_files(&model->data.splits[SL_SPLIT_TRAIN], files);
    for (int i = 0; i < count; i++) {
        struct sl_fingerprint found;
        SEQLSTM_TRY(sl_fingerprint_compute(files[i].path, &found, err));
    }
    return SEQLSTM_OK;
}

/* Opens train and what hangs on it; NO_MEMORY or a whole result. */
static seqlstm_status open_all(const struct sl_model *model, struct seqlstm_error *err)
{
    struct sl_dataset *train = NULL, *valid = NULL;
    struct sl_data_state *state = NULL, *copy = NULL;
    struct sl_batcher *batcher = NULL;
    struct sl_batch *batch = NULL;
    struct sl_data_stats *stats = NULL;
    struct sl_columns columns = {0};
    struct sl_buf text = {0};
    struct sl_batcher_request request = {.phase = SL_BATCHING_TRAIN, .seed = 1};
    seqlstm_status status = sl_dataset_open_train(model, &train, &state, err);
    if (status == SEQLSTM_OK)
        status = sl_data_state_write(state, &text, err);
    if (status == SEQLSTM_OK)
        status = sl_data_state_read("state", sl_buf_text(&text), text.length_bytes, &copy, err);
    if (status == SEQLSTM_OK && sl_dataset_has_split(model, SL_SPLIT_VALID))
        status = sl_dataset_open(model, SL_SPLIT_VALID, copy, &valid, err);
    if (status == SEQLSTM_OK)
        status = sl_batcher_open(train, &request, &batcher, err);
    if (status == SEQLSTM_OK)
        status = sl_batcher_next(batcher, &batch, err);
    if (status == SEQLSTM_OK)
        status = sl_data_stats_create(train, NULL, &stats, err);
    if (status == SEQLSTM_OK)
        status = sl_columns_read(model, model->data.splits[SL_SPLIT_TRAIN].inputs,
                                 model->data.splits[SL_SPLIT_TRAIN].targets, &columns, err);
    if (status == SEQLSTM_OK)
        status = read_fingerprints(model, err);
    sl_columns_deinit(&columns);
    sl_data_stats_destroy(stats);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    sl_dataset_close(valid);
    sl_dataset_close(train);
    sl_data_state_destroy(copy);
    sl_data_state_destroy(state);
    sl_buf_deinit(&text);
    return status;
}

static void check_reads(const struct sl_model *model)
{
    const int before = descriptors_count();
    for (int n = 1;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        read_fail_at(n, EIO);
        seqlstm_status status = open_all(model, &err);
        if (!read_disarm()) {
            assert_int_equal(status, SEQLSTM_OK);
            break;
        }
        if (status != SEQLSTM_IO || err.native_code != EIO || !strstr(err.message, strerror(EIO)) ||
            !strstr(err.message, data_folder))
            fail_msg("call %d: status %d, %s", n, (int)status, err.message);
        assert_int_equal(descriptors_count(), before);
        assert_true(n < 100);
    }
}

static void check(const char *data, const char *layers, const char *train)
{
    struct sl_model *model = data_model(data, layers, train);
    check_reads(model);
    for (int n = 1;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        oom_fail_at(n);
        seqlstm_status status = open_all(model, &err);
        if (!oom_disarm()) {
            if (status != SEQLSTM_OK)
                fail_msg("%s", err.message);
            break;
        }
        if (status != SEQLSTM_NO_MEMORY)
            fail_msg("allocation %d: status %d, %s", n, (int)status, err.message);
        assert_true(n < 20000);
    }
    sl_model_destroy(model);
}

static void test_text(void **state)
{
    (void)state;
    data_write("train.txt", "1 a b c\n2 d e\n1 a\n2 b\n1 c d\n");
    check("type: lines, train: {file: train.txt}, valid: {split: 0.4}, label: first, "
          "tokenizer: {type: whitespace, specials: [unk, eos], lowercase: true}, batch_size: 2",
          MODEL_CLASSIFY, "task: classify");
    check("type: text, train: {file: train.txt}, encoding: latin-1, tokenizer: {type: char}, "
          "batching: {unit: stream, bptt: 3}, batch_size: 2",
          MODEL_LM, "task: language_model");
    char words[3001]; /* converted in several goes */
    for (size_t at = 0; at + 1 < sizeof words; at++)
        words[at] = (char)('a' + at % 3);
    words[sizeof words - 1] = '\0';
    words[1500] = '\n';
    data_write("long.txt", words);
    check("type: text, train: {file: long.txt}, encoding: latin-1, tokenizer: {type: char}, batch_size: 2", MODEL_LM,
          "task: language_model");
    check("type: conll, train: {file: train.txt}, delimiter: \" \", label: 2, tokenizer: {type: whitespace}, "
          "batch_size: 2",
          MODEL_TAG, "task: tag");
    check("type: lines, train: {file: train.txt}, label: first, tokenizer: {type: char}, batch_size: 2, "
          "batching: {bucketing: {count: 2}}",
          MODEL_CLASSIFY, "task: classify");
    data_write("vocab.txt", "a\nb\n");
    check("type: text, train: {file: train.txt}, tokenizer: {type: whitespace, vocab: vocab.txt}, batch_size: 2",
          MODEL_LM, "task: language_model");
}

/* A token that is longer than those before it, and than the heap: what cannot grow is not written to. */
static void test_a_long_token(void **state)
{
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES + 20);
    (void)state;
    mallopt(M_MMAP_THRESHOLD, 128 << 10); /* long texts lie elsewhere */
    assert_non_null(text);
    strcpy(text, "1 A\n2 ");
    memset(text + 6, 'B', BYTES);
    strcpy(text + 6 + BYTES, " C\n");
    data_write("long.txt", text);
    free(text);
    struct sl_model *model =
        data_model("type: lines, train: {file: long.txt}, label: first, tokenizer: {type: whitespace, "
                   "lowercase: true}, batch_size: 2",
                   MODEL_CLASSIFY, "task: classify");
    for (int n = 1;; n++) {
        struct sl_dataset *train = NULL;
        struct sl_data_state *learned = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        oom_fail_at(n);
        const seqlstm_status status = sl_dataset_open_train(model, &train, &learned, &err);
        const bool fails = oom_disarm();
        assert_int_equal(status, fails ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        sl_dataset_close(train);
        sl_data_state_destroy(learned);
        if (!fails)
            break;
    }
    sl_model_destroy(model);
}

static void test_tables(void **state)
{
    (void)state;
    data_write("train.csv", "g,t,a,b\n1,1,1,2\n2,1,,3\n1,2,4,5\n2,2,6,7\n1,3,1,1\n");
    check("type: csv, train: {file: train.csv}, valid: {file: train.csv}, group: g, time: t, inputs: [a], targets: "
          "[b], "
          "window: {length: 1}, scale: {type: standard, fit: all}, missing: mean, batch_size: 2",
          MODEL_REGRESS, "loss: mse");
    check("type: csv, train: {file: train.csv}, valid: {split: 0.5}, inputs: [a], targets: [b], missing: drop, "
          "batch_size: 2",
          MODEL_DENSE, "loss: mse");
    check("type: csv, train: {file: train.csv}, inputs: [b], targets: [a], missing: zero, batch_size: 2", MODEL_DENSE,
          "loss: mse"); /* targets that are filled */
    check("type: csv, train: {file: train.csv}, group: g, inputs: [a], label: g, missing: drop, batch_size: 2",
          MODEL_CLASSIFY_VALUES, "task: classify");
    data_write("train.csv", "g;t;a;b\n1;2020-01;1,5;\n2;2020-01;-9;3\n1;2020-02;4;5\n2;2020-02;6;7\n1;2020-03;1;1\n");
    check("type: csv, train: {file: train.csv}, delimiter: \";\", decimal: \",\", group: g, time: {column: t, step: "
          "1mo}, inputs: [a], targets: [b], missing: {type: zero, targets: ignore, values: [-9]}, batch_size: 2",
          MODEL_REGRESS_STEPS, "loss: mse");
}

/* Inputs of which rows are dropped: as sequences, as windows over a gap, and row by row. */
static void test_inputs(void **state)
{
    (void)state;
    static const char *const forms[][2] = {
        {"group: g, ", MODEL_REGRESS_STEPS},
        {"window: {length: 1}, time: {column: t, step: 1, gaps: break}, ", MODEL_REGRESS},
        {"", MODEL_DENSE}};
    static const char text[] = "g,t,a\n1,1,\n1,2,3\n2,4,5\n2,5,\n";
    data_write("train.csv", "g,t,a,b\n1,1,1,2\n1,2,4,5\n2,3,6,7\n");
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        char data[300];
        snprintf(data, sizeof data,
                 "type: csv, train: {file: train.csv}, %sinputs: [a], targets: [b], missing: drop, batch_size: 2",
                 forms[f][0]);
        struct data_open o = data_open_train(data, forms[f][1], "loss: mse");
        struct sl_input_request request = {.data = text, .data_bytes = sizeof text - 1};
        for (int n = 1;; n++) {
            struct sl_dataset *input = NULL;
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            oom_fail_at(n);
            seqlstm_status status = sl_dataset_open_input(o.model, o.state, &request, &input, &err);
            if (!oom_disarm()) {
                assert_int_equal(status, SEQLSTM_OK);
                sl_dataset_close(input);
                break;
            }
            assert_int_equal(status, SEQLSTM_NO_MEMORY);
            assert_true(n < 1000);
        }
        data_close(&o);
    }
}

/* Where the tokens of a text cannot be kept, the text itself is read; what was begun is removed. */
static void test_cached(void **state)
{
    (void)state;
    char cache[160], command[400];
    data_write("large.txt", "a b\nc\n\nb a d\ne\n");
    struct sl_model *model = data_model("type: text, train: {file: large.txt}, tokenizer: {type: whitespace}, "
                                        "batch_size: 2",
                                        MODEL_LM, "task: language_model");
    snprintf(cache, sizeof cache, "%s/cache", data_folder);
    setenv("SEQLSTM_CACHE", cache, 1);
    setenv("SEQLSTM_CACHE_LEAST", "0", 1);
    const int before = descriptors_count();
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        read_fail_at(n, EIO);
        const seqlstm_status status = open_all(model, &err);
        failed = read_disarm();
        if (status != SEQLSTM_OK &&
            !(failed && status == SEQLSTM_IO && err.native_code == EIO && strstr(err.message, data_folder)))
            fail_msg("call %d: status %d, %s", n, (int)status, err.message);
        assert_int_equal(descriptors_count(), before);
        snprintf(command, sizeof command, "! ls -R '%s' 2>&1 | grep -q '[.]tmp' && rm -rf '%s'", cache, cache);
        if (system(command) != 0)
            fail_msg("call %d leaves a file", n);
        assert_true(n < 100);
    }
    unsetenv("SEQLSTM_CACHE_LEAST");
    unsetenv("SEQLSTM_CACHE");
    sl_model_destroy(model);
}

/* Labels that the training split lacks. */
static void test_unknown_labels(void **state)
{
    (void)state;
    data_write("train.txt", "1 a b c\n2 d e\n");
    data_write("valid.txt", "3 a\n1 d\n4 e\n");
    check(
        "type: lines, train: {file: train.txt}, valid: {file: valid.txt}, label: first, tokenizer: {type: whitespace}, "
        "batch_size: 2",
        MODEL_CLASSIFY, "task: classify");
}

static void test_generators(void **state)
{
    (void)state;
    check("type: generator, train: {name: adding_problem, size: 5, length: [3, 5]}, batch_size: 2", MODEL_REGRESS,
          "loss: mse");
    check("type: generator, train: {name: copy, size: 5, length: 3, symbols: 3}, batch_size: 2", MODEL_TAG,
          "task: tag");
}

static void test_npy(void **state)
{
    (void)state;
    char x[NPY_HEADER + 32], y[NPY_HEADER + 8];
    npy_write_header(x, "<f4", "(2, 2, 2)");
    npy_write_header(y, "<f4", "(2,)");
    memset(x + NPY_HEADER, 0, 32);
    memset(y + NPY_HEADER, 0, 8);
    data_write_bytes("x.npy", x, sizeof x);
    data_write_bytes("y.npy", y, sizeof y);
    check("type: npy, train: {x: x.npy, y: y.npy}, batch_size: 2", MODEL_REGRESS, "loss: mse");
}

static void test_pairs(void **state)
{
    (void)state;
    data_write("a.txt", "x y\n\nx\n");
    data_write("b.txt", "1\n2 3\n4\n");
    data_write("c.tsv", "x y\t1\nz\t2\n");
    check("type: lines, train: {source: a.txt, target: b.txt}, valid: {split: 0.4}, batch_size: 2, tokenizer: {type: "
          "whitespace, shared: true}",
          MODEL_PAIRS, PAIRS);
    check("type: lines, train: {file: b.txt}, batch_size: 2, batching: {max_length: 2, on_overflow: split}",
          MODEL_PAIRS, PAIRS);
    check("type: tsv, train: {file: c.tsv, source: 1, target: 2, header: false}, batch_size: 2", MODEL_PAIRS, PAIRS);
    check("type: generator, train: {name: addition, size: 4}, batch_size: 2", MODEL_PAIRS, PAIRS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_long_token), /* while the heap is small */
        cmocka_unit_test(test_text),           cmocka_unit_test(test_tables),
        cmocka_unit_test(test_generators),     cmocka_unit_test(test_npy),
        cmocka_unit_test(test_pairs),          cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_unknown_labels), cmocka_unit_test(test_cached),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* .npy arrays: versions, types and shapes, and headers that lie. */
#include <math.h>

#include "data_fixture.h"

#include "data/read/npy.h"

#define MSE       "loss: mse"
#define NPY(more) "type: npy, train: {x: x.npy" more "}, batch_size: 8"

/* A file of the format, whose header is `dict` as it stands. */
static size_t make(char *out, int version, const char *dict, const void *data, size_t bytes)
{
    size_t prefix = version == 1 ? 10 : 12, length = strlen(dict) + 1;
    length += (64 - (prefix + length) % 64) % 64;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)version;
    out[7] = 0;
    for (size_t i = 8; i < prefix; i++)
        out[i] = (char)(length >> 8 * (i - 8) & 0xff);
    memset(out + prefix, ' ', length);
    memcpy(out + prefix, dict, strlen(dict));
    out[prefix + length - 1] = '\n';
    if (bytes > 0)
        memcpy(out + prefix + length, data, bytes);
    return prefix + length + bytes;
}

static void write_npy(const char *name, const char *descr, const char *shape, const void *data, size_t bytes)
{
    char tuple[64];
    snprintf(tuple, sizeof tuple, "(%s)", shape);
    data_write_npy(name, descr, tuple, data, bytes);
}

static void test_headers(void **state)
{
    (void)state;
    char file[512];
    const int32_t data[6] = {1, 2, 3, 4, 5, -6};
    struct sl_npy npy;
    for (int version = 1; version <= 3; version++) {
        size_t bytes = make(file, version, "{'shape': (2, 3), 'fortran_order': False, 'descr': '<i4'}", data, 24);
        assert_int_equal(sl_npy_parse("x", file, bytes, &npy, NULL), SEQLSTM_OK);
        assert_true(npy.dimensions == 2 && npy.shape[0] == 2 && npy.shape[1] == 3 && npy.shape[2] == 1);
        assert_int_equal(npy.elems, 6);
        assert_true(sl_npy_get(&npy, 5) == -6 && sl_npy_get_integer(&npy, 0) == 1 && sl_npy_is_integer(&npy));
    }
    size_t bytes = make(file, 1, "{'descr': '<f8', 'fortran_order': True, 'shape': (), }", (double[]){2.5}, 8);
    assert_int_equal(sl_npy_parse("x", file, bytes, &npy, NULL), SEQLSTM_OK);
    assert_true(npy.dimensions == 0 && npy.elems == 1 && sl_npy_get(&npy, 0) == 2.5);
    bytes = make(file, 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 3, 1, 2), }", data, 24);
    assert_int_equal(sl_npy_parse("x", file, bytes, &npy, NULL), SEQLSTM_OK);
    assert_true(npy.dimensions == SL_NPY_DIMENSIONS && npy.elems == 6 && npy.shape[1] == 3 && npy.shape[3] == 2);
}

static void test_no_file(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_npy npy;
    assert_int_equal(sl_npy_open("/nonexistent/x.npy", &npy, &err), SEQLSTM_NOT_FOUND);
    assert_non_null(strstr(err.message, "/nonexistent/x.npy"));
    assert_int_equal(sl_npy_open(data_folder, &npy, &err), SEQLSTM_IO);
}

/* Blanks and commas where Python allows them. */
static void test_spellings(void **state)
{
    (void)state;
    static const char *const dicts[] = {
        "{'descr':'<i4','fortran_order':False,'shape':(2,3)}",
        "  {  'descr'  :  '<i4' , 'fortran_order'  : False  , 'shape' :  ( 2 , 3 , )  }",
        "{'shape': (2L, 3L), 'fortran_order': False, 'descr': \"<i4\", }",
        "{'shape':(2,3,),'descr':'<i4','fortran_order':False,}"};
    const int32_t data[6] = {1, 2, 3, 4, 5, -6};
    for (size_t k = 0; k < sizeof dicts / sizeof *dicts; k++) {
        char file[512];
        struct sl_npy npy;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        size_t bytes = make(file, 1, dicts[k], data, sizeof data);
        if (sl_npy_parse("x", file, bytes, &npy, &err) != SEQLSTM_OK)
            fail_msg("%s: %s", dicts[k], err.message);
        assert_true(npy.dimensions == 2 && npy.shape[0] == 2 && npy.shape[1] == 3 && sl_npy_get(&npy, 5) == -6);
    }
}

/* The ends of the range of every type. */
static void test_types(void **state)
{
    (void)state;
    static const struct {
        const char *descr, *bytes;
        size_t width;
        double values[2];
        bool is_integer;
    } cases[] = {{"|i1", "\x80\x7f", 1, {-128, 127}, true},
                 {"|u1", "\x00\xff", 1, {0, 255}, true},
                 {"|b1", "\x00\x01", 1, {0, 1}, true},
                 {"<i2", "\x00\x80\xff\x7f", 2, {-32768, 32767}, true},
                 {"<u2", "\x01\x00\xff\xff", 2, {1, 65535}, true},
                 {"<i4", "\x00\x00\x00\x80\xff\xff\xff\x7f", 4, {-2147483648.0, 2147483647.0}, true},
                 {"<u4", "\x02\x00\x00\x00\xff\xff\xff\xff", 4, {2, 4294967295.0}, true},
                 {"<i8",
                  "\x00\x00\x00\x00\x00\x00\x00\x80\x03\x00\x00\x00\x01\x00\x00\x00",
                  8,
                  {-9223372036854775808.0, 4294967299.0},
                  true},
                 {"<f4", "\x00\x00\xc0\xbf\x00\x00\x80\x7f", 4, {-1.5, (double)INFINITY}, false},
                 {"<f8", "\x00\x00\x00\x00\x00\x00\xf8\xbf\x9a\x99\x99\x99\x99\x99\xb9\x3f", 8, {-1.5, 0.1}, false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char dict[128], file[512];
        struct sl_npy npy;
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }", cases[k].descr);
        size_t bytes = make(file, 1, dict, cases[k].bytes, 2 * cases[k].width);
        assert_int_equal(sl_npy_parse("x", file, bytes, &npy, NULL), SEQLSTM_OK);
        assert_int_equal(sl_npy_is_integer(&npy), cases[k].is_integer);
        for (int i = 0; i < 2; i++) {
            assert_true(sl_npy_get(&npy, i) == cases[k].values[i]);
            if (cases[k].is_integer)
                assert_true((double)sl_npy_get_integer(&npy, i) == cases[k].values[i]);
        }
    }
}

static void expect_bad(int version, const char *dict, size_t data_bytes, size_t cut, const char *part)
{
    char file[512];
    const char data[64] = {0};
    struct sl_npy npy = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    size_t bytes = make(file, version, dict, data, data_bytes) - cut;
    assert_int_equal(sl_npy_parse("x.npy", file, bytes, &npy, &err), SEQLSTM_CORRUPT_DATA);
    if (!strstr(err.message, part) || !strstr(err.message, "x.npy"))
        fail_msg("\"%s\" lacks \"%s\"", err.message, part);
    char path[160];
    const int before = descriptors_count();
    snprintf(path, sizeof path, "%s/x.npy", data_folder);
    data_write_bytes("x.npy", file, bytes);
    assert_int_equal(sl_npy_open(path, &npy, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, part));
    assert_int_equal(descriptors_count(), before);
}

static void test_bad_headers(void **state)
{
    (void)state;
    static const char good[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }";
    struct sl_npy npy;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_npy_parse("x", "PK\3\4aaaaaaaaaa", 14, &npy, &err), SEQLSTM_CORRUPT_DATA);
    assert_int_equal(sl_npy_parse("x", "", 0, &npy, &err), SEQLSTM_CORRUPT_DATA);
    expect_bad(4, good, 16, 0, "version 4.0");
    expect_bad(1, good, 16, 1, "cut off");
    expect_bad(1, good, 0, 10, "cut off at");
    expect_bad(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (4,), }", 16, 0, "'>f4' is not read");
    expect_bad(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (4,), }", 8, 0, "astype('float32')");
    expect_bad(1, "{'descr': '|O', 'fortran_order': False, 'shape': (4,), }", 16, 0, "'|O'");
    expect_bad(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16, 0, "ascontiguousarray");
    expect_bad(1, "{'descr': '<f4', 'shape': (4,), }", 16, 0, "not understood");
    expect_bad(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4", 16, 0, "not understood");
    expect_bad(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-4,), }", 16, 0, "not understood");
    expect_bad(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,4), }", 16, 0, "not understood");
    expect_bad(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }", 16, 0, "not understood");
    expect_bad(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 16, 0, "cut off");
    expect_bad(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 16, 0,
               "not understood");
    expect_bad(1, "", 0, 0, "not understood");
}

static void test_sequences(void **state)
{
    (void)state;
    float x[12], y[4] = {1, 2, 3, 4};
    for (int i = 0; i < 12; i++)
        x[i] = i == 2 ? NAN : (float)i; /* behind the length of its sequence */
    write_npy("x.npy", "<f4", "2, 3, 2", x, sizeof x);
    write_npy("y.npy", "<f4", "2, 2", y, sizeof y);
    write_npy("n.npy", "<i8", "2", (int64_t[]){1, 3}, 16);
    struct data_open o = data_open_train(NPY(", y: y.npy, lengths: n.npy"), MODEL_REGRESS, MSE);
    const struct sl_data_facts *facts = sl_dataset_get_facts(o.train);
    assert_true(facts->input.features == 2 && facts->target.features == 2 && facts->rows == 4 && facts->longest == 3);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    static const float packed[] = {6, 7, 0, 1, 8, 9, 10, 11}, targets[] = {3, 4, 1, 2};
    assert_memory_equal(batch->input.values, packed, sizeof packed);
    assert_memory_equal(batch->target.values, targets, sizeof targets);
    assert_int_equal(sl_dataset_get_files(o.train).count, 3);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    struct sl_input_request request = {.data = "no array", .data_bytes = 8, .name = "upload"};
    struct sl_dataset *input = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_dataset_open_input(o.model, o.state, &request, &input, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "upload: no .npy file"));
    char path[160];
    snprintf(path, sizeof path, "%s/x.npy", data_folder);
    x[2] = 2;
    write_npy("x.npy", "<f4", "2, 3, 2", x, sizeof x);
    request = (struct sl_input_request){.path = path};
    assert_int_equal(sl_dataset_open_input(o.model, o.state, &request, &input, NULL), SEQLSTM_OK);
    assert_int_equal(sl_dataset_get_length(input, 0), 3);
    sl_dataset_close(input);
    data_close(&o);
}

static void test_vectors_and_classes(void **state)
{
    (void)state;
    const double x[6] = {1, 2, 3, 4, 5, 6};
    write_npy("x.npy", "<f8", "3, 2", x, sizeof x);
    write_npy("y.npy", "<i4", "3", (int32_t[]){2, 0, 2}, 12);
    struct data_open o = data_open_train(
        NPY(", y: y.npy"), "[{type: dense, units: 3}, {type: output, activation: softmax}]", "loss: cross_entropy");
    const struct sl_data_facts *facts = sl_dataset_get_facts(o.train);
    assert_false(facts->has_steps);
    assert_int_equal(facts->target.classes, 3); /* largest plus one, though nothing is of class 1 */
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_false(batch->has_steps);
    assert_true(batch->input.values[5] == 6 && batch->target.ids[2] == 2);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
    write_npy("y.npy", "<f4", "3", (float[]){2, 0.5f, 2}, 12);
    data_expect_failure(NPY(", y: y.npy"), "[{type: dense, units: 3}, {type: output, activation: softmax}]",
                        "loss: cross_entropy", SEQLSTM_CORRUPT_DATA, "y.npy: element [1] is 0.5, expected a class");
    write_npy("y.npy", "<i4", "3", (int32_t[]){2, 0, 2000000000}, 12);
    data_expect_failure(NPY(", y: y.npy"), "[{type: dense, units: 3}, {type: output, activation: softmax}]",
                        "loss: cross_entropy", SEQLSTM_CORRUPT_DATA, "below a million");
}

static void test_wrong_values_and_shapes(void **state)
{
    (void)state;
    float x[8] = {0};
    write_npy("y.npy", "<f4", "2", x, 8);
    x[5] = NAN;
    write_npy("x.npy", "<f4", "2, 2, 2", x, 32);
    data_expect_failure(NPY(", y: y.npy"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA, "x.npy: element [1, 0, 1] is ");
    x[5] = 0;
    write_npy("x.npy", "<f4", "2, 2, 2", x, 32);
    write_npy("y.npy", "<f4", "3", x, 12);
    data_expect_failure(NPY(", y: y.npy"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA,
                        "y.npy: the shape is [3], expected");
    write_npy("y.npy", "<f4", "2, 3", x, 24);
    data_expect_failure(NPY(", y: y.npy"), MODEL_REGRESS_STEPS, MSE, SEQLSTM_CORRUPT_DATA,
                        "the shape is [2, 3], expected");
    write_npy("y.npy", "<f4", "2", x, 8);
    write_npy("n.npy", "<i4", "2", (int32_t[]){1, 3}, 8);
    data_expect_failure(NPY(", y: y.npy, lengths: n.npy"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA,
                        "n.npy: element 1 is 3, expected a length from 0 to 2");
    data_expect_failure(NPY(""), MODEL_REGRESS, MSE, SEQLSTM_INVALID_CONFIG, "nothing to learn: say `y`");
    write_npy("y.npy", "<i4", "2, 2", (int32_t[]){0, 1, 1, 0}, 16);
    data_expect_failure(NPY(", y: y.npy"),
                        "[{type: lstm, units: 3, return_sequences: true}, {type: output, activation: softmax}]",
                        "task: language_model", SEQLSTM_INVALID_CONFIG,
                        "x.npy: a language model needs tokens, but the data holds values");
    write_npy("x.npy", "<f4", "0, 2, 2", x, 0);
    data_expect_failure(NPY(", y: y.npy"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA, "the array is empty");
}

/* Columns of an array are scaled and filled like those of a table: here the last axis. */
static void test_scale_and_missing(void **state)
{
    (void)state;
    float x[8] = {1, 10, 3, 30, NAN, 10, 5, 30}, y[2] = {100, 300};
    write_npy("x.npy", "<f4", "2, 2, 2", x, sizeof x);
    write_npy("y.npy", "<f4", "2", y, sizeof y);
    struct data_open o = data_open_train(NPY(", y: y.npy, scale: minmax, missing: mean"), MODEL_REGRESS, MSE);
    assert_int_equal(sl_dataset_get_counts(o.train)->missing_values, 1);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    static const float packed[] = {0, 0, 0.5f, 0, 0.5f, 1, 1, 1}, targets[] = {0, 1};
    for (int i = 0; i < 8; i++)
        assert_float_equal(batch->input.values[i], packed[i], 1e-6);
    assert_memory_equal(batch->target.values, targets, sizeof targets);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
    /* Figures of the training share alone, and each share counts its own. */
    y[1] = NAN;
    write_npy("y.npy", "<f4", "2", y, sizeof y);
    o = data_open_train("type: npy, train: {x: x.npy, y: y.npy, scale: minmax, missing: mean}, valid: {split: 0.5}, "
                        "batch_size: 8",
                        MODEL_REGRESS, MSE);
    assert_int_equal(sl_dataset_get_counts(o.train)->missing_values, 0);
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID);
    assert_int_equal(sl_dataset_get_counts(valid)->missing_values, 2);
    batcher = data_batcher(valid, SL_BATCHING_PREDICT, 1, 0, 0);
    batch = data_next(batcher);
    static const float filled[] = {0.5f, 0, 2, 1};
    for (int i = 0; i < 4; i++)
        assert_float_equal(batch->input.values[i], filled[i], 1e-6);
    assert_float_equal(batch->target.values[0], 0, 1e-6);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    sl_dataset_close(valid);
    data_close(&o);
    data_expect_failure(NPY(", y: y.npy, missing: drop"), MODEL_REGRESS, MSE, SEQLSTM_INVALID_CONFIG,
                        "npy knows `missing:` error, zero and mean only");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_vectors_and_classes),
        cmocka_unit_test(test_wrong_values_and_shapes),
        cmocka_unit_test(test_scale_and_missing),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

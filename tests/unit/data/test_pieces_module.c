/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a module for pieces, and what becomes of its failures, with a module of the test's: whom the message
 * blames, and that each model is released and closed. */
#include "data_fixture.h"

#include <seqlstm/ext/draft/pieces.h>

#include "base/system/module.h"
#include "data/text/pieces.h"
#include "ok.h"
#include "oom.h"

static struct {
    seqlstm_status finds, trains, opens, cuts; /* how they end */
    struct seqlstm_pieces_training asked;
    int learned, opened; /* models that are not released, or not closed */
} world;

static seqlstm_status end(seqlstm_status status, const char *what, struct seqlstm_error *err)
{
    if (status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, status, "%s ended so", what);
    return SEQLSTM_OK;
}

static int32_t train(const struct seqlstm_pieces_training *training, void **out_model, uint64_t *out_bytes,
                     struct seqlstm_error *err)
{
    world.asked = *training;
    SEQLSTM_TRY(end(world.trains, "train", err));
    world.learned++;
    *out_model = strcpy(malloc(8), "learned");
    *out_bytes = 8;
    return SEQLSTM_OK;
}

static void release(void *model)
{
    assert_string_equal(model, "learned");
    world.learned--;
    free(model);
}

static int32_t open_model(const void *model, uint64_t bytes, struct seqlstm_pieces **out, struct seqlstm_error *err)
{
    assert_true(bytes == 8 && memcmp(model, "learned", 8) == 0);
    SEQLSTM_TRY(end(world.opens, "open", err));
    world.opened++;
    *out = (void *)&world;
    return SEQLSTM_OK;
}

static void close_model(struct seqlstm_pieces *pieces)
{
    assert_ptr_equal(pieces, &world);
    world.opened--;
}

static int64_t count(const struct seqlstm_pieces *pieces)
{
    (void)pieces;
    return 2;
}

static const char *get(const struct seqlstm_pieces *pieces, int64_t id, uint64_t *out_bytes)
{
    (void)pieces;
    *out_bytes = id > 0;
    return "a";
}

static int32_t cut(const struct seqlstm_pieces *pieces, const char *text, uint64_t bytes,
                   void (*emit)(void *context, const char *piece, uint64_t bytes), void *context,
                   struct seqlstm_error *err)
{
    (void)pieces;
    emit(context, text, bytes);
    return end(world.cuts, "cut", err);
}

static struct seqlstm_pieces_module module;

seqlstm_status __wrap_sl_module_open(const char *name, const char *symbol, const void **out_table,
                                     struct seqlstm_error *err);

seqlstm_status __wrap_sl_module_open(const char *name, const char *symbol, const void **out_table,
                                     struct seqlstm_error *err)
{
    assert_string_equal(name, "sentencepiece");
    assert_string_equal(symbol, SEQLSTM_PIECES_SYMBOL);
    *out_table = &module;
    return end(world.finds, "find", err);
}

/* ---- tests --------------------------------------------------------------------------------------------------- */

enum way { LEARN, OPEN, LOAD, WAYS };

static char path[160];

static void reset(void)
{
    memset(&world, 0, sizeof world);
    module = (struct seqlstm_pieces_module){sizeof module, 0, train, release, open_model, close_model, count, get, cut};
}

static const char *next(void *context, uint64_t *out_bytes)
{
    (void)context, (void)out_bytes;
    return NULL;
}

static struct sl_tokenizer make_tokenizer(enum sl_pieces_method method, int64_t size, size_t specials)
{
    static const char *const names[] = {"unk", "eos", "bos"};
    return (struct sl_tokenizer){
        .type = SL_TOKENIZER_SENTENCEPIECE, .vocab_size = size, .method = method, .specials = {names, specials}};
}

static seqlstm_status make(enum way way, struct sl_pieces **out, struct seqlstm_error *err)
{
    const struct sl_tokenizer tokenizer = make_tokenizer(SL_PIECES_BPE, 9, 2);
    return way == LEARN  ? sl_pieces_train(&tokenizer, "some.txt", next, &world, out, err)
           : way == OPEN ? sl_pieces_open("learned", 8, out, err)
                         : sl_pieces_load(path, out, err);
}

/* `vocab_size` counts the specials; the piece for unknown text is one of them. */
static void test_what_is_asked(void **state)
{
    (void)state;
    static const struct {
        enum sl_pieces_method method;
        int64_t vocab_size;
        size_t specials;
        int64_t size; /* 0: refused */
    } cases[] = {{SL_PIECES_BPE, 9, 2, 8},     {SL_PIECES_UNIGRAM, 9, 1, 9}, {SL_PIECES_UNIGRAM, 30, 3, 28},
                 {SL_PIECES_UNIGRAM, 4, 3, 2}, {SL_PIECES_BPE, 3, 3, 0},     {SL_PIECES_BPE, 1, 3, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sl_tokenizer tokenizer = make_tokenizer(cases[i].method, cases[i].vocab_size, cases[i].specials);
        struct sl_pieces *pieces = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        reset();
        const seqlstm_status status = sl_pieces_train(&tokenizer, "some.txt", next, &world, &pieces, &err);
        if (cases[i].size == 0) {
            assert_int_equal(status, SEQLSTM_INVALID_CONFIG);
            assert_int_equal(world.asked.struct_size, 0);
            continue;
        }
        ok(status, &err);
        assert_int_equal(world.asked.struct_size, sizeof world.asked);
        assert_int_equal(world.asked.size, cases[i].size);
        assert_int_equal(world.asked.method,
                         cases[i].method == SL_PIECES_BPE ? SEQLSTM_PIECES_BPE : SEQLSTM_PIECES_UNIGRAM);
        assert_ptr_equal(world.asked.next, next);
        assert_ptr_equal(world.asked.context, &world);
        sl_pieces_close(pieces);
        assert_true(world.learned == 0 && world.opened == 0);
    }
}

static void expect_failure(enum way way, seqlstm_status status, const char *message)
{
    struct sl_pieces *pieces = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(make(way, &pieces, &err), status);
    assert_string_equal(err.message, message);
    assert_null(pieces);
    assert_true(world.learned == 0 && world.opened == 0);
}

/* The text, or the file, is at fault where the module says so, and nothing is where memory is short. */
static void test_who_is_blamed(void **state)
{
    (void)state;
    char message[400];
    for (int way = 0; way < WAYS; way++) {
        reset();
        world.finds = SEQLSTM_UNAVAILABLE;
        expect_failure((enum way)way, SEQLSTM_UNAVAILABLE,
                       "`tokenizer: sentencepiece` needs a module that is not here: find ended so. Install the "
                       "package libsentencepiece-dev and build again, or use another tokenizer");
        reset();
        module.struct_size--;
        expect_failure((enum way)way, SEQLSTM_UNAVAILABLE,
                       "the module of `tokenizer: sentencepiece` is of another version: build and install it with "
                       "this program");
        static const seqlstm_status statuses[] = {SEQLSTM_NO_MEMORY, SEQLSTM_CORRUPT_DATA};
        for (size_t s = 0; s < sizeof statuses / sizeof *statuses; s++) {
            const bool memory = statuses[s] == SEQLSTM_NO_MEMORY;
            reset();
            world.opens = statuses[s];
            if (way == LOAD)
                snprintf(message, sizeof message,
                         memory ? "%s: no memory for the model of sentencepiece"
                                : "%s: no model of sentencepiece: open ended so",
                         path);
            else
                snprintf(message, sizeof message, "open ended so");
            expect_failure((enum way)way, statuses[s], message);
            reset();
            world.trains = statuses[s];
            if (way == LEARN)
                expect_failure(LEARN, statuses[s],
                               memory ? "some.txt: no memory for learning pieces"
                                      : "some.txt: `vocab_size: 9` cannot be learned from the training split: train "
                                        "ended so");
        }
    }
}

static void take(void *out, const char *piece, uint64_t bytes)
{
    sl_buf_append(out, piece, bytes);
}

static void test_calls_without_memory_leave_nothing(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++)
        for (int n = 1;; n++) {
            struct sl_pieces *pieces = NULL;
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            reset();
            oom_fail_at(way == LEARN ? n + 1 : n); /* the first of LEARN is the test's */
            const seqlstm_status status = make((enum way)way, &pieces, &err);
            if (!oom_disarm()) {
                struct sl_buf out = {0};
                size_t bytes;
                ok(status, &err);
                assert_true(n > 1);
                assert_int_equal(world.learned, 0);
                assert_int_equal(sl_pieces_get_count(pieces), 2);
                assert_string_equal(sl_pieces_get_model(pieces, &bytes), "learned");
                assert_int_equal(bytes, 8);
                sl_pieces_get(pieces, 1, &bytes);
                assert_int_equal(bytes, 1);
                ok(sl_pieces_cut(pieces, "abc", 2, take, &out, &err), &err);
                assert_string_equal(sl_buf_text(&out), "ab");
                world.cuts = SEQLSTM_NO_MEMORY;
                assert_int_equal(sl_pieces_cut(pieces, "abc", 2, take, &out, &err), SEQLSTM_NO_MEMORY);
                sl_buf_deinit(&out);
                sl_pieces_close(pieces);
                assert_int_equal(world.opened, 0);
                break;
            }
            assert_int_equal(status, SEQLSTM_NO_MEMORY);
            assert_non_null(strstr(err.message, "no memory"));
            assert_true(pieces == NULL && world.learned == 0 && world.opened == 0);
        }
    sl_pieces_close(NULL);
}

static int begin(void **state)
{
    const int status = data_setup(state);
    data_write_bytes("x.model", "learned", 8);
    snprintf(path, sizeof path, "%s/x.model", data_folder);
    return status;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_asked),
        cmocka_unit_test(test_who_is_blamed),
        cmocka_unit_test(test_calls_without_memory_leave_nothing),
    };
    return cmocka_run_group_tests(tests, begin, data_teardown);
}

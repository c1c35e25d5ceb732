/* SPDX-License-Identifier: Apache-2.0 */
/* Updates that go over the used rows of an embedding only, against updates that go over all of them: the same gradients
 * and weights, whatever rows earlier updates have used, and whatever else has written to gradients. */
#include "exec_cases.h"
#include "oom.h"
#include "exec/params/used_rows.h"

enum { CLASSES = 200, UPDATES = 12 };

/* Rows of this update: some of all, neighbours, and the first and last. */
static void draw_ids(struct sl_batch *batch, int update)
{
    for (int64_t i = 0; i < R; i++)
        ((int32_t *)batch->input.ids)[i] =
            update % 3 == 0 ? (int32_t)(CLASSES - 1 - i % 2) : (int32_t)((i * (13 + update) + 7 * update) % CLASSES);
    ((int32_t *)batch->input.ids)[0] = update % 2 ? 0 : -1;
}

static void update(struct world *w, int number)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_exec_update making = {.count = (uint64_t)number + 1, .learning_rate = 0.25};
    double squares;
    ok(sl_exec_update(w->exec, &making, &squares, &err), &err);
    assert_true(squares > 0);
}

/* Elements that `sl_used_rows_next` names. */
static int64_t count_named(const struct sl_params *params)
{
    struct sl_grad_range range = {0};
    int64_t sum = 0;
    while (sl_used_rows_next(params, range.end, &range)) {
        assert_true(range.begin % 16 == 0 && (range.end % 16 == 0 || range.end == params->trainable_elems));
        sum += range.end - range.begin;
    }
    return sum;
}

/* No element that is not named differs from zero. */
static void assert_rest_is_zero(const struct sl_params *params)
{
    struct sl_grad_range range = {0};
    for (int64_t at = 0; at < params->trainable_elems; at = range.end) {
        if (!sl_used_rows_next(params, at, &range))
            range = (struct sl_grad_range){params->trainable_elems, params->trainable_elems};
        for (int64_t i = at; i < range.begin; i++)
            assert_true(params->grads[i] == 0);
    }
}

static void compare(const char *train, int64_t dim)
{
    struct sl_data_facts facts = token_facts(true, 3);
    facts.input.classes = CLASSES;
    char layers[512];
    snprintf(layers, sizeof layers,
             "model: [{type: embedding, dim: %d}, {type: lstm, units: 5, return_sequences: true}, {type: output, "
             "activation: softmax}]\ntrain: {loss: cross_entropy, task: tag, epochs: 1, %s}",
             (int)dim, train);
    struct world used, all;
    open_world(&used, data_tokens, layers, &facts, true);
    open_world(&all, data_tokens, layers, &facts, true);
    memcpy(all.params->values, used.params->values, (size_t)used.params->elems * sizeof(float));
    sl_params_touch(all.params);
    const size_t bytes = (size_t)used.params->elems * sizeof(float);
    struct sl_batch *batch = make_batch(&facts);
    for (int u = 0; u < UPDATES; u++) {
        draw_ids(batch, u);
        sl_params_touch_grads(all.params);
        for (int step = 0; step < 1 + u % 2; step++) { /* some updates have two */
            run(&used, batch, step > 0);
            run(&all, batch, step > 0);
            draw_ids(batch, u + 5);
        }
        if (u % 4 == 3) { /* what another rank has used */
            uint8_t flags[CLASSES] = {[17] = 1};
            const int64_t at = used.params->used[0].offset + 17 * dim;
            used.params->grads[at] += 0.5f;
            all.params->grads[at] += 0.5f;
            sl_used_rows_add(used.params, used.params->used[0].offset, flags);
        }
        assert_memory_equal(used.params->grads, all.params->grads, bytes);
        assert_rest_is_zero(used.params);
        assert_true(count_named(used.params) < used.params->trainable_elems);
        sl_params_touch_grads(all.params);
        assert_int_equal(count_named(all.params), all.params->trainable_elems);
        update(&used, u);
        update(&all, u);
        assert_memory_equal(used.params->values, all.params->values, bytes);
    }
    sl_batch_destroy(batch);
    close_world(&used);
    close_world(&all);
}

static void only_used_rows_change(void **state)
{
    (void)state;
    compare("optimizer: {type: sgd, learning_rate: 0.25}", 20);
    compare("optimizer: {type: sgd, learning_rate: 0.25}", 3);
    compare("optimizer: {type: sgd, learning_rate: 0.25}", 16);
}

/* These change weights whose gradient is zero. */
static void other_optimizers_change_all_rows(void **state)
{
    (void)state;
    compare("optimizer: {type: momentum, learning_rate: 0.25, momentum: 0.9}", 20);
    compare("optimizer: {type: sgd, learning_rate: 0.25, weight_decay: 0.1}", 20);
    compare("optimizer: {type: adam, learning_rate: 0.25}", 3);
}

/* A table that an output layer shares, or that has a regularizer, has gradients everywhere. */
static void other_tables_are_not_kept(void **state)
{
    (void)state;
    static const char *const layers[] = {
        "model: [{type: embedding, name: emb, dim: 4}, {type: lstm, units: 4, return_sequences: true},"
        " {type: output, tie: emb, activation: softmax}]\ntrain: {loss: cross_entropy, task: tag, epochs: 1}",
        "model: [{type: embedding, dim: 4, embeddings_regularizer: {l2: 0.1}}, {type: lstm, units: 5, return_sequences:"
        " true}, {type: output, activation: softmax}]\ntrain: {loss: cross_entropy, task: tag, epochs: 1}",
        "model: [{type: embedding, dim: 4, embeddings_regularizer: {l1: 0.1}}, {type: lstm, units: 5, return_sequences:"
        " true}, {type: output, activation: softmax}]\ntrain: {loss: cross_entropy, task: tag, epochs: 1}"};
    for (size_t k = 0; k < sizeof layers / sizeof *layers; k++) {
        struct sl_data_facts facts = token_facts(true, 7);
        struct world w;
        open_world(&w, data_tokens, layers[k], &facts, true);
        assert_int_equal(w.params->used_count, 0);
        close_world(&w);
    }
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

enum { TABLES = 2, ROWS = 40, COLUMNS = 16, BETWEEN = 100, END = 2 * ROWS * COLUMNS + BETWEEN + 50 };

static void expect_ranges(const struct sl_params *params, const int64_t (*expected)[2], int count)
{
    struct sl_grad_range range = {0};
    for (int k = 0; k < count; k++) {
        assert_true(sl_used_rows_next(params, range.end, &range));
        if (range.begin != expected[k][0] || range.end != expected[k][1])
            fail_msg("range %d is [%d, %d)", k, (int)range.begin, (int)range.end);
    }
    assert_false(sl_used_rows_next(params, range.end, &range));
}

/* Used rows with at most four others between them are one range; what is in no table is used. A table whose rows are
 * forgotten, or not known any more, is used as a whole, and each by itself. */
static void ranges_go_over_a_few_rows_that_are_not_used(void **state)
{
    (void)state;
    static uint8_t flags[TABLES][ROWS + 1];
    static const int64_t second = ROWS * COLUMNS + BETWEEN + 12; /* a multiple of 16 */
    struct sl_used_rows used[TABLES] = {{.rows = ROWS, .columns = COLUMNS, .flags = flags[0], .known = true},
                                        {.offset = second, .rows = ROWS, .columns = COLUMNS, .flags = flags[1]}};
    struct sl_params params = {.used = used, .used_count = TABLES, .trainable_elems = END};
    static const int rows[] = {3, 8, 14, 15, 39};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        flags[0][rows[k]] = 1;
    used[1].known = true;
    flags[1][0] = flags[1][6] = flags[1][11] = 1;
    const int64_t both[][2] = {
        {48, 144},          {224, 256}, {624, 640}, {640, second}, {second, second + 16}, {second + 96, second + 192},
        {second + 640, END}};
    expect_ranges(&params, both, 7);
    used[1].known = false;
    const int64_t first[][2] = {{48, 144}, {224, 256}, {624, 640}, {640, END}};
    expect_ranges(&params, first, 4);
    used[1].known = true;
    sl_used_rows_forget(&params);
    assert_true(!used[0].known && !used[1].known);
    const int64_t all[][2] = {{0, END}};
    expect_ranges(&params, all, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_used_rows_change),
        cmocka_unit_test(other_optimizers_change_all_rows),
        cmocka_unit_test(other_tables_are_not_kept),
        cmocka_unit_test(ranges_go_over_a_few_rows_that_are_not_used),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

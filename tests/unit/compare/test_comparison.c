/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of ab, bench and verify: naming a side, repeating sequences, counting operations, matching layers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compare/sample/backend_spec.h"
#include "measure/flops.h"
#include "measure/interval.h"
#include "compare/ab/match.h"
#include "compare/sample/repeat.h"
#include "oom.h"

/* ---- naming a side -------------------------------------------------------------------------------------------- */

static void test_contender(void **state)
{
    struct sl_arena arena;
    struct sl_backend_spec c, d;
    (void)state;
    sl_arena_init(&arena);
    assert_int_equal(sl_backend_spec_parse(&arena, "cpu-blas", &c, NULL), SEQLSTM_OK);
    assert_string_equal(c.name, "cpu-blas");
    assert_true(c.variant == NULL && c.setting_count == 0);
    assert_int_equal(sl_backend_spec_parse(&arena, "/a:b/mine.so:fast,tile=64,mode=x=y", &c, NULL), SEQLSTM_OK);
    assert_string_equal(c.name, "/a:b/mine.so"); /* a colon in a folder is no variant */
    assert_string_equal(c.variant, "fast");
    assert_int_equal(c.setting_count, 2);
    assert_string_equal(c.settings[0].key, "tile");
    assert_string_equal(c.settings[1].value, "x=y");
    assert_int_equal(sl_backend_spec_parse(&arena, "./mine.so", &c, NULL), SEQLSTM_OK);
    assert_true(c.name[0] == '/' && strstr(c.name, "mine.so"));
    static const char *const wrong[] = {"", ":fast", "cpu-blas:", "mine.so", "cpu-blas,tile", "cpu-blas,=1", ",a=b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(sl_backend_spec_parse(&arena, wrong[i], &c, NULL), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(sl_backend_spec_parse(&arena, "x:a,k=1", &c, NULL), SEQLSTM_OK);
    assert_int_equal(sl_backend_spec_parse(&arena, "x:b,k=1", &d, NULL), SEQLSTM_OK);
    assert_true(sl_backend_spec_is_same(&c, &d));
    assert_int_equal(sl_backend_spec_parse(&arena, "x:b,k=2", &d, NULL), SEQLSTM_OK);
    assert_false(sl_backend_spec_is_same(&c, &d));
    assert_int_equal(sl_backend_spec_parse(&arena, "x,device=0", &c, NULL), SEQLSTM_OK);
    assert_int_equal(sl_backend_spec_parse(&arena, "x,device=1", &d, NULL), SEQLSTM_OK);
    assert_true(c.setting_count == 0 && d.setting_count == 0); /* it is no option of the plugin */
    assert_int_equal(sl_backend_spec_get_entry(&c).device, 1);
    assert_int_equal(sl_backend_spec_get_entry(&d).device, 2);
    assert_false(sl_backend_spec_is_same(&c, &d));
    assert_int_equal(sl_backend_spec_parse(&arena, "x,device=0", &d, NULL), SEQLSTM_OK);
    assert_true(sl_backend_spec_is_same(&c, &d));
    assert_int_equal(sl_backend_spec_parse(&arena, "x,device=-1", &d, NULL), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(sl_backend_spec_parse(&arena, "x,device=one", &d, NULL), SEQLSTM_INVALID_ARGUMENT);
    sl_arena_deinit(&arena);
}

/* ---- repeating ------------------------------------------------------------------------------------------------- */

/* Lengths 3 2 0; input k * 100 + t, target k. */
static struct sl_batch *make_batch(void)
{
    static const int32_t lengths[] = {3, 2, 0};
    struct sl_batch_shape shape = {.sequences = 3,
                                   .lengths = lengths,
                                   .input_kind = SL_FIELD_VALUES,
                                   .input_features = 1,
                                   .input_on_steps = true,
                                   .target_kind = SL_FIELD_IDS,
                                   .target_features = 1};
    struct sl_batch *batch = NULL;
    assert_int_equal(sl_batch_create(&shape, &batch, NULL), SEQLSTM_OK);
    for (int64_t k = 0; k < 3; k++) {
        for (int64_t t = 0; t < lengths[k]; t++)
            ((float *)(uintptr_t)batch->input.values)[sl_batch_row(batch, k, t)] = (float)(100 * k + t);
        ((int32_t *)(uintptr_t)batch->target.ids)[k] = (int32_t)k;
    }
    return batch;
}

static void test_repeat(void **state)
{
    struct sl_batch *batch = make_batch(), *longer = NULL;
    (void)state;
    assert_int_equal(sl_batch_repeat(batch, 7, &longer, NULL), SEQLSTM_OK);
    assert_int_equal(sl_batch_check(longer, NULL), SEQLSTM_OK);
    assert_int_equal(longer->sequences, 7);
    int seen[3] = {0};
    for (int64_t k = 0; k < 7; k++) {
        int32_t origin = longer->target.ids[k];
        int32_t length = k < longer->axis.sequences ? longer->axis.lengths[k] : 0;
        seen[origin]++;
        assert_int_equal(length, origin == 0 ? 3 : origin == 1 ? 2 : 0);
        for (int64_t t = 0; t < length; t++)
            assert_true(longer->input.values[sl_batch_row(longer, k, t)] == (float)(100 * origin + t));
        for (int64_t other = 0; other < k && k < longer->axis.sequences; other++)
            assert_true(longer->axis.sequence_id[other] != longer->axis.sequence_id[k]);
    }
    assert_true(seen[0] >= 2 && seen[1] >= 2 && seen[2] >= 2);
    sl_batch_destroy(longer);
    for (int n = 1;; n++) {
        oom_fail_at(n);
        seqlstm_status status = sl_batch_repeat(batch, 5, &longer, NULL);
        if (!oom_disarm())
            break;
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
    }
    sl_batch_destroy(longer);
    sl_batch_destroy(batch);
}

static void test_interval_memory(void **state)
{
    double logs[12] = {0.1, 0.2, 0.3, 0.1, 0.2, 0.3};
    struct sl_interval interval;
    (void)state;
    for (int n = 1;; n++) {
        oom_fail_at(n);
        seqlstm_status status = sl_interval_compute(logs, 12, 0.95, 1, &interval, NULL);
        if (!oom_disarm())
            break;
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
    }
}

/* ---- counting ------------------------------------------------------------------------------------------------- */

static void test_flops(void **state)
{
    struct sl_node node = {.name = "n"};
    (void)state;
    node.desc.head.op = SEQLSTM_OP_DENSE;
    node.desc.dense.input = 10;
    node.desc.dense.output = 3;
    assert_true(sl_flops_count(&node, 5, false, true) == 2 * 10 * 3 * 5);
    assert_true(sl_flops_count(&node, 5, true, true) == 3 * 2 * 10 * 3 * 5);
    assert_true(sl_flops_count(&node, 5, true, false) == 2 * 2 * 10 * 3 * 5);
    node.desc.head.op = SEQLSTM_OP_DROPOUT;
    assert_true(sl_flops_count(&node, 5, true, true) == 0);
}

/* Each product of a recurrent layer by itself: rows of the matrix, columns, and whether it multiplies the input. */
static double count_plainly(const struct seqlstm_recurrent_desc *d, bool backward, bool input_grad)
{
    static const int gates[] = {[SEQLSTM_CELL_LSTM] = 4, [SEQLSTM_CELL_GRU] = 3, [SEQLSTM_CELL_RNN] = 1};
    const int directions = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    const int64_t state = d->projection ? d->projection : d->hidden;
    double flops = 0;
    for (int64_t layer = 0; layer < d->layers; layer++)
        for (int direction = 0; direction < directions; direction++) {
            const bool joined = directions == 2 && d->merge == SEQLSTM_KIND_MERGE_CONCAT;
            const int64_t read = layer == 0 ? d->input : joined ? 2 * state : state;
            const double of_input = 2.0 * gates[d->cell] * (double)(d->hidden * read);
            const double of_state = 2.0 * gates[d->cell] * (double)(d->hidden * state);
            const double of_projection = 2.0 * (double)(d->hidden * d->projection);
            /* backward: for the weights and for what was multiplied if that is wanted, beside forward */
            flops += of_input * (!backward ? 1 : layer == 0 && !input_grad ? 2 : 3);
            flops += (of_state + of_projection) * (backward ? 3 : 1);
        }
    return flops;
}

static void test_flops_of_recurrent_layers(void **state)
{
    static const uint32_t cells[] = {SEQLSTM_CELL_LSTM, SEQLSTM_CELL_GRU, SEQLSTM_CELL_RNN};
    (void)state;
    for (int c = 0; c < 3 * 3 * 4 * 2 * 4; c++) {
        const int cell = c % 3, layers = 1 + c / 3 % 3, way = c / 9 % 4, projection = c / 36 % 2 * 2, wish = c / 72;
        struct sl_node node = {.name = "n"};
        struct seqlstm_recurrent_desc *d = &node.desc.recurrent;
        d->head.op = SEQLSTM_OP_RECURRENT;
        d->cell = cells[cell];
        d->layers = layers;
        d->input = 7;
        d->hidden = 4;
        d->projection = projection;
        d->direction = way < 2 ? (uint32_t)way : SEQLSTM_DIRECTION_BIDIRECTIONAL;
        d->merge = way == 2 ? SEQLSTM_KIND_MERGE_CONCAT : SEQLSTM_KIND_MERGE_SUM;
        const bool backward = wish & 1, input_grad = wish & 2;
        const double got = sl_flops_count(&node, 5, backward, input_grad);
        if (got != 5 * count_plainly(d, backward, input_grad))
            fail_msg("cell %d, %d layers, way %d, projection %d, wish %d: %g", cell, layers, way, projection, wish,
                     got);
    }
}

/* ---- matches --------------------------------------------------------------------------------------------------- */

/* Three nodes and one alternative that stands for the last two. */
struct world {
    struct sl_model model;
    struct sl_node nodes[3];
    struct sl_alternative alternative;
    struct sl_graph graph;
    struct sl_compare_side_unit units[2][4];
    struct sl_compare_side_facts facts[2];
};

static void accept(struct sl_compare_side_unit *unit, const char *variant)
{
    unit->accepted = true;
    strcpy(unit->variant, variant);
}

static void offer(struct sl_compare_side_unit *unit, const char *id)
{
    strcpy(unit->others[unit->other_count].id, id);
    strcpy(unit->others[unit->other_count++].variant, "v");
}

static void make_world(struct world *w)
{
    memset(w, 0, sizeof *w);
    static const char *const names[] = {"one", "two", "three"};
    for (int n = 0; n < 3; n++)
        w->nodes[n] = (struct sl_node){.name = names[n], .layer = -1};
    w->alternative = (struct sl_alternative){.node = {.name = "two+three", .layer = -1}, .first = 1, .count = 2};
    w->graph = (struct sl_graph){.model = &w->model,
                                 .nodes = w->nodes,
                                 .node_count = 3,
                                 .alternatives = &w->alternative,
                                 .alternative_count = 1};
    for (int i = 0; i < 2; i++) {
        w->facts[i] = (struct sl_compare_side_facts){.units = w->units[i], .unit_count = 4};
        strcpy(w->facts[i].id, i ? "b" : "a");
        for (int u = 0; u < 4; u++)
            offer(&w->units[i][u], "reference");
    }
}

static void test_pairing(void **state)
{
    struct sl_arena arena;
    struct sl_match *matches = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    int32_t count = 0;
    (void)state;
    sl_arena_init(&arena);

    /* nothing in common */
    make_world(&w);
    accept(&w.units[0][0], "fast");
    strcpy(w.units[1][0].reason, "too narrow");
    assert_int_equal(sl_matches_create(&arena, &w.graph, &w.facts[0], &w.facts[1], true, &matches, &count, &err),
                     SEQLSTM_UNAVAILABLE);
    assert_non_null(strstr(err.message, "too narrow"));

    /* the coarse unit only where both take it; what one refuses goes to the best third that both have */
    accept(&w.units[1][0], "slow");
    accept(&w.units[0][3], "fused");
    offer(&w.units[0][1], "third");
    offer(&w.units[1][1], "third");
    offer(&w.units[0][2], "third"); /* B does not have it for this one */
    assert_int_equal(sl_matches_create(&arena, &w.graph, &w.facts[0], &w.facts[1], true, &matches, &count, &err),
                     SEQLSTM_OK);
    assert_int_equal(count, 3);
    assert_true(matches[0].compared && strcmp(matches[0].a.variant, "fast") == 0 && strcmp(matches[0].b.id, "b") == 0);
    assert_true(!matches[1].compared && strcmp(matches[1].a.id, "third") == 0 && strcmp(matches[1].b.id, "third") == 0);
    assert_true(!matches[2].compared && strcmp(matches[2].a.id, "reference") == 0);
    accept(&w.units[1][3], "fused");
    assert_int_equal(sl_matches_create(&arena, &w.graph, &w.facts[0], &w.facts[1], true, &matches, &count, &err),
                     SEQLSTM_OK);
    assert_int_equal(count, 2);
    assert_true(matches[1].compared && matches[1].unit == 3);

    /* the layer that says the most is the first that one alone refuses */
    make_world(&w);
    for (int n = 1; n < 3; n++) {
        accept(&w.units[n - 1][n], "fast");
        strcpy(w.units[2 - n][n].reason, n == 1 ? "too wide" : "too deep");
    }
    assert_int_equal(sl_matches_create(&arena, &w.graph, &w.facts[0], &w.facts[1], true, &matches, &count, &err),
                     SEQLSTM_UNAVAILABLE);
    assert_string_equal(err.message, "A (a) and B (b) accept no layer in common; `two`: A: accepts it; B: too wide");

    /* a third helps rather than a side, and a side rather than the reference, in whatever order they are loaded */
    for (int order = 0; order < 2; order++) {
        make_world(&w);
        accept(&w.units[0][0], "v");
        accept(&w.units[1][0], "v");
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < 2; k++)
                offer(&w.units[i][1], k == order ? "third" : "b");
        assert_int_equal(sl_matches_create(&arena, &w.graph, &w.facts[0], &w.facts[1], true, &matches, &count, &err),
                         SEQLSTM_OK);
        assert_string_equal(matches[1].a.id, "third");
    }

    /* one of the sides may help only where both have the same under its id */
    make_world(&w);
    accept(&w.units[0][0], "v");
    accept(&w.units[1][0], "v");
    for (int i = 0; i < 2; i++)
        offer(&w.units[i][1], "b");
    for (int help = 0; help < 2; help++) {
        assert_int_equal(sl_matches_create(&arena, &w.graph, &w.facts[0], &w.facts[1], help, &matches, &count, &err),
                         SEQLSTM_OK);
        assert_string_equal(matches[1].a.id, help ? "b" : "reference");
    }
    sl_arena_deinit(&arena);
}

static void test_pairing_pins(void **state)
{
    struct sl_arena arena;
    struct sl_match *matches = NULL;
    struct world w;
    int32_t count = 0;
    (void)state;
    sl_arena_init(&arena);
    make_world(&w);
    struct sl_layer layer = {.name = "three"};
    struct sl_pin pin = {.layer = "three", .backend = "third:old"};
    w.model.layers = &layer;
    w.model.layer_count = 1;
    w.model.dispatch.pins = &pin;
    w.model.dispatch.pin_count = 1;
    w.nodes[2].layer = 0;
    for (int i = 0; i < 2; i++)
        for (int u = 0; u < 4; u++)
            accept(&w.units[i][u], "v");
    assert_int_equal(sl_matches_create(&arena, &w.graph, &w.facts[0], &w.facts[1], true, &matches, &count, NULL),
                     SEQLSTM_OK);
    assert_int_equal(count, 3); /* the coarse unit would run over the pin */
    assert_true(matches[1].compared && !matches[2].compared);
    assert_string_equal(matches[2].b.id, "third");
    assert_string_equal(matches[2].b.variant, "old");
    sl_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contender),
        cmocka_unit_test(test_repeat),
        cmocka_unit_test(test_interval_memory),
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_flops_of_recurrent_layers),
        cmocka_unit_test(test_pairing),
        cmocka_unit_test(test_pairing_pins),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What options cost that a backend refuses: without which of them it would accept, and how much faster it would be; and
 * the batch that is supposed where none is known. The backends are made up; meson.build leads the questions here. */
#include <stdio.h>
#include <string.h>

#include "ok.h"
#include "oom.h"

#include "base/value/buf.h"
#include "dispatch/cost/refusal_cost.h"
#include "dispatch/cost/tune.h"
#include "registry/plugin.h"

enum { BACKENDS = 5, HATED = 3 };

/* The backends are their addresses, as are their tables and operations. */
static char backends[BACKENDS], tables[BACKENDS], ops[BACKENDS];

/* What each of them refuses, the first of them at a time; what it takes without that. */
static const struct {
    uint32_t hates[HATED];
    double forward_ns, backward_ns;
} plugins[BACKENDS] = {
    {{SEQLSTM_OPTION_PEEPHOLE, SEQLSTM_OPTION_CELL_CLIP, SEQLSTM_OPTION_ZONEOUT}, 100, 300},
    {{SEQLSTM_OPTION_CELL_CLIP}, 500, 300},
    {{SEQLSTM_OPTION_ZONEOUT, SEQLSTM_OPTION_DTYPE}, 1, 1}, /* of which one cannot be left out */
    {{SEQLSTM_OPTION_PEEPHOLE}, 2, 2},
    {{SEQLSTM_OPTION_ZONEOUT}, 10, 10},
};

static struct {
    int without_device, refuses, unpriced; /* backends; -1: none */
    seqlstm_status price;
    int open; /* operations */
} lab;

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend);
const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend);
struct seqlstm_instance *__wrap_sl_backend_get_instance(const struct sl_backend *backend);
bool __wrap_sl_backend_find_device(const struct sl_backend *backend, uint32_t *out_device);
seqlstm_status __wrap_sl_backend_supports(struct sl_backend *backend, uint32_t device, const struct seqlstm_desc *desc,
                                          struct seqlstm_answer *answer, struct seqlstm_error *err);
struct sl_option_place __wrap_sl_graph_find_option(const struct sl_graph *graph, const struct sl_node *node,
                                                   uint32_t option);
seqlstm_status __wrap_sl_plugin_create_op(const struct seqlstm_backend *table, struct seqlstm_instance *instance,
                                          uint32_t device, const struct seqlstm_desc *desc, const char *variant,
                                          struct seqlstm_op **out_op, struct seqlstm_error *err);
seqlstm_status __wrap_sl_plugin_get_sizes(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                                          struct seqlstm_sizes *sizes, struct seqlstm_error *err);
void __wrap_sl_plugin_destroy_op(const struct seqlstm_backend *table, struct seqlstm_op *op);
seqlstm_status __wrap_sl_tuner_price_one(struct sl_tuner *tuner, enum sl_dispatch_policy policy,
                                         struct sl_subgraph *subgraph, const union seqlstm_any_desc *desc,
                                         struct sl_candidate *candidate, struct seqlstm_error *err);

static ptrdiff_t find(const struct sl_backend *backend)
{
    return (const char *)backend - backends;
}

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend)
{
    (void)backend;
    return "made-up";
}

const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend)
{
    return (const void *)&tables[find(backend)];
}

struct seqlstm_instance *__wrap_sl_backend_get_instance(const struct sl_backend *backend)
{
    (void)backend;
    return NULL;
}

bool __wrap_sl_backend_find_device(const struct sl_backend *backend, uint32_t *out_device)
{
    *out_device = 7;
    return find(backend) != lab.without_device;
}

static bool has_option(const struct seqlstm_recurrent_desc *desc, uint32_t option)
{
    return (option == SEQLSTM_OPTION_PEEPHOLE && (desc->options & SEQLSTM_BIT_RECURRENT_PEEPHOLE)) ||
           (option == SEQLSTM_OPTION_CELL_CLIP && desc->cell_clip > 0) ||
           (option == SEQLSTM_OPTION_ZONEOUT && (desc->zoneout_cell > 0 || desc->zoneout_hidden > 0)) ||
           option == SEQLSTM_OPTION_DTYPE;
}

seqlstm_status __wrap_sl_backend_supports(struct sl_backend *backend, uint32_t device, const struct seqlstm_desc *desc,
                                          struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    (void)err;
    assert_int_equal(device, 7);
    *answer = (struct seqlstm_answer){.accepted = 1, .variant_count = 2};
    strcpy(answer->variants[0], "first");
    strcpy(answer->variants[1], "second");
    for (int k = HATED - 1; k >= 0; k--)
        if (plugins[find(backend)].hates[k] &&
            has_option((const struct seqlstm_recurrent_desc *)(const void *)desc, plugins[find(backend)].hates[k])) {
            answer->accepted = 0;
            answer->option = plugins[find(backend)].hates[k];
        }
    return SEQLSTM_OK;
}

struct sl_option_place __wrap_sl_graph_find_option(const struct sl_graph *graph, const struct sl_node *node,
                                                   uint32_t option)
{
    (void)graph, (void)node;
    return (struct sl_option_place){.key = option == SEQLSTM_OPTION_PEEPHOLE    ? "peephole"
                                           : option == SEQLSTM_OPTION_CELL_CLIP ? "cell_clip"
                                           : option == SEQLSTM_OPTION_ZONEOUT   ? "zoneout"
                                                                                : "other"};
}

seqlstm_status __wrap_sl_plugin_create_op(const struct seqlstm_backend *table, struct seqlstm_instance *instance,
                                          uint32_t device, const struct seqlstm_desc *desc, const char *variant,
                                          struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    const ptrdiff_t b = (const char *)(const void *)table - tables;
    (void)instance, (void)desc;
    assert_int_equal(device, 7);
    assert_string_equal(variant, "first");
    if (b == lab.refuses)
        return seqlstm_error_set(err, SEQLSTM_UNSUPPORTED, "plugin.c", 1, "no");
    lab.open++;
    *out_op = (void *)&ops[b];
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_plugin_get_sizes(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                                          struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    (void)table, (void)op, (void)sizes, (void)err;
    return SEQLSTM_OK;
}

void __wrap_sl_plugin_destroy_op(const struct seqlstm_backend *table, struct seqlstm_op *op)
{
    (void)table, (void)op;
    lab.open--;
}

seqlstm_status __wrap_sl_tuner_price_one(struct sl_tuner *tuner, enum sl_dispatch_policy policy,
                                         struct sl_subgraph *subgraph, const union seqlstm_any_desc *desc,
                                         struct sl_candidate *candidate, struct seqlstm_error *err)
{
    const ptrdiff_t b = find(candidate->backend);
    (void)tuner, (void)subgraph, (void)desc;
    assert_int_equal(policy, SL_POLICY_MEASURED);
    if (lab.price != SEQLSTM_OK)
        SEQLSTM_FAIL(err, lab.price, "no price");
    candidate->cost = (struct sl_cost){b == lab.unpriced ? SL_COST_NONE : SL_COST_MEASURED, plugins[b].forward_ns,
                                       plugins[b].backward_ns};
    return SEQLSTM_OK;
}

/* "peephole, cell_clip 4.00; - 0.00; ": for each refusal the options without which it would be accepted, and how many
 * times as fast it would be. */
static seqlstm_status ask(const struct sl_cost *chosen, struct sl_buf *out)
{
    struct sl_backend *listed[BACKENDS];
    struct sl_refusal refusals[BACKENDS + 1] = {{0}};
    struct sl_arena arena;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_node node = {.name = "n", .desc = {.head = {.op = SEQLSTM_OP_RECURRENT}}};
    node.desc.recurrent.options = SEQLSTM_BIT_RECURRENT_PEEPHOLE;
    node.desc.recurrent.cell_clip = 3;
    node.desc.recurrent.zoneout_hidden = 0.5f;
    node.desc.recurrent.zoneout_cell = 0.25f;
    sl_arena_init(&arena);
    for (uint32_t b = 0; b < BACKENDS; b++) {
        listed[b] = (struct sl_backend *)(void *)&backends[b];
        refusals[b] = (struct sl_refusal){.rank = b, .option_id = plugins[b].hates[0]};
    }
    refusals[BACKENDS] = (struct sl_refusal){.rank = 3, .option_id = SEQLSTM_OPTION_NONE}; /* as a whole */
    const struct sl_subgraphs subgraphs = {.arena = &arena, .listed = listed, .listed_count = BACKENDS};
    struct sl_tuner tuner = {.subgraphs = &subgraphs};
    struct sl_subgraph subgraph = {.node = &node, .refusals = refusals, .refusal_count = BACKENDS + 1};
    const seqlstm_status status = sl_subgraph_find_refusal_costs(&tuner, SL_POLICY_MEASURED, &subgraph, chosen, &err);
    for (int r = 0; r < subgraph.refusal_count; r++)
        sl_buf_printf(out, "%s %.2f; ", refusals[r].without ? refusals[r].without : "-", refusals[r].speedup);
    assert_true(node.desc.recurrent.cell_clip > 0 && node.desc.recurrent.options); /* the layer itself stays */
    assert_int_equal(lab.open, 0);
    sl_arena_deinit(&arena);
    return status;
}

static void options_cost_time(void **state)
{
    static const struct sl_cost measured = {SL_COST_MEASURED, 600, 1000}, guess = {SL_COST_GUESS, 600, 1000};
    static const struct {
        const struct sl_cost *chosen;
        int without_device, refuses, unpriced;
        const char *found;
    } rows[] = {
        {&measured, -1, -1, -1,
         "peephole, cell_clip, zoneout 4.00; cell_clip 2.00; - 0.00; peephole 400.00; zoneout 80.00; - 0.00; "},
        {&guess, -1, -1, -1,
         "peephole, cell_clip, zoneout 0.00; cell_clip 0.00; - 0.00; peephole 0.00; zoneout 0.00; - 0.00; "},
        {&measured, 0, 1, 3, "- 0.00; cell_clip 0.00; - 0.00; peephole 0.00; zoneout 80.00; - 0.00; "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf found = {0};
        lab.without_device = rows[i].without_device;
        lab.refuses = rows[i].refuses;
        lab.unpriced = rows[i].unpriced;
        assert_int_equal(ask(rows[i].chosen, &found), SEQLSTM_OK);
        assert_string_equal(sl_buf_text(&found), rows[i].found);
        sl_buf_deinit(&found);
    }
    struct sl_buf found = {0};
    lab.price = SEQLSTM_CANCELLED;
    assert_int_equal(ask(&measured, &found), SEQLSTM_CANCELLED);
    lab.price = SEQLSTM_OK;
    sl_buf_deinit(&found);
}

/* Equal sequences that fill the largest batch, on each side of its own; no steps where the data have none. */
static void the_largest_batch_is_supposed(void **state)
{
    static const struct {
        struct sl_envelope envelope;
        bool has_steps, has_source;
        int64_t sequences;
        int32_t length, source_length;
    } rows[] = {
        {{.sequences = 4, .rows = 19, .source_rows = 30}, true, true, 4, 4, 7},
        {{.sequences = 4, .rows = 19, .source_rows = 30}, true, false, 4, 4, 0},
        {{.sequences = 3, .rows = 2, .source_rows = 1}, true, true, 3, 1, 1},
        {{.sequences = 5, .rows = 5}, false, false, 5, 0, 0},
        {{.sequences = 0, .rows = 8}, true, false, 1, 8, 0},
        {{.sequences = 1, .rows = INT64_C(3000000000)}, true, false, 1, INT32_MAX, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_graph graph = {.facts = {.envelope = rows[i].envelope, .has_steps = rows[i].has_steps}};
        graph.facts.source.kind = rows[i].has_source ? SL_FIELD_IDS : SL_FIELD_NONE;
        const struct sl_subgraphs subgraphs = {.graph = &graph};
        struct sl_tuner tuner;
        ok(sl_tuner_init(&tuner, &subgraphs, NULL, &err), &err);
        assert_int_equal(tuner.sides[0].count, 1);
        const struct sl_profile *target = &tuner.sides[0].items[0], *source = &tuner.sides[1].items[0];
        assert_int_equal(target->sequences, rows[i].sequences);
        assert_true(target->weight == 1);
        assert_int_equal(target->lengths != NULL, rows[i].has_steps);
        assert_int_equal(target->source_lengths != NULL, rows[i].has_source);
        for (int64_t k = 0; k < rows[i].sequences; k++) {
            if (rows[i].has_steps)
                assert_int_equal(target->lengths[k], rows[i].length);
            if (rows[i].has_source)
                assert_int_equal(source->lengths[k], rows[i].source_length);
        }
        sl_tuner_deinit(&tuner);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_cost_time),
        cmocka_unit_test(the_largest_batch_is_supposed),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

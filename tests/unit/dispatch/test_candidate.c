/* SPDX-License-Identifier: Apache-2.0 */
/* What backends that the test makes up answer becomes candidates and refusals, also where float32 is asked for in place
 * of the precision of the model; and when a chosen candidate counts as a fallback: a backend before it in the list has
 * refused for an option. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dispatch/candidate/candidate.h"
#include "dispatch/plan/refusal.h"
#include "ok.h"
#include "oom.h"
#include "registry/registry.h"

/* ---- backends ---------------------------------------------------------------------------------------------------- */

/* A letter for each answer of a backend, first to the precision of the model, then to float32: "y" accepts with one
 * variant, "2" with two, "p" refuses the precision, "c" another option, "o" the operation. */
struct made_up {
    const char *id, *answers;
    bool absent; /* its device is not there */
};

enum { BACKENDS_MOST = 4 };

static struct made_up made_up[BACKENDS_MOST];
static int asked[BACKENDS_MOST];

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend);
bool __wrap_sl_backend_find_device(const struct sl_backend *backend, uint32_t *out_device);
seqlstm_status __wrap_sl_backend_supports(const struct sl_backend *backend, uint32_t device,
                                          const struct seqlstm_desc *desc, struct seqlstm_answer *out_answer,
                                          struct seqlstm_error *err);
struct sl_option_place __wrap_sl_graph_find_option(const struct sl_graph *graph, const struct sl_node *node,
                                                   uint32_t option);

/* A backend is the address of its row. */
static const struct made_up *get(const struct sl_backend *backend)
{
    return (const void *)backend;
}

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend)
{
    return get(backend)->id;
}

bool __wrap_sl_backend_find_device(const struct sl_backend *backend, uint32_t *out_device)
{
    *out_device = 7 + (uint32_t)(get(backend) - made_up);
    return !get(backend)->absent;
}

seqlstm_status __wrap_sl_backend_supports(const struct sl_backend *backend, uint32_t device,
                                          const struct seqlstm_desc *desc, struct seqlstm_answer *out_answer,
                                          struct seqlstm_error *err)
{
    const struct made_up *row = get(backend);
    const bool narrow = desc->dtype_compute != SEQLSTM_DTYPE_FLOAT32;
    const char answer = row->answers[!narrow];
    (void)err;
    assert_int_equal(device, 7 + (row - made_up));
    asked[row - made_up]++;
    *out_answer =
        (struct seqlstm_answer){.struct_size = sizeof *out_answer, .accepted = answer == 'y' || answer == '2'};
    if (out_answer->accepted) {
        out_answer->variant_count = answer == 'y' ? 1 : 2;
        snprintf(out_answer->variants[0], sizeof out_answer->variants[0], "%s-a", row->id);
        snprintf(out_answer->variants[1], sizeof out_answer->variants[1], "%s-b", row->id);
        return SEQLSTM_OK;
    }
    out_answer->code = answer == 'p'   ? SEQLSTM_BIT_REFUSED_DTYPE
                       : answer == 'c' ? SEQLSTM_BIT_REFUSED_OPTION
                                       : SEQLSTM_BIT_REFUSED_OPERATION;
    out_answer->option = answer == 'p'   ? SEQLSTM_OPTION_DTYPE
                         : answer == 'c' ? SEQLSTM_OPTION_CELL_CLIP
                                         : SEQLSTM_OPTION_NONE;
    snprintf(out_answer->reason, sizeof out_answer->reason, "%s %s", row->id, narrow ? "before" : "in float32");
    snprintf(out_answer->hint, sizeof out_answer->hint, "hint of %s", row->id);
    snprintf(out_answer->value, sizeof out_answer->value, "value of %s", row->id);
    return SEQLSTM_OK;
}

struct sl_option_place __wrap_sl_graph_find_option(const struct sl_graph *graph, const struct sl_node *node,
                                                   uint32_t option)
{
    (void)graph;
    assert_non_null(node);
    return (struct sl_option_place){.key = option == SEQLSTM_OPTION_DTYPE ? "precision" : "cell_clip",
                                    .place = {"m.yaml", (int)option + 1, 2, 0}};
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* Candidates as "ID:VARIANT/RANK/INDEX/DEVICE", then refusals as "ID/RANK (KEY) REASON". */
static void write_subgraph(const struct sl_subgraph *subgraph, struct sl_buf *out)
{
    for (int32_t c = 0; c < subgraph->candidate_count; c++) {
        const struct sl_candidate *candidate = &subgraph->candidates[c];
        sl_buf_printf(out, "%s%s:%s/%u/%u/%u", out->length_bytes ? ", " : "", get(candidate->backend)->id,
                      candidate->variant, candidate->rank, candidate->variant_index, candidate->device);
    }
    for (int32_t r = 0; r < subgraph->refusal_count; r++) {
        const struct sl_refusal *refusal = &subgraph->refusals[r];
        char expected[48];
        sl_buf_printf(out, "%s%s/%u (%s) %s", out->length_bytes ? ", " : "", refusal->backend, refusal->rank,
                      refusal->option, refusal->reason);
        snprintf(expected, sizeof expected, "hint of %s", refusal->backend);
        assert_string_equal(refusal->hint, expected);
        snprintf(expected, sizeof expected, "value of %s", refusal->backend);
        assert_string_equal(refusal->value, expected);
        assert_int_equal(refusal->place.line, refusal->option_id + 1);
    }
}

static void answers_become_candidates_and_refusals(void **state)
{
    static const struct {
        struct made_up backends[BACKENDS_MOST];
        uint32_t dtype;
        const char *expected;
        int asked[BACKENDS_MOST];
    } rows[] = {
        {{{"x", "?y", false}, {"y", "?c", false}, {"z", "?2", false}, {"w", "?o", false}},
         SEQLSTM_DTYPE_FLOAT32,
         "x:x-a/0/0/7, z:z-a/2/0/9, z:z-b/2/1/9, y/1 (cell_clip) y in float32, w/3 () w in float32",
         {1, 1, 1, 1}},
        /* what is not there is not asked */
        {{{"x", "?y", true}, {"y", "?c", false}, {"z", "?p", true}, {"w", "?y", false}},
         SEQLSTM_DTYPE_FLOAT32,
         "w:w-a/3/0/10, y/1 (cell_clip) y in float32",
         {0, 1, 0, 1}},
        /* one has the precision: none is asked for another */
        {{{"x", "py", false}, {"y", "cy", false}, {"z", "y?", false}, {"w", "py", false}},
         SEQLSTM_DTYPE_BFLOAT16,
         "z:z-a/2/0/9, x/0 (precision) x before, y/1 (cell_clip) y before, w/3 (precision) w before",
         {1, 1, 1, 1}},
        /* none has: their refusals of the precision stay, with the answers to float32 */
        {{{"x", "cc", false}, {"y", "py", false}, {"z", "oo", false}, {"w", "p2", false}},
         SEQLSTM_DTYPE_FLOAT16,
         "y:y-a/1/0/8, w:w-a/3/0/10, w:w-b/3/1/10, x/0 (cell_clip) x in float32, y/1 (precision) y before, "
         "z/2 () z in float32, w/3 (precision) w before",
         {2, 2, 2, 2}},
        {{{"x", "pc", false}, {"y", "oc", false}, {"z", "cy", false}, {"w", "po", false}},
         SEQLSTM_DTYPE_INT8,
         "z:z-a/2/0/9, x/0 (precision) x before, x/0 (cell_clip) x in float32, y/1 (cell_clip) y in float32, "
         "w/3 (precision) w before, w/3 () w in float32",
         {2, 2, 2, 2}},
        /* float32 is not refused twice */
        {{{"x", "?c", false}, {"y", "?c", false}, {"z", "?o", false}, {"w", "?c", true}},
         SEQLSTM_DTYPE_FLOAT32,
         "x/0 (cell_clip) x in float32, y/1 (cell_clip) y in float32, z/2 () z in float32",
         {1, 1, 1, 0}},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_backend *listed[BACKENDS_MOST];
        struct sl_node node = {.name = "n", .is_quantized = true};
        struct sl_subgraph subgraph;
        struct sl_arena arena;
        struct sl_buf text = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        sl_arena_init(&arena);
        node.desc.recurrent.head.op = SEQLSTM_OP_RECURRENT;
        node.desc.head.dtype_compute = rows[k].dtype;
        node.desc.recurrent.data_scale = node.desc.recurrent.data_shift = 3;
        memset(asked, 0, sizeof asked);
        for (int b = 0; b < BACKENDS_MOST; b++) {
            made_up[b] = rows[k].backends[b];
            listed[b] = (struct sl_backend *)(void *)&made_up[b];
        }
        const struct sl_subgraphs subgraphs = {.arena = &arena, .listed = listed, .listed_count = BACKENDS_MOST};
        ok(sl_subgraph_ask(&subgraphs, &node, &node.desc, &subgraph, &err), &err);
        write_subgraph(&subgraph, &text);
        assert_string_equal(sl_buf_text(&text), rows[k].expected);
        assert_memory_equal(asked, rows[k].asked, sizeof asked);
        const bool changed = asked[1] == 2; /* the node is then another, and the graph's stays as it is */
        assert_int_equal(subgraph.node != &node, changed);
        assert_int_equal(subgraph.node->desc.head.dtype_compute, changed ? SEQLSTM_DTYPE_FLOAT32 : rows[k].dtype);
        assert_int_equal(subgraph.node->is_quantized, !changed);
        assert_true(subgraph.node->desc.recurrent.data_scale == (changed ? 0 : 3));
        assert_true(subgraph.node->desc.recurrent.data_shift == (changed ? 0 : 3));
        assert_int_equal(node.desc.head.dtype_compute, rows[k].dtype);
        assert_true(node.is_quantized && node.desc.recurrent.data_scale == 3);
        sl_buf_deinit(&text);
        sl_arena_deinit(&arena);
    }
}

/* ---- what is chosen ---------------------------------------------------------------------------------------------- */

static void only_refusals_of_backends_before_it_make_a_fallback(void **state)
{
    (void)state;
    static const struct {
        uint32_t rank, code;
        bool fallback; /* for a candidate of rank 1 */
    } cases[] = {
        {0, SEQLSTM_BIT_REFUSED_OPTION, true},     {0, SEQLSTM_BIT_REFUSED_SHAPE, true},
        {0, SEQLSTM_BIT_REFUSED_OPERATION, false}, /* it never runs such operations */
        {1, SEQLSTM_BIT_REFUSED_OPTION, false},    /* another variant of the same backend */
        {2, SEQLSTM_BIT_REFUSED_OPTION, false},
    };
    const struct sl_candidate candidate = {.rank = 1};
    struct sl_refusal later[2] = {{.rank = 2, .code = SEQLSTM_BIT_REFUSED_OPTION}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        later[1] = (struct sl_refusal){.rank = cases[i].rank, .code = cases[i].code};
        const struct sl_subgraph alone = {.refusals = later + 1, .refusal_count = 1},
                                 both = {.refusals = later, .refusal_count = 2};
        assert_int_equal(sl_candidate_is_fallback(&alone, &candidate), cases[i].fallback);
        assert_int_equal(sl_candidate_is_fallback(&both, &candidate), cases[i].fallback);
    }
    const struct sl_subgraph none = {.refusal_count = 0};
    assert_false(sl_candidate_is_fallback(&none, &candidate));
}

static void excluded_candidates_do_not_count(void **state)
{
    (void)state;
    struct sl_candidate candidates[3] = {{.excluded = true}, {.rank = 1}, {.rank = 2}};
    const struct sl_subgraph subgraph = {.candidates = candidates, .candidate_count = 3};
    assert_int_equal(sl_subgraph_count_candidates(&subgraph), 2);
    candidates[2].excluded = true;
    assert_int_equal(sl_subgraph_count_candidates(&subgraph), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_become_candidates_and_refusals),
        cmocka_unit_test(only_refusals_of_backends_before_it_make_a_fallback),
        cmocka_unit_test(excluded_candidates_do_not_count),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

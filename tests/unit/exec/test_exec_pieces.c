/* SPDX-License-Identifier: Apache-2.0 */
/* Steps in pieces, and stages: on the reference, for models of every kind and ragged batches.
 *
 *   pieces against none     the same loss and gradients, within rounding
 *   stages against none     the same bits, wherever the calls are cut
 */
#include <pthread.h>
#include <unistd.h>

#include "base/batch/pieces.h"
#include "exec_world.h"
#include "oom.h"

static const char data_tokens[] =
    "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace, label: {column: first}}\n";
static const char data_values[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n";
static const char data_stream[] =
    "seqlstm: 1\ndata: {type: text, train: {file: a}, tokenizer: {type: char}, batching: {unit: stream, bptt: 6}}\n";

enum { B = 6, STEPS = 7, CLASSES = 5, FEATURES = 3, STAGES_MOST = 3 };
static const int32_t ragged[B] = {7, 5, 5, 2, 1, 0}, even[B] = {6, 6, 6, 6, 6, 6}, empty[B] = {0};
/* Of two batches; where the second has no steps, or one of its sequences, nothing is left of the first. */
enum { TURNS = 5 };
static const int32_t *const turns[TURNS][2] = {
    {ragged, ragged}, {even, even}, {empty, empty}, {ragged, empty}, {even, ragged}};

struct model_case {
    const char *name, *data;
    bool tokens, on_steps;
    const char *layers;
};

#define VALUES(name, layers)                                                                                           \
    {                                                                                                                  \
        name, data_values, false, true, "model: [" layers "]\ntrain: {loss: mse, epochs: 1}"                           \
    }
#define LAST(name, layers)                                                                                             \
    {                                                                                                                  \
        name, data_values, false, false, "model: [" layers "]\ntrain: {loss: mse, epochs: 1}"                          \
    }
#define TOKENS(name, data, layers)                                                                                     \
    {                                                                                                                  \
        name, data, true, true, "model: [" layers "]\ntrain: {loss: cross_entropy, epochs: 1"

static const struct model_case cases
    [] = {VALUES("stack", "{type: lstm, units: 4, layers: 3, return_sequences: true}, {type: dense, units: 3}"),
          VALUES("every option",
                 "{type: lstm, units: 4, peephole: true, projection: 3, layer_norm: true, dropout: 0.2,"
                 " recurrent_dropout: 0.2, zoneout: {cell: 0.1, hidden: 0.1}, return_sequences: true},"
                 " {type: lstm, units: 4, weight_drop: 0.3, return_sequences: true}, {type: dense, units: 3}"),
          VALUES("gru and rnn, dropout, norm",
                 "{type: gru, units: 4, return_sequences: true}, {type: layer_norm}, {type: dropout, rate: 0.3},"
                 " {type: rnn, units: 3, return_sequences: true}, {type: dense, units: 3, activation: softplus}"),
          VALUES("several readers",
                 "{type: lstm, name: a, units: 4, return_sequences: true},"
                 " {type: rnn, name: b, units: 4, return_sequences: true}, {type: add, name: c, from: [a, b]},"
                 " {type: concat, name: d, from: [a, c, b]}, {type: dense, units: 3}"),
          VALUES("barriers", "{type: lstm, units: 3, return_sequences: true},"
                             " {type: gru, units: 3, direction: bidirectional, return_sequences: true},"
                             " {type: lstm, units: 3, return_sequences: true}, {type: dense, units: 3}"),
          VALUES("states of another layer",
                 "{type: lstm, name: a, units: 3, return_sequences: true},"
                 " {type: rnn, units: 2, return_sequences: true},"
                 " {type: gru, units: 2, direction: bidirectional, return_sequences: true},"
                 " {type: rnn, units: 2, return_sequences: true},"
                 " {type: lstm, units: 3, initial_state: a, return_sequences: true}, {type: dense, units: 3}"),
          LAST("last state",
               "{type: lstm, units: 4, return_sequences: true}, {type: gru, units: 4}, {type: dense, units: 3}"),
          LAST("pool",
               "{type: lstm, units: 4, return_sequences: true}, {type: pool, mode: mean}, {type: dense, units: 3}"),
          VALUES("states of another kind", /* which reads h alone: no gradient comes to c */
                 "{type: lstm, name: a, units: 3, return_sequences: true},"
                 " {type: gru, units: 3, initial_state: {from: a, bridge: dense}, return_sequences: true},"
                 " {type: dense, units: 3}"),
          VALUES("one state for several layers",
                 "{type: lstm, name: a, units: 3, return_sequences: true},"
                 " {type: lstm, units: 3, initial_state: a, return_sequences: true},"
                 " {type: rnn, units: 3, return_sequences: true},"
                 " {type: lstm, units: 3, initial_state: a, return_sequences: true}, {type: dense, units: 3}"),
          TOKENS("tied output", data_tokens,
                 "{type: embedding, name: emb, dim: 4}, {type: lstm, units: 4, layers: 2, return_sequences: true},"
                 " {type: output, tie: emb, activation: softmax}") ", task: tag}"},
    TOKENS(
        "stream", data_stream,
        "{type: embedding, dim: 4}, {type: lstm, units: 4, return_sequences: true},"
        " {type: gru, units: 4, return_sequences: true}, {type: output, activation: softmax}") ", task: language_model}"
}
,
}
;
enum { CASES = sizeof cases / sizeof *cases };

static struct sl_data_facts facts_of(const struct model_case *c)
{
    struct sl_data_facts facts = {.has_steps = true, .envelope = {.sequences = B, .steps = STEPS, .rows = B * STEPS}};
    const enum sl_field_kind kind = c->tokens ? SL_FIELD_IDS : SL_FIELD_VALUES;
    facts.input = (struct sl_field_facts){
        .kind = kind, .on_steps = true, .features = c->tokens ? 1 : FEATURES, .classes = c->tokens ? CLASSES : 0};
    facts.target = (struct sl_field_facts){
        .kind = kind, .on_steps = c->on_steps, .features = c->tokens ? 1 : 3, .classes = c->tokens ? CLASSES : 0};
    return facts;
}

static struct sl_batch *make_batch(const struct model_case *c, const int32_t *lengths, uint64_t ordinal)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_data_facts facts = facts_of(c);
    struct sl_batch_shape shape = {.sequences = B,
                                   .lengths = lengths,
                                   .input_kind = facts.input.kind,
                                   .target_kind = facts.target.kind,
                                   .input_features = facts.input.features,
                                   .target_features = facts.target.features,
                                   .input_on_steps = true,
                                   .target_on_steps = facts.target.on_steps};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    const int64_t rows = batch->axis.rows, target_rows = c->on_steps ? rows : B;
    for (int64_t i = 0; i < rows * facts.input.features; i++)
        if (c->tokens)
            ((int32_t *)batch->input.ids)[i] = (int32_t)((i * 3 + (int64_t)ordinal) % CLASSES);
        else
            ((float *)batch->input.values)[i] = number((uint64_t)i + 77 * ordinal);
    for (int64_t i = 0; i < target_rows * facts.target.features; i++)
        if (c->tokens)
            ((int32_t *)batch->target.ids)[i] = (int32_t)(i * 2 % CLASSES);
        else
            ((float *)batch->target.values)[i] = number((uint64_t)i + 1000);
    for (int64_t k = 0; k < B; k++)
        ((uint64_t *)batch->axis.sequence_id)[k] = (uint64_t)(40 + k);
    batch->ordinal = ordinal;
    batch->carry_state = ordinal > 0;
    return batch;
}

static void open_case(struct world *w, const struct model_case *c, int32_t pieces, const struct sl_exec_stage *stage)
{
    const struct sl_data_facts facts = facts_of(c);
    world_pieces = pieces;
    world_stage = stage ? *stage : (struct sl_exec_stage){0};
    open_world(w, c->data, c->layers, &facts, true);
    world_pieces = 0;
    world_stage = (struct sl_exec_stage){0};
}

/* Two batches; the second one adds to the gradients and, in a stream, goes on from the states of the first. */
static double run_two(struct world *w, const struct model_case *c, const int32_t *const lengths[2])
{
    double loss = 0;
    for (uint64_t k = 0; k < 2; k++) {
        struct sl_batch *batch = make_batch(c, lengths[k], k);
        loss += run(w, batch, k > 0);
        sl_batch_destroy(batch);
    }
    return loss;
}

/* ---- pieces ----------------------------------------------------------------------------------------------------- */

static void pieces_cover_the_steps(void **state)
{
    (void)state;
    int64_t offsets[] = {0, 6, 11, 16, 18, 19, 20, 21}, bounds[10];
    struct seqlstm_axis axis = {.steps = 7, .rows = 21, .row_offsets = offsets};
    assert_int_equal(sl_steps_cut(&axis, 1, bounds), 1);
    assert_int_equal(bounds[1], 7);
    assert_int_equal(sl_steps_cut(&axis, 2, bounds), 2);
    assert_int_equal(bounds[1], 2); /* 11 of 21 rows */
    assert_int_equal(sl_steps_cut(&axis, 9, bounds), 7);
    for (int p = 0; p <= 7; p++)
        assert_int_equal(bounds[p], p);
    axis.rows = axis.steps = 0;
    assert_int_equal(sl_steps_cut(&axis, 4, bounds), 0);
}

/* Slots are float32, so what passes through n of them is off by about n eps32 of its scale; less than 100 lie between a
 * parameter and the loss. */
static void compare(const struct model_case *c, int32_t pieces, const struct world *w, const struct world *whole)
{
    for (int32_t v = 0; v < w->params->view_count; v++) {
        const struct sl_param_view *view = &w->params->views[v];
        const float *got = w->params->grads + view->offset_elems, *expected = whole->params->grads + view->offset_elems;
        for (int64_t e = 0; e < view->elems; e++)
            if (!(fabs((double)got[e] - (double)expected[e]) <= 1e-5 * (1 + fabs((double)expected[e]))))
                fail_msg("%s in %d pieces: %s[%lld] is %g, not %g", c->name, pieces, view->name, (long long)e,
                         (double)got[e], (double)expected[e]);
    }
}

static void gradients_do_not_depend_on_pieces(void **state)
{
    (void)state;
    static const int32_t counts[] = {1, 2, 3, 50};
    for (int i = 0; i < CASES; i++)
        for (int l = 0; l < TURNS; l++) {
            struct world whole, w;
            open_case(&whole, &cases[i], 0, NULL);
            const double expected = run_two(&whole, &cases[i], turns[l]);
            for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
                open_case(&w, &cases[i], counts[k], NULL);
                const double loss = run_two(&w, &cases[i], turns[l]);
                if (!(fabs(loss - expected) <= 1e-5 * (1 + fabs(expected))))
                    fail_msg("%s in %d pieces: loss %g, not %g", cases[i].name, counts[k], loss, expected);
                compare(&cases[i], counts[k], &w, &whole);
                close_world(&w);
            }
            close_world(&whole);
        }
}

static void barriers_have_reasons(void **state)
{
    (void)state;
    struct world w;
    open_case(&w, &cases[4], 2, NULL);
    assert_int_equal(sl_graph_find_barrier(w.graph, &w.graph->nodes[0]), SL_BARRIER_NONE);
    assert_int_equal(sl_graph_find_barrier(w.graph, &w.graph->nodes[1]), SL_BARRIER_DIRECTION);
    close_world(&w);
    open_case(&w, &cases[7], 2, NULL);
    assert_int_equal(sl_graph_find_barrier(w.graph, &w.graph->nodes[1]), SL_BARRIER_STEPS);
    close_world(&w);
}

/* ---- stages ----------------------------------------------------------------------------------------------------- */

/* A stage on a thread of its own; bytes between neighbours go through pipes. */
struct stage {
    const struct model_case *c;
    const int32_t *const *lengths;
    struct world w;
    int up[2], down[2]; /* to read from and write to: the stage before, and the one after */
    double loss;
};

static seqlstm_status exchange(void *context, bool after, bool sends, float *values, int64_t elems,
                               struct seqlstm_error *err)
{
    const struct stage *stage = context;
    const int fd = (after ? stage->down : stage->up)[sends];
    size_t left = (size_t)elems * sizeof *values;
    for (char *at = (char *)values; left > 0;) {
        const ssize_t done = sends ? write(fd, at, left) : read(fd, at, left);
        if (done <= 0)
            SEQLSTM_FAIL(err, SEQLSTM_IO, "the pipe is closed");
        at += done;
        left -= (size_t)done;
    }
    return SEQLSTM_OK;
}

static void *run_stage(void *context)
{
    struct stage *stage = context;
    stage->loss = run_two(&stage->w, stage->c, stage->lengths);
    return NULL;
}

/* The first stage that uses a parameter has its whole gradient. */
static int find_owner(const struct world *w, const int32_t *cuts, int32_t p)
{
    for (int32_t n = 0; n < w->plan->call_count; n++)
        for (int32_t s = 0; s < w->plan->calls[n].node->slot_count; s++)
            if (w->plan->calls[n].node->slots[s] == w->graph->params[p].tensor) {
                int owner = 0;
                while (n >= cuts[owner + 1])
                    owner++;
                return owner;
            }
    return 0;
}

static void check_stages(const struct model_case *c, const int32_t *const lengths[2], const struct world *single,
                         double loss, const int32_t *cuts, int count)
{
    static struct stage stages[STAGES_MOST];
    pthread_t threads[STAGES_MOST];
    for (int k = 0; k < count; k++) {
        stages[k] = (struct stage){.c = c, .lengths = lengths};
        const struct sl_exec_stage part = {cuts[k], cuts[k + 1], exchange, &stages[k]};
        open_case(&stages[k].w, c, single->graph->pieces, &part);
    }
    for (int k = 0; k + 1 < count; k++) {
        int up[2], down[2];
        assert_int_equal(pipe(up), 0);
        assert_int_equal(pipe(down), 0);
        stages[k].down[0] = down[0];
        stages[k].down[1] = up[1];
        stages[k + 1].up[0] = up[0];
        stages[k + 1].up[1] = down[1];
    }
    for (int k = 0; k < count; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, run_stage, &stages[k]), 0);
    for (int k = 0; k < count; k++)
        assert_int_equal(pthread_join(threads[k], NULL), 0);
    assert_memory_equal(&stages[count - 1].loss, &loss, sizeof loss);
    for (int32_t p = 0; p < single->params->view_count; p++) {
        const struct sl_param_view *view = &single->params->views[p];
        const int owner = find_owner(single, cuts, p);
        if (memcmp(stages[owner].w.params->grads + view->offset_elems, single->params->grads + view->offset_elems,
                   (size_t)view->elems * sizeof(float)) != 0)
            fail_msg("%s cut at %d of %d: other bits in %s", c->name, cuts[1], single->plan->call_count, view->name);
    }
    for (int k = 0; k < count; k++) {
        close_world(&stages[k].w);
        for (int end = 0; end < 2 && k + 1 < count; end++) {
            close(stages[k].down[end]);
            close(stages[k + 1].up[end]);
        }
    }
}

static void stages_have_the_bits_of_one(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++)
        for (int l = 0; l < TURNS; l++) {
            struct world single;
            open_case(&single, &cases[i], 3, NULL);
            const double loss = run_two(&single, &cases[i], turns[l]);
            const int32_t calls = single.plan->call_count;
            for (int32_t cut = 1; cut < calls; cut++) {
                check_stages(&cases[i], turns[l], &single, loss, (int32_t[]){0, cut, calls}, 2);
                if (cut + 1 < calls)
                    check_stages(&cases[i], turns[l], &single, loss, (int32_t[]){0, cut, cut + 1, calls}, 3);
            }
            close_world(&single);
        }
}

/* ---- the output layer ------------------------------------------------------------------------------------------- */

/* May the output layer and the loss be one operation? */
static bool are_offered_as_one(const char *data, const char *layers, bool on_steps, int64_t classes, int32_t pieces)
{
    const struct model_case tokens = {.tokens = true, .on_steps = on_steps};
    struct sl_data_facts facts = facts_of(&tokens);
    struct world w;
    facts.target.classes = classes;
    world_pieces = pieces;
    open_world(&w, data, layers, &facts, false);
    world_pieces = 0;
    const bool offered = w.graph->alternative_count == 1;
    close_world(&w);
    return offered;
}

/* With many classes its weight gradients are made once for all pieces, which the two as one cannot do. */
static void many_classes_in_pieces_keep_the_loss_apart(void **state)
{
    (void)state;
    static const char tags[] = "model: [{type: embedding, dim: 4}, {type: lstm, units: 4, return_sequences: true},"
                               " {type: output, activation: softmax}]\ntrain: {task: tag, epochs: 1}",
                      label[] = "model: [{type: embedding, dim: 4}, {type: lstm, units: 4},"
                                " {type: output, activation: softmax}]\ntrain: {task: classify, epochs: 1}";
    assert_false(are_offered_as_one(data_tokens, tags, true, 1024, 3));
    assert_true(are_offered_as_one(data_tokens, tags, true, 1023, 3));
    assert_true(are_offered_as_one(data_tokens, tags, true, 1024, 0));
    assert_true(are_offered_as_one(data_tokens, label, false, 1024, 3)); /* they do not run in pieces */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_cover_the_steps),
        cmocka_unit_test(gradients_do_not_depend_on_pieces),
        cmocka_unit_test(barriers_have_reasons),
        cmocka_unit_test(stages_have_the_bits_of_one),
        cmocka_unit_test(many_classes_in_pieces_keep_the_loss_apart),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

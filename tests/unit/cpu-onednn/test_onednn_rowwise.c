/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers and layer normalisation of cpu-onednn: which gradients a backward writes, and which primitives an
 * operation keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <seqlstm/ext/rebind.h>

#include "base/system/pool.h"
#include "onednn_fixture.h"

enum { ROWS = 9, IN = 5, OUT = 3 };

static struct sl_pool *pool;
static struct sl_queue alone, shared; /* of one member and of two */

static const struct seqlstm_dense_desc dense = {.head = {.struct_size = sizeof dense,
                                                         .op = SEQLSTM_OP_DENSE,
                                                         .mode = SEQLSTM_MODE_INFERENCE,
                                                         .max_rows = 64,
                                                         .max_sequences = 64,
                                                         .max_steps = 64},
                                                .input = IN,
                                                .output = OUT};
static const struct seqlstm_layer_norm_desc norm = {.head = {.struct_size = sizeof norm,
                                                             .op = SEQLSTM_OP_LAYER_NORM,
                                                             .mode = SEQLSTM_MODE_INFERENCE,
                                                             .max_rows = 64,
                                                             .max_sequences = 64,
                                                             .max_steps = 64},
                                                    .features = IN,
                                                    .epsilon = 1e-3f};

static struct seqlstm_op *create(const struct seqlstm_desc *desc, const char *variant)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    if (table->op_create(instance, 0, desc, variant, &op, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return op;
}

static struct seqlstm_binding *bind_rows(struct seqlstm_op *op, struct sl_queue *queue, int64_t rows)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_binding *binding = NULL;
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = rows, .rows_in = rows};
    if (table->op_bind(op, &queue->queue, &bind, &binding, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return binding;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

struct values {
    float x[ROWS * IN], y[ROWS * IN], w[OUT * IN], b[IN]; /* of a norm, w is the gain */
    float dx[ROWS * IN], dy[ROWS * IN], dw[OUT * IN], db[IN];
    double want_dx[ROWS * IN], want_dw[OUT * IN], want_db[IN];
};

static void fill(struct values *v)
{
    float *const all[] = {v->x, v->w, v->b, v->dx, v->dy, v->dw, v->db};
    const int counts[] = {ROWS * IN, OUT * IN, IN, ROWS * IN, ROWS * IN, OUT * IN, IN};
    for (int k = 0; k < 7; k++)
        for (int i = 0; i < counts[k]; i++)
            all[k][i] = sinf((float)(31 * k + 7 * i + 1));
}

static void find_dense_grads(struct values *v)
{
    for (int r = 0; r < ROWS; r++)
        for (int o = 0; o < OUT; o++) {
            const double dy = (double)v->dy[r * OUT + o];
            v->want_db[o] += dy;
            for (int i = 0; i < IN; i++) {
                v->want_dx[r * IN + i] += dy * (double)v->w[o * IN + i];
                v->want_dw[o * IN + i] += dy * (double)v->x[r * IN + i];
            }
        }
}

static void find_norm_grads(struct values *v, bool gain)
{
    for (int r = 0; r < ROWS; r++) {
        const float *x = v->x + r * IN, *dy = v->dy + r * IN;
        double mean = 0, variance = 0, sum = 0, product = 0;
        for (int i = 0; i < IN; i++)
            mean += (double)x[i] / IN;
        for (int i = 0; i < IN; i++)
            variance += ((double)x[i] - mean) * ((double)x[i] - mean) / IN;
        const double scale = 1 / sqrt(variance + (double)norm.epsilon);
        for (int i = 0; i < IN; i++) {
            const double g = (double)dy[i] * (gain ? (double)v->w[i] : 1), n = ((double)x[i] - mean) * scale;
            sum += g / IN;
            product += g * n / IN;
            v->want_dw[i] += (double)dy[i] * n;
            v->want_db[i] += (double)dy[i];
        }
        for (int i = 0; i < IN; i++)
            v->want_dx[r * IN + i] =
                scale * ((double)dy[i] * (gain ? (double)v->w[i] : 1) - sum - ((double)x[i] - mean) * scale * product);
    }
}

/* `before`: what stands there if it is not `written`, and is added to if `added`. */
static void expect(const char *what, const float *got, const float *before, const double *want, int count, bool written,
                   bool added)
{
    for (int i = 0; i < count; i++) {
        const double wanted = written ? want[i] + (added ? (double)before[i] : 0) : (double)before[i];
        if (!(fabs((double)got[i] - wanted) <= (written ? 2e-5 * (1 + fabs(wanted)) : 0)))
            fail_msg("%s[%d] is %g, expected %g", what, i, (double)got[i], wanted);
    }
}

struct call {
    const struct seqlstm_desc *desc;
    const char *variant;
    struct sl_queue *queue;
    uint32_t parts;
    bool has_dy, weighted, biased;
};

static void run(const struct call *c, struct values *v)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    struct seqlstm_op *op = create(c->desc, c->variant);
    struct seqlstm_binding *binding = bind_rows(op, c->queue, ROWS);
    const struct seqlstm_step step = {.struct_size = sizeof step};
    assert_int_equal(table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
    void *workspace = aligned_alloc(64, ((size_t)sizes.workspace_bytes + 127) / 64 * 64);
    void *reserve = aligned_alloc(64, ((size_t)sizes.reserve_bytes + 127) / 64 * 64);
    assert_true(workspace != NULL && reserve != NULL);
    memset(workspace, 0xFF, (size_t)sizes.workspace_bytes); /* NaN everywhere */
    void *slots[] = {v->x, v->y, v->w, c->biased ? v->b : NULL};
    void *grads[] = {v->dx, c->has_dy ? v->dy : NULL, v->dw, c->biased ? v->db : NULL};
    const struct seqlstm_forward forward = {.struct_size = sizeof forward,
                                            .slot_count = 4,
                                            .slots = slots,
                                            .workspace = workspace,
                                            .reserve = reserve,
                                            .step = &step};
    const struct seqlstm_backward backward = {.struct_size = sizeof backward,
                                              .slot_count = 4,
                                              .slots = slots,
                                              .grads = grads,
                                              .parts = c->parts,
                                              .workspace = workspace,
                                              .reserve = reserve,
                                              .step = &step};
    if (table->forward(binding, &c->queue->queue, &forward, &err) != SEQLSTM_OK ||
        table->backward(binding, &c->queue->queue, &backward, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    free(workspace), free(reserve);
    table->binding_destroy(binding);
    table->op_destroy(op);
}

/* Each combination of what is wanted, added, and absent; in one part and in two, on the host's threads and on the
 * library's. */
static void a_backward_writes_what_is_wanted_and_no_more(void **state)
{
    static const uint32_t wanted[] = {SEQLSTM_BIT_BACKWARD_INPUTS, SEQLSTM_BIT_BACKWARD_WEIGHTS,
                                      SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS};
    (void)state;
    for (int k = 0; k < 2 * 4 * 3 * 2 * 2 * 2; k++) {
        const bool is_norm = k % 2, weighted = !is_norm || k / 2 % 2, biased = k / 4 % 2, added = k / 24 % 2;
        struct seqlstm_dense_desc d = dense;
        struct seqlstm_layer_norm_desc n = norm;
        d.head.mode = n.head.mode = SEQLSTM_MODE_TRAINING;
        d.options = biased ? SEQLSTM_BIT_DENSE_USE_BIAS : 0u;
        n.options = (weighted ? SEQLSTM_BIT_LAYER_NORM_GAIN : 0u) | (biased ? SEQLSTM_BIT_LAYER_NORM_BIAS : 0u);
        const struct call c = {.desc = is_norm ? &n.head : &d.head,
                               .variant = k / 2 % 2 ? "exclusive" : "sliced",
                               .queue = k / 96 % 2 ? &shared : &alone,
                               .parts = wanted[k / 8 % 3] | (added ? SEQLSTM_BIT_BACKWARD_ACCUMULATE : 0u),
                               .has_dy = k / 48 % 2,
                               .weighted = weighted,
                               .biased = biased};
        struct values v = {.x = {0}}, before;
        fill(&v);
        if (c.has_dy && is_norm)
            find_norm_grads(&v, weighted);
        else if (c.has_dy)
            find_dense_grads(&v);
        before = v;
        run(&c, &v);
        const bool weights = c.parts & SEQLSTM_BIT_BACKWARD_WEIGHTS;
        expect("dx", v.dx, before.dx, v.want_dx, ROWS * IN, c.parts & SEQLSTM_BIT_BACKWARD_INPUTS, false);
        expect("dw", v.dw, before.dw, v.want_dw, is_norm ? IN : OUT * IN, weights && weighted, added);
        expect("db", v.db, before.db, v.want_db, is_norm ? IN : OUT, weights && biased, added);
    }
}

/* ---- primitives -------------------------------------------------------------------------------------------------- */

/* The primitives of a part are one block of the host's memory; those that were used last are kept. */
static void so_many_primitives_are_kept(void **state)
{
    enum { KEPT = 16 };
    (void)state;
    struct seqlstm_op *op = create(&dense.head, "sliced");
    const int64_t before = host.memory.live_blocks;
    for (int64_t rows = 1; rows <= KEPT + 4; rows++)
        table->binding_destroy(bind_rows(op, &alone, rows));
    assert_int_equal(host.memory.live_blocks - before, KEPT);
    for (int64_t rows = KEPT + 4; rows > 4; rows--) /* they are there */
        table->binding_destroy(bind_rows(op, &alone, rows));
    assert_int_equal(host.memory.live_blocks - before, KEPT);
    table->op_destroy(op);
}

static int64_t count_processors(void)
{
    return sysconf(_SC_NPROCESSORS_CONF);
}

/* The library divides work by its threads when a primitive is made. */
static void primitives_are_for_a_number_of_threads(void **state)
{
    (void)state;
    struct seqlstm_op *op = create(&dense.head, "exclusive");
    const int64_t before = host.memory.live_blocks, more = count_processors() > 1;
    for (int round = 0; round < 2; round++) {
        table->binding_destroy(bind_rows(op, &alone, ROWS));
        assert_int_equal(host.memory.live_blocks - before, round == 0 ? 1 : 1 + more);
        table->binding_destroy(bind_rows(op, &shared, ROWS));
        assert_int_equal(host.memory.live_blocks - before, 1 + more);
    }
    table->op_destroy(op);
}

/* A binding for 8 rows, of which two members take 4 each: 9 rows are 4 and 5. */
static void other_rows_need_primitives_of_their_own(void **state)
{
    (void)state;
    const struct seqlstm_rebind *rebind = table->get_extension(instance, SEQLSTM_REBIND_EXTENSION);
    struct seqlstm_op *op = create(&dense.head, "sliced");
    struct seqlstm_binding *binding = bind_rows(op, &shared, 8);
    const struct seqlstm_bind other = {.struct_size = sizeof other, .rows = 9, .rows_in = 9};
    const struct seqlstm_bind many = {.struct_size = sizeof many, .rows = 65, .rows_in = 65};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(rebind->rebind(binding, &shared.queue, &other, &err), SEQLSTM_UNSUPPORTED);
    assert_string_equal(err.message, count_processors() > 1 ? "no idle primitives are for 5 rows"
                                                            : "no idle primitives are for 9 rows");
    table->binding_destroy(binding);
    table->binding_destroy(bind_rows(op, &shared, 9));
    binding = bind_rows(op, &shared, 8);
    assert_int_equal(rebind->rebind(binding, &shared.queue, &other, &err), SEQLSTM_OK);
    assert_int_equal(rebind->rebind(binding, &shared.queue, &many, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "65 rows (65 in), the descriptor allows 1 to 64");
    table->binding_destroy(binding);
    table->op_destroy(op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backward_writes_what_is_wanted_and_no_more),
        cmocka_unit_test(so_many_primitives_are_kept),
        cmocka_unit_test(primitives_are_for_a_number_of_threads),
        cmocka_unit_test(other_rows_need_primitives_of_their_own),
    };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (!open_backend())
        return 0;
    if (sl_pool_create(2, &pool, &err) != SEQLSTM_OK)
        return 1;
    sl_queue_init(&alone, NULL);
    sl_queue_init(&shared, pool);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    table->close(instance);
    sl_pool_destroy(pool);
    return failed || host.memory.live_blocks != 0;
}

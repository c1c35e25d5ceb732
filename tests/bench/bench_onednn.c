/* SPDX-License-Identifier: Apache-2.0 */
/* The LSTM primitive of oneDNN 2, bare: what seqlstm is compared with. Not linked with anything of seqlstm.
 *
 *   bench_onednn train|infer|int8|check T B I H L D ROUNDS [--cpu]
 *
 * Prints the least and the median nanoseconds of a step.
 * int8: inference on bytes, one layer; what is made of the bytes before and behind it is not part of a step.
 *
 * A training step is what an optimizer's step asks for: the new weights into the layouts of both passes,
 * forward_training, zeroed weight gradients, backward (which always makes the gradient of the input). It begins from
 * states of zeros, given as such: where none are given the gradient of W_h in the uppermost layer is wrong (ref_rnn.cpp
 * of 2.6 to 3.7 multiplies the gates of step t by h of step t, not t - 1). `check` shows it: it prints how far that
 * gradient is off with none, relative to its largest element.
 * OMP_NUM_THREADS sets the threads.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dnnl.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        dnnl_status_t s_ = (call);                                                                                     \
        if (s_ != dnnl_success) {                                                                                      \
            fprintf(stderr, "%s: oneDNN status %d\n", #call, (int)s_);                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static dnnl_memory_t memory_of(const dnnl_memory_desc_t *md)
{
    dnnl_memory_t m;
    TRY(dnnl_memory_create(&m, md, engine, DNNL_MEMORY_ALLOCATE));
    void *data;
    TRY(dnnl_memory_get_data_handle(m, &data));
    size_t bytes = dnnl_memory_desc_get_size(md);
    if (data && bytes)
        memset(data, 0, bytes);
    return m;
}

static void fill(dnnl_memory_t m, size_t count)
{
    float *x;
    TRY(dnnl_memory_get_data_handle(m, (void **)&x));
    unsigned seed = 12345;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = ((float)(seed >> 8) / 8388608.0f - 1.0f) * 0.1f;
    }
}

static dnnl_memory_desc_t typed_desc_of(int n, const int64_t *dims, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md;
    TRY(dnnl_memory_desc_init_by_tag(&md, n, dims, type, tag));
    return md;
}

static dnnl_memory_desc_t desc_of(int n, const int64_t *dims, dnnl_format_tag_t tag)
{
    return typed_desc_of(n, dims, dnnl_f32, tag);
}

/* Data in [-1, 1], weights in [-0.1, 0.1]. */
static dnnl_primitive_attr_t byte_scales(void)
{
    const float scale = 1270.0f;
    dnnl_primitive_attr_t attr;
    TRY(dnnl_primitive_attr_create(&attr));
    TRY(dnnl_primitive_attr_set_rnn_data_qparams(attr, 127.0f, 128.0f));
    TRY(dnnl_primitive_attr_set_rnn_weights_qparams(attr, 1, 0, &scale));
    return attr;
}

struct reorder {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[2];
};

static struct reorder reorder_of(dnnl_memory_t from, dnnl_memory_t to, const_dnnl_primitive_attr_t attr)
{
    const dnnl_memory_desc_t *a, *b;
    TRY(dnnl_memory_get_memory_desc(from, &a));
    TRY(dnnl_memory_get_memory_desc(to, &b));
    dnnl_primitive_desc_t pd;
    TRY(dnnl_reorder_primitive_desc_create(&pd, a, engine, b, engine, attr));
    struct reorder r = {NULL, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
    TRY(dnnl_primitive_create(&r.primitive, pd));
    return r;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double now(bool cpu)
{
    struct timespec t;
    clock_gettime(cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct lstm {
    dnnl_primitive_t forward, backward;
    dnnl_exec_arg_t args[20];
    int forward_count, backward_count;
    struct reorder reorders[4];
    int reorder_count;
    dnnl_memory_t zeroed[3];
};

static void add(struct lstm *l, int *count, int arg, dnnl_memory_t m)
{
    l->args[*count].arg = arg;
    l->args[(*count)++].memory = m;
}

static void lstm_create(struct lstm *l, bool train, bool bytes, bool states, const int64_t *n)
{
    const int64_t steps = n[0], batch = n[1], input = n[2], hidden = n[3], layers = n[4], dirs = n[5];
    const int64_t src_dims[] = {steps, batch, input}, dst_dims[] = {steps, batch, dirs * hidden};
    const int64_t wx_dims[] = {layers, dirs, input, 4, hidden}, wh_dims[] = {layers, dirs, hidden, 4, hidden};
    const int64_t bias_dims[] = {layers, dirs, 4, hidden};
    const dnnl_data_type_t data = bytes ? dnnl_u8 : dnnl_f32, weight = bytes ? dnnl_s8 : dnnl_f32;
    const dnnl_primitive_attr_t attr = bytes ? byte_scales() : NULL;
    dnnl_memory_desc_t src = typed_desc_of(3, src_dims, data, dnnl_tnc);
    dnnl_memory_desc_t dst = typed_desc_of(3, dst_dims, data, dnnl_tnc);
    dnnl_memory_desc_t wx = typed_desc_of(5, wx_dims, weight, dnnl_format_tag_any);
    dnnl_memory_desc_t wh = typed_desc_of(5, wh_dims, weight, dnnl_format_tag_any);
    dnnl_memory_desc_t wx_user = desc_of(5, wx_dims, dnnl_ldigo), wh_user = desc_of(5, wh_dims, dnnl_ldigo);
    const int64_t state_dims[] = {layers, dirs, batch, hidden};
    dnnl_memory_desc_t bias = desc_of(4, bias_dims, dnnl_ldgo), none;
    memset(&none, 0, sizeof none);
    dnnl_memory_desc_t state = states ? desc_of(4, state_dims, dnnl_ldnc) : none;
    dnnl_rnn_direction_t way = dirs == 2 ? dnnl_bidirectional_concat : dnnl_unidirectional_left2right;
    dnnl_rnn_desc_t desc;
    TRY(dnnl_lstm_forward_desc_init(&desc, train ? dnnl_forward_training : dnnl_forward_inference, way, &src, &state,
                                    &state, &wx, &wh, &bias, &dst, &none, &none, 0));
    dnnl_primitive_desc_t pd, back = NULL;
    TRY(dnnl_primitive_desc_create(&pd, &desc, attr, engine, NULL));
    TRY(dnnl_primitive_create(&l->forward, pd));
    dnnl_memory_t x = memory_of(&src), y = memory_of(&dst), master_x = memory_of(&wx_user);
    dnnl_memory_t master_h = memory_of(&wh_user), b = memory_of(&bias);
    dnnl_memory_t w_x = memory_of(dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
    dnnl_memory_t w_h = memory_of(dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 1));
    if (!bytes)
        fill(x, (size_t)(steps * batch * input));
    fill(master_x, (size_t)(layers * dirs * input * 4 * hidden));
    fill(master_h, (size_t)(layers * dirs * hidden * 4 * hidden));
    l->reorders[l->reorder_count++] = reorder_of(master_x, w_x, attr);
    l->reorders[l->reorder_count++] = reorder_of(master_h, w_h, attr);
    int c = 0;
    add(l, &c, DNNL_ARG_SRC_LAYER, x);
    add(l, &c, DNNL_ARG_BIAS, b);
    add(l, &c, DNNL_ARG_DST_LAYER, y);
    if (states) {
        add(l, &c, DNNL_ARG_SRC_ITER, memory_of(&state));
        add(l, &c, DNNL_ARG_SRC_ITER_C, memory_of(&state));
    }
    if (train)
        add(l, &c, DNNL_ARG_WORKSPACE, memory_of(dnnl_primitive_desc_query_md(pd, dnnl_query_workspace_md, 0)));
    add(l, &c, DNNL_ARG_WEIGHTS_LAYER, w_x);
    add(l, &c, DNNL_ARG_WEIGHTS_ITER, w_h);
    l->forward_count = c;
    if (!train)
        return;
    TRY(dnnl_lstm_backward_desc_init(&desc, dnnl_backward, way, &src, &state, &state, &wx, &wh, &bias, &dst, &none,
                                     &none, &src, &state, &state, &wx, &wh, &bias, &dst, &none, &none, 0));
    TRY(dnnl_primitive_desc_create(&back, &desc, NULL, engine, pd));
    TRY(dnnl_primitive_create(&l->backward, back));
    dnnl_memory_t w_x_back = memory_of(dnnl_primitive_desc_query_md(back, dnnl_query_weights_md, 0));
    dnnl_memory_t w_h_back = memory_of(dnnl_primitive_desc_query_md(back, dnnl_query_weights_md, 1));
    l->reorders[l->reorder_count++] = reorder_of(master_x, w_x_back, NULL);
    l->reorders[l->reorder_count++] = reorder_of(master_h, w_h_back, NULL);
    dnnl_memory_t dy = memory_of(&dst);
    fill(dy, (size_t)(steps * batch * dirs * hidden));
    l->zeroed[0] = memory_of(dnnl_primitive_desc_query_md(back, dnnl_query_diff_weights_md, 0));
    l->zeroed[1] = memory_of(dnnl_primitive_desc_query_md(back, dnnl_query_diff_weights_md, 1));
    l->zeroed[2] = memory_of(&bias);
    add(l, &c, DNNL_ARG_DIFF_SRC_LAYER, memory_of(&src));
    if (states) {
        add(l, &c, DNNL_ARG_DIFF_SRC_ITER, memory_of(&state));
        add(l, &c, DNNL_ARG_DIFF_SRC_ITER_C, memory_of(&state));
    }
    add(l, &c, DNNL_ARG_DIFF_DST_LAYER, dy);
    add(l, &c, DNNL_ARG_DIFF_WEIGHTS_LAYER, l->zeroed[0]);
    add(l, &c, DNNL_ARG_DIFF_WEIGHTS_ITER, l->zeroed[1]);
    add(l, &c, DNNL_ARG_DIFF_BIAS, l->zeroed[2]);
    l->backward_count = c;
    l->args[18].memory = w_x_back; /* swapped in for backward */
    l->args[19].memory = w_h_back;
}

static void swap_weights(struct lstm *l)
{
    for (int i = 0; i < 2; i++) {
        dnnl_memory_t m = l->args[l->forward_count - 2 + i].memory;
        l->args[l->forward_count - 2 + i].memory = l->args[18 + i].memory;
        l->args[18 + i].memory = m;
    }
}

static void run(struct lstm *l, bool train)
{
    for (int i = 0; train && i < l->reorder_count; i++)
        TRY(dnnl_primitive_execute(l->reorders[i].primitive, stream, 2, l->reorders[i].args));
    TRY(dnnl_primitive_execute(l->forward, stream, l->forward_count, l->args));
    if (train) {
        for (int i = 0; i < 3; i++) {
            const dnnl_memory_desc_t *md;
            void *data;
            TRY(dnnl_memory_get_memory_desc(l->zeroed[i], &md));
            TRY(dnnl_memory_get_data_handle(l->zeroed[i], &data));
            memset(data, 0, dnnl_memory_desc_get_size(md));
        }
        swap_weights(l);
        TRY(dnnl_primitive_execute(l->backward, stream, l->backward_count, l->args));
        swap_weights(l);
    }
    TRY(dnnl_stream_wait(stream));
}

static void check(const int64_t *n)
{
    static struct lstm with, without;
    const float *right, *other;
    lstm_create(&with, true, false, true, n);
    lstm_create(&without, true, false, false, n);
    run(&with, true);
    run(&without, true);
    const dnnl_memory_desc_t *md;
    TRY(dnnl_memory_get_memory_desc(with.zeroed[1], &md));
    TRY(dnnl_memory_get_data_handle(with.zeroed[1], (void **)&right));
    TRY(dnnl_memory_get_data_handle(without.zeroed[1], (void **)&other));
    const size_t each = dnnl_memory_desc_get_size(md) / sizeof(float) / (size_t)n[4];
    for (int64_t layer = 0; layer < n[4]; layer++) {
        float largest = 0, off = 0;
        for (size_t i = (size_t)layer * each; i < (size_t)(layer + 1) * each; i++) {
            largest = fmaxf(largest, fabsf(right[i]));
            off = fmaxf(off, fabsf(right[i] - other[i]));
        }
        printf("layer %d: %.3g\n", (int)layer, off / largest);
    }
}

int main(int argc, char **argv)
{
    if (argc < 9) {
        fprintf(stderr, "usage: bench_onednn train|infer|int8|check T B I H L D ROUNDS [--cpu]\n");
        return 2;
    }
    bool train = strcmp(argv[1], "train") == 0, bytes = strcmp(argv[1], "int8") == 0, cpu = argc > 9;
    int64_t n[6];
    for (int i = 0; i < 6; i++)
        n[i] = strtol(argv[2 + i], NULL, 10);
    int rounds = (int)strtol(argv[8], NULL, 10);
    TRY(dnnl_engine_create(&engine, dnnl_cpu, 0));
    TRY(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    if (strcmp(argv[1], "check") == 0) {
        check(n);
        return 0;
    }
    static struct lstm l;
    lstm_create(&l, train, bytes, train, n);
    for (int i = 0; !train && i < l.reorder_count; i++)
        TRY(dnnl_primitive_execute(l.reorders[i].primitive, stream, 2, l.reorders[i].args));
    run(&l, train);
    double t = now(false);
    run(&l, train);
    double one = now(false) - t;
    long calls = one < 4e6 ? (long)(4e6 / (one + 1)) + 1 : 1;
    double *ns = calloc((size_t)rounds + 1, sizeof *ns);
    for (int r = 0; ns && r < rounds; r++) {
        t = now(cpu);
        for (long k = 0; k < calls; k++)
            run(&l, train);
        ns[r] = (now(cpu) - t) / (double)calls;
    }
    qsort(ns, (size_t)rounds, sizeof *ns, by_value);
    printf("%.0f %.0f\n", ns[0], ns[rounds / 2]);
    free(ns);
    return 0;
}

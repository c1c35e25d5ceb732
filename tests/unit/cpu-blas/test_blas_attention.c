/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-blas: ATTENTION against float64, with memories of one, two and three tiles of queries, of no query and of no
 * row; which gradients are written, and which are left alone. */
#include "blas_fixture.h"

#include <seqlstm/ext/draft/attention.h>

enum { MEMORIES = 7, QUERIES = 190, ROWS = 96, LONGEST = 40, SPARE = 2 };

/* Memory 1 is empty, no query looks at memory 4, and the last two are not there. */
static const int32_t offsets[MEMORIES + SPARE + 1] = {0, 17, 17, 54, 55, 63, 90, ROWS, ROWS, ROWS};

/* Memory 2 has 75 queries, one after the other; memory 0 has 33, memory 5 has 40, the others few. */
static void fill_memory_of(int32_t *memory_of)
{
    static const int32_t many[] = {0, 5, 6, 5, 3, 0, -1, 5, 0, 1};
    for (int q = 0; q < QUERIES; q++)
        memory_of[q] = q >= 20 && q < 95 ? 2 : many[q % 10];
}

struct attention {
    struct seqlstm_attention_desc d;
    int32_t memory_of[QUERIES];
    float *queries, *keys, *values, *score, *dcontext;
    double *context, *weights, *dqueries, *dkeys, *dvalues, *dscore; /* what is right */
};

static void *zeros(int64_t count)
{
    void *x = calloc((size_t)count, sizeof(double));
    assert_non_null(x);
    return x;
}

static double score_of(const struct attention *t, const float *q, const float *k)
{
    double sum = 0.0;
    for (int64_t i = 0; i < t->d.key; i++)
        sum += t->score ? (double)t->score[i] * tanh((double)q[i] + (double)k[i])
                        : (double)t->d.scale * (double)q[i] * (double)k[i];
    return sum;
}

static void add_score_gradient(struct attention *t, int64_t query, int64_t row, double de)
{
    for (int64_t i = 0; i < t->d.key; i++) {
        const double q = (double)t->queries[query * t->d.key + i], k = (double)t->keys[row * t->d.key + i];
        const double y = tanh(q + k), slope = t->score ? (double)t->score[i] * (1.0 - y * y) : 0.0;
        t->dqueries[query * t->d.key + i] += de * (t->score ? slope : (double)t->d.scale * k);
        t->dkeys[row * t->d.key + i] += de * (t->score ? slope : (double)t->d.scale * q);
        if (t->score)
            t->dscore[i] += de * y;
    }
}

static void look(struct attention *t, int64_t q)
{
    const int32_t m = t->memory_of[q];
    const int64_t first = m < 0 ? 0 : offsets[m], length = m < 0 ? 0 : offsets[m + 1] - first, n = t->d.value;
    double *a = t->weights + q * t->d.head.max_steps, da[LONGEST], sum = 0.0, mean = 0.0;
    double *dvalues = t->values == t->keys ? t->dkeys : t->dvalues;
    for (int64_t j = 0; j < length; j++)
        sum += a[j] = exp(score_of(t, t->queries + q * t->d.key, t->keys + (first + j) * t->d.key));
    for (int64_t j = 0; j < length; j++) {
        a[j] /= sum;
        da[j] = 0.0;
        for (int64_t i = 0; i < n; i++) {
            t->context[q * n + i] += a[j] * (double)t->values[(first + j) * n + i];
            dvalues[(first + j) * n + i] += a[j] * (double)t->dcontext[q * n + i];
            da[j] += (double)t->dcontext[q * n + i] * (double)t->values[(first + j) * n + i];
        }
        mean += a[j] * da[j];
    }
    for (int64_t j = 0; j < length; j++)
        add_score_gradient(t, q, first + j, a[j] * (da[j] - mean));
}

static void attention_make(struct attention *t, bool additive, bool shared, int64_t key, int64_t value)
{
    memset(t, 0, sizeof *t);
    t->d = (struct seqlstm_attention_desc){
        .head = fixture_head(SEQLSTM_OP_ATTENTION, sizeof t->d, QUERIES),
        .key = key,
        .value = value,
        .kind = additive ? SEQLSTM_KIND_ATTENTION_ADDITIVE : SEQLSTM_KIND_ATTENTION_DOT,
        .options = SEQLSTM_BIT_ATTENTION_WEIGHTS | (shared ? SEQLSTM_BIT_ATTENTION_SHARED : 0u),
        .scale = additive ? 0.0f : 0.3f};
    t->d.head.max_sequences = MEMORIES + SPARE;
    t->d.head.max_steps = LONGEST;
    fill_memory_of(t->memory_of);
    t->queries = fixture_floats(QUERIES * key, 1);
    t->keys = fixture_floats(ROWS * key, 2);
    t->values = shared ? t->keys : fixture_floats(ROWS * value, 3);
    t->score = additive ? fixture_floats(key, 4) : NULL;
    t->dcontext = fixture_floats(QUERIES * value, 5);
    t->context = zeros(QUERIES * value), t->weights = zeros(QUERIES * LONGEST);
    t->dqueries = zeros(QUERIES * key), t->dkeys = zeros(ROWS * key);
    t->dvalues = zeros(ROWS * value), t->dscore = zeros(key);
    for (int64_t q = 0; q < QUERIES; q++)
        look(t, q);
}

static void attention_free(struct attention *t)
{
    if (t->values != t->keys)
        free(t->values);
    free(t->queries), free(t->keys), free(t->score), free(t->dcontext);
    free(t->context), free(t->weights), free(t->dqueries), free(t->dkeys), free(t->dvalues), free(t->dscore);
}

/* `absent`: a bit for each slot whose gradient is NULL, and one for that of the context. */
static void check(struct blas_fixture *f, struct sl_queue *queue, struct attention *t, uint32_t parts, uint32_t absent)
{
    enum { GRADS = 4 };
    static const uint64_t slots[GRADS] = {SEQLSTM_SLOT_ATTENTION_QUERIES, SEQLSTM_SLOT_ATTENTION_KEYS,
                                          SEQLSTM_SLOT_ATTENTION_VALUES, SEQLSTM_SLOT_ATTENTION_SCORE};
    const struct seqlstm_attention_desc *d = &t->d;
    const bool shared = t->values == t->keys, accumulate = parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE;
    const int64_t elems[GRADS] = {QUERIES * d->key, ROWS * d->key, shared ? 0 : ROWS * d->value, t->score ? d->key : 0};
    const double *const right[GRADS] = {t->dqueries, t->dkeys, t->dvalues, t->dscore};
    static const char *const names[GRADS] = {"dqueries", "dkeys", "dvalues", "dscore"};
    float *context = fixture_floats(QUERIES * d->value, 6), *weights = fixture_floats(QUERIES * LONGEST, 7);
    float *grads[GRADS], *before[GRADS];
    struct fixture_run run = {.desc = &d->head,
                              .rows = QUERIES,
                              .rows_in = ROWS,
                              .slots = {t->queries, t->keys, shared ? NULL : t->values, context},
                              .slot_count = SEQLSTM_SLOT_ATTENTION_COUNT,
                              .parts = parts};
    run.slots[SEQLSTM_SLOT_ATTENTION_OFFSETS] = (void *)(uintptr_t)offsets;
    run.slots[SEQLSTM_SLOT_ATTENTION_MEMORY_OF] = t->memory_of;
    run.slots[SEQLSTM_SLOT_ATTENTION_WEIGHTS] = d->options & SEQLSTM_BIT_ATTENTION_WEIGHTS ? weights : NULL;
    run.slots[SEQLSTM_SLOT_ATTENTION_SCORE] = t->score;
    run.grads[SEQLSTM_SLOT_ATTENTION_CONTEXT] = absent >> SEQLSTM_SLOT_ATTENTION_CONTEXT & 1u ? NULL : t->dcontext;
    for (int g = 0; g < GRADS; g++) {
        grads[g] = fixture_floats(elems[g] + 1, 8 + (uint64_t)g);
        before[g] = fixture_floats(elems[g] + 1, 8 + (uint64_t)g);
        run.grads[slots[g]] = elems[g] == 0 || absent >> slots[g] & 1u ? NULL : grads[g];
    }
    fixture_run(f, queue, &run);
    fixture_compare(context, t->context, QUERIES * d->value, 1e-5, "context");
    for (int64_t i = 0; i < QUERIES * LONGEST && d->options & SEQLSTM_BIT_ATTENTION_WEIGHTS; i++)
        fixture_close_to((double)weights[i], t->weights[i], i % LONGEST < 37 ? 1e-5 : 0.0, "weights", i);
    for (int g = 0; g < GRADS; g++) {
        const bool input = slots[g] != SEQLSTM_SLOT_ATTENTION_SCORE;
        const bool wanted =
            run.grads[slots[g]] && parts & (input ? SEQLSTM_BIT_BACKWARD_INPUTS : SEQLSTM_BIT_BACKWARD_WEIGHTS);
        for (int64_t i = 0; i < elems[g]; i++) {
            const double kept = wanted && (input || !accumulate) ? 0.0 : (double)before[g][i];
            const double more = wanted && run.grads[SEQLSTM_SLOT_ATTENTION_CONTEXT] ? right[g][i] : 0.0;
            fixture_close_to((double)grads[g][i], kept + more, more != 0.0 ? 3e-5 : 0.0, names[g], i);
        }
        free(grads[g]), free(before[g]);
    }
    free(context), free(weights);
}

enum { INPUTS = SEQLSTM_BIT_BACKWARD_INPUTS, WEIGHTS = SEQLSTM_BIT_BACKWARD_WEIGHTS };

static void every_score_has_the_values_of_float64(void **state)
{
    struct blas_fixture *f = *state;
    static const struct {
        bool additive, shared;
        int64_t key, value;
    } cases[] = {{false, false, 150, 147},
                 {false, true, 33, 33},
                 {true, false, 33, 65},
                 {true, true, 17, 17},
                 {false, false, 3, 5}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct attention t;
        attention_make(&t, cases[k].additive, cases[k].shared, cases[k].key, cases[k].value);
        check(f, &f->queue, &t, INPUTS | WEIGHTS, 0);
        check(f, &f->alone, &t, INPUTS | WEIGHTS | SEQLSTM_BIT_BACKWARD_ACCUMULATE, 0);
        t.d.head.mode = SEQLSTM_MODE_INFERENCE;
        check(f, &f->queue, &t, 0, 0);
        t.d.options &= ~(uint32_t)SEQLSTM_BIT_ATTENTION_WEIGHTS;
        check(f, &f->alone, &t, 0, 0);
        attention_free(&t);
    }
}

/* Every combination of parts with each gradient absent in turn: what is wanted is right, the rest stays as it was. */
static void only_what_is_wanted_is_written(void **state)
{
    struct blas_fixture *f = *state;
    static const uint32_t parts[] = {INPUTS, WEIGHTS, INPUTS | WEIGHTS,
                                     INPUTS | WEIGHTS | SEQLSTM_BIT_BACKWARD_ACCUMULATE};
    static const int absent[] = {SEQLSTM_SLOT_ATTENTION_QUERIES, SEQLSTM_SLOT_ATTENTION_KEYS,
                                 SEQLSTM_SLOT_ATTENTION_VALUES, SEQLSTM_SLOT_ATTENTION_SCORE,
                                 SEQLSTM_SLOT_ATTENTION_CONTEXT};
    for (int kind = 0; kind < 4; kind++) {
        struct attention t;
        attention_make(&t, kind & 1, kind & 2, 18, kind & 2 ? 18 : 7);
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
            for (size_t a = 0; a < sizeof absent / sizeof *absent; a++)
                check(f, &f->queue, &t, parts[p], 1u << absent[a]);
        attention_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_score_has_the_values_of_float64),
        cmocka_unit_test(only_what_is_wanted_is_written),
    };
    return FIXTURE_RUN(tests);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Initial values of parameters: a pure function of the run's seed, the parameter's name and its shape.
 *
 * Uniform numbers come from Philox with key = mix64(seed, hash of the name, 0), counter = (element, draw); normal ones
 * from two of them by Box and Muller. Orthogonal matrices are normal ones made orthonormal (orthonormal.h), in float64.
 * Gates, or elements, are distributed over the threads of the pool: the values do not depend on how many there are.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "base/value/hash.h"
#include "exec/params/orthonormal.h"
#include "exec/params/params.h"

/* [0, 1) */
static double draw_uniform(uint64_t key, uint64_t element, uint32_t draw)
{
    return seqlstm_uniform(key, element, draw, 0);
}

static double draw_normal(uint64_t key, uint64_t element, uint32_t draw)
{
    double u = 1.0 - seqlstm_uniform(key, element, 2 * draw, 1); /* (0, 1] */
    double v = seqlstm_uniform(key, element, 2 * draw + 1, 1);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925 * v);
}

/* Redrawn beyond two standard deviations. */
static double draw_truncated(uint64_t key, uint64_t element)
{
    for (uint32_t draw = 0; draw < 64; draw++) {
        double z = draw_normal(key, element, draw);
        if (fabs(z) <= 2.0)
            return z;
    }
    return 0.0;
}

/* Range or deviation of the fan rules. */
static double get_scale(const struct sl_param *param)
{
    double in = (double)param->fan_in, out = (double)param->fan_out;
    in = in > 0 ? in : 1;
    switch (param->initializer.kind) {
    case SL_INITIALIZER_GLOROT_UNIFORM:
        return sqrt(6.0 / (in + out));
    case SL_INITIALIZER_GLOROT_NORMAL:
        return sqrt(2.0 / (in + out));
    case SL_INITIALIZER_HE_UNIFORM:
        return sqrt(6.0 / in);
    case SL_INITIALIZER_HE_NORMAL:
        return sqrt(2.0 / in);
    case SL_INITIALIZER_LECUN_UNIFORM:
        return sqrt(3.0 / in);
    case SL_INITIALIZER_LECUN_NORMAL:
        return sqrt(1.0 / in);
    case SL_INITIALIZER_FAN_UNIFORM:
        return 1.0 / sqrt(param->fan_units > 0 ? (double)param->fan_units : 1.0);
    default:
        return 1.0;
    }
}

static double draw(const struct sl_param *param, uint64_t key, uint64_t element, double scale)
{
    /* Standard deviation of a standard normal truncated at two deviations: the fan rules divide by it. */
    static const double truncated_deviation = 0.87962566103423978;
    const struct sl_initializer *init = &param->initializer;
    switch (init->kind) {
    case SL_INITIALIZER_ONES:
        return 1.0;
    case SL_INITIALIZER_CONSTANT:
        return init->value;
    case SL_INITIALIZER_UNIFORM:
        return init->min + (init->max - init->min) * draw_uniform(key, element, 0);
    case SL_INITIALIZER_NORMAL:
        return init->mean + init->stddev * draw_normal(key, element, 0);
    case SL_INITIALIZER_TRUNCATED_NORMAL:
        return init->mean + init->stddev * draw_truncated(key, element);
    case SL_INITIALIZER_GLOROT_UNIFORM:
    case SL_INITIALIZER_HE_UNIFORM:
    case SL_INITIALIZER_LECUN_UNIFORM:
    case SL_INITIALIZER_FAN_UNIFORM:
        return scale * (2.0 * draw_uniform(key, element, 0) - 1.0);
    case SL_INITIALIZER_GLOROT_NORMAL:
    case SL_INITIALIZER_HE_NORMAL:
    case SL_INITIALIZER_LECUN_NORMAL:
        return scale / truncated_deviation * draw_truncated(key, element);
    default:
        return 0.0;
    }
}

/* One parameter being drawn. */
struct drawing {
    const struct sl_param *param;
    uint64_t key;
    float *values;
    atomic_bool no_memory;
};

/* A gate's block of rows x columns; whichever is fewer becomes orthonormal. False: no memory. */
static bool fill_orthogonal(const struct sl_param *param, uint64_t key, int64_t gate, float *values)
{
    int64_t rows = param->rows / param->gates, columns = param->columns;
    bool wide = columns >= rows;
    int64_t n = wide ? rows : columns, length = wide ? columns : rows;
    double *m = malloc((size_t)(n * length) * sizeof *m);
    if (m == NULL)
        return false;
    for (int64_t e = 0; e < n * length; e++)
        m[e] = draw_normal(key, (uint64_t)(gate * n * length + e), 0);
    bool ok = sl_orthonormalize(m, n, length);
    float *block = values + gate * rows * columns;
    for (int64_t r = 0; ok && r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            block[r * columns + c] = (float)(param->initializer.gain * (wide ? m[r * length + c] : m[c * length + r]));
    free(m);
    return ok;
}

static void fill_gates(void *context, int64_t begin, int64_t end)
{
    struct drawing *d = context;
    for (int64_t gate = begin; gate < end; gate++)
        if (!fill_orthogonal(d->param, d->key, gate, d->values))
            atomic_store(&d->no_memory, true);
}

static void fill_elements(void *context, int64_t begin, int64_t end)
{
    const struct drawing *d = context;
    double scale = get_scale(d->param);
    for (int64_t e = begin; e < end; e++)
        d->values[e] = (float)draw(d->param, d->key, (uint64_t)e, scale);
}

/* The least number of elements for a thread: about 0.1 ms. */
enum { GRAIN = 4096 };

seqlstm_status sl_params_init(struct sl_params *params, const struct sl_graph *graph, uint64_t seed,
                              struct sl_pool *pool, struct seqlstm_error *err)
{
    memset(params->values, 0, (size_t)params->elems * sizeof(float));
    for (int32_t p = 0; p < graph->param_count; p++) {
        const struct sl_param *param = &graph->params[p];
        const struct sl_param_view *view = &params->views[p];
        struct drawing d = {.param = param,
                            .key = seqlstm_mix64(seed, sl_hash_text(param->name), 0),
                            .values = params->values + view->offset_elems};
        bool orthogonal = param->initializer.kind == SL_INITIALIZER_ORTHOGONAL;
        sl_pool_range_fn *fill = orthogonal ? fill_gates : fill_elements;
        int64_t items = orthogonal ? param->gates : view->elems;
        if (pool)
            sl_pool_parallel_for(pool, items, orthogonal ? 1 : GRAIN, fill, &d);
        else
            fill(&d, 0, items);
        if (d.no_memory)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to draw `%s`", param->name);
        for (int64_t e = param->one_begin * param->columns; e < param->one_end * param->columns; e++)
            d.values[e] += 1.0f;
    }
    sl_params_touch(params);
    return SEQLSTM_OK;
}

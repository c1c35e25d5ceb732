/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of fake_cudnn.h: the equations that cudnnRNNMode_t documents, one sequence after another. */
#include "fake_cudnn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/half.h"

/* ---- one run ---------------------------------------------------------------------------------------------------- */

/* At the beginning of a reserve space. */
struct header {
    uint64_t magic;
    uint64_t form; /* of the network and its data */
    uint64_t x, hx, cx, y;
    uint64_t stage; /* 1: forward has run, 2: backward data too */
    uint64_t algorithm;
    double unwritten; /* 0, which some algorithms rely on and others do not write */
};

/* Matrices of one layer and direction, in doubles; those that are read are factors, as `factor` below says. */
struct layer {
    const double *w[4], *r[4], *bw[4], *br[4], *p;
    double *dw[4], *dr[4], *dbw[4], *dbr[4], *dp;
    int input;
};

struct job {
    struct fake_run *run;
    const struct cudnnRNNStruct *rnn;
    size_t rows;
    int gates, h, o; /* hidden, projection */
    size_t record;
    double *weights, *dweights; /* as many as fake_weight_elems */
    double *factors;            /* of weights */
    double *spare;              /* factors of one row */
    double *records;            /* [layers x directions, rows, record] */
    double *x, *dx, *between;   /* factors of the input of a layer, its gradient, gradient of its output */
    char *failure;
    size_t capacity;
};

static int fail(const struct job *j, const char *what)
{
    snprintf(j->failure, j->capacity, "cuDNN: %s", what);
    return 1;
}

static uint64_t hash(uint64_t h, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t k = 0; p != NULL && k < bytes; k++)
        h = (h ^ p[k]) * UINT64_C(0x100000001b3);
    return h;
}

/* A factor of a product as tensor cores read it: 16-bit values unchanged, float32 cut to TF32 or float16 if the math
 * type allows that. */
static double factor(const struct job *j, double value)
{
    const bool plain =
        j->rnn->type == CUDNN_DATA_DOUBLE || (j->rnn->type == CUDNN_DATA_FLOAT && j->rnn->math == CUDNN_FMA_MATH);
    if (plain)
        return value;
    if (j->rnn->type == CUDNN_DATA_FLOAT && j->rnn->math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION)
        return (double)gpu_bits_float(gpu_round_fraction(gpu_float_bits((float)value), 13));
    return fake_round(j->rnn->type == CUDNN_DATA_FLOAT ? CUDNN_DATA_HALF : j->rnn->type, value);
}

static const double *make_factors(const struct job *j, const double *values, size_t count, double *to)
{
    for (size_t k = 0; k < count; k++)
        to[k] = factor(j, values[k]);
    return to;
}

/* Stores values as the reserve space does: in 16 bits if the network has 16. */
static void keep(const struct job *j, double *values, int count)
{
    for (int k = 0; fake_element_bytes(j->rnn->type) == 2 && k < count; k++)
        values[k] = fake_round(j->rnn->type, values[k]);
}

static size_t row_of(const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *data, int b, int t)
{
    size_t row = 0;
    (void)rnn;
    if (data->layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED)
        return (size_t)t * (size_t)data->sequences + (size_t)b;
    for (int k = 0; k < data->sequences; k++)
        row += (size_t)(data->lengths[k] < t ? data->lengths[k] : t);
    return row + (size_t)b;
}

static double *get_record(const struct job *j, int pseudo, size_t row)
{
    return j->records + ((size_t)pseudo * j->rows + row) * j->record;
}

/* Parts of a record. */
static double *gates_of(double *record)
{
    return record;
}
static double *extra_of(const struct job *j, double *record)
{
    return record + j->gates * j->h;
}
static double *raw_of(const struct job *j, double *record)
{
    return extra_of(j, record) + j->h;
}
static double *out_of(const struct job *j, double *record)
{
    return raw_of(j, record) + j->h;
}
static double *dout_of(const struct job *j, double *record)
{
    return out_of(j, record) + j->o;
}

static struct layer get_layer(const struct job *j, int pseudo)
{
    struct layer l = {.input = fake_input_of(j->rnn, pseudo)};
    for (int g = 0; g < j->gates; g++) {
        const size_t w = fake_find_matrix(j->rnn, pseudo, g).at, r = fake_find_matrix(j->rnn, pseudo, j->gates + g).at;
        const size_t bw = fake_find_bias(j->rnn, pseudo, g).at, br = fake_find_bias(j->rnn, pseudo, j->gates + g).at;
        l.w[g] = j->factors + w;
        l.r[g] = j->factors + r;
        l.bw[g] = j->weights + bw;
        l.br[g] = j->weights + br;
        if (j->dweights != NULL) {
            l.dw[g] = j->dweights + w;
            l.dr[g] = j->dweights + r;
            l.dbw[g] = j->dweights + bw;
            l.dbr[g] = j->dweights + br;
        }
    }
    if (j->o < j->h) {
        const size_t p = fake_find_matrix(j->rnn, pseudo, 2 * j->gates).at;
        l.p = j->factors + p;
        l.dp = j->dweights != NULL ? j->dweights + p : NULL;
    }
    return l;
}

/* Of factors. */
static double dot(const double *matrix, int row, int columns, const double *x)
{
    double sum = 0;
    for (int k = 0; k < columns; k++)
        sum += matrix[(size_t)row * (size_t)columns + (size_t)k] * x[k];
    return sum;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double limit(const struct cudnnRNNStruct *rnn, double c)
{
    return rnn->clips ? fmin(fmax(c, rnn->low), rnn->high) : c;
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

static void step(const struct job *j, const struct layer *l, const double *x, const double *h, const double *c,
                 double *record)
{
    const int n = j->h;
    double *gate = gates_of(record), *extra = extra_of(j, record), *raw = raw_of(j, record), *out = out_of(j, record);
    const double *state = make_factors(j, h, (size_t)j->o, j->spare);
    for (int u = 0; u < n; u++) {
        double a[4] = {0}, b[4] = {0}; /* of the input, of the state */
        for (int g = 0; g < j->gates; g++) {
            a[g] = dot(l->w[g], u, l->input, x) + l->bw[g][u];
            b[g] = dot(l->r[g], u, j->o, state) + l->br[g][u];
        }
        if (j->rnn->mode == CUDNN_LSTM) { /* input, forget, new, output */
            const double i = sigmoid(a[0] + b[0]), f = sigmoid(a[1] + b[1]), g = tanh(a[2] + b[2]);
            const double o = sigmoid(a[3] + b[3]), all = f * c[u] + i * g;
            gate[u] = i, gate[n + u] = f, gate[2 * n + u] = g, gate[3 * n + u] = o;
            extra[u] = all;
            raw[u] = o * tanh(limit(j->rnn, all));
        } else if (j->rnn->mode == CUDNN_GRU) { /* reset, update, new */
            const double r = sigmoid(a[0] + b[0]), z = sigmoid(a[1] + b[1]), g = tanh(a[2] + r * b[2]);
            gate[u] = r, gate[n + u] = z, gate[2 * n + u] = g;
            extra[u] = b[2];
            raw[u] = (1 - z) * g + z * h[u];
        } else {
            const double s = a[0] + b[0];
            raw[u] = gate[u] = j->rnn->mode == CUDNN_RNN_RELU ? fmax(s, 0) : tanh(s);
        }
    }
    const double *projected = l->p != NULL ? make_factors(j, raw, (size_t)n, j->spare) : NULL;
    for (int u = 0; u < j->o; u++)
        out[u] = l->p != NULL ? dot(l->p, u, n, projected) : raw[u];
    keep(j, record, (int)j->record - j->o);
}

static void read_state(const struct job *j, const void *states, int pseudo, int b, int width, double *to)
{
    const size_t at = ((size_t)pseudo * (size_t)j->run->data.sequences + (size_t)b) * (size_t)width;
    for (int u = 0; u < width; u++)
        to[u] = states != NULL ? fake_load(j->rnn->type, states, at + (size_t)u) : 0;
}

static void write_state(const struct job *j, void *states, int pseudo, int b, int width, const double *from)
{
    const size_t at = ((size_t)pseudo * (size_t)j->run->data.sequences + (size_t)b) * (size_t)width;
    for (int u = 0; states != NULL && u < width; u++)
        fake_store(j->rnn->type, states, at + (size_t)u, from[u]);
}

/* Step number k of a sequence in the layer's direction. */
static int order(const struct job *j, int pseudo, int length, int k)
{
    return pseudo % j->rnn->directions == 1 ? length - 1 - k : k;
}

static void run_sequence(const struct job *j, const struct layer *l, int pseudo, int b, double *h, double *c)
{
    const int length = j->run->data.lengths[b];
    read_state(j, j->run->hx, pseudo, b, j->o, h);
    read_state(j, j->run->cx, pseudo, b, j->h, c);
    for (int k = 0; k < length; k++) {
        const size_t row = row_of(j->rnn, &j->run->data, b, order(j, pseudo, length, k));
        double *record = get_record(j, pseudo, row);
        step(j, l, j->x + row * (size_t)l->input, h, c, record);
        memcpy(h, out_of(j, record), (size_t)j->o * sizeof *h);
        for (int u = 0; u < j->h; u++)
            c[u] = limit(j->rnn, extra_of(j, record)[u]);
    }
    write_state(j, j->run->hy, pseudo, b, j->o, h);
    write_state(j, j->run->cy, pseudo, b, j->h, c);
}

/* Concatenates the outputs of both directions of a layer, as input of the next. */
static void join(const struct job *j, int layer, double *to)
{
    const int d = j->rnn->directions;
    for (size_t row = 0; row < j->rows; row++)
        for (int k = 0; k < d; k++)
            memcpy(to + (row * (size_t)d + (size_t)k) * (size_t)j->o, out_of(j, get_record(j, layer * d + k, row)),
                   (size_t)j->o * sizeof *to);
}

static void load_input(const struct job *j, int layer)
{
    const size_t count = j->rows * (size_t)fake_input_of(j->rnn, layer * j->rnn->directions);
    if (layer > 0)
        join(j, layer - 1, j->x);
    for (size_t k = 0; layer == 0 && k < count; k++)
        j->x[k] = fake_load(j->rnn->type, j->run->x, k);
    make_factors(j, j->x, count, j->x);
}

static int forward(const struct job *j, double *h, double *c)
{
    const int d = j->rnn->directions;
    const size_t width = (size_t)(d * j->o);
    for (int layer = 0; layer < j->rnn->layers; layer++) {
        load_input(j, layer);
        for (int pseudo = layer * d; pseudo < (layer + 1) * d; pseudo++) {
            const struct layer l = get_layer(j, pseudo);
            for (int b = 0; b < j->run->data.sequences; b++)
                run_sequence(j, &l, pseudo, b, h, c);
        }
    }
    join(j, j->rnn->layers - 1, j->x);
    for (size_t k = 0; k < j->rows * width; k++)
        fake_store(j->rnn->type, j->run->y, k, j->x[k]);
    return 0;
}

/* ---- backward data ---------------------------------------------------------------------------------------------- */

/* The gradients of one step: dout holds that of h. Writes those of the sums to the place of the gates, those behind the
 * reset gate to `extra`, and those of the states before to dh and dc. */
static void step_back(const struct job *j, const struct layer *l, double *record, const double *h, const double *c,
                      double *dh, double *dc, double *draw)
{
    const int n = j->h;
    double *gate = gates_of(record), *extra = extra_of(j, record);
    const double *dout = dout_of(j, record);
    const double *douts = l->p != NULL ? make_factors(j, dout, (size_t)j->o, j->spare) : NULL;
    for (int u = 0; u < n; u++) {
        draw[u] = l->p == NULL ? dout[u] : 0;
        for (int k = 0; l->p != NULL && k < j->o; k++)
            draw[u] += l->p[(size_t)k * (size_t)n + (size_t)u] * douts[k];
    }
    memset(dh, 0, (size_t)j->o * sizeof *dh);
    for (int u = 0; u < n; u++) {
        if (j->rnn->mode == CUDNN_LSTM) {
            const double i = gate[u], f = gate[n + u], g = gate[2 * n + u], o = gate[3 * n + u];
            const double t = tanh(limit(j->rnn, extra[u]));
            const bool inside = !j->rnn->clips || (extra[u] >= j->rnn->low && extra[u] <= j->rnn->high);
            const double dall = inside ? dc[u] + draw[u] * o * (1 - t * t) : 0;
            gate[u] = dall * g * i * (1 - i);
            gate[n + u] = dall * c[u] * f * (1 - f);
            gate[2 * n + u] = dall * i * (1 - g * g);
            gate[3 * n + u] = draw[u] * t * o * (1 - o);
            dc[u] = dall * f;
        } else if (j->rnn->mode == CUDNN_GRU) {
            const double r = gate[u], z = gate[n + u], g = gate[2 * n + u];
            const double dg = draw[u] * (1 - z) * (1 - g * g);
            gate[u] = dg * extra[u] * r * (1 - r);
            gate[n + u] = draw[u] * (h[u] - g) * z * (1 - z);
            gate[2 * n + u] = dg;
            extra[u] = dg * r;
            dh[u] += draw[u] * z;
        } else {
            const double y = gate[u];
            gate[u] = draw[u] * (j->rnn->mode == CUDNN_RNN_RELU ? (y > 0 ? 1 : 0) : 1 - y * y);
        }
    }
    keep(j, gate, j->gates * n);
    for (int g = 0; g < j->gates; g++) {
        const double *dsum = j->rnn->mode == CUDNN_GRU && g == 2 ? extra : gate + g * n;
        for (int u = 0; u < n; u++) {
            const double left = factor(j, dsum[u]);
            for (int k = 0; k < j->o; k++)
                dh[k] += left * l->r[g][(size_t)u * (size_t)j->o + (size_t)k];
        }
    }
}

/* The states before step number k of a sequence. */
static void states_before(const struct job *j, int pseudo, int b, int k, double *h, double *c)
{
    const int length = j->run->data.lengths[b];
    if (k == 0) {
        read_state(j, j->run->hx, pseudo, b, j->o, h);
        read_state(j, j->run->cx, pseudo, b, j->h, c);
        return;
    }
    double *record = get_record(j, pseudo, row_of(j->rnn, &j->run->data, b, order(j, pseudo, length, k - 1)));
    memcpy(h, out_of(j, record), (size_t)j->o * sizeof *h);
    for (int u = 0; u < j->h; u++)
        c[u] = limit(j->rnn, extra_of(j, record)[u]);
}

static void run_sequence_back(const struct job *j, const struct layer *l, int pseudo, int b, double *scratch)
{
    const int length = j->run->data.lengths[b], d = j->rnn->directions, most = j->h > j->o ? j->h : j->o;
    double *h = scratch, *c = h + most, *dh = c + most, *dc = dh + most, *draw = dc + most;
    read_state(j, j->run->dhy, pseudo, b, j->o, dh);
    read_state(j, j->run->dcy, pseudo, b, j->h, dc);
    for (int k = length - 1; k >= 0; k--) {
        const size_t row = row_of(j->rnn, &j->run->data, b, order(j, pseudo, length, k));
        double *record = get_record(j, pseudo, row), *dout = dout_of(j, record);
        for (int u = 0; u < j->o; u++)
            dout[u] = dh[u] + j->between[(row * (size_t)d + (size_t)(pseudo % d)) * (size_t)j->o + (size_t)u];
        states_before(j, pseudo, b, k, h, c);
        step_back(j, l, record, h, c, dh, dc, draw);
        for (int g = 0; g < j->gates; g++)
            for (int u = 0; u < j->h; u++) {
                const double left = factor(j, record[g * j->h + u]);
                for (int i = 0; i < l->input; i++)
                    j->dx[row * (size_t)l->input + (size_t)i] +=
                        left * l->w[g][(size_t)u * (size_t)l->input + (size_t)i];
            }
    }
    write_state(j, j->run->dhx, pseudo, b, j->o, dh);
    write_state(j, j->run->dcx, pseudo, b, j->h, dc);
}

static int backward_data(const struct job *j, double *scratch)
{
    const int d = j->rnn->directions;
    for (size_t k = 0; k < j->rows * (size_t)(d * j->o); k++)
        j->between[k] = fake_load(j->rnn->type, j->run->dy, k);
    for (int layer = j->rnn->layers - 1; layer >= 0; layer--) {
        const size_t width = (size_t)fake_input_of(j->rnn, layer * d);
        memset(j->dx, 0, j->rows * width * sizeof *j->dx);
        for (int pseudo = layer * d; pseudo < (layer + 1) * d; pseudo++) {
            const struct layer l = get_layer(j, pseudo);
            for (int b = 0; b < j->run->data.sequences; b++)
                run_sequence_back(j, &l, pseudo, b, scratch);
        }
        if (layer > 0)
            memcpy(j->between, j->dx, j->rows * width * sizeof *j->dx);
    }
    for (size_t k = 0; k < j->rows * (size_t)j->rnn->input; k++)
        fake_store(j->rnn->type, j->run->dx, k, j->dx[k]);
    return 0;
}

/* ---- backward weights ------------------------------------------------------------------------------------------- */

static void add_step(const struct job *j, const struct layer *l, double *record, const double *x, const double *h)
{
    const double *raw = raw_of(j, record), *dout = dout_of(j, record);
    const double *state = make_factors(j, h, (size_t)j->o, j->spare);
    for (int g = 0; g < j->gates; g++)
        for (int u = 0; u < j->h; u++) {
            const double dsum = record[g * j->h + u];
            const double dstate = j->rnn->mode == CUDNN_GRU && g == 2 ? extra_of(j, record)[u] : dsum;
            l->dbw[g][u] += dsum;
            l->dbr[g][u] += dstate;
            const double of_input = factor(j, dsum), of_state = factor(j, dstate);
            for (int k = 0; k < l->input; k++)
                l->dw[g][(size_t)u * (size_t)l->input + (size_t)k] += of_input * x[k];
            for (int k = 0; k < j->o; k++)
                l->dr[g][(size_t)u * (size_t)j->o + (size_t)k] += of_state * state[k];
        }
    const double *raws = l->dp != NULL ? make_factors(j, raw, (size_t)j->h, j->spare) : NULL;
    for (int u = 0; l->dp != NULL && u < j->o; u++) {
        const double left = factor(j, dout[u]);
        for (int k = 0; k < j->h; k++)
            l->dp[(size_t)u * (size_t)j->h + (size_t)k] += left * raws[k];
    }
}

static int backward_weights(const struct job *j, double *h, double *c)
{
    const int d = j->rnn->directions;
    for (int layer = 0; layer < j->rnn->layers; layer++) {
        load_input(j, layer);
        for (int pseudo = layer * d; pseudo < (layer + 1) * d; pseudo++) {
            const struct layer l = get_layer(j, pseudo);
            for (int b = 0; b < j->run->data.sequences; b++)
                for (int k = 0; k < j->run->data.lengths[b]; k++) {
                    const size_t row = row_of(j->rnn, &j->run->data, b, order(j, pseudo, j->run->data.lengths[b], k));
                    states_before(j, pseudo, b, k, h, c);
                    add_step(j, &l, get_record(j, pseudo, row), j->x + row * (size_t)l.input, h);
                }
        }
    }
    const size_t weights = fake_weight_elems(j->rnn);
    for (size_t k = 0; k < weights; k++)
        fake_store(j->rnn->type, j->run->dweights, k, fake_load(j->rnn->type, j->run->dweights, k) + j->dweights[k]);
    return 0;
}

/* ---- the rules that only data can break ------------------------------------------------------------------------- */

/* Everything that is not part of a matrix or bias must be 0. */
static bool gaps_are_zero(const struct job *j)
{
    const size_t all = fake_weight_elems(j->rnn);
    unsigned char *used = calloc(all, 1);
    bool fine = used != NULL;
    for (int pseudo = 0; fine && pseudo < j->rnn->layers * j->rnn->directions; pseudo++)
        for (int id = 0; id < fake_matrices(j->rnn); id++) {
            const struct fake_place m = fake_find_matrix(j->rnn, pseudo, id), b = fake_find_bias(j->rnn, pseudo, id);
            memset(used + m.at, 1, (size_t)m.rows * (size_t)m.columns);
            memset(used + b.at, 1, b.rows > 0 ? (size_t)b.rows : 0);
        }
    for (size_t k = 0; fine && k < all; k++)
        fine = used[k] || j->weights[k] == 0;
    free(used);
    return fine;
}

static uint64_t hash_form(const struct job *j)
{
    const struct cudnnRNNStruct *r = j->rnn;
    const struct cudnnRNNDataStruct *d = &j->run->data;
    const int form[] = {fake_shares_size(d) ? -1 : (int)r->algorithm,
                        (int)r->mode,
                        r->directions,
                        r->input,
                        r->hidden,
                        r->projection,
                        r->layers,
                        (int)d->layout,
                        d->steps,
                        d->sequences};
    return hash(hash(1, form, sizeof form), d->lengths, (size_t)d->sequences * sizeof *d->lengths);
}

/* Are the buffers the same as in forward? Fills or compares the header. */
static int check_header(const struct job *j, struct header *header)
{
    const struct fake_run *r = j->run;
    const size_t element = fake_element_bytes(j->rnn->type);
    const size_t states = (size_t)(j->rnn->layers * j->rnn->directions * r->data.sequences) * element;
    const uint64_t x = hash(2, r->x, j->rows * (size_t)j->rnn->input * element);
    const uint64_t hx = hash(3, r->hx, states * (size_t)j->o), cx = hash(4, r->cx, states * (size_t)j->h);
    const uint64_t y = hash(5, r->y_in, j->rows * (size_t)(j->rnn->directions * j->o) * element);
    const uint64_t magic = UINT64_C(0x6375444e4e2d3937);
    if (r->pass == FAKE_FORWARD) {
        const double kept = fake_leaves_unwritten(j->rnn) ? header->unwritten : 0;
        *header = (struct header){magic, hash_form(j), x, hx, cx, 0, 0, (uint64_t)j->rnn->algorithm, kept};
        return 0;
    }
    if (header->magic != magic || header->form != hash_form(j))
        return fail(j, "the reserve space is of no forward of this network in training");
    if (header->stage != (r->pass == FAKE_DATA ? 1u : 2u))
        return fail(j, r->pass == FAKE_DATA ? "backward data without forward" : "backward weights without data");
    if (header->hx != hx || header->y != y || (r->pass == FAKE_DATA && header->cx != cx) ||
        (r->pass == FAKE_WEIGHTS && header->x != x))
        return fail(j, "x, y, hx or cx have changed since forward");
    if (r->pass == FAKE_DATA && header->algorithm != (uint64_t)j->rnn->algorithm && !fake_shares_content(&r->data))
        fake_scramble(j->records, (size_t)(j->rnn->layers * j->rnn->directions) * j->rows, j->record,
                      (size_t)(j->gates * j->h));
    if (r->pass == FAKE_DATA && header->algorithm != (uint64_t)j->rnn->algorithm && fake_forgets_final_c())
        j->run->dcy = NULL;
    if (r->pass == FAKE_DATA)
        j->records[0] += header->unwritten;
    if (r->pass == FAKE_WEIGHTS && header->algorithm != (uint64_t)j->rnn->algorithm)
        fake_spoil_biases(j->rnn, j->dweights);
    return 0;
}

static int prepare(struct job *j)
{
    const struct fake_run *r = j->run;
    const size_t weights = fake_weight_elems(j->rnn), pseudos = (size_t)(j->rnn->layers * j->rnn->directions);
    const int widest = j->rnn->input > j->rnn->directions * j->o ? j->rnn->input : j->rnn->directions * j->o;
    j->weights = calloc(weights, sizeof *j->weights);
    j->dweights = calloc(weights, sizeof *j->dweights);
    j->factors = calloc(weights, sizeof *j->factors);
    j->spare = calloc((size_t)(j->h > j->o ? j->h : j->o), sizeof *j->spare);
    j->x = calloc(j->rows * (size_t)widest, sizeof *j->x);
    j->dx = calloc(j->rows * (size_t)widest, sizeof *j->dx);
    j->between = calloc(j->rows * (size_t)widest, sizeof *j->between);
    j->records = r->training ? (double *)(void *)((unsigned char *)r->reserve + FAKE_HEADER_BYTES)
                             : calloc(pseudos * j->rows * j->record, sizeof *j->records);
    if (!j->weights || !j->dweights || !j->factors || !j->spare || !j->x || !j->dx || !j->between || !j->records)
        return fail(j, "no memory");
    for (size_t k = 0; r->weights != NULL && k < weights; k++)
        j->weights[k] = fake_load(j->rnn->type, r->weights, k);
    make_factors(j, j->weights, weights, j->factors);
    return gaps_are_zero(j) ? 0 : fail(j, "the weight space is not zero between its matrices");
}

static int compute(struct job *j)
{
    struct fake_run *r = j->run;
    struct header *header = r->training ? r->reserve : NULL;
    const size_t most = (size_t)(j->h > j->o ? j->h : j->o);
    double *scratch = calloc(5 * most, sizeof *scratch);
    int failed = scratch == NULL || prepare(j) != 0 || (header != NULL && check_header(j, header) != 0);
    memset(r->work, 0xFF, r->work_bytes); /* the caller's data does not survive there */
    if (!failed && r->pass == FAKE_FORWARD)
        failed = forward(j, scratch, scratch + most);
    else if (!failed && r->pass == FAKE_DATA)
        failed = backward_data(j, scratch);
    else if (!failed)
        failed = backward_weights(j, scratch, scratch + most);
    if (!failed && header != NULL && r->pass == FAKE_FORWARD)
        header->y = hash(5, r->y, j->rows * (size_t)(j->rnn->directions * j->o) * fake_element_bytes(j->rnn->type));
    if (!failed && header != NULL && r->pass != FAKE_WEIGHTS)
        header->stage = r->pass == FAKE_FORWARD ? 1 : 2;
    free(scratch);
    return failed;
}

int fake_run_work(void *context, char *failure, size_t capacity)
{
    struct fake_run *r = context;
    struct job j = {.run = r,
                    .rnn = &r->rnn,
                    .rows = fake_rows(&r->data),
                    .gates = fake_gates(&r->rnn),
                    .h = r->rnn.hidden,
                    .o = r->rnn.projection,
                    .record = fake_record_elems(&r->rnn),
                    .failure = failure,
                    .capacity = capacity};
    const int failed = compute(&j);
    free(j.weights);
    free(j.dweights);
    free(j.factors);
    free(j.spare);
    free(j.x);
    free(j.dx);
    free(j.between);
    if (!r->training)
        free(j.records);
    return failed;
}

void fake_run_release(void *context)
{
    struct fake_run *r = context;
    free(r->data.lengths);
    free(r);
}

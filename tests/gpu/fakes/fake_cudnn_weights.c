/* SPDX-License-Identifier: Apache-2.0 */
/* The weight space of fake_cudnn.h.
 *
 * The order of the weight space: layers and directions from the last to the first; for each of them the biases from the
 * last to the first, then the matrices from the last to the first. A gap follows each of them. The dynamic algorithm
 * has one more gap at the beginning. */
#include "fake_cudnn.h"

enum { GAP = 16 /* elements */ };

int fake_gates(const struct cudnnRNNStruct *rnn)
{
    return rnn->mode == CUDNN_LSTM ? 4 : (rnn->mode == CUDNN_GRU ? 3 : 1);
}

int fake_matrices(const struct cudnnRNNStruct *rnn)
{
    return 2 * fake_gates(rnn) + (rnn->projection < rnn->hidden ? 1 : 0);
}

int fake_input_of(const struct cudnnRNNStruct *rnn, int pseudo)
{
    return pseudo / rnn->directions == 0 ? rnn->input : rnn->projection * rnn->directions;
}

/* Rows and columns of matrix number `id`; the bias of a gate is one column with as many rows. */
static struct fake_place get_size(const struct cudnnRNNStruct *rnn, int pseudo, int id, bool bias)
{
    const int gates = fake_gates(rnn);
    struct fake_place p = {0, 0, 0};
    if (id >= fake_matrices(rnn) || (bias && id >= 2 * gates))
        return p;
    p.rows = id == 2 * gates ? rnn->projection : rnn->hidden;
    p.columns = bias ? 1 : (id < gates ? fake_input_of(rnn, pseudo) : (id < 2 * gates ? rnn->projection : rnn->hidden));
    return p;
}

/* The position of (pseudo, id); with pseudo -1 the number of all elements. */
static struct fake_place find(const struct cudnnRNNStruct *rnn, int pseudo, int id, bool bias)
{
    size_t at = rnn->algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC ? GAP : 0;
    for (int l = rnn->layers * rnn->directions - 1; l >= 0; l--)
        for (int kind = 1; kind >= 0; kind--) /* biases first */
            for (int k = fake_matrices(rnn) - 1; k >= 0; k--) {
                struct fake_place p = get_size(rnn, l, k, kind == 1);
                p.at = at;
                if (l == pseudo && k == id && bias == (kind == 1))
                    return p;
                if (p.rows > 0)
                    at += ((size_t)p.rows * (size_t)p.columns + GAP - 1) / GAP * GAP + GAP;
            }
    return (struct fake_place){at, 0, 0};
}

struct fake_place fake_find_matrix(const struct cudnnRNNStruct *rnn, int pseudo, int id)
{
    return find(rnn, pseudo, id, false);
}

struct fake_place fake_find_bias(const struct cudnnRNNStruct *rnn, int pseudo, int id)
{
    return find(rnn, pseudo, id, true);
}

size_t fake_weight_elems(const struct cudnnRNNStruct *rnn)
{
    return find(rnn, -1, 0, false).at;
}

size_t fake_record_elems(const struct cudnnRNNStruct *rnn)
{
    return (size_t)(fake_gates(rnn) * rnn->hidden + 2 * rnn->hidden + 2 * rnn->projection);
}

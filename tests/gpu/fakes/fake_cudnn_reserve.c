/* SPDX-License-Identifier: Apache-2.0 */
/* How one algorithm reads the reserve space of another (fake_cudnn.h: FAKE_CUDNN_RESERVE). */
#include "fake_cudnn.h"

#include <stdlib.h>
#include <string.h>

static bool is_told(const char *how)
{
    const char *told = getenv("FAKE_CUDNN_RESERVE");
    return told != NULL && strcmp(told, how) == 0;
}

bool fake_shares_size(const struct cudnnRNNDataStruct *data)
{
    return is_told("shared") || is_told("scrambled") || is_told("fickle") || is_told("biased") ||
           is_told("forgetful") || is_told("sparse") || (is_told("uneven") && data->steps <= 4);
}

bool fake_shares_content(const struct cudnnRNNDataStruct *data)
{
    return fake_shares_size(data) && !is_told("scrambled") && !(is_told("fickle") && data->sequences != 4);
}

bool fake_leaves_unwritten(const struct cudnnRNNStruct *rnn)
{
    return is_told("sparse") && rnn->algorithm != CUDNN_RNN_ALGO_STANDARD;
}

bool fake_forgets_final_c(void)
{
    return is_told("forgetful");
}

void fake_spoil_biases(const struct cudnnRNNStruct *rnn, double *dweights)
{
    for (int id = 0; is_told("biased") && id < fake_matrices(rnn); id++) {
        const struct fake_place b = fake_find_bias(rnn, rnn->layers * rnn->directions - 1, id);
        for (int k = 0; k < b.rows; k++)
            dweights[b.at + (size_t)k] += 1;
    }
}

void fake_scramble(double *records, size_t count, size_t record, size_t gates)
{
    for (size_t k = 0; k < count; k++) {
        double *first = records + k * record;
        const double kept = first[0];
        memmove(first, first + 1, (gates - 1) * sizeof *first);
        first[gates - 1] = kept;
    }
}

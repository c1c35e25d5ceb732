/* SPDX-License-Identifier: Apache-2.0 */
/* A cuDNN without a GPU: the recurrent networks of version 9 as NVIDIA documents them, on the emulated device, in
 * float64 inside.
 *
 * Written from the documentation of the functions, not from the plugin: what the documentation calls an error is one
 * here, and where it leaves something open the answer is the least convenient: weight spaces have an order and
 * gaps of their own that must be zero, sizes of buffers do not grow evenly, work and reserve spaces are
 * overwritten, reserve spaces know what was done with them. A rule broken by data on the device fails the stream.
 *
 *   FAKE_CUDNN_VERSION=N     what cudnnGetVersion says
 *   FAKE_CUDNN_BROKEN=1      cudnnCreate fails, as with a driver that is too old
 *   FAKE_CUDNN_REFUSE=A:F:B  algorithm A refuses function F (forward, data, weights) at B sequences
 *   FAKE_CUDNN_RESERVE=HOW   what an algorithm makes of another's reserve space, which otherwise has another size:
 *                            shared     what the other does
 *                            scrambled  it is as large, and the gates in it are in another order
 *                            uneven     shared up to four steps, and of another size beyond
 *                            fickle     shared at four sequences, and scrambled at other numbers
 */
#ifndef SEQLSTM_TESTS_GPU_FAKE_CUDNN_H
#define SEQLSTM_TESTS_GPU_FAKE_CUDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cudnn.h>

struct cudnnContext {
    void *stream;
};

struct cudnnTensorStruct {
    bool set;
    cudnnDataType_t type;
    int count, dims[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX];
};

struct cudnnRNNStruct {
    bool set;
    cudnnRNNAlgo_t algorithm;
    cudnnRNNMode_t mode;
    cudnnRNNBiasMode_t bias;
    int directions;
    cudnnDataType_t type, precision;
    cudnnMathType_t math;
    int input, hidden, projection, layers;
    bool padded;
    bool clips;
    double low, high;
    int built_for; /* PERSIST_DYNAMIC: sequences */
};

struct cudnnRNNDataStruct {
    bool set;
    cudnnDataType_t type;
    cudnnRNNDataLayout_t layout;
    int steps, sequences, width;
    int *lengths;
};

/* A matrix or bias of the weight space, in elements; rows 0: there is none. */
struct fake_place {
    size_t at;
    int rows, columns;
};
int fake_gates(const struct cudnnRNNStruct *rnn);
int fake_matrices(const struct cudnnRNNStruct *rnn); /* numbers of a layer: gates twice, a projection */
struct fake_place fake_find_matrix(const struct cudnnRNNStruct *rnn, int pseudo, int id);
struct fake_place fake_find_bias(const struct cudnnRNNStruct *rnn, int pseudo, int id);
size_t fake_weight_elems(const struct cudnnRNNStruct *rnn);

/* fake_cudnn_type.c: elements of a type, and a value as it is when it was stored and loaded. */
size_t fake_element_bytes(cudnnDataType_t type);
double fake_load(cudnnDataType_t type, const void *from, size_t at);
void fake_store(cudnnDataType_t type, void *to, size_t at, double value);
double fake_round(cudnnDataType_t type, double value);

/* What a reserve space holds for a row of a layer and direction, in doubles: gates, c before its limits (LSTM) or the
 * product behind the reset gate (GRU), h before the projection, h, gradient of h. */
size_t fake_record_elems(const struct cudnnRNNStruct *rnn);
size_t fake_rows(const struct cudnnRNNDataStruct *data);
enum { FAKE_HEADER_BYTES = 256 };

/* fake_cudnn_reserve.c */
bool fake_shares_size(const struct cudnnRNNDataStruct *data);
bool fake_shares_content(const struct cudnnRNNDataStruct *data);
void fake_scramble(double *records, size_t count, size_t record, size_t gates);

enum fake_pass { FAKE_FORWARD, FAKE_DATA, FAKE_WEIGHTS };

/* One call, as queued: descriptors by value. */
struct fake_run {
    enum fake_pass pass;
    bool training;
    struct cudnnRNNStruct rnn;
    struct cudnnRNNDataStruct data; /* of x; lengths are the run's own */
    const void *x, *hx, *cx, *weights, *y_in, *dy, *dhy, *dcy;
    void *y, *hy, *cy, *dx, *dhx, *dcx, *dweights, *work, *reserve;
    size_t work_bytes, reserve_bytes;
};

/* fake_cudnn_run.c: emulated_work_fn. */
int fake_run_work(void *context, char *failure, size_t capacity);
void fake_run_release(void *context);

#endif

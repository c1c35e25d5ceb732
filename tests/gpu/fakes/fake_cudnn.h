/* SPDX-License-Identifier: Apache-2.0 */
/* A fake cuDNN that needs no GPU: the recurrent networks of version 9 as NVIDIA documents them, on the emulated device,
 * computed in float64.
 *
 * It is written from the documentation of the functions, not from the plugin. What the documentation calls an error is
 * an error here. Where it leaves something open, the fake does the least convenient thing: weight spaces have an order
 * of their own, and gaps which must be zero; sizes of buffers do not grow evenly; work and reserve spaces are
 * overwritten; reserve spaces record what was done with them. If data on the device breaks a rule, the stream fails.
 *
 *   FAKE_CUDNN_VERSION=N     what cudnnGetVersion returns
 *   FAKE_CUDNN_BROKEN=1      cudnnCreate fails, as with a driver that is too old
 *   FAKE_CUDNN_REFUSE=A:F:B  algorithm A refuses function F (sizes, forward, data, weights) at B sequences
 *   FAKE_CUDNN_BUILDS=FILE   cudnnBuildRNNDynamic appends a line: input, layers, sequences
 *   FAKE_CUDNN_RESERVE=HOW   how an algorithm reads another one's reserve space, which otherwise has another size:
 *                            shared     same size, same contents
 *                            scrambled  same size, but the gates in it have another order
 *                            biased     shared, but the biases of the last layer get other gradients
 *                            uneven     shared up to four steps; another size for more
 *                            fickle     shared at four sequences; scrambled at other numbers
 *                            forgetful  shared, but without the gradient of the final c
 *                            sparse     shared, but the standard one reads what the others leave unwritten
 *
 * Tests find three more functions with dlsym: fake_cudnn_fail_at(n), after which the n-th call that returns a status
 * fails, and that one alone; fake_cudnn_disarm(), which stops that and says whether one has failed since; and
 * fake_cudnn_count_alive(), handles and descriptors that are not destroyed. */
#ifndef SEQLSTM_TESTS_GPU_FAKE_CUDNN_H
#define SEQLSTM_TESTS_GPU_FAKE_CUDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cudnn.h>

struct cudnnContext {
    int device; /* which was current */
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

/* fake_cudnn_weights.c: a matrix or bias of the weight space, in elements; rows is 0 if it does not exist. */
struct fake_place {
    size_t at;
    int rows, columns;
};
int fake_gates(const struct cudnnRNNStruct *rnn);
int fake_matrices(const struct cudnnRNNStruct *rnn); /* how many a layer has: its gates twice, and a projection */
int fake_input_of(const struct cudnnRNNStruct *rnn, int pseudo); /* input width of the layer */
struct fake_place fake_find_matrix(const struct cudnnRNNStruct *rnn, int pseudo, int id);
struct fake_place fake_find_bias(const struct cudnnRNNStruct *rnn, int pseudo, int id);
size_t fake_weight_elems(const struct cudnnRNNStruct *rnn);

/* fake_cudnn_type.c: the size of an element of a type, and a value after storing and loading it. */
size_t fake_element_bytes(cudnnDataType_t type);
double fake_load(cudnnDataType_t type, const void *from, size_t at);
void fake_store(cudnnDataType_t type, void *to, size_t at, double value);
double fake_round(cudnnDataType_t type, double value);

/* Doubles in a reserve space for each row of a layer and direction: gates, c before its limits (LSTM) or the product
 * behind the reset gate (GRU), h before the projection, h, gradient of h. */
size_t fake_record_elems(const struct cudnnRNNStruct *rnn);
size_t fake_rows(const struct cudnnRNNDataStruct *data);
enum { FAKE_HEADER_BYTES = 256 };

/* fake_cudnn_fail.c */
bool fake_fails_in_turn(void);

/* For tests, as the head of this file says. */
void fake_cudnn_fail_at(int n);
int fake_cudnn_disarm(void);
int fake_cudnn_count_alive(void);

/* fake_cudnn_reserve.c */
bool fake_shares_size(const struct cudnnRNNDataStruct *data);
bool fake_shares_content(const struct cudnnRNNDataStruct *data);
bool fake_leaves_unwritten(const struct cudnnRNNStruct *rnn);
bool fake_forgets_final_c(void);
void fake_spoil_biases(const struct cudnnRNNStruct *rnn, double *dweights);
void fake_scramble(double *records, size_t count, size_t record, size_t gates);

enum fake_pass { FAKE_FORWARD, FAKE_DATA, FAKE_WEIGHTS, FAKE_SIZES };

/* A queued call: descriptors by value. */
struct fake_run {
    enum fake_pass pass;
    bool training;
    struct cudnnRNNStruct rnn;
    struct cudnnRNNDataStruct data; /* of x; the run owns its lengths */
    const void *x, *hx, *cx, *weights, *y_in, *dy, *dhy, *dcy;
    void *y, *hy, *cy, *dx, *dhx, *dcx, *dweights, *work, *reserve;
    size_t work_bytes, reserve_bytes;
};

/* fake_cudnn_run.c: emulated_work_fn. */
int fake_run_work(void *context, char *failure, size_t capacity);
void fake_run_release(void *context);

#endif

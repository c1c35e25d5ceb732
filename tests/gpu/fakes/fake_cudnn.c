/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of fake_cudnn.h: descriptors, sizes, and the documented checks of arguments. */
#include "fake_cudnn.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/status.h>

#include "emulated_device.h"

#define API __attribute__((visibility("default")))

static _Thread_local char last_error[256];

static SEQLSTM_PRINTF(2, 3) cudnnStatus_t say(cudnnStatus_t status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return status;
}

#define NEED(condition, ...)                                                                                           \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return say(CUDNN_STATUS_BAD_PARAM, __VA_ARGS__);                                                           \
    } while (0)
#define CAN(condition, ...)                                                                                            \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return say(CUDNN_STATUS_NOT_SUPPORTED, __VA_ARGS__);                                                       \
    } while (0)
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const cudnnStatus_t status_ = (call);                                                                          \
        if (status_ != CUDNN_STATUS_SUCCESS)                                                                           \
            return status_;                                                                                            \
    } while (0)

#define MAY_FAIL()                                                                                                     \
    do {                                                                                                               \
        if (fake_fails_in_turn())                                                                                      \
            return say(CUDNN_STATUS_EXECUTION_FAILED, "told to fail");                                                 \
    } while (0)

/* ---- the library and its handle --------------------------------------------------------------------------------- */

API size_t cudnnGetVersion(void)
{
    const char *version = getenv("FAKE_CUDNN_VERSION");
    return version != NULL ? strtoul(version, NULL, 10) : CUDNN_VERSION;
}

API const char *cudnnGetErrorString(cudnnStatus_t status)
{
    switch (CUDNN_STATUS_CATEGORY((int)status)) {
    case CUDNN_STATUS_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
        return "CUDNN_STATUS_INTERNAL_ERROR";
    }
}

API void cudnnGetLastErrorString(char *message, size_t max_size)
{
    snprintf(message, max_size, "%s", last_error);
    last_error[0] = '\0';
}

/* What lives: a plugin that closes its last handle must have closed all descriptors. */
static _Atomic int handles, descriptors;

API int fake_cudnn_count_alive(void)
{
    return handles + descriptors;
}

API cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    MAY_FAIL();
    if (getenv("FAKE_CUDNN_BROKEN") != NULL)
        return say(CUDNN_STATUS_NOT_INITIALIZED, "broken on purpose");
    if (emulated_spoil("cudnnCreate")) /* it allocates */
        return say(CUDNN_STATUS_INTERNAL_ERROR, "a handle cannot be made while a stream is captured");
    *handle = calloc(1, sizeof **handle);
    handles += *handle != NULL;
    if (*handle != NULL)
        (*handle)->device = emulated_get_device(NULL);
    return *handle != NULL ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    if (--handles == 0 && descriptors != 0) {
        fprintf(stderr, "fake cuDNN: the last handle is closed, but %d descriptors are not\n", (int)descriptors);
        abort();
    }
    return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    if (stream != NULL) /* otherwise the caller does not look */
        MAY_FAIL();
    NEED(handle != NULL && (stream == NULL || emulated_get_device(stream) == handle->device),
         "no handle, or one of another device");
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors ------------------------------------------------------------------------------------------------ */

#define DESCRIPTOR(name, type)                                                                                         \
    API cudnnStatus_t cudnnCreate##name(type *descriptor)                                                              \
    {                                                                                                                  \
        MAY_FAIL();                                                                                                    \
        *descriptor = calloc(1, sizeof **descriptor);                                                                  \
        descriptors += *descriptor != NULL;                                                                            \
        return *descriptor != NULL ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;        \
    }
DESCRIPTOR(TensorDescriptor, cudnnTensorDescriptor_t)
DESCRIPTOR(RNNDescriptor, cudnnRNNDescriptor_t)
DESCRIPTOR(RNNDataDescriptor, cudnnRNNDataDescriptor_t)

API cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor)
{
    descriptors -= descriptor != NULL;
    free(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t descriptor)
{
    descriptors -= descriptor != NULL;
    free(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t descriptor)
{
    if (descriptor != NULL)
        free(descriptor->lengths);
    descriptors -= descriptor != NULL;
    free(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type, int count,
                                             const int dims[], const int strides[])
{
    MAY_FAIL();
    NEED(descriptor != NULL && count >= 3 && count <= CUDNN_DIM_MAX, "a tensor of %d dimensions", count);
    *descriptor = (struct cudnnTensorStruct){.set = true, .type = type, .count = count};
    for (int k = 0; k < count; k++) {
        NEED(dims[k] > 0 && strides[k] > 0, "dimension %d is %d with stride %d", k, dims[k], strides[k]);
        descriptor->dims[k] = dims[k];
        descriptor->strides[k] = strides[k];
    }
    return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t descriptor, int requested,
                                             cudnnDataType_t *type, int *count, int dims[], int strides[])
{
    MAY_FAIL();
    NEED(descriptor != NULL, "no descriptor");
    *type = descriptor->type;
    *count = descriptor->count;
    for (int k = 0; k < requested && k < descriptor->count; k++) {
        dims[k] = descriptor->dims[k];
        strides[k] = descriptor->strides[k];
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Elements and sums that the real library's descriptors accept (test_cudnn_library.c queries it). */
static bool takes_types(cudnnRNNAlgo_t algorithm, cudnnDataType_t type, cudnnDataType_t precision)
{
    switch (type) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_BFLOAT16:
        return precision == CUDNN_DATA_FLOAT;
    case CUDNN_DATA_HALF:
        return precision == CUDNN_DATA_FLOAT || (precision == CUDNN_DATA_HALF && algorithm == CUDNN_RNN_ALGO_STANDARD);
    case CUDNN_DATA_DOUBLE:
        return precision == CUDNN_DATA_DOUBLE &&
               (algorithm == CUDNN_RNN_ALGO_STANDARD || algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC);
    default:
        return false;
    }
}

API cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algorithm, cudnnRNNMode_t mode,
                                           cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
                                           cudnnRNNInputMode_t input_mode, cudnnDataType_t type,
                                           cudnnDataType_t precision, cudnnMathType_t math, int32_t input,
                                           int32_t hidden, int32_t projection, int32_t layers,
                                           cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
    MAY_FAIL();
    const bool persist = algorithm != CUDNN_RNN_ALGO_STANDARD;
    NEED(rnn != NULL && algorithm < CUDNN_RNN_ALGO_COUNT && mode <= CUDNN_GRU, "algorithm %d, mode %d", (int)algorithm,
         (int)mode);
    NEED(input > 0 && hidden > 0 && projection > 0 && layers > 0, "sizes %d, %d, %d, %d", input, hidden, projection,
         layers);
    NEED(flags <= CUDNN_RNN_PADDED_IO_ENABLED, "flags 0x%x", flags);
    CAN(input_mode == CUDNN_LINEAR_INPUT && dropout == NULL, "neither skipped inputs nor dropout here");
    CAN(projection <= hidden, "projection %d of %d", projection, hidden);
    CAN(projection == hidden || (mode == CUDNN_LSTM && !persist), "projection without LSTM or standard algorithm");
    CAN(!persist || bias == CUDNN_RNN_DOUBLE_BIAS, "persistent algorithms have two biases");
    CAN(bias == CUDNN_RNN_DOUBLE_BIAS, "two biases only here");
    CAN(takes_types(algorithm, type, precision), "data type %d at precision %d", (int)type, (int)precision);
    *rnn = (struct cudnnRNNStruct){.set = true,
                                   .algorithm = algorithm,
                                   .mode = mode,
                                   .bias = bias,
                                   .directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
                                   .type = type,
                                   .precision = precision,
                                   .math = math,
                                   .input = input,
                                   .hidden = hidden,
                                   .projection = projection,
                                   .layers = layers,
                                   .padded = flags & CUDNN_RNN_PADDED_IO_ENABLED};
    return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnRNNSetClip_v9(cudnnRNNDescriptor_t rnn, cudnnRNNClipMode_t mode, double low, double high)
{
    MAY_FAIL();
    NEED(rnn != NULL && rnn->set && rnn->mode == CUDNN_LSTM, "clipping is for LSTM");
    NEED(!isnan(low) && !isnan(high) && low <= high, "limits %g to %g", low, high);
    rnn->clips = mode == CUDNN_RNN_CLIP_MINMAX;
    rnn->low = low;
    rnn->high = high;
    return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnBuildRNNDynamic(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int sequences)
{
    MAY_FAIL();
    NEED(handle != NULL && rnn != NULL && rnn->set && sequences > 0, "no network, or %d sequences", sequences);
    NEED(rnn->algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC, "only the dynamic algorithm is built");
    rnn->built_for = sequences;
    const char *log = getenv("FAKE_CUDNN_BUILDS");
    FILE *file = log != NULL ? fopen(log, "a") : NULL;
    if (file != NULL) {
        fprintf(file, "%d %d %d\n", rnn->input, rnn->layers, sequences);
        fclose(file);
    }
    return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t type,
                                            cudnnRNNDataLayout_t layout, int steps, int sequences, int width,
                                            const int lengths[], void *fill)
{
    MAY_FAIL();
    NEED(data != NULL && steps > 0 && sequences > 0 && width > 0, "%d steps, %d sequences, width %d", steps, sequences,
         width);
    CAN(layout != CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED && fill == NULL, "sequence-major, without filling");
    const bool packed = layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
    for (int b = 0; b < sequences; b++) {
        NEED(lengths[b] >= (packed ? 1 : 0) && lengths[b] <= steps, "sequence %d has length %d", b, lengths[b]);
        NEED(!packed || b == 0 || lengths[b] <= lengths[b - 1], "lengths are not sorted");
    }
    NEED(!packed || lengths[0] == steps, "the longest sequence has %d of %d steps", lengths[0], steps);
    int *copy = malloc((size_t)sequences * sizeof *copy);
    if (copy == NULL)
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    memcpy(copy, lengths, (size_t)sequences * sizeof *copy);
    free(data->lengths);
    *data = (struct cudnnRNNDataStruct){true, type, layout, steps, sequences, width, copy};
    return CUDNN_STATUS_SUCCESS;
}

/* ---- sizes and places ------------------------------------------------------------------------------------------- */

size_t fake_rows(const struct cudnnRNNDataStruct *data)
{
    size_t rows = 0;
    for (int b = 0; b < data->sequences; b++)
        rows += data->layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED ? (size_t)data->lengths[b] : (size_t)data->steps;
    return rows;
}

static bool is_told_to_refuse(const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *data,
                              enum fake_pass pass)
{
    static const char *const passes[] = {"forward", "data", "weights", "sizes"};
    const char *rule = getenv("FAKE_CUDNN_REFUSE");
    char text[64];
    snprintf(text, sizeof text, "%d:%s:%d", (int)rnn->algorithm, passes[pass], data->sequences);
    return rule != NULL && strcmp(rule, text) == 0;
}

/* Sizes do not grow evenly: some numbers of sequences need far more. */
API cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
                                            cudnnRNNDataDescriptor_t data, size_t *work, size_t *reserve)
{
    MAY_FAIL();
    NEED(handle != NULL && rnn != NULL && rnn->set && data != NULL && data->set, "something is missing");
    NEED(data->width == rnn->input && data->type == rnn->type, "the input is not the network's");
    NEED(rnn->algorithm != CUDNN_RNN_ALGO_PERSIST_DYNAMIC || rnn->built_for == data->sequences,
         "built for %d sequences, not %d", rnn->built_for, data->sequences);
    CAN(!is_told_to_refuse(rnn, data, FAKE_SIZES), "told to refuse");
    const size_t layers = (size_t)(rnn->layers * rnn->directions);
    *work = 1000 + fake_rows(data) * 8 + (data->sequences % 4 == 2 ? 300000 : 0);
    *reserve = mode == CUDNN_FWD_MODE_TRAINING
                   ? FAKE_HEADER_BYTES + layers * fake_rows(data) * fake_record_elems(rnn) * sizeof(double) +
                         (size_t)(data->sequences % 3) * 136 +
                         (fake_shares_size(data) ? 0 : (size_t)rnn->algorithm * 72)
                   : 0;
    return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, size_t *bytes)
{
    MAY_FAIL();
    NEED(handle != NULL && rnn != NULL && rnn->set, "something is missing");
    *bytes = fake_weight_elems(rnn) * fake_element_bytes(rnn->type);
    return CUDNN_STATUS_SUCCESS;
}

static void describe(cudnnTensorDescriptor_t tensor, void **out, const struct cudnnRNNStruct *rnn,
                     struct fake_place place, const void *space)
{
    *out = place.rows > 0 ? (unsigned char *)(uintptr_t)space + place.at * fake_element_bytes(rnn->type) : NULL;
    *tensor = (struct cudnnTensorStruct){.set = true, .type = rnn->type, .count = place.rows > 0 ? 3 : 0};
    tensor->dims[0] = 1;
    tensor->dims[1] = place.rows;
    tensor->dims[2] = place.columns;
    tensor->strides[0] = place.rows * place.columns;
    tensor->strides[1] = place.columns;
    tensor->strides[2] = 1;
}

API cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int32_t pseudo, size_t bytes,
                                          const void *space, int32_t id, cudnnTensorDescriptor_t matrix,
                                          void **matrix_at, cudnnTensorDescriptor_t bias, void **bias_at)
{
    MAY_FAIL();
    NEED(handle != NULL && rnn != NULL && rnn->set && space != NULL, "something is missing");
    NEED(pseudo >= 0 && pseudo < rnn->layers * rnn->directions, "layer %d", pseudo);
    NEED(id >= 0 && id <= 8, "matrix %d", id);
    NEED(bytes >= fake_weight_elems(rnn) * fake_element_bytes(rnn->type), "a weight space of %zu bytes", bytes);
    describe(matrix, matrix_at, rnn, fake_find_matrix(rnn, pseudo, id), space);
    describe(bias, bias_at, rnn, fake_find_bias(rnn, pseudo, id), space);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static bool same_data(const struct cudnnRNNDataStruct *a, const struct cudnnRNNDataStruct *b)
{
    return a->type == b->type && a->layout == b->layout && a->steps == b->steps && a->sequences == b->sequences &&
           memcmp(a->lengths, b->lengths, (size_t)a->sequences * sizeof *a->lengths) == 0;
}

static cudnnStatus_t check_state(const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *data,
                                 cudnnTensorDescriptor_t tensor, int width, bool used, const char *what)
{
    if (!used)
        return CUDNN_STATUS_SUCCESS;
    NEED(tensor != NULL && tensor->set && tensor->count == 3 && tensor->type == rnn->type, "no descriptor of %s", what);
    NEED(tensor->dims[0] == rnn->layers * rnn->directions && tensor->dims[1] == data->sequences &&
             tensor->dims[2] == width,
         "%s is [%d, %d, %d]", what, tensor->dims[0], tensor->dims[1], tensor->dims[2]);
    NEED(tensor->strides[2] == 1 && tensor->strides[1] == width && tensor->strides[0] == width * data->sequences,
         "%s is not packed", what);
    return CUDNN_STATUS_SUCCESS;
}

/* Device memory; kernels read 16 bytes at once. */
static cudnnStatus_t check_buffer(const void *pointer, size_t bytes, const char *what)
{
    NEED(pointer != NULL && emulated_owns(pointer, bytes), "%s is no device memory of %zu bytes", what, bytes);
    NEED((uintptr_t)pointer % 16 == 0, "%s is not aligned", what);
    return CUDNN_STATUS_SUCCESS;
}

/* What an algorithm does not support, and refuses only now. */
static cudnnStatus_t check_algorithm(const struct cudnnRNNStruct *rnn, const struct cudnnRNNDataStruct *data,
                                     enum fake_pass pass)
{
    const int wide = rnn->mode <= CUDNN_RNN_TANH ? 2 : 1;
    CAN(!is_told_to_refuse(rnn, data, pass), "told to refuse");
    if (rnn->algorithm == CUDNN_RNN_ALGO_STANDARD)
        return CUDNN_STATUS_SUCCESS;
    CAN(data->lengths[data->sequences - 1] == data->steps, "persistent algorithms want equal lengths");
    switch (rnn->algorithm) {
    case CUDNN_RNN_ALGO_PERSIST_STATIC:
        CAN(rnn->layers == 1 && rnn->directions == 1, "one layer, one direction");
        CAN(data->sequences > 1 && rnn->hidden <= 128, "%d sequences, %d units", data->sequences, rnn->hidden);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_RNN_ALGO_PERSIST_DYNAMIC:
        NEED(rnn->built_for == data->sequences, "built for %d sequences, not %d", rnn->built_for, data->sequences);
        return CUDNN_STATUS_SUCCESS;
    default:
        CAN(rnn->hidden <= wide * (pass == FAKE_FORWARD ? 192 : 128), "%d units", rnn->hidden);
        return CUDNN_STATUS_SUCCESS;
    }
}

struct arguments {
    cudnnHandle_t handle;
    cudnnRNNDescriptor_t rnn;
    const int32_t *device_lengths;
    cudnnRNNDataDescriptor_t x, y;
    cudnnTensorDescriptor_t h, c;
    bool uses_h, uses_c;
    size_t weight_bytes, work_bytes, reserve_bytes;
};

/* What the three calls have in common; queues the run. */
static cudnnStatus_t start(const struct arguments *a, const struct fake_run *given)
{
    size_t work, reserve;
    NEED(a->handle != NULL && a->handle->stream != NULL, "no handle, or none with a stream");
    NEED(a->handle->device == emulated_get_device(NULL), "the device of the handle is not the current one");
    NEED(a->rnn != NULL && a->rnn->set, "no network");
    NEED(a->x != NULL && a->x->set && a->y != NULL && a->y->set, "no descriptor of x or y");
    NEED(a->device_lengths == NULL, "devSeqLengths is NULL since 8.9.1");
    NEED(a->x->layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED || a->rnn->padded, "padded layouts are not enabled");
    NEED(same_data(a->x, a->y) && a->y->width == a->rnn->projection * a->rnn->directions, "y does not belong to x");
    TRY(cudnnGetRNNTempSpaceSizes(a->handle, a->rnn,
                                  given->training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, a->x, &work,
                                  &reserve));
    TRY(check_state(a->rnn, a->x, a->h, a->rnn->projection, a->uses_h, "h"));
    TRY(check_state(a->rnn, a->x, a->c, a->rnn->hidden, a->uses_c, "c"));
    NEED(a->rnn->mode == CUDNN_LSTM || !a->uses_c, "c without LSTM");
    NEED(a->weight_bytes >= fake_weight_elems(a->rnn) * fake_element_bytes(a->rnn->type), "weight space of %zu bytes",
         a->weight_bytes);
    NEED(a->work_bytes >= work && a->reserve_bytes >= reserve, "work space of %zu bytes, reserve of %zu", a->work_bytes,
         a->reserve_bytes);
    NEED(given->work != NULL && (!given->training || given->reserve != NULL), "no work or reserve space");
    TRY(check_algorithm(a->rnn, a->x, given->pass));

    const size_t element = fake_element_bytes(a->rnn->type), rows = fake_rows(a->x);
    const size_t count = (size_t)(a->rnn->layers * a->rnn->directions * a->x->sequences) * element;
    const size_t input = rows * (size_t)a->x->width * element, output = rows * (size_t)a->y->width * element;
    const size_t h = count * (size_t)a->rnn->projection, c = count * (size_t)a->rnn->hidden;
    const struct {
        const void *pointer;
        size_t bytes;
        const char *what;
    } buffers[] = {{given->work, a->work_bytes, "the work space"}, /* written … */
                   {given->training ? given->reserve : NULL, a->reserve_bytes, "the reserve space"},
                   {given->dweights, a->weight_bytes, "the gradients of weights"},
                   {given->y, output, "y"},
                   {given->hy, h, "hy"},
                   {given->cy, c, "cy"},
                   {given->dx, input, "dx"},
                   {given->dhx, h, "dhx"},
                   {given->dcx, c, "dcx"},
                   {given->x, input, "x"},
                   {given->y_in, output, "y"},
                   {given->dy, output, "dy"}, /* … and read */
                   {given->hx, h, "hx"},
                   {given->cx, c, "cx"},
                   {given->dhy, h, "dhy"},
                   {given->dcy, c, "dcy"},
                   {given->weights, a->weight_bytes, "the weight space"}};
    enum { COUNT = sizeof buffers / sizeof *buffers, WRITTEN = 9 };
    for (int k = 0; k < COUNT; k++) {
        if (buffers[k].pointer == NULL)
            continue;
        TRY(check_buffer(buffers[k].pointer, buffers[k].bytes, buffers[k].what));
        for (int i = 0; i < k && i < WRITTEN; i++)
            NEED(buffers[i].pointer == NULL ||
                     (uintptr_t)buffers[i].pointer + buffers[i].bytes <= (uintptr_t)buffers[k].pointer ||
                     (uintptr_t)buffers[k].pointer + buffers[k].bytes <= (uintptr_t)buffers[i].pointer,
                 "%s lies in %s", buffers[i].what, buffers[k].what);
    }

    struct fake_run *run = malloc(sizeof *run);
    int *lengths = malloc((size_t)a->x->sequences * sizeof *lengths);
    if (run == NULL || lengths == NULL) {
        free(run);
        free(lengths);
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    *run = *given;
    run->rnn = *a->rnn;
    run->data = *a->x;
    run->data.lengths = lengths;
    memcpy(lengths, a->x->lengths, (size_t)a->x->sequences * sizeof *lengths);
    run->work_bytes = a->work_bytes;
    run->reserve_bytes = a->reserve_bytes;
    emulated_submit(a->handle->stream, fake_run_work, run, fake_run_release);
    return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
                                  const int32_t device_lengths[], cudnnRNNDataDescriptor_t x_desc, const void *x,
                                  cudnnRNNDataDescriptor_t y_desc, void *y, cudnnTensorDescriptor_t h, const void *hx,
                                  void *hy, cudnnTensorDescriptor_t c, const void *cx, void *cy, size_t weight_bytes,
                                  const void *weights, size_t work_bytes, void *work, size_t reserve_bytes,
                                  void *reserve)
{
    const struct arguments a = {handle,
                                rnn,
                                device_lengths,
                                x_desc,
                                y_desc,
                                h,
                                c,
                                hx != NULL || hy != NULL,
                                cx != NULL || cy != NULL,
                                weight_bytes,
                                work_bytes,
                                reserve_bytes};
    const struct fake_run run = {.pass = FAKE_FORWARD,
                                 .training = mode == CUDNN_FWD_MODE_TRAINING,
                                 .x = x,
                                 .y = y,
                                 .hx = hx,
                                 .hy = hy,
                                 .cx = cx,
                                 .cy = cy,
                                 .weights = weights,
                                 .work = work,
                                 .reserve = reserve};
    NEED(x != NULL && y != NULL && weights != NULL, "x, y or weights are missing");
    return start(&a, &run);
}

API cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                          const int32_t device_lengths[], cudnnRNNDataDescriptor_t y_desc,
                                          const void *y, const void *dy, cudnnRNNDataDescriptor_t x_desc, void *dx,
                                          cudnnTensorDescriptor_t h, const void *hx, const void *dhy, void *dhx,
                                          cudnnTensorDescriptor_t c, const void *cx, const void *dcy, void *dcx,
                                          size_t weight_bytes, const void *weights, size_t work_bytes, void *work,
                                          size_t reserve_bytes, void *reserve)
{
    const struct arguments a = {handle,
                                rnn,
                                device_lengths,
                                x_desc,
                                y_desc,
                                h,
                                c,
                                hx != NULL || dhy != NULL || dhx != NULL,
                                cx != NULL || dcy != NULL || dcx != NULL,
                                weight_bytes,
                                work_bytes,
                                reserve_bytes};
    const struct fake_run run = {.pass = FAKE_DATA,
                                 .training = true,
                                 .y_in = y,
                                 .dy = dy,
                                 .dx = dx,
                                 .hx = hx,
                                 .dhy = dhy,
                                 .dhx = dhx,
                                 .cx = cx,
                                 .dcy = dcy,
                                 .dcx = dcx,
                                 .weights = weights,
                                 .work = work,
                                 .reserve = reserve};
    NEED(y != NULL && dy != NULL && dx != NULL && weights != NULL, "y, dy, dx or weights are missing");
    return start(&a, &run);
}

API cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t mode,
                                             const int32_t device_lengths[], cudnnRNNDataDescriptor_t x_desc,
                                             const void *x, cudnnTensorDescriptor_t h, const void *hx,
                                             cudnnRNNDataDescriptor_t y_desc, const void *y, size_t weight_bytes,
                                             void *dweights, size_t work_bytes, void *work, size_t reserve_bytes,
                                             void *reserve)
{
    const struct arguments a = {handle, rnn,  device_lengths, x_desc,       y_desc,     h,
                                NULL,   true, false,          weight_bytes, work_bytes, reserve_bytes};
    const struct fake_run run = {.pass = FAKE_WEIGHTS,
                                 .training = true,
                                 .x = x,
                                 .hx = hx,
                                 .y_in = y,
                                 .dweights = dweights,
                                 .work = work,
                                 .reserve = reserve};
    CAN(mode == CUDNN_WGRAD_MODE_ADD, "gradients are added, not set");
    NEED(x != NULL && y != NULL && dweights != NULL, "x, y or the gradients are missing");
    return start(&a, &run);
}

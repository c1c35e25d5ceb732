/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and sessions. See network.h. */
#include "network.h"

#include <string.h>

#include "plugin.h"

/* ---- sessions --------------------------------------------------------------------------------------------------- */

static cudnnRNNMode_t get_mode(const struct seqlstm_recurrent_desc *d)
{
    if (d->cell == SEQLSTM_CELL_LSTM)
        return CUDNN_LSTM;
    if (d->cell == SEQLSTM_CELL_GRU)
        return CUDNN_GRU;
    return d->activations[SEQLSTM_PLACE_CANDIDATE][0].kind == SEQLSTM_ACT_RELU ? CUDNN_RNN_RELU : CUDNN_RNN_TANH;
}

/* Sums are float32 whatever the elements are: all algorithms accept that, float16 sums only the standard one does. */
static cudnnMathType_t get_math(const struct seqlstm_recurrent_desc *d)
{
    if (cdn_is_narrow(d))
        return CUDNN_TENSOR_OP_MATH;
    return d->head.dtype_compute == SEQLSTM_DTYPE_TF32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

/* Equal lengths are passed as rectangles without padding (the layout that all algorithms accept), others packed. */
static cudnnStatus_t set_network(cudnnRNNDescriptor_t rnn, const struct seqlstm_recurrent_desc *d,
                                 const struct cdn_plan *plan, const struct cdn_net *net, bool uniform)
{
    const cudnnStatus_t status = cdn.SetRNNDescriptor_v8(
        rnn, plan->algorithm, get_mode(d), CUDNN_RNN_DOUBLE_BIAS,
        cdn_directions(d) == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, cdn_data_type(d),
        CUDNN_DATA_FLOAT, get_math(d), (int32_t)net->input, (int32_t)d->hidden, (int32_t)cdn_output(d), net->layers,
        NULL, uniform ? CUDNN_RNN_PADDED_IO_ENABLED : CUDNN_RNN_PADDED_IO_DISABLED);
    if (status != CUDNN_STATUS_SUCCESS || !(d->cell_clip > 0))
        return status;
    return cdn.RNNSetClip_v9(rnn, CUDNN_RNN_CLIP_MINMAX, -(double)d->cell_clip, (double)d->cell_clip);
}

static cudnnStatus_t set_data(cudnnRNNDataDescriptor_t data, cudnnDataType_t type, const struct cdn_shape *shape,
                              int64_t width)
{
    return cdn.SetRNNDataDescriptor(
        data, type, shape->uniform ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
        shape->steps, shape->sequences, (int)width, shape->lengths, NULL);
}

static cudnnStatus_t set_state(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int64_t count, int64_t sequences,
                               int64_t width)
{
    const int dims[3] = {(int)count, (int)sequences, (int)width};
    const int strides[3] = {(int)(sequences * width), (int)width, 1};
    return cdn.SetTensorNdDescriptor(tensor, type, 3, dims, strides);
}

/* Returns from the calling function if cuDNN refuses or fails. */
#define CDN_TRY(call, what) SEQLSTM_TRY(cdn_check((call), (what), err))

static struct cdn_network_key make_key(const struct seqlstm_op *op, const struct cdn_net *net,
                                       const struct cdn_shape *shape)
{
    const struct seqlstm_recurrent_desc *d = &op->desc;
    struct cdn_network_key key;
    memset(&key, 0, sizeof key);
    key.input = net->input;
    key.hidden = d->hidden;
    key.output = cdn_output(d);
    key.ordinal = op->ordinal;
    key.sequences = shape->sequences;
    key.layers = net->layers;
    key.mode = (int32_t)get_mode(d);
    key.directions = (int32_t)cdn_directions(d);
    key.type = (int32_t)cdn_data_type(d);
    key.math = (int32_t)get_math(d);
    key.uniform = shape->uniform;
    key.clip = d->cell_clip;
    return key;
}

/* The network of the plan; one that must be compiled is taken from those that are compiled already, if it is there. */
static seqlstm_status open_network(struct cdn_session *s, const struct seqlstm_op *op, const struct cdn_plan *plan,
                                   const struct cdn_net *net, const struct cdn_shape *shape, cudnnHandle_t handle,
                                   struct seqlstm_error *err)
{
    const bool compiled = plan->algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC;
    s->key = make_key(op, net, shape);
    if (compiled)
        s->rnn = cdn_kept_take(&op->instance->kept, &s->key);
    if (s->rnn == NULL) {
        CDN_TRY(cdn.CreateRNNDescriptor(&s->rnn), "CreateRNNDescriptor");
        CDN_TRY(set_network(s->rnn, &op->desc, plan, net, shape->uniform), "SetRNNDescriptor_v8");
        if (compiled)
            CDN_TRY(cdn.BuildRNNDynamic(handle, s->rnn, shape->sequences), "BuildRNNDynamic");
    }
    s->kept = compiled ? &op->instance->kept : NULL;
    return SEQLSTM_OK;
}

static seqlstm_status set_shape(struct cdn_session *s, const struct seqlstm_op *op, const struct cdn_net *net,
                                const struct cdn_shape *shape, cudnnHandle_t handle, struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = &op->desc;
    const int64_t states = net->layers * cdn_directions(d);
    const cudnnDataType_t type = cdn_data_type(d);
    CDN_TRY(set_data(s->x, type, shape, net->input), "SetRNNDataDescriptor");
    CDN_TRY(set_data(s->y, type, shape, cdn_width(d)), "SetRNNDataDescriptor");
    CDN_TRY(set_state(s->h, type, states, shape->sequences, cdn_output(d)), "SetTensorNdDescriptor");
    CDN_TRY(set_state(s->c, type, states, shape->sequences, d->hidden), "SetTensorNdDescriptor");
    CDN_TRY(cdn.GetRNNTempSpaceSizes(handle, s->rnn,
                                     d->head.mode == SEQLSTM_MODE_TRAINING ? CUDNN_FWD_MODE_TRAINING
                                                                           : CUDNN_FWD_MODE_INFERENCE,
                                     s->x, &s->workspace_bytes, &s->reserve_bytes),
            "GetRNNTempSpaceSizes");
    return SEQLSTM_OK;
}

static seqlstm_status describe(struct cdn_session *s, const struct seqlstm_op *op, const struct cdn_plan *plan,
                               const struct cdn_net *net, const struct cdn_shape *shape, cudnnHandle_t handle,
                               struct seqlstm_error *err)
{
    SEQLSTM_TRY(open_network(s, op, plan, net, shape, handle, err));
    CDN_TRY(cdn.CreateRNNDataDescriptor(&s->x), "CreateRNNDataDescriptor");
    CDN_TRY(cdn.CreateRNNDataDescriptor(&s->y), "CreateRNNDataDescriptor");
    CDN_TRY(cdn.CreateTensorDescriptor(&s->h), "CreateTensorDescriptor");
    CDN_TRY(cdn.CreateTensorDescriptor(&s->c), "CreateTensorDescriptor");
    return set_shape(s, op, net, shape, handle, err);
}

seqlstm_status cdn_session_open(struct cdn_session *session, const struct seqlstm_op *op, const struct cdn_plan *plan,
                                const struct cdn_net *net, const struct cdn_shape *shape, struct cdn_handle *handle,
                                struct seqlstm_error *err)
{
    memset(session, 0, sizeof *session);
    const seqlstm_status status = describe(session, op, plan, net, shape, handle->native, err);
    if (status != SEQLSTM_OK)
        cdn_session_close(session);
    return status;
}

/* A compiled network is for one number of sequences: another one must have been left by a session that has ended. */
static seqlstm_status renew_network(struct cdn_session *s, const struct seqlstm_op *op, const struct cdn_plan *plan,
                                    const struct cdn_net *net, const struct cdn_shape *shape, struct seqlstm_error *err)
{
    const struct cdn_network_key key = make_key(op, net, shape), before = s->key;
    if (memcmp(&key, &before, sizeof key) == 0)
        return SEQLSTM_OK;
    s->key = key;
    if (s->kept != NULL) {
        struct cdn_kept *kept = s->kept;
        cdn_kept_leave(kept, &before, s->rnn);
        s->rnn = cdn_kept_take(kept, &key);
        s->kept = s->rnn != NULL ? kept : NULL;
        if (s->rnn == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "cuDNN has not compiled the network for a batch of this size: %d",
                         (int)shape->sequences);
    } else if (key.uniform != before.uniform) {
        CDN_TRY(set_network(s->rnn, &op->desc, plan, net, shape->uniform), "SetRNNDescriptor_v8");
    }
    return SEQLSTM_OK;
}

seqlstm_status cdn_session_renew(struct cdn_session *session, const struct seqlstm_op *op, const struct cdn_plan *plan,
                                 const struct cdn_net *net, const struct cdn_shape *shape, struct cdn_handle *handle,
                                 struct seqlstm_error *err)
{
    SEQLSTM_TRY(renew_network(session, op, plan, net, shape, err));
    return set_shape(session, op, net, shape, handle->native, err);
}

void cdn_session_close(struct cdn_session *session)
{
    if (session->c != NULL)
        cdn.DestroyTensorDescriptor(session->c);
    if (session->h != NULL)
        cdn.DestroyTensorDescriptor(session->h);
    if (session->y != NULL)
        cdn.DestroyRNNDataDescriptor(session->y);
    if (session->x != NULL)
        cdn.DestroyRNNDataDescriptor(session->x);
    if (session->kept != NULL)
        cdn_kept_leave(session->kept, &session->key, session->rnn);
    else if (session->rnn != NULL)
        cdn.DestroyRNNDescriptor(session->rnn);
    memset(session, 0, sizeof *session);
}

/* ---- how much memory -------------------------------------------------------------------------------------------- */

void cdn_shape_fill(struct cdn_shape *shape, int64_t steps, int64_t sequences, int64_t rows)
{
    shape->sequences = (int32_t)sequences;
    shape->steps = (int32_t)steps;
    shape->lengths[0] = (int32_t)steps;
    shape->rows = steps;
    for (int64_t b = 1; b < sequences; b++) { /* distributes the remaining rows as evenly as possible */
        const int64_t left = rows - shape->rows, share = (left + sequences - b - 1) / (sequences - b);
        shape->lengths[b] = (int32_t)(share < 1 ? 1 : (share > steps ? steps : share));
        shape->rows += shape->lengths[b];
    }
    shape->uniform = shape->rows == steps * sequences;
}

enum { SLACK_BYTES = 1 << 16 };

static seqlstm_status ask(const struct seqlstm_op *op, const struct cdn_plan *plan, struct cdn_net *net,
                          const struct cdn_shape *shape, struct cdn_handle *handle, struct seqlstm_error *err)
{
    struct cdn_session session;
    SEQLSTM_TRY(cdn_session_open(&session, op, plan, net, shape, handle, err));
    /* cuDNN says that these sizes do not grow evenly: reserves somewhat more than the largest seen */
    const uint64_t workspace = session.workspace_bytes + session.workspace_bytes / 8 + SLACK_BYTES;
    const uint64_t reserve = session.reserve_bytes + session.reserve_bytes / 8 + SLACK_BYTES;
    net->workspace_bytes = workspace > net->workspace_bytes ? workspace : net->workspace_bytes;
    net->reserve_bytes = reserve > net->reserve_bytes ? reserve : net->reserve_bytes;
    cdn_session_close(&session);
    return SEQLSTM_OK;
}

/* Measures the largest batch in each respect, and the longest and widest rectangles that it may become. */
static seqlstm_status measure(const struct seqlstm_op *op, const struct cdn_plan *plan, struct cdn_net *net,
                              struct cdn_handle *handle, struct seqlstm_error *err)
{
    const struct seqlstm_desc *head = &op->desc.head;
    const int64_t t = head->max_steps, b = head->max_sequences;
    const int64_t rows = head->max_rows < t + b - 1 ? t + b - 1 : head->max_rows;
    const int64_t wide = rows / t < b ? rows / t : b, high = rows / b < t ? rows / b : t;
    const int64_t rectangles[4][2] = {{t, wide}, {high, b}, {t, 1}, {1, b}};
    struct cdn_shape shape = op->shape; /* uses the same lengths */
    seqlstm_status status = ask(op, plan, net, &shape, handle, err);
    const int count = plan->algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC ? 0 : 4; /* it would compile each of them */
    for (int k = 0; k < count && status == SEQLSTM_OK; k++) {
        cdn_shape_fill(&shape, rectangles[k][0], rectangles[k][1], rectangles[k][0] * rectangles[k][1]);
        status = ask(op, plan, net, &shape, handle, err);
        if (status == SEQLSTM_UNSUPPORTED) /* the standard algorithm will run this shape */
            status = SEQLSTM_OK;
    }
    cdn_shape_fill(&shape, t, b, rows);
    return status;
}

/* ---- where parameters lie --------------------------------------------------------------------------------------- */

struct survey {
    const struct seqlstm_op *op;
    struct cdn_net *net;
    cudnnRNNDescriptor_t rnn;
    cudnnHandle_t handle;
    unsigned char *space;
    cudnnTensorDescriptor_t matrix, bias;
};

/* Appends to the copy that ends where this one begins, on both sides; otherwise starts a new copy. */
static void add_copy(const struct survey *v, int32_t n, int32_t which, int64_t from, int64_t elems, uint64_t to)
{
    struct cdn_net *net = v->net;
    for (int32_t k = 0; k < net->copy_count; k++) {
        struct cdn_copy *p = &net->copies[k];
        if (p->n == n && p->which == which && p->from + p->elems == from &&
            p->to_bytes + (uint64_t)p->elems * cdn_element_bytes(&v->op->desc) == to) {
            p->elems += elems;
            return;
        }
    }
    net->copies[net->copy_count++] = (struct cdn_copy){n, which, from, elems, to};
}

/* Is `at` inside the weight space, and are its elements contiguous and as many as expected? */
static seqlstm_status check_place(const struct survey *v, cudnnTensorDescriptor_t tensor, const void *at, int64_t rows,
                                  int64_t columns, struct seqlstm_error *err)
{
    cudnnDataType_t type;
    int count = 0, dims[3] = {0}, strides[3] = {0};
    CDN_TRY(cdn.GetTensorNdDescriptor(tensor, 3, &type, &count, dims, strides), "GetTensorNdDescriptor");
    const bool plain = count == 3 && type == cdn_data_type(&v->op->desc) && dims[0] == 1 && dims[1] == rows &&
                       dims[2] == columns && (columns == 1 || strides[2] == 1) && strides[1] == columns;
    const uintptr_t begin = (uintptr_t)v->space, place = (uintptr_t)at;
    const uintptr_t bytes = (uintptr_t)((uint64_t)(rows * columns) * cdn_element_bytes(&v->op->desc));
    if (!plain || place < begin || place + bytes > begin + v->net->weight_bytes)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED,
                     "cuDNN %s stores a matrix of %lld by %lld in a layout that this backend does not support",
                     cdn_library_version(), (long long)rows, (long long)columns);
    return SEQLSTM_OK;
}

/* Finds the matrix `id` of a layer and direction, and its bias if `bias_from` is not negative. */
static seqlstm_status find_place(const struct survey *v, int32_t pseudo, int32_t id, int32_t which, int64_t rows,
                                 int64_t columns, int64_t from, int64_t bias_from, struct seqlstm_error *err)
{
    void *matrix = NULL, *bias = NULL;
    const int32_t n = v->net->first * (int32_t)cdn_directions(&v->op->desc) + pseudo;
    CDN_TRY(cdn.GetRNNWeightParams(v->handle, v->rnn, pseudo, (size_t)v->net->weight_bytes, v->space, id, v->matrix,
                                   &matrix, v->bias, &bias),
            "GetRNNWeightParams");
    SEQLSTM_TRY(check_place(v, v->matrix, matrix, rows, columns, err));
    add_copy(v, n, which, from, rows * columns, (uint64_t)((unsigned char *)matrix - v->space));
    if (bias_from < 0 || !(v->op->desc.options & SEQLSTM_BIT_RECURRENT_USE_BIAS))
        return SEQLSTM_OK;
    SEQLSTM_TRY(check_place(v, v->bias, bias, rows, 1, err));
    add_copy(v, n, SEQLSTM_PARAM_BIAS, bias_from, rows, (uint64_t)((unsigned char *)bias - v->space));
    return SEQLSTM_OK;
}

/* cuDNN's numbering: the gates' input matrices in our order (i f g o, r z n), then the recurrent ones, then the
 * projection. */
static seqlstm_status find_places(const struct survey *v, struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = &v->op->desc;
    const int32_t gates = d->cell == SEQLSTM_CELL_LSTM ? 4 : (d->cell == SEQLSTM_CELL_GRU ? 3 : 1);
    const int64_t h = d->hidden, o = cdn_output(d);
    for (int32_t pseudo = 0; pseudo < v->net->layers * (int32_t)cdn_directions(d); pseudo++) {
        const int64_t input = pseudo < cdn_directions(d) ? v->net->input : cdn_width(d);
        for (int32_t g = 0; g < gates; g++)
            SEQLSTM_TRY(find_place(v, pseudo, g, SEQLSTM_PARAM_W_X, h, input, g * h * input, g * h, err));
        for (int32_t g = 0; g < gates; g++) {
            const bool between = d->cell == SEQLSTM_CELL_GRU && g == 2; /* b_hn */
            SEQLSTM_TRY(
                find_place(v, pseudo, gates + g, SEQLSTM_PARAM_W_H, h, o, g * h * o, between ? 3 * h : -1, err));
        }
        if (d->projection > 0)
            SEQLSTM_TRY(find_place(v, pseudo, 2 * gates, SEQLSTM_PARAM_PROJECTION, o, h, 0, -1, err));
    }
    return SEQLSTM_OK;
}

static seqlstm_status survey_open(struct survey *v, struct cdn_session *session, const struct cdn_plan *plan,
                                  struct cdn_handle *handle, struct seqlstm_error *err)
{
    void *space = NULL;
    size_t bytes = 0;
    SEQLSTM_TRY(cdn_session_open(session, v->op, plan, v->net, &v->op->shape, handle, err));
    v->rnn = session->rnn;
    v->handle = handle->native;
    CDN_TRY(cdn.GetRNNWeightSpaceSize(handle->native, session->rnn, &bytes), "GetRNNWeightSpaceSize");
    v->net->weight_bytes = bytes;
    SEQLSTM_TRY(gpu_allocate(v->op->ordinal, SEQLSTM_MEMORY_DEVICE, bytes, &space, err));
    v->space = space;
    CDN_TRY(cdn.CreateTensorDescriptor(&v->matrix), "CreateTensorDescriptor");
    CDN_TRY(cdn.CreateTensorDescriptor(&v->bias), "CreateTensorDescriptor");
    return find_places(v, err);
}

static seqlstm_status survey(const struct seqlstm_op *op, const struct cdn_plan *plan, struct cdn_net *net,
                             struct cdn_handle *handle, struct seqlstm_error *err)
{
    struct survey v = {.op = op, .net = net};
    struct cdn_session session = {0};
    const seqlstm_status status = survey_open(&v, &session, plan, handle, err);
    if (v.bias != NULL)
        cdn.DestroyTensorDescriptor(v.bias);
    if (v.matrix != NULL)
        cdn.DestroyTensorDescriptor(v.matrix);
    gpu_release(op->ordinal, SEQLSTM_MEMORY_DEVICE, v.space);
    cdn_session_close(&session);
    return status;
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

seqlstm_status cdn_plan_open(struct seqlstm_op *op, struct cdn_plan *plan, cudnnRNNAlgo_t algorithm, bool layers,
                             struct cdn_handle *handle, struct seqlstm_error *err)
{
    const struct seqlstm_host *host = &op->instance->domain.host;
    const int32_t all = (int32_t)op->desc.layers, each = layers ? 1 : all;
    /* matrices and biases of a layer and direction: four gates twice, and a projection */
    const size_t most = (size_t)each * (size_t)cdn_directions(&op->desc) * (2 * (4 + 4) + 1);
    *plan = (struct cdn_plan){.algorithm = algorithm, .count = all / each};
    const size_t nets_bytes = (size_t)plan->count * sizeof *plan->nets;
    plan->nets = host->allocate(host->context, nets_bytes + (size_t)plan->count * most * sizeof(struct cdn_copy));
    if (plan->nets == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the networks of an operation");
    memset(plan->nets, 0, nets_bytes);
    struct cdn_copy *copies = (struct cdn_copy *)(void *)(plan->nets + plan->count);
    for (int32_t k = 0; k < plan->count; k++) {
        struct cdn_net *net = &plan->nets[k];
        net->first = k * each;
        net->layers = each;
        net->input = k == 0 ? op->desc.input : cdn_width(&op->desc);
        net->copies = copies + (size_t)k * most;
        SEQLSTM_TRY(measure(op, plan, net, handle, err));
        SEQLSTM_TRY(survey(op, plan, net, handle, err));
        net->packed_offset = net->gradient_offset = plan->weight_bytes;
        plan->weight_bytes += cdn_align(net->weight_bytes);
    }
    return SEQLSTM_OK;
}

void cdn_plan_close(const struct seqlstm_op *op, struct cdn_plan *plan)
{
    op->instance->domain.host.release(op->instance->domain.host.context, plan->nets);
    plan->nets = NULL;
}

bool cdn_plan_equals(const struct cdn_plan *a, const struct cdn_plan *b)
{
    if (a->count != b->count)
        return false;
    for (int32_t k = 0; k < a->count; k++) {
        const struct cdn_net *x = &a->nets[k], *y = &b->nets[k];
        if (x->weight_bytes != y->weight_bytes || x->copy_count != y->copy_count ||
            memcmp(x->copies, y->copies, (size_t)x->copy_count * sizeof *x->copies) != 0)
            return false;
    }
    return true;
}

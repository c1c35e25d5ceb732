/* SPDX-License-Identifier: Apache-2.0 */
/* model + data facts -> graph. */
#include <stdlib.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "base/value/checked.h"
#include "graph/builder.h"

/* Flat-vector operations that training needs, optimizer first. */
static const uint32_t vector_kinds[] = {
    SEQLSTM_KIND_VECTOR_FILL,      SEQLSTM_KIND_VECTOR_AXPY,  SEQLSTM_KIND_VECTOR_SCALE, SEQLSTM_KIND_VECTOR_LERP,
    SEQLSTM_KIND_VECTOR_SIGN_AXPY, SEQLSTM_KIND_VECTOR_CLAMP, SEQLSTM_KIND_VECTOR_COPY};
enum { VECTOR_KINDS = sizeof vector_kinds / sizeof *vector_kinds, VECTOR_OPS = 2 + VECTOR_KINDS };

static void describe_optimizer(const struct sl_train_config *train, struct seqlstm_optimizer_desc *desc)
{
    const struct sl_optimizer *o = &train->optimizer;
    static const uint32_t kinds[] = {
        [SL_OPTIMIZER_SGD] = SEQLSTM_KIND_OPTIMIZER_SGD,
        [SL_OPTIMIZER_MOMENTUM] = SEQLSTM_KIND_OPTIMIZER_MOMENTUM,
        [SL_OPTIMIZER_NESTEROV] = SEQLSTM_KIND_OPTIMIZER_NESTEROV,
        [SL_OPTIMIZER_ADAM] = SEQLSTM_KIND_OPTIMIZER_ADAM,
        [SL_OPTIMIZER_ADAMW] = SEQLSTM_KIND_OPTIMIZER_ADAM,
        [SL_OPTIMIZER_RMSPROP] = SEQLSTM_KIND_OPTIMIZER_RMSPROP,
        [SL_OPTIMIZER_ADAGRAD] = SEQLSTM_KIND_OPTIMIZER_ADAGRAD,
        [SL_OPTIMIZER_ADADELTA] = SEQLSTM_KIND_OPTIMIZER_ADADELTA,
        [SL_OPTIMIZER_NT_ASGD] = SEQLSTM_KIND_OPTIMIZER_SGD, /* core/train averages */
    };
    desc->kind = kinds[o->kind];
    desc->beta_1 = (float)o->beta_1;
    desc->beta_2 = (float)o->beta_2;
    desc->rho = (float)o->rho;
    desc->momentum = (float)o->momentum;
    desc->epsilon = (float)o->epsilon;
    desc->weight_decay = (float)o->weight_decay;
    desc->clip_norm = (float)train->clip_norm;
    if (o->amsgrad)
        desc->options |= SEQLSTM_BIT_OPTIMIZER_AMSGRAD;
    if (o->centered)
        desc->options |= SEQLSTM_BIT_OPTIMIZER_CENTERED;
}

static int64_t get_rows(const struct sl_envelope *envelope, const struct sl_tensor *tensor)
{
    switch (tensor->axis) {
    case SL_AXIS_STEPS:
        return envelope->rows;
    case SL_AXIS_SOURCE_STEPS:
    case SL_AXIS_MEMORY:
        return envelope->source_rows;
    case SL_AXIS_SEQUENCES:
    case SL_AXIS_SOURCE_SEQUENCES:
        return envelope->sequences;
    case SL_AXIS_FREE:
        break;
    }
    return tensor->rows;
}

/* The longest flat vector: all parameters with their padding, or the largest activation. */
static int64_t get_longest_vector(const struct sl_builder *b)
{
    int64_t params = 0, longest = 1;
    for (int32_t p = 0; p < b->param_count; p++)
        params += (b->params[p].rows * b->params[p].columns + 15) / 16 * 16;
    for (int32_t t = 0; t < b->tensor_count; t++) {
        const struct sl_tensor *tensor = &b->tensors[t];
        int64_t rows = tensor->axis == SL_AXIS_FREE ? 0 : get_rows(&b->facts->envelope, tensor);
        if (rows * tensor->features > longest)
            longest = rows * tensor->features;
    }
    return params > longest ? params : longest;
}

static const union seqlstm_any_desc *describe_vectors(struct sl_builder *b)
{
    union seqlstm_any_desc *descs = SL_ARENA_ARRAY(b->arena, union seqlstm_any_desc, VECTOR_OPS);
    if (descs == NULL) {
        b->failed = true;
        return NULL;
    }
    descs[0] = sl_builder_describe(b, SEQLSTM_OP_OPTIMIZER, SL_AXIS_FREE);
    describe_optimizer(&b->model->train, &descs[0].optimizer);
    descs[1] = sl_builder_describe(b, SEQLSTM_OP_SQUARED_NORM, SL_AXIS_FREE);
    for (int k = 0; k < VECTOR_KINDS; k++) {
        descs[2 + k] = sl_builder_describe(b, SEQLSTM_OP_VECTOR, SL_AXIS_FREE);
        descs[2 + k].vector.kind = vector_kinds[k];
    }
    for (int k = 0; k < VECTOR_OPS; k++) {
        descs[k].head.max_rows = get_longest_vector(b);
        descs[k].head.max_sequences = descs[k].head.max_steps = 0;
        descs[k].head.flags &= ~(uint32_t)SEQLSTM_BIT_DESC_UNIFORM;
    }
    return descs;
}

static void add_input(struct sl_builder *b, enum sl_side side, const char *name, enum sl_tensor_role role,
                      const struct sl_field_facts *field)
{
    struct sl_builder_side *s = &b->sides[side];
    bool ids = field->kind == SL_FIELD_IDS;
    s->input = sl_builder_add_tensor(b, name, role, field->on_steps ? s->steps : s->sequences,
                                     ids ? SEQLSTM_DTYPE_INT32 : SEQLSTM_DTYPE_FLOAT32, 0, ids ? 1 : field->features);
}

static seqlstm_status add_layers(struct sl_builder *b)
{
    size_t encoder = b->model->encoder_count;
    bool fed = b->model->feeding.present;
    if (encoder > 0 && b->facts->source.kind == SL_FIELD_NONE)
        return sl_builder_fail(b, b->model->data.place, "the model has an encoder, but the data have no source for it");
    if (encoder > 0)
        add_input(b, SL_SIDE_ENCODER, "source", SL_TENSOR_SOURCE, &b->facts->source);
    add_input(b, SL_SIDE_DECODER, "input", SL_TENSOR_INPUT, &b->facts->input);
    for (size_t l = 0; l < b->model->layer_count && !b->failed; l++) {
        const struct sl_layer *layer = &b->model->layers[l];
        bool recurrent = sl_layer_is_recurrent(layer);
        if (encoder > 0 && l == encoder)
            SEQLSTM_TRY(sl_graph_cross(b));
        if (recurrent && (encoder == 0 || l < encoder))
            SEQLSTM_TRY(sl_graph_add_starts(b, layer));
        if (fed && (int)l == b->model->feeding.reader && !b->failed)
            SEQLSTM_TRY(sl_graph_enter_loop(b));
        if (!b->failed)
            SEQLSTM_TRY(recurrent ? sl_graph_add_recurrent(b, layer) : sl_graph_add_rowwise(b, layer));
        if (fed && (int)l == b->model->feeding.giver && !b->failed)
            SEQLSTM_TRY(sl_graph_leave_loop(b));
    }
    return SEQLSTM_OK;
}

/* Keeps only the nodes of the requested part. */
static void cut_part(struct sl_builder *b)
{
    if (b->request->part == SL_PART_ENCODER) {
        b->node_count = b->decoder_node;
        b->alternative_count = b->decoder_alternative;
    } else if (b->request->part == SL_PART_DECODER) {
        b->nodes = b->nodes ? b->nodes + b->decoder_node : NULL;
        b->node_count -= b->decoder_node;
        b->alternatives = b->alternatives ? b->alternatives + b->decoder_alternative : NULL;
        b->alternative_count -= b->decoder_alternative;
        for (int32_t a = 0; a < b->alternative_count; a++)
            b->alternatives[a].first -= b->decoder_node;
    }
}

static bool reads(const struct sl_builder *b, enum sl_tensor_role role)
{
    for (int32_t n = 0; n < b->node_count; n++)
        for (int32_t s = 0; s < b->nodes[n].slot_count; s++)
            if (b->nodes[n].slots[s] >= 0 && b->tensors[b->nodes[n].slots[s]].role == role)
                return true;
    return false;
}

/* Removes the nodes after the layer whose output is wanted. Their parameters stay (invariant 4). */
static void cut_behind(struct sl_builder *b, int32_t layer)
{
    while (b->node_count && b->nodes[b->node_count - 1].layer > layer)
        b->node_count--;
    while (b->alternative_count && b->alternatives[b->alternative_count - 1].node.layer > layer)
        b->alternative_count--;
}

/* The loop, shortened if nodes at the end were removed. */
static struct sl_loop get_loop(const struct sl_builder *b)
{
    struct sl_loop loop = {b->loop.first, b->loop.count, b->carries, b->carry_count};
    if (loop.first + loop.count > b->node_count)
        loop.count = b->node_count > loop.first ? b->node_count - loop.first : 0;
    return loop;
}

static struct sl_graph *finish(struct sl_builder *b, int32_t sums)
{
    const struct sl_layer *wanted = b->request->output_layer;
    int32_t output_layer = wanted ? wanted->index : (int32_t)b->model->layer_count - 1;
    struct sl_graph *graph = SL_ARENA_NEW(b->arena, struct sl_graph);
    if (graph == NULL)
        return NULL;
    *graph = (struct sl_graph){
        .arena = b->arena,
        .model = b->model,
        .facts = *b->facts,
        .phase = b->request->phase,
        .tensors = b->tensors,
        .tensor_count = b->tensor_count,
        .params = b->params,
        .param_count = b->param_count,
        .states = b->states,
        .state_count = b->state_count,
        .memories = b->memories,
        .memory_count = b->memory_count,
        .nodes = b->nodes,
        .node_count = b->node_count,
        .alternatives = b->alternatives,
        .alternative_count = b->alternative_count,
        .loop = get_loop(b),
        .part = b->request->part,
        .output = b->request->part == SL_PART_ENCODER ? -1 : b->layer_outputs[output_layer],
        .output_layer = output_layer,
        .output_is_logits = b->output_is_logits,
        .output_needed = b->request->need_output || b->request->phase == SL_PHASE_PREDICT,
        .reads_input = reads(b, SL_TENSOR_INPUT),
        .reads_source = reads(b, SL_TENSOR_SOURCE),
        .pieces = b->training ? b->request->pieces : 0,
        .sums = sums,
    };
    if (b->training) {
        graph->vector_ops = describe_vectors(b);
        graph->vector_op_count = VECTOR_OPS;
        graph->clip_value = b->model->train.clip_value;
    }
    return b->failed ? NULL : graph;
}

/* Weights with gradients and states of an optimizer, and a batch of any tensor, must have a number of bytes. */
static seqlstm_status check_sizes(struct sl_builder *b)
{
    const int64_t most = INT64_MAX / 64;
    int64_t elems, all = 0;
    for (int32_t p = 0; p < b->param_count; p++) {
        const struct sl_param *param = &b->params[p];
        if (!sl_checked_mul_i64(param->rows, param->columns, &elems) || !sl_checked_add_i64(all, elems, &all) ||
            all > most)
            return sl_builder_fail(b, b->model->layers[param->layer].place,
                                   "%s has %lld x %lld weights, more than there are addresses for", param->name,
                                   (long long)param->rows, (long long)param->columns);
    }
    for (int32_t t = 0; t < b->tensor_count; t++) {
        const struct sl_tensor *tensor = &b->tensors[t];
        int64_t rows = get_rows(&b->facts->envelope, tensor);
        if (!sl_checked_mul_i64(rows, tensor->features, &elems) || elems > most)
            return sl_builder_fail(b, b->model->data.place,
                                   "a batch of %lld rows of %lld numbers (%s) is larger than memory can be; use a "
                                   "smaller `batch_size` or `max_tokens`",
                                   (long long)rows, (long long)tensor->features, tensor->name);
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_graph_create(const struct sl_graph_request *request, struct sl_graph **out_graph,
                               struct seqlstm_error *err)
{
    struct sl_arena *arena = malloc(sizeof *arena);
    if (arena == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the graph");
    sl_arena_init(arena);
    const struct sl_batching *batching = &request->model->data.batching;
    struct sl_builder b = {
        .arena = arena,
        .request = request,
        .model = request->model,
        .facts = request->facts,
        .err = err,
        .training = request->phase == SL_PHASE_TRAIN,
        .sides = {[SL_SIDE_DECODER] = {SL_AXIS_STEPS, SL_AXIS_SEQUENCES, -1},
                  [SL_SIDE_ENCODER] = {SL_AXIS_SOURCE_STEPS, SL_AXIS_SOURCE_SEQUENCES, -1}},
        .place = -1,
        .sequence = -1,
        .memory = -1,
        .fed_input = -1,
        .carries_state = request->carry_state || request->part != SL_PART_WHOLE || batching->unit == SL_UNIT_STREAM ||
                         batching->bptt > 0,
    };
    int32_t sums = -1;
    struct sl_graph *graph = NULL;
    seqlstm_status status = SEQLSTM_OK;
    size_t layers = request->model->layer_count;
    b.layer_outputs = SL_ARENA_ARRAY(arena, int32_t, layers);
    b.repeated = SL_ARENA_ARRAY(arena, int32_t, layers);
    b.layer_states = SL_ARENA_ARRAY(arena, struct sl_cell_states *, layers);
    b.keys = SL_ARENA_ARRAY(arena, int32_t, layers);
    b.memories = SL_ARENA_ARRAY(arena, struct sl_memory_pair, layers + 1);
    if (!b.layer_outputs || !b.repeated || !b.layer_states || !b.keys || !b.memories)
        b.failed = true;
    else
        status = add_layers(&b);
    if (status == SEQLSTM_OK && !b.failed && request->phase != SL_PHASE_PREDICT)
        status = sl_graph_add_loss(&b, &sums);
    if (status == SEQLSTM_OK && !b.failed && request->output_layer)
        cut_behind(&b, request->output_layer->index);
    if (status == SEQLSTM_OK && !b.failed)
        cut_part(&b);
    if (status == SEQLSTM_OK && !b.failed)
        status = check_sizes(&b);
    if (status == SEQLSTM_OK && !b.failed)
        graph = finish(&b, sums);
    if (status == SEQLSTM_OK && graph == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the graph");
    if (status != SEQLSTM_OK) {
        sl_arena_deinit(arena);
        free(arena);
        return status;
    }
    *out_graph = graph;
    return SEQLSTM_OK;
}

void sl_graph_destroy(struct sl_graph *graph)
{
    if (graph == NULL)
        return;
    struct sl_arena *arena = graph->arena;
    sl_arena_deinit(arena);
    free(arena);
}

enum sl_axis sl_graph_get_axis(const struct sl_graph *graph, const struct sl_node *node)
{
    uint32_t op = node->desc.head.op;
    int32_t slot = op == SEQLSTM_OP_MERGE ? SEQLSTM_SLOT_MERGE_X : op == SEQLSTM_OP_GATHER ? SEQLSTM_SLOT_GATHER_Y : 0;
    return graph->tensors[node->slots[slot]].axis;
}

int64_t sl_graph_get_rows(const struct sl_graph *graph, const struct sl_tensor *tensor)
{
    return get_rows(&graph->facts.envelope, tensor);
}

int64_t sl_graph_param_elems(const struct sl_graph *graph)
{
    int64_t elems = 0;
    for (int32_t p = 0; p < graph->param_count; p++)
        elems += graph->params[p].rows * graph->params[p].columns;
    return elems;
}

bool sl_graph_is_only_looked_up(const struct sl_graph *graph, int32_t p)
{
    bool looked_up = false;
    for (int32_t n = 0; n < graph->node_count; n++) {
        const struct sl_node *node = &graph->nodes[n];
        if (!sl_node_uses(node, graph->params[p].tensor))
            continue;
        if (node->desc.head.op != SEQLSTM_OP_EMBEDDING)
            return false;
        looked_up = true;
    }
    return looked_up;
}

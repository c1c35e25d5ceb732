/* SPDX-License-Identifier: Apache-2.0 */
/* Walks an ONNX graph along its edges and describes every value. */
#include "interop/import/onnx_lift.h"

#include <stdlib.h>
#include <string.h>

#include "interop/import/onnx_fold.h"
#include "interop/import/onnx_rules.h"

enum { BATCH_SIZE = 10007, TIME_SIZE = 20011, SAID_MOST = 1 << 20, INPUTS_MAX = 64 };

/* ---- names -------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int32_t find_name(const struct sl_onnx_lift *lift, const char *name)
{
    const char **found =
        lift->value_count ? bsearch(&name, lift->names, (size_t)lift->value_count, sizeof *lift->names, compare_names)
                          : NULL;
    return found ? (int32_t)(found - lift->names) : -1;
}

struct sl_onnx_value *sl_onnx_lift_find(const struct sl_onnx_lift *lift, const char *name)
{
    int32_t at = *name ? find_name(lift, name) : -1;
    return at < 0 ? NULL : &lift->values[at];
}

/* All names that are read or written, each once. */
static bool collect_names(struct sl_onnx_lift *lift)
{
    const struct sl_onnx_file *file = lift->file;
    size_t count = (size_t)(file->tensor_count + file->input_count) + 1;
    for (int32_t n = 0; n < file->node_count; n++)
        count += (size_t)(file->nodes[n].input_count + file->nodes[n].output_count);
    lift->names = SL_ARENA_ARRAY(lift->arena, const char *, count);
    if (lift->names == NULL)
        return false;
    int32_t used = 0;
    for (int32_t k = 0; k < file->tensor_count; k++)
        lift->names[used++] = file->tensors[k].name;
    for (int32_t k = 0; k < file->input_count; k++)
        lift->names[used++] = file->inputs[k].name;
    for (int32_t n = 0; n < file->node_count; n++) {
        for (int32_t k = 0; k < file->nodes[n].input_count; k++)
            lift->names[used++] = file->nodes[n].inputs[k];
        for (int32_t k = 0; k < file->nodes[n].output_count; k++)
            lift->names[used++] = file->nodes[n].outputs[k];
    }
    qsort(lift->names, (size_t)used, sizeof *lift->names, compare_names);
    for (int32_t k = 0; k < used; k++)
        if (*lift->names[k] && (lift->value_count == 0 || strcmp(lift->names[lift->value_count - 1], lift->names[k])))
            lift->names[lift->value_count++] = lift->names[k];
    lift->values = SL_ARENA_ARRAY(lift->arena, struct sl_onnx_value, (size_t)lift->value_count + 1);
    return lift->values != NULL;
}

/* ---- inputs ------------------------------------------------------------------------------------------------- */

static void set_constant(struct sl_onnx_value *value, const struct sl_onnx_tensor *tensor)
{
    value->kind = SL_ONNX_OPAQUE;
    value->reason = "it has numbers of a type that is not read";
    value->input = tensor->name;
    if (tensor->floats == NULL && tensor->ints == NULL)
        return;
    value->kind = SL_ONNX_CONSTANT;
    value->constant = (struct sl_onnx_constant){
        .rank = tensor->rank, .elems = tensor->elems, .floats = tensor->floats, .ints = tensor->ints};
    memcpy(value->constant.shape, tensor->shape, sizeof tensor->shape);
}

/* Sizes of batch and time: those of the file, or numbers that occur nowhere else. */
static void set_sizes(struct sl_onnx_lift *lift)
{
    const struct sl_onnx_reading *r = &lift->reading;
    lift->batch = lift->time = 1;
    for (int32_t d = 0; d < r->rank; d++) {
        int64_t said = r->input->rank == r->rank && r->input->dims[d] <= SAID_MOST ? r->input->dims[d] : -1;
        if (r->roles[d] == 'b')
            lift->batch = said > 0 ? said : BATCH_SIZE;
        if (r->roles[d] == 't') {
            lift->time = said > 0 ? said : TIME_SIZE;
            lift->is_time_free = said <= 0;
        }
    }
}

static void set_main_input(struct sl_onnx_lift *lift, struct sl_onnx_value *value)
{
    const struct sl_onnx_reading *r = &lift->reading;
    value->kind = SL_ONNX_DATA;
    value->dims.rank = r->rank;
    for (int32_t d = 0; d < r->rank; d++) {
        if (r->roles[d] == 'b')
            sl_onnx_dims_set(&value->dims, d, SL_ONNX_ATOM_BATCH, lift->batch);
        else if (r->roles[d] == 't')
            sl_onnx_dims_set(&value->dims, d, SL_ONNX_ATOM_TIME, lift->time);
        else
            sl_onnx_dims_set(&value->dims, d, SL_ONNX_ATOM_FEATURE, r->features);
    }
    sl_onnx_lift_add_term(lift, SL_ONNX_TERM_INPUT, NULL, r->features);
    if (!lift->arena->failed)
        value->features = sl_onnx_lift_take_all(lift, NULL);
}

/* An input other than the main one: lengths, or initial states. */
static void set_other_input(const struct sl_onnx_lift *lift, const struct sl_onnx_port *port,
                            struct sl_onnx_value *value)
{
    enum { FLOAT = 1, INT32 = 6, INT64 = 7 };
    value->kind = SL_ONNX_OPAQUE;
    value->reason = "the model has one input";
    value->input = port->name;
    if (port->type == FLOAT) {
        value->kind = SL_ONNX_FED;
    } else if ((port->type == INT32 || port->type == INT64) && (port->rank == 1 || port->rank < 0)) {
        value->kind = SL_ONNX_LENGTHS;
        value->dims.rank = 1;
        sl_onnx_dims_set(&value->dims, 0, SL_ONNX_ATOM_BATCH, lift->batch);
    }
}

static void set_inputs(struct sl_onnx_lift *lift)
{
    const struct sl_onnx_file *file = lift->file;
    for (int32_t v = 0; v < lift->value_count; v++) {
        lift->values[v].reason = "nothing gives it a value";
        lift->values[v].input = lift->names[v];
    }
    for (int32_t k = 0; k < file->input_count; k++)
        if (*file->inputs[k].name) /* an empty name is none */
            set_other_input(lift, &file->inputs[k], &lift->values[find_name(lift, file->inputs[k].name)]);
    struct sl_onnx_value *main_input = sl_onnx_lift_find(lift, lift->reading.input->name);
    if (main_input)
        set_main_input(lift, main_input);
    for (int32_t k = 0; k < file->tensor_count; k++)
        if (*file->tensors[k].name)
            set_constant(&lift->values[find_name(lift, file->tensors[k].name)], &file->tensors[k]);
}

/* ---- nodes -------------------------------------------------------------------------------------------------- */

static bool lift_constant_node(const struct sl_onnx_job *job)
{
    const struct sl_onnx_node *node = job->node;
    struct sl_onnx_value *out = &job->outputs[0];
    const struct sl_onnx_attribute *a = node->attribute_count ? &node->attributes[0] : NULL;
    if (a == NULL)
        return false;
    if (a->tensor) {
        set_constant(out, a->tensor);
        out->input = NULL;
        return out->kind == SL_ONNX_CONSTANT;
    }
    bool is_list = strcmp(a->name, "value_floats") == 0 || strcmp(a->name, "value_ints") == 0;
    bool is_float = strcmp(a->name, "value_float") == 0 || strcmp(a->name, "value_floats") == 0;
    if (!is_list && !is_float && strcmp(a->name, "value_int") != 0)
        return false;
    out->kind = SL_ONNX_CONSTANT;
    out->constant = (struct sl_onnx_constant){.rank = is_list,
                                              .shape = {a->count},
                                              .elems = is_list ? a->count : 1,
                                              .floats = is_float ? &a->f : NULL,
                                              .ints = is_float ? NULL : &a->i};
    if (is_list && is_float)
        out->constant.floats = a->floats;
    else if (is_list)
        out->constant.ints = a->ints;
    return out->constant.floats || out->constant.ints;
}

static bool lift_shape(const struct sl_onnx_job *job)
{
    const struct sl_onnx_value *in = job->inputs[0];
    int64_t shape[SL_ONNX_RANK_MAX];
    int32_t rank = in->dims.rank;
    if (in->kind == SL_ONNX_CONSTANT) {
        rank = in->constant.rank;
        memcpy(shape, in->constant.shape, sizeof shape);
    } else if (in->kind == SL_ONNX_DATA || in->kind == SL_ONNX_LENGTHS) {
        sl_onnx_dims_get_shape(&in->dims, shape);
    } else {
        return false;
    }
    int64_t start = sl_onnx_node_get_int(job->node, "start", 0), end = sl_onnx_node_get_int(job->node, "end", rank);
    start += start < 0 ? rank : 0;
    end += end < 0 ? rank : 0;
    end = end > rank ? rank : end;
    if (start < 0 || start > end)
        return false;
    job->outputs[0].kind = SL_ONNX_CONSTANT;
    job->outputs[0].constant = sl_onnx_constant_of_ints(job->lift->arena, shape + start, (int32_t)(end - start));
    return job->outputs[0].constant.ints != NULL;
}

static bool fold(const struct sl_onnx_job *job)
{
    struct sl_onnx_constant outputs[SL_ONNX_OUTPUTS_MAX];
    int32_t count = 0;
    for (int32_t k = 0; k < job->input_count; k++)
        if (job->inputs[k] && job->constants[k] == NULL)
            return false;
    if (!sl_onnx_constant_fold(job->lift->arena, job->node, job->constants, job->input_count, outputs,
                               SL_ONNX_OUTPUTS_MAX, &count))
        return false;
    for (int32_t k = 0; k < count; k++) {
        job->outputs[k].kind = SL_ONNX_CONSTANT;
        job->outputs[k].constant = outputs[k];
    }
    return true;
}

static bool describe(const struct sl_onnx_job *job, const char **reason)
{
    const char *op = job->node->op;
    if (*job->node->domain && strcmp(job->node->domain, "ai.onnx") != 0)
        return false;
    if (strcmp(op, "Constant") == 0)
        return lift_constant_node(job);
    if (job->input_count == 0 || job->inputs[0] == NULL)
        return false;
    if (strcmp(op, "Shape") == 0)
        return lift_shape(job);
    return fold(job) || sl_onnx_lift_recurrent(job, reason) || sl_onnx_lift_layout(job, reason) ||
           sl_onnx_lift_pool(job, reason) || sl_onnx_lift_math(job, reason);
}

static void lift_node(struct sl_onnx_lift *lift, const struct sl_onnx_node *node)
{
    const struct sl_onnx_value *inputs[INPUTS_MAX];
    const struct sl_onnx_constant *constants[INPUTS_MAX];
    struct sl_onnx_value outputs[SL_ONNX_OUTPUTS_MAX] = {{0}};
    struct sl_onnx_job job = {lift, node, inputs, constants, node->input_count, outputs};
    const struct sl_onnx_value *culprit = NULL;
    const char *reason = NULL;
    bool is_described =
        !lift->arena->failed && node->input_count <= INPUTS_MAX && node->output_count <= SL_ONNX_OUTPUTS_MAX;
    for (int32_t k = 0; k < node->input_count && is_described; k++) {
        inputs[k] = sl_onnx_lift_find(lift, node->inputs[k]);
        constants[k] = inputs[k] && inputs[k]->kind == SL_ONNX_CONSTANT ? &inputs[k]->constant : NULL;
        if (inputs[k] && inputs[k]->kind == SL_ONNX_OPAQUE && culprit == NULL)
            culprit = inputs[k];
    }
    is_described = is_described && culprit == NULL && describe(&job, &reason);
    for (int32_t k = 0; k < node->output_count; k++) {
        struct sl_onnx_value *out = sl_onnx_lift_find(lift, node->outputs[k]);
        if (out == NULL)
            continue;
        if (is_described && outputs[k].kind != SL_ONNX_OPAQUE) {
            *out = outputs[k];
            out->via = node;
            continue;
        }
        *out = culprit ? *culprit : (struct sl_onnx_value){.via = node, .reason = reason};
    }
}

/* ---- the walk ----------------------------------------------------------------------------------------------- */

/* Finds the node that writes each value. False: two nodes write the same one. */
static bool find_writers(const struct sl_onnx_lift *lift, int32_t *writers)
{
    for (int32_t v = 0; v < lift->value_count; v++)
        writers[v] = -1;
    for (int32_t n = 0; n < lift->file->node_count; n++)
        for (int32_t k = 0; k < lift->file->nodes[n].output_count; k++) {
            const char *name = lift->file->nodes[n].outputs[k];
            int32_t v = *name ? find_name(lift, name) : -1;
            if (v >= 0 && writers[v] >= 0)
                return false;
            if (v >= 0)
                writers[v] = n;
        }
    return true;
}

/* Visits each node after the nodes that it reads from, in whatever order the file has them: depth first, with an
 * explicit stack. */
static bool walk(struct sl_onnx_lift *lift, const int32_t *writers, int32_t *stack, int32_t *next)
{
    enum { DONE = INT32_MAX };
    const struct sl_onnx_file *file = lift->file;
    for (int32_t root = 0; root < file->node_count; root++) {
        int32_t depth = 0;
        if (next[root] == DONE)
            continue;
        stack[depth++] = root;
        next[root] = 1;
        while (depth > 0) {
            int32_t n = stack[depth - 1], k = next[n]++ - 1;
            if (k >= file->nodes[n].input_count) {
                lift_node(lift, &file->nodes[n]);
                next[n] = DONE;
                depth--;
                continue;
            }
            int32_t v = *file->nodes[n].inputs[k] ? find_name(lift, file->nodes[n].inputs[k]) : -1;
            int32_t writer = v < 0 ? -1 : writers[v];
            if (writer < 0 || next[writer] == DONE)
                continue;
            if (next[writer] != 0)
                return false; /* a cycle */
            stack[depth++] = writer;
            next[writer] = 1;
        }
    }
    return true;
}

seqlstm_status sl_onnx_lift_file(struct sl_onnx_lift *lift, const char *path, struct seqlstm_error *err)
{
    size_t nodes = (size_t)lift->file->node_count;
    int32_t *writers = NULL, *stack = SL_ARENA_ARRAY(lift->arena, int32_t, nodes + 1);
    int32_t *next = SL_ARENA_ARRAY(lift->arena, int32_t, nodes + 1);
    lift->cells = SL_ARENA_ARRAY(lift->arena, struct sl_onnx_cell_use, nodes + 1);
    set_sizes(lift);
    if (collect_names(lift))
        writers = SL_ARENA_ARRAY(lift->arena, int32_t, (size_t)lift->value_count + 1);
    if (writers == NULL || stack == NULL || next == NULL || lift->cells == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", path);
    set_inputs(lift);
    if (!find_writers(lift, writers))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: damaged ONNX file: two nodes write one value", path);
    if (!walk(lift, writers, stack, next))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: damaged ONNX file: its nodes form a circle", path);
    if (lift->arena->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", path);
    return SEQLSTM_OK;
}

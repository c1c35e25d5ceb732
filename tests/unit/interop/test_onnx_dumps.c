/* SPDX-License-Identifier: Apache-2.0 */
/* What is read from ONNX files, as a whole: their structure, what lifting makes of their nodes, and the weights, notes
 * or refusals of an import. The files are written in lines; see support/onnx_text.h and support/dump_file.h. The same
 * reading and writing without memory for one of its parts.
 */
#include <unistd.h>

#include "dump_file.h"
#include "model_fixture.h"
#include "onnx_defaults.h"
#include "onnx_text.h"
#include "onnx_valid.h"
#include "scratch.h"

#define OOM_ARENAS
#include "oom.h"

#include "base/system/file.h"
#include "interop/import/onnx_file.h"
#include "interop/import/onnx_lift.h"
#include "interop/onnx.h"

static struct sl_onnx_file *open_text(struct sl_buf *out, const char *text)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_onnx_file *file = NULL;
    char *lines = strdup(text);
    onnx_write_text(lines, scratch_path("m.onnx"));
    free(lines);
    if (sl_onnx_file_open(scratch_path("m.onnx"), &file, &err) != SEQLSTM_OK) {
        const char *message = strstr(err.message, "m.onnx");
        sl_buf_printf(out, "error %d: %s\n", (int)err.code, message ? message : err.message);
    }
    return file;
}

/* ---- the structure --------------------------------------------------------------------------------------------- */

static void add_numbers(struct sl_buf *out, const float *floats, const int64_t *ints, int64_t count)
{
    enum { SHOWN = 40 };
    for (int64_t e = 0; e < count && e < SHOWN; e++)
        if (floats)
            sl_buf_printf(out, " %g", (double)floats[e]);
        else if (ints)
            sl_buf_printf(out, " %lld", (long long)ints[e]);
    if (floats == NULL && ints == NULL)
        sl_buf_append_text(out, " unread");
    else if (count > SHOWN)
        sl_buf_append_text(out, " ...");
}

static void add_shape(struct sl_buf *out, const int64_t *shape, int32_t rank)
{
    sl_buf_append_text(out, " [");
    for (int32_t d = 0; d < rank; d++)
        sl_buf_printf(out, d ? " %lld" : "%lld", (long long)shape[d]);
    sl_buf_append_text(out, "]");
}

static void add_tensor(struct sl_buf *out, const struct sl_onnx_tensor *tensor)
{
    sl_buf_printf(out, "tensor `%s`", tensor->name);
    add_shape(out, tensor->shape, tensor->rank);
    sl_buf_append_text(out, tensor->floats ? " floats" : tensor->ints ? " integers" : "");
    add_numbers(out, tensor->floats, tensor->ints, tensor->elems);
    sl_buf_append_text(out, "\n");
}

static void add_attribute(struct sl_buf *out, const struct sl_onnx_attribute *a)
{
    sl_buf_printf(out, "  %s i %lld f %g", a->name, (long long)a->i, (double)a->f);
    if (a->text)
        sl_buf_printf(out, " text `%s`", a->text);
    if (a->floats || a->ints)
        add_numbers(out, a->floats, a->ints, a->count);
    for (int32_t k = 0; a->texts && k < a->count; k++)
        sl_buf_printf(out, " `%s`", a->texts[k]);
    sl_buf_append_text(out, a->tensor ? " " : "\n");
    if (a->tensor)
        add_tensor(out, a->tensor);
}

static void add_port(struct sl_buf *out, const char *what, const struct sl_onnx_port *port)
{
    sl_buf_printf(out, "%s `%s` type %lld rank %d", what, port->name, (long long)port->type, port->rank);
    for (int32_t d = 0; d < port->rank; d++)
        sl_buf_printf(out, " %lld%s", (long long)port->dims[d], port->params[d] ? port->params[d] : "");
    sl_buf_append_text(out, "\n");
}

static void add_file(struct sl_buf *out, const struct sl_onnx_file *file)
{
    sl_buf_printf(out, "opset %lld\n", (long long)file->opset);
    for (int32_t k = 0; k < file->input_count; k++)
        add_port(out, "input", &file->inputs[k]);
    for (int32_t k = 0; k < file->output_count; k++)
        add_port(out, "output", &file->outputs[k]);
    for (int32_t k = 0; k < file->tensor_count; k++)
        add_tensor(out, &file->tensors[k]);
    for (int32_t n = 0; n < file->node_count; n++) {
        const struct sl_onnx_node *node = &file->nodes[n];
        sl_buf_printf(out, "node %s `%s` domain `%s`", node->op, node->name, node->domain);
        for (int32_t k = 0; k < node->input_count; k++)
            sl_buf_printf(out, " <`%s`", sl_onnx_node_get_input(node, k));
        for (int32_t k = 0; k < node->output_count; k++)
            sl_buf_printf(out, " >`%s`", sl_onnx_node_get_output(node, k));
        assert_string_equal(sl_onnx_node_get_input(node, node->input_count), "");
        assert_string_equal(sl_onnx_node_get_output(node, node->output_count), "");
        sl_buf_append_text(out, "\n");
        for (int32_t a = 0; a < node->attribute_count; a++)
            add_attribute(out, &node->attributes[a]);
    }
}

static void dump_file(struct sl_buf *out, const char *title, const char *text)
{
    struct sl_onnx_file *file = open_text(out, text);
    (void)title;
    if (file)
        add_file(out, file);
    sl_onnx_file_close(file);
}

/* ---- lifting ----------------------------------------------------------------------------------------------------- */

static void add_dims(struct sl_buf *out, const struct sl_onnx_dims *dims)
{
    sl_buf_append_text(out, " [");
    for (int32_t d = 0; d < dims->rank; d++) {
        sl_buf_append_text(out, d ? " " : "");
        for (int32_t a = 0; a < dims->at[d].count; a++)
            sl_buf_printf(out, "%s%c%lld", a ? "*" : "", "btf"[dims->at[d].atoms[a].kind],
                          (long long)dims -> at[d].atoms[a].size);
        sl_buf_append_text(out, dims->at[d].count ? "" : "1");
    }
    sl_buf_append_text(out, "]");
}

/* Runs of neighbouring channels of a term: "#2:0-3". */
static void add_features(struct sl_buf *out, const struct sl_onnx_features *features)
{
    for (int64_t k = 0; k < features->count;) {
        int64_t end = k + 1;
        while (end < features->count && features->list[end].term == features->list[k].term &&
               features->list[end].channel == features->list[end - 1].channel + 1)
            end++;
        sl_buf_printf(out, " #%d:%d", features->list[k].term, features->list[k].channel);
        if (end > k + 1)
            sl_buf_printf(out, "-%d", features->list[end - 1].channel);
        k = end;
    }
    if (features->via)
        sl_buf_printf(out, " via %s", features->via->op);
}

static void add_constant(struct sl_buf *out, const struct sl_onnx_constant *c)
{
    enum { SHOWN = 24 };
    add_shape(out, c->shape, c->rank);
    for (int64_t e = 0; e < c->elems && e < SHOWN; e++)
        sl_buf_printf(out, " %g", sl_onnx_constant_get(c, e));
    sl_buf_append_text(out, c->elems > SHOWN ? " ..." : "");
}

static void add_value(struct sl_buf *out, const char *name, const struct sl_onnx_value *value)
{
    static const char *const kinds[] = {"opaque", "constant", "data", "lengths", "fed", "steps", "mask", "count"};
    sl_buf_printf(out, "`%s` %s", name, kinds[value->kind]);
    if (value->kind == SL_ONNX_CONSTANT)
        add_constant(out, &value->constant);
    else if (value->kind == SL_ONNX_OPAQUE)
        sl_buf_printf(out, ": %s", value->reason ? value->reason : "no layer computes it");
    else if (value->kind != SL_ONNX_FED)
        add_dims(out, &value->dims);
    if (value->kind == SL_ONNX_DATA)
        add_features(out, &value->features);
    if (value->kind == SL_ONNX_LENGTHS)
        sl_buf_printf(out, " %+d%s", (int)value->shift, value->is_capped ? " capped" : "");
    if (value->kind == SL_ONNX_MASK)
        sl_buf_printf(out, " kind %u", value->mask);
    if (value->via)
        sl_buf_printf(out, " of %s", value->via->op);
    if (value->input && (value->kind == SL_ONNX_FED || value->kind == SL_ONNX_OPAQUE))
        sl_buf_printf(out, " of input `%s`", value->input);
    sl_buf_append_text(out, "\n");
}

static void add_term(struct sl_buf *out, int32_t index, const struct sl_onnx_term *term)
{
    static const char *const kinds[] = {"input", "sequence", "final h",   "final c", "embedding", "product", "shift",
                                        "scale", "activate", "normalise", "pool",    "merge",     "masked"};
    sl_buf_printf(out, "#%d %s width %lld", index, kinds[term->kind], (long long)term->width);
    if (term->node)
        sl_buf_printf(out, " of %s", term->node->op);
    if (term->cell >= 0)
        sl_buf_printf(out, " cell %d direction %d", term->cell, term->direction);
    for (int32_t k = 0; k < term->arg_count; k++) {
        sl_buf_append_text(out, " (");
        add_features(out, &term->args[k]);
        sl_buf_append_text(out, ")");
    }
    if (term->table.elems)
        add_constant(out, &term->table);
    for (int v = 0; v < 2; v++)
        if (term->vectors[v]) {
            sl_buf_append_text(out, " by");
            add_numbers(out, term->vectors[v], NULL, term->width);
        }
    if (term->kind == SL_ONNX_TERM_ACTIVATION)
        sl_buf_printf(out, " function %u %g %g", term->activation.kind, (double)term->activation.alpha,
                      (double)term->activation.beta);
    if (term->kind == SL_ONNX_TERM_NORM)
        sl_buf_printf(out, " epsilon %g", (double)term->epsilon);
    if (term->kind >= SL_ONNX_TERM_POOL)
        sl_buf_printf(out, " kind %u", term->pool_or_merge);
    if (term->kind == SL_ONNX_TERM_MASKED)
        sl_buf_printf(out, " blank %g", term->blank);
    sl_buf_append_text(out, "\n");
}

static void add_cell(struct sl_buf *out, const struct sl_onnx_cell_use *cell)
{
    static const char *const names[] = {"W", "R", "B", "P"};
    sl_buf_printf(out, "cell %s hidden %lld directions %d%s%s reads", cell->node->op, (long long)cell->hidden,
                  cell->directions, cell->is_batch_first ? " batch first" : "",
                  cell->has_fixed_lengths ? " fixed lengths" : "");
    add_features(out, &cell->x);
    for (int k = 0; k < 2; k++)
        sl_buf_append_text(out, cell->states[k] ? " begins elsewhere" : " begins at zero");
    sl_buf_append_text(out, "\n");
    for (int k = 0; k < 4; k++)
        if (cell->weights[k]) {
            sl_buf_printf(out, "  %s", names[k]);
            add_constant(out, cell->weights[k]);
            sl_buf_append_text(out, "\n");
        }
}

/* The title ends with the roles of the input's dimensions and the number of features: "... (btf 3)"; "ids": of ids. */
static void dump_lift(struct sl_buf *out, const char *title, const char *text)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_onnx_file *file = open_text(out, text);
    const char *roles = strrchr(title, '(');
    if (file == NULL || roles == NULL)
        fail_msg("%s: no file, or no roles", title);
    struct sl_onnx_lift lift = {.arena = &file->arena, .file = file};
    lift.reading = (struct sl_onnx_reading){.input = &file->inputs[0],
                                            .rank = (int32_t)strcspn(roles + 1, " "),
                                            .features = atoll(strchr(roles, ' ')),
                                            .is_ids = strstr(roles, "ids") != NULL};
    memcpy(lift.reading.roles, roles + 1, (size_t)lift.reading.rank);
    if (sl_onnx_lift_file(&lift, "m.onnx", &err) != SEQLSTM_OK) {
        sl_buf_printf(out, "error %d: %s\n", (int)err.code, err.message);
    } else {
        for (int32_t v = 0; v < lift.value_count; v++)
            add_value(out, lift.names[v], &lift.values[v]);
        for (int32_t t = 0; t < lift.term_count; t++)
            add_term(out, t, &lift.terms[t]);
        for (int32_t c = 0; c < lift.cell_count; c++)
            add_cell(out, &lift.cells[c]);
        sl_buf_printf(out, "batch %lld time %lld%s%s%s\n", (long long)lift.batch, (long long)lift.time,
                      lift.is_time_free ? " free" : "", lift.uses_lengths ? ", has lengths" : "",
                      lift.has_order_error ? ", in another order" : "");
        assert_null(sl_onnx_lift_find(&lift, "no such name"));
        assert_null(sl_onnx_lift_find(&lift, ""));
    }
    sl_onnx_file_close(file);
}

/* ---- importing --------------------------------------------------------------------------------------------------- */

static struct sl_data_facts find_facts(const char *title)
{
    const bool ids = strstr(title, "ids") != NULL, steps = strstr(title, "records") == NULL;
    const char *width = strstr(title, "width ");
    struct sl_data_facts facts = {.input = {.kind = ids ? SL_FIELD_IDS : SL_FIELD_VALUES, .on_steps = steps},
                                  .target = {.kind = SL_FIELD_VALUES, .features = 2},
                                  .has_steps = steps,
                                  .envelope = {.sequences = 4, .steps = steps ? 6 : 1, .rows = steps ? 19 : 4}};
    facts.input.features = ids ? 1 : width ? atoll(width + strlen("width ")) : 3;
    facts.input.classes = ids ? 5 : 0;
    facts.target.on_steps = strstr(title, "targets") != NULL;
    if (strstr(title, "tied"))
        facts.target.features = facts.input.classes;
    if (strstr(title, "coder")) {
        facts.source = (struct sl_field_facts){.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 4};
        facts.target = facts.input;
        facts.envelope.source_steps = 5;
        facts.envelope.source_rows = 17;
    }
    return facts;
}

/* All values of small parameters; of each a sum that tells their order. */
static void add_param(struct sl_buf *out, const struct sl_param *param, const float *values)
{
    enum { SHOWN = 12 };
    double sum = 0;
    sl_buf_printf(out, "%s [%lld %lld]", param->name, (long long)param->rows, (long long)param->columns);
    for (int64_t e = 0; e < param->rows * param->columns; e++) {
        if (e < SHOWN)
            sl_buf_printf(out, " %g", (double)values[e]);
        sum += (double)(e % 97 + 1) * (double)values[e];
    }
    sl_buf_printf(out, ", sum %g\n", sum);
}

/* Parameters that are all 0, and are released as they came. */
static float **make_values(const struct sl_graph *graph)
{
    float **values = calloc((size_t)graph->param_count + 1, sizeof *values);
    for (int32_t p = 0; p < graph->param_count; p++)
        values[p] = calloc((size_t)(graph->params[p].rows * graph->params[p].columns), sizeof **values);
    return values;
}

static void free_values(const struct sl_graph *graph, float **values)
{
    for (int32_t p = 0; p < graph->param_count; p++)
        free(values[p]);
    free(values);
}

static void add_import(struct sl_buf *out, const struct sl_graph *graph)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf notes = {0};
    float **values = make_values(graph);
    const seqlstm_status status = sl_onnx_read(graph, scratch_path("m.onnx"), values, &notes, &err);
    if (status == SEQLSTM_OK) {
        sl_buf_append_text(out, sl_buf_text(&notes));
        for (int32_t p = 0; p < graph->param_count; p++)
            add_param(out, &graph->params[p], values[p]);
    } else {
        const char *message = strstr(err.message, "m.onnx");
        sl_buf_printf(out, "error %d", (int)status);
        if (strstr(err.where, ".yaml")) /* otherwise it is a line of the sources */
            sl_buf_printf(out, " at %s", err.where);
        sl_buf_printf(out, ": %s\n", message ? message : err.message);
    }
    free_values(graph, values);
    sl_buf_deinit(&notes);
}

/* Without memory for the n-th part, of the heap or of an arena: NO_MEMORY, or what comes of it otherwise. */
static void fail_import_from(const struct sl_graph *graph, void fail_at(int n), bool disarm(void))
{
    float **values = make_values(graph), **got = make_values(graph);
    struct sl_buf notes = {0}, got_notes = {0};
    const seqlstm_status expected = sl_onnx_read(graph, scratch_path("m.onnx"), values, &notes, NULL);
    for (int n = 1;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        fail_at(n);
        const seqlstm_status status = sl_onnx_read(graph, scratch_path("m.onnx"), got, &got_notes, &err);
        const bool fails = disarm();
        if (status != expected && !(fails && status == SEQLSTM_NO_MEMORY))
            fail_msg("allocation %d: status %d, %s", n, (int)status, err.message);
        if (status == SEQLSTM_NO_MEMORY)
            assert_non_null(strstr(err.message, "no memory"));
        for (int32_t p = 0; status == SEQLSTM_OK && p < graph->param_count; p++)
            assert_memory_equal(got[p], values[p],
                                (size_t)(graph->params[p].rows * graph->params[p].columns) * sizeof **values);
        if (status == SEQLSTM_OK && !got_notes.failed)
            assert_string_equal(sl_buf_text(&got_notes), sl_buf_text(&notes));
        sl_buf_deinit(&got_notes);
        if (!fails)
            break;
    }
    sl_buf_deinit(&notes);
    free_values(graph, values);
    free_values(graph, got);
}

static void fail_import(struct sl_buf *out, const struct sl_graph *graph)
{
    (void)out;
    fail_import_from(graph, oom_fail_at, oom_disarm);
    fail_import_from(graph, arena_fail_at, arena_disarm);
}

/* The model file up to a line of dashes, then the ONNX file. */
static void open_import(struct sl_buf *out, const char *title, const char *text,
                        void read(struct sl_buf *out, const struct sl_graph *graph))
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const char *divider = strstr(text, "\n---\n");
    if (divider == NULL)
        fail_msg("%s: no line of dashes", title);
    char *model = strndup(text, (size_t)(divider + 1 - text)), *lines = strdup(divider + strlen("\n---\n"));
    struct loaded loaded = load(model);
    if (loaded.model == NULL)
        fail_msg("%s: %s", title, sl_buf_text(&loaded.text));
    const struct sl_data_facts facts = find_facts(title);
    struct sl_graph_request request = {
        .model = loaded.model, .facts = &facts, .phase = SL_PHASE_PREDICT, .need_output = true};
    struct sl_graph *graph = NULL;
    if (sl_graph_create(&request, &graph, &err) != SEQLSTM_OK)
        fail_msg("%s: %s", title, err.message);
    onnx_write_text(lines, scratch_path("m.onnx"));
    read(out, graph);
    sl_graph_destroy(graph);
    unload(&loaded);
    free(model);
    free(lines);
}

static void dump_import(struct sl_buf *out, const char *title, const char *text)
{
    open_import(out, title, text, add_import);
}

static void import_without_memory(struct sl_buf *out, const char *title, const char *text)
{
    open_import(out, title, text, fail_import);
}

/* Attributes that a node leaves out are those that ONNX says. */
static void compare_defaults(const char *title, const char *text, dump_case_fn *make)
{
    static const char divider[] = "\n---\n";
    const char *found = strstr(text, divider), *lines = found ? found + strlen(divider) : text;
    struct sl_buf spelled = {0}, plain = {0}, full = {0};
    sl_buf_append(&spelled, text, (size_t)(lines - text));
    onnx_spell_defaults(&spelled, lines);
    make(&plain, title, text);
    make(&full, title, sl_buf_text(&spelled));
    if (strcmp(sl_buf_text(&plain), sl_buf_text(&full)) != 0)
        fail_msg("%s:\n%s%s\ninstead of\n%s", title, sl_buf_text(&spelled), sl_buf_text(&full), sl_buf_text(&plain));
    sl_buf_deinit(&spelled);
    sl_buf_deinit(&plain);
    sl_buf_deinit(&full);
}

static void import_with_defaults(struct sl_buf *out, const char *title, const char *text)
{
    (void)out;
    compare_defaults(title, text, dump_import);
}

static void lift_with_defaults(struct sl_buf *out, const char *title, const char *text)
{
    (void)out;
    compare_defaults(title, text, dump_lift);
}

/* ---- exporting --------------------------------------------------------------------------------------------------- */

static void add_export(struct sl_buf *out, const struct sl_graph *graph, const float *const *values)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_onnx_file *file = NULL;
    if (sl_onnx_write(graph, values, scratch_path("m.onnx"), &err) == SEQLSTM_OK) {
        onnx_check_file(scratch_path("m.onnx"));
        assert_int_equal(sl_onnx_file_open(scratch_path("m.onnx"), &file, &err), SEQLSTM_OK);
        add_file(out, file);
    } else {
        sl_buf_printf(out, "error %d at %s: %s\n", (int)err.code, err.where, err.message);
    }
    sl_onnx_file_close(file);
}

/* Without memory for the n-th part: NO_MEMORY and no file, or the whole file. */
static void fail_export(struct sl_buf *out, const struct sl_graph *graph, const float *const *values)
{
    char *whole = NULL, *got;
    size_t bytes = 0, got_bytes;
    const char *path = scratch_path("m.onnx");
    unlink(path);
    const seqlstm_status expected = sl_onnx_write(graph, values, path, NULL);
    (void)out;
    if (expected == SEQLSTM_OK)
        assert_int_equal(sl_file_read(path, 1 << 24, &whole, &bytes, NULL), SEQLSTM_OK);
    for (int n = 1;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        unlink(path);
        oom_fail_at(n);
        const seqlstm_status status = sl_onnx_write(graph, values, path, &err);
        const bool fails = oom_disarm();
        if (status != expected && !(fails && status == SEQLSTM_NO_MEMORY))
            fail_msg("allocation %d: status %d, %s", n, (int)status, err.message);
        assert_int_equal(sl_file_exists(path), status == SEQLSTM_OK);
        if (status == SEQLSTM_OK) {
            assert_int_equal(sl_file_read(path, 1 << 24, &got, &got_bytes, NULL), SEQLSTM_OK);
            assert_int_equal(got_bytes, bytes);
            assert_memory_equal(got, whole, bytes);
            free(got);
        }
        if (!fails)
            break;
    }
    free(whole);
}

/* The title says which part of a model with encoder and decoder is written. */
static void open_export(struct sl_buf *out, const char *title, const char *text,
                        void write(struct sl_buf *out, const struct sl_graph *graph, const float *const *values))
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_data_facts facts = find_facts(title);
    struct sl_graph_request request = {.facts = &facts, .phase = SL_PHASE_PREDICT, .need_output = true};
    struct sl_graph *graph = NULL;
    struct loaded loaded = load(text);
    if (loaded.model == NULL)
        fail_msg("%s: %s", title, sl_buf_text(&loaded.text));
    if (strstr(title, "coder"))
        request.part = strstr(title, "encoder") ? SL_PART_ENCODER : SL_PART_DECODER;
    request.model = loaded.model;
    if (sl_graph_create(&request, &graph, &err) != SEQLSTM_OK)
        fail_msg("%s: %s", title, err.message);
    float **values = make_values(graph);
    for (int32_t p = 0; p < graph->param_count; p++)
        for (int64_t e = 0; e < graph->params[p].rows * graph->params[p].columns; e++)
            values[p][e] = (float)onnx_draw(p, e);
    write(out, graph, (const float *const *)values);
    free_values(graph, values);
    sl_graph_destroy(graph);
    unload(&loaded);
}

static void dump_export(struct sl_buf *out, const char *title, const char *text)
{
    open_export(out, title, text, add_export);
}

static void export_without_memory(struct sl_buf *out, const char *title, const char *text)
{
    open_export(out, title, text, fail_export);
}

/* The cases of a file of dumps, for something else than what stands there. */
static void replay_file(const char *name, dump_case_fn *make)
{
    struct sl_buf now = {0};
    char *text = golden_read(name);
    replay_dumps(&now, text, make);
    free(text);
    sl_buf_deinit(&now);
}

static void structure_of_files(void **state)
{
    (void)state;
    compare_dumps("onnx_files", dump_file);
}

static void what_nodes_mean(void **state)
{
    (void)state;
    compare_dumps("onnx_lift", dump_lift);
}

static void imports_and_refusals(void **state)
{
    (void)state;
    compare_dumps("onnx_import", dump_import);
}

static void exports(void **state)
{
    (void)state;
    compare_dumps("onnx_export", dump_export);
}

static void defaults_of_attributes(void **state)
{
    (void)state;
    replay_file("dumps/onnx_lift.txt", lift_with_defaults);
    replay_file("dumps/onnx_import.txt", import_with_defaults);
}

static void without_memory(void **state)
{
    (void)state;
    replay_file("dumps/onnx_import.txt", import_without_memory);
    replay_file("dumps/onnx_export.txt", export_without_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structure_of_files),   cmocka_unit_test(what_nodes_mean),
        cmocka_unit_test(imports_and_refusals), cmocka_unit_test(exports),
        cmocka_unit_test(without_memory),       cmocka_unit_test(defaults_of_attributes),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

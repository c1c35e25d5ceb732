/* SPDX-License-Identifier: Apache-2.0 */
/* Primitives of recurrent layers by shape, and each operation's cache of them and of their calls.
 *
 * Invariant: entries in use are never destroyed. At most ODN_ENTRIES_IDLE idle ones are kept; the least recently used
 * go first. Operations of inference have equal shares of ODN_ENTRIES_INFERENCE, if that is less: those of all models,
 * workers and uses of a server are in one process, and meet ever new shapes. */
#include "cpu-onednn/recurrent/recurrent.h"

/* The descriptors of one pass; element i of the arrays is used if given[i] is set. */
struct descriptors {
    struct odn_layout values[ODN_RECURRENT_COUNT], grads[ODN_RECURRENT_COUNT];
};

static bool make(struct odn_layout *layout, int n, const int64_t *dims, dnnl_data_type_t type)
{
    int64_t strides[DNNL_MAX_NDIMS];
    int64_t step = 1;
    for (int i = n - 1; i >= 0; i--) {
        strides[i] = step;
        step *= dims[i];
    }
    return odn_layout_init(layout, n, dims, type, strides);
}

/* Makes the descriptors of `values` (type: of x, h and y) or `grads` (float32), without those of weights. The initial
 * states are always given, if need be as zeros: without them the library (2.6 to 3.7) computes the gradient of W_h from
 * the gates of a step and the h of the same step, rather than of the step before. */
static bool make_tensors(const struct odn_recurrent *r, const struct odn_kind *kind, int64_t n, int64_t steps,
                         dnnl_data_type_t type, struct odn_layout *out)
{
    const int64_t x[] = {steps, n, kind->input}, y[] = {steps, n, r->output};
    const int64_t y_row = odn_y_width(r), y_strides[] = {n * y_row, y_row, 1};
    const int64_t h[] = {1, 1, n, r->output}, c[] = {1, 1, n, r->hidden};
    const int64_t bias[] = {1, 1, r->bias_gates, r->hidden}, peephole[] = {1, 1, 3, r->hidden};
    bool ok = make(&out[ODN_X], 3, x, type) && make(&out[ODN_H_IN], 4, h, type) && make(&out[ODN_H_OUT], 4, h, type) &&
              make(&out[ODN_BIAS], 4, bias, dnnl_f32) && odn_layout_init(&out[ODN_Y], 3, y, type, y_strides);
    if (r->lstm)
        ok = ok && make(&out[ODN_C_IN], 4, c, dnnl_f32) && make(&out[ODN_C_OUT], 4, c, dnnl_f32);
    if (r->peephole)
        ok = ok && make(&out[ODN_PEEPHOLE], 4, peephole, dnnl_f32);
    return ok;
}

static const int weight_places[ODN_WEIGHTS] = {ODN_W_X, ODN_W_H, ODN_PROJECTION};

static bool make_weights(const struct odn_recurrent *r, const struct odn_kind *kind, bool fixed,
                         const struct odn_layout *layouts, dnnl_data_type_t type, struct odn_layout *out)
{
    bool ok = true;
    for (int w = 0; w < ODN_WEIGHTS && ok; w++) {
        if (w == ODN_WEIGHT_P && !r->projection)
            continue;
        struct odn_layout *layout = &out[weight_places[w]];
        ok = fixed ? odn_layout_copy(layout, odn_layout_get(&layouts[w]))
                   : odn_layout_init(layout, kind->n_dims[w], kind->dims[w], type, NULL);
    }
    return ok;
}

dnnl_status_t odn_primitive_describe(const struct odn_recurrent *r, int32_t k, int32_t way, int64_t n, int64_t steps,
                                     int32_t pass, bool fixed, const_dnnl_primitive_desc_t forward,
                                     const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out_pd)
{
    const struct odn_kind *kind = &r->kind[k];
    struct descriptors all = {0};
    struct odn_recurrent_spec spec = {
        .cell = r->cell,
        .pass = pass == ODN_BACKWARD ? dnnl_backward
                : r->training        ? dnnl_forward_training
                                     : dnnl_forward_inference,
        .direction = way ? dnnl_unidirectional_right2left : dnnl_unidirectional_left2right,
        .activation = r->activation,
        .alpha = r->alpha,
        .attr = attr,
        .forward = forward,
    };
    bool ok = make_tensors(r, kind, n, steps, r->elem.type, all.values) &&
              make_weights(r, kind, fixed, kind->weights[pass], r->weight_type, all.values);
    if (pass == ODN_BACKWARD)
        ok = ok && make_tensors(r, kind, n, steps, dnnl_f32, all.grads) &&
             make_weights(r, kind, fixed, kind->grads, dnnl_f32, all.grads);
    for (int i = 0; i < ODN_RECURRENT_COUNT; i++) {
        spec.values[i] = odn_layout_get(&all.values[i]);
        spec.grads[i] = odn_layout_get(&all.grads[i]);
    }
    dnnl_status_t status = ok ? odn_recurrent_describe(r->op->instance->engine, &spec, out_pd) : dnnl_out_of_memory;
    for (int i = 0; i < ODN_RECURRENT_COUNT; i++) {
        odn_layout_deinit(&all.values[i]);
        odn_layout_deinit(&all.grads[i]);
    }
    return status;
}

/* ---- the cache --------------------------------------------------------------------------------------- */

static void calls_destroy(struct odn_recurrent *r, struct odn_calls *calls)
{
    for (int p = 0; p < ODN_PASSES; p++)
        odn_call_deinit(&calls->pass[p]);
    host_release(r->op->instance->host, calls);
}

static void entry_destroy(struct odn_recurrent *r, struct odn_entry *entry)
{
    for (struct odn_calls *calls = entry->idle, *next; calls != NULL; calls = next) {
        next = calls->next;
        calls_destroy(r, calls);
    }
    for (int p = 0; p < ODN_PASSES; p++) {
        if (entry->primitive[p] != NULL)
            odn.primitive_destroy(entry->primitive[p]);
        if (entry->described[p] != NULL)
            odn.primitive_desc_destroy(entry->described[p]);
    }
    host_release(r->op->instance->host, entry);
}

/* Replaces a description by a primitive, which has a descriptor of its own. */
static dnnl_status_t build_primitive(struct odn_entry *e, int32_t p)
{
    dnnl_status_t status = odn.primitive_create(&e->primitive[p], e->described[p]);
    if (status == dnnl_success)
        status = odn.primitive_get_primitive_desc(e->primitive[p], &e->pd[p]);
    if (status != dnnl_success)
        return status;
    odn.primitive_desc_destroy(e->described[p]);
    e->described[p] = NULL;
    return dnnl_success;
}

static dnnl_status_t build_passes(struct odn_recurrent *r, struct odn_entry *e, const_dnnl_primitive_attr_t attr)
{
    for (int32_t p = 0; p < odn_passes(r); p++) {
        dnnl_status_t status =
            odn_primitive_describe(r, e->kind, e->way, e->n, e->steps, p, true,
                                   p == ODN_BACKWARD ? e->pd[ODN_FORWARD] : NULL, attr, &e->described[p]);
        e->pd[p] = e->described[p];
        if (status == dnnl_success && !(r->quantized && e->version == 0))
            status = build_primitive(e, p);
        if (status != dnnl_success)
            return status;
        const uint64_t scratch = odn_argument_bytes(e->pd[p], DNNL_ARG_SCRATCHPAD);
        e->scratch_bytes = scratch > e->scratch_bytes ? scratch : e->scratch_bytes;
    }
    e->ws_bytes = odn_argument_bytes(e->pd[ODN_FORWARD], DNNL_ARG_WORKSPACE);
    return dnnl_success;
}

static dnnl_status_t entry_build(struct odn_recurrent *r, struct odn_entry *e, const float *scales)
{
    if (e->version == 0)
        return build_passes(r, e, r->attr);
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = odn_quantized_attr(r, scales, dnnl_scratchpad_mode_user, &attr);
    if (status == dnnl_success)
        status = build_passes(r, e, attr);
    if (attr != NULL)
        odn.primitive_attr_destroy(attr);
    return status;
}

static struct odn_entry *entry_find(const struct odn_recurrent *r, const struct odn_entry_key *key)
{
    struct odn_entry *e = r->entries;
    while (e != NULL && !(e->kind == key->kind && e->way == key->way && e->threads == key->threads && e->n == key->n &&
                          e->steps == key->steps && e->version == key->version))
        e = e->next;
    return e;
}

static seqlstm_status entry_create(struct odn_recurrent *r, const struct odn_entry_key *key,
                                   struct odn_entry **out_entry, struct seqlstm_error *err)
{
    struct odn_entry *entry = host_allocate(r->op->instance->host, sizeof *entry);
    if (entry == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a primitive");
    *entry = (struct odn_entry){.kind = key->kind,
                                .way = key->way,
                                .threads = key->threads,
                                .n = key->n,
                                .steps = key->steps,
                                .version = key->version};
    const int before = odn_threads_set(key->threads);
    const seqlstm_status status = odn_check(entry_build(r, entry, key->scales), "a recurrent primitive", err);
    odn_threads_set(before);
    if (status != SEQLSTM_OK) {
        entry_destroy(r, entry);
        return status;
    }
    entry->next = r->entries;
    r->entries = entry;
    *out_entry = entry;
    return SEQLSTM_OK;
}

static seqlstm_status calls_create(struct odn_recurrent *r, struct odn_entry *entry, struct odn_calls **out_calls,
                                   struct seqlstm_error *err)
{
    struct odn_calls *calls = host_allocate(r->op->instance->host, sizeof *calls);
    seqlstm_status status = SEQLSTM_OK;
    if (calls == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the calls of a primitive");
    calls->entry = entry;
    for (int p = 0; p < odn_passes(r) && status == SEQLSTM_OK; p++)
        status = odn_call_init(&calls->pass[p], r->op->instance->engine, entry->pd[p], entry->primitive[p], err);
    if (status != SEQLSTM_OK)
        calls_destroy(r, calls);
    else
        *out_calls = calls;
    return status;
}

/* Under the lock. */
static seqlstm_status find_calls(struct odn_recurrent *r, const struct odn_entry_key *key, bool only_idle,
                                 struct odn_calls **out_calls, struct seqlstm_error *err)
{
    struct odn_entry *entry = entry_find(r, key);
    if (only_idle && (entry == NULL || entry->idle == NULL))
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "no idle primitives have %lld steps of %lld sequences",
                     (long long)key->steps, (long long)key->n);
    if (entry == NULL)
        SEQLSTM_TRY(entry_create(r, key, &entry, err));
    if (entry->idle == NULL)
        return calls_create(r, entry, out_calls, err);
    struct odn_calls *calls = entry->idle;
    entry->idle = calls->next;
    for (int p = 0; p < ODN_PASSES; p++)
        odn_call_forget(&calls->pass[p]);
    *out_calls = calls;
    return SEQLSTM_OK;
}

seqlstm_status odn_calls_acquire(struct odn_recurrent *r, const struct odn_entry_key *key, bool only_idle,
                                 struct odn_calls **out_calls, struct seqlstm_error *err)
{
    pthread_mutex_lock(&r->lock);
    const seqlstm_status status = find_calls(r, key, only_idle, out_calls, err);
    if (status == SEQLSTM_OK)
        (*out_calls)->entry->references++;
    pthread_mutex_unlock(&r->lock);
    return status;
}

static int get_most_idle(const struct odn_recurrent *r)
{
    const int32_t sharing = r->training ? 1 : atomic_load(&r->op->instance->inferences);
    const int share = ODN_ENTRIES_INFERENCE / (sharing > 0 ? sharing : 1);
    if (share < ODN_ENTRIES_LEAST)
        return ODN_ENTRIES_LEAST;
    return share < ODN_ENTRIES_IDLE ? share : ODN_ENTRIES_IDLE;
}

/* Destroys the least recently used idle entry if there are too many. */
static bool trim_one(struct odn_recurrent *r)
{
    int idle = 0;
    struct odn_entry **oldest = NULL;
    for (struct odn_entry **at = &r->entries; *at != NULL; at = &(*at)->next)
        if ((*at)->references == 0) {
            idle++;
            if (oldest == NULL || (*at)->used < (*oldest)->used)
                oldest = at;
        }
    if (idle <= get_most_idle(r))
        return false;
    struct odn_entry *entry = *oldest;
    *oldest = entry->next;
    entry_destroy(r, entry);
    return true;
}

void odn_calls_release(struct odn_recurrent *r, struct odn_calls *calls)
{
    if (calls == NULL)
        return;
    struct odn_entry *entry = calls->entry;
    pthread_mutex_lock(&r->lock);
    calls->next = entry->idle;
    entry->idle = calls;
    entry->used = ++r->clock;
    bool over = --entry->references == 0;
    while (over)
        over = trim_one(r);
    pthread_mutex_unlock(&r->lock);
}

void odn_entries_destroy(struct odn_recurrent *r)
{
    while (r->entries != NULL) {
        struct odn_entry *entry = r->entries;
        r->entries = entry->next;
        entry_destroy(r, entry);
    }
}

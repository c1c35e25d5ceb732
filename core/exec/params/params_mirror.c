/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter buffers outside the host. See params_mirror.h. */
#include "exec/params/params_mirror.h"

#include <stdlib.h>
#include <string.h>

#include "exec/params/used_rows.h"

static float *get_host_part(const struct sl_params *params, enum sl_param_part part)
{
    switch (part) {
    case SL_PART_VALUES:
        return params->values;
    case SL_PART_GRADS:
        return params->grads;
    default:
        return params->states[part - SL_PART_STATE_1];
    }
}

static int compare_offset(const void *a, const void *b, void *context)
{
    const struct sl_param_view *views = context;
    int64_t x = views[*(const int32_t *)a].offset_elems, y = views[*(const int32_t *)b].offset_elems;
    return x < y ? -1 : x > y;
}

static seqlstm_status create(struct sl_params *params, struct seqlstm_error *err)
{
    size_t count = (size_t)params->view_count + 1;
    struct sl_mirrors *m = calloc(1, sizeof *m);
    bool failed = m == NULL || (m->order = calloc(count, sizeof *m->order)) == NULL;
    for (int part = 0; !failed && part < SL_PART_COUNT; part++)
        failed = (m->valid[part] = malloc(count)) == NULL;
    if (failed) {
        sl_mirrors_destroy(m);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for parameters on a device");
    }
    for (int32_t v = 0; v < params->view_count; v++)
        m->order[v] = v;
    qsort_r(m->order, (size_t)params->view_count, sizeof *m->order, compare_offset, params->views);
    for (int part = 0; part < SL_PART_COUNT; part++)
        memset(m->valid[part], 1 << SL_PLACE_HOST, count);
    params->mirrors = m;
    return SEQLSTM_OK;
}

void sl_mirrors_destroy(struct sl_mirrors *mirrors)
{
    if (mirrors == NULL)
        return;
    for (int32_t k = 0; k < mirrors->count; k++) {
        for (int part = 0; part < SL_PART_COUNT; part++)
            sl_domain_release(&mirrors->mirrors[k].domain, mirrors->mirrors[k].parts[part]);
        sl_domain_close(&mirrors->mirrors[k].domain);
    }
    for (int part = 0; part < SL_PART_COUNT; part++)
        free(mirrors->valid[part]);
    free(mirrors->order);
    free(mirrors);
}

static void note_peer(struct sl_mirrors *m, int32_t to, int32_t from)
{
    uint32_t device;
    const bool found = sl_domain_find_peer(&m->mirrors[to].domain, &m->mirrors[from].domain, &device);
    m->peers[to][from] = found ? (int32_t)device : -1;
}

seqlstm_status sl_params_find_place(struct sl_params *params, const struct sl_backend *backend, uint32_t device,
                                    int32_t *out_place, struct seqlstm_error *err)
{
    const char *name = sl_backend_get_device(backend, device)->domain;
    *out_place = SL_PLACE_HOST;
    if (strcmp(name, "host") == 0)
        return SEQLSTM_OK;
    if (params->mirrors == NULL)
        SEQLSTM_TRY(create(params, err));
    struct sl_mirrors *m = params->mirrors;
    int32_t k = 0;
    while (k < m->count && strcmp(m->mirrors[k].domain.name, name) != 0)
        k++;
    if (k == SL_PLACES_MAX - 1)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the plan uses more than %d memory domains", SL_PLACES_MAX);
    if (k == m->count) {
        SEQLSTM_TRY(sl_domain_open(&m->mirrors[k].domain, sl_backend_get_table(backend),
                                   sl_backend_get_instance(backend), device, name, err));
        m->count++;
        for (int32_t other = 0; other < k; other++) {
            note_peer(m, k, other);
            note_peer(m, other, k);
        }
    }
    *out_place = k + 1;
    return SEQLSTM_OK;
}

struct sl_domain *sl_params_get_domain(struct sl_params *params, int32_t place)
{
    return &params->mirrors->mirrors[place - 1].domain;
}

seqlstm_status sl_params_locate(struct sl_params *params, int32_t place, enum sl_param_part part, int64_t begin,
                                float **out_elems, struct seqlstm_error *err)
{
    float *base = get_host_part(params, part);
    if (place != SL_PLACE_HOST) {
        struct sl_mirror *mirror = &params->mirrors->mirrors[place - 1];
        if (mirror->parts[part] == NULL)
            SEQLSTM_TRY(
                sl_domain_allocate(&mirror->domain, params->elems * (int64_t)sizeof(float), &mirror->parts[part], err));
        base = mirror->parts[part];
    }
    *out_elems = base + begin;
    return SEQLSTM_OK;
}

/* The device of `from` for the backend of `to`; -1: it does not copy from there. */
static int32_t find_peer(const struct sl_params *params, int32_t from, int32_t to)
{
    return from == SL_PLACE_HOST || to == SL_PLACE_HOST ? -1 : params->mirrors->peers[to - 1][from - 1];
}

uint8_t sl_params_get_moved(const struct sl_params *params, int32_t from, int32_t to)
{
    return (uint8_t)(1u << to | (find_peer(params, from, to) >= 0 ? 0 : 1u << SL_PLACE_HOST));
}

seqlstm_status sl_params_move(struct sl_params *params, int32_t from, int32_t to, const void *base_from,
                              void *base_host, void *base_to, int64_t bytes, struct seqlstm_error *err)
{
    const int32_t peer = find_peer(params, from, to);
    if (peer >= 0)
        return sl_domain_copy_across(sl_params_get_domain(params, to), base_to, sl_params_get_domain(params, from),
                                     (uint32_t)peer, base_from, bytes, err);
    if (from != SL_PLACE_HOST)
        SEQLSTM_TRY(sl_domain_download(sl_params_get_domain(params, from), base_host, base_from, bytes, err));
    if (to != SL_PLACE_HOST)
        SEQLSTM_TRY(sl_domain_upload(sl_params_get_domain(params, to), base_to, base_host, bytes, err));
    return SEQLSTM_OK;
}

/* Elements [begin, end) of a part. */
static seqlstm_status transfer(struct sl_params *params, enum sl_param_part part, int32_t from, int32_t to,
                               int64_t begin, int64_t end, struct seqlstm_error *err)
{
    float *bases[2], *host = get_host_part(params, part);
    SEQLSTM_TRY(sl_params_locate(params, from, part, begin, &bases[0], err));
    SEQLSTM_TRY(sl_params_locate(params, to, part, begin, &bases[1], err));
    return sl_params_move(params, from, to, bases[0], host + begin, bases[1], (end - begin) * (int64_t)sizeof(float),
                          err);
}

static int32_t find_source(uint8_t valid)
{
    int32_t place = 0;
    while (!(valid >> place & 1))
        place++;
    return place;
}

static bool touches(const struct sl_param_view *view, int64_t begin, int64_t elems)
{
    return view->offset_elems < begin + elems && begin < view->offset_elems + view->elems;
}

seqlstm_status sl_params_provide(struct sl_params *params, int32_t place, enum sl_param_part part, int64_t begin,
                                 int64_t elems, float **out_elems, struct seqlstm_error *err)
{
    struct sl_mirrors *m = params->mirrors;
    SEQLSTM_TRY(sl_params_locate(params, place, part, begin, out_elems, err));
    if (m == NULL)
        return SEQLSTM_OK;
    /* Neighbours whose newest copies are in the same place are copied together. */
    int64_t run_begin = 0, run_end = 0;
    int32_t run_from = 0;
    for (int32_t k = 0; k < params->view_count; k++) {
        const struct sl_param_view *view = &params->views[m->order[k]];
        uint8_t *valid = &m->valid[part][m->order[k]];
        if (!touches(view, begin, elems) || (*valid >> place & 1))
            continue;
        int32_t from = find_source(*valid);
        bool joined = run_end > run_begin && from == run_from && view->offset_elems - run_end < 16;
        if (!joined && run_end > run_begin)
            SEQLSTM_TRY(transfer(params, part, run_from, place, run_begin, run_end, err));
        if (!joined)
            run_begin = view->offset_elems;
        run_end = view->offset_elems + view->elems;
        run_from = from;
        *valid |= sl_params_get_moved(params, from, place);
    }
    if (run_end > run_begin)
        SEQLSTM_TRY(transfer(params, part, run_from, place, run_begin, run_end, err));
    return SEQLSTM_OK;
}

void sl_params_note_written(struct sl_params *params, int32_t place, enum sl_param_part part, int64_t begin,
                            int64_t elems)
{
    for (int32_t v = 0; params->mirrors && v < params->view_count; v++)
        if (touches(&params->views[v], begin, elems))
            params->mirrors->valid[part][v] = (uint8_t)(1u << place);
}

bool sl_params_find_part(const struct sl_params *params, const float *pointer, enum sl_param_part *out_part,
                         int64_t *out_begin)
{
    for (int part = 0; part < SL_PART_COUNT; part++) {
        const float *base = get_host_part(params, (enum sl_param_part)part);
        if (base && pointer >= base && pointer < base + params->elems) {
            *out_part = (enum sl_param_part)part;
            *out_begin = pointer - base;
            return true;
        }
    }
    return false;
}

seqlstm_status sl_params_pull(struct sl_params *params, struct seqlstm_error *err)
{
    float *values;
    return sl_params_provide(params, SL_PLACE_HOST, SL_PART_VALUES, 0, params->elems, &values, err);
}

seqlstm_status sl_params_pull_grads(struct sl_params *params, struct seqlstm_error *err)
{
    float *grads;
    return sl_params_provide(params, SL_PLACE_HOST, SL_PART_GRADS, 0, params->elems, &grads, err);
}

seqlstm_status sl_params_pull_states(struct sl_params *params, struct seqlstm_error *err)
{
    float *state;
    for (int s = 0; s < 3; s++)
        if (params->states[s])
            SEQLSTM_TRY(sl_params_provide(params, SL_PLACE_HOST, (enum sl_param_part)(SL_PART_STATE_1 + s), 0,
                                          params->elems, &state, err));
    return SEQLSTM_OK;
}

void sl_params_touch(struct sl_params *params)
{
    params->version++;
    sl_params_note_written(params, SL_PLACE_HOST, SL_PART_VALUES, 0, params->elems);
}

void sl_params_touch_grads(struct sl_params *params)
{
    sl_params_note_written(params, SL_PLACE_HOST, SL_PART_GRADS, 0, params->elems);
    sl_used_rows_forget(params);
}

void sl_params_touch_states(struct sl_params *params)
{
    for (int s = 0; s < 3; s++)
        sl_params_note_written(params, SL_PLACE_HOST, (enum sl_param_part)(SL_PART_STATE_1 + s), 0, params->elems);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See scaling.h. Ranks that do not take part in a measurement wait until it is over. */
#include "session/scaling/scaling.h"

#include <string.h>

#include "parallel/ranks.h"
#include "session/prepare/division.h"
#include "session/record/session_record.h"
#include "session/scaling/predict.h"
#include "session/session.h"

/* A measurement serves all rows that differ in the number of hosts only. */
struct kept {
    int32_t data, local;
    struct sl_scaling_costs costs;
};

struct scaling {
    const struct sl_scaling_request *request;
    struct sl_session *control; /* connects all ranks that measure */
    struct sl_parallel_config together, model;
    int64_t batch; /* the model's batch_size; 0: none */
    struct kept kept;
    int32_t measured;
};

static int32_t least(int64_t a, int64_t b)
{
    return (int32_t)(a < b ? a : b);
}

/* How so many ranks divide a batch. */
static seqlstm_status divide(const struct scaling *s, int32_t ranks, struct sl_parallel_config *out,
                             struct seqlstm_error *err)
{
    *out = (struct sl_parallel_config){.data = 1, .pipeline = 1};
    out->shards = s->model.shards;
    out->pieces = s->model.pieces;
    if (ranks == 1)
        return SEQLSTM_OK;
    *out = s->model;
    if (ranks % s->model.pipeline != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "with `pipeline: %lld` the number of ranks is a multiple of %lld, or 1, and `--ranks` has %d",
                     (long long)s->model.pipeline, (long long)s->model.pipeline, ranks);
    out->data = ranks / s->model.pipeline;
    if (s->model.shards > 0 && out->data > s->model.shards)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "`--ranks` has %d, and %lld shards are for %lld ranks at most", ranks,
                     (long long)s->model.shards, (long long)(s->model.shards * s->model.pipeline));
    return SEQLSTM_OK;
}

/* The division that is measured for it: no larger than matters, since batches have so many sequences, or since all
 * ranks have as large a batch. */
static void limit(const struct scaling *s, struct sl_scaling_setup *setup)
{
    const int64_t here = setup->local / setup->parallel.pipeline;
    if (s->request->grows && setup->parallel.data > here)
        setup->parallel.data = here > 1 ? here : 1;
    if (s->request->grows)
        setup->batch_factor = setup->parallel.data;
    else if (s->batch > 0 && setup->parallel.data > s->batch && setup->parallel.shards == 0)
        setup->parallel.data = s->batch;
}

/* The ranks of the host that has most of them pass pieces over its link, unless whole pipelines fit into a host. */
static void price_link(const struct scaling *s, struct sl_scaling_setup *setup)
{
    const struct sl_scaling_request *request = s->request;
    const bool crosses = setup->parallel.pipeline > setup->local || setup->local % setup->parallel.pipeline != 0;
    const struct sl_scaling_link *link = crosses ? &request->link : &request->inner;
    setup->piece_exchange_bytes_per_s = link->bytes_per_s;
    setup->piece_exchange_latency_s = link->latency_s;
}

static seqlstm_status measure(struct scaling *s, const struct sl_scaling_setup *setup, struct seqlstm_error *err)
{
    struct sl_ranks *all = &s->control->ranks;
    struct kept *kept = &s->kept;
    if (s->measured > 0 && kept->data == setup->parallel.data && kept->local == setup->local)
        return SEQLSTM_OK;
    *kept = (struct kept){.data = (int32_t)setup->parallel.data, .local = setup->local};
    s->measured++;
    if (all->rank < setup->local)
        SEQLSTM_TRY(sl_scaling_measure(setup, &kept->costs, err));
    return sl_ranks_broadcast(all, 0, &kept->costs, (int64_t)sizeof kept->costs, err);
}

static seqlstm_status plan_row(struct scaling *s, int32_t ranks, struct sl_scaling_report *report,
                               struct seqlstm_error *err)
{
    const struct sl_scaling_request *request = s->request;
    struct sl_scaling_row *row = &report->rows[report->count++];
    struct sl_scaling_setup setup = {.options = request->options, .number = s->measured};
    SEQLSTM_TRY(divide(s, ranks, &setup.parallel, err));
    const int32_t local = least(ranks, request->local);
    setup.local = least(ranks, request->measuring);
    const struct sl_scaling_place place = {.ranks = ranks,
                                           .hosts = (ranks + local - 1) / local,
                                           .local = local,
                                           .link = request->link,
                                           .inner = request->inner,
                                           .central = setup.parallel.reduce.how == SL_REDUCE_CENTRAL,
                                           .element_bytes = setup.parallel.reduce.dtype == SL_REDUCE_BFLOAT16 ? 2 : 4};
    if (place.hosts > 1 && request->link.bytes_per_s == 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "%d ranks are more than the %d of a host; give the link between hosts, as in `--link "
                     "100Gb/s,5us`",
                     ranks, request->local);
    limit(s, &setup);
    price_link(s, &setup);
    SEQLSTM_TRY(measure(s, &setup, err));
    sl_scaling_predict(&s->kept.costs, &place, row);
    row->rows = s->kept.costs.rows * s->kept.costs.batches;
    if (request->grows)
        row->idle = 0;
    if (request->grows && setup.batch_factor > 0)
        row->rows *= (double)(ranks / setup.parallel.pipeline > 0 ? ranks / setup.parallel.pipeline : 1) /
                     (double)setup.batch_factor;
    report->devices = s->kept.costs.devices > report->devices ? s->kept.costs.devices : report->devices;
    if (s->kept.costs.measured.bytes_per_s > 0)
        report->measured = s->kept.costs.measured;
    return SEQLSTM_OK;
}

static seqlstm_status open_control(struct scaling *s, struct sl_diagnostics *diagnostics, struct seqlstm_error *err)
{
    struct sl_session_options options = *s->request->options;
    options.collectives = "comm-shm"; /* what is shared here lies on the host */
    SEQLSTM_TRY(sl_session_open_model(&options, diagnostics, &s->control, err));
    s->model = s->control->model->parallel;
    s->batch = s->control->model->data.batching.max_tokens > 0 ? 0 : s->control->model->data.batch_size;
    s->together = (struct sl_parallel_config){.data = s->request->measuring, .pipeline = 1};
    return sl_session_meet(s->control, &s->together, err);
}

seqlstm_status sl_session_plan_ranks(const struct sl_scaling_request *request, struct sl_scaling_report *out,
                                     struct seqlstm_error *err)
{
    struct scaling s = {.request = request};
    struct sl_diagnostics *diagnostics = NULL;
    memset(out, 0, sizeof *out);
    out->local = request->local;
    out->measuring = request->measuring;
    out->link = request->link;
    out->inner = request->inner;
    out->grows = request->grows;
    SEQLSTM_TRY(sl_diagnostics_create(&diagnostics, err));
    seqlstm_status status = open_control(&s, diagnostics, err);
    for (int32_t k = 0; k < request->count && status == SEQLSTM_OK; k++)
        status = plan_row(&s, request->ranks[k], out, err);
    if (s.control)
        sl_session_leave(s.control);
    sl_session_close(s.control);
    sl_diagnostics_destroy(diagnostics);
    return status;
}

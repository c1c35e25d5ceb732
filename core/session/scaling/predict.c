/* SPDX-License-Identifier: Apache-2.0 */
/* See predict.h. */
#include "session/scaling/predict.h"

#include <math.h>

double sl_scaling_all_reduce_s(const struct sl_scaling_link *link, int32_t hosts, double bytes)
{
    const double steps = 2 * ceil(log2((double)hosts));
    return hosts > 1 ? steps * link->latency_s + 2 * (hosts - 1) / (double)hosts * bytes / link->bytes_per_s : 0;
}

/* ---- the gradients, bundle by bundle ---------------------------------------------------------------------------- */

/* When the gradients from element `begin` on are complete. */
static double find_ready(const struct sl_scaling_costs *costs, int64_t begin)
{
    for (int32_t k = 0; k < costs->note_count; k++)
        if (costs->notes[k].from <= begin)
            return costs->notes[k].ns;
    return costs->step_ns;
}

/* Bytes of a matrix that one rank sends, where `ranks` share the batch: factors, or the rows that some rank uses. */
static double count_matrix_bytes(const struct sl_scaling_costs *costs, const struct sl_scaling_matrix *m,
                                 const struct sl_scaling_place *place)
{
    const double all = (double)(m->rows * m->columns), used = 1 - pow(1 - m->used, place->ranks);
    if (m->compressed)
        return (double)(m->rows + m->columns) * costs->compress_rank * 4;
    return (2 * used > 1 ? all : used * all) * place->element_bytes + (double)m->rows;
}

/* Seconds of so many messages of as many bytes, one after the other. */
static double get_messages(const struct sl_scaling_link *link, double count, double bytes)
{
    return count > 0 ? count * (link->latency_s + bytes / link->bytes_per_s) : 0;
}

/* Ranks of a host. */
static int32_t get_local(const struct sl_scaling_place *place)
{
    return place->hosts > 1 ? place->local : place->ranks;
}

/* Seconds in which the ranks exchange a bundle; those of a host only if their link is given. */
static double get_exchange(const struct sl_scaling_place *place, double bytes)
{
    const int32_t local = get_local(place);
    const bool given = place->inner.bytes_per_s > 0;
    if (place->central)
        return get_messages(&place->link, place->ranks - local, bytes) +
               (given ? get_messages(&place->inner, local - 1, bytes) : 0);
    return sl_scaling_all_reduce_s(&place->link, place->hosts, bytes) +
           (given ? sl_scaling_all_reduce_s(&place->inner, local, bytes) : 0);
}

/* A bundle of sixteen latencies, as the ranks choose it (parallel/reducer.h). */
static int64_t choose_bundle(const struct sl_scaling_place *place)
{
    const struct sl_scaling_link *link = place->hosts > 1 ? &place->link : &place->inner;
    const double latency = 2 * ceil(log2((double)(place->hosts > 1 ? place->hosts : place->ranks))) * link->latency_s;
    return sl_reducer_choose_bundle(latency, link->bytes_per_s / 2);
}

struct lane {
    const struct sl_scaling_costs *costs;
    const struct sl_scaling_place *place;
    double free_ns; /* when the link is free again */
};

static void pass(struct lane *lane, int64_t begin, double bytes, double exchanges)
{
    const double ready = find_ready(lane->costs, begin);
    lane->free_ns = fmax(lane->free_ns, ready) + 1e9 * exchanges * get_exchange(lane->place, bytes / exchanges);
}

static void pass_plain(struct lane *lane, int64_t begin, int64_t end, int64_t bundle)
{
    while (end > begin) {
        const int64_t first = end - begin < bundle ? begin : end - bundle;
        pass(lane, first, (double)(end - first) * lane->place->element_bytes, 1);
        end = first;
    }
}

/* How long after the step the last bundle has come. */
static double find_rest(const struct sl_scaling_costs *costs, const struct sl_scaling_place *place)
{
    struct lane lane = {costs, place, 0};
    const int64_t bundle = choose_bundle(place);
    int64_t end = costs->elems;
    for (int32_t k = costs->matrix_count - 1; k >= 0; k--) {
        const struct sl_scaling_matrix *m = &costs->matrices[k];
        pass_plain(&lane, m->begin + m->rows * m->columns, end, bundle);
        pass(&lane, m->begin, count_matrix_bytes(costs, m, place), 2);
        end = m->begin;
    }
    pass_plain(&lane, 0, end, bundle);
    return fmax(lane.free_ns - costs->step_ns, 0);
}

/* ---- an update -------------------------------------------------------------------------------------------------- */

/* Sums of the loss and the agreement: two small exchanges. */
static double get_agreement(const struct sl_scaling_costs *costs, const struct sl_scaling_place *place)
{
    return 2 * (costs->agree_ns + 1e9 * sl_scaling_all_reduce_s(&place->link, place->hosts, 64));
}

/* Nanoseconds in which all members, hosts or ranks, get the weights of one. */
static double get_broadcast(const struct sl_scaling_costs *costs, const struct sl_scaling_link *link, int32_t members)
{
    const double steps = ceil(log2((double)members)), bytes = (double)costs->elems * 4;
    return members > 1 ? 1e9 * (steps * link->latency_s + 2 * bytes / link->bytes_per_s) : 0;
}

static double get_weights(const struct sl_scaling_costs *costs, const struct sl_scaling_place *place)
{
    const double local =
        place->inner.bytes_per_s > 0 ? get_broadcast(costs, &place->inner, get_local(place)) : costs->weights_ns;
    return place->central ? local + get_broadcast(costs, &place->link, place->hosts) : 0;
}

/* With `shards` a rank computes several one after the other, and then the sums of hosts are added as a tree. */
static void predict_shards(const struct sl_scaling_costs *costs, const struct sl_scaling_place *place,
                           struct sl_scaling_row *row)
{
    const double bytes = (double)costs->elems * 4, levels = ceil(log2((double)get_local(place)));
    const double local =
        place->inner.bytes_per_s > 0 ? 1e9 * get_messages(&place->inner, levels, bytes) : costs->exchange_ns;
    const double remote = 1e9 * get_messages(&place->link, ceil(log2((double)place->hosts)), bytes);
    row->compute_ns = costs->batches * costs->shards * (costs->prepare_ns + costs->step_ns) + costs->update_ns;
    row->exchange_ns = place->ranks > 1 ? local + remote + get_agreement(costs, place) : 0;
    row->update_ns = row->compute_ns + row->exchange_ns;
}

static void predict_data(const struct sl_scaling_costs *costs, const struct sl_scaling_place *place,
                         struct sl_scaling_row *row)
{
    const double last = costs->step_ns * (costs->batches - 1); /* only the last batch of an update is exchanged */
    const bool given = place->inner.bytes_per_s > 0;
    const double together = place->ranks == 1 || given ? costs->step_ns : costs->together_ns;
    const double rest = place->ranks > 1 && (place->hosts > 1 || given) ? find_rest(costs, place) : 0;
    row->compute_ns = costs->batches * (costs->prepare_ns + costs->step_ns) + costs->update_ns;
    const double staging = place->hosts > 1 ? costs->staging_ns : 0;
    row->update_ns = costs->batches * costs->prepare_ns + last + together + rest + staging + costs->update_ns;
    if (place->ranks > 1)
        row->update_ns += get_agreement(costs, place) + get_weights(costs, place);
    row->exchange_ns = fmax(row->update_ns - row->compute_ns, 0);
}

/* The gradients of replicas are added when the step has ended. */
static double get_replicas(const struct sl_scaling_costs *costs, const struct sl_scaling_place *place)
{
    const int32_t replicas = place->ranks / costs->stages;
    const double beside = fmax(1, (double)place->local / costs->stages);
    const double bytes = (double)costs->elems * place->element_bytes;
    double ns = 0;
    if (replicas == 1)
        return 0;
    if (beside > 1)
        ns += place->inner.bytes_per_s > 0
                  ? 1e9 * sl_scaling_all_reduce_s(&place->inner, (int32_t)beside, bytes / costs->stages)
                  : costs->exchange_ns * beside / place->local;
    /* the stages on a host share its link */
    const double stages_here = fmin(costs->stages, place->local);
    return ns + 1e9 * sl_scaling_all_reduce_s(&place->link, place->hosts > 1 ? replicas / (int32_t)beside : 1,
                                              bytes * stages_here / costs->stages);
}

static void predict_pipeline(const struct sl_scaling_costs *costs, const struct sl_scaling_place *place,
                             struct sl_scaling_row *row)
{
    const double share = 1.0 / costs->stages, replicas = get_replicas(costs, place);
    row->compute_ns = costs->batches * (costs->prepare_ns + costs->alone_ns * share) + costs->update_ns;
    row->exchange_ns = replicas + 2 * get_agreement(costs, place);
    row->update_ns = costs->batches * (costs->prepare_ns + costs->stages_ns) + costs->update_ns + row->exchange_ns;
    row->waiting_ns = fmax(row->update_ns - row->compute_ns - row->exchange_ns, 0);
}

void sl_scaling_predict(const struct sl_scaling_costs *costs, const struct sl_scaling_place *place,
                        struct sl_scaling_row *row)
{
    const int64_t shares = place->ranks / costs->stages;
    row->ranks = place->ranks;
    row->hosts = place->hosts;
    row->threads = costs->threads;
    row->stages = costs->stages;
    row->pieces = costs->pieces;
    row->memory_bytes = costs->memory_bytes;
    row->idle = shares > costs->sequences ? (int32_t)(shares - costs->sequences) * costs->stages : 0;
    if (costs->stages > 1)
        predict_pipeline(costs, place, row);
    else if (costs->shards > 0)
        predict_shards(costs, place, row);
    else
        predict_data(costs, place, row);
}

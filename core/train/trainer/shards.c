/* SPDX-License-Identifier: Apache-2.0 */
/* An update that is divided among ranks: each computes its shards, one after the other; then gradients and sums of the
 * loss are added, and all make the same update. */
#include "train/trainer/shards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/batch/slice.h"
#include "base/value/hash.h"
#include "parallel/reducer.h"
#include "parallel/shards.h"
#include "parallel/tree_sum.h"
#include "train/exchanged.h"
#include "train/trainer/stages.h"

struct sl_trainer_shards {
    struct sl_ranks *ranks;
    int32_t first, end;        /* this rank's shards */
    struct sl_tree_sum *grads; /* NULL: not in a fixed order */
    struct sl_tree_sum *sums;
    bool direct;                /* gradients are added on the device */
    bool lends;                 /* gradients lie in memory of the collectives */
    struct sl_reducer *reducer; /* NULL: in a fixed order, in a pipeline, or alone */
    float *scratch;             /* in a pipeline, where replicas add in any order */
    float *errors;              /* what this rank's compression has missed: as params->grads; NULL: no compression */
    float *error_sum;           /* of all ranks, for checkpoints */
    /* Streams: the carried states of each of this rank's shards, as sl_exec_get_state has them. */
    int64_t state_elems; /* 0: there are none */
    float *states;
    float *carried; /* of the whole batch, for checkpoints: see carried_elems */
    int64_t carried_elems;
};

static bool is_stream(const struct sl_trainer *trainer)
{
    return trainer->request.model->data.batching.unit == SL_UNIT_STREAM;
}

/* Elements of state s of the graph for so many sequences: the layout of sl_exec_get_state. */
static int64_t count_state(const struct sl_graph *graph, int32_t s, int64_t sequences)
{
    return (sequences * graph->states[s].features + 15) / 16 * 16;
}

static seqlstm_status open_states(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    struct sl_trainer_shards *shards = trainer->shards;
    const struct sl_graph *graph = sl_exec_get_graph(trainer->request.exec);
    const int64_t sequences = sl_batcher_envelope(trainer->request.train).sequences;
    float *ignored;
    if (!is_stream(trainer))
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_exec_get_state(trainer->request.exec, &ignored, &shards->state_elems, err));
    for (int32_t s = 0; s < graph->state_count; s++)
        shards->carried_elems += count_state(graph, s, sequences);
    const size_t own = (size_t)(shards->end - shards->first) * (size_t)shards->state_elems;
    shards->states = calloc(own + 1, sizeof *shards->states);
    shards->carried = calloc((size_t)shards->carried_elems + 1, sizeof *shards->carried);
    if (!shards->states || !shards->carried)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the states of the shards");
    return SEQLSTM_OK;
}

static seqlstm_status open_errors(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    struct sl_trainer_shards *shards = trainer->shards;
    const size_t bytes = (size_t)(trainer->request.params->elems + 1) * sizeof *shards->errors;
    if (trainer->request.ranks->compress_rank == 0)
        return SEQLSTM_OK;
    shards->errors = sl_memory_alloc(trainer->request.memory, bytes);
    shards->error_sum = sl_memory_alloc(trainer->request.memory, bytes);
    if (!shards->errors || !shards->error_sum)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the errors of compressed gradients");
    memset(shards->errors, 0, bytes);
    memset(shards->error_sum, 0, bytes);
    return SEQLSTM_OK;
}

static seqlstm_status open_reducer(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    struct sl_params *params = trainer->request.params;
    SEQLSTM_TRY(open_errors(trainer, err));
    SEQLSTM_TRY(sl_exchanged_place_grads(params, trainer->request.ranks->connection, &trainer->shards->lends, err));
    struct sl_bundle_matrix *matrices = calloc((size_t)params->view_count + 1, sizeof *matrices);
    if (!matrices)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the trainer");
    const struct sl_envelope batch = sl_batcher_envelope(trainer->request.train);
    const struct sl_exchanged_request exchanged = {
        .compress_rank = trainer->request.ranks->compress_rank,
        .lookups = sl_exchanged_count_lookups(&batch, (int32_t)trainer->request.model->train.accumulate)};
    const struct sl_reducer_request request = {
        .ranks = trainer->request.ranks,
        .grads = params->grads,
        .elems = params->trainable_elems,
        .matrices = matrices,
        .matrix_count =
            sl_exchanged_find_matrices(sl_exec_get_graph(trainer->request.exec), params, &exchanged, matrices),
        .marks = params->mirrors == NULL,
        .errors = trainer->shards->errors,
        .memory = trainer->request.memory};
    const seqlstm_status status = sl_reducer_create(&request, &trainer->shards->reducer, err);
    free(matrices);
    return status;
}

seqlstm_status sl_trainer_open_shards(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    struct sl_ranks *ranks = trainer->request.ranks;
    const int64_t elems = sl_trainer_count_own(trainer);
    struct sl_memory *memory = trainer->request.memory;
    struct sl_trainer_shards *shards = calloc(1, sizeof *shards);
    if (!shards)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the trainer");
    trainer->shards = shards;
    shards->ranks = ranks;
    shards->first = sl_shards_get_first(ranks->shards, ranks->replicas.ranks, ranks->replicas.rank);
    shards->end = sl_shards_get_first(ranks->shards, ranks->replicas.ranks, ranks->replicas.rank + 1);
    SEQLSTM_TRY(
        sl_tree_sum_create(&ranks->replicas, ranks->shards, SL_METRIC_SUMS_DOUBLES, true, memory, &shards->sums, err));
    if (ranks->ordered)
        SEQLSTM_TRY(sl_tree_sum_create(&ranks->replicas, ranks->shards, elems, false, memory, &shards->grads, err));
    else if (ranks->replicas.connection && trainer->stages)
        shards->scratch = sl_memory_alloc(memory, (size_t)(elems + 1) * sizeof *shards->scratch);
    else if (ranks->replicas.connection && sl_exchanged_stays_on_device(trainer->request.params, ranks))
        shards->direct = true;
    else if (ranks->replicas.connection)
        SEQLSTM_TRY(open_reducer(trainer, err));
    if (!ranks->ordered && ranks->replicas.connection && !shards->scratch && !shards->reducer && !shards->direct)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the gradients of other ranks");
    return open_states(trainer, err);
}

static void say_times(const struct sl_trainer *trainer)
{
    if (!trainer->shards->reducer)
        return;
    const struct sl_reducer_times times = sl_reducer_get_times(trainer->shards->reducer);
    sl_log_printf(trainer->request.log, SL_LOG_INFO,
                  "gradients: %.3f s in exchanges, of which the rank waited %.3f s after its backward passes",
                  (double)times.exchange_ns * 1e-9, (double)times.wait_ns * 1e-9);
}

void sl_trainer_close_shards(struct sl_trainer *trainer)
{
    struct sl_trainer_shards *shards = trainer->shards;
    if (!shards)
        return;
    say_times(trainer);
    sl_reducer_destroy(shards->reducer);
    if (shards->lends)
        sl_params_lend_grads(trainer->request.params, NULL);
    sl_tree_sum_destroy(shards->grads);
    sl_memory_free(trainer->request.memory, shards->scratch);
    sl_tree_sum_destroy(shards->sums);
    sl_memory_free(trainer->request.memory, shards->errors);
    sl_memory_free(trainer->request.memory, shards->error_sum);
    free(shards->states);
    free(shards->carried);
    free(shards);
    trainer->shards = NULL;
}

/* ---- the beginning ---------------------------------------------------------------------------------------------- */

/* What must be the same on all ranks before the first update. */
struct beginning {
    uint64_t weights;
    int64_t updates, records, rows, batches;
};

seqlstm_status sl_trainer_compare_ranks(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    const struct sl_trainer_request *request = &trainer->request;
    const struct sl_ranks *ranks = request->ranks;
    const struct sl_params *params = request->params;
    const struct beginning own = {
        .weights = sl_hash_bytes(params->values, (size_t)params->elems * sizeof *params->values, 0),
        .updates = trainer->state.updates,
        .records = request->facts->records,
        .rows = request->facts->rows,
        .batches = sl_batcher_get_batches(request->train),
    };
    struct beginning *all = calloc((size_t)ranks->ranks, sizeof *all);
    if (!all)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %d ranks", ranks->ranks);
    seqlstm_status status = sl_ranks_gather(ranks, &own, (int64_t)sizeof own, all, err);
    for (int32_t r = 1; r < ranks->ranks && status == SEQLSTM_OK; r++)
        if (memcmp(&all[r], &all[0], sizeof *all) != 0)
            status = seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                                       "rank %d begins with other %s than rank 0: the files that the model names must "
                                       "be the same for all ranks",
                                       r, all[r].weights != all[0].weights ? "weights" : "data");
    free(all);
    return status == SEQLSTM_OK ? sl_ranks_agree(request->ranks, err) : status;
}

/* ---- carried states --------------------------------------------------------------------------------------------- */

static float *get_states(const struct sl_trainer_shards *shards, int32_t shard)
{
    return shards->states + (shard - shards->first) * shards->state_elems;
}

/* Between the executor and the states of a shard. */
static seqlstm_status swap_states(struct sl_trainer *trainer, int32_t shard, bool saves, struct seqlstm_error *err)
{
    const struct sl_trainer_shards *shards = trainer->shards;
    float *state;
    int64_t elems;
    if (shards->state_elems == 0)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_exec_get_state(trainer->request.exec, &state, &elems, err));
    float *own = get_states(shards, shard);
    memcpy(saves ? own : state, saves ? state : own, (size_t)elems * sizeof *own);
    return SEQLSTM_OK;
}

void sl_trainer_reset_states(struct sl_trainer *trainer)
{
    const struct sl_trainer_shards *shards = trainer->shards;
    sl_exec_reset_state(trainer->request.exec);
    if (shards && shards->state_elems > 0)
        memset(shards->states, 0, (size_t)(shards->end - shards->first) * (size_t)shards->state_elems * sizeof(float));
}

/* Between the states of one shard and those of the whole batch: sequence j of shard k is sequence k + j * shards. */
static void move_states(const struct sl_trainer *trainer, int32_t shard, float *states, bool collects)
{
    const struct sl_trainer_shards *shards = trainer->shards;
    const struct sl_graph *graph = sl_exec_get_graph(trainer->request.exec);
    const int64_t sequences = sl_batcher_envelope(trainer->request.train).sequences;
    float *whole = shards->carried;
    for (int32_t s = 0; s < graph->state_count; s++) {
        const int64_t features = graph->states[s].features;
        float *part = states + sl_exec_get_state_offset(trainer->request.exec, s);
        for (int64_t j = 0; shard + j * shards->ranks->shards < sequences; j++) {
            float *row = whole + (shard + j * shards->ranks->shards) * features;
            memcpy(collects ? row : part + j * features, collects ? part + j * features : row,
                   (size_t)features * sizeof *row);
        }
        whole += count_state(graph, s, sequences);
    }
}

seqlstm_status sl_trainer_get_carried(struct sl_trainer *trainer, float **out_carried, int64_t *out_elems,
                                      struct seqlstm_error *err)
{
    struct sl_trainer_shards *shards = trainer->shards;
    if (!shards)
        return sl_exec_get_state(trainer->request.exec, out_carried, out_elems, err);
    *out_carried = shards->carried;
    *out_elems = shards->carried_elems;
    return SEQLSTM_OK;
}

/* All ranks get the states of a shard: each from the stage that writes it, in the replica that has the shard. */
static seqlstm_status share_states(struct sl_trainer *trainer, int32_t shard, float *states, struct seqlstm_error *err)
{
    const struct sl_ranks *ranks = trainer->shards->ranks;
    const struct sl_graph *graph = sl_exec_get_graph(trainer->request.exec);
    const struct sl_owners *owners = trainer->request.owners;
    int32_t replica = 0;
    while (sl_shards_get_first(ranks->shards, ranks->replicas.ranks, replica + 1) <= shard)
        replica++;
    for (int32_t s = 0; s < graph->state_count; s++) {
        const int64_t begin = sl_exec_get_state_offset(trainer->request.exec, s);
        const int64_t end = s + 1 < graph->state_count ? sl_exec_get_state_offset(trainer->request.exec, s + 1)
                                                       : trainer->shards->state_elems;
        const int32_t from = replica * ranks->stages + (owners ? owners->states[s] : 0);
        SEQLSTM_TRY(sl_ranks_broadcast(ranks, from, states + begin, (end - begin) * (int64_t)sizeof *states, err));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_trainer_collect_carried(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    struct sl_trainer_shards *shards = trainer->shards;
    if (!shards || shards->state_elems == 0)
        return SEQLSTM_OK;
    for (int32_t shard = 0; shard < shards->ranks->shards; shard++) {
        const bool own = shard >= shards->first && shard < shards->end;
        float *states = calloc((size_t)shards->state_elems + 1, sizeof *states);
        if (!states)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the states of a shard");
        if (own)
            memcpy(states, get_states(shards, shard), (size_t)shards->state_elems * sizeof *states);
        const seqlstm_status status = share_states(trainer, shard, states, err);
        if (status == SEQLSTM_OK)
            move_states(trainer, shard, states, true);
        free(states);
        SEQLSTM_TRY(status);
    }
    return SEQLSTM_OK;
}

void sl_trainer_spread_carried(struct sl_trainer *trainer)
{
    const struct sl_trainer_shards *shards = trainer->shards;
    for (int32_t shard = shards ? shards->first : 0; shards && shards->state_elems > 0 && shard < shards->end; shard++)
        move_states(trainer, shard, get_states(shards, shard), false);
}

/* ---- errors of compression -------------------------------------------------------------------------------------- */

float *sl_trainer_get_errors(struct sl_trainer *trainer)
{
    return trainer->shards ? trainer->shards->error_sum : NULL;
}

seqlstm_status sl_trainer_collect_errors(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    const struct sl_trainer_shards *shards = trainer->shards;
    if (!shards || !shards->errors)
        return SEQLSTM_OK;
    const struct seqlstm_exchange sum = {.kind = SEQLSTM_COLLECTIVE_ALL_REDUCE,
                                         .dtype = SEQLSTM_DTYPE_FLOAT32,
                                         .elems = trainer->request.params->elems,
                                         .from = shards->errors,
                                         .to = shards->error_sum};
    return sl_connection_run(shards->ranks->connection, 0, sum, err);
}

void sl_trainer_spread_errors(struct sl_trainer *trainer)
{
    const struct sl_trainer_shards *shards = trainer->shards;
    for (int64_t i = 0; shards && shards->errors && i < trainer->request.params->elems; i++)
        shards->errors[i] = shards->error_sum[i] / (float)shards->ranks->ranks;
}

/* ---- the update ------------------------------------------------------------------------------------------------- */

/* Does the slice have anything to compute? */
static bool has_rows(const struct sl_batch *slice)
{
    return !slice->has_steps || slice->axis.rows > 0 || slice->source.present;
}

static void note_grads(void *shards, int64_t from)
{
    sl_reducer_note(((struct sl_trainer_shards *)shards)->reducer, from);
}

static void mark_rows(void *shards, int64_t offset, const int32_t *ids, int64_t count)
{
    sl_reducer_mark(((struct sl_trainer_shards *)shards)->reducer, offset, ids, count);
}

/* The batches of the group, one after the other: one shard of each. */
static seqlstm_status run_shard(struct sl_trainer *trainer, const struct sl_update *update, int32_t shard,
                                struct sl_metric_sums *sums, struct seqlstm_error *err)
{
    struct sl_exec_step step = {
        .epoch = (uint64_t)trainer->state.epoch,
        .normaliser = update->normaliser,
        .loss_scale = trainer->request.scales_loss ? sl_loss_scale_get(&trainer->state.loss_scale) : 1,
    };
    uint64_t mask_step = 0;
    const bool overlaps = trainer->shards->reducer && trainer->shards->ranks->overlaps;
    SEQLSTM_TRY(swap_states(trainer, shard, false, err));
    for (int32_t i = 0; i < update->count; i++) {
        const struct sl_batch *batch = update->group[i];
        struct sl_batch *slice = NULL;
        struct sl_exec_result result;
        struct sl_field output = {0};
        mask_step = sl_update_has_segments(trainer) && batch->carry_state ? mask_step : batch->ordinal;
        step.weight_mask_step = (uint32_t)mask_step;
        if (shard >= batch->sequences)
            continue;
        step.on_grads = overlaps && i + 1 == update->count ? note_grads : NULL;
        step.on_rows = trainer->shards->reducer ? mark_rows : NULL;
        step.grads_context = trainer->shards;
        SEQLSTM_TRY(sl_batch_slice(batch, shard, trainer->shards->ranks->shards, &slice, err));
        seqlstm_status status =
            has_rows(slice) ? sl_exec_run(trainer->request.exec, slice, &step, &result, err) : SEQLSTM_OK;
        if (status == SEQLSTM_OK && has_rows(slice)) {
            if (sl_trainer_is_last_stage(trainer) && sl_metric_rule_reads_output(&trainer->train_rule))
                output = sl_exec_get_output(trainer->request.exec);
            if (sl_trainer_is_last_stage(trainer))
                sl_metric_add(&trainer->train_rule, sums, slice, &output, &result);
            step.accumulate = true;
        }
        sl_batch_destroy(slice);
        SEQLSTM_TRY(status);
    }
    if (!step.accumulate)
        SEQLSTM_TRY(sl_exec_run_empty(trainer->request.exec, &step, err));
    return swap_states(trainer, shard, true, err);
}

static seqlstm_status add_gradients(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    const struct sl_trainer_shards *shards = trainer->shards;
    if (shards->direct)
        return sl_exchanged_add_on_device(trainer->request.params, &shards->ranks->replicas, err);
    if (shards->reducer)
        return sl_exchanged_finish(trainer->request.params, shards->reducer, err);
    if (!shards->grads && !shards->scratch)
        return SEQLSTM_OK;
    float *grads = sl_trainer_take_own(trainer);
    SEQLSTM_TRY(shards->grads
                    ? sl_tree_sum_finish(shards->grads, grads, err)
                    : sl_ranks_add(shards->ranks, grads, sl_trainer_count_own(trainer), shards->scratch, err));
    sl_trainer_put_own(trainer);
    sl_params_touch_grads(trainer->request.params);
    return SEQLSTM_OK;
}

/* With `reduce: central` rank 0 updates, and the others take its weights. */
static seqlstm_status apply(struct sl_trainer *trainer, const struct sl_exec_update *update, double *out_squares,
                            struct seqlstm_error *err)
{
    const struct sl_ranks *ranks = trainer->shards->ranks;
    const bool central = !ranks->ordered && ranks->reduce->how == SL_REDUCE_CENTRAL;
    struct sl_params *params = trainer->request.params;
    if (trainer->stages)
        return sl_trainer_update_own(trainer, update, out_squares, err);
    if (!central || ranks->rank == 0)
        SEQLSTM_TRY(sl_exec_update(trainer->request.exec, update, out_squares, err));
    if (!central)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_params_pull(params, err));
    SEQLSTM_TRY(sl_ranks_broadcast(ranks, 0, out_squares, (int64_t)sizeof *out_squares, err));
    SEQLSTM_TRY(
        sl_ranks_broadcast(ranks, 0, params->values, params->trainable_elems * (int64_t)sizeof *params->values, err));
    if (ranks->rank > 0)
        sl_params_touch(params);
    return SEQLSTM_OK;
}

seqlstm_status sl_trainer_run_shards(struct sl_trainer *trainer, struct sl_update *update, struct seqlstm_error *err)
{
    struct sl_trainer_shards *shards = trainer->shards;
    struct sl_metric_sums own;
    for (int32_t shard = shards->first; shard < shards->end; shard++) {
        memset(&own, 0, sizeof own);
        SEQLSTM_TRY(run_shard(trainer, update, shard, &own, err));
        SEQLSTM_TRY(sl_tree_sum_add(shards->sums, &own, err));
        if (shards->grads) {
            SEQLSTM_TRY(sl_params_pull_grads(trainer->request.params, err));
            SEQLSTM_TRY(sl_tree_sum_add(shards->grads, sl_trainer_take_own(trainer), err));
        }
        if (shard + 1 == shards->end && !shards->reducer)
            SEQLSTM_TRY(sl_tree_sum_finish(shards->sums, &update->sums, err));
    }
    SEQLSTM_TRY(sl_trainer_share_sums(trainer, &update->sums, err));
    SEQLSTM_TRY(add_gradients(trainer, err));
    if (shards->reducer) /* it has exchanged until now */
        SEQLSTM_TRY(sl_tree_sum_finish(shards->sums, &update->sums, err));
    const struct sl_exec_update making = {.count = (uint64_t)trainer->state.applied + 1,
                                          .learning_rate = update->rate,
                                          .skip = update->normaliser <= 0 || !isfinite(update->sums.loss)};
    SEQLSTM_TRY(apply(trainer, &making, &update->squares, err));
    update->started = update->done = update->count;
    return sl_ranks_agree(shards->ranks, err);
}

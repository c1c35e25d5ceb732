/* SPDX-License-Identifier: Apache-2.0 */
/* See continuous.h. */
#include "decode/continuous.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decode/parts.h"
#include "decode/sample.h"

/* A source whose target is being written. */
struct source {
    void *tag;
    struct sl_beam *beam;
    int64_t step;   /* tokens so far */
    int32_t length; /* steps of the source */
    int32_t place;  /* among the memories as they are laid out */
    float *memory;  /* what attention reads, [length, features] of each memory; NULL: nothing */
    bool over;      /* it pads the batch; there is no beam */
};

struct sl_continuous {
    struct sl_decoder_request request;
    struct sl_parts parts;
    const struct sl_graph *graph; /* of the step */
    struct source *sources;       /* [most] in the order of their rows */
    int64_t count, most;
    int64_t memory_rows, memory_rows_most; /* of all sources */
    int32_t rows;                          /* of the next step */
    int32_t *moves;                        /* [rows of the step's envelope] */
    int32_t *lengths;                      /* [most] */
    float *spare;                          /* as large as the states of a step */
    struct sl_batch *laid_out;             /* its source side has the lengths as they are laid out */
    struct sl_sample_candidate *candidates;
    bool pads;
    bool scattered; /* the memories must be laid out again before the next step */
    bool shifted;   /* the states are still where they were before sources left; `moves` says where */
};

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to decode");
}

/* ---- life -------------------------------------------------------------------------------------------------- */

static void find_limits(struct sl_continuous *continuous)
{
    const struct sl_graph *graph = continuous->graph, *encoder = sl_exec_get_graph(continuous->request.encoder);
    continuous->most = encoder->facts.envelope.sequences;
    continuous->memory_rows_most = encoder->facts.envelope.source_rows;
    for (int32_t m = 0; m < graph->memory_count; m++) {
        const int64_t rows = sl_graph_get_rows(graph, &graph->tensors[graph->memories[m].tensor_in]);
        if (rows < continuous->memory_rows_most)
            continuous->memory_rows_most = rows;
    }
}

seqlstm_status sl_continuous_create(const struct sl_decoder_request *request, struct sl_continuous **out_continuous,
                                    struct seqlstm_error *err)
{
    struct sl_continuous *continuous = calloc(1, sizeof *continuous);
    float *states;
    int64_t elems = 0;
    if (continuous == NULL)
        return no_memory(err);
    continuous->request = *request;
    continuous->graph = sl_exec_get_graph(request->step);
    find_limits(continuous);
    seqlstm_status status = sl_exec_get_state(request->step, &states, &elems, err);
    if (status == SEQLSTM_OK)
        status = sl_parts_init(&continuous->parts, request->encoder, request->step, err);
    const size_t rows = (size_t)continuous->graph->facts.envelope.sequences + 1, most = (size_t)continuous->most + 1;
    continuous->sources = calloc(most, sizeof *continuous->sources);
    continuous->lengths = calloc(most, sizeof *continuous->lengths);
    continuous->moves = calloc(rows, sizeof *continuous->moves);
    continuous->spare = calloc((size_t)elems + 1, sizeof *continuous->spare);
    continuous->candidates =
        calloc((size_t)continuous->graph->facts.target.classes + 1, sizeof *continuous->candidates);
    if (status == SEQLSTM_OK && (!continuous->sources || !continuous->lengths || !continuous->moves ||
                                 !continuous->spare || !continuous->candidates))
        status = no_memory(err);
    if (status == SEQLSTM_OK)
        *out_continuous = continuous;
    else
        sl_continuous_destroy(continuous);
    return status;
}

static void release(struct source *source)
{
    sl_beam_destroy(source->beam);
    free(source->memory);
    *source = (struct source){.tag = NULL};
}

static void drop_all(struct sl_continuous *continuous)
{
    for (int64_t s = 0; s < continuous->count; s++)
        release(&continuous->sources[s]);
    continuous->count = continuous->memory_rows = 0;
    continuous->rows = 0;
    continuous->scattered = continuous->shifted = false;
}

void sl_continuous_destroy(struct sl_continuous *continuous)
{
    if (continuous == NULL)
        return;
    if (continuous->sources)
        drop_all(continuous);
    sl_batch_destroy(continuous->laid_out);
    sl_parts_deinit(&continuous->parts);
    free(continuous->sources);
    free(continuous->lengths);
    free(continuous->moves);
    free(continuous->spare);
    free(continuous->candidates);
    free(continuous);
}

void sl_continuous_pad(struct sl_continuous *continuous)
{
    continuous->pads = true;
}

int64_t sl_continuous_count(const struct sl_continuous *continuous)
{
    return continuous->count;
}

bool sl_continuous_has_room(const struct sl_continuous *continuous, const struct sl_batch *batch)
{
    return continuous->count + batch->sequences <= continuous->most &&
           continuous->memory_rows + batch->source.axis.rows <= continuous->memory_rows_most;
}

/* ---- memories ---------------------------------------------------------------------------------------------- */

/* The memories of an encoded source, which lie at row `first` of those of its batch. */
static seqlstm_status keep_memory(struct sl_continuous *continuous, struct source *source, int64_t first,
                                  struct seqlstm_error *err)
{
    const struct sl_graph *encoder = sl_exec_get_graph(continuous->request.encoder);
    int64_t features = 0;
    for (int32_t m = 0; m < encoder->memory_count; m++)
        features += encoder->tensors[encoder->memories[m].tensor_out].features;
    if (features == 0 || source->length == 0)
        return SEQLSTM_OK;
    float *to = source->memory = malloc((size_t)(source->length * features) * sizeof *to);
    if (to == NULL)
        return no_memory(err);
    for (int32_t m = 0; m < encoder->memory_count; m++) {
        const int32_t tensor = encoder->memories[m].tensor_out;
        const int64_t width = encoder->tensors[tensor].features, elems = source->length * width;
        const float *values;
        int64_t all;
        SEQLSTM_TRY(sl_exec_read(continuous->request.encoder, tensor, &values, &all, err));
        memcpy(to, values + first * width, (size_t)elems * sizeof *to);
        to += elems;
    }
    return SEQLSTM_OK;
}

/* Gives the sources places, the longest first, as the axis of a batch has them. */
static seqlstm_status choose_places(struct sl_continuous *continuous, struct seqlstm_error *err)
{
    for (int64_t s = 0; s < continuous->count; s++) {
        const int32_t length = continuous->sources[s].length;
        int32_t place = 0;
        for (int64_t other = 0; other < continuous->count; other++) {
            const int32_t theirs = continuous->sources[other].length;
            place += theirs > length || (theirs == length && other < s);
        }
        continuous->sources[s].place = place;
        continuous->lengths[place] = length;
    }
    const struct sl_batch_shape shape = {.sequences = continuous->count,
                                         .source_lengths = continuous->lengths,
                                         .source_kind = SL_FIELD_IDS,
                                         .source_features = 1};
    sl_batch_destroy(continuous->laid_out);
    continuous->laid_out = NULL;
    SEQLSTM_TRY(sl_batch_create(&shape, &continuous->laid_out, err));
    continuous->parts.batch = continuous->laid_out;
    return SEQLSTM_OK;
}

static seqlstm_status lay_out(struct sl_continuous *continuous, struct seqlstm_error *err)
{
    continuous->scattered = true;
    SEQLSTM_TRY(choose_places(continuous, err));
    for (int64_t s = 0; s < continuous->count; s++) {
        const struct source *source = &continuous->sources[s];
        const float *from = source->memory;
        int64_t first = 0;
        for (int32_t place = 0; place < source->place; place++)
            first += continuous->lengths[place];
        for (int32_t m = 0; from && m < continuous->graph->memory_count; m++) {
            const int64_t width = continuous->graph->tensors[continuous->graph->memories[m].tensor_in].features;
            const int64_t elems = source->length * width;
            memcpy(sl_exec_write_memory(continuous->request.step, m) + first * width, from,
                   (size_t)elems * sizeof *from);
            from += elems;
        }
    }
    continuous->scattered = false;
    return SEQLSTM_OK;
}

/* ---- joining ----------------------------------------------------------------------------------------------- */

static struct sl_beam_rule get_rule(const struct sl_decoder_request *request)
{
    return (struct sl_beam_rule){.beam = (int32_t)request->config->beam,
                                 .n_best = (int32_t)request->config->n_best,
                                 .penalty = request->config->length_penalty,
                                 .begin = request->begin,
                                 .end = request->end,
                                 .never = request->never};
}

/* Sequence k of the batch that was encoded, as source `count`. */
static seqlstm_status add(struct sl_continuous *continuous, const struct sl_batch *batch, int64_t k, void *tag,
                          struct seqlstm_error *err)
{
    const struct sl_beam_rule rule = get_rule(&continuous->request);
    const struct seqlstm_axis *axis = &batch->source.axis;
    const int32_t place = batch->source.place[k];
    struct source *source = &continuous->sources[continuous->count++];
    int64_t first = 0;
    *source = (struct source){.tag = tag, .length = place < axis->sequences ? axis->lengths[place] : 0};
    for (int32_t p = 0; p < place && p < axis->sequences; p++)
        first += axis->lengths[p];
    const int32_t limit = sl_decoder_get_limit(continuous->request.config, source->length);
    SEQLSTM_TRY(sl_beam_create(&rule, 1, &limit, &source->beam, err));
    return keep_memory(continuous, source, first, err);
}

/* Moves the states of the present rows to where those of sources that have left were. */
static seqlstm_status close_gaps(struct sl_continuous *continuous, struct seqlstm_error *err)
{
    if (!continuous->shifted)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_parts_follow(&continuous->parts, continuous->spare, continuous->moves, continuous->rows, err));
    continuous->shifted = false;
    return SEQLSTM_OK;
}

/* The states that the encoder has left, behind those of the present rows. */
static seqlstm_status add_states(struct sl_continuous *continuous, int64_t sequences, struct seqlstm_error *err)
{
    const struct sl_decoder_request *request = &continuous->request;
    float *from, *to;
    int64_t elems;
    SEQLSTM_TRY(sl_exec_get_state(request->encoder, &from, &elems, err));
    SEQLSTM_TRY(sl_exec_get_state(request->step, &to, &elems, err));
    for (int32_t s = 0; s < continuous->graph->state_count; s++) {
        const int64_t features = continuous->graph->states[s].features;
        memcpy(to + sl_exec_get_state_offset(request->step, s) + continuous->rows * features,
               from + sl_exec_get_state_offset(request->encoder, s), (size_t)(sequences * features) * sizeof *to);
    }
    return SEQLSTM_OK;
}

static seqlstm_status join(struct sl_continuous *continuous, const struct sl_batch *batch, void *const *tags,
                           struct seqlstm_error *err)
{
    const struct sl_exec_step nothing = {0};
    struct sl_exec_result result;
    SEQLSTM_TRY(close_gaps(continuous, err));
    SEQLSTM_TRY(sl_exec_run(continuous->request.encoder, batch, &nothing, &result, err));
    for (int64_t k = 0; k < batch->sequences; k++)
        SEQLSTM_TRY(add(continuous, batch, k, tags[batch->sample[k]], err));
    SEQLSTM_TRY(add_states(continuous, batch->sequences, err));
    return lay_out(continuous, err);
}

seqlstm_status sl_continuous_join(struct sl_continuous *continuous, const struct sl_batch *batch, void *const *tags,
                                  struct seqlstm_error *err)
{
    const int64_t before = continuous->count;
    const seqlstm_status status = join(continuous, batch, tags, err);
    if (status == SEQLSTM_OK) {
        continuous->rows += (int32_t)batch->sequences; /* a search begins with one row */
        continuous->memory_rows += batch->source.axis.rows;
        return SEQLSTM_OK;
    }
    while (continuous->count > before)
        release(&continuous->sources[--continuous->count]);
    return status;
}

/* ---- steps ------------------------------------------------------------------------------------------------- */

/* Rows of the source in a batch, NULL: they are padding. */
static const struct sl_beam_row *get_rows(const struct sl_continuous *continuous, const struct source *source,
                                          int32_t *out_count)
{
    *out_count = (int32_t)continuous->request.config->beam;
    return source->over ? NULL : sl_beam_get_rows(source->beam, out_count);
}

static seqlstm_status run(struct sl_continuous *continuous, const float **out_probabilities, struct seqlstm_error *err)
{
    struct sl_parts *parts = &continuous->parts;
    int32_t at = 0;
    for (int64_t s = 0; s < continuous->count; s++) {
        const struct source *source = &continuous->sources[s];
        int32_t count;
        const struct sl_beam_row *rows = get_rows(continuous, source, &count);
        for (int32_t r = 0; r < count; r++, at++) {
            parts->tokens[at] = rows ? rows[r].token : continuous->request.begin;
            parts->sentences[at] = source->place;
            parts->positions[at] = (uint32_t)source->step;
        }
    }
    return sl_parts_run(parts, continuous->rows, out_probabilities, err);
}

/* One drawn token for the row of a beam of 1. */
static seqlstm_status draw(struct sl_continuous *continuous, struct source *source, const float *probabilities,
                           const int32_t **out_moves, struct seqlstm_error *err)
{
    const struct sl_decoder_request *request = &continuous->request;
    const struct sl_sample_rule rule = {request->config->temperature, request->config->top_k, request->config->top_p,
                                        request->never};
    const int64_t classes = continuous->graph->facts.target.classes;
    const double u = sl_decoder_draw(request->seed, source->step, 0);
    const int32_t token = sl_sample_draw(&rule, probabilities, classes, u, continuous->candidates);
    const double log_probability = log((double)probabilities[token]);
    return sl_beam_follow(source->beam, &token, &log_probability, out_moves, err);
}

/* The source chooses among the continuations of its `count` rows, of which the first is row `first` of the step; those
 * that it keeps are added to the next rows. */
static seqlstm_status advance(struct sl_continuous *continuous, struct source *source, int32_t first,
                              const float *probabilities, struct seqlstm_error *err)
{
    const int32_t *moves;
    int32_t kept;
    if (continuous->request.config->temperature > 0)
        SEQLSTM_TRY(draw(continuous, source, probabilities, &moves, err));
    else
        SEQLSTM_TRY(sl_beam_advance(source->beam, probabilities, continuous->graph->facts.target.classes, &moves, err));
    source->step++;
    sl_beam_get_rows(source->beam, &kept);
    for (int32_t r = 0; r < kept; r++)
        continuous->moves[continuous->rows++] = first + moves[r];
    return SEQLSTM_OK;
}

static seqlstm_status leave(struct sl_continuous *continuous, struct source *source, bool finite,
                            sl_continuous_write_fn *write, void *context, struct seqlstm_error *err)
{
    struct sl_hypothesis best = {.count = 0};
    if (finite && sl_beam_count_results(source->beam, 0) > 0)
        best = sl_beam_get_result(source->beam, 0, 0);
    const seqlstm_status status = write(context, source->tag, finite ? &best : NULL, err);
    if (continuous->pads) {
        sl_beam_destroy(source->beam);
        source->beam = NULL;
        source->over = true;
        return status;
    }
    continuous->memory_rows -= source->length;
    release(source);
    return status;
}

/* The rows of a source that is over stay where they are, as far as there are enough. */
static void keep_padding(struct sl_continuous *continuous, int32_t first, int32_t width)
{
    for (int32_t r = 0; r < (int32_t)continuous->request.config->beam; r++)
        continuous->moves[continuous->rows++] = first + (r < width ? r : 0);
}

/* Probabilities come from a softmax: if one of a row is no number, none is. */
static bool are_numbers(const float *probabilities, int32_t rows, int64_t classes)
{
    for (int32_t r = 0; r < rows; r++)
        if (!isfinite(probabilities[r * classes]))
            return false;
    return true;
}

static seqlstm_status step(struct sl_continuous *continuous, sl_continuous_write_fn *write, void *context,
                           struct seqlstm_error *err)
{
    const int64_t classes = continuous->graph->facts.target.classes, count = continuous->count;
    const float *probabilities;
    SEQLSTM_TRY(close_gaps(continuous, err));
    if (continuous->scattered)
        SEQLSTM_TRY(lay_out(continuous, err));
    SEQLSTM_TRY(run(continuous, &probabilities, err));
    int32_t first = 0, width, left;
    int64_t kept = 0, over = 0;
    continuous->rows = 0;
    for (int64_t s = 0; s < count; s++, first += width) {
        struct source *source = &continuous->sources[s];
        const float *own = probabilities + first * classes;
        const bool padding = get_rows(continuous, source, &width) == NULL;
        const bool finite = padding || are_numbers(own, width, classes);
        if (finite && !padding)
            SEQLSTM_TRY(advance(continuous, source, first, own, err));
        get_rows(continuous, source, &left);
        if (!finite || left == 0)
            SEQLSTM_TRY(leave(continuous, source, finite, write, context, err));
        over += source->over;
        if (source->over)
            keep_padding(continuous, first, width);
        if (source->beam == NULL && !source->over)
            continue;
        if (kept++ < s) {
            continuous->sources[kept - 1] = *source;
            *source = (struct source){.tag = NULL};
        }
    }
    continuous->count = kept;
    if (over == kept) /* nothing else is written */
        drop_all(continuous);
    return sl_parts_follow(&continuous->parts, continuous->spare, continuous->moves, continuous->rows, err);
}

seqlstm_status sl_continuous_step(struct sl_continuous *continuous, sl_continuous_write_fn *write, void *context,
                                  struct seqlstm_error *err)
{
    if (continuous->count == 0)
        return SEQLSTM_OK;
    const seqlstm_status status = step(continuous, write, context, err);
    if (status != SEQLSTM_OK)
        drop_all(continuous);
    return status;
}

void sl_continuous_drop(struct sl_continuous *continuous, const void *tag)
{
    int64_t s = 0;
    int32_t first = 0, width, at = 0;
    while (s < continuous->count && continuous->sources[s].tag != tag) {
        get_rows(continuous, &continuous->sources[s++], &width);
        first += width;
    }
    if (s == continuous->count)
        return;
    get_rows(continuous, &continuous->sources[s], &width);
    for (int32_t r = 0; r < continuous->rows; r++)
        if (r < first || r >= first + width)
            continuous->moves[at++] = continuous->shifted ? continuous->moves[r] : r;
    continuous->rows = at;
    continuous->shifted = true;
    continuous->memory_rows -= continuous->sources[s].length;
    release(&continuous->sources[s]);
    for (continuous->count--; s < continuous->count; s++)
        continuous->sources[s] = continuous->sources[s + 1];
    continuous->sources[s] = (struct source){.tag = NULL};
}

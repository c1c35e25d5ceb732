/* SPDX-License-Identifier: Apache-2.0 */
/* See batch.h. */
#include "serve/compute/batch.h"

#include <stdlib.h>
#include <string.h>

#include "predict/whole.h"
#include "serve/compute/texts.h"

/* Steps of a batch while texts are written, each of which gets one token in it. */
enum { WRITING_STEPS = 8 };

/* A batch takes at most this part of the latency target: a request waits for one batch, then is in several. */
enum { TARGET_PARTS = 8 };

static int64_t limit(double budget, double each, int64_t most)
{
    const double count = each > 0 ? budget / each : (double)most;
    return count < 1 ? 1 : count < (double)most ? (int64_t)count : most;
}

/* Is the sequence computed from its beginning to its end in batches of so many steps? Texts go token by token. */
static bool is_whole(const struct sl_runner *runner, const struct sl_running *running, int64_t most_steps)
{
    if (!runner->model->streams)
        return true;
    if (running->state || running->choice || running->ended)
        return false;
    return running->left <= most_steps || runner->serving->batching == SL_BATCHING_PADDED;
}

static int64_t choose_most_steps(const struct sl_runner *runner, double budget)
{
    const struct sl_served_model *model = runner->model;
    int64_t most = budget > 0 ? limit(budget, runner->step_ns, model->chunk_steps) : model->chunk_steps;
    for (int64_t k = 0; model->streams && k < runner->count; k++) {
        const struct sl_running *running = &runner->running[k];
        if (running->choice && running->choice->drawn > 0 && most > WRITING_STEPS)
            most = WRITING_STEPS;
    }
    return most;
}

/* No sequence that has ended goes further than those that have not. */
static void limit_padding(struct sl_runner *runner)
{
    int64_t longest = 0;
    for (int64_t k = 0; k < runner->count; k++)
        if (!runner->running[k].ended && runner->running[k].steps > longest)
            longest = runner->running[k].steps;
    for (int64_t k = 0; k < runner->count; k++)
        if (runner->running[k].ended && runner->running[k].steps > longest)
            runner->running[k].steps = longest;
}

/* Chooses how many steps of each sequence are computed now. Returns whether all are whole sequences. */
static bool choose_steps(struct sl_runner *runner)
{
    const struct sl_served_model *model = runner->model;
    const double budget = (double)runner->serving->target_ns / TARGET_PARTS;
    const bool pads = runner->serving->batching == SL_BATCHING_PADDED;
    const int64_t most_rows = budget > 0 && !model->streams ? limit(budget, runner->row_ns, model->rows) : model->rows;
    const int64_t most_steps = choose_most_steps(runner, budget);
    bool whole = true;
    for (int64_t k = 0; k < runner->count; k++)
        whole = whole && is_whole(runner, &runner->running[k], most_steps);
    int64_t rows = 0;
    for (int64_t k = 0; k < runner->count; k++) {
        struct sl_running *running = &runner->running[k];
        const int64_t steps = whole || running->left < most_steps ? running->left : most_steps;
        const bool fits = !whole || k == 0 || pads || rows + steps <= most_rows;
        running->steps = fits ? steps : -1;
        rows += fits ? steps : 0;
    }
    limit_padding(runner);
    return whole;
}

/* In place of choose_steps: what a sequence is computed with does not depend on others. */
static void choose_own_steps(struct sl_runner *runner)
{
    const int64_t most = runner->model->chunk_steps;
    for (int64_t k = 0; k < runner->count; k++) {
        struct sl_running *running = &runner->running[k];
        running->steps = is_whole(runner, running, most) || running->left < most ? running->left : most;
    }
}

static seqlstm_status make_room(struct sl_runner *runner, int64_t rows, int64_t out_rows, struct seqlstm_error *err)
{
    const struct sl_served_model *model = runner->model;
    if (rows > runner->x_rows) {
        free(runner->x);
        runner->x = malloc((size_t)(rows * model->input_features) * sizeof(float));
        runner->x_rows = runner->x ? rows : 0;
    }
    if (out_rows > runner->y_rows) {
        free(runner->y);
        runner->y = malloc((size_t)(out_rows * model->output_features) * sizeof(float));
        runner->y_rows = runner->y ? out_rows : 0;
    }
    if (runner->x_rows < rows || runner->y_rows < out_rows)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a batch");
    return SEQLSTM_OK;
}

static bool is_of(const struct sl_running *running, bool empties)
{
    return empties ? running->steps == 0 : running->steps >= 0;
}

static float *find_output(const struct sl_runner *runner, int64_t k)
{
    return runner->running[k].choice ? runner->probabilities + k * runner->model->output_features
                                     : runner->running[k].y;
}

/* As many rows of zeros as make all sequences as long as the longest, as sequences behind the others, so that they cost
 * what padding costs and change no answer. `*rows` is increased. Returns how many there are now. */
static int64_t add_padding(struct sl_runner *runner, int64_t count, int64_t *rows)
{
    int64_t longest = 0, padded = count;
    for (int64_t k = 0; k < count; k++)
        longest = runner->lengths[k] > longest ? runner->lengths[k] : longest;
    for (int64_t k = 0; k < count; k++)
        if (runner->lengths[k] > 0 && runner->lengths[k] < longest) {
            runner->lengths[padded++] = longest - runner->lengths[k];
            *rows += longest - runner->lengths[k];
        }
    return padded;
}

/* The sequences of the batch from their beginnings to their ends; `empties`: only those without steps. */
static seqlstm_status run_whole(struct sl_runner *runner, bool empties, struct seqlstm_error *err)
{
    const struct sl_served_model *model = runner->model;
    const size_t in_bytes = (size_t)model->input_features * sizeof(float);
    const size_t out_bytes = (size_t)model->output_features * sizeof(float);
    int64_t count = 0, rows = 0, out_rows = 0;
    for (int64_t k = 0; k < runner->count; k++)
        if (is_of(&runner->running[k], empties)) {
            runner->lengths[count++] = runner->running[k].steps;
            rows += runner->running[k].steps;
        }
    const int64_t own_rows = rows;
    if (runner->serving->batching == SL_BATCHING_PADDED && !empties && model->reads_steps)
        count = add_padding(runner, count, &rows);
    SEQLSTM_TRY(make_room(runner, rows, model->gives_steps ? rows : count, err));
    char *x = runner->x;
    if (rows > own_rows)
        memset(x + (size_t)own_rows * in_bytes, 0, (size_t)(rows - own_rows) * in_bytes);
    for (int64_t k = 0; k < runner->count && !empties; k++)
        if (runner->running[k].steps > 0) {
            memcpy(x, runner->running[k].x, (size_t)runner->running[k].steps * in_bytes);
            x += (size_t)runner->running[k].steps * in_bytes;
        }
    SEQLSTM_TRY(sl_context_predict(runner->context, runner->x, model->reads_steps ? runner->lengths : NULL, count,
                                   runner->y, err));
    for (int64_t k = 0; k < runner->count; k++) {
        const int64_t own = model->gives_steps ? runner->running[k].steps : 1;
        if (!is_of(&runner->running[k], empties))
            continue;
        if (own > 0)
            memcpy(runner->running[k].y, runner->y + out_rows * model->output_features, (size_t)own * out_bytes);
        out_rows += own;
    }
    return SEQLSTM_OK;
}

static seqlstm_status take_state(struct sl_runner *runner, struct sl_stream **out, struct seqlstm_error *err)
{
    if (runner->spare_count == 0)
        return sl_stream_open(runner->model->predictor, out, err);
    *out = runner->spare[--runner->spare_count];
    sl_stream_reset(*out);
    return SEQLSTM_OK;
}

static seqlstm_status find_state(struct sl_runner *runner, struct sl_running *running, struct seqlstm_error *err)
{
    return running->state ? SEQLSTM_OK : take_state(runner, &running->state, err);
}

static struct sl_chunk make_chunk(const struct sl_runner *runner, int64_t k)
{
    const struct sl_running *running = &runner->running[k];
    return (struct sl_chunk){.stream = running->state,
                             .x = running->x,
                             .steps = running->steps,
                             .y = find_output(runner, k),
                             .last = running->choice != NULL};
}

/* Behind the `own` chunks: as many steps of zeros as make all as long as the longest, on states that no sequence has.
 */
static seqlstm_status add_padding_chunks(struct sl_runner *runner, int64_t own, int64_t *count,
                                         struct seqlstm_error *err)
{
    int64_t longest = 0;
    for (int64_t k = 0; k < own; k++)
        longest = runner->chunks[k].steps > longest ? runner->chunks[k].steps : longest;
    for (int64_t k = 0; k < own; k++) {
        struct sl_stream *state;
        if (runner->chunks[k].steps == longest)
            continue;
        SEQLSTM_TRY(take_state(runner, &state, err));
        runner->chunks[(*count)++] =
            (struct sl_chunk){.stream = state, .x = runner->zeros, .steps = longest - runner->chunks[k].steps};
    }
    return SEQLSTM_OK;
}

/* The next steps of the sequences of the batch. */
static seqlstm_status run_chunks(struct sl_runner *runner, struct seqlstm_error *err)
{
    int64_t count = 0;
    bool empties = false;
    for (int64_t k = 0; k < runner->count; k++) {
        struct sl_running *running = &runner->running[k];
        empties = empties || running->steps == 0;
        if (running->steps <= 0)
            continue;
        SEQLSTM_TRY(find_state(runner, running, err));
        runner->chunks[count++] = make_chunk(runner, k);
    }
    if (empties)
        SEQLSTM_TRY(run_whole(runner, true, err));
    if (count == 0)
        return SEQLSTM_OK;
    const int64_t own = count;
    seqlstm_status status = SEQLSTM_OK;
    if (runner->serving->batching == SL_BATCHING_PADDED)
        status = add_padding_chunks(runner, own, &count, err);
    if (status == SEQLSTM_OK)
        status = sl_streams_advance(runner->context, runner->chunks, count, err);
    while (count > own)
        runner->spare[runner->spare_count++] = runner->chunks[--count].stream;
    return status;
}

/* Each sequence by itself: whole, or its next steps. */
static seqlstm_status run_each(struct sl_runner *runner, struct seqlstm_error *err)
{
    const struct sl_served_model *model = runner->model;
    for (int64_t k = 0; k < runner->count; k++) {
        struct sl_running *running = &runner->running[k];
        if (running->steps == 0 || is_whole(runner, running, model->chunk_steps)) {
            SEQLSTM_TRY(sl_context_predict(runner->context, running->x, model->reads_steps ? &running->steps : NULL, 1,
                                           running->y, err));
            continue;
        }
        SEQLSTM_TRY(find_state(runner, running, err));
        const struct sl_chunk chunk = make_chunk(runner, k);
        SEQLSTM_TRY(sl_streams_advance(runner->context, &chunk, 1, err));
    }
    return SEQLSTM_OK;
}

/* ---- all models -------------------------------------------------------------------------------------------- */

seqlstm_status sl_runner_compute(struct sl_runner *runner, struct seqlstm_error *err)
{
    if (runner->model->decodes)
        return runner->serving->reproducible ? sl_runner_write_each_text(runner, err)
                                             : sl_runner_write_texts(runner, err);
    if (runner->serving->reproducible) {
        choose_own_steps(runner);
        return run_each(runner, err);
    }
    const bool whole = choose_steps(runner);
    return whole ? run_whole(runner, false, err) : run_chunks(runner, err);
}

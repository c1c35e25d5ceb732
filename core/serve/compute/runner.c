/* SPDX-License-Identifier: Apache-2.0 */
/* See runner.h. */
#include "serve/compute/runner.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "predict/joined_texts.h"
#include "predict/whole.h"
#include "serve/compute/batch.h"
#include "serve/compute/texts.h"

enum { CHECK_NS = 50000000 };

/* ---- jobs -------------------------------------------------------------------------------------------------- */

static int64_t count_outputs(const struct sl_job *job)
{
    return job->model->gives_steps ? job->rows : job->count;
}

static bool pads(const struct sl_runner *runner)
{
    return runner->serving->batching == SL_BATCHING_PADDED;
}

static int64_t get_mean_length(const struct sl_job *job)
{
    return job->count > 0 ? job->rows / job->count : 0;
}

static void add_waiting(struct sl_waiting *waiting, const struct sl_job *job, int64_t sequences, int64_t rows)
{
    const int64_t mean = sequences > 0 ? rows / sequences : 0;
    waiting->sequences += sequences;
    waiting->rows += rows;
    waiting->longest = mean > waiting->longest ? mean : waiting->longest;
    waiting->goes_on = waiting->goes_on || job->goes_on;
}

void sl_runner_look(struct sl_runner *runner, const struct sl_job *job)
{
    sl_length_window_add(&runner->window, get_mean_length(job), job->count);
    add_waiting(&runner->waiting, job, job->count, job->rows);
}

/* Sequences of the next batch, at most. Texts get a token at a time side by side, and none waits for their ends. */
static int64_t choose_most(const struct sl_runner *runner)
{
    struct sl_waiting all = runner->waiting;
    for (int64_t k = 0; k < runner->count; k++)
        add_waiting(&all, runner->running[k].job, 1, runner->running[k].left);
    if (pads(runner) || runner->model->decodes || all.goes_on)
        return runner->model->sequences;
    const int64_t chosen = sl_batch_costs_choose(&runner->costs, all.sequences, all.longest, all.rows);
    return chosen < 1 ? 1 : chosen < runner->model->sequences ? chosen : runner->model->sequences;
}

void sl_runner_choose(struct sl_runner *runner)
{
    runner->most = choose_most(runner);
    runner->waiting = (struct sl_waiting){.sequences = 0};
    sl_length_window_choose(&runner->window, runner->most - runner->count);
    sl_length_window_clear(&runner->window);
}

/* A padded batch begins when the one before has ended. */
bool sl_runner_wants(const struct sl_runner *runner, const struct sl_job *job)
{
    if (pads(runner) && runner->count > 0)
        return false;
    return runner->first == NULL && runner->count + runner->promised < runner->most &&
           sl_length_window_has(&runner->window, get_mean_length(job));
}

bool sl_runner_is_busy(const struct sl_runner *runner)
{
    return runner->first || runner->count > 0;
}

void sl_runner_add(struct sl_runner *runner, struct sl_job *job)
{
    struct sl_job **end = &runner->first;
    job->out_rows = job->completion ? 0 : count_outputs(job);
    job->y = malloc((size_t)(job->out_rows * job->model->output_features) * sizeof *job->y + 1);
    if (job->y == NULL) {
        sl_job_fail(runner->serving, job, 503, "no memory for the answer", false);
        return;
    }
    if (job->count == 0) {
        sl_job_answer(runner->serving, job);
        return;
    }
    while (*end)
        end = &(*end)->next;
    *end = job;
}

static struct sl_running begin_sequence(struct sl_job *job, int64_t k)
{
    const int64_t steps = job->lengths ? job->lengths[k] : 1;
    const int64_t features = job->model->input_features;
    struct sl_running running = {.job = job, .left = steps};
    if (job->x)
        running.x = (const char *)job->x + job->begun_rows * features * (int64_t)sizeof(float);
    running.y = job->y + (job->model->gives_steps ? job->begun_rows : k) * job->model->output_features;
    job->begun_rows += steps;
    return running;
}

static struct sl_running begin_choice(struct sl_job *job, int64_t k)
{
    struct sl_choice *choice = &job->completion->choices[k];
    return (struct sl_running){
        .job = job, .choice = choice, .x = (const char *)choice->prompt->ids, .left = choice->prompt->count};
}

/* Sequences of the waiting jobs take the places that are free. */
static void begin_sequences(struct sl_runner *runner)
{
    if (pads(runner) && runner->count > 0)
        return;
    while (runner->first && runner->count < runner->model->sequences) {
        struct sl_job *job = runner->first;
        const int64_t k = job->begun++;
        struct sl_running *running = &runner->running[runner->count++];
        *running = job->completion ? begin_choice(job, k) : begin_sequence(job, k);
        if (job->stream) {
            running->state = job->stream->state;
            if (job->starts)
                sl_stream_reset(running->state);
        }
        if (job->begun == job->count) {
            runner->first = job->next;
            job->next = NULL;
        }
    }
}

/* Puts the state of a sequence aside, unless it is its stream's. */
static void release(struct sl_runner *runner, struct sl_running *running)
{
    sl_runner_drop_text(runner, running);
    if (running->state && (running->job->stream == NULL || running->ended))
        runner->spare[runner->spare_count++] = running->state;
    running->state = NULL;
}

/* Takes all sequences of the job out. */
static void remove_job(struct sl_runner *runner, const struct sl_job *job)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < runner->count; k++)
        if (runner->running[k].job == job)
            release(runner, &runner->running[k]);
        else
            runner->running[kept++] = runner->running[k];
    runner->count = kept;
    for (struct sl_job **at = &runner->first; *at; at = &(*at)->next)
        if (*at == job) {
            *at = job->next;
            return;
        }
}

/* Jobs whose client has left are not computed further. */
static void drop_gone(struct sl_runner *runner)
{
    const int64_t now = sl_clock_ns();
    for (int64_t k = 0; k < runner->count; k++) {
        struct sl_job *job = runner->running[k].job;
        if (job->stream || now - job->checked_ns < CHECK_NS)
            continue;
        job->checked_ns = now;
        if (!runner->serving->http->is_gone(job->request))
            continue;
        remove_job(runner, job);
        sl_counters_note_gone(&runner->serving->counters);
        sl_job_fail(runner->serving, job, 499, "the client has left", false);
        k = -1;
    }
}

/* ---- after a batch ----------------------------------------------------------------------------------------- */

/* Fails all jobs that were in the batch. */
static void fail(struct sl_runner *runner, seqlstm_status status, const char *message)
{
    for (int64_t k = 0; k < runner->count; k++) {
        struct sl_job *job = runner->running[k].job;
        if (runner->running[k].steps < 0)
            continue;
        remove_job(runner, job);
        sl_job_fail(runner->serving, job, status == SEQLSTM_NO_MEMORY ? 503 : 500, message, true);
        k = -1;
    }
}

/* A choice has read its prompt, or its last token: it gets the next one. Sets `*out_done` when its text has ended. */
static seqlstm_status write_token(struct sl_runner *runner, struct sl_running *running, const float *probabilities,
                                  bool *out_done, struct seqlstm_error *err)
{
    struct sl_job *job = running->job;
    struct sl_choice *choice = running->choice;
    SEQLSTM_TRY(sl_choice_take(job, choice, probabilities, runner->candidates, err));
    running->x = (const char *)&choice->token;
    running->left = 1;
    *out_done = choice->finish != NULL;
    if (job->completion->in_parts && !sl_job_send_part(runner->serving, job, choice - job->completion->choices))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "the client reads too slowly");
    return SEQLSTM_OK;
}

/* The sequence is further now. Returns whether it has ended. */
static bool go_on_one(struct sl_runner *runner, int64_t k)
{
    struct sl_running *running = &runner->running[k];
    const struct sl_served_model *model = runner->model;
    bool done = running->steps >= 0 && running->steps == running->left;
    if (running->ended)
        return false;
    if (running->steps > 0) {
        if (running->x) /* texts of decoders have none */
            running->x += running->steps * model->input_features * (int64_t)sizeof(float);
        running->left -= running->steps;
        if (running->y && model->gives_steps)
            running->y += running->steps * model->output_features;
    }
    if (done && running->choice) {
        const float *probabilities = runner->probabilities + k * model->output_features;
        running->failure = write_token(runner, running, probabilities, &done, running->job->failure);
    }
    return done && running->failure == SEQLSTM_OK;
}

static void leave(struct sl_runner *runner, struct sl_running *running)
{
    release(runner, running);
    runner->ended++;
    if (++running->job->finished == running->job->count) {
        sl_counters_note_sequences(&runner->serving->counters, running->job->count);
        *runner->finished_end = running->job;
        runner->finished_end = &running->job->next;
    }
}

static void answer(struct sl_runner *runner)
{
    struct sl_job *finished = runner->finished;
    runner->finished = NULL;
    runner->finished_end = &runner->finished;
    sl_jobs_answer(runner->serving, finished, runner->sequence_ns);
}

/* The sequence stays in its padded batch, with zeros as input, until the longest has ended. */
static void pad(struct sl_runner *runner, struct sl_running *running)
{
    release(runner, running);
    running->ended = true;
    running->choice = NULL;
    running->x = (const char *)runner->zeros;
    running->y = NULL;
    running->left = runner->model->chunk_steps;
}

/* All of a padded batch leave when all have ended. */
static void end_padded(struct sl_runner *runner)
{
    for (int64_t k = 0; k < runner->count; k++)
        if (!runner->running[k].ended)
            return;
    for (int64_t k = 0; k < runner->count; k++)
        leave(runner, &runner->running[k]);
    runner->count = 0;
}

/* Those that have ended leave, or stay as padding. */
static void go_on(struct sl_runner *runner)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < runner->count; k++) {
        struct sl_running *running = &runner->running[k];
        const bool done = go_on_one(runner, k);
        if (done && pads(runner))
            pad(runner, running);
        if (done && !pads(runner))
            leave(runner, running);
        else
            runner->running[kept++] = *running;
    }
    runner->count = kept;
    end_padded(runner);
}

static int get_http_status(seqlstm_status failure)
{
    switch (failure) {
    case SEQLSTM_NO_MEMORY:
        return 503;
    case SEQLSTM_CANCELLED:
        return 499;
    case SEQLSTM_INVALID_ARGUMENT:
    case SEQLSTM_CORRUPT_DATA:
        return 400;
    default:
        return 500;
    }
}

/* Jobs whose text was refused or could not be continued. */
static void fail_written(struct sl_runner *runner)
{
    const bool writes = runner->model->continues || runner->model->decodes;
    for (int64_t k = 0; writes && k < runner->count; k++) {
        struct sl_job *job = runner->running[k].job;
        const seqlstm_status failure = runner->running[k].failure;
        if (failure == SEQLSTM_OK)
            continue;
        const struct seqlstm_error why = *job->failure;
        remove_job(runner, job);
        sl_job_fail(runner->serving, job, get_http_status(failure), why.message, true);
        k = -1;
    }
}

static void note_mean(double *mean, double value)
{
    *mean = *mean > 0 ? 0.9 * *mean + 0.1 * value : value;
}

static void note_times(struct sl_runner *runner, struct sl_history_event *event)
{
    const double took = (double)(sl_clock_ns() - event->begin_ns);
    int64_t longest = 1, width = 0, rows = 0;
    for (int64_t k = 0; k < runner->count; k++) {
        const int64_t steps = runner->running[k].steps;
        width += steps >= 0 && !runner->running[k].ended;
        rows += steps > 0 && !runner->running[k].ended ? steps : 0;
        longest = steps > longest ? steps : longest;
    }
    note_mean(&runner->step_ns, took / (double)longest);
    runner->busy_ns += took;
    note_mean(&runner->row_ns, took / (double)(rows > 0 ? rows : 1));
    if (rows > 0 && took > 0)
        sl_batch_costs_note(&runner->costs, longest, rows, took);
    sl_counters_note_batch(&runner->serving->counters, runner->model->decodes ? runner->live : width, rows,
                           took * 1e-9);
    event->steps = runner->model->decodes ? runner->tokens : longest;
    event->sequences = runner->model->decodes ? runner->live : width;
    event->rows = runner->model->decodes ? runner->live * runner->tokens : rows;
}

/* What a sequence took, those that have just ended. */
static void note_ended(struct sl_runner *runner)
{
    if (runner->ended == 0)
        return;
    note_mean(&runner->sequence_ns, runner->busy_ns / (double)runner->ended);
    runner->busy_ns = 0;
    runner->ended = 0;
}

void sl_runner_run(struct sl_runner *runner)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_history_event event = {.number = -1, .begin_ns = sl_clock_ns()};
    drop_gone(runner);
    end_padded(runner); /* the client of the longest may have left */
    answer(runner);
    begin_sequences(runner);
    if (runner->count == 0)
        return;
    const seqlstm_status status = sl_runner_compute(runner, &err);
    if (status != SEQLSTM_OK) {
        fail(runner, status, err.message);
        return;
    }
    note_times(runner, &event);
    go_on(runner);
    note_ended(runner);
    answer(runner);
    fail_written(runner);
    event.end_ns = sl_clock_ns();
    sl_history_note(runner->serving->history, &event);
}

/* ---- life -------------------------------------------------------------------------------------------------- */

/* A sequence of one step: what the first call of each function and the first use of each buffer cost is paid now. */
static seqlstm_status predict_zeros(struct sl_runner *runner, struct seqlstm_error *err)
{
    const struct sl_served_model *model = runner->model;
    const int64_t steps = 1;
    void *x = calloc((size_t)model->input_features, sizeof(float));
    float *y = calloc((size_t)model->output_features, sizeof *y);
    seqlstm_status status = SEQLSTM_OK;
    if (x == NULL || y == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a worker");
    else
        status = sl_context_predict(runner->context, x, model->reads_steps ? &steps : NULL, 1, y, err);
    free(x);
    free(y);
    return status;
}

static seqlstm_status open_context(struct sl_runner *runner, struct seqlstm_error *err)
{
    struct sl_decoder *decoder = NULL;
    static const enum sl_predictor_use uses[] = {SL_USE_WHOLE, SL_USE_FEW};
    const struct sl_predictor *predictor = runner->model->predictor;
    SEQLSTM_TRY(sl_context_open(predictor, &runner->context, err));
    if (runner->model->decodes && pads(runner))
        return sl_context_pad_texts(runner->context, err);
    if (runner->model->decodes)
        return runner->serving->reproducible ? sl_context_provide_decoder(runner->context, &decoder, err)
                                             : sl_context_provide_continuous(runner->context, err);
    for (int u = 0; u < 2; u++) {
        struct sl_predictor_lane *lane = NULL;
        if (sl_predictor_find_graph(predictor, uses[u]))
            SEQLSTM_TRY(sl_context_provide(runner->context, uses[u], &lane, err));
    }
    return predict_zeros(runner, err);
}

seqlstm_status sl_runner_init(struct sl_runner *runner, struct sl_serving *serving, const struct sl_served_model *model,
                              struct seqlstm_error *err)
{
    const size_t most = (size_t)model->sequences + 1;
    *runner = (struct sl_runner){.serving = serving, .model = model};
    runner->finished_end = &runner->finished;
    runner->running = calloc(most, sizeof *runner->running);
    runner->spare = calloc(2 * most, sizeof *runner->spare);
    runner->chunks = calloc(2 * most, sizeof *runner->chunks);
    runner->lengths = calloc(2 * most, sizeof *runner->lengths);
    runner->zeros = calloc((size_t)(model->chunk_steps * model->input_features) + 1, sizeof *runner->zeros);
    if (!runner->running || !runner->spare || !runner->chunks || !runner->lengths || !runner->zeros)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a worker");
    if (model->decodes) {
        runner->asked = calloc(most, sizeof *runner->asked);
        runner->texts = calloc(most, sizeof *runner->texts);
        runner->text_bytes = calloc(most, sizeof *runner->text_bytes);
        runner->tags = calloc(most, sizeof *runner->tags);
        runner->joined = calloc(most, sizeof *runner->joined);
        if (!runner->asked || !runner->texts || !runner->text_bytes || !runner->tags || !runner->joined)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a worker");
    }
    const bool whole = model->reads_steps && !model->streams && !model->decodes;
    if (whole && !pads(runner) && !serving->reproducible && !sl_length_window_init(&runner->window, model->steps))
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a worker");
    if (model->continues) {
        runner->probabilities = calloc(most * (size_t)model->output_features, sizeof *runner->probabilities);
        runner->candidates = calloc((size_t)model->output_features, sizeof *runner->candidates);
        if (!runner->probabilities || !runner->candidates)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a worker");
    }
    return open_context(runner, err);
}

void sl_runner_deinit(struct sl_runner *runner)
{
    for (int64_t k = 0; k < runner->spare_count; k++)
        sl_stream_close(runner->spare[k]);
    sl_context_close(runner->context);
    free(runner->running);
    free(runner->spare);
    free(runner->chunks);
    free(runner->lengths);
    free(runner->zeros);
    free(runner->probabilities);
    free(runner->asked);
    free(runner->texts);
    free(runner->text_bytes);
    free(runner->tags);
    free(runner->joined);
    free(runner->candidates);
    free(runner->x);
    free(runner->y);
    sl_length_window_deinit(&runner->window);
    *runner = (struct sl_runner){.count = 0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See advice.h. */
#include "compare/advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/system/cpu.h"
#include "base/value/median.h"
#include "base/value/text.h"
#include "session/record/session_record.h"
#include "session/run/turn.h"

enum { ROUNDS = 5, TRIALS = 16, OVERRIDES = 128, WARM = 3, UPDATES_LEAST = 3, UPDATES_MOST = 400 };

static const double turn_ns = 250e6;   /* of the profiled training */
static const double helps_from = 1.05; /* less is not worth a change */

struct trial {
    struct sl_timeline_advice advice;
    char assignment[96]; /* as for --set; "": none */
    int32_t threads;     /* 0: as before */
    bool is_free;        /* without --backend */
    double batch;        /* size of its batches, relative to those of the profiled training */
};

struct finder {
    const struct sl_advice_request *request;
    struct trial trials[TRIALS];
    int32_t count;
    int64_t begin_ns;
};

static struct trial *add(struct finder *finder)
{
    static struct trial ignored;
    struct trial *trial = finder->count < TRIALS ? &finder->trials[finder->count++] : &ignored;
    *trial = (struct trial){.batch = 1};
    return trial;
}

/* ---- what to try out -------------------------------------------------------------------------------------------- */

static void add_threads(struct finder *finder)
{
    const int32_t now = sl_pool_get_members(finder->request->session->pool), cores = sl_cpu_count();
    const int32_t numbers[] = {cores, 2 * now, now / 2, 1};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        bool seen = numbers[k] == now || numbers[k] < 1 || numbers[k] > cores;
        for (size_t before = 0; before < k; before++)
            seen = seen || numbers[before] == numbers[k];
        if (seen)
            continue;
        struct trial *trial = add(finder);
        trial->threads = numbers[k];
        sl_text_snprintf(trial->advice.change, sizeof trial->advice.change, "--threads %d", numbers[k]);
    }
}

static void add_batches(struct finder *finder)
{
    const struct sl_session *session = finder->request->session;
    const struct sl_data_config *data = &session->model->data;
    const int64_t records = sl_data_state_get_facts(session->state)->records, now = data->batch_size;
    if (data->batching.max_tokens > 0 || data->batching.unit == SL_UNIT_STREAM)
        return; /* other keys decide how large a batch is; those of a stream change what is learned */
    for (int64_t factor = 2; factor <= 8 && 2 * factor * now <= records; factor *= 2) {
        struct trial *trial = add(finder);
        trial->batch = (double)factor;
        sl_text_snprintf(trial->assignment, sizeof trial->assignment, "data.batch_size=%lld",
                         (long long)(factor * now));
        sl_text_snprintf(trial->advice.change, sizeof trial->advice.change, "--set %s", trial->assignment);
        sl_text_snprintf(trial->advice.note, sizeof trial->advice.note,
                         "an epoch then has 1/%d of the updates, which may need another learning rate", (int)factor);
    }
}

static void add_assignment(struct finder *finder, const char *assignment, const char *note)
{
    struct trial *trial = add(finder);
    sl_text_snprintf(trial->assignment, sizeof trial->assignment, "%s", assignment);
    sl_text_snprintf(trial->advice.change, sizeof trial->advice.change, "--set %s", assignment);
    sl_text_snprintf(trial->advice.note, sizeof trial->advice.note, "%s", note);
}

static void add_backends(struct finder *finder)
{
    const struct sl_session *session = finder->request->session;
    const struct sl_dispatch_config *dispatch = &session->model->dispatch;
    if (dispatch->pin_count > 0)
        add_assignment(finder, "dispatch.pin=null", "each layer then runs where it is fastest");
    if (dispatch->policy != SL_POLICY_MEASURED)
        add_assignment(finder, "dispatch.policy=measured", "");
    if (session->options.forced_backend) {
        struct trial *trial = add(finder);
        trial->is_free = true;
        sl_text_snprintf(trial->advice.change, sizeof trial->advice.change, "no --backend");
        sl_text_snprintf(trial->advice.note, sizeof trial->advice.note, "each layer then runs where it is fastest");
    }
}

static void list_trials(struct finder *finder)
{
    add_threads(finder);
    add_backends(finder); /* before batches, whose turns are the longest: time may run out */
    add_batches(finder);
    if (finder->request->session->model->precision == SL_PRECISION_FLOAT32)
        add_assignment(finder, "precision=bfloat16", "numbers are then less exact: compare the metrics");
}

/* ---- trying it out ---------------------------------------------------------------------------------------------- */

static int64_t count_turn(double update_ns)
{
    const double count = turn_ns / update_ns;
    return count < UPDATES_LEAST ? UPDATES_LEAST : count > UPDATES_MOST ? UPDATES_MOST : (int64_t)count;
}

/* Real steps per nanosecond; 0: the training ended before. */
static seqlstm_status take_turn(struct sl_session *session, int64_t updates, double *out_rate,
                                struct seqlstm_error *err)
{
    struct sl_turn turn = {0};
    SEQLSTM_TRY(sl_session_take_turn(session, NULL, WARM, updates, &turn, err));
    *out_rate = turn.ns > 0 ? (double)turn.rows / turn.ns : 0;
    return SEQLSTM_OK;
}

/* Turns of both, until one shows that the change does not help. `*out_failed`: the trial's session has, which is no
 * error. */
static seqlstm_status compare(struct finder *finder, struct trial *trial, struct sl_session *session, bool *out_failed,
                              struct seqlstm_error *err)
{
    double before = 0, after = 0, ratios[ROUNDS];
    struct sl_timeline_advice *advice = &trial->advice;
    struct sl_turn turn = {0};
    advice->low = INFINITY;
    /* How long its updates take, which may be much less; this also warms it up. */
    *out_failed = sl_session_take_turn(session, NULL, WARM, count_turn(finder->request->update_ns * trial->batch),
                                       &turn, NULL) != SEQLSTM_OK ||
                  turn.updates == 0;
    const int64_t updates = *out_failed ? 0 : count_turn(turn.ns / (double)turn.updates);
    int rounds = 0;
    while (rounds < ROUNDS && !*out_failed && advice->low > 1) {
        SEQLSTM_TRY(take_turn(finder->request->session, count_turn(finder->request->update_ns), &before, err));
        *out_failed = take_turn(session, updates, &after, NULL) != SEQLSTM_OK || !(before > 0) || !(after > 0);
        if (*out_failed)
            continue;
        ratios[rounds] = after / before;
        advice->low = fmin(advice->low, ratios[rounds]);
        advice->high = fmax(advice->high, ratios[rounds++]);
    }
    if (!*out_failed)
        advice->speed = sl_median(ratios, rounds);
    advice->helps = advice->low > 1 && advice->speed >= helps_from;
    return SEQLSTM_OK;
}

static seqlstm_status open_trial(struct finder *finder, const struct trial *trial, struct sl_override *overrides,
                                 struct sl_model_request *model, struct sl_diagnostics *diagnostics,
                                 struct sl_session **out_session)
{
    struct sl_session_options options = *finder->request->options;
    *model = *options.model;
    if (model->override_count > 0)
        memcpy(overrides, model->overrides, model->override_count * sizeof *overrides);
    if (trial->assignment[0])
        overrides[model->override_count++] = (struct sl_override){.origin = "--set", .assignment = trial->assignment};
    model->overrides = overrides;
    options.model = model;
    options.log = NULL;
    options.profile_updates = 0;
    if (trial->threads > 0) {
        options.threads = trial->threads;
        options.threads_given = true;
    }
    if (trial->is_free)
        options.forced_backend = NULL;
    SEQLSTM_TRY(sl_session_open_model(&options, diagnostics, out_session, NULL));
    return sl_session_prepare_training(*out_session, NULL);
}

static seqlstm_status run_trial(struct finder *finder, struct trial *trial, bool *out_failed, struct seqlstm_error *err)
{
    struct sl_override overrides[OVERRIDES];
    struct sl_model_request model;
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_session *session = NULL;
    if (finder->request->options->model->override_count >= OVERRIDES)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "too many overrides");
    SEQLSTM_TRY(sl_diagnostics_create(&diagnostics, err));
    seqlstm_status status = SEQLSTM_OK;
    *out_failed = open_trial(finder, trial, overrides, &model, diagnostics, &session) != SEQLSTM_OK;
    if (!*out_failed)
        status = compare(finder, trial, session, out_failed, err);
    sl_session_close(session);
    sl_diagnostics_destroy(diagnostics);
    return status;
}

static void keep(struct sl_timeline_advices *advices, const struct sl_timeline_advice *advice)
{
    int32_t at = advices->count++;
    for (; at > 0 && (advice->helps > advices->items[at - 1].helps ||
                      (advice->helps == advices->items[at - 1].helps && advice->speed > advices->items[at - 1].speed));
         at--)
        advices->items[at] = advices->items[at - 1];
    advices->items[at] = *advice;
}

seqlstm_status sl_advice_find(const struct sl_advice_request *request, struct sl_timeline_advices *out_advices,
                              struct seqlstm_error *err)
{
    struct finder *finder = calloc(1, sizeof *finder);
    if (!finder)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for trials");
    finder->request = request;
    finder->begin_ns = sl_clock_ns();
    out_advices->count = 0;
    list_trials(finder);
    seqlstm_status status = SEQLSTM_OK;
    for (int32_t t = 0; t < finder->count && status == SEQLSTM_OK; t++) {
        bool failed = false;
        if (1e-9 * (double)(sl_clock_ns() - finder->begin_ns) > request->seconds)
            break;
        if (request->on_trial)
            request->on_trial(request->context, finder->trials[t].advice.change);
        status = run_trial(finder, &finder->trials[t], &failed, err);
        if (status == SEQLSTM_OK && sl_interrupt_get_stop(request->options->interrupt))
            status = seqlstm_error_set(err, SEQLSTM_CANCELLED, __FILE__, __LINE__, "interrupted");
        if (status == SEQLSTM_OK && !failed)
            keep(out_advices, &finder->trials[t].advice);
    }
    free(finder);
    return status;
}

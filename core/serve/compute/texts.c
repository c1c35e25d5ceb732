/* SPDX-License-Identifier: Apache-2.0 */
/* See texts.h. */
#include "serve/compute/texts.h"

#include <stdlib.h>
#include <string.h>

#include "predict/batches.h"
#include "predict/joined_texts.h"

/* Tokens that are written between two looks at the queue. */
enum { TOKENS = 4 };

/* Where the answer goes; it names the text, too. */
static struct sl_written *get_written(const struct sl_running *running)
{
    return &running->job->written[running->y - running->job->y];
}

static seqlstm_status keep(struct sl_running *running, const char *text, size_t bytes, double score,
                           struct seqlstm_error *err)
{
    struct sl_written *written = get_written(running);
    free(written->text);
    written->text = malloc(bytes + 1);
    written->bytes = written->text ? bytes : 0;
    if (written->text == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a text");
    memcpy(written->text, text, bytes);
    *running->y = (float)score;
    return SEQLSTM_OK;
}

/* Lists the texts [first, first + count) of those that were asked for. */
static void list_texts(struct sl_runner *runner, int64_t first, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        const struct sl_running *running = runner->asked[first + k];
        const int64_t text = running->y - running->job->y;
        runner->texts[k] = running->job->texts[text];
        runner->text_bytes[k] = running->job->text_bytes[text];
        runner->tags[k] = get_written(running);
    }
}

static bool spares_others(seqlstm_status status)
{
    return status != SEQLSTM_OK && status != SEQLSTM_NO_MEMORY && status != SEQLSTM_INTERNAL;
}

/* ---- together ---------------------------------------------------------------------------------------------- */

static seqlstm_status join(struct sl_runner *runner, int64_t first, int64_t count, struct seqlstm_error *err)
{
    list_texts(runner, first, count);
    const seqlstm_status status = sl_context_join_texts(runner->context, runner->texts, runner->text_bytes,
                                                        runner->tags, count, runner->joined, err);
    for (int64_t k = 0; k < count; k++)
        runner->asked[first + k]->joined = runner->joined[k];
    return status;
}

/* If a text is refused, each joins by itself, so that it does not spoil the others; in their order all the same. */
static seqlstm_status join_all(struct sl_runner *runner, struct seqlstm_error *err)
{
    int64_t count = 0;
    for (int64_t k = 0; k < runner->count; k++)
        if (!runner->running[k].joined && !runner->running[k].ended)
            runner->asked[count++] = &runner->running[k];
    const seqlstm_status status = count > 0 ? join(runner, 0, count, err) : SEQLSTM_OK;
    if (!spares_others(status))
        return status;
    bool fits = true;
    for (int64_t k = 0; k < count && fits; k++) {
        struct sl_running *running = runner->asked[k];
        if (running->joined)
            continue;
        running->failure = join(runner, k, 1, running->job->failure);
        fits = running->joined || running->failure != SEQLSTM_OK;
    }
    return SEQLSTM_OK;
}

static seqlstm_status end_text(void *context, void *tag, const struct sl_joined_answer *answer,
                               struct seqlstm_error *err)
{
    struct sl_runner *runner = context;
    struct sl_running *running = runner->running;
    while (!running->joined || get_written(running) != tag)
        running++;
    running->joined = false;
    running->steps = 1;
    runner->text_ends++;
    if (answer)
        return keep(running, answer->text, answer->bytes, answer->score, err);
    running->failure = seqlstm_error_set(running->job->failure, SEQLSTM_NUMERIC, __FILE__, __LINE__,
                                         "the decoder's probabilities are not numbers");
    return SEQLSTM_OK;
}

static seqlstm_status write_tokens(struct sl_runner *runner, struct seqlstm_error *err)
{
    SEQLSTM_TRY(join_all(runner, err));
    runner->live = sl_context_count_texts(runner->context);
    runner->text_ends = 0;
    for (runner->tokens = 0; runner->tokens < TOKENS && runner->text_ends == 0; runner->tokens++)
        SEQLSTM_TRY(sl_context_step_texts(runner->context, end_text, runner, err));
    return SEQLSTM_OK;
}

seqlstm_status sl_runner_write_texts(struct sl_runner *runner, struct seqlstm_error *err)
{
    for (int64_t k = 0; k < runner->count; k++)
        runner->running[k].steps = -1;
    const seqlstm_status status = write_tokens(runner, err);
    for (int64_t k = 0; k < runner->count && status != SEQLSTM_OK; k++)
        runner->running[k].steps = 0;
    return status;
}

void sl_runner_drop_text(struct sl_runner *runner, struct sl_running *running)
{
    if (running->joined)
        sl_context_drop_text(runner->context, get_written(running));
    running->joined = false;
}

/* ---- each by itself ---------------------------------------------------------------------------------------- */

/* Keeps the best answer to a text; there is none to the empty one. */
static seqlstm_status keep_answer(void *context, const struct sl_prediction *prediction, struct seqlstm_error *err)
{
    const struct sl_prediction_text *best = prediction->texts;
    return prediction->text_count < 1 ? SEQLSTM_OK : keep(context, best->text, best->bytes, best->score, err);
}

seqlstm_status sl_runner_write_each_text(struct sl_runner *runner, struct seqlstm_error *err)
{
    (void)err;
    for (int64_t k = 0; k < runner->count; k++) {
        struct sl_running *running = runner->asked[0] = &runner->running[k];
        list_texts(runner, 0, 1);
        running->steps = 1;
        running->failure = sl_context_predict_texts(runner->context, runner->texts, runner->text_bytes, 1, keep_answer,
                                                    running, running->job->failure);
    }
    runner->live = runner->count;
    return SEQLSTM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a run tells and leaves, as a whole and in order: steps, reports, epochs, validations, checkpoints, warnings, the
 * rows of metrics.jsonl, the files that stay, and the result. An update takes a second and a batch of a validation
 * three on the clock of the test. The cases are lines of options; see support/dump_file.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>

#include "dump_file.h"
#include "oom.h"
#include "temporary.h"

static char root[TEMPORARY_BYTES];

#include "train_world.h"

#include "base/system/log.h"
#include "train/checkpoint/checkpoint.h"

/* The story so far, and what the user does. */
static struct {
    struct sl_buf *out;
    struct world *world;
    int64_t stop_at, save_at;
} story;

static int64_t count_work(void *context)
{
    const struct world *world = context;
    return INT64_C(1000000000) * (world->exec.runs + 3 * world->evaluate.runs);
}

static void tell(const char *what, const struct sl_train_report *report)
{
    sl_buf_printf(story.out, "%s after %lld, epochs %.4g, %lld s, %lld tokens; epoch %lld, batch %lld of %lld", what,
                  (long long)report->progress.updates, report->progress.epochs, (long long)report->progress.seconds,
                  (long long)report->progress.tokens, (long long)report->epoch, (long long)report->batch,
                  (long long)report->epoch_batches);
    sl_buf_printf(story.out, "; rate %.4g, norm %.3g, loss %.3g", report->learning_rate, report->gradient_norm,
                  report->loss);
    if (!isnan(report->rows_per_second) && report->path == NULL)
        sl_buf_printf(story.out, ", %.4g rows a second", report->rows_per_second);
    if (report->skipped)
        sl_buf_printf(story.out, ", %lld skipped", (long long)report->skipped);
    for (int32_t m = 0; report->values && m < report->values->count; m++)
        sl_buf_printf(story.out, ", %s %.3g", report->values->items[m].name, report->values->items[m].value);
    if (report->improved)
        sl_buf_append_text(story.out, ", better");
    if (report->path)
        sl_buf_printf(story.out, ", %s", strrchr(report->path, '/') + 1);
    sl_buf_append_text(story.out, "\n");
}

static void tell_step(void *context, const struct sl_train_report *report)
{
    (void)context;
    assert_null(report->values);
    tell("step", report);
    if (report->progress.updates == story.stop_at)
        atomic_store(&story.world->interrupt.stop, 15);
    if (report->progress.updates == story.save_at)
        atomic_store(&story.world->interrupt.save, 1);
}

static void tell_report(void *context, const struct sl_train_report *report)
{
    (void)context;
    tell("report", report);
}

static void tell_epoch(void *context, const struct sl_train_report *report)
{
    (void)context;
    tell("epoch", report);
}

static void tell_validation(void *context, const struct sl_train_report *report)
{
    (void)context;
    tell("validation", report);
}

static void tell_checkpoint(void *context, const struct sl_train_report *report)
{
    (void)context;
    tell("checkpoint", report);
}

static void tell_log(void *context, enum sl_log_level level, const char *text)
{
    (void)context;
    sl_buf_printf(story.out, "%s: %s\n", sl_log_level_name(level), text);
}

/* ---- a run --------------------------------------------------------------------------------------------------------
 */

static void set_option(struct world *world, const char *line)
{
    struct sl_train_config *train = &world->model.train;
    char key[32];
    double value = 0;
    sscanf(line, "%31s %lf", key, &value);
    const int64_t whole = (int64_t)value;
    if (strcmp(key, "epochs") == 0)
        train->epochs = whole;
    else if (strcmp(key, "updates") == 0)
        train->updates = whole;
    else if (strcmp(key, "accumulate") == 0)
        train->accumulate = whole;
    else if (strcmp(key, "report") == 0)
        world->model.log.every = (struct sl_period){SL_PERIOD_UPDATES, whole};
    else if (strcmp(key, "report_seconds") == 0)
        world->model.log.every = (struct sl_period){SL_PERIOD_SECONDS, whole};
    else if (strcmp(key, "validate") == 0)
        train->validate.every = (struct sl_period){SL_PERIOD_UPDATES, whole};
    else if (strcmp(key, "validate_epochs") == 0)
        train->validate.every = (struct sl_period){SL_PERIOD_EPOCHS, whole};
    else if (strcmp(key, "checkpoint") == 0)
        train->checkpoint.every = (struct sl_period){SL_PERIOD_UPDATES, whole};
    else if (strcmp(key, "keep_best") == 0)
        train->checkpoint.keep_best = whole;
    else if (strcmp(key, "keep_last") == 0)
        train->checkpoint.keep_last = whole;
    else if (strcmp(key, "best_is_largest") == 0)
        train->checkpoint.mode = SL_MODE_MAX;
    else if (strcmp(key, "max_time") == 0)
        train->max_time = (struct sl_period){SL_PERIOD_SECONDS, whole};
    else if (strcmp(key, "rate") == 0)
        train->optimizer.learning_rate = value;
    else if (strcmp(key, "patience") == 0)
        train->early_stopping = (struct sl_early_stopping){
            .enabled = true, .monitor = "valid.loss", .patience = whole, .min_delta = 0, .restore_best = true};
    else if (strcmp(key, "patience_alone") == 0)
        train->early_stopping = (struct sl_early_stopping){
            .enabled = true, .monitor = "valid.loss", .patience = whole, .min_delta = 0, .restore_best = false};
    else if (strcmp(key, "skip_losses") == 0)
        train->on_divergence = SL_DIVERGENCE_SKIP, world->exec.poison_at = whole;
    else if (strcmp(key, "skip_gradients") == 0)
        train->on_divergence = SL_DIVERGENCE_SKIP, world->exec.poison_grad_at = whole;
    else if (strcmp(key, "skip_count") == 0)
        world->exec.poison_count = whole;
    else if (strcmp(key, "estimate") == 0)
        world->train.estimate = whole;
    else if (strcmp(key, "batches") == 0)
        world->train.batches = whole;
    else if (strcmp(key, "valid_ignored") == 0)
        world->valid.ignored = value;
    else if (strcmp(key, "no_validation") == 0)
        world->request.valid = NULL, world->request.evaluate = NULL;
    else if (strcmp(key, "stop") == 0)
        story.stop_at = whole;
    else if (strcmp(key, "save") == 0)
        story.save_at = whole;
    else
        fail_msg("no option `%s`", key);
}

/* Two epochs of five batches, validated after each; nothing else is due. */
static struct world *make_world(const char *name, const char *text)
{
    struct world *world = world_create(name);
    struct sl_train_config *train = &world->model.train;
    world->train.batches = 5;
    world->train.ignored = 0;
    world->model.data.batching = (struct sl_batching){.unit = SL_UNIT_SEQUENCE};
    world->train.stream = world->valid.stream = false;
    world->model.log.every.unit = SL_PERIOD_NONE;
    train->schedule = (struct sl_schedule){.kind = SL_SCHEDULE_CONSTANT};
    train->epochs = 2;
    train->accumulate = 1;
    train->clip_norm = 0;
    train->early_stopping.enabled = false;
    train->ema.enabled = false;
    train->validate.every = (struct sl_period){SL_PERIOD_EPOCHS, 1};
    train->checkpoint = (struct sl_checkpoint){.keep_last = 2, .monitor = "valid.loss", .mode = SL_MODE_MIN};
    static const struct sl_log log = {.write = tell_log, .level = SL_LOG_INFO};
    world->request.log = &log;
    world->request.observer =
        (struct sl_train_observer){NULL, tell_step, tell_report, tell_epoch, tell_validation, tell_checkpoint};
    world->request.clock_ns = count_work;
    world->request.clock_context = world;
    story.stop_at = story.save_at = 0;
    char *lines = strdup(text), *rest = lines;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line != '\0')
            set_option(world, line);
    free(lines);
    return world;
}

static void add_values(struct sl_buf *out, const char *what, const struct sl_metric_values *values)
{
    sl_buf_printf(out, ", %s", what);
    for (int32_t m = 0; m < values->count; m++)
        sl_buf_printf(out, " %.3g", values->items[m].value);
}

static void add_result(struct sl_buf *out, const struct sl_train_result *result)
{
    sl_buf_printf(out, "end %s", sl_train_end_get_name(result->end));
    if (result->signal)
        sl_buf_printf(out, " by signal %d", result->signal);
    sl_buf_printf(out, ", %lld updates made, epochs %.4g, %lld s: %g s spent, %g s validation", (long long)result->made,
                  result->progress.epochs, (long long)result->progress.seconds, result->spent_seconds,
                  result->validation_seconds);
    add_values(out, "train", &result->train);
    if (result->has_valid)
        add_values(out, "valid", &result->valid);
    if (result->restored)
        sl_buf_printf(out, ", best after %lld, epochs %.4g", (long long)result->best_update, result->best_epochs);
    if (result->reason[0])
        sl_buf_printf(out, ": %s", result->reason);
    sl_buf_append_text(out, "\n");
}

static int is_checkpoint(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void add_files(struct sl_buf *out, const char *folder)
{
    char path[256];
    struct dirent **names;
    snprintf(path, sizeof path, "%s/checkpoints", folder);
    const int count = scandir(path, &names, is_checkpoint, alphasort);
    sl_buf_append_text(out, "files");
    for (int k = 0; k < count; k++) {
        sl_buf_printf(out, " %s", names[k]->d_name);
        free(names[k]);
    }
    if (count >= 0)
        free(names);
    sl_buf_append_text(out, "\n");
    char *rows = NULL;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    if (sl_file_read(path, 1 << 20, &rows, NULL, NULL) == SEQLSTM_OK) {
        char *rest = rows, *line; /* only how many rows of each kind: their values are those above */
        int trains = 0, valids = 0;
        while ((line = strsep(&rest, "\n")) != NULL) {
            trains += strstr(line, "\"train\"") != NULL;
            valids += strstr(line, "\"valid\"") != NULL;
        }
        sl_buf_printf(out, "rows: %d of train, %d of valid\n", trains, valids);
    }
    free(rows);
}

static void tell_run(struct sl_buf *out, const char *title, const char *text)
{
    static int runs;
    char name[32];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_trainer *trainer = NULL;
    struct sl_train_result result = {0};
    (void)title;
    snprintf(name, sizeof name, "run%d", runs++);
    story.out = out;
    struct world *world = story.world = make_world(name, text);
    assert_int_equal(sl_trainer_create(&world->request, &trainer, &err), SEQLSTM_OK);
    const seqlstm_status status = sl_trainer_run(trainer, &result, &err);
    if (status == SEQLSTM_OK)
        add_result(out, &result);
    else
        sl_buf_printf(out, "error %d: %s\n", (int)status, err.message);
    sl_trainer_destroy(trainer);
    add_files(out, world->folder);
    free(world);
}

static void whole_runs(void **state)
{
    (void)state;
    compare_dumps("training", tell_run);
}

static int make_root(void **state)
{
    oom_group_begin(state);
    return mkdtemp(temporary_template(root, "story")) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return oom_group_end(state) == 0 && system(command) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_runs),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Interruption at every update, death at every call and failure of every write: the weights at the end are those of the
 * run that nothing disturbed, bit for bit. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "oom.h"
#include "temporary.h"
#include "train/checkpoint/checkpoint.h"

static char root[TEMPORARY_BYTES];
static int descriptors;

#include "train_world.h"

static int make_root(void **state)
{
    oom_group_begin(state);
    descriptors = descriptors_count();
    /* In memory where there is such a place: thousands of fsyncs. */
    strcpy(root, "/dev/shm/sl-resume-XXXXXX");
    if (mkdtemp(root))
        return 0;
    return mkdtemp(temporary_template(root, "resume")) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return oom_group_end(state) == 0 && system(command) == 0 && descriptors_count() == descriptors ? 0 : -1;
}

/* ---- a run ------------------------------------------------------------------------------------------- */

/* Starts, or resumes when the folder has a checkpoint. */
static seqlstm_status world_run(struct world *world, struct sl_train_result *result, struct seqlstm_error *err)
{
    char checkpoints[160];
    struct sl_trainer *trainer = NULL;
    struct sl_safetensors *file = NULL;
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", world->folder);
    SEQLSTM_TRY(sl_trainer_create(&world->request, &trainer, err));
    seqlstm_status status = sl_checkpoint_open_latest(checkpoints, NULL, &file, NULL, err);
    if (status == SEQLSTM_OK && file)
        status = sl_trainer_restore(trainer, file, err);
    sl_safetensors_close(file);
    if (status == SEQLSTM_OK)
        status = sl_trainer_run(trainer, result, err);
    sl_trainer_destroy(trainer);
    return status;
}

struct outcome {
    struct fake_params params;
    struct sl_train_result result;
    char *metrics; /* without the times */
    char *checkpoint;
    size_t checkpoint_bytes;
};

/* Lines of metrics.jsonl without "seconds" and "rows_per_second". */
static char *read_metrics(const char *folder)
{
    char path[200];
    char *text, *write;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    assert_int_equal(sl_file_read(path, 1 << 24, &text, NULL, NULL), SEQLSTM_OK);
    static const char *const TIMES[] = {"\"seconds\":", "\"rows_per_second\":"};
    for (int i = 0; i < 2; i++)
        for (char *at = text; (at = strstr(at, TIMES[i])) != NULL;) {
            write = at;
            at += strcspn(at, ",}");
            memmove(write, at, strlen(at) + 1);
            at = write;
        }
    return text;
}

static char *find_newest(const char *folder, char *out, size_t bytes)
{
    char path[200], best[256] = "";
    snprintf(path, sizeof path, "%s/checkpoints", folder);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, best) > 0)
            strcpy(best, entry->d_name);
    if (dir)
        closedir(dir);
    snprintf(out, bytes, "%s/%.90s", path, best);
    return out;
}

static struct outcome outcome_of(const struct world *world, const struct sl_train_result *result)
{
    char path[300];
    struct outcome outcome = {.params = world->params, .result = *result};
    outcome.metrics = read_metrics(world->folder);
    find_newest(world->folder, path, sizeof path);
    assert_int_equal(sl_file_read(path, 1 << 24, &outcome.checkpoint, &outcome.checkpoint_bytes, NULL), SEQLSTM_OK);
    return outcome;
}

static void outcome_free(struct outcome *outcome)
{
    free(outcome->metrics);
    free(outcome->checkpoint);
}

static void assert_same(const struct outcome *got, const struct outcome *want)
{
    assert_memory_equal(got->params.values, want->params.values, sizeof want->params.values);
    assert_memory_equal(got->params.m, want->params.m, sizeof want->params.m);
    assert_memory_equal(got->params.v, want->params.v, sizeof want->params.v);
    assert_int_equal(got->result.end, want->result.end);
    assert_memory_equal(&got->result.valid, &want->result.valid, sizeof want->result.valid);
    assert_memory_equal(&got->result.train, &want->result.train, sizeof want->result.train);
    assert_string_equal(got->metrics, want->metrics);
    assert_int_equal(got->checkpoint_bytes, want->checkpoint_bytes);
    assert_memory_equal(got->checkpoint, want->checkpoint, want->checkpoint_bytes);
}

static struct outcome run_undisturbed(const char *name)
{
    struct world *world = world_create(name);
    struct sl_train_result result;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (world_run(world, &result, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(result.end, SL_END_EPOCHS);
    assert_int_equal(result.progress.updates, 20); /* 7 batches are 4 updates of two, the last of one */
    assert_int_equal(world->epochs, 5);
    assert_int_equal(world->validations, 7); /* every third, and the last */
    assert_int_equal(world->reports, 6);
    assert_int_equal(world->steps, 20);
    assert_true(world->params.values[24] == 3 && world->params.values[25] == 4);
    struct outcome outcome = outcome_of(world, &result);
    free(world);
    return outcome;
}

/* ---- tests ------------------------------------------------------------------------------------------- */

static void two_runs_are_one(void **state)
{
    (void)state;
    struct outcome a = run_undisturbed("same-a"), b = run_undisturbed("same-b");
    assert_same(&a, &b);
    outcome_free(&a);
    outcome_free(&b);
}

static void interrupted_at_every_update(void **state)
{
    (void)state;
    struct outcome want = run_undisturbed("interrupt-want");
    for (int64_t at = 1; at <= 20; at++) {
        char name[64];
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_train_result result;
        snprintf(name, sizeof name, "interrupt-%d", (int)at);
        struct world *world = world_create(name);
        world->stop_at = at;
        assert_int_equal(world_run(world, &result, &err), SEQLSTM_OK);
        assert_int_equal(result.end, SL_END_INTERRUPTED);
        assert_int_equal(result.signal, 15);
        assert_in_range(result.progress.updates, at, at + goes_ahead); /* what has been started is finished */
        assert_int_equal(result.made, result.progress.updates);
        const int64_t made = result.made;
        free(world);
        world = world_create(name);
        if (world_run(world, &result, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
        assert_int_equal(result.made, 20 - made);
        struct outcome got = outcome_of(world, &result);
        assert_same(&got, &want);
        outcome_free(&got);
        free(world);
    }
    outcome_free(&want);
}

/* Stopped in a batch of a validation, while the averages stand in place of the weights: they are put back, and the
 * validation is made up for. */
static void interrupted_in_every_validation(void **state)
{
    (void)state;
    struct outcome want = run_undisturbed("within-want");
    for (int at = 1; at <= 21; at++) {
        char name[64];
        struct sl_train_result result;
        snprintf(name, sizeof name, "within-%d", at);
        struct world *world = world_create(name);
        world->evaluate.stop_at = at;
        world->evaluate.interrupt = &world->interrupt;
        assert_int_equal(world_run(world, &result, NULL), SEQLSTM_OK);
        assert_int_equal(result.end, SL_END_INTERRUPTED);
        free(world);
        world = world_create(name);
        assert_int_equal(world_run(world, &result, NULL), SEQLSTM_OK);
        struct outcome got = outcome_of(world, &result);
        assert_same(&got, &want);
        outcome_free(&got);
        free(world);
    }
    outcome_free(&want);
}

/* Stopped after every single update; after the last one before its validation. */
static void interrupted_all_the_way(void **state)
{
    (void)state;
    struct outcome want = run_undisturbed("steps-want");
    struct sl_train_result result = {.end = SL_END_INTERRUPTED};
    struct outcome got;
    int starts = 0;
    for (int64_t at = 1; result.end == SL_END_INTERRUPTED; at = result.progress.updates + 1) {
        struct world *world = world_create("steps");
        world->stop_at = at;
        assert_int_equal(world_run(world, &result, NULL), SEQLSTM_OK);
        starts++;
        if (result.end != SL_END_INTERRUPTED)
            got = outcome_of(world, &result);
        free(world);
    }
    assert_in_range(starts, goes_ahead ? 11 : 21, 21);
    assert_same(&got, &want);
    outcome_free(&got);
    outcome_free(&want);
}

/* ---- other options ----------------------------------------------------------------------------------- */

static void with_trigger(struct world *world)
{
    struct sl_train_config *train = &world->model.train;
    train->optimizer = (struct sl_optimizer){.kind = SL_OPTIMIZER_NT_ASGD, .learning_rate = 0.9, .patience = 2};
    train->schedule = (struct sl_schedule){.kind = SL_SCHEDULE_CONSTANT};
    train->ema.enabled = train->early_stopping.enabled = false;
    train->validate.every = (struct sl_period){SL_PERIOD_UPDATES, 1};
}

static void with_cooldown(struct world *world)
{
    struct sl_train_config *train = &world->model.train;
    train->schedule.cooldown = 2;
    train->schedule.min_delta = 1;
    train->validate.every = (struct sl_period){SL_PERIOD_UPDATES, 1};
    train->early_stopping.restore_best = false;
}

static void with_segments(struct world *world)
{
    world->model.data.batching = (struct sl_batching){.unit = SL_UNIT_SEQUENCE, .bptt = 3};
    world->train.stream = world->valid.stream = false;
    world->train.segments = 3;
    world->train.batches = 9;
    world->model.train.ema.start = (struct sl_period){SL_PERIOD_NONE, 0};
    world->model.train.accumulate = 1;
}

static void with_early_end(struct world *world)
{
    struct sl_train_config *train = &world->model.train;
    train->early_stopping.patience = 2;
    train->early_stopping.min_delta = 0.3;
    train->validate.every = (struct sl_period){SL_PERIOD_UPDATES, 1};
    train->schedule = (struct sl_schedule){
        .kind = SL_SCHEDULE_ONE_CYCLE, .max = 0.3, .rise = 0.3, .divide_start = 25, .divide_end = 1000};
}

/* Runs to the end, stopped after every update or not at all. */
static struct outcome run_varied(void (*vary)(struct world *), const char *name, bool stopped)
{
    struct sl_train_result result = {.end = SL_END_INTERRUPTED};
    struct outcome outcome = {.metrics = NULL};
    for (int64_t at = 1; result.end == SL_END_INTERRUPTED; at = result.progress.updates + 1) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct world *world = world_create(name);
        vary(world);
        world->stop_at = stopped ? at : 0;
        if (world_run(world, &result, &err) != SEQLSTM_OK)
            fail_msg("%s: %s", name, err.message);
        if (result.end != SL_END_INTERRUPTED)
            outcome = outcome_of(world, &result);
        free(world);
    }
    return outcome;
}

static void other_options_are_resumed(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*vary)(struct world *);
    } variations[] = {{"trigger", with_trigger},
                      {"cooldown", with_cooldown},
                      {"segments", with_segments},
                      {"early-end", with_early_end}};
    for (size_t v = 0; v < sizeof variations / sizeof *variations; v++) {
        char name[64];
        struct outcome want = run_varied(variations[v].vary, variations[v].name, false);
        snprintf(name, sizeof name, "%s-stopped", variations[v].name);
        struct outcome got = run_varied(variations[v].vary, name, true);
        assert_same(&got, &want);
        assert_int_equal(got.result.averaged, want.result.averaged);
        assert_true(v > 0 || want.result.averaged);
        assert_true(v < 3 || want.result.end == SL_END_EARLY_STOPPING);
        outcome_free(&got);
        outcome_free(&want);
    }
}

/* The process is gone in the middle of any call of the executor, in training and in validation. */
static void dead_at_every_run(void **state)
{
    (void)state;
    struct outcome want = run_undisturbed("dead-want");
    for (int at = 1; at <= 35 + 21; at++) {
        char name[64];
        struct sl_train_result result;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        snprintf(name, sizeof name, "dead-%d", at);
        struct world *world = world_create(name);
        if (at <= 35)
            world->exec.fail_at = at;
        else
            world->evaluate.fail_at = at - 35;
        assert_int_equal(world_run(world, &result, &err), SEQLSTM_DEVICE);
        free(world);
        world = world_create(name);
        if (world_run(world, &result, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
        struct outcome got = outcome_of(world, &result);
        assert_same(&got, &want);
        outcome_free(&got);
        free(world);
    }
    outcome_free(&want);
}

/* Any write, fsync or rename fails for want of room: the run says so, and what was saved before goes on. */
static void full_at_every_write(void **state)
{
    (void)state;
    struct outcome want = run_undisturbed("full-want");
    int failures = 0;
    for (int at = 1;; at++) {
        char name[64];
        struct sl_train_result result;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        snprintf(name, sizeof name, "full-%d", at);
        struct world *world = world_create(name);
        io_fail_at(at, ENOSPC, 5);
        seqlstm_status status = world_run(world, &result, &err);
        bool failed = io_disarm();
        free(world);
        if (!failed) {
            assert_int_equal(status, SEQLSTM_OK);
            break;
        }
        failures++;
        assert_int_equal(status, SEQLSTM_IO);
        assert_int_equal(err.native_code, ENOSPC);
        world = world_create(name);
        if (world_run(world, &result, &err) != SEQLSTM_OK)
            fail_msg("write %d: %s", at, err.message);
        struct outcome got = outcome_of(world, &result);
        assert_same(&got, &want);
        outcome_free(&got);
        free(world);
    }
    assert_true(failures > 50);
    outcome_free(&want);
}

/* The newest file is damaged: the one before it is found, named, and gives the same end. */
static void damaged_newest_is_passed_over(void **state)
{
    (void)state;
    struct outcome want = run_undisturbed("damaged-want");
    struct sl_train_result result;
    char path[300];
    struct world *world = world_create("damaged");
    world->stop_at = 9;
    assert_int_equal(world_run(world, &result, NULL), SEQLSTM_OK);
    free(world);
    find_newest("/nonexistent", path, sizeof path);
    world = world_create("damaged");
    find_newest(world->folder, path, sizeof path);
    assert_non_null(strstr(path, "update-000000000009"));
    FILE *file = fopen(path, "r+");
    assert_int_equal(fseek(file, -5, SEEK_END), 0);
    fputc(0x55, file);
    fclose(file);
    assert_int_equal(world_run(world, &result, NULL), SEQLSTM_OK);
    assert_int_equal(world->steps, 12); /* from update 8 on */
    struct outcome got = outcome_of(world, &result);
    assert_same(&got, &want);
    outcome_free(&got);
    outcome_free(&want);
    free(world);
}

static void finished_run_ends_at_once(void **state)
{
    (void)state;
    struct outcome want = run_undisturbed("finished");
    struct world *world = world_create("finished");
    struct sl_train_result result;
    assert_int_equal(world_run(world, &result, NULL), SEQLSTM_OK);
    assert_int_equal(world->steps, 0);
    assert_int_equal(result.made, 0);
    assert_int_equal(world->checkpoints, 0);
    struct outcome got = outcome_of(world, &result);
    assert_same(&got, &want);
    outcome_free(&got);
    outcome_free(&want);
    free(world);
}

/* The folder holds the two newest and the two best, and no temporaries. */
static void old_checkpoints_go(void **state)
{
    (void)state;
    struct outcome want = run_undisturbed("kept");
    char path[200];
    snprintf(path, sizeof path, "%s/kept/checkpoints/.update-000000000004.safetensors.tmp-1-0", root);
    fclose(fopen(path, "w"));
    *strrchr(path, '/') = 0;
    struct sl_train_state none = {.updates = 20};
    sl_checkpoint_prune(path, 2, &none, NULL);
    int files = 0;
    DIR *dir = opendir(path);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            files++;
            assert_true(strcmp(entry->d_name, "update-000000000018") > 0);
        }
    closedir(dir);
    assert_int_equal(files, 2);
    outcome_free(&want);
}

/* The updates of the checkpoints in a folder, ascending. */
static int list_checkpoints(const struct world *world, int64_t *out, int most)
{
    char path[200];
    snprintf(path, sizeof path, "%s/checkpoints", world->folder);
    struct dirent **entries = NULL;
    int files = scandir(path, &entries, NULL, alphasort), count = 0;
    for (int k = 0; k < files; k++) {
        long long update;
        if (sscanf(entries[k]->d_name, "update-%lld.safetensors", &update) == 1 && count < most)
            out[count++] = update;
        free(entries[k]);
    }
    free(entries);
    return count;
}

/* Weights that do not change are equally good at every validation: the first of them are kept, and none is written
 * again for a later one that is no better. */
static void of_equal_results_the_first_are_kept(void **state)
{
    (void)state;
    for (enum sl_monitor_mode mode = SL_MODE_MIN; mode <= SL_MODE_MAX; mode++) {
        struct world *world = world_create(mode == SL_MODE_MIN ? "equal-min" : "equal-max");
        world->model.train.optimizer.learning_rate = 0;
        world->model.train.ema.enabled = false;
        world->model.train.checkpoint.every = (struct sl_period){SL_PERIOD_NONE, 0};
        world->model.train.checkpoint.keep_last = 1;
        world->model.train.checkpoint.mode = mode;
        struct sl_train_result result;
        assert_int_equal(world_run(world, &result, NULL), SEQLSTM_OK);
        int64_t kept[8];
        assert_int_equal(list_checkpoints(world, kept, 8), 3);
        assert_true(kept[0] == 3 && kept[1] == 6 && kept[2] == 20);
        assert_int_equal(world->checkpoints, 3);
        free(world);
    }
}

/* A validation that an interrupt prevented comes first after resume, and is saved before the next update: if the
 * process dies in that, the one after does not validate again. */
static void a_validation_made_up_for_is_saved(void **state)
{
    (void)state;
    struct sl_train_result result;
    struct world *world = world_create("pending");
    world->model.train.checkpoint.keep_best = 0;
    world->stop_at = 3; /* where a validation is due */
    assert_int_equal(world_run(world, &result, NULL), SEQLSTM_OK);
    assert_int_equal(world->validations, 0);
    free(world);
    world = world_create("pending"); /* prevented again: there is one checkpoint, that of the end */
    world->model.train.checkpoint.keep_best = 0;
    atomic_store(&world->interrupt.stop, 15);
    assert_int_equal(world_run(world, &result, NULL), SEQLSTM_OK);
    assert_int_equal(result.end, SL_END_INTERRUPTED);
    assert_true(world->validations == 0 && world->checkpoints == 1);
    free(world);
    for (int again = 0; again < 2; again++) {
        world = world_create("pending");
        world->model.train.checkpoint.keep_best = 0;
        world->exec.fail_at = 1;
        assert_int_equal(world_run(world, &result, NULL), SEQLSTM_DEVICE);
        assert_int_equal(world->validations, again == 0);
        assert_int_equal(world->checkpoints, again == 0);
        free(world);
    }
}

/* Sums since the last report are saved where reports depend on updates, not where they depend on the time. */
static void sums_between_reports_by_the_clock_are_not_saved(void **state)
{
    (void)state;
    static const struct sl_period every[] = {
        {SL_PERIOD_UPDATES, 1000}, {SL_PERIOD_TOKENS, 1e9}, {SL_PERIOD_EPOCHS, 100}, {SL_PERIOD_SECONDS, 1e9}};
    for (int k = 0; k < 4; k++) {
        struct sl_train_result result;
        struct sl_train_state saved;
        struct sl_safetensors *file = NULL;
        char name[16], checkpoints[160];
        snprintf(name, sizeof name, "report-%d", k);
        struct world *world = world_create(name);
        world->model.log.every = every[k];
        world->stop_at = 2;
        assert_int_equal(world_run(world, &result, NULL), SEQLSTM_OK);
        snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", world->folder);
        assert_int_equal(sl_checkpoint_open_latest(checkpoints, NULL, &file, NULL, NULL), SEQLSTM_OK);
        const char *text = sl_safetensors_find_text(file, "state");
        assert_int_equal(sl_train_state_read(text, strlen(text), &saved, NULL), SEQLSTM_OK);
        assert_true(saved.epoch_sums.loss > 0);
        assert_true(saved.interval_sums.loss == (every[k].unit == SL_PERIOD_SECONDS ? 0 : saved.epoch_sums.loss));
        sl_safetensors_close(file);
        free(world);
    }
}

/* Steps started ahead, with validations, checkpoints, a plateau and accumulated gradients in between, change nothing.
 */
static void going_ahead_changes_nothing(void **state)
{
    (void)state;
    struct outcome outcomes[2];
    for (int k = 0; k < 2; k++) {
        struct world *world = world_create(k ? "ahead" : "one-by-one");
        struct sl_train_result result;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        world->exec.ahead.possible = k > 0;
        if (world_run(world, &result, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
        assert_int_equal(world->exec.ahead.most > 10, k);
        outcomes[k] = outcome_of(world, &result);
        free(world);
    }
    assert_same(&outcomes[1], &outcomes[0]);
    outcome_free(&outcomes[0]);
    outcome_free(&outcomes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_runs_are_one),
        cmocka_unit_test(interrupted_at_every_update),
        cmocka_unit_test(interrupted_in_every_validation),
        cmocka_unit_test(interrupted_all_the_way),
        cmocka_unit_test(other_options_are_resumed),
        cmocka_unit_test(dead_at_every_run),
        cmocka_unit_test(full_at_every_write),
        cmocka_unit_test(damaged_newest_is_passed_over),
        cmocka_unit_test(finished_run_ends_at_once),
        cmocka_unit_test(old_checkpoints_go),
        cmocka_unit_test(of_equal_results_the_first_are_kept),
        cmocka_unit_test(a_validation_made_up_for_is_saved),
        cmocka_unit_test(sums_between_reports_by_the_clock_are_not_saved),
        unit_test_ahead(going_ahead_changes_nothing),
        unit_test_ahead(two_runs_are_one),
        unit_test_ahead(interrupted_at_every_update),
        unit_test_ahead(interrupted_all_the_way),
        unit_test_ahead(dead_at_every_run),
        unit_test_ahead(full_at_every_write),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

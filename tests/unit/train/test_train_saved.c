/* SPDX-License-Identifier: Apache-2.0 */
/* What a training writes down and keeps: texts of its checkpoints, rows of its logs, and by which numbers validations
 * are told from each other. */
#include "train_plain.h"

#include <dirent.h>

#include "scratch.h"
#include "train/checkpoint/checkpoint.h"
#include "train/tensorboard_log.h"
#include "train/trainer/state.h"

/* A plain run with a folder of its own. */
static struct world *make_saved(const char *name)
{
    struct world *world = make_plain();
    snprintf(world->folder, sizeof world->folder, "%s", scratch_path(name));
    world->request.folder = world->folder;
    world->model.train.checkpoint.every = (struct sl_period){SL_PERIOD_NONE, 0};
    world->model.train.validate.every = (struct sl_period){SL_PERIOD_EPOCHS, 1};
    return world;
}

static struct sl_safetensors *open_latest(const struct world *world)
{
    struct sl_safetensors *file = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char folder[160];
    snprintf(folder, sizeof folder, "%s/checkpoints", world->folder);
    if (sl_checkpoint_open_latest(folder, NULL, &file, NULL, &err) != SEQLSTM_OK || file == NULL)
        fail_msg("%s", err.message);
    return file;
}

static void each_text_is_in_the_checkpoint(void **state)
{
    static const struct sl_safetensors_text texts[] = {{"plan", "first"}, {"config", "second"}, {"data", "third"}};
    (void)state;
    struct world *world = make_saved("texts");
    world->request.texts = texts;
    world->request.text_count = 3;
    run(world);
    struct sl_safetensors *file = open_latest(world);
    for (int k = 0; k < 3; k++)
        assert_string_equal(sl_safetensors_find_text(file, texts[k].key), texts[k].value);
    sl_safetensors_close(file);
    free(world);
}

static char *read_all(const struct world *world, const char *name)
{
    char path[200], *text = NULL;
    snprintf(path, sizeof path, "%s/%s", world->folder, name);
    return sl_file_read(path, 1 << 20, &text, NULL, NULL) == SEQLSTM_OK ? text : NULL;
}

/* Reports have a speed, rows of training a rate and the norm of the gradient, and those of a validation neither. */
static void rows_of_the_log_have_what_belongs_to_them(void **state)
{
    static const struct {
        const char *begin;
        int rows;
        bool speed, rate;
    } kinds[] = {{"\"split\":\"train\",\"span\":\"report\"", 4, true, true},
                 {"\"split\":\"train\",\"span\":\"epoch\"", 2, false, true},
                 {"\"split\":\"valid\",\"span\":\"validation\"", 2, false, false}};
    int counts[3] = {0}, rows = 0;
    (void)state;
    struct world *world = make_saved("log");
    world->model.train.epochs = 2;
    world->model.log.every = (struct sl_period){SL_PERIOD_UPDATES, 3};
    world->request.clock_ns = count_work;
    world->request.clock_context = world;
    run(world);
    char *text = read_all(world, "metrics.jsonl"), *rest = NULL;
    assert_non_null(text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), rows++)
        for (int k = 0; k < 3; k++) {
            if (!strstr(line, kinds[k].begin))
                continue;
            counts[k]++;
            assert_int_equal(strstr(line, "rows_per_second") != NULL, kinds[k].speed);
            assert_int_equal(strstr(line, "learning_rate") != NULL, kinds[k].rate);
            assert_int_equal(strstr(line, "gradient_norm") != NULL, kinds[k].rate);
            assert_null(strstr(line, "teacher_forcing")); /* nothing is sampled */
        }
    for (int k = 0; k < 3; k++)
        assert_int_equal(counts[k], kinds[k].rows);
    assert_int_equal(rows, 8);
    free(text);
    free(world);
}

static int64_t count_event_bytes(const struct world *world)
{
    char path[400];
    int64_t bytes = 0;
    DIR *entries = opendir(world->folder);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
        if (strstr(entry->d_name, "tfevents")) {
            FILE *file;
            snprintf(path, sizeof path, "%s/%s", world->folder, entry->d_name);
            file = fopen(path, "rb");
            assert_non_null(file);
            fseek(file, 0, SEEK_END);
            bytes += ftell(file);
            fclose(file);
        }
    closedir(entries);
    return bytes;
}

/* Each of the two logs is written whether or not there is the other one. */
static void logs_do_not_depend_on_each_other(void **state)
{
    int64_t bytes[2][2] = {{0}};
    (void)state;
    for (int jsonl = 0; jsonl < 2; jsonl++)
        for (int events = 0; events < 2; events++) {
            char name[32];
            snprintf(name, sizeof name, "logs-%d-%d", jsonl, events);
            struct world *world = make_saved(name);
            world->model.train.epochs = 2;
            world->model.log.jsonl = jsonl;
            world->model.output.tensorboard = events;
            run(world);
            char *text = read_all(world, "metrics.jsonl");
            assert_int_equal(text != NULL, jsonl);
            bytes[jsonl][events] = count_event_bytes(world);
            free(text);
            free(world);
        }
    assert_true(bytes[0][0] == 0 && bytes[1][0] == 0);
    assert_true(bytes[0][1] == bytes[1][1] && bytes[0][1] > 500);
}

/* Goes on with the run of this folder, for so many epochs in all. `unjudged`: as from a checkpoint that was written
 * before the validation of its update. */
static void go_on(const char *name, int64_t epochs_made, bool events, bool unjudged)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_trainer *trainer = NULL;
    struct sl_train_result result;
    struct world *world = make_saved(name);
    world->model.train.epochs = epochs_made;
    world->model.output.tensorboard = events;
    struct sl_safetensors *file = open_latest(world);
    assert_int_equal(sl_trainer_create(&world->request, &trainer, &err), SEQLSTM_OK);
    assert_int_equal(sl_trainer_restore(trainer, file, &err), SEQLSTM_OK);
    sl_safetensors_close(file);
    if (unjudged) {
        trainer->state.validated_at = 0;
        trainer->state.validation_pending = true;
    }
    assert_int_equal(sl_trainer_run(trainer, &result, &err), SEQLSTM_OK);
    sl_trainer_destroy(trainer);
    free(world);
}

static struct world *run_epochs(const char *name, int64_t epochs_made, bool events)
{
    struct world *world = make_saved(name);
    world->model.train.epochs = epochs_made;
    world->model.output.tensorboard = events;
    run(world);
    return world;
}

/* The events of a run that goes on are those of one that did not stop, and where they go on. */
static void events_say_where_they_go_on(void **state)
{
    struct sl_tensorboard_log *log = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    struct world *world = run_epochs("whole", 2, true);
    const int64_t whole = count_event_bytes(world);
    free(world);
    world = run_epochs("parts", 1, true);
    go_on("parts", 2, true, false);
    const int64_t parts = count_event_bytes(world);
    snprintf(world->folder, sizeof world->folder, "%s", scratch_path("opened"));
    assert_int_equal(sl_file_make_folders(world->folder, &err), SEQLSTM_OK);
    assert_int_equal(sl_tensorboard_log_open(world->folder, 7, &log, &err), SEQLSTM_OK);
    sl_tensorboard_log_close(log);
    assert_int_equal(parts - whole, count_event_bytes(world));
    free(world);
}

/* A validation that comes again replaces its row. */
static void a_validation_has_one_row(void **state)
{
    (void)state;
    for (int unjudged = 0; unjudged < 2; unjudged++) {
        const char *name = unjudged ? "unjudged" : "judged";
        struct world *world = run_epochs(name, 1, false);
        go_on(name, 1, false, unjudged);
        char *text = read_all(world, "metrics.jsonl");
        assert_non_null(text);
        const char *row = strstr(text, "\"span\":\"validation\"");
        assert_non_null(row);
        assert_null(strstr(row + 1, "\"span\":\"validation\""));
        free(text);
        free(world);
    }
}

static double losses[16];
static int epochs;

static void note_loss(void *context, const struct sl_train_report *report)
{
    (void)context;
    losses[epochs++] = sl_metric_values_get(report->values, SL_METRIC_LOSS);
}

/* At the end of an epoch `train.loss` is that of the epoch. */
static void training_is_watched_by_its_epochs(void **state)
{
    (void)state;
    struct world *world = make_saved("watched");
    world->model.train.epochs = 9;
    world->model.train.early_stopping =
        (struct sl_early_stopping){.enabled = true, .monitor = "train.loss", .patience = 20, .restore_best = true};
    world->model.train.optimizer.learning_rate = 0.4; /* some epochs are worse than the one before */
    world->request.observer.on_epoch = note_loss;
    epochs = 0;
    const struct sl_train_result result = run(world);
    int best = 0;
    for (int e = 1; e < epochs; e++)
        best = losses[e] < losses[best] ? e : best;
    assert_int_equal(epochs, 9);
    assert_true(result.restored);
    assert_int_equal(result.best_update, 7 * (best + 1));
    ASSERT_NEAR(result.best_epochs, best + 1, 1e-9);
    free(world);
}

/* Validations that give no number, or none that is finite, are not among the best. */
static void only_finite_numbers_are_among_the_best(void **state)
{
    static const double poisons[] = {INFINITY, -INFINITY, NAN};
    (void)state;
    for (int k = 0; k < 4; k++)
        for (int max = 0; max < 2; max++) {
            char name[32];
            snprintf(name, sizeof name, "best-%d-%d", k, max);
            struct world *world = make_saved(name);
            world->model.train.epochs = 3;
            world->model.train.checkpoint.keep_best = 2;
            world->model.train.checkpoint.mode = max ? SL_MODE_MAX : SL_MODE_MIN;
            if (k < 3) { /* the first validation */
                world->evaluate.poison_at = 1;
                world->evaluate.poison_count = 1;
                world->evaluate.poison = poisons[k];
            }
            run(world);
            struct sl_safetensors *file = open_latest(world);
            const char *text = sl_safetensors_find_text(file, "state");
            const char *best = strstr(text, "\"best_entries\":[");
            assert_non_null(best);
            /* the loss falls: that of the first epoch is only among the largest */
            if ((strstr(best, "[7,") != NULL) != (k == 3 && max))
                fail_msg("%s: %.80s", name, best);
            sl_safetensors_close(file);
            free(world);
        }
}

/* Texts are written in validations alone, and class weights count in training alone. */
static void training_and_validation_have_rules_of_their_own(void **state)
{
    static const enum sl_metric texts[] = {SL_METRIC_LOSS, SL_METRIC_BLEU, SL_METRIC_CHRF},
                                perplexity[] = {SL_METRIC_LOSS, SL_METRIC_PERPLEXITY};
    (void)state;
    struct world *world = make_plain();
    world->model.train.epochs = 2;
    world->model.train.loss.kind = SL_LOSS_CROSS_ENTROPY;
    world->model.train.metrics = (struct sl_metric_list){texts, 3};
    world->model.train.validate.metrics = (struct sl_metric_list){perplexity, 2};
    world->request.weighted_classes = true;
    const struct sl_train_result result = run(world);
    assert_int_equal(result.train.count, 1);
    assert_string_equal(result.train.items[0].name, "loss");
    assert_int_equal(result.valid.count, 2);
    ASSERT_NEAR(result.valid.items[1].value, exp(result.valid.items[0].value), 1e-9);
    free(world);
}

static void check_speed(void *context, const struct sl_train_report *report)
{
    ASSERT_NEAR(report->rows_per_second, 11, 1e-9);
    ((struct world *)context)->steps++;
}

/* The rows of the run before it do not count in the first report of a run that goes on. */
static void speeds_of_a_resumed_run_are_its_own(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_trainer *trainer = NULL;
    struct sl_train_result result;
    (void)state;
    struct world *world = make_saved("speed");
    world->model.train.epochs = 2;
    run(world);
    free(world);
    world = make_saved("speed");
    world->model.train.epochs = 3;
    world->model.log.every = (struct sl_period){SL_PERIOD_UPDATES, 2};
    world->request.clock_ns = count_work;
    world->request.clock_context = world;
    world->request.observer.on_step = NULL;
    world->request.observer.on_report = check_speed;
    struct sl_safetensors *file = open_latest(world);
    assert_int_equal(sl_trainer_create(&world->request, &trainer, &err), SEQLSTM_OK);
    assert_int_equal(sl_trainer_restore(trainer, file, &err), SEQLSTM_OK);
    sl_safetensors_close(file);
    assert_int_equal(sl_trainer_run(trainer, &result, &err), SEQLSTM_OK);
    sl_trainer_destroy(trainer);
    assert_int_equal(result.made, 7);
    assert_in_range(world->steps, 3, 4);
    ASSERT_NEAR(result.spent_seconds, 7, 1e-9);
    ASSERT_NEAR(result.validation_seconds, 9, 1e-9);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_text_is_in_the_checkpoint),
        cmocka_unit_test(rows_of_the_log_have_what_belongs_to_them),
        cmocka_unit_test(logs_do_not_depend_on_each_other),
        cmocka_unit_test(events_say_where_they_go_on),
        cmocka_unit_test(a_validation_has_one_row),
        cmocka_unit_test(training_is_watched_by_its_epochs),
        cmocka_unit_test(only_finite_numbers_are_among_the_best),
        cmocka_unit_test(training_and_validation_have_rules_of_their_own),
        cmocka_unit_test(speeds_of_a_resumed_run_are_its_own),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm run, seqlstm resume */
#include <stdlib.h>

#include "base/system/file.h"
#include "base/value/path.h"
#include "base/value/text.h"
#include "cli/cli.h"
#include "cli/restart.h"
#include "session/prepare/division.h"
#include "session/run/timeline.h"
#include "timeline/print.h"

#define RANK_FLAGS                                                                                                     \
    {.name = "collectives",                                                                                            \
     .argument = "ID",                                                                                                 \
     .help = "with `parallel`: plugin for exchanges (comm-shm; GPUs: comm-nccl; several hosts: comm-mpi)"},            \
        {.name = "restarts",                                                                                           \
         .argument = "N",                                                                                              \
         .help = "start again from the newest checkpoint after a process was killed, at most N times"},                \
    {                                                                                                                  \
        .name = "stall-timeout", .argument = "S",                                                                      \
        .help = "with `parallel`: give up a rank that stands still so many seconds (default 600)",                     \
    }

#define PROFILE_FLAG                                                                                                   \
    {                                                                                                                  \
        .name = "profile", .argument = "UPDATES", .otherwise = "20",                                                   \
        .help = "record so many updates (default 20) and show where their time goes; see `seqlstm profile`"            \
    }

static const struct cli_flag run_flags[] = {
    {.name = "out",
     .argument = "DIR",
     .env = "SEQLSTM_OUT",
     .help = "folder of the run; must be empty if it exists (default: runs/NAME/NNN)"},
    PROFILE_FLAG,
    CLI_FLAG_WATCH_PORT,
    RANK_FLAGS,
    {0},
};

static const struct cli_flag resume_flags[] = {PROFILE_FLAG, CLI_FLAG_WATCH_PORT, RANK_FLAGS, {0}};

/* --json: prints the summary of the run. */
static int print_summary(struct cli_context *cli, const char *folder)
{
    char *path = sl_path_join(folder, "summary.json"), *text = NULL;
    size_t bytes = 0;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = path ? sl_file_read(path, 1 << 24, &text, &bytes, &err)
                                 : seqlstm_error_set(&err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory");
    struct sl_buf buf = {0};
    int code = CLI_OK;
    if (status != SEQLSTM_OK) {
        code = cli_fail(cli, status, &err);
    } else {
        sl_buf_append(&buf, text, bytes);
        code = cli_write_out(cli, &buf);
    }
    sl_buf_deinit(&buf);
    free(text);
    free(path);
    return code;
}

/* A resumed run that had already ended: what would make it go on. */
static void note_ended(const struct cli_context *cli, const struct sl_session *session,
                       const struct sl_run_result *result)
{
    const struct sl_train_config *train = &sl_session_get_model(session)->train;
    const char *folder = result->folder, *lead = "nothing was trained: the run had already ended";
    if (result->train.end == SL_END_EPOCHS)
        cli_note(cli,
                 "%s, after the %lld epoch%s of `train.epochs`\n  = help: `seqlstm resume %s --set train.epochs=%lld` "
                 "trains on",
                 lead, (long long)train->epochs, train->epochs == 1 ? "" : "s", folder, (long long)(2 * train->epochs));
    else if (result->train.end == SL_END_UPDATES)
        cli_note(cli,
                 "%s, after the %lld update%s of `train.updates`\n  = help: `seqlstm resume %s --set "
                 "train.updates=%lld` trains on",
                 lead, (long long)train->updates, train->updates == 1 ? "" : "s", folder,
                 (long long)(2 * train->updates));
    else if (result->train.end == SL_END_EARLY_STOPPING)
        cli_note(cli,
                 "%s, by early stopping with a patience of %lld\n  = help: `seqlstm resume %s --set "
                 "train.early_stopping.patience=%lld` trains on",
                 lead, (long long)train->early_stopping.patience, folder,
                 (long long)(2 * train->early_stopping.patience + 2));
}

/* Before the first step there is nothing to save, and a signal ends the program at once, even where it waits for a pipe
 * with data. */
static void save_from_now_on(void *context, const struct sl_session *session, const struct sl_plan *plan,
                             const char *folder)
{
    (void)context;
    (void)session;
    (void)plan;
    (void)folder;
    cli_save_on_signals();
}

/* A rank other than 0 has nothing to show; that it has done its part is a success, however the training ended. */
static int train_as_rank(struct cli_context *cli, struct sl_session *session)
{
    const struct sl_run_observer silent = {.on_start = save_from_now_on};
    struct sl_run_result result;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = sl_session_run(session, &silent, &result, &err);
    return status == SEQLSTM_OK ? CLI_OK : cli_fail(cli, status, &err);
}

/* What --profile found, after the metrics. */
static void show_profile(const struct cli_context *cli, const struct sl_session *session)
{
    const struct sl_timeline *timeline = sl_session_find_timeline(session);
    struct sl_buf out = {0};
    char command[512];
    if (!timeline || cli->verbosity < 0)
        return;
    sl_text_snprintf(command, sizeof command, "seqlstm profile %s", cli->values.operands[0]);
    sl_timeline_print_sentence(timeline, NULL, command, &out);
    sl_buf_append_char(&out, '\n');
    sl_timeline_print_table(timeline, &out);
    cli_say(stderr, "\n%s", sl_buf_text(&out));
    cli_note(cli, "report.html shows the timeline; trace.json opens in Perfetto (https://ui.perfetto.dev)");
    sl_buf_deinit(&out);
}

static int train(struct cli_context *cli, struct sl_session *session)
{
    if (cli->is_rank && cli->rank.rank > 0)
        return train_as_rank(cli, session);
    struct cli_train_view *view = cli_train_view_create(cli);
    if (view == NULL)
        return cli_fail_memory(cli, "the progress");
    struct sl_run_observer observer = cli_train_view_observer(view);
    observer.on_folder = cli_tell_folder;
    struct sl_run_result result;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_session_run(session, &observer, &result, &err);
    int code = status == SEQLSTM_OK ? cli_train_view_finish(view, &result) : cli_fail(cli, status, &err);
    if (status == SEQLSTM_OK)
        show_profile(cli, session);
    if (status == SEQLSTM_OK && result.train.made == 0)
        note_ended(cli, session, &result);
    if (status == SEQLSTM_OK && cli->json) {
        int printed = print_summary(cli, result.folder);
        code = code == CLI_OK ? printed : code;
    }
    cli_train_view_destroy(view);
    return code;
}

/* Flags for several ranks are refused where a training has one and no launcher has started it. */
static bool check_rank_flags(struct cli_context *cli, const struct sl_model *model)
{
    static const char *const flags[] = {"collectives", "stall-timeout"};
    if (cli->is_rank || sl_parallel_is_divided(&model->parallel))
        return true;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (cli_get(cli, flags[i]) != NULL) {
            cli_usage_error(cli, "`--%s` has no effect with one rank; divide the training, as in `parallel: {data: 2}`",
                            flags[i]);
            return false;
        }
    }
    return true;
}

/* Opens what is trained, with `open`; starts ranks if it is divided among several and this is not one of them. */
static int train_or_launch(struct cli_context *cli,
                           int (*open)(struct cli_context *cli, const char *name, struct sl_session **out_session))
{
    struct sl_session *session = NULL;
    const enum sl_log_level level = cli->log.level;
    int64_t stall = 600, profiled = 0, restarts = 0;
    if (!cli_get_int(cli, "stall-timeout", 1, 1000000, &stall) || !cli_get_int(cli, "profile", 1, 100000, &profiled) ||
        !cli_get_int(cli, "restarts", 0, 1000000, &restarts))
        return CLI_USAGE;
    cli->options.profile_updates = profiled;
    cli_find_rank(cli);
    const bool own = cli->is_rank && cli->rank.parent > 0; /* a rank that this command has started */
    if (restarts > 0 && cli->is_rank && !own && cli->rank.ranks > 1)
        return cli_usage_error(cli,
                               "`--restarts` is for ranks that seqlstm itself starts, and %s has started this one; its "
                               "own options start jobs again",
                               cli->rank.launcher);
    cli->options.stall_ns = stall * INT64_C(1000000000);
    cli->options.collectives = cli_get(cli, "collectives");
    cli->options.identity = cli->is_rank ? &cli->rank : NULL;
    cli->mute = cli->is_rank && (cli->rank.parent > 0 || cli->rank.rank > 0);
    if (cli->mute)
        cli->log.level = SL_LOG_ERROR;
    int code = open(cli, cli->values.operands[0], &session);
    cli->log.level = level;
    cli->mute = false;
    if (code != CLI_OK)
        return code;
    const struct sl_model *model = sl_session_get_model(session);
    const int32_t ranks = sl_parallel_count_ranks(&model->parallel);
    if (!check_rank_flags(cli, model)) {
        sl_session_close(session);
        return CLI_USAGE;
    }
    cli_begin_rank(cli, model);
    if ((ranks > 1 && !cli->is_rank) || (restarts > 0 && !own)) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status = ranks > 1 ? sl_session_check_ranks(session, &err) : SEQLSTM_OK;
        sl_session_close(session);
        return status == SEQLSTM_OK ? cli_launch_ranks(cli, ranks, restarts) : cli_fail(cli, status, &err);
    }
    if (!cli->is_rank || cli->rank.rank == 0)
        code = cli_begin_live(cli);
    if (code == CLI_OK)
        code = train(cli, session);
    cli_end_live(cli);
    sl_session_close(session);
    return code;
}

static int run(struct cli_context *cli)
{
    return train_or_launch(cli, cli_open_model);
}

static int resume(struct cli_context *cli)
{
    cli_find_rank(cli);
    cli->options.writes = !cli->is_rank || cli->rank.rank == 0; /* one rank holds the lock */
    return train_or_launch(cli, cli_open_run);
}

const struct cli_command cli_command_run = {
    .name = "run",
    .summary = "check, plan, train, evaluate and save a model",
    .usage = "model.yaml [flags]",
    .examples = "  seqlstm run model.yaml\n"
                "  seqlstm run model.yaml --set train.epochs=5 --seed 7\n"
                "  seqlstm run model.yaml --out /tmp/try --threads 1\n",
    .text = "Creates a run folder (runs/NAME/001) with the effective configuration, the\n"
            "plan, metrics.jsonl and checkpoints. At the end it adds final.safetensors,\n"
            "summary.json and report.html. Ctrl-C finishes the current update, saves a\n"
            "checkpoint and exits; `seqlstm resume` continues from there.\n",
    .flags = run_flags,
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = run,
};

const struct cli_command cli_command_resume = {
    .name = "resume",
    .summary = "continue a run exactly where it stopped",
    .usage = "RUN [flags]",
    .examples = "  seqlstm resume runs/ptb-small/001\n"
                "  seqlstm resume ptb-small --set train.epochs=20\n",
    .text = "RUN is a run folder, or a name: then it is the latest run of that name which\n"
            "has weights, or else the latest run. Without a checkpoint, the run starts from\n"
            "the beginning. A finished run ends at once. `--set` changes keys of the model\n"
            "file. The program prints the changes and stores them in the run.\n",
    .flags = resume_flags,
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .use = SL_RUN_USE_ALL,
    .operands_min = 1,
    .operands_max = 1,
    .run = resume,
};

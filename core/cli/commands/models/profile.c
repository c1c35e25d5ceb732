/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm profile */
#include <string.h>

#include "base/value/html.h"
#include "cli/cli.h"
#include "compare/advice.h"
#include "session/run/timeline.h"
#include "session/run/turn.h"
#include "timeline/print.h"
#include "train/recorder.h"

enum { WARM = 8, WARM_MOST = 1000 };

static const double warm_ns = 250e6;

struct state {
    struct cli_context *cli;
    struct sl_session *session;
    int64_t updates;
    double seconds;
    struct sl_recorder recorder;
    struct sl_timeline *timeline;
    struct sl_timeline_advices advices;
};

static void show_trial(void *context, const char *change)
{
    const struct state *s = context;
    if (!cli_draws_line(s->cli) || s->cli->verbosity < 0)
        return;
    cli_clear_line();
    fprintf(stderr, "trying out %s", change);
    cli_set_line();
}

/* As many updates as the training has room for: it warms up, is recorded, and goes on, recorded in part. */
static int64_t count_updates(const struct state *s)
{
    const int64_t room = (sl_session_count_updates(s->session) - WARM) / 2;
    return room < 1 ? 1 : room < s->updates ? room : s->updates;
}

/* Threads and processors take a moment to reach their speed. */
static seqlstm_status warm_up(struct state *s, struct seqlstm_error *err)
{
    struct sl_turn turn;
    SEQLSTM_TRY(sl_session_take_turn(s->session, NULL, 1, WARM, &turn, err));
    if (turn.updates == 0 || turn.ns >= warm_ns)
        return SEQLSTM_OK;
    const double wanted = warm_ns / turn.ns * (double)turn.updates;
    return sl_session_take_turn(s->session, NULL, 1, wanted < WARM_MOST ? (int64_t)wanted + 1 : WARM_MOST, &turn, err);
}

static seqlstm_status take_profile(struct state *s, struct seqlstm_error *err)
{
    struct sl_turn turn;
    SEQLSTM_TRY(sl_session_prepare_training(s->session, err));
    const int64_t updates = count_updates(s), all = sl_session_count_updates(s->session);
    const int64_t warm = all > WARM + 1 ? WARM : all > 1 ? 1 : 0;
    SEQLSTM_TRY(sl_recorder_init(&s->recorder, warm, updates, err));
    SEQLSTM_TRY(warm_up(s, err));
    SEQLSTM_TRY(sl_session_take_turn(s->session, &s->recorder, warm,
                                     SL_TRACE_DETAILS * updates + SL_RECORDER_COMPARED_MOST, &turn, err));
    SEQLSTM_TRY(sl_session_make_timeline(s->session, &s->recorder, &s->timeline, err));
    if (!(s->seconds > 0))
        return SEQLSTM_OK;
    const struct sl_advice_request request = {.session = s->session,
                                              .options = &s->cli->options,
                                              .update_ns = s->timeline->ns / (double)s->timeline->updates,
                                              .seconds = s->seconds,
                                              .on_trial = show_trial,
                                              .context = s};
    return sl_advice_find(&request, &s->advices, err);
}

static const struct sl_timeline_advices *get_advices(const struct state *s)
{
    return s->seconds > 0 ? &s->advices : NULL;
}

static void print_text(const struct state *s, struct sl_buf *out)
{
    sl_timeline_print_sentence(s->timeline, get_advices(s), "seqlstm profile", out);
    sl_buf_append_char(out, '\n');
    sl_timeline_print_table(s->timeline, out);
    if (s->cli->verbosity > 0)
        sl_timeline_print_advices(&s->advices, out);
}

static void print_page(const struct state *s, struct sl_buf *out)
{
    const char *name = sl_session_get_model(s->session)->name;
    sl_html_begin_page(out, sl_timeline_style, "profile of %s", name);
    sl_buf_append_text(out, "<h1>");
    sl_html_append_text(out, name);
    sl_buf_append_text(out, "</h1>\n");
    sl_timeline_print_section(s->timeline, get_advices(s), out);
    sl_html_end_page(out);
}

/* Writes what `print` prints to the file that the flag names, if it was given. */
static int write_file(const struct state *s, const char *flag, void (*print)(const struct state *s, struct sl_buf *out))
{
    const char *path = cli_get(s->cli, flag);
    struct sl_buf buf = {0};
    if (!path)
        return CLI_OK;
    print(s, &buf);
    return cli_write_file(s->cli, path, &buf);
}

static void print_trace(const struct state *s, struct sl_buf *out)
{
    sl_timeline_print_trace(s->timeline, out);
}

static int show(const struct state *s)
{
    struct sl_buf out = {0};
    cli_clear_line();
    if (s->cli->json)
        sl_timeline_print_json(s->timeline, get_advices(s), &out);
    else
        print_text(s, &out);
    int code = cli_write_out(s->cli, &out);
    sl_buf_deinit(&out);
    if (code == CLI_OK)
        code = write_file(s, "trace", print_trace);
    return code == CLI_OK ? write_file(s, "html", print_page) : code;
}

static int profile(struct cli_context *cli)
{
    struct state s = {.cli = cli, .updates = 20, .seconds = 60};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (!cli_get_int(cli, "updates", 1, 100000, &s.updates) || !cli_get_float(cli, "seconds", 0, 86400, &s.seconds))
        return CLI_USAGE;
    int code = cli_open_model(cli, cli->values.operands[0], &s.session);
    if (code != CLI_OK)
        return code;
    const seqlstm_status status = take_profile(&s, &err);
    code = status == SEQLSTM_OK ? show(&s) : cli_fail(cli, status, &err);
    sl_timeline_destroy(s.timeline);
    sl_recorder_deinit(&s.recorder);
    sl_session_close(s.session);
    return code;
}

static const struct cli_flag flags[] = {
    {.name = "updates", .argument = "N", .help = "record so many updates (default 20)"},
    {.name = "seconds",
     .argument = "S",
     .help = "try out changes for about so long (default 60); 0: only show where the time goes"},
    {.name = "trace",
     .argument = "FILE",
     .writes = true,
     .help = "also write the activities for Perfetto or chrome://tracing"},
    {.name = "html", .argument = "FILE", .writes = true, .help = "also write a page with the timeline"},
    {0},
};

const struct cli_command cli_command_profile = {
    .name = "profile",
    .summary = "show what limits a training, and measure what would be faster",
    .usage = "model.yaml [flags]",
    .examples = "  seqlstm profile model.yaml\n"
                "  seqlstm profile model.yaml --html profile.html --trace trace.json\n"
                "  seqlstm profile model.yaml --seconds 0 --json\n",
    .text = "Trains on the first batches of your data, records some updates, and says where\n"
            "their time goes. Then it tries out other numbers of threads, sizes of the\n"
            "batch, precisions and backends, in turn with the model as it is. The first\n"
            "sentence names what limits the training and the change that helped most; -v\n"
            "lists all that was tried. Nothing is written unless a flag says so.\n"
            "`seqlstm run --profile` adds the same to the report of a run.\n",
    .flags = flags,
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = profile,
};

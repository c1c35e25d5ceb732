/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that measure, on results that the test makes up: what their flags ask for, what they print of the results,
 * and their exit statuses. */
#include <math.h>

#include "base/system/cpu.h"
#include "cli/cli.h"
#include "compare/ab/ab.h"
#include "compare/sweep/sweep.h"
#include "compare/sweep/sweep_report.h"
#include "session/scaling/devices.h"
#include "session/scaling/scaling.h"

#include "report.h"

/* What they answer. */
static struct {
    seqlstm_status status;
    struct sl_ab_report ab;
    struct sl_sweep_report sweep;
    struct sl_quantize_result quantize;
    int32_t devices, cores;
} answer;

int __wrap_cli_open_model(struct cli_context *cli, const char *path, struct sl_session **out_session);
int __wrap_cli_open_run(struct cli_context *cli, const char *run, struct sl_session **out_session);
int __wrap_cli_launch_ranks(const struct cli_context *cli, int32_t ranks, int64_t restarts);
const char *__wrap_sl_session_get_folder(const struct sl_session *session);
int32_t __wrap_sl_cpu_count(void);
seqlstm_status __wrap_sl_ab_run(const struct sl_ab_request *request, struct sl_ab_report **out_report,
                                struct seqlstm_error *err);
seqlstm_status __wrap_sl_ab_serve(const struct sl_ab_request *request, bool is_b, struct seqlstm_error *err);
seqlstm_status __wrap_sl_ab_probe(const struct sl_ab_request *request, bool is_b, struct seqlstm_error *err);
seqlstm_status __wrap_sl_ab_report_print_json(const struct sl_ab_report *report, struct sl_buf *buf,
                                              struct seqlstm_error *err);
void __wrap_sl_ab_report_print_table(const struct sl_ab_report *report, struct sl_buf *buf);
void __wrap_sl_ab_report_destroy(struct sl_ab_report *report);
seqlstm_status __wrap_sl_sweep_run(const struct sl_sweep_request *request, struct sl_sweep_report **out_report,
                                   struct seqlstm_error *err);
seqlstm_status __wrap_sl_sweep_print_json(const struct sl_sweep_report *report, struct sl_buf *buf,
                                          struct seqlstm_error *err);
void __wrap_sl_sweep_print_table(const struct sl_sweep_report *report, struct sl_buf *buf);
void __wrap_sl_sweep_print_html(const struct sl_sweep_report *report, struct sl_buf *buf);
void __wrap_sl_sweep_report_destroy(struct sl_sweep_report *report);
seqlstm_status __wrap_sl_session_quantize(struct sl_session *session, const struct sl_quantize_request *request,
                                          struct sl_quantize_result *result, struct seqlstm_error *err);
seqlstm_status __wrap_sl_session_plan_ranks(const struct sl_scaling_request *request, struct sl_scaling_report *report,
                                            struct seqlstm_error *err);
seqlstm_status __wrap_sl_session_count_rank_devices(struct sl_session *session, int32_t *devices,
                                                    struct seqlstm_error *err);

int __wrap_cli_open_model(struct cli_context *cli, const char *path, struct sl_session **out_session)
{
    *out_session = NULL;
    sl_buf_printf(&noted, "opens the model %s\n", path);
    return cli_prepare(cli, path);
}

int __wrap_cli_open_run(struct cli_context *cli, const char *run, struct sl_session **out_session)
{
    *out_session = NULL;
    sl_buf_printf(&noted, "opens the run %s%s\n", run, cli->options.writes ? " to write into it" : "");
    return cli_prepare(cli, NULL);
}

int __wrap_cli_launch_ranks(const struct cli_context *cli, int32_t ranks, int64_t restarts)
{
    (void)cli;
    sl_buf_printf(&noted, "launches %d ranks, %lld restarts\n", ranks, (long long)restarts);
    return CLI_OK;
}

const char *__wrap_sl_session_get_folder(const struct sl_session *session)
{
    (void)session;
    return "runs/m";
}

int32_t __wrap_sl_cpu_count(void)
{
    return answer.cores;
}

static seqlstm_status give(struct seqlstm_error *err)
{
    return answer.status == SEQLSTM_OK ? SEQLSTM_OK
                                       : seqlstm_error_set(err, answer.status, "a.c", 1, "it fails; use another");
}

/* ---- ab --------------------------------------------------------------------------------------------------------- */

seqlstm_status __wrap_sl_ab_run(const struct sl_ab_request *r, struct sl_ab_report **out_report,
                                struct seqlstm_error *err)
{
    sl_buf_printf(&noted,
                  "%s against %s, %s, batch %lld, rounds %lld, seconds %g, confidence %g, within %g, threads %d", r->a,
                  r->b,
                  r->phase == SL_PHASE_TRAIN     ? "train"
                  : r->phase == SL_PHASE_PREDICT ? "infer"
                                                 : "?",
                  (long long)r->batch_size, (long long)r->rounds, r->seconds, r->confidence, r->within, r->threads);
    sl_buf_printf(&noted, "%s%s, worker", r->separate ? ", separate" : "", r->interrupt ? "" : ", never interrupted");
    int count = 0;
    while (r->worker[count])
        count++;
    sl_buf_printf(&noted, " %s ... %s\n", r->worker[0], r->worker[count - 1]);
    r->on_progress(r->context, 3.4);
    *out_report = &answer.ab;
    return give(err);
}

seqlstm_status __wrap_sl_ab_serve(const struct sl_ab_request *request, bool is_b, struct seqlstm_error *err)
{
    sl_buf_printf(&noted, "serves %s\n", is_b ? request->b : request->a);
    return give(err);
}

seqlstm_status __wrap_sl_ab_probe(const struct sl_ab_request *request, bool is_b, struct seqlstm_error *err)
{
    sl_buf_printf(&noted, "probes %s\n", is_b ? request->b : request->a);
    return give(err);
}

seqlstm_status __wrap_sl_ab_report_print_json(const struct sl_ab_report *report, struct sl_buf *buf,
                                              struct seqlstm_error *err)
{
    (void)report, (void)err;
    sl_buf_append_text(buf, "{the report}\n");
    return SEQLSTM_OK;
}

void __wrap_sl_ab_report_print_table(const struct sl_ab_report *report, struct sl_buf *buf)
{
    sl_buf_append_text(buf, report == &answer.ab ? "the table\n" : "another table\n");
}

void __wrap_sl_ab_report_destroy(struct sl_ab_report *report)
{
    (void)report;
}

/* ---- bench ------------------------------------------------------------------------------------------------------ */

seqlstm_status __wrap_sl_sweep_run(const struct sl_sweep_request *r, struct sl_sweep_report **out_report,
                                   struct seqlstm_error *err)
{
    sl_buf_append_text(&noted, "sweeps");
    for (int32_t k = 0; k < r->backend_count; k++)
        sl_buf_printf(&noted, " %s", r->backends[k]);
    sl_buf_printf(&noted, ", %s, seconds %g%s, batches",
                  r->phase == SL_PHASE_TRAIN     ? "train"
                  : r->phase == SL_PHASE_PREDICT ? "infer"
                                                 : "?",
                  r->seconds, r->interrupt ? "" : ", never interrupted");
    for (int32_t k = 0; k < r->batch_count; k++)
        sl_buf_printf(&noted, " %lld", (long long)r->batches[k]);
    sl_buf_append_text(&noted, ", threads");
    for (int32_t k = 0; k < r->thread_count; k++)
        sl_buf_printf(&noted, " %d", r->threads[k]);
    sl_buf_append_char(&noted, '\n');
    r->on_progress(r->context, 64);
    *out_report = &answer.sweep;
    return give(err);
}

seqlstm_status __wrap_sl_sweep_print_json(const struct sl_sweep_report *report, struct sl_buf *buf,
                                          struct seqlstm_error *err)
{
    (void)report, (void)err;
    sl_buf_append_text(buf, "{the report}\n");
    return SEQLSTM_OK;
}

void __wrap_sl_sweep_print_table(const struct sl_sweep_report *report, struct sl_buf *buf)
{
    (void)report;
    sl_buf_append_text(buf, "the table\n");
}

void __wrap_sl_sweep_print_html(const struct sl_sweep_report *report, struct sl_buf *buf)
{
    (void)report;
    sl_buf_append_text(buf, "<the page>\n");
}

void __wrap_sl_sweep_report_destroy(struct sl_sweep_report *report)
{
    (void)report;
}

/* ---- quantize and plan ------------------------------------------------------------------------------------------ */

seqlstm_status __wrap_sl_session_quantize(struct sl_session *session, const struct sl_quantize_request *request,
                                          struct sl_quantize_result *result, struct seqlstm_error *err)
{
    (void)session;
    sl_buf_printf(&noted, "quantizes within %g%s\n", request->bound, request->force ? ", or beyond" : "");
    *result = answer.quantize;
    result->layers = calloc((size_t)answer.quantize.count, sizeof *result->layers);
    if (result->layers == NULL)
        return seqlstm_error_set(err, SEQLSTM_NO_MEMORY, "a.c", 1, "no memory");
    memcpy(result->layers, answer.quantize.layers, (size_t)answer.quantize.count * sizeof *result->layers);
    return give(err);
}

seqlstm_status __wrap_sl_session_plan_ranks(const struct sl_scaling_request *r, struct sl_scaling_report *report,
                                            struct seqlstm_error *err)
{
    sl_buf_append_text(&noted, "plans");
    for (int32_t k = 0; k < r->count; k++)
        sl_buf_printf(&noted, " %d", r->ranks[k]);
    sl_buf_printf(&noted, " ranks, local %d, measuring %d, link %g %g, inner %g %g, grows %d, threads %d\n", r->local,
                  r->measuring, r->link.bytes_per_s, r->link.latency_s, r->inner.bytes_per_s, r->inner.latency_s,
                  r->grows, r->options->threads);
    *report = (struct sl_scaling_report){.count = 1, .local = 1, .measuring = 1};
    report->rows[0] = (struct sl_scaling_row){1, 1, 8, 1, 1, 100, 2.5e9, 2.4e9, 0, 0, 123456789, 0};
    return give(err);
}

seqlstm_status __wrap_sl_session_count_rank_devices(struct sl_session *session, int32_t *devices,
                                                    struct seqlstm_error *err)
{
    (void)session;
    *devices = answer.devices;
    return give(err);
}

static void ab_answers(double low, double ratio, bool numeric_ok)
{
    answer.ab.step = (struct sl_interval){.ratio = ratio, .low = low, .high = ratio + (ratio - low)};
    answer.ab.numeric_ok = numeric_ok;
    sl_buf_printf(&out, "== B / A %g, from %g on, numbers %s\n", ratio, low, numeric_ok ? "agree" : "differ");
}

static void run_ab(void)
{
    static const char *const lines[] = {
        "ab m.yaml --a x --b y",
        "ab m.yaml --a x,tile=4 --b y:packed --phase infer --batch 7 --rounds 9 --seconds 2.5 --confidence 90 --within "
        "3 "
        "--threads 2 --separate --json",
        "ab m.yaml --a x --b y --phase train -q",
        "ab m.yaml --a x --b y --phase both",
        "ab m.yaml --a x",
        "ab m.yaml --b y",
        "ab m.yaml --a x --b y --batch 0",
        "ab m.yaml --a x --b y --batch 1048576",
        "ab m.yaml --a x --b y --batch 1048577",
        "ab m.yaml --a x --b y --rounds 0",
        "ab m.yaml --a x --b y --rounds 1000",
        "ab m.yaml --a x --b y --rounds 1001",
        "ab m.yaml --a x --b y --seconds 0.01",
        "ab m.yaml --a x --b y --seconds 0.009",
        "ab m.yaml --a x --b y --seconds 3600",
        "ab m.yaml --a x --b y --seconds 3601",
        "ab m.yaml --a x --b y --confidence 50",
        "ab m.yaml --a x --b y --confidence 49",
        "ab m.yaml --a x --b y --confidence 99.9",
        "ab m.yaml --a x --b y --confidence 99.91",
        "ab m.yaml --a x --b y --within 0",
        "ab m.yaml --a x --b y --within 100",
        "ab m.yaml --a x --b y --within 101",
        "ab m.yaml --a x --b y --max-regress much",
        "ab m.yaml --a x --b y --side a",
        "ab m.yaml --a x --b y --side b",
        "ab m.yaml --a x --b y --side probe-a",
        "ab m.yaml --a x --b y --side probe-b",
        "ab m.yaml --a x --b y --side c",
    };
    static const char limited[] = "ab m.yaml --a x --b y --max-regress 5%";
    command_color = false;
    ab_answers(0.99, 1.01, true);
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        run(lines[k]);
    run(limited);
    ab_answers(1.05, 1.5, true); /* all of it may be chance */
    run(limited);
    run("ab m.yaml --a x --b y --max-regress 0.04");
    run("ab m.yaml --a x --b y --max-regress 0");
    run("ab m.yaml --a x --b y --max-regress 5% --json");
    run("ab m.yaml --a x --b y");
    ab_answers(1.0625, 1.1, true);
    run(limited);
    ab_answers(1, 1, false);
    run("ab m.yaml --a x --b y");
    run("ab m.yaml --a x --b y --max-regress 5% --json");
    ab_answers(0.5, 0.6, true);
    run("ab m.yaml --a x --b y --max-regress 0");
    command_color = true;
    run("ab m.yaml --a x --b y");
    run("ab m.yaml --a x --b y -q");
    answer.status = SEQLSTM_UNAVAILABLE;
    run("ab m.yaml --a x --b y");
    run("ab m.yaml --a x --b y --side b");
    answer.status = SEQLSTM_OK;
    command_color = false;
}

static void run_bench(void)
{
    static const char *const lines[] = {
        "bench m.yaml",
        "bench m.yaml --json -q",
        "bench m.yaml --backend x --backend y:packed,tile=3 --batch 1,2,4 --threads 1,3 --phase infer --seconds 7",
        "bench m.yaml --phase train --seconds 0.01 --batch 5",
        "bench m.yaml --phase both",
        "bench m.yaml --seconds 0.009",
        "bench m.yaml --seconds 86400",
        "bench m.yaml --seconds 86401",
        "bench m.yaml --batch 1,2,2",
        "bench m.yaml --batch 2,1",
        "bench m.yaml --batch 0,1",
        "bench m.yaml --batch 1,x",
        "bench m.yaml --batch 1,1048576",
        "bench m.yaml --batch 1,1048577",
        "bench m.yaml --batch 1,,2",
        "bench m.yaml --batch 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32",
        "bench m.yaml --batch "
        "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33",
        "bench m.yaml --threads 1,2,3,4,5,6,7,8",
        "bench m.yaml --threads 1,2,3,4,5,6,7,8,9",
        "bench m.yaml --threads 0",
        "bench m.yaml --load 3",
        "bench m.yaml --connections 3",
        "bench m.yaml --batching steps",
        "bench m.yaml --no-pin",
        "bench m.yaml --requests r.csv",
    };
    char html[320];
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        run(lines[k]);
    struct sl_buf many = {0};
    sl_buf_append_text(&many, "bench m.yaml");
    for (int k = 0; k < SL_SWEEP_BACKENDS_MOST; k++)
        sl_buf_printf(&many, " --backend b%d", k);
    run(sl_buf_text(&many));
    sl_buf_append_text(&many, " --backend c");
    run(sl_buf_text(&many));
    sl_buf_deinit(&many);
    command_color = true;
    run("bench m.yaml");
    run("bench m.yaml -q");
    command_color = false;
    sl_buf_append_text(&out, "== two fail\n");
    answer.sweep.failures = 2;
    run("bench m.yaml");
    run("bench m.yaml --json");
    answer.sweep.failures = 0;
    answer.status = SEQLSTM_NUMERIC;
    run("bench m.yaml");
    answer.status = SEQLSTM_OK;
    sl_buf_append_text(&out, "== a page\n");
    assert_int_equal(chdir(scratch_folder), 0);
    run("bench m.yaml --html page.html");
    run("bench m.yaml --html nowhere/page.html");
    snprintf(html, sizeof html, "%s", scratch_path("page.html"));
    char *page = NULL;
    assert_int_equal(sl_file_read(html, 100, &page, NULL, NULL), SEQLSTM_OK);
    assert_string_equal(page, "<the page>\n");
    free(page);
}

static struct sl_metric_values make_values(double loss, double accuracy)
{
    struct sl_metric_values values = {.count = 2};
    values.items[0] = (struct sl_metric_value){.name = "loss", .value = loss};
    values.items[1] = (struct sl_metric_value){.name = "accuracy", .value = accuracy};
    return values;
}

static void run_quantize(void)
{
    static struct sl_quantized_report layers[] = {{.name = "first",
                                                   .dtype = SEQLSTM_DTYPE_INT8,
                                                   .cause = "",
                                                   .low = -1.5,
                                                   .high = 2.25,
                                                   .scale = 68,
                                                   .shift = 102,
                                                   .accepted = true,
                                                   .backend = "x",
                                                   .variant = "int8",
                                                   .before_ns = 4e6,
                                                   .after_ns = 2e6,
                                                   .reason = ""},
                                                  {.name = "second",
                                                   .dtype = SEQLSTM_DTYPE_BFLOAT16,
                                                   .cause = "loss is worse",
                                                   .accepted = true,
                                                   .backend = "y",
                                                   .variant = "v",
                                                   .before_ns = 3e6,
                                                   .after_ns = 3.5e6,
                                                   .reason = ""},
                                                  {.name = "third",
                                                   .dtype = SEQLSTM_DTYPE_INT8,
                                                   .cause = "",
                                                   .low = -1,
                                                   .high = 1,
                                                   .scale = 127,
                                                   .shift = 127,
                                                   .backend = "z",
                                                   .variant = "w",
                                                   .before_ns = 1e6,
                                                   .after_ns = 9e6,
                                                   .reason = "it cannot"}};
    struct sl_quantize_result *r = &answer.quantize;
    *r = (struct sl_quantize_result){
        .main = SL_SPLIT_VALID, .metric = "accuracy", .is_higher_better = true, .is_written = true};
    r->layers = layers;
    r->count = 3;
    r->splits[SL_SPLIT_TRAIN] = (struct sl_quantized_split){.is_measured = true, .before = make_values(1, 0.5)};
    r->splits[SL_SPLIT_VALID] = (struct sl_quantized_split){.is_measured = true,
                                                            .before = make_values(2, 0.5),
                                                            .after = make_values(2.0625, 0.25),
                                                            .loss = 0.5,
                                                            .clipped = {3, 1000}};
    run("quantize m");
    run("quantize m --json");
    run("quantize m -q");
    run("quantize m --max-regress 5% --force");
    run("quantize m --max-regress 0.25");
    run("quantize m --max-regress -1");
    r->splits[SL_SPLIT_TEST] = (struct sl_quantized_split){.is_measured = true,
                                                           .before = make_values(0, (double)NAN),
                                                           .after = make_values((double)INFINITY, 0),
                                                           .loss = (double)INFINITY};
    sl_buf_append_text(&out, "== infinite on the test data, slower\n");
    layers[0].after_ns = 4e6;
    r->is_too_bad = true;
    run("quantize m");
    run("quantize m --json");
    layers[0].after_ns = 3.85e6; /* just 5 % slower */
    run("quantize m -q");
    sl_buf_append_text(&out, "== not written\n");
    r->is_written = false;
    run("quantize m");
    run("quantize m --json");
    r->splits[SL_SPLIT_TEST].loss = 0.25;
    run("quantize m --max-regress 20%");
    answer.status = SEQLSTM_UNSUPPORTED;
    run("quantize m");
    answer.status = SEQLSTM_OK;
}

static void run_plan_of_ranks(void)
{
    static const char *const lines[] = {
        "plan m.yaml --ranks 1",
        "plan m.yaml --ranks 1 --json",
        "plan m.yaml --ranks 1,2,4,4096",
        "plan m.yaml --ranks 3 --threads 3",
        "plan m.yaml --ranks 3 --threads 9 --grow-batch",
        "plan m.yaml --ranks 1 --link 100Gb/s,5us",
        "plan m.yaml --ranks 1 --link 8Mb/s,5ms,nvlink=3GB/s",
        "plan m.yaml --ranks 1 --link 2GB/s,7ns,nvlink=1x300MB/s",
        "plan m.yaml --ranks 1 --link 2.5MB/s,1s",
        "plan m.yaml --ranks 2,64 --link 1GB/s,1us,nvlink=8x300GB/s",
        "plan m.yaml --ranks 2,64 --link 1GB/s,1us,nvlink=4x300GB/s",
        "plan m.yaml --ranks 2,64 --link 1GB/s,1us,nvlink=1x300GB/s",
        "plan m.yaml --ranks 1,64 --link 1GB/s,1us,nvlink=1x300GB/s",
        "plan m.yaml --ranks 2,64 --link 1GB/s,1us,nvlink=0x300GB/s",
        "plan m.yaml --ranks 2 --link 1GB/s,1us,nvlink=4096x1GB/s",
        "plan m.yaml --ranks 2 --link 1GB/s,1us,nvlink=4097x1GB/s",
        "plan m.yaml --ranks 2 --link 1GB/s,1us,other=1GB/s",
        "plan m.yaml --ranks 2 --link 1GB/s,1us,",
        "plan m.yaml --ranks 2 --link 1GB/s",
        "plan m.yaml --ranks 2 --link GB/s,1us",
        "plan m.yaml --ranks 2 --link -1GB/s,1us",
        "plan m.yaml --ranks 2 --link 1GB/s,0us",
        "plan m.yaml --ranks 2,2",
        "plan m.yaml --ranks 2,1",
        "plan m.yaml --ranks 0",
        "plan m.yaml --ranks 4097",
        "plan m.yaml --ranks 1,,2",
        "plan m.yaml --link 1GB/s,1us",
        "plan m.yaml --grow-batch",
        "plan m.yaml --html x.html",
        "plan m --ranks 1",
    };
    for (int devices = 0; devices < 5; devices += 2) {
        answer.devices = devices;
        answer.cores = 4;
        sl_buf_printf(&out, "== %d devices, 4 cores\n", devices);
        for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
            if (devices == 0 || k < 15)
                run(lines[k]);
    }
    answer.devices = 0;
    sl_buf_append_text(&out, "== one core\n");
    answer.cores = 1;
    run("plan m.yaml --ranks 1,2,4");
    run("plan m.yaml --ranks 4 --threads 2");
    struct sl_buf many = {0};
    sl_buf_append_text(&many, "plan m.yaml --ranks 1");
    for (int k = 2; k <= SL_SCALING_ROWS; k++)
        sl_buf_printf(&many, ",%d", k);
    run(sl_buf_text(&many));
    sl_buf_append_text(&many, ",100");
    run(sl_buf_text(&many));
    sl_buf_deinit(&many);
    answer.status = SEQLSTM_INVALID_CONFIG;
    run("plan m.yaml --ranks 1");
    answer.status = SEQLSTM_OK;
}

static void run_all(void)
{
    answer.cores = 4;
    run_ab();
    run_bench();
    run_quantize();
    run_plan_of_ranks();
}

int main(void)
{
    return report_main((struct report){run_all, "reports/measuring.txt", &answer, sizeof answer, NULL});
}

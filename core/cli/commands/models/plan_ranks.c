/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm plan --ranks. Starts as many ranks on this machine as measure together, and shows what rank 0 found. */
#include "cli/commands/models/plan_ranks.h"

#include <string.h>

#include "base/system/cpu.h"
#include "base/value/text.h"
#include "cli/cli.h"
#include "session/scaling/scaling.h"

/* ---- flags ------------------------------------------------------------------------------------------------------ */

static int read_ranks(struct cli_context *cli, struct sl_scaling_request *request)
{
    const char *text = cli_get(cli, "ranks");
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        int64_t value = 0;
        if (request->count == SL_SCALING_ROWS)
            return cli_usage_error(cli, "`--ranks %s`: more than %d numbers", text, SL_SCALING_ROWS);
        if (!sl_text_parse_int64(at, strcspn(at, ","), &value) || value < 1 || value > SL_RANKS_MOST ||
            (request->count > 0 && value <= request->ranks[request->count - 1]))
            return cli_usage_error(cli, "`--ranks %s`: expected ascending numbers from 1 to %d, as in 1,2,4,8", text,
                                   SL_RANKS_MOST);
        request->ranks[request->count++] = (int32_t)value;
    }
    return CLI_OK;
}

struct unit {
    const char *name;
    double factor;
};

static const struct unit rates[] = {{"Gb/s", 1e9 / 8}, {"Mb/s", 1e6 / 8}, {"GB/s", 1e9}, {"MB/s", 1e6}, {NULL, 0}};
static const struct unit times[] = {{"us", 1e-6}, {"ms", 1e-3}, {"ns", 1e-9}, {"s", 1}, {NULL, 0}};

/* "100Gb/s" of `bytes` bytes. */
static bool parse_with_unit(const char *text, size_t bytes, const struct unit *units, double *out)
{
    for (; units->name; units++) {
        const size_t length = strlen(units->name);
        double value;
        if (bytes > length && memcmp(text + bytes - length, units->name, length) == 0 &&
            sl_text_parse_float64(text, bytes - length, &value) && value > 0) {
            *out = value * units->factor;
            return true;
        }
    }
    return false;
}

/* RATE,LATENCY[,nvlink=RATE] */
static int read_link(struct cli_context *cli, struct sl_scaling_request *request)
{
    static const char inner[] = "nvlink=";
    static const double inner_latency_s = 2e-6;
    const char *text = cli_get(cli, "link"), *at = text;
    if (!text)
        return CLI_OK;
    bool fine = parse_with_unit(at, strcspn(at, ","), rates, &request->link.bytes_per_s);
    at += strcspn(at, ",");
    fine = fine && *at++ == ',' && parse_with_unit(at, strcspn(at, ","), times, &request->link.latency_s);
    at += fine ? strcspn(at, ",") : 0;
    if (fine && *at == ',') {
        at++;
        fine =
            strncmp(at, inner, sizeof inner - 1) == 0 &&
            parse_with_unit(at + sizeof inner - 1, strlen(at) - sizeof inner + 1, rates, &request->inner.bytes_per_s);
        request->inner.latency_s = inner_latency_s;
        at += strlen(at);
    }
    if (!fine || *at)
        return cli_usage_error(cli,
                               "`--link %s`: expected a rate and a latency, as in 100Gb/s,5us, and perhaps "
                               "nvlink=300GB/s for the ranks of a host",
                               text);
    return CLI_OK;
}

/* Ranks of a host: as many as it has cores, or cores for their threads. */
static int32_t count_local(const struct cli_context *cli, const struct sl_scaling_request *request)
{
    const int32_t threads = cli->options.threads_given && cli->options.threads > 0 ? cli->options.threads : 1;
    const int32_t fitting = sl_cpu_count() / threads, most = request->ranks[request->count - 1];
    return fitting < 1 ? 1 : fitting < most ? fitting : most;
}

/* ---- the report ------------------------------------------------------------------------------------------------- */

static int show(struct cli_context *cli, const struct sl_scaling_report *report)
{
    struct sl_buf out = {0}, page = {0};
    const char *path = cli_get(cli, "html");
    if (cli->json)
        sl_scaling_write_json(report, &out);
    else
        sl_scaling_write_table(report, &out);
    int code = cli_write_out(cli, &out) ? CLI_OK : CLI_FAILURE;
    sl_buf_deinit(&out);
    if (code != CLI_OK || !path)
        return code;
    sl_scaling_write_page(report, &page);
    return cli_write_file(cli, path, &page);
}

static int measure(struct cli_context *cli, const struct sl_scaling_request *request)
{
    struct sl_scaling_report report;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = sl_session_plan_ranks(request, &report, &err);
    if (status != SEQLSTM_OK)
        return cli_fail(cli, status, &err);
    return cli->is_rank && cli->rank.rank > 0 ? CLI_OK : show(cli, &report);
}

/* This process is a rank only if the command itself has started it. */
static void begin_rank(struct cli_context *cli)
{
    cli_find_rank(cli);
    cli->is_rank = cli->is_rank && cli->rank.parent > 0;
    cli->mute = cli->is_rank;
    cli->options.identity = cli->is_rank ? &cli->rank : NULL;
    if (cli->is_rank)
        cli->log.level = SL_LOG_ERROR;
}

int cli_plan_ranks(struct cli_context *cli)
{
    struct sl_scaling_request request = {.options = &cli->options, .grows = cli_has(cli, "grow-batch")};
    struct sl_session *session = NULL;
    begin_rank(cli);
    int code = read_ranks(cli, &request);
    code = code == CLI_OK ? read_link(cli, &request) : code;
    code = code == CLI_OK ? cli_open_model(cli, cli->values.operands[0], &session) : code;
    sl_session_close(session); /* each measurement opens its own */
    if (code != CLI_OK)
        return code;
    request.local = count_local(cli, &request);
    if (!cli->is_rank && request.local > 1)
        return cli_launch_ranks(cli, request.local, 0);
    return measure(cli, &request);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm plan --ranks. Starts as many ranks on this machine as measure together, and shows what rank 0 found. */
#include "cli/commands/models/plan_ranks.h"

#include <string.h>

#include "base/system/cpu.h"
#include "base/value/text.h"
#include "cli/cli.h"
#include "session/scaling/devices.h"
#include "session/scaling/scaling.h"
#include "session/session.h"

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

/* [Nx]RATE: between the ranks of a host, and how many these are, if not as many as measure. */
static bool read_inner(const char *text, struct sl_scaling_request *request)
{
    static const double latency_s = 2e-6;
    const size_t digits = strspn(text, "0123456789");
    int64_t local = 0;
    if (digits > 0 && text[digits] == 'x') {
        if (!sl_text_parse_int64(text, digits, &local) || local < 1 || local > SL_RANKS_MOST)
            return false;
        text += digits + 1;
    }
    request->local = (int32_t)local;
    request->inner.latency_s = latency_s;
    return parse_with_unit(text, strlen(text), rates, &request->inner.bytes_per_s);
}

/* RATE,LATENCY[,nvlink=[Nx]RATE] */
static int read_link(struct cli_context *cli, struct sl_scaling_request *request)
{
    static const char inner[] = "nvlink=";
    const char *text = cli_get(cli, "link"), *at = text;
    if (!text)
        return CLI_OK;
    bool fine = parse_with_unit(at, strcspn(at, ","), rates, &request->link.bytes_per_s);
    at += strcspn(at, ",");
    fine = fine && *at++ == ',' && parse_with_unit(at, strcspn(at, ","), times, &request->link.latency_s);
    at += fine ? strcspn(at, ",") : 0;
    if (fine && *at)
        fine = strncmp(at + 1, inner, sizeof inner - 1) == 0 && read_inner(at + sizeof inner, request);
    if (!fine)
        return cli_usage_error(cli,
                               "`--link %s`: expected a rate and a latency, as in 100Gb/s,5us, and perhaps "
                               "nvlink=300GB/s for the ranks of a host, or nvlink=8x300GB/s for 8 GPUs",
                               text);
    return CLI_OK;
}

/* ---- the ranks of a host ---------------------------------------------------------------------------------------- */

/* A host with more ranks than the `here` of this machine is measured by these, if they do not share a processor. */
static int extend_host(struct cli_context *cli, const struct sl_scaling_request *request, int32_t here, bool on_devices)
{
    if (request->local > here && !on_devices)
        return cli_usage_error(
            cli,
            "`--link %s`: `%dx` is for GPUs: the model runs on the processors of this machine, where "
            "ranks slow each other down, so hosts of %d ranks cannot be measured here; use "
            "`nvlink=RATE` alone",
            cli_get(cli, "link"), request->local, request->local);
    if (request->inner.bytes_per_s > 0 && request->local == 1 && request->ranks[request->count - 1] > 1)
        return cli_usage_error(cli,
                               "`--link %s`: `nvlink` is the link between the ranks of a host, and a host like this "
                               "machine has one; remove it, or say how many a host has, as in nvlink=8x300GB/s",
                               cli_get(cli, "link"));
    return CLI_OK;
}

/* Ranks of a host: as many as it has GPUs, if calls run there; otherwise as it has cores, or cores for their threads.
 */
static int count_local(struct cli_context *cli, struct sl_session *session, struct sl_scaling_request *request)
{
    const int32_t threads = cli->options.threads_given && cli->options.threads > 0 ? cli->options.threads : 1;
    const int32_t most = request->ranks[request->count - 1];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int32_t devices = 0;
    if (cli->is_rank) { /* they have been counted before this one was started */
        request->measuring = cli->rank.ranks;
        request->local = request->local > 0 ? request->local : request->measuring;
        return CLI_OK;
    }
    const seqlstm_status status = sl_session_count_rank_devices(session, &devices, &err);
    if (status != SEQLSTM_OK)
        return cli_fail(cli, status, &err);
    const int32_t shares = sl_cpu_count() / threads, fitting = devices > 0 ? devices : shares > 1 ? shares : 1;
    const int32_t given = request->local > 0 ? request->local : most;
    request->measuring = fitting < given ? fitting : given;
    request->measuring = request->measuring < most ? request->measuring : most;
    request->local = request->local > 0 ? request->local : request->measuring;
    return extend_host(cli, request, fitting, devices > 0);
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
    int code = cli_write_out(cli, &out);
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
    const bool wrong_for_all = status == SEQLSTM_INVALID_CONFIG || status == SEQLSTM_INVALID_ARGUMENT;
    if (wrong_for_all && cli->is_rank && cli->rank.rank > 0)
        return CLI_OTHER_RANK;
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
    code = code == CLI_OK ? count_local(cli, session, &request) : code;
    sl_session_close(session); /* each measurement opens its own */
    if (code != CLI_OK)
        return code;
    return request.measuring > 1 && !cli->is_rank ? cli_launch_ranks(cli, request.measuring, 0)
                                                  : measure(cli, &request);
}

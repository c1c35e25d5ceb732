/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm data stats */
#include <jansson.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/data_page.h"
#include "data/stats.h"

static json_t *pack_cost(const struct sl_batching_cost *c, bool measured)
{
    json_t *object = json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:f}", "name", c->name, "rows_computed",
                               (json_int_t)c->rows_computed, "steps", (json_int_t)c->steps, "batches",
                               (json_int_t)c->batches, "shapes", (json_int_t)c->shapes, "rows_lost",
                               (json_int_t)c->rows_lost, "sequences_lost", (json_int_t)c->sequences_lost,
                               "above_bound", c->above_bound);
    if (measured)
        json_object_set_new(object, "seconds", json_real(c->seconds));
    json_t *edges = c->edge_count > 0 ? json_array() : NULL;
    for (int64_t e = 0; e < c->edge_count; e++)
        json_array_append_new(edges, json_integer((json_int_t)c->edges[e]));
    if (edges)
        json_object_set_new(object, "edges", edges);
    return object;
}

static int write_json(struct cli_context *cli, const struct sl_data_stats *stats, const struct sl_step_cost *measured)
{
    int count;
    const struct sl_batching_cost *costs = sl_data_stats_get_costs(stats, &count);
    json_t *strategies = json_array(), *lengths = json_array(), *points = json_array();
    const char *chosen = "";
    for (int c = 0; c < count; c++) {
        json_array_append_new(strategies, pack_cost(&costs[c], measured != NULL));
        if (costs[c].chosen)
            chosen = costs[c].name;
    }
    const struct sl_length_bin *bins = sl_data_stats_get_bins(stats, &count);
    for (int b = 0; b < count; b++)
        json_array_append_new(lengths, json_pack("{s:I,s:I,s:I}", "first", (json_int_t)bins[b].first, "last",
                                                 (json_int_t)bins[b].last, "sequences",
                                                 (json_int_t)bins[b].records));
    json_t *root = json_pack(
        "{s:s,s:I,s:I,s:I,s:I,s:I,s:s,s:o,s:o,s:{s:I}}", "schema", "seqlstm.data_stats/1", "rows",
        (json_int_t)sl_data_stats_get_rows(stats), "sequences", (json_int_t)sl_data_stats_get_sequences(stats),
        "longest", (json_int_t)sl_data_stats_get_longest(stats), "vocabulary",
        (json_int_t)sl_data_stats_get_vocabulary(stats), "classes", (json_int_t)sl_data_stats_get_classes(stats),
        "chosen", chosen, "strategies", strategies, "lengths", lengths, "lower_bound", "steps",
        (json_int_t)sl_data_stats_get_least_steps(stats));
    for (int p = 0; measured && p < measured->count; p++)
        json_array_append_new(points, json_pack("{s:I,s:f}", "width", (json_int_t)measured->points[p].width, "step_ns",
                                                measured->points[p].step_ns));
    if (measured) {
        json_object_set_new(json_object_get(root, "lower_bound"), "seconds",
                            json_real(sl_data_stats_get_least_seconds(stats)));
        json_object_set_new(root, "step_cost", json_pack("{s:O,s:f,s:f}", "points", points, "batch_ns",
                                                         measured->batch_ns, "shape_ns", measured->shape_ns));
    }
    json_decref(points);
    return cli_write_json(cli, root);
}

static void write_lengths(struct sl_buf *buf, const struct sl_data_stats *stats)
{
    int count;
    const struct sl_length_bin *bins = sl_data_stats_get_bins(stats, &count);
    int64_t most = 1;
    for (int b = 0; b < count; b++)
        most = bins[b].records > most ? bins[b].records : most;
    for (int b = 0; b < count; b++) {
        char range[48];
        snprintf(range, sizeof range, bins[b].first == bins[b].last ? "%lld" : "%lld-%lld", (long long)bins[b].first,
                 (long long)bins[b].last);
        sl_buf_printf(buf, "  %11s %8lld  ", range, (long long)bins[b].records);
        sl_buf_fill(buf, '#', (size_t)(40 * bins[b].records / most));
        sl_buf_append_char(buf, '\n');
    }
}

/* What is lost or was measured has columns only where something was. Below the table, what the names mean. */
static void write_strategies(struct sl_buf *buf, const struct sl_data_stats *stats, bool measured)
{
    int count;
    bool lost = false;
    const struct sl_batching_cost *costs = sl_data_stats_get_costs(stats, &count);
    for (int c = 0; c < count; c++)
        lost = lost || costs[c].rows_lost || costs[c].sequences_lost;
    sl_buf_printf(buf, "\n%-20s %12s %10s %8s %7s %8s%s%s\n", "batching, one epoch", "rows", "steps", "batches",
                  "shapes", "bound", measured ? "   seconds" : "", lost ? "  rows lost  seqs lost" : "");
    for (int c = 0; c < count; c++) {
        char above[24], seconds[24];
        sl_text_snprintf(above, sizeof above, "%+.1f %%", 100 * costs[c].above_bound);
        sl_text_snprintf(seconds, sizeof seconds, "%.1f", costs[c].seconds);
        sl_buf_printf(buf, "%c %-18s %12lld %10lld %8lld %7lld %8s", costs[c].chosen ? '*' : ' ', costs[c].name,
                      (long long)costs[c].rows_computed, (long long)costs[c].steps, (long long)costs[c].batches,
                      (long long)costs[c].shapes, above);
        if (measured)
            sl_buf_printf(buf, " %9s", seconds);
        if (lost)
            sl_buf_printf(buf, " %10lld %10lld", (long long)costs[c].rows_lost, (long long)costs[c].sequences_lost);
        sl_buf_append_char(buf, '\n');
    }
    sl_buf_append_char(buf, '\n');
    for (int c = 0; c < count; c++)
        sl_buf_printf(buf, "  %-18s %s\n", costs[c].name, costs[c].description);
    sl_buf_printf(buf, "  %-18s %s\n", "bound", measured ? "time above that of as many rows in the widest steps"
                                                        : "steps above those of all data sorted by length");
}

static int write_table(struct cli_context *cli, const struct sl_data_stats *stats, bool measured)
{
    struct sl_buf buf = {0};
    char mean[32];
    sl_text_snprintf(mean, sizeof mean, "%.1f", sl_data_stats_get_mean(stats));
    sl_buf_printf(&buf,
                  "sequences %lld, real steps %lld\nlengths %lld to %lld, mean %s, median %lld, 95 %% up to %lld\n",
                  (long long)sl_data_stats_get_sequences(stats), (long long)sl_data_stats_get_rows(stats),
                  (long long)sl_data_stats_get_shortest(stats), (long long)sl_data_stats_get_longest(stats), mean,
                  (long long)sl_data_stats_get_quantile(stats, 0.5),
                  (long long)sl_data_stats_get_quantile(stats, 0.95));
    if (sl_data_stats_get_vocabulary(stats) > 0)
        sl_buf_printf(&buf, "vocabulary %lld\n", (long long)sl_data_stats_get_vocabulary(stats));
    if (sl_data_stats_get_classes(stats) > 0)
        sl_buf_printf(&buf, "classes %lld\n", (long long)sl_data_stats_get_classes(stats));
    write_lengths(&buf, stats);
    write_strategies(&buf, stats, measured);
    int code = cli_write_out(cli, &buf) ? CLI_OK : CLI_FAILURE;
    sl_buf_deinit(&buf);
    return code;
}

static int write(struct cli_context *cli, const struct sl_data_stats *stats, const struct sl_step_cost *cost)
{
    const char *page = cli_get(cli, "html");
    if (page) {
        struct sl_buf buf = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        cli_write_data_page(&buf, cli->values.operands[0], stats, cost);
        seqlstm_status status =
            buf.failed ? seqlstm_error_set(&err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the page")
                       : sl_file_write(page, buf.data, buf.length_bytes, &err);
        sl_buf_deinit(&buf);
        if (status != SEQLSTM_OK)
            return cli_fail(cli, status, &err);
    }
    return cli->json ? write_json(cli, stats, cost) : write_table(cli, stats, cost != NULL);
}

static int data_stats(struct cli_context *cli)
{
    struct sl_session *session = NULL;
    int code = cli_open_model(cli, cli->values.operands[0], &session);
    if (code != CLI_OK)
        return code;
    struct sl_data_stats *stats = NULL;
    const struct sl_step_cost *cost = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_session_read_data(session, &err);
    if (status == SEQLSTM_OK && cli_has(cli, "measure"))
        status = sl_session_find_step_cost(session, &cost, &err);
    if (status == SEQLSTM_OK)
        status = sl_data_stats_create(sl_session_find_train_data(session), cost, &stats, &err);
    code = status == SEQLSTM_OK ? write(cli, stats, cost) : cli_fail(cli, status, &err);
    sl_data_stats_destroy(stats);
    sl_session_close(session);
    return code;
}

static const struct cli_flag flags[] = {
    {"measure", 0, NULL, NULL, "load the backends and measure what a step costs: adds predicted times", false, NULL},
    {"html", 0, "FILE", NULL, "write a page with the histogram and the edges of the buckets as well", false, NULL},
    {0},
};

const struct cli_command cli_command_data_stats = {
    .name = "data stats",
    .summary = "lengths, vocabulary, and what each way of batching would cost",
    .usage = "model.yaml [flags]",
    .examples = "  seqlstm data stats configs/ptb-small.yaml\n"
                "  seqlstm data stats model.yaml --measure --html batches.html\n",
    .text = "Rows are what kernels compute; steps are what must run one after the other. `*` marks what the model\n"
            "file asks for. Packed batches compute real steps only. Without --measure no plugin is loaded, and the\n"
            "buckets of `auto` are those with the fewest steps.\n",
    .flags = flags,
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = data_stats,
};

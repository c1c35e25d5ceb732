/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm data stats */
#include <jansson.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/cli.h"
#include "data/stats.h"

static int write_json(struct cli_context *cli, const struct sl_data_stats *stats)
{
    int count;
    const struct sl_batching_cost *costs = sl_data_stats_get_costs(stats, &count);
    json_t *strategies = json_array(), *lengths = json_array();
    const char *chosen = "";
    for (int c = 0; c < count; c++) {
        json_array_append_new(strategies,
                              json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "name", costs[c].name, "rows_computed",
                                        (json_int_t)costs[c].rows_computed, "steps", (json_int_t)costs[c].steps,
                                        "batches", (json_int_t)costs[c].batches, "shapes",
                                        (json_int_t)costs[c].shapes, "rows_lost", (json_int_t)costs[c].rows_lost,
                                        "sequences_lost", (json_int_t)costs[c].sequences_lost));
        if (costs[c].chosen)
            chosen = costs[c].name;
    }
    const struct sl_length_bin *bins = sl_data_stats_get_bins(stats, &count);
    for (int b = 0; b < count; b++)
        json_array_append_new(lengths, json_pack("{s:I,s:I,s:I}", "first", (json_int_t)bins[b].first, "last",
                                                 (json_int_t)bins[b].last, "sequences",
                                                 (json_int_t)bins[b].records));
    json_t *root = json_pack(
        "{s:s,s:I,s:I,s:I,s:I,s:I,s:s,s:o,s:o}", "schema", "seqlstm.data_stats/1", "rows",
        (json_int_t)sl_data_stats_get_rows(stats), "sequences", (json_int_t)sl_data_stats_get_sequences(stats),
        "longest", (json_int_t)sl_data_stats_get_longest(stats), "vocabulary",
        (json_int_t)sl_data_stats_get_vocabulary(stats), "classes", (json_int_t)sl_data_stats_get_classes(stats),
        "chosen", chosen, "strategies", strategies, "lengths", lengths);
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

/* What is lost has columns only where something is. Below the table, what the names mean. */
static void write_strategies(struct sl_buf *buf, const struct sl_data_stats *stats)
{
    int count;
    bool lost = false;
    const struct sl_batching_cost *costs = sl_data_stats_get_costs(stats, &count);
    for (int c = 0; c < count; c++)
        lost = lost || costs[c].rows_lost || costs[c].sequences_lost;
    sl_buf_printf(buf, "\n%-20s %12s %10s %8s %7s%s\n", "batching, one epoch", "rows", "steps", "batches", "shapes",
                  lost ? "  rows lost  seqs lost" : "");
    for (int c = 0; c < count; c++) {
        sl_buf_printf(buf, "%c %-18s %12lld %10lld %8lld %7lld", costs[c].chosen ? '*' : ' ', costs[c].name,
                      (long long)costs[c].rows_computed, (long long)costs[c].steps, (long long)costs[c].batches,
                      (long long)costs[c].shapes);
        if (lost)
            sl_buf_printf(buf, " %10lld %10lld", (long long)costs[c].rows_lost, (long long)costs[c].sequences_lost);
        sl_buf_append_char(buf, '\n');
    }
    sl_buf_append_char(buf, '\n');
    for (int c = 0; c < count; c++)
        sl_buf_printf(buf, "  %-18s %s\n", costs[c].name, costs[c].description);
}

static int write_table(struct cli_context *cli, const struct sl_data_stats *stats)
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
    write_strategies(&buf, stats);
    int code = cli_write_out(cli, &buf) ? CLI_OK : CLI_FAILURE;
    sl_buf_deinit(&buf);
    return code;
}

static int data_stats(struct cli_context *cli)
{
    struct sl_session *session = NULL;
    int code = cli_open_model(cli, cli->values.operands[0], &session);
    if (code != CLI_OK)
        return code;
    struct sl_dataset *dataset = NULL;
    struct sl_data_state *state = NULL;
    struct sl_data_stats *stats = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_dataset_open_train(sl_session_get_model(session), &dataset, &state, &err);
    if (status == SEQLSTM_OK)
        status = sl_data_stats_create(dataset, NULL, &stats, &err);
    if (status != SEQLSTM_OK)
        code = status == SEQLSTM_NOT_FOUND ? (cli_fail(cli, status, &err), CLI_DATA) : cli_fail(cli, status, &err);
    else
        code = cli->json ? write_json(cli, stats) : write_table(cli, stats);
    sl_data_stats_destroy(stats);
    sl_dataset_close(dataset);
    sl_data_state_destroy(state);
    sl_session_close(session);
    return code;
}

const struct cli_command cli_command_data_stats = {
    .name = "data stats",
    .summary = "lengths, vocabulary, and what each way of batching would cost",
    .usage = "model.yaml [flags]",
    .examples = "  seqlstm data stats configs/ptb-small.yaml\n",
    .text = "Rows are what kernels compute; steps are what must run one after the other. `*` marks what the model\n"
            "file asks for. Packed batches compute real steps only.\n",
    .takes_model_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = data_stats,
};

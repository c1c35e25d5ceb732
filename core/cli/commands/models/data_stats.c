/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm data stats */
#include <jansson.h>
#include <stdlib.h>

#include "base/operation/cost_json.h"
#include "base/value/json_tree.h"
#include "base/value/text.h"
#include "cli/cli.h"
#include "cli/output/data_page.h"
#include "data/batch/stats.h"
#include "data/dataset/census.h"

static json_t *pack_cost(const struct sl_batching_cost *c, bool measured, bool pairs)
{
    json_t *object = json_pack(
        "{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:f}", "name", c->name, "rows_computed", (json_int_t)c->rows_computed, "steps",
        (json_int_t)c->steps, "batches", (json_int_t)c->batches, "shapes", (json_int_t)c->shapes, "rows_lost",
        (json_int_t)c->rows_lost, "sequences_lost", (json_int_t)c->sequences_lost, "above_bound", c->above_bound);
    if (pairs) {
        object = sl_json_put(object, "source_rows", json_integer((json_int_t)c->source_rows));
        object = sl_json_put(object, "source_steps", json_integer((json_int_t)c->source_steps));
    }
    if (measured)
        object = sl_json_put(object, "seconds", json_real(c->seconds));
    json_t *edges = json_array();
    for (int64_t e = 0; e < c->edge_count; e++)
        edges = sl_json_add(edges, json_integer((json_int_t)c->edges[e]));
    if (c->edge_count > 0)
        return sl_json_put(object, "edges", edges);
    json_decref(edges);
    return object;
}

static json_t *pack_bins(const struct sl_lengths *lengths)
{
    json_t *bins = json_array();
    for (int b = 0; b < lengths->bin_count; b++)
        bins = sl_json_add(bins, json_pack("{s:I,s:I,s:I}", "first", (json_int_t)lengths->bins[b].first, "last",
                                           (json_int_t)lengths->bins[b].last, "sequences",
                                           (json_int_t)lengths->bins[b].records));
    return bins;
}

static json_t *pack_columns(const struct sl_columns *columns)
{
    json_t *out = json_array();
    for (int32_t c = 0; c < columns->count; c++) {
        const struct sl_column *column = &columns->items[c];
        json_t *common = json_array();
        for (int32_t k = 0; k < column->common_count; k++)
            common = sl_json_add(common, json_pack("{s:s,s:I}", "value", column->common[k].text, "count",
                                                   (json_int_t)column->common[k].count));
        json_t *item =
            json_pack("{s:s,s:s,s:I,s:I,s:o}", "name", column->name, "use", column->use, "missing",
                      (json_int_t)column->missing, "categories", (json_int_t)column->categories, "common", common);
        if (item && column->is_number) {
            item = sl_json_put(item, "low", json_real(column->low));
            item = sl_json_put(item, "high", json_real(column->high));
            item = sl_json_put(item, "mean", json_real(column->mean));
        }
        out = sl_json_add(out, item);
    }
    return out;
}

static json_t *pack_classes(const struct cli_data_content *content)
{
    json_t *out = json_array();
    for (int64_t c = 0; c < content->classes; c++)
        out = sl_json_add(out, json_pack("{s:s,s:I}", "name", sl_vocabulary_get_text(content->names, (int32_t)c, NULL),
                                         "count", (json_int_t)content->counts[c]));
    return out;
}

static int write_json(struct cli_context *cli, const struct sl_data_stats *stats,
                      const struct cli_data_content *content, const struct sl_step_cost *measured)
{
    int count;
    const struct sl_batching_cost *costs = sl_data_stats_get_costs(stats, &count);
    const struct sl_lengths *target = sl_data_stats_get_lengths(stats);
    const struct sl_lengths *source = sl_data_stats_find_source_lengths(stats);
    json_t *strategies = json_array();
    const char *chosen = "";
    for (int c = 0; c < count; c++) {
        strategies = sl_json_add(strategies, pack_cost(&costs[c], measured != NULL, source != NULL));
        if (costs[c].chosen)
            chosen = costs[c].name;
    }
    json_t *least = json_pack("{s:I}", "steps", (json_int_t)sl_data_stats_get_least_steps(stats));
    if (measured)
        least = sl_json_put(least, "seconds", json_real(sl_data_stats_get_least_seconds(stats)));
    json_t *root = json_pack(
        "{s:s,s:I,s:I,s:I,s:I,s:I,s:s,s:o,s:o,s:o}", "schema", "seqlstm.data_stats/1", "rows", (json_int_t)target->rows,
        "sequences", (json_int_t)target->records, "longest", (json_int_t)sl_lengths_get_longest(target), "vocabulary",
        (json_int_t)sl_data_stats_get_vocabulary(stats), "classes", (json_int_t)sl_data_stats_get_classes(stats),
        "chosen", chosen, "strategies", strategies, "lengths", pack_bins(target), "lower_bound", least);
    int64_t parts, split = sl_data_stats_get_split(stats, &parts);
    root = sl_json_put(root, "sequences_split", json_integer((json_int_t)split));
    root = sl_json_put(root, "pieces", json_integer((json_int_t)parts));
    if (source)
        root = sl_json_put(root, "source",
                           json_pack("{s:I,s:I,s:I,s:o}", "rows", (json_int_t)source->rows, "longest",
                                     (json_int_t)sl_lengths_get_longest(source), "vocabulary",
                                     (json_int_t)sl_data_stats_get_source_vocabulary(stats), "lengths",
                                     pack_bins(source)));
    if (measured)
        root = sl_json_put(root, "step_cost", sl_step_cost_to_json(measured));
    if (content->columns.count > 0)
        root = sl_json_put(root, "columns", pack_columns(&content->columns));
    if (content->counts)
        root = sl_json_put(root, "class_counts", pack_classes(content));
    return cli_write_json(cli, root);
}

/* ---- columns and classes ---------------------------------------------------------------------------------------- */

static void write_columns(struct sl_buf *buf, const struct sl_columns *columns)
{
    enum { SHOWN = 50 };
    if (columns->count == 0)
        return;
    sl_buf_printf(buf, "columns of %lld row%s\n  %-20s %-13s %8s  %s\n", (long long)columns->rows,
                  columns->rows == 1 ? "" : "s", "name", "use", "missing", "values");
    for (int32_t c = 0; c < columns->count && c < SHOWN; c++) {
        const struct sl_column *column = &columns->items[c];
        sl_buf_printf(buf, "  %-20s %-13s %8lld  ", column->name, column->use, (long long)column->missing);
        sl_column_print_values(column, buf);
        sl_buf_append_char(buf, '\n');
    }
    if (columns->count > SHOWN)
        sl_buf_printf(buf, "  and %d more\n", columns->count - SHOWN);
}

static void write_classes(struct sl_buf *buf, const struct cli_data_content *content)
{
    enum { SHOWN = 20 };
    int64_t most = 1, all = 0;
    for (int64_t c = 0; c < content->classes; c++) {
        most = content->counts[c] > most ? content->counts[c] : most;
        all += content->counts[c];
    }
    for (int64_t c = 0; c < content->classes && c < SHOWN; c++) {
        char share[16];
        sl_text_snprintf(share, sizeof share, "%.1f", all > 0 ? 100 * (double)content->counts[c] / (double)all : 0);
        sl_buf_printf(buf, "  %-20s %8lld  %5s %%  ", sl_vocabulary_get_text(content->names, (int32_t)c, NULL),
                      (long long)content->counts[c], share);
        sl_buf_fill(buf, '#', (size_t)(40 * content->counts[c] / most));
        sl_buf_append_char(buf, '\n');
    }
    if (content->classes > SHOWN)
        sl_buf_printf(buf, "  and %lld more\n", (long long)content->classes - SHOWN);
}

/* The lengths of one side: figures and a histogram. */
static void write_lengths(struct sl_buf *buf, const char *side, const struct sl_lengths *lengths)
{
    int64_t most = 1;
    char mean[32];
    sl_text_snprintf(mean, sizeof mean, "%.1f", sl_lengths_get_mean(lengths));
    sl_buf_printf(buf, "%slengths %lld to %lld, mean %s, median %lld, 95 %% at most %lld\n", side,
                  (long long)sl_lengths_get_shortest(lengths), (long long)sl_lengths_get_longest(lengths), mean,
                  (long long)sl_lengths_get_quantile(lengths, 0.5), (long long)sl_lengths_get_quantile(lengths, 0.95));
    for (int b = 0; b < lengths->bin_count; b++)
        most = lengths->bins[b].records > most ? lengths->bins[b].records : most;
    for (int b = 0; b < lengths->bin_count; b++) {
        const struct sl_length_bin *bin = &lengths->bins[b];
        char range[48];
        snprintf(range, sizeof range, bin->first == bin->last ? "%lld" : "%lld-%lld", (long long)bin->first,
                 (long long)bin->last);
        sl_buf_printf(buf, "  %11s %8lld  ", range, (long long)bin->records);
        sl_buf_fill(buf, '#', (size_t)(40 * bin->records / most));
        sl_buf_append_char(buf, '\n');
    }
}

/* Columns for losses and measured times appear only if there are any. Below the table, the names are explained. */
static void write_strategies(struct sl_buf *buf, const struct sl_data_stats *stats, bool measured)
{
    int count;
    bool lost = false, pairs = sl_data_stats_find_source_lengths(stats) != NULL;
    const struct sl_batching_cost *costs = sl_data_stats_get_costs(stats, &count);
    for (int c = 0; c < count; c++)
        lost = lost || costs[c].rows_lost || costs[c].sequences_lost;
    sl_buf_printf(buf, "\n%-20s %12s %10s %8s %7s %8s%s%s%s\n", "batching, one epoch", "rows", "steps", "batches",
                  "shapes", "bound", pairs ? "  source rows  and steps" : "", measured ? "   seconds" : "",
                  lost ? "  rows lost  seqs lost" : "");
    for (int c = 0; c < count; c++) {
        char above[24], seconds[24];
        sl_text_snprintf(above, sizeof above, "%+.1f %%", 100 * costs[c].above_bound);
        sl_text_snprintf(seconds, sizeof seconds, "%.1f", costs[c].seconds);
        sl_buf_printf(buf, "%c %-18s %12lld %10lld %8lld %7lld %8s", costs[c].chosen ? '*' : ' ', costs[c].name,
                      (long long)costs[c].rows_computed, (long long)costs[c].steps, (long long)costs[c].batches,
                      (long long)costs[c].shapes, above);
        if (pairs)
            sl_buf_printf(buf, " %12lld %10lld", (long long)costs[c].source_rows, (long long)costs[c].source_steps);
        if (measured)
            sl_buf_printf(buf, " %9s", seconds);
        if (lost)
            sl_buf_printf(buf, " %10lld %10lld", (long long)costs[c].rows_lost, (long long)costs[c].sequences_lost);
        sl_buf_append_char(buf, '\n');
    }
    sl_buf_append_char(buf, '\n');
    for (int c = 0; c < count; c++)
        sl_buf_printf(buf, "  %-18s %s\n", costs[c].name, costs[c].description);
    sl_buf_printf(buf, "  %-18s %s\n", "bound",
                  measured ? "extra time, compared with the same number of rows in the widest steps"
                  : pairs  ? "extra steps, compared with each side sorted by length on its own"
                           : "extra steps, compared with all data sorted by length");
    if (pairs)
        sl_buf_append_text(buf, "  rows and steps count both sides\n");
}

static int write_table(struct cli_context *cli, const struct sl_data_stats *stats,
                       const struct cli_data_content *content, bool measured)
{
    struct sl_buf buf = {0};
    const struct sl_lengths *target = sl_data_stats_get_lengths(stats);
    const struct sl_lengths *source = sl_data_stats_find_source_lengths(stats);
    sl_buf_printf(&buf, "sequences %lld, real steps %lld", (long long)target->records,
                  (long long)(target->rows + (source ? source->rows : 0)));
    if (source)
        sl_buf_printf(&buf, " (source %lld, target %lld)", (long long)source->rows, (long long)target->rows);
    sl_buf_append_char(&buf, '\n');
    int64_t parts, split = sl_data_stats_get_split(stats, &parts);
    if (split > 0)
        sl_buf_printf(&buf, "%lld longer sequence%s split into %lld parts, which count as sequences\n",
                      (long long)split, split == 1 ? "" : "s", (long long)parts);
    if (source)
        sl_buf_printf(&buf, "source vocabulary %lld\n", (long long)sl_data_stats_get_source_vocabulary(stats));
    if (sl_data_stats_get_vocabulary(stats) > 0)
        sl_buf_printf(&buf, "%svocabulary %lld\n", source ? "target " : "",
                      (long long)sl_data_stats_get_vocabulary(stats));
    if (sl_data_stats_get_classes(stats) > 0 && !source)
        sl_buf_printf(&buf, "classes %lld\n", (long long)sl_data_stats_get_classes(stats));
    write_classes(&buf, content);
    write_columns(&buf, &content->columns);
    if (source)
        write_lengths(&buf, "source ", source);
    write_lengths(&buf, source ? "target " : "", target);
    write_strategies(&buf, stats, measured);
    int code = cli_write_out(cli, &buf);
    sl_buf_deinit(&buf);
    return code;
}

static int write(struct cli_context *cli, const struct sl_data_stats *stats, const struct cli_data_content *content,
                 const struct sl_step_cost *cost)
{
    const char *page = cli_get(cli, "html");
    if (page) {
        struct sl_buf buf = {0};
        cli_write_data_page(&buf, cli->values.operands[0], stats, content, cost);
        const int code = cli_write_file(cli, page, &buf);
        if (code != CLI_OK)
            return code;
    }
    return cli->json ? write_json(cli, stats, content, cost) : write_table(cli, stats, content, cost != NULL);
}

static seqlstm_status take_content(struct sl_session *session, struct cli_data_content *content,
                                   struct seqlstm_error *err)
{
    const struct sl_data_state *state = sl_session_find_data_state(session);
    content->names = sl_data_state_find_classes(state);
    SEQLSTM_TRY(sl_census_count_classes(sl_session_find_train_data(session), &content->counts, &content->classes, err));
    return sl_columns_read(sl_session_get_model(session), sl_data_state_get_input_names(state),
                           sl_data_state_get_target_names(state), &content->columns, err);
}

static int data_stats(struct cli_context *cli)
{
    struct sl_session *session = NULL;
    int code = cli_open_model(cli, cli->values.operands[0], &session);
    if (code != CLI_OK)
        return code;
    struct sl_data_stats *stats = NULL;
    const struct sl_step_cost *cost = NULL;
    struct cli_data_content content = {.counts = NULL};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_session_read_data(session, &err);
    if (status == SEQLSTM_OK && cli_has(cli, "measure"))
        status = sl_session_find_step_cost(session, &cost, &err);
    if (status == SEQLSTM_OK)
        status = sl_data_stats_create(sl_session_find_train_data(session), cost, &stats, &err);
    if (status == SEQLSTM_OK)
        status = take_content(session, &content, &err);
    code = status == SEQLSTM_OK ? write(cli, stats, &content, cost) : cli_fail(cli, status, &err);
    sl_data_stats_destroy(stats);
    sl_columns_deinit(&content.columns);
    free(content.counts);
    sl_session_close(session);
    return code;
}

static const struct cli_flag flags[] = {
    {.name = "measure", .help = "load the backends, measure the cost of a step, and show predicted times"},
    {.name = "html",
     .argument = "FILE",
     .writes = true,
     .help = "also write an HTML page with the same, and with a drawing of the lengths"},
    {0},
};

const struct cli_command cli_command_data_stats = {
    .name = "data stats",
    .summary = "show lengths, columns, classes, and the cost of each batching strategy",
    .usage = "model.yaml [flags]",
    .examples = "  seqlstm data stats configs/ptb-small.yaml\n"
                "  seqlstm data stats model.yaml --measure --html batches.html\n",
    .text = "Rows are what kernels compute; steps are what must run one after the other.\n"
            "`*` marks the strategy of the model file. Packed batches compute only real\n"
            "steps. Without `--measure`, no plugin is loaded, and `auto` shows the buckets\n"
            "with the fewest steps.\n",
    .flags = flags,
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = data_stats,
};

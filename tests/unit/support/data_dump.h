/* SPDX-License-Identifier: Apache-2.0 */
/* All that opening data gives, as text: facts, counts, what was learned, records, the batches of two epochs, other ways
 * of batching, inputs of predict. Numbers have six digits.
 */
#ifndef SL_TESTS_DATA_DUMP_H
#define SL_TESTS_DATA_DUMP_H

#include "data_fixture.h"

#include "data/batch/stats.h"
#include "data/dataset/census.h"

/* Counts that are not 0. */
static inline void add_count(struct sl_buf *out, const char *name, int64_t value)
{
    if (value != 0)
        sl_buf_printf(out, " %s=%lld", name, (long long)value);
}

static inline void add_list(struct sl_buf *out, const char *name, struct sl_string_list list)
{
    for (size_t i = 0; i < list.count; i++)
        sl_buf_printf(out, "%s%s", i ? ", " : name,
                      strncmp(list.items[i], data_folder, strlen(data_folder)) == 0
                          ? list.items[i] + strlen(data_folder)
                          : list.items[i]);
    if (list.count > 0)
        sl_buf_append_char(out, '\n');
}

static inline void add_field_facts(struct sl_buf *out, const char *name, const struct sl_field_facts *f)
{
    static const char *const kinds[] = {"none", "ids", "values"};
    if (f->kind != SL_FIELD_NONE)
        sl_buf_printf(out, "; %s %s%s features=%lld classes=%lld", name, kinds[f->kind], f->on_steps ? " on steps" : "",
                      (long long)f->features, (long long)f->classes);
}

static inline void add_envelope(struct sl_buf *out, const char *name, const struct sl_envelope *e)
{
    sl_buf_append_text(out, name);
    add_count(out, "sequences", e->sequences);
    add_count(out, "steps", e->steps);
    add_count(out, "rows", e->rows);
    add_count(out, "source_steps", e->source_steps);
    add_count(out, "source_rows", e->source_rows);
    sl_buf_printf(out, "%s%s\n", e->uniform ? " uniform" : "", e->stream ? " stream" : "");
}

static inline void add_facts(struct sl_buf *out, const struct sl_data_facts *f)
{
    sl_buf_append_text(out, "facts");
    add_count(out, "records", f->records);
    add_count(out, "rows", f->rows);
    add_count(out, "longest", f->longest);
    add_count(out, "source_rows", f->source_rows);
    add_count(out, "source_longest", f->source_longest);
    sl_buf_printf(out, "%s%s", f->has_steps ? " steps" : "", f->has_weight ? " weight" : "");
    add_field_facts(out, "input", &f->input);
    add_field_facts(out, "target", &f->target);
    add_field_facts(out, "source", &f->source);
    add_envelope(out, "\nenvelope", &f->envelope);
}

static inline void add_counts(struct sl_buf *out, const struct sl_data_counts *c)
{
    sl_buf_append_text(out, "counts");
    add_count(out, "dropped_records", c->dropped_records);
    add_count(out, "dropped_rows", c->dropped_rows);
    add_count(out, "truncated_records", c->truncated_records);
    add_count(out, "truncated_rows", c->truncated_rows);
    add_count(out, "split_records", c->split_records);
    add_count(out, "parts", c->parts);
    add_count(out, "missing_values", c->missing_values);
    add_count(out, "filled_targets", c->filled_targets);
    add_count(out, "dropped_table_rows", c->dropped_table_rows);
    add_count(out, "no_predictions", c->no_predictions);
    add_count(out, "unknown_tokens", c->unknown_tokens);
    add_count(out, "unknown_labels", c->unknown_labels);
    add_count(out, "tokens", c->tokens);
    add_count(out, "constant_targets", c->constant_targets);
    add_count(out, "whole_groups", c->whole_groups);
    add_count(out, "short_groups", c->short_groups);
    sl_buf_append_char(out, '\n');
}

static inline void add_text(struct sl_buf *out, const char *name, const char *text, size_t bytes)
{
    if (!text)
        return;
    sl_buf_printf(out, " %s\"", name);
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] < ' ')
            sl_buf_printf(out, "\\x%02X", text[i]);
        else
            sl_buf_append_char(out, text[i]);
    sl_buf_append_char(out, '"');
}

static inline void add_record(struct sl_buf *out, const struct sl_dataset *d, int64_t r, size_t columns)
{
    size_t bytes = 0;
    sl_buf_printf(out, "record %lld: %lld", (long long)r, (long long)sl_dataset_get_length(d, r));
    add_count(out, "source", sl_dataset_get_source_length(d, r));
    if (sl_dataset_get_file_steps(d, r) != sl_dataset_get_length(d, r))
        add_count(out, "file_steps", sl_dataset_get_file_steps(d, r));
    for (int64_t t = 0; t < sl_dataset_get_length(d, r); t++)
        if (sl_dataset_get_file_step(d, r, t) != t)
            sl_buf_printf(out, " step%lld=%lld", (long long)t, (long long)sl_dataset_get_file_step(d, r, t));
    sl_buf_append_text(out, sl_dataset_has_prediction(d, r) ? "" : " no prediction");
    const char *text = sl_dataset_find_text(d, r, &bytes);
    add_text(out, "", text, bytes);
    text = sl_dataset_find_target_text(d, r, &bytes);
    add_text(out, "-> ", text, bytes);
    for (size_t c = 0; c < columns; c++) {
        int64_t steps = sl_dataset_get_file_steps(d, r);
        for (int64_t t = 0; t < (steps > 0 ? steps : 1); t++) {
            text = sl_dataset_find_cell(d, r, t, c, &bytes);
            text ? add_text(out, "cell ", text, bytes) : sl_buf_append_text(out, " no cell");
        }
    }
    sl_buf_append_char(out, '\n');
}

static inline void add_row(struct sl_buf *out, const struct sl_field *field, int64_t row)
{
    for (int64_t f = 0; f < field->features; f++)
        if (field->kind == SL_FIELD_IDS)
            sl_buf_printf(out, "%s%d", f ? "," : "", field->ids[row]);
        else
            sl_buf_printf(out, "%s%.6g", f ? "," : "", (double)field->values[row * field->features + f]);
}

/* Input, target and weight of one step, or of a whole sequence. */
static inline void add_rows(struct sl_buf *out, const struct sl_batch *b, int64_t sequence, int64_t row, bool steps)
{
    sl_buf_append_char(out, ' ');
    if (b->input.kind != SL_FIELD_NONE && b->input.on_steps == steps)
        add_row(out, &b->input, steps ? row : sequence);
    if (b->target.kind != SL_FIELD_NONE && b->target.on_steps == steps) {
        sl_buf_append_text(out, ">");
        add_row(out, &b->target, steps ? row : sequence);
    }
    if (b->weight.kind != SL_FIELD_NONE && b->weight.on_steps == steps) {
        sl_buf_append_text(out, "*");
        add_row(out, &b->weight, steps ? row : sequence);
    }
}

static inline void add_sequence(struct sl_buf *out, const struct sl_batch *b, int64_t k)
{
    const bool on_axis = k < b->axis.sequences;
    sl_buf_printf(out, "  %lld", (long long)b->sample[k]);
    add_count(out, "from", b->sample_step[k]);
    if (b->has_steps && on_axis && (int64_t)b->axis.sequence_id[k] != b->sample[k])
        sl_buf_printf(out, " id=%llu", (unsigned long long)b->axis.sequence_id[k]);
    if (b->has_steps && on_axis)
        add_count(out, "position", b->axis.position0[k]);
    sl_buf_append_char(out, ':');
    for (int64_t t = 0; b->source.present && b->source.place[k] < b->source.axis.sequences &&
                        t < b->source.axis.lengths[b->source.place[k]];
         t++) {
        sl_buf_append_char(out, ' ');
        add_row(out, &b->source.input, sl_batch_source_row(b, k, t));
    }
    sl_buf_append_text(out, b->source.present ? " |" : "");
    for (int64_t t = 0; b->has_steps && on_axis && t < b->axis.lengths[k]; t++)
        add_rows(out, b, k, sl_batch_row(b, k, t), true);
    if (!b->has_steps || (b->target.kind != SL_FIELD_NONE && !b->target.on_steps))
        add_rows(out, b, k, 0, false);
    sl_buf_append_char(out, '\n');
}

static inline void add_batch(struct sl_buf *out, const struct sl_batch *b)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_batch_check(b, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    sl_buf_printf(out, " batch %d: %lldx%lld", (int)b->ordinal, (long long)b->sequences, (long long)b->axis.steps);
    add_count(out, "padded", b->padded_rows);
    sl_buf_printf(out, "%s%s\n", b->carry_state ? " carry" : "", b->last_segment ? "" : " more");
    for (int64_t k = 0; k < b->sequences; k++)
        add_sequence(out, b, k);
}

static inline void add_batches(struct sl_buf *out, const struct sl_dataset *d, enum sl_batching_phase phase, int epochs)
{
    struct sl_batcher_request request = {.phase = phase, .seed = 5};
    struct sl_batcher *batcher;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int64_t edge_count;
    if (sl_batcher_open(d, &request, &batcher, &err) != SEQLSTM_OK) {
        sl_buf_printf(out, "no batches: %s\n", err.message);
        return;
    }
    const int64_t *edges = sl_batcher_get_edges(batcher, &edge_count);
    for (int e = 0; e < epochs; e++) {
        struct sl_batch *b;
        sl_buf_printf(out, "epoch %d: %lld batches", (int)sl_batcher_get_epoch(batcher),
                      (long long)sl_batcher_get_batches(batcher));
        add_count(out, "lost", sl_batcher_get_lost_rows(batcher));
        for (int64_t i = 0; i < edge_count; i++)
            sl_buf_printf(out, "%s%lld", i ? "," : " edges ", (long long)edges[i]);
        sl_buf_append_char(out, '\n');
        while ((b = data_next(batcher)) != NULL) {
            add_batch(out, b);
            sl_batch_destroy(b);
        }
    }
    sl_batcher_close(batcher);
}

static inline void add_profile(struct sl_buf *out, const struct sl_profile *p)
{
    sl_buf_printf(out, " %g*(", p->weight);
    for (int64_t k = 0; k < p->sequences; k++)
        sl_buf_printf(out, "%s%d%s%d", k ? " " : "", p->lengths ? p->lengths[k] : 1, p->source_lengths ? "/" : "",
                      p->source_lengths ? p->source_lengths[k] : 0);
    sl_buf_append_text(out, ")");
}

static inline void add_profiles(struct sl_buf *out, const struct sl_dataset *d)
{
    struct sl_profiles profiles = {0};
    struct sl_batcher *batcher = data_batcher(d, SL_BATCHING_TRAIN, 5, 0, 0);
    assert_int_equal(sl_batcher_sample(batcher, &profiles, NULL), SEQLSTM_OK);
    sl_buf_printf(out, "profiles%s", profiles.stream ? " stream" : "");
    for (int i = 0; i < profiles.count; i++)
        add_profile(out, &profiles.items[i]);
    sl_buf_append_text(out, "\nprofiles of the epoch");
    for (int i = 0; i < profiles.epoch_count; i++)
        add_profile(out, &profiles.epoch[i]);
    sl_buf_append_char(out, '\n');
    sl_profiles_deinit(&profiles);
    sl_batcher_close(batcher);
}

static inline void add_lengths(struct sl_buf *out, const char *name, const struct sl_lengths *l)
{
    sl_buf_printf(out, "%s %lld..%lld mean %.4g median %lld 90%% %lld, up to 2: %lld, bins", name,
                  (long long)sl_lengths_get_shortest(l), (long long)sl_lengths_get_longest(l), sl_lengths_get_mean(l),
                  (long long)sl_lengths_get_quantile(l, 0.5), (long long)sl_lengths_get_quantile(l, 0.9),
                  (long long)sl_lengths_count(l, 0, 2));
    for (int i = 0; i < l->bin_count; i++)
        sl_buf_printf(out, " %lld-%lld:%lld", (long long)l->bins[i].first, (long long)l->bins[i].last,
                      (long long)l->bins[i].records);
    sl_buf_append_char(out, '\n');
}

static inline void add_cost(struct sl_buf *out, const struct sl_batching_cost *c)
{
    sl_buf_printf(out, "way %s%s: %s:", c->name, c->chosen ? " (chosen)" : "", c->description);
    add_count(out, "rows", c->rows_computed);
    add_count(out, "steps", c->steps);
    add_count(out, "source_rows", c->source_rows);
    add_count(out, "source_steps", c->source_steps);
    add_count(out, "batches", c->batches);
    add_count(out, "shapes", c->shapes);
    add_count(out, "rows_lost", c->rows_lost);
    add_count(out, "sequences_lost", c->sequences_lost);
    for (int64_t i = 0; i < c->edge_count; i++)
        sl_buf_printf(out, "%s%lld", i ? "," : " edges ", (long long)c->edges[i]);
    sl_buf_printf(out, " %.4g ns, above %.4g\n", c->seconds * 1e9, c->above_bound);
}

/* Without costs, and with a cost that rises with the width. */
static inline void add_stats(struct sl_buf *out, const struct sl_dataset *d)
{
    const struct sl_step_cost measured = {.count = 2,
                                          .points = {{1, 100}, {4, 220}},
                                          .source_count = 1,
                                          .source_points = {{2, 50}},
                                          .batch_ns = 30,
                                          .shape_ns = 7};
    for (int k = 0; k < 2; k++) {
        struct sl_data_stats *stats;
        int count;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        if (sl_data_stats_create(d, k ? &measured : NULL, &stats, &err) != SEQLSTM_OK) {
            sl_buf_printf(out, "no stats: %s\n", err.message);
            return;
        }
        const struct sl_batching_cost *costs = sl_data_stats_get_costs(stats, &count);
        for (int i = 0; i < count; i++)
            add_cost(out, &costs[i]);
        if (k == 0) {
            int64_t parts, split = sl_data_stats_get_split(stats, &parts);
            add_lengths(out, "lengths", sl_data_stats_get_lengths(stats));
            if (sl_data_stats_find_source_lengths(stats))
                add_lengths(out, "source lengths", sl_data_stats_find_source_lengths(stats));
            sl_buf_printf(out, "stats: vocabulary %lld, source %lld, classes %lld, split %lld into %lld",
                          (long long)sl_data_stats_get_vocabulary(stats),
                          (long long)sl_data_stats_get_source_vocabulary(stats),
                          (long long)sl_data_stats_get_classes(stats), (long long)split, (long long)parts);
        }
        sl_buf_printf(out, "%s least steps %lld, least %.4g ns\n", k ? "measured:" : ",",
                      (long long)sl_data_stats_get_least_steps(stats), sl_data_stats_get_least_seconds(stats) * 1e9);
        sl_data_stats_destroy(stats);
    }
}

static inline void add_census(struct sl_buf *out, const struct sl_dataset *d)
{
    int64_t *counts, classes;
    assert_int_equal(sl_census_count_classes(d, &counts, &classes, NULL), SEQLSTM_OK);
    for (int64_t c = 0; counts && c < classes; c++)
        sl_buf_printf(out, "%s%lld", c ? " " : "targets of each class: ", (long long)counts[c]);
    if (counts)
        sl_buf_append_char(out, '\n');
    free(counts);
    for (int32_t k = 0; k < sl_dataset_count_unknown_labels(d); k++)
        sl_buf_printf(out, "unknown label \"%s\", line %lld\n", sl_dataset_get_unknown_label(d, k),
                      (long long)sl_dataset_get_unknown_line(d));
}

static inline void add_state(struct sl_buf *out, const struct sl_data_state *state)
{
    struct sl_buf text = {0}, again = {0};
    struct sl_data_state *copy = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int64_t columns;
    assert_int_equal(sl_data_state_write(state, &text, NULL), SEQLSTM_OK);
    if (sl_data_state_read("data.json", sl_buf_text(&text), text.length_bytes, &copy, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(sl_data_state_write(copy, &again, NULL), SEQLSTM_OK);
    assert_string_equal(sl_buf_text(&text), sl_buf_text(&again));
    const double *naive = sl_data_state_find_naive_error(copy, &columns);
    for (int64_t i = 0; naive && i < columns; i++)
        sl_buf_printf(out, "%s%.6g", i ? " " : "naive error ", naive[i]);
    if (naive)
        sl_buf_append_char(out, '\n');
    sl_buf_append_text(out, sl_buf_text(&text));
    sl_data_state_destroy(copy);
    sl_buf_deinit(&text);
    sl_buf_deinit(&again);
}

static inline void add_dataset(struct sl_buf *out, const struct sl_dataset *d, size_t columns)
{
    add_facts(out, sl_dataset_get_facts(d));
    add_counts(out, sl_dataset_get_counts(d));
    add_list(out, "files ", sl_dataset_get_files(d));
    for (int64_t r = 0; r < sl_dataset_get_records(d); r++)
        add_record(out, d, r, columns);
}

static inline void add_split(struct sl_buf *out, const struct sl_dataset *d, enum sl_split split, bool ways)
{
    sl_buf_printf(out, "-- %s\n", sl_split_get_name(split));
    add_dataset(out, d, 0);
    add_census(out, d);
    if (split != SL_SPLIT_TRAIN) {
        add_batches(out, d, SL_BATCHING_EVALUATE, 1);
        return;
    }
    add_batches(out, d, SL_BATCHING_TRAIN, 2);
    add_batches(out, d, SL_BATCHING_EVALUATE, 1);
    if (ways) {
        add_profiles(out, d);
        add_stats(out, d);
    }
}

/* `words`: the file, then the columns that are passed on. */
static inline void add_input(struct sl_buf *out, const struct data_open *o, const char *words)
{
    char copy[200], path[320];
    const char *columns[8];
    struct sl_string_list list = {columns, 0};
    struct sl_dataset *input;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    snprintf(copy, sizeof copy, "%s", words);
    snprintf(path, sizeof path, "%s/%s", data_folder, strtok(copy, " "));
    for (const char *word; (word = strtok(NULL, " ")) != NULL;)
        columns[list.count++] = word;
    struct sl_input_request request = {.path = path, .columns = list.count > 0 ? &list : NULL};
    sl_buf_printf(out, "-- input %s\n", words);
    if (sl_dataset_open_input(o->model, o->state, &request, &input, &err) != SEQLSTM_OK) {
        sl_buf_printf(out, "refused %d: %s\n", (int)err.code, err.message);
        return;
    }
    add_dataset(out, input, list.count);
    add_batches(out, input, SL_BATCHING_PREDICT, 1);
    sl_dataset_close(input);
}

#endif

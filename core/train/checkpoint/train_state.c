/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a run as one JSON object: one table lists every plain member, for writing and reading. */
#include "train/checkpoint/train_state.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/value/buf.h"
#include "base/value/json_tree.h"
#include "base/value/json_write.h"

enum member_type { MEMBER_COUNT, MEMBER_BOOL, MEMBER_FLOAT64 };

struct member {
    const char *name;
    enum member_type type;
    size_t offset;
    bool may_lack; /* checkpoints of older versions have no such member: 0 */
};

#define MEMBER(type, member)                                                                                           \
    {                                                                                                                  \
#member, type, offsetof(struct sl_train_state, member), false                                                  \
    }
#define NEW_MEMBER(type, member)                                                                                       \
    {                                                                                                                  \
#member, type, offsetof(struct sl_train_state, member), true                                                   \
    }
#define SPANS(spans)                                                                                                   \
    MEMBER(MEMBER_FLOAT64, spans.found), MEMBER(MEMBER_FLOAT64, spans.said), MEMBER(MEMBER_FLOAT64, spans.meant)
#define SUMS(sums)                                                                                                     \
    SPANS(sums.spans[SL_SPAN_CONLLEVAL]), SPANS(sums.spans[SL_SPAN_STRICT]), MEMBER(MEMBER_FLOAT64, sums.scaled),      \
        MEMBER(MEMBER_FLOAT64, sums.loss), MEMBER(MEMBER_FLOAT64, sums.loss_weight),                                   \
        MEMBER(MEMBER_FLOAT64, sums.correct), MEMBER(MEMBER_FLOAT64, sums.correct_weight),                             \
        MEMBER(MEMBER_FLOAT64, sums.entropy), MEMBER(MEMBER_FLOAT64, sums.entropy_weight),                             \
        MEMBER(MEMBER_FLOAT64, sums.squared), MEMBER(MEMBER_FLOAT64, sums.absolute),                                   \
        MEMBER(MEMBER_FLOAT64, sums.elements), MEMBER(MEMBER_FLOAT64, sums.squared_original),                          \
        MEMBER(MEMBER_FLOAT64, sums.absolute_original), MEMBER(MEMBER_FLOAT64, sums.rows)
#define BLEU(bleu, n) MEMBER(MEMBER_FLOAT64, bleu.matches[n]), MEMBER(MEMBER_FLOAT64, bleu.totals[n])
#define CHRF(chrf, n)                                                                                                  \
    MEMBER(MEMBER_FLOAT64, chrf.hypothesis[n]), MEMBER(MEMBER_FLOAT64, chrf.reference[n]),                             \
        MEMBER(MEMBER_FLOAT64, chrf.matches[n])
/* Of a validation: in training nothing is written. */
#define TEXTS(text)                                                                                                    \
    BLEU(text.bleu, 0), BLEU(text.bleu, 1), BLEU(text.bleu, 2), BLEU(text.bleu, 3),                                    \
        MEMBER(MEMBER_FLOAT64, text.bleu.hypothesis_words), MEMBER(MEMBER_FLOAT64, text.bleu.reference_words),         \
        CHRF(text.chrf, 0), CHRF(text.chrf, 1), CHRF(text.chrf, 2), CHRF(text.chrf, 3), CHRF(text.chrf, 4),            \
        CHRF(text.chrf, 5), MEMBER(MEMBER_FLOAT64, text.equal), MEMBER(MEMBER_FLOAT64, text.segments)
#define MONITOR(monitor)                                                                                               \
    MEMBER(MEMBER_BOOL, monitor.has_best), MEMBER(MEMBER_FLOAT64, monitor.best), MEMBER(MEMBER_COUNT, monitor.waited)

static const struct member MEMBERS[] = {
    MEMBER(MEMBER_COUNT, updates),
    MEMBER(MEMBER_COUNT, applied),
    MEMBER(MEMBER_COUNT, skipped),
    MEMBER(MEMBER_COUNT, skipped_in_row),
    MEMBER(MEMBER_FLOAT64, loss_scale.scale),
    MEMBER(MEMBER_COUNT, loss_scale.good),
    MEMBER(MEMBER_COUNT, loss_scale.overflows),
    MEMBER(MEMBER_COUNT, tokens),
    MEMBER(MEMBER_COUNT, epoch),
    MEMBER(MEMBER_COUNT, ordinal),
    MEMBER(MEMBER_COUNT, epoch_batches),
    MEMBER(MEMBER_COUNT, validations),
    MEMBER(MEMBER_COUNT, validated_at),
    MEMBER(MEMBER_BOOL, validation_pending),
    MONITOR(schedule.monitor),
    MEMBER(MEMBER_COUNT, schedule.reductions),
    MEMBER(MEMBER_COUNT, schedule.cooldown),
    MONITOR(stopping),
    NEW_MEMBER(MEMBER_COUNT, best_update),
    NEW_MEMBER(MEMBER_FLOAT64, best_epochs),
    MEMBER(MEMBER_BOOL, trigger.fired),
    MEMBER(MEMBER_COUNT, trigger.count),
    MEMBER(MEMBER_FLOAT64, trigger.older_best),
    MEMBER(MEMBER_BOOL, averaging),
    MEMBER(MEMBER_COUNT, averaged),
    SUMS(epoch_sums),
    SUMS(last_epoch_sums),
    SUMS(interval_sums),
    SUMS(valid_sums),
    SUMS(best_sums),
    TEXTS(valid_sums.text),
    TEXTS(best_sums.text),
};
_Static_assert(SL_BLEU_ORDER == 4 && SL_CHRF_ORDER == 6, "every order is saved");
enum { MEMBER_COUNT_OF_TABLE = sizeof MEMBERS / sizeof *MEMBERS };

/* Counts of classes: the sums that they belong to, by name, and how many of each of three arrays are written. */
static const struct {
    const char *name;
    size_t offset;
} CLASS_COUNTS[] = {
    {"epoch_sums.classes", offsetof(struct sl_train_state, epoch_sums)},
    {"last_epoch_sums.classes", offsetof(struct sl_train_state, last_epoch_sums)},
    {"interval_sums.classes", offsetof(struct sl_train_state, interval_sums)},
    {"valid_sums.classes", offsetof(struct sl_train_state, valid_sums)},
    {"best_sums.classes", offsetof(struct sl_train_state, best_sums)},
};
enum { CLASS_COUNTS_OF_TABLE = sizeof CLASS_COUNTS / sizeof *CLASS_COUNTS };

static int count_classes(const struct sl_metric_sums *sums)
{
    int count = SL_METRIC_CLASSES;
    while (count > 0 && sums->hits[count - 1] == 0 && sums->missed[count - 1] == 0 && sums->alarms[count - 1] == 0)
        count--;
    return count;
}

/* One [hits, missed, alarms] for each class; nothing if f1 is not measured. */
static void write_classes(const struct sl_train_state *state, struct sl_buf *out)
{
    for (int i = 0; i < CLASS_COUNTS_OF_TABLE; i++) {
        const struct sl_metric_sums *sums =
            (const struct sl_metric_sums *)(const void *)((const char *)state + CLASS_COUNTS[i].offset);
        int count = count_classes(sums);
        if (count > 0)
            sl_buf_printf(out, ",\"%s\":[", CLASS_COUNTS[i].name);
        for (int k = 0; k < count; k++) {
            const double values[3] = {sums->hits[k], sums->missed[k], sums->alarms[k]};
            for (int v = 0; v < 3; v++) {
                sl_buf_append_text(out, v ? "," : k ? ",[" : "[");
                sl_json_append_exact(out, values[v]);
            }
            sl_buf_append_char(out, ']');
        }
        if (count > 0)
            sl_buf_append_char(out, ']');
    }
}

/* How many of trigger.recent hold a value. */
static int64_t count_recent(const struct sl_train_state *state)
{
    return state->trigger.count < SL_NON_MONOTONE_MOST ? state->trigger.count : SL_NON_MONOTONE_MOST;
}

void sl_train_state_write(const struct sl_train_state *state, struct sl_buf *out)
{
    sl_buf_append_char(out, '{');
    for (int i = 0; i < MEMBER_COUNT_OF_TABLE; i++) {
        const struct member *member = &MEMBERS[i];
        const void *place = (const char *)state + member->offset;
        sl_buf_printf(out, "\"%s\":", member->name);
        if (member->type == MEMBER_COUNT)
            sl_buf_printf(out, "%" PRId64, *(const int64_t *)place);
        else if (member->type == MEMBER_BOOL)
            sl_buf_append_text(out, *(const bool *)place ? "true" : "false");
        else
            sl_json_append_exact(out, *(const double *)place);
        sl_buf_append_char(out, ',');
    }
    sl_buf_append_text(out, "\"trigger.recent\":[");
    for (int64_t i = 0; i < count_recent(state); i++) {
        sl_buf_append_text(out, i ? "," : "");
        sl_json_append_exact(out, state->trigger.recent[i]);
    }
    sl_buf_append_text(out, "],\"best_entries\":[");
    for (int64_t i = 0; i < state->best_count; i++) {
        sl_buf_printf(out, "%s[%" PRId64 ",", i ? "," : "", state->best_entries[i].update);
        sl_json_append_exact(out, state->best_entries[i].value);
        sl_buf_append_char(out, ']');
    }
    sl_buf_append_char(out, ']');
    write_classes(state, out);
    sl_buf_append_char(out, '}');
}

static bool read_float64(json_t *value, double *out)
{
    const char *text = json_string_value(value);
    if (json_is_number(value))
        *out = json_number_value(value);
    else if (text && strcmp(text, "nan") == 0)
        *out = NAN;
    else if (text && strcmp(text, "inf") == 0)
        *out = INFINITY;
    else if (text && strcmp(text, "-inf") == 0)
        *out = -INFINITY;
    else
        return false;
    return true;
}

/* Counts are never negative: a bound on each keeps later arithmetic from overflowing. */
static bool read_count(json_t *value, int64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > INT64_MAX / 4)
        return false;
    *out = json_integer_value(value);
    return true;
}

static bool read_member(json_t *value, enum member_type type, void *place)
{
    if (type == MEMBER_COUNT)
        return read_count(value, place);
    if (type == MEMBER_FLOAT64)
        return read_float64(value, place);
    if (!json_is_boolean(value))
        return false;
    *(bool *)place = json_is_true(value);
    return true;
}

static bool read_classes(json_t *root, struct sl_train_state *state)
{
    for (int i = 0; i < CLASS_COUNTS_OF_TABLE; i++) {
        struct sl_metric_sums *sums = (struct sl_metric_sums *)(void *)((char *)state + CLASS_COUNTS[i].offset);
        json_t *list = json_object_get(root, CLASS_COUNTS[i].name);
        if (list && (!json_is_array(list) || json_array_size(list) > SL_METRIC_CLASSES))
            return false;
        for (size_t k = 0; k < json_array_size(list); k++) {
            json_t *entry = json_array_get(list, k);
            if (json_array_size(entry) != 3 || !read_float64(json_array_get(entry, 0), &sums->hits[k]) ||
                !read_float64(json_array_get(entry, 1), &sums->missed[k]) ||
                !read_float64(json_array_get(entry, 2), &sums->alarms[k]))
                return false;
        }
    }
    return true;
}

static bool read_lists(json_t *root, struct sl_train_state *state)
{
    json_t *recent = json_object_get(root, "trigger.recent"), *best = json_object_get(root, "best_entries");
    if (!json_is_array(recent) || (int64_t)json_array_size(recent) != count_recent(state))
        return false;
    for (size_t i = 0; i < json_array_size(recent); i++)
        if (!read_float64(json_array_get(recent, i), &state->trigger.recent[i]))
            return false;
    if (!json_is_array(best) || json_array_size(best) > SL_KEEP_BEST_MOST)
        return false;
    state->best_count = (int64_t)json_array_size(best);
    for (size_t i = 0; i < json_array_size(best); i++) {
        json_t *entry = json_array_get(best, i);
        if (json_array_size(entry) != 2 || !read_count(json_array_get(entry, 0), &state->best_entries[i].update) ||
            !read_float64(json_array_get(entry, 1), &state->best_entries[i].value))
            return false;
    }
    return true;
}

seqlstm_status sl_train_state_read(const char *text, size_t bytes, struct sl_train_state *out_state,
                                   struct seqlstm_error *err)
{
    struct sl_train_state state;
    memset(&state, 0, sizeof state);
    json_error_t json_error;
    bool no_memory;
    json_t *root = sl_json_load(text, bytes, JSON_REJECT_DUPLICATES, &json_error, &no_memory);
    if (no_memory)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the state of the run");
    if (!json_is_object(root)) {
        json_decref(root);
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "the state of the run is no JSON object: %s", json_error.text);
    }
    const char *bad = NULL;
    for (int i = 0; i < MEMBER_COUNT_OF_TABLE && !bad; i++) {
        json_t *value = json_object_get(root, MEMBERS[i].name);
        if (!(value == NULL && MEMBERS[i].may_lack) &&
            !read_member(value, MEMBERS[i].type, (char *)&state + MEMBERS[i].offset))
            bad = MEMBERS[i].name;
    }
    if (!bad && !read_lists(root, &state))
        bad = "trigger.recent or best_entries";
    if (!bad && !read_classes(root, &state))
        bad = "epoch_sums.classes (or another count of classes)";
    json_decref(root);
    if (bad)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "the state of the run has no valid `%s`", bad);
    *out_state = state;
    return SEQLSTM_OK;
}

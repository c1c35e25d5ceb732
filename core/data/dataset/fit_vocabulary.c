/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabularies from counts: which tokens and classes there are, and in which order. */
#include "data/dataset/fit_vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "data/read/load_text.h"
#include "data/read/raw_builder.h"

static int compare_bytes(const struct sl_vocabulary_entry *a, const struct sl_vocabulary_entry *b)
{
    size_t least = a->bytes < b->bytes ? a->bytes : b->bytes;
    int order = memcmp(a->text, b->text, least);
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int compare_count(const void *left, const void *right)
{
    const struct sl_vocabulary_entry *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return compare_bytes(a, b);
}

static int compare_text(const void *left, const void *right)
{
    return compare_bytes(left, right);
}

static int compare_number(const void *left, const void *right)
{
    const struct sl_vocabulary_entry *a = left, *b = right;
    int64_t x = 0, y = 0;
    sl_text_parse_int64(a->text, a->bytes, &x);
    sl_text_parse_int64(b->text, b->bytes, &y);
    return x != y ? (x > y) - (x < y) : compare_bytes(a, b);
}

/* How often each token stands in the data: of one raw, or of the two sides of pairs. */
struct sl_tally {
    const struct sl_intern *tokens;
    struct sl_intern joined;
    int64_t *counts;
};

static int64_t get_count(const struct sl_tally *tally, const char *text, size_t bytes)
{
    int32_t known = sl_intern_find(tally->tokens, text, bytes);
    return known < 0 ? 0 : tally->counts[known];
}

/* Adds the tokens of a raw to the joined ones; there is room for them. */
static seqlstm_status join(struct sl_tally *tally, const struct sl_raw *raw, struct seqlstm_error *err)
{
    int64_t *counts;
    SEQLSTM_TRY(sl_raw_count_ids(raw, &counts, err));
    for (int32_t id = 0; id < raw->tokens.count; id++) {
        size_t bytes;
        const char *text = sl_intern_get(&raw->tokens, id, &bytes);
        int32_t joined = sl_intern_add(&tally->joined, text, bytes);
        if (joined >= 0)
            tally->counts[joined] += counts[id];
    }
    free(counts);
    return tally->joined.failed ? SL_DATA_NO_MEMORY(err) : SEQLSTM_OK;
}

static seqlstm_status count_tokens(const struct sl_raw *raw, const struct sl_raw *other, struct sl_tally *tally,
                                   struct seqlstm_error *err)
{
    tally->tokens = other ? &tally->joined : &raw->tokens;
    if (!other)
        return sl_raw_count_ids(raw, &tally->counts, err);
    tally->counts = calloc((size_t)raw->tokens.count + (size_t)other->tokens.count + 1, sizeof *tally->counts);
    if (!tally->counts)
        return SL_DATA_NO_MEMORY(err);
    SEQLSTM_TRY(join(tally, raw, err));
    return join(tally, other, err);
}

/* Puts the specials of the configuration first; returns how many. */
static int64_t put_specials(const struct sl_tokenizer *config, const struct sl_tally *tally,
                            struct sl_vocabulary_entry *entries, int32_t special_ids[SL_SPECIAL_COUNT])
{
    int64_t n = 0;
    for (int s = 0; s < SL_SPECIAL_COUNT; s++)
        special_ids[s] = -1;
    for (size_t i = 0; i < config->specials.count; i++) {
        for (int s = 0; s < SL_SPECIAL_COUNT; s++) {
            const char *token = sl_special_get_token((enum sl_special)s);
            const char *item = config->specials.items[i];
            if ((strcmp(item, sl_special_get_name((enum sl_special)s)) != 0 && strcmp(item, token) != 0) ||
                special_ids[s] >= 0)
                continue;
            special_ids[s] = (int32_t)n;
            entries[n++] = (struct sl_vocabulary_entry){token, strlen(token), get_count(tally, token, strlen(token))};
        }
    }
    return n;
}

static bool is_special(const struct sl_vocabulary_entry *entries, int64_t specials, const char *text, size_t bytes)
{
    for (int64_t i = 0; i < specials; i++)
        if (entries[i].bytes == bytes && memcmp(entries[i].text, text, bytes) == 0)
            return true;
    return false;
}

/* One token per line; specials that the file does not list come first. */
static seqlstm_status read_vocabulary(const struct sl_tokenizer *config, const struct sl_tally *tally,
                                      struct sl_vocabulary **out, struct seqlstm_error *err)
{
    struct sl_source source = {.file = config->vocab};
    struct sl_read read = {.source = &source};
    char *text, *name;
    size_t bytes, line_bytes, room = SL_SPECIAL_COUNT + 1;
    const char *line;
    int32_t special_ids[SL_SPECIAL_COUNT], unused[SL_SPECIAL_COUNT];
    SEQLSTM_TRY(sl_load_text(&read, &text, &bytes, &name, err));
    for (size_t i = 0; i < bytes; i++)
        room += text[i] == '\n';
    struct sl_vocabulary_entry *entries = calloc(room + 1, sizeof *entries), specials[SL_SPECIAL_COUNT];
    seqlstm_status status = entries ? SEQLSTM_OK : SL_DATA_NO_MEMORY(err);
    int64_t special_count = put_specials(config, tally, specials, unused), n = 0;
    for (int64_t i = 0; entries && i < special_count; i++) {
        bool listed = false;
        struct sl_line_cursor cursor = {text, text + bytes, 0};
        while (!listed && sl_line_next(&cursor, &line, &line_bytes))
            listed = is_special(&specials[i], 1, line, line_bytes);
        if (!listed)
            entries[n++] = specials[i];
    }
    struct sl_line_cursor cursor = {text, text + bytes, 0};
    while (status == SEQLSTM_OK && sl_line_next(&cursor, &line, &line_bytes)) {
        if (line_bytes == 0)
            continue;
        entries[n++] = (struct sl_vocabulary_entry){line, line_bytes, get_count(tally, line, line_bytes)};
    }
    for (int s = 0; entries && s < SL_SPECIAL_COUNT; s++) {
        const char *token = sl_special_get_token((enum sl_special)s);
        special_ids[s] = -1;
        for (int64_t i = 0; i < n && sl_tokenizer_has(config, (enum sl_special)s); i++)
            if (is_special(&entries[i], 1, token, strlen(token)))
                special_ids[s] = (int32_t)i;
    }
    struct seqlstm_error problem = SEQLSTM_ERROR_INIT;
    if (status == SEQLSTM_OK) {
        status = sl_vocabulary_create(entries, n, special_ids, out, &problem);
        if (status != SEQLSTM_OK)
            seqlstm_error_set(err, status, __FILE__, __LINE__, "%s: %.500s", name, problem.message);
    }
    free(entries);
    free(text);
    free(name);
    return status;
}

/* The model's pieces in its order, whether the training split has them or not. */
static seqlstm_status take_pieces(const struct sl_tokenizer *config, const struct sl_pieces *pieces,
                                  const struct sl_tally *tally, struct sl_vocabulary **out, struct seqlstm_error *err)
{
    int32_t special_ids[SL_SPECIAL_COUNT];
    int64_t count = sl_pieces_get_count(pieces);
    struct sl_vocabulary_entry *entries = calloc((size_t)count + SL_SPECIAL_COUNT + 1, sizeof *entries);
    if (!entries)
        return SL_DATA_NO_MEMORY(err);
    int64_t specials = put_specials(config, tally, entries, special_ids), n = specials;
    for (int64_t id = 0; id < count; id++) {
        size_t bytes;
        const char *text = sl_pieces_get(pieces, id, &bytes);
        int32_t known = sl_intern_find(tally->tokens, text, bytes);
        if (bytes > 0 && !is_special(entries, specials, text, bytes))
            entries[n++] = (struct sl_vocabulary_entry){text, bytes, known < 0 ? 0 : tally->counts[known]};
    }
    seqlstm_status status = sl_vocabulary_create(entries, n, special_ids, out, err);
    free(entries);
    return status;
}

/* Specials, then by count, down to `min_count` and `vocab_size`. */
static seqlstm_status choose_tokens(const struct sl_tokenizer *config, const struct sl_tally *tally, const char *name,
                                    struct sl_vocabulary **out, struct seqlstm_error *err)
{
    int32_t special_ids[SL_SPECIAL_COUNT];
    struct sl_vocabulary_entry *entries = calloc((size_t)tally->tokens->count + SL_SPECIAL_COUNT + 1, sizeof *entries);
    if (!entries)
        return SL_DATA_NO_MEMORY(err);
    int64_t specials = put_specials(config, tally, entries, special_ids), n = specials;
    int64_t least = config->min_count > 1 ? config->min_count : 1;
    for (int32_t id = 0; id < tally->tokens->count; id++) {
        size_t bytes;
        const char *text = sl_intern_get(tally->tokens, id, &bytes);
        if (tally->counts[id] >= least && !is_special(entries, specials, text, bytes))
            entries[n++] = (struct sl_vocabulary_entry){text, bytes, tally->counts[id]};
    }
    qsort(entries + specials, (size_t)(n - specials), sizeof *entries, compare_count);
    if (config->vocab_size > 0 && n > config->vocab_size)
        n = config->vocab_size > specials ? config->vocab_size : specials;
    seqlstm_status status;
    if (n == 0)
        status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                   "%s: the vocabulary is empty: the text has no tokens", name);
    else
        status = sl_vocabulary_create(entries, n, special_ids, out, err);
    free(entries);
    return status;
}

static bool is_mark(const char *text)
{
    for (int s = 0; s < SL_SPECIAL_COUNT; s++)
        if (strcmp(text, sl_special_get_token((enum sl_special)s)) == 0)
            return true;
    return false;
}

/* A text whose every token, but for marks, is unknown teaches nothing. */
static seqlstm_status check_known(const struct sl_tally *tally, const struct sl_vocabulary *vocabulary,
                                  const char *name, struct seqlstm_error *err)
{
    bool is_any = false;
    for (int32_t id = 0; id < tally->tokens->count; id++) {
        size_t bytes;
        const char *text = sl_intern_get(tally->tokens, id, &bytes);
        if (is_mark(text) || tally->counts[id] == 0)
            continue;
        if (sl_vocabulary_find(vocabulary, text, bytes) >= 0)
            return SEQLSTM_OK;
        is_any = true;
    }
    if (is_any)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s: no token of the training split is in the vocabulary, so every one is read as <unk> (a "
                     "smaller `min_count`, a larger `vocab_size`, or a `vocab` that fits)",
                     name);
    return SEQLSTM_OK;
}

seqlstm_status sl_fit_tokens(const struct sl_tokenizer *config, const struct sl_raw *raw, const struct sl_raw *other,
                             struct sl_vocabulary **out, struct seqlstm_error *err)
{
    struct sl_tally tally = {0};
    sl_intern_init(&tally.joined);
    seqlstm_status status = count_tokens(raw, other, &tally, err);
    if (status == SEQLSTM_OK)
        status = raw->pieces     ? take_pieces(config, raw->pieces, &tally, out, err)
                 : config->vocab ? read_vocabulary(config, &tally, out, err)
                                 : choose_tokens(config, &tally, raw->name, out, err);
    if (status == SEQLSTM_OK && (status = check_known(&tally, *out, raw->name, err)) != SEQLSTM_OK) {
        sl_vocabulary_destroy(*out);
        *out = NULL;
    }
    sl_intern_deinit(&tally.joined);
    free(tally.counts);
    return status;
}

seqlstm_status sl_fit_classes(const struct sl_raw *raw, const char *ignore, struct sl_vocabulary **out,
                              struct seqlstm_error *err)
{
    size_t room = (size_t)raw->labels.count + 1;
    struct sl_vocabulary_entry *entries = calloc(room, sizeof *entries);
    int64_t *counts = calloc(room, sizeof *counts), n = 0;
    seqlstm_status status = SEQLSTM_OK;
    bool numbers = true;
    if (!entries || !counts) {
        status = SL_DATA_NO_MEMORY(err);
        goto out;
    }
    for (int64_t s = 0; s < raw->series; s++) {
        int64_t begin = raw->target_per_row ? raw->start[s] : raw->first_target + s;
        int64_t end = raw->target_per_row ? begin + raw->length[s] : begin + 1;
        for (int64_t i = begin; i < end; i++)
            if (raw->target_ids[i] >= 0) /* else it is missing */
                counts[raw->target_ids[i]]++;
    }
    for (int32_t id = 0; id < raw->labels.count; id++) {
        size_t bytes;
        int64_t number;
        const char *text = sl_intern_get(&raw->labels, id, &bytes);
        if (counts[id] == 0 || (ignore && strcmp(text, ignore) == 0))
            continue;
        numbers = numbers && sl_text_parse_int64(text, bytes, &number);
        entries[n++] = (struct sl_vocabulary_entry){text, bytes, counts[id]};
    }
    qsort(entries, (size_t)n, sizeof *entries, numbers ? compare_number : compare_text);
    status = sl_vocabulary_create(entries, n, NULL, out, err);
out:
    free(entries);
    free(counts);
    return status;
}

seqlstm_status sl_fit_numbers(int64_t count, struct sl_vocabulary **out, struct seqlstm_error *err)
{
    struct sl_vocabulary_entry *entries = calloc((size_t)count + 1, sizeof *entries);
    char *texts = calloc((size_t)count + 1, 16);
    seqlstm_status status = entries && texts ? SEQLSTM_OK : SL_DATA_NO_MEMORY(err);
    for (int64_t i = 0; status == SEQLSTM_OK && i < count; i++) {
        char *text = texts + 16 * i;
        entries[i].text = text;
        entries[i].bytes = (size_t)sl_text_snprintf(text, 16, "%lld", (long long)i);
    }
    if (status == SEQLSTM_OK)
        status = sl_vocabulary_create(entries, count, NULL, out, err);
    free(entries);
    free(texts);
    return status;
}

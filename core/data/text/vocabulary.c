/* SPDX-License-Identifier: Apache-2.0 */
/* A vocabulary is an intern table to which nothing is added any more, and the counts of its texts. */
#include "data/text/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "data/text/intern.h"

struct sl_vocabulary {
    struct sl_intern texts;
    int64_t *counts;
    int32_t special_ids[SL_SPECIAL_COUNT];
};

seqlstm_status sl_vocabulary_create(const struct sl_vocabulary_entry *entries, int64_t count,
                                    const int32_t special_ids[SL_SPECIAL_COUNT], struct sl_vocabulary **out,
                                    struct seqlstm_error *err)
{
    seqlstm_status status = SEQLSTM_OK;
    struct sl_vocabulary *v = calloc(1, sizeof *v);
    if (!v)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a vocabulary of %lld entries", (long long)count);
    for (int i = 0; i < SL_SPECIAL_COUNT; i++)
        v->special_ids[i] = special_ids ? special_ids[i] : -1;
    v->counts = calloc(count > 0 ? (size_t)count : 1, sizeof *v->counts);
    bool failed = !v->counts;
    for (int64_t i = 0; i < count && !failed && status == SEQLSTM_OK; i++) {
        int32_t id = sl_intern_add(&v->texts, entries[i].text, entries[i].bytes);
        if (id < 0)
            failed = true;
        else if (id != i)
            status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                       "the vocabulary has the entry \"%.*s\" twice, as %d and %lld",
                                       (int)(entries[i].bytes > 80 ? 80 : entries[i].bytes), entries[i].text, (int)id,
                                       (long long)i);
        else
            v->counts[i] = entries[i].count;
    }
    if (failed)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__,
                                   "no memory for a vocabulary of %lld entries", (long long)count);
    if (status != SEQLSTM_OK) {
        sl_vocabulary_destroy(v);
        return status;
    }
    *out = v;
    return SEQLSTM_OK;
}

void sl_vocabulary_destroy(struct sl_vocabulary *vocabulary)
{
    if (!vocabulary)
        return;
    sl_intern_deinit(&vocabulary->texts);
    free(vocabulary->counts);
    free(vocabulary);
}

int64_t sl_vocabulary_get_size(const struct sl_vocabulary *vocabulary)
{
    return vocabulary->texts.count;
}

const char *sl_vocabulary_get_text(const struct sl_vocabulary *vocabulary, int32_t id, size_t *out_bytes)
{
    return sl_intern_get(&vocabulary->texts, id, out_bytes);
}

int64_t sl_vocabulary_get_count(const struct sl_vocabulary *vocabulary, int32_t id)
{
    return vocabulary->counts[id];
}

int32_t sl_vocabulary_find(const struct sl_vocabulary *vocabulary, const char *text, size_t bytes)
{
    return sl_intern_find(&vocabulary->texts, text, bytes);
}

bool sl_vocabulary_is_same(const struct sl_vocabulary *a, const struct sl_vocabulary *b)
{
    if (a == NULL || b == NULL || a == b)
        return a == b;
    bool same = a->texts.count == b->texts.count && memcmp(a->special_ids, b->special_ids, sizeof a->special_ids) == 0;
    for (int32_t id = 0; same && id < a->texts.count; id++) {
        size_t bytes, other_bytes;
        const char *text = sl_vocabulary_get_text(a, id, &bytes);
        const char *other = sl_vocabulary_get_text(b, id, &other_bytes);
        same = bytes == other_bytes && memcmp(text, other, bytes) == 0;
    }
    return same;
}

int32_t sl_vocabulary_get_special(const struct sl_vocabulary *vocabulary, enum sl_special special)
{
    return vocabulary->special_ids[special];
}

const char *sl_special_get_name(enum sl_special special)
{
    static const char *const names[] = {"pad", "unk", "bos", "eos"};
    return names[special];
}

const char *sl_special_get_token(enum sl_special special)
{
    static const char *const tokens[] = {"<pad>", "<unk>", "<bos>", "<eos>"};
    return tokens[special];
}

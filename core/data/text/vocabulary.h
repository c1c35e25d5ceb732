/* SPDX-License-Identifier: Apache-2.0 */
/* A map between texts and ids 0 .. size-1: the tokens of a language, or the classes of a label.
 *
 * Invariants:
 * 1. Immutable once made; any number of threads may read it.
 * 2. Texts are distinct, valid UTF-8 and never empty in a vocabulary of tokens; a class may be "".
 * 3. Specials stand first, in the order of the configuration.
 */
#ifndef SL_DATA_TEXT_VOCABULARY_H
#define SL_DATA_TEXT_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

enum sl_special { SL_SPECIAL_PAD, SL_SPECIAL_UNK, SL_SPECIAL_BOS, SL_SPECIAL_EOS, SL_SPECIAL_COUNT };

struct sl_vocabulary;

/* One entry to be. */
struct sl_vocabulary_entry {
    const char *text; /* not NUL-terminated */
    size_t bytes;
    int64_t count; /* how often it occurs in the training split; 0: unknown or never */
};

/* Copies the entries; their order is their id. `special_ids[SL_SPECIAL_…]`: the id or -1; NULL: none. Errors:
 * NO_MEMORY, CORRUPT_DATA (a text twice). [any thread] */
seqlstm_status sl_vocabulary_create(const struct sl_vocabulary_entry *entries, int64_t count,
                                    const int32_t special_ids[SL_SPECIAL_COUNT], struct sl_vocabulary **out,
                                    struct seqlstm_error *err);
void sl_vocabulary_destroy(struct sl_vocabulary *vocabulary);

int64_t sl_vocabulary_get_size(const struct sl_vocabulary *vocabulary);

/* Text of an id in [0, size), NUL-terminated; borrowed. `out_bytes` may be NULL. */
const char *sl_vocabulary_get_text(const struct sl_vocabulary *vocabulary, int32_t id, size_t *out_bytes);
int64_t sl_vocabulary_get_count(const struct sl_vocabulary *vocabulary, int32_t id);

/* The id of a text, or -1. The caller replaces unknown tokens by <unk>. */
int32_t sl_vocabulary_find(const struct sl_vocabulary *vocabulary, const char *text, size_t bytes);

/* Have both the same texts with the same ids, and the same specials? Counts do not matter. NULL is the same as NULL
 * alone. */
bool sl_vocabulary_is_same(const struct sl_vocabulary *a, const struct sl_vocabulary *b);

/* The id of <unk> and the like, or -1. */
int32_t sl_vocabulary_get_special(const struct sl_vocabulary *vocabulary, enum sl_special special);

/* "pad", "unk", "bos", "eos"; and as tokens "<pad>", … . Static. */
const char *sl_special_get_name(enum sl_special special);
const char *sl_special_get_token(enum sl_special special);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a source to the reader of its type. */
#include <string.h>

#include "data/read/raw.h"

static seqlstm_status read_by_type(const struct sl_read *read, struct sl_raw *out, struct seqlstm_error *err)
{
    const bool pairs = read->model->data.pairs, lines = read->input && read->input->lines;
    switch (lines ? SL_SOURCE_LINES : read->source->type) {
    case SL_SOURCE_TEXT:
    case SL_SOURCE_LINES:
        return pairs ? sl_raw_read_pairs(read, out, err) : sl_raw_read_text(read, out, err);
    case SL_SOURCE_TSV:
    case SL_SOURCE_CSV:
        return sl_raw_read_table(read, out, err);
    case SL_SOURCE_CONLL:
        return sl_raw_read_conll(read, out, err);
    case SL_SOURCE_NPY:
        return sl_raw_read_npy(read, out, err);
    case SL_SOURCE_TOKENS:
        return sl_raw_read_tokens(read, out, err);
    case SL_SOURCE_GENERATOR:
        return pairs ? sl_raw_read_pairs(read, out, err) : sl_raw_read_generator(read, out, err);
    }
    return SEQLSTM_INTERNAL;
}

seqlstm_status sl_raw_read(const struct sl_read *read, struct sl_raw *out, struct seqlstm_error *err)
{
    memset(out, 0, sizeof *out);
    out->source = read->source;
    out->pieces = read->pieces;
    seqlstm_status status = read_by_type(read, out, err);
    if (status == SEQLSTM_OK && out->series == 0 && !read->input)
        status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                   "%s: no records, expected at least one", out->name ? out->name : "data");
    if (status != SEQLSTM_OK)
        sl_raw_deinit(out);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of texts, record by record: what an encoder reads and what its decoder writes.
 *
 *   lines, `source` and `target`   line k of one file and line k of the other
 *   lines, text, `file`            each line is source and target at once (text: blank ones are skipped)
 *   tables                         two columns of a row, or one that is both (raw_table.c)
 *   generator                      raw_generator_pairs.c
 *
 * The target's rows are those of a language model, <bos> y1 .. yn <eos>: the decoder reads all but the last and writes
 * all but the first. An empty line is a sequence like any other: a source without steps, a target of <eos> alone.
 */
#include "data/read/raw_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "data/read/load_text.h"
#include "data/read/raw_builder.h"

static void expect_text(struct sl_raw *raw)
{
    raw->input_kind = SL_FIELD_IDS;
    raw->input_features = 1;
    raw->target_features = 1;
    raw->has_steps = true;
}

seqlstm_status sl_pair_builder_init(struct sl_pair_builder *b, const struct sl_read *read, struct sl_raw *raw,
                                    struct seqlstm_error *err)
{
    const struct sl_data_config *config = &read->model->data;
    raw->pair = calloc(1, sizeof *raw->pair);
    if (!raw->pair)
        return SL_DATA_NO_MEMORY(err);
    raw->pair->source = raw->source;
    raw->pair->pieces = read->source_pieces;
    expect_text(raw);
    expect_text(raw->pair);
    b->predicting = read->input != NULL;
    sl_raw_builder_init(&b->target, raw, &config->tokenizer);
    sl_raw_builder_init(&b->source, raw->pair, &config->source_tokenizer);
    return SEQLSTM_OK;
}

static void add_side(struct sl_raw_builder *side, const char *line, size_t bytes, int64_t number)
{
    sl_raw_builder_begin(side, number, line - side->raw->text, (int64_t)bytes);
    sl_raw_builder_add_special(side, SL_SPECIAL_BOS);
    sl_raw_builder_add_text(side, line, bytes);
    sl_raw_builder_add_special(side, SL_SPECIAL_EOS);
    sl_raw_builder_end(side);
}

void sl_pair_builder_add(struct sl_pair_builder *b, const char *source, size_t source_bytes, int64_t source_line,
                         const char *target, size_t target_bytes, int64_t target_line)
{
    add_side(&b->source, source, source_bytes, source_line);
    if (!b->predicting) {
        add_side(&b->target, target, target_bytes, target_line);
        return;
    }
    sl_raw_builder_begin(&b->target, 0, -1, 0); /* not known, and of no steps */
    sl_raw_builder_end(&b->target);
}

seqlstm_status sl_pair_builder_finish(struct sl_pair_builder *b, seqlstm_status status, struct seqlstm_error *err)
{
    if (status == SEQLSTM_OK)
        status = sl_raw_builder_finish(&b->source, err);
    else
        sl_raw_builder_deinit(&b->source);
    if (status == SEQLSTM_OK)
        return sl_raw_builder_finish(&b->target, err);
    sl_raw_builder_deinit(&b->target);
    return status;
}

/* Loads `path` in place of the source's file. */
static seqlstm_status load(const struct sl_read *read, const char *path, struct sl_raw *raw, size_t *out_bytes,
                           struct seqlstm_error *err)
{
    struct sl_source source = *read->source;
    struct sl_read one = *read;
    source.file = path;
    one.source = &source;
    return sl_load_text(&one, &raw->text, out_bytes, &raw->name, err);
}

static int64_t count_lines(const char *text, size_t bytes)
{
    struct sl_line_cursor cursor = {text, text + bytes, 0};
    const char *line;
    size_t line_bytes;
    while (sl_line_next(&cursor, &line, &line_bytes)) {
    }
    return cursor.number;
}

/* Two texts of as many lines. */
static seqlstm_status add_parallel(struct sl_pair_builder *b, size_t source_bytes, size_t target_bytes,
                                   struct seqlstm_error *err)
{
    const struct sl_raw *from = b->source.raw, *to = b->target.raw;
    int64_t sources = count_lines(from->text, source_bytes), targets = count_lines(to->text, target_bytes);
    if (sources != targets)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s has %lld lines, but %s has %lld: line by line they must be source and target", from->name,
                     (long long)sources, to->name, (long long)targets);
    struct sl_line_cursor source = {from->text, from->text + source_bytes, 0};
    struct sl_line_cursor target = {to->text, to->text + target_bytes, 0};
    const char *line, *said;
    size_t line_bytes, said_bytes;
    while (sl_line_next(&source, &line, &line_bytes) && sl_line_next(&target, &said, &said_bytes))
        sl_pair_builder_add(b, line, line_bytes, source.number, said, said_bytes, target.number);
    return SEQLSTM_OK;
}

static bool is_blank(const char *line, size_t bytes)
{
    sl_trim(&line, &bytes);
    return bytes == 0;
}

/* Each line twice; where predicting, the source alone. `copy` is the target's own text. */
static void add_lines(struct sl_pair_builder *b, size_t bytes, bool skip_blank, const char *copy)
{
    const char *text = b->source.raw->text, *line;
    struct sl_line_cursor cursor = {text, text + bytes, 0};
    size_t line_bytes;
    while (sl_line_next(&cursor, &line, &line_bytes))
        if (!skip_blank || !is_blank(line, line_bytes))
            sl_pair_builder_add(b, line, line_bytes, cursor.number, copy ? copy + (line - text) : NULL, line_bytes,
                                cursor.number);
}

/* Source and target out of one text. */
static seqlstm_status read_same(const struct sl_read *read, struct sl_pair_builder *b, size_t bytes,
                                struct seqlstm_error *err)
{
    struct sl_raw *to = b->target.raw;
    const struct sl_raw *from = b->source.raw;
    to->text = malloc(bytes + 1);
    to->name = strdup(from->name);
    if (!to->text || !to->name)
        return SL_DATA_NO_MEMORY(err);
    memcpy(to->text, from->text, bytes + 1);
    add_lines(b, bytes, read->source->type == SL_SOURCE_TEXT, to->text);
    return SEQLSTM_OK;
}

seqlstm_status sl_raw_read_pairs(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_source *source = read->source;
    struct sl_pair_builder b;
    size_t bytes = 0, target_bytes = 0;
    SEQLSTM_TRY(sl_pair_builder_init(&b, read, raw, err));
    seqlstm_status status = SEQLSTM_OK;
    if (source->type == SL_SOURCE_GENERATOR && !read->input)
        status = sl_generate_pairs(read, raw->pair, &bytes, raw, &target_bytes, err);
    else
        status = load(read, source->source_file ? source->source_file : source->file, raw->pair, &bytes, err);
    if (status == SEQLSTM_OK && source->target_file && !read->input)
        status = load(read, source->target_file, raw, &target_bytes, err);
    if (status == SEQLSTM_OK && read->input)
        add_lines(&b, bytes, false, NULL);
    else if (status == SEQLSTM_OK && (source->target_file || source->type == SL_SOURCE_GENERATOR))
        status = add_parallel(&b, bytes, target_bytes, err);
    else if (status == SEQLSTM_OK)
        status = read_same(read, &b, bytes, err);
    return sl_pair_builder_finish(&b, status, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Random texts with random options against a plain model: vocabularies, marks, labels, the next token, splits, records
 * that are too long, and streams.
 */
#include "oom.h"
#include "data_fixture.h"

#include <seqlstm/philox.h>

enum { CASES = 300, LINES = 24, WORDS = 7, MOST = LINES * (WORDS + 2), BATCH = 3 };
enum kind { CLASSES, NEXT, STREAM, KINDS };
enum overflow { KEEP, DROP, TRUNCATE, SPLIT };

static const char *const words[] = {"b", "B", "aa", "a", "\xC3\x84", "\xC3\xA4", "zz", "c", "q", "x1"};
static const char *const lowered[] = {"b", "b", "aa", "a", "\xC3\xA4", "\xC3\xA4", "zz", "c", "q", "x1"};
static const char *const labels[] = {"no", "maybe", "yes"};
static const int label_ids[] = {1, 0, 2}; /* by bytes: maybe, no, yes */
enum { WORD_COUNT = sizeof words / sizeof *words };

struct text_case {
    uint64_t seed, draws;
    enum kind kind;
    enum overflow overflow;
    bool lowercase, bos, eos, label_last;
    int lines, min_count, vocab_size, longest, bptt;
    double share;
    int length[LINES], word[LINES][WORDS], label[LINES];
};

/* A record: ids and, for CLASSES, its class. */
struct record {
    int length, ids[WORDS + 2], label;
};

struct plain {
    const char *vocabulary[WORD_COUNT + 3];
    int size, records, train_records;
    struct record record[MOST];
};

static int draw(struct text_case *c, int n)
{
    return (int)(seqlstm_uniform(c->seed, c->draws++, 9, 0) * (float)n);
}

static void draw_case(struct text_case *c, uint64_t seed)
{
    *c = (struct text_case){.seed = seed};
    c->kind = (enum kind)draw(c, KINDS);
    c->lowercase = draw(c, 2);
    c->bos = c->kind != STREAM && draw(c, 2);
    c->eos = draw(c, 2);
    c->label_last = draw(c, 2);
    c->lines = 12 + draw(c, LINES - 11);
    c->min_count = 1 + draw(c, 4);
    c->vocab_size = draw(c, 2) ? 5 + draw(c, 5) : 0;
    c->overflow = c->kind == STREAM ? KEEP : (enum overflow)draw(c, c->kind == NEXT ? 4 : 3);
    c->longest = 2 + draw(c, 4);
    c->bptt = 1 + draw(c, 5);
    c->share = draw(c, 2) && c->kind != STREAM ? 0.25 : 0;
    for (int l = 0; l < c->lines; l++) {
        c->length[l] = 2 + draw(c, WORDS - 1);
        c->label[l] = l < 3 ? l : draw(c, 3);
        for (int w = 0; w < c->length[l]; w++)
            c->word[l][w] = draw(c, 2) ? draw(c, 4) : draw(c, WORD_COUNT);
    }
}

static void write_text(const struct text_case *c)
{
    struct sl_buf text = {0};
    for (int l = 0; l < c->lines; l++) {
        if (c->kind == CLASSES && !c->label_last)
            sl_buf_printf(&text, "%s ", labels[c->label[l]]);
        for (int w = 0; w < c->length[l]; w++)
            sl_buf_printf(&text, "%s%s", w ? l % 2 ? "  " : " " : "", words[c->word[l][w]]);
        if (c->kind == CLASSES && c->label_last)
            sl_buf_printf(&text, " %s", labels[c->label[l]]);
        sl_buf_append_text(&text, l + 1 < c->lines ? "\n" : "");
    }
    data_write("train.txt", sl_buf_text(&text));
    sl_buf_deinit(&text);
}

static void make_yaml(const struct text_case *c, struct sl_buf *yaml)
{
    static const char *const overflows[] = {"keep", "drop", "truncate", "split"};
    sl_buf_printf(yaml, "type: %s, train: {file: train.txt}, batch_size: %d", c->kind == CLASSES ? "lines" : "text",
                  BATCH);
    if (c->kind == CLASSES)
        sl_buf_printf(yaml, ", label: %s", c->label_last ? "last" : "first");
    sl_buf_printf(yaml, ", tokenizer: {type: whitespace, lowercase: %s, min_count: %d, specials: [unk%s%s]",
                  c->lowercase ? "true" : "false", c->min_count, c->eos ? ", eos" : "", c->bos ? ", bos" : "");
    if (c->vocab_size)
        sl_buf_printf(yaml, ", vocab_size: %d", c->vocab_size);
    sl_buf_append_text(yaml, "}");
    if (c->share > 0)
        sl_buf_printf(yaml, ", valid: {split: %g}", c->share);
    if (c->kind == STREAM)
        sl_buf_printf(yaml, ", batching: {unit: stream, bptt: %d}", c->bptt);
    else if (c->overflow != KEEP)
        sl_buf_printf(yaml, ", batching: {max_length: %d, on_overflow: %s}", c->longest, overflows[c->overflow]);
}

/* ---- the model -------------------------------------------------------------------------------------- */

static const char *get_word(const struct text_case *c, int line, int w)
{
    return (c->lowercase ? lowered : words)[c->word[line][w]];
}

static int count_train_lines(const struct text_case *c)
{
    return (int)((1 - c->share) * c->lines);
}

static int count_word(const struct text_case *c, const char *word)
{
    int count = 0;
    for (int l = 0; l < count_train_lines(c); l++)
        for (int w = 0; w < c->length[l]; w++)
            count += strcmp(get_word(c, l, w), word) == 0;
    return count;
}

static int find_id(const struct plain *p, const char *word)
{
    for (int id = 0; id < p->size; id++)
        if (strcmp(p->vocabulary[id], word) == 0)
            return id;
    return 0; /* <unk> */
}

/* The marks, then the words of the training lines: most frequent first, then by bytes. */
static void make_vocabulary(const struct text_case *c, struct plain *p)
{
    p->vocabulary[p->size++] = "<unk>";
    if (c->eos)
        p->vocabulary[p->size++] = "<eos>";
    if (c->bos)
        p->vocabulary[p->size++] = "<bos>";
    for (;;) {
        const char *best = NULL;
        for (int k = 0; k < WORD_COUNT; k++) {
            const char *word = (c->lowercase ? lowered : words)[k];
            const int count = count_word(c, word), most = best ? count_word(c, best) : 0;
            if (find_id(p, word) == 0 && count >= c->min_count &&
                (!best || count > most || (count == most && strcmp(word, best) < 0)))
                best = word;
        }
        if (!best || (c->vocab_size && p->size >= c->vocab_size))
            return;
        p->vocabulary[p->size++] = best;
    }
}

static void cut_record(const struct text_case *c, struct plain *p, const struct record *whole, int behind)
{
    const int steps = whole->length - behind;
    if (c->overflow == DROP && steps > c->longest)
        return;
    for (int at = 0; at < steps; at += c->longest) {
        struct record part = {.label = whole->label, .length = whole->length - at};
        memcpy(part.ids, whole->ids + at, (size_t)part.length * sizeof *part.ids);
        if (c->overflow != KEEP && part.length - behind > c->longest)
            part.length = c->longest + behind;
        p->record[p->records++] = part;
        if (c->overflow != SPLIT)
            return;
    }
}

static void make_plain(const struct text_case *c, struct plain *p)
{
    memset(p, 0, sizeof *p);
    make_vocabulary(c, p);
    for (int l = 0; l < c->lines; l++) {
        struct record whole = {.label = label_ids[c->label[l]]};
        if (l == count_train_lines(c))
            p->train_records = p->records;
        if (c->bos)
            whole.ids[whole.length++] = find_id(p, "<bos>");
        for (int w = 0; w < c->length[l]; w++)
            whole.ids[whole.length++] = find_id(p, get_word(c, l, w));
        if (c->eos)
            whole.ids[whole.length++] = find_id(p, "<eos>");
        cut_record(c, p, &whole, c->kind == NEXT);
    }
    if (count_train_lines(c) == c->lines)
        p->train_records = p->records;
}

/* ---- the comparison --------------------------------------------------------------------------------- */

static void expect_id(const struct text_case *c, const char *what, int32_t got, int want)
{
    if (got != want)
        fail_msg("case %d: %s %d, expected %d", (int)c->seed, what, (int)got, want);
}

static void check_records(const struct text_case *c, const struct sl_dataset *dataset, const struct record *records,
                          int count)
{
    expect_id(c, "records", (int32_t)sl_dataset_get_records(dataset), count);
    struct sl_batcher *batcher = data_batcher(dataset, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch;
    while ((batch = data_next(batcher)) != NULL) {
        for (int k = 0; k < (int)batch->sequences; k++) {
            const struct record *r = &records[batch->sample[k]];
            const int steps = r->length - (c->kind == NEXT);
            expect_id(c, "length", batch->axis.lengths[k], steps);
            for (int t = 0; t < steps; t++) {
                expect_id(c, "input", batch->input.ids[sl_batch_row(batch, k, t)], r->ids[t]);
                if (c->kind == NEXT)
                    expect_id(c, "target", batch->target.ids[sl_batch_row(batch, k, t)], r->ids[t + 1]);
            }
            if (c->kind == CLASSES)
                expect_id(c, "class", batch->target.ids[k], r->label);
        }
        sl_batch_destroy(batch);
    }
    sl_batcher_close(batcher);
}

/* Part k of the stream is positions k * n to (k + 1) * n - 1 of all ids. */
static void check_stream(const struct text_case *c, const struct plain *p, const struct data_open *o)
{
    int ids[MOST], count = 0;
    for (int r = 0; r < p->records; r++)
        for (int t = 0; t < p->record[r].length; t++)
            ids[count++] = p->record[r].ids[t];
    const int part = (count - 1) / BATCH;
    struct sl_batcher *batcher = data_batcher(o->train, SL_BATCHING_TRAIN, 1, 0, 0);
    struct sl_batch *batch;
    int at = 0;
    assert_int_equal(sl_batcher_get_lost_rows(batcher), (count - 1) % BATCH);
    while ((batch = data_next(batcher)) != NULL) {
        const int steps = part - at < c->bptt ? part - at : c->bptt;
        assert_int_equal(batch->sequences, BATCH);
        assert_int_equal(batch->carry_state, at > 0);
        assert_int_equal(batch->last_segment, at + steps == part);
        for (int k = 0; k < BATCH; k++) {
            expect_id(c, "steps", batch->axis.lengths[k], steps);
            for (int t = 0; t < steps; t++) {
                const int64_t row = sl_batch_row(batch, k, t);
                expect_id(c, "input", batch->input.ids[row], ids[k * part + at + t]);
                expect_id(c, "target", batch->target.ids[row], ids[k * part + at + t + 1]);
            }
        }
        at += steps;
        sl_batch_destroy(batch);
    }
    assert_int_equal(at, part);
    sl_batcher_close(batcher);
}

static void check_case(const struct text_case *c)
{
    struct plain p;
    struct sl_buf yaml = {0};
    write_text(c);
    make_yaml(c, &yaml);
    make_plain(c, &p);
    const int valid_records = p.records - p.train_records;
    const bool teaches = p.train_records >= 3 && (c->share == 0 || valid_records > 0) && p.size > 1 + c->eos + c->bos;
    if (teaches) {
        struct data_open o = data_open_train(sl_buf_text(&yaml), c->kind == CLASSES ? MODEL_CLASSIFY : MODEL_LM,
                                             c->kind == CLASSES ? "task: classify" : "task: language_model");
        expect_id(c, "tokens", (int32_t)sl_vocabulary_get_size(sl_data_state_find_vocabulary(o.state)), p.size);
        for (int id = 0; id < p.size; id++)
            assert_string_equal(data_token(o.state, id), p.vocabulary[id]);
        if (c->kind == STREAM)
            check_stream(c, &p, &o);
        else
            check_records(c, o.train, p.record, p.train_records);
        if (c->share > 0) {
            struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID);
            check_records(c, valid, p.record + p.train_records, valid_records);
            sl_dataset_close(valid);
        }
        data_close(&o);
    }
    sl_buf_deinit(&yaml);
}

static void test_random_texts(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct text_case c;
        draw_case(&c, seed);
        check_case(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_random_texts, data_setup, data_teardown),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The `data:` section of a model file, resolved: one source per split, how text becomes tokens, how
 * sequences become batches. Plain values, owned by the model's arena, immutable.
 *
 * Format options may be said once, beside the splits, or in a split; a split that leaves one out
 * takes that of `data:`, then that of `train`. Here every split holds all of them.
 */
#ifndef SL_MODEL_DATA_CONFIG_H
#define SL_MODEL_DATA_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/place.h"

enum sl_split { SL_SPLIT_TRAIN, SL_SPLIT_VALID, SL_SPLIT_TEST, SL_SPLIT_COUNT };

struct sl_string_list {
    const char *const *items;
    size_t count;
};

enum sl_source_origin {
    SL_SOURCE_NONE,      /* this split is absent */
    SL_SOURCE_FILES,     /* read from the files below, or generated */
    SL_SOURCE_FROM_TRAIN /* `split: 0.1`: the last part of `train` in file order, removed from it */
};

enum sl_source_type {
    SL_SOURCE_TEXT,   /* one long text; with unit: sequence, one sequence per line */
    SL_SOURCE_LINES,  /* one sequence per line, usually with a label */
    SL_SOURCE_TSV,    /* a table, tab between fields */
    SL_SOURCE_CSV,    /* a table, RFC 4180 */
    SL_SOURCE_CONLL,  /* one token per line, a blank line ends a sequence */
    SL_SOURCE_NPY,    /* x: [N, T, F] or [N, F], y: [N], [N, F], [N, T] or [N, T, F] */
    SL_SOURCE_TOKENS, /* token ids, one sequence per line */
    SL_SOURCE_GENERATOR
};

enum sl_generator {
    SL_GENERATOR_ADDING_PROBLEM, /* features: value in [0, 1), mark; target: sum of the marked */
    SL_GENERATOR_ADDITION,       /* pairs: "535+61" and "596" */
    SL_GENERATOR_COPY,           /* symbols, blanks, then the symbols again; one target per step; or pairs */
    SL_GENERATOR_REVERSE,        /* the same, backwards */
    SL_GENERATOR_SINE            /* `features` sines of random phase and period; then `horizon` */
};

enum sl_label_type { SL_LABEL_CLASS, SL_LABEL_VALUE };

/* A column is the name in the header, or its number from 1 where there is no header (as text, "2"); in `lines`, "first"
 * or "last". NULL: not given. */
struct sl_label {
    const char *column;
    enum sl_label_type type;
};

enum sl_encoding { SL_ENCODING_UTF_8, SL_ENCODING_LATIN_1 };

enum sl_time_gaps { SL_GAPS_ERROR, SL_GAPS_KEEP, SL_GAPS_BREAK /* a gap ends the series */ };

enum sl_step_unit { SL_STEP_SECONDS, SL_STEP_MONTHS /* of the calendar */, SL_STEP_NUMBER /* without a unit */ };

/* Rows must be ordered by this column. */
struct sl_time {
    const char *column; /* NULL: no time column */
    const char *format; /* of strptime, read in the C locale; NULL: ISO 8601, or a number */
    double step;        /* between rows; 0: not checked */
    enum sl_step_unit step_unit;
    enum sl_time_gaps gaps;
};

enum sl_decimal { SL_DECIMAL_POINT, SL_DECIMAL_COMMA };

/* A series becomes windows: `length` rows in, the targets of the `horizon` rows after them out. */
struct sl_window {
    int64_t length;  /* 0: no windows */
    int64_t horizon; /* at least 1 */
    int64_t stride;  /* at least 1 */
};

enum sl_scale_type { SL_SCALE_NONE, SL_SCALE_STANDARD, SL_SCALE_MINMAX };
enum sl_scale_fit { SL_SCALE_FIT_TRAIN, SL_SCALE_FIT_ALL };

/* Per column; saved with the model and undone by `predict`. */
struct sl_scale {
    enum sl_scale_type type;
    enum sl_scale_fit fit;
    bool targets; /* also scale the targets of type value */
};

enum sl_missing_type {
    SL_MISSING_ERROR,
    SL_MISSING_DROP, /* the row */
    SL_MISSING_ZERO,
    SL_MISSING_MEAN, /* of the column, over train */
    SL_MISSING_FORWARD_FILL
};

enum sl_missing_targets { SL_MISSING_TARGETS_FILL /* as `type` says */, SL_MISSING_TARGETS_IGNORE };

struct sl_missing {
    enum sl_missing_type type;
    enum sl_missing_targets targets; /* IGNORE: steps without a target count neither in the loss nor in metrics */
    struct sl_string_list values;    /* tables: what a field without a value holds, besides what is always one */
    int64_t limit;                   /* forward_fill: at most this many rows in sequence; 0: no limit */
};

/* `rows: [a, b]`, both ends included: row numbers from 1 (the header not counted), or values of
 * the time column. Either end may be NULL: open. */
struct sl_rows {
    const char *first;
    const char *last;
};

struct sl_source {
    enum sl_source_origin origin;
    double split; /* SL_SOURCE_FROM_TRAIN: the fraction of train, (0, 1) */
    enum sl_source_type type;

    const char *file;        /* absolute; text, lines, tables, conll, tokens */
    const char *source_file; /* absolute; lines: the two sides of parallel files; NULL: not given */
    const char *target_file;
    const char *source_column; /* tables: the two texts of a row; NULL: not given */
    const char *target_column;
    const char *x;       /* absolute; npy */
    const char *y;       /* absolute; npy; NULL: none */
    const char *lengths; /* absolute; npy: int [N], real steps of each row; NULL: all */

    const char *delimiter;   /* one character (UTF-8); set for tables, lines, conll */
    enum sl_decimal decimal; /* tables: what stands before the decimals of a number */
    bool header;             /* tables: the first row names the columns */
    enum sl_encoding encoding;
    const char *comment;           /* conll: lines that begin with it are skipped; NULL: none */
    struct sl_string_list columns; /* names for a table without header; empty: none */
    struct sl_rows rows;
    struct sl_string_list inputs;  /* numeric input columns; none: all that have no other use */
    struct sl_string_list targets; /* numeric target columns */
    const char *group;             /* rows with the same value here, in order, form one sequence; NULL */
    const char *text;              /* the column that holds text (conll: the token); NULL */
    struct sl_label label;
    struct sl_time time;
    struct sl_window window;
    struct sl_scale scale;
    struct sl_missing missing;

    enum sl_generator generator;
    int64_t size; /* generator: sequences */
    bool has_seed;
    uint64_t seed;      /* generator; without has_seed: from the model's seed and the split */
    int64_t length_min; /* generator: steps of a sequence, both ends included */
    int64_t length_max;
    int64_t features; /* sine */
    int64_t horizon;  /* sine: values to predict, of each feature */
    double noise;     /* sine: stddev of the noise */
    int64_t symbols;  /* copy, reverse: size of the alphabet */
    int64_t delay;    /* copy: blanks between the sequence and its copy */
    int64_t digits;   /* addition: most digits of each number */

    struct sl_place place; /* of the split's entry */
};

enum sl_tokenizer_type {
    SL_TOKENIZER_NONE, /* the source holds no text */
    SL_TOKENIZER_WHITESPACE,
    SL_TOKENIZER_CHAR,         /* one Unicode character */
    SL_TOKENIZER_WORD,         /* splits at whitespace and punctuation */
    SL_TOKENIZER_SENTENCEPIECE /* pieces of words, by a SentencePiece model */
};

enum sl_pieces_method { SL_PIECES_BPE, SL_PIECES_UNIGRAM };

/* A special `unk` is the token <unk>. With `eos`, the end of each line is the token <eos>
 * (whitespace and word); with `bos`, its beginning is <bos>. Ids: the specials in their order,
 * then by count, most frequent first, ties by bytes. Without `unk` an unknown token is a data
 * error. */
struct sl_tokenizer {
    enum sl_tokenizer_type type;
    int64_t vocab_size; /* largest vocabulary, specials included; 0: no limit */
    int64_t min_count;  /* at least 1 */
    bool lowercase;
    struct sl_string_list specials; /* out of pad, unk, bos, eos */
    const char *vocab;              /* absolute path, one token per line; NULL: counted in train */
    bool shared;                    /* pairs: one vocabulary for both sides */
    const char *model;              /* absolute path of pieces; NULL: learned in train */
    enum sl_pieces_method method;   /* how they are learned */
};

enum sl_batch_unit {
    SL_UNIT_SEQUENCE, /* independent sequences */
    SL_UNIT_STREAM    /* one long text as batch_size parallel streams, state carried */
};

enum sl_bucketing_kind {
    SL_BUCKETING_OFF,     /* always with `unit: stream` */
    SL_BUCKETING_POOLS,   /* sort by length inside a window of `pool` batches */
    SL_BUCKETING_AUTO,    /* buckets: the best edges for the measured cost of a step */
    SL_BUCKETING_COUNT,   /* `count` buckets: the best edges for the number of steps */
    SL_BUCKETING_LENGTHS, /* buckets with the given edges */
    SL_BUCKETING_GREEDY   /* a bucket ends as soon as it holds a batch */
};

struct sl_bucketing {
    enum sl_bucketing_kind kind;
    int64_t count;        /* COUNT */
    const int64_t *edges; /* LENGTHS: ascending; a bucket holds the lengths up to its edge */
    size_t edge_count;
};

enum sl_overflow { SL_OVERFLOW_KEEP, SL_OVERFLOW_DROP, SL_OVERFLOW_TRUNCATE, SL_OVERFLOW_SPLIT };

/* Which rows are computed in addition to the real ones; they do not count in the loss. */
enum sl_padding {
    SL_PADDING_NONE,
    SL_PADDING_BATCH,  /* to the longest of the batch */
    SL_PADDING_BUCKET, /* to the edge of the bucket */
    SL_PADDING_LONGEST /* to the longest of the data */
};

struct sl_batching {
    enum sl_batch_unit unit;
    struct sl_bucketing bucketing;
    int64_t pool;
    enum sl_padding padding;
    int64_t max_tokens; /* largest number of rows that a batch computes; 0: no limit */
    int64_t bptt;       /* steps between truncations; 0: whole sequences (unit: sequence only) */
    int64_t max_length; /* 0: no limit; with LENGTHS and an on_overflow that is not KEEP at most the last edge */
    enum sl_overflow on_overflow; /* of a sequence longer than max_length */
};

/* The longest sequence that is neither dropped nor truncated; 0: no limit. A list of lengths ends at its last one,
 * unless what is longer is kept. [any thread] */
int64_t sl_batching_find_longest(const struct sl_batching *batching);

struct sl_data_config {
    struct sl_source splits[SL_SPLIT_COUNT];
    struct sl_tokenizer tokenizer;
    bool pairs;                           /* records are pairs of source and target, for an encoder and a decoder */
    struct sl_tokenizer source_tokenizer; /* pairs: of the source; by default `tokenizer` without bos and eos */
    struct sl_batching batching;
    int64_t batch_size; /* 0: only `max_tokens` limits a batch */
    bool shuffle;       /* of train, per epoch; never rows inside a sequence; false for streams */
    struct sl_place place;
};

/* "csv", "train", "adding_problem" as written in a file; static. [any thread] */
const char *sl_source_type_get_name(enum sl_source_type type);
const char *sl_split_get_name(enum sl_split split);
const char *sl_generator_get_name(enum sl_generator generator);

/* A file that a source reads, and the key that names it. */
struct sl_data_file {
    const char *key;
    const char *path;
};
enum { SL_DATA_FILE_COUNT = 6 };
/* The files of a source; returns how many there are. [any thread] */
int sl_source_list_files(const struct sl_source *source, struct sl_data_file out[SL_DATA_FILE_COUNT]);

/* Whether the source text is the target, too: the model reconstructs its input. [any thread] */
static inline bool sl_source_has_same_target(const struct sl_source *source)
{
    return source->type != SL_SOURCE_GENERATOR && !source->target_file && !source->target_column;
}

/* Whether sequences are put into buckets by length. [any thread] */
static inline bool sl_bucketing_has_edges(const struct sl_bucketing *bucketing)
{
    return bucketing->kind >= SL_BUCKETING_AUTO;
}

#endif

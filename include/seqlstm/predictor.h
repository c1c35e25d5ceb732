/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions that are prepared once and called many times, for whole sequences and for streams. Part of the C library
 * (seqlstm.h, which includes this header).
 *
 *   struct seqlstm_predictor_options options = SEQLSTM_PREDICTOR_OPTIONS_INIT;
 *   struct seqlstm_predictor *p;                               immutable: the model, its plans and its weights
 *   struct seqlstm_context *k;                                 one for each thread: buffers and bindings
 *   struct seqlstm_stream *s;                                  one sequence in progress: its states
 *
 *   seqlstm_predictor_open(session, &options, &p, &err);
 *   seqlstm_context_open(p, &k, &err);
 *   seqlstm_predict(k, x, lengths, count, y, &err);            whole sequences
 *   seqlstm_predict_texts(k, texts, bytes, count, write, context, &err);
 *   seqlstm_stream_open(p, &s, &err);
 *   seqlstm_stream_step(k, s, x, 1, y, &err);                  continues where the stream stopped
 *   seqlstm_streams_step(k, streams, count, x, y, &err);       one step of many streams as one batch
 *
 * Units. Input is in the units of the training data: the library scales it. Output is what the model predicts:
 * probabilities of classes, or values in the units of the training data.
 *
 * Input `x`. If info.input is SEQLSTM_INPUT_VALUES, x points to float [steps, info.input_features]; if it is
 * SEQLSTM_INPUT_IDS, to int32_t [steps], token ids of at least 0 and below info.input_classes. Output `y` is float
 * [rows, info.output_features]; there is one row per step if info.output_on_steps, else one per sequence. x and y may
 * not overlap.
 *
 * Ownership. A session owns what its predictors share: it must stay open until they are closed, and must not train
 * meanwhile. A predictor must stay open until its contexts and streams are closed.
 *
 * Threads. Each function names its class: [any] from any thread, concurrently; [context] one thread at a time for each
 * context, and for each stream that is passed with it; [stream] one thread at a time for each stream; [session] one
 * thread at a time for each session. A stream may be advanced by different contexts one after the other.
 *
 * With one thread, seqlstm_stream_step and seqlstm_streams_step neither allocate memory, nor take a lock, nor make a
 * system call, as long as all layers run on the CPU.
 *
 * Errors. INVALID_ARGUMENT: an argument breaks what is said here. UNSUPPORTED: the model cannot do this; the message
 * names the layer with file and line. NO_MEMORY. DEVICE, INTERNAL: a backend failed.
 */
#ifndef SEQLSTM_PREDICTOR_H
#define SEQLSTM_PREDICTOR_H

#include <stddef.h>
#include <stdint.h>

#include "export.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct seqlstm_session;
struct seqlstm_predictor;
struct seqlstm_context;
struct seqlstm_stream;

/* ---- the predictor ------------------------------------------------------------------------------------------------
 */

enum {
    SEQLSTM_PREDICTOR_EMBED = 1u << 0, /* the output of the layer that `seqlstm embed` writes: in a list of layers the
                                          input of the last one. `layer` must be NULL */
    SEQLSTM_PREDICTOR_REPRODUCIBLE =
        1u << 1,                            /* each sequence, stream and text is computed by itself, so that its output
                                               has the same bits whatever else is in the call. Batches take longer */
    SEQLSTM_PREDICTOR_SHARED_LOCK = 1u << 2 /* the threads of the caller hold one lock between their calls, as those of
                                               Python do. seqlstm_predict and the steps of streams then end in turn:
                                               once the thread whose call ended last has let go of the lock, which its
                                               next call shows, but at most 50 us late. So a thread seldom finds the
                                               lock taken and sleeps */
};

/* How to open a predictor. All zero but struct_size: the defaults. The limits decide how much memory each context
 * takes. Read only during the call. */
struct seqlstm_predictor_options {
    uint32_t struct_size;
    uint32_t flags;    /* SEQLSTM_PREDICTOR_… */
    int64_t sequences; /* most sequences that are computed as one batch; 0: 64 */
    int64_t steps;     /* most steps of one whole sequence; 0: those of the longest in the training data, at least 256;
                        * where training reads a text in parts, at most 4096 or those of a part */
    int64_t rows;      /* most steps of all sequences of one batch together; 0: the larger of `steps` and 4096 */
    int64_t streams;   /* most streams that are computed as one batch; 0: 1 */
    int64_t stream_steps; /* most steps of one stream that are computed at once; 0: 1 */
    const char *layer;    /* the layer whose output is wanted, in the network's units; NULL: the output of the model */
    int32_t threads;      /* that compute for one context, 1 to 1024; 0: 1 */
    int32_t reserved0;    /* 0 */
};

#define SEQLSTM_PREDICTOR_OPTIONS_INIT                                                                                 \
    {                                                                                                                  \
        (uint32_t)sizeof(struct seqlstm_predictor_options), 0, 0, 0, 0, 0, 0, NULL, 0, 0                               \
    }

enum { SEQLSTM_INPUT_VALUES = 0, SEQLSTM_INPUT_IDS = 1 };
enum {
    SEQLSTM_OUTPUT_VALUES = 0,
    SEQLSTM_OUTPUT_PROBABILITIES = 1,
    SEQLSTM_OUTPUT_TEXT = 2 /* a decoder writes it: only seqlstm_predict_texts runs the model */
};

/* What a predictor reads and writes. The caller sets struct_size. */
struct seqlstm_predictor_info {
    uint32_t struct_size;
    uint32_t input;            /* SEQLSTM_INPUT_… */
    uint32_t output;           /* SEQLSTM_OUTPUT_… */
    uint32_t input_on_steps;   /* 0: the model reads single rows, without steps */
    uint32_t output_on_steps;  /* 1: one row of output per step; 0: one per sequence */
    uint32_t streams;          /* 1: the model can run as streams */
    uint32_t texts;            /* 1: seqlstm_predict_texts reads its input */
    uint32_t reserved0;        /* 0 */
    int64_t input_features;    /* numbers per step; 1 for ids */
    int64_t input_classes;     /* ids are below it; 0 for values */
    int64_t output_features;   /* numbers per row */
    int64_t stream_bytes;      /* of a saved stream; 0: no streams */
    int64_t steps;             /* most steps of a whole sequence */
    const char *stream_reason; /* why there are no streams, with layer, file and line; "" where there are. Owned by
                                * the predictor */
};

/* Prepares a trained session for predictions: plans the model for whole sequences and for streams, and loads the
 * weights. With `dispatch.policy: measured` the variants of the backends are timed for few sequences and for streams,
 * for a second or two the first time; later the results are found in the cache. `options` may be NULL. NOT_FOUND: the
 * run has no weights yet. [session] */
SEQLSTM_API seqlstm_status seqlstm_predictor_open(struct seqlstm_session *session,
                                                  const struct seqlstm_predictor_options *options,
                                                  struct seqlstm_predictor **out_predictor, struct seqlstm_error *err);
/* NULL is allowed. */
SEQLSTM_API void seqlstm_predictor_close(struct seqlstm_predictor *predictor);

/* Fills the members of *info that its struct_size covers. Cannot fail. [any] */
SEQLSTM_API void seqlstm_predictor_get_info(const struct seqlstm_predictor *predictor,
                                            struct seqlstm_predictor_info *info);

/* ---- contexts, and whole sequences --------------------------------------------------------------------------------
 */

/* Allocates the buffers of a context, and runs once through all of them. [any] */
SEQLSTM_API seqlstm_status seqlstm_context_open(struct seqlstm_predictor *predictor,
                                                struct seqlstm_context **out_context, struct seqlstm_error *err);
/* NULL is allowed. */
SEQLSTM_API void seqlstm_context_close(struct seqlstm_context *context);

/* Predicts for `count` whole sequences, in as many batches as the limits of the predictor ask for. Sequence i has
 * lengths[i] steps, from 0 to the limit `steps`; x holds the steps of all sequences one after the other. `lengths` is
 * NULL for models that read single rows. y gets sum(lengths) or `count` rows, in the same order. Allocates only for
 * lengths that have not occurred lately. [context] */
SEQLSTM_API seqlstm_status seqlstm_predict(struct seqlstm_context *context, const void *x, const int64_t *lengths,
                                           int64_t count, float *y, struct seqlstm_error *err);

/* One reply to a text, valid during the call that passes it on. */
struct seqlstm_reply_text {
    const char *text; /* not NUL-terminated */
    size_t bytes;
    double score; /* higher is better: the sum of the tokens' log probabilities, with the length penalty of the model */
};

struct seqlstm_reply {
    uint32_t struct_size;
    uint32_t reserved0;
    int64_t record;      /* the number of the text in the call */
    int64_t rows;        /* tokens that the model read, or 1 for a model with one output per sequence; 0: see texts */
    int64_t features;    /* info.output_features */
    const float *values; /* [rows, features]; NULL: see texts */
    int64_t text_count;  /* of a model that writes texts: `n_best` of them, the best first; else 0 */
    const struct seqlstm_reply_text *texts;
};

/* Any status but OK ends the prediction with that status. */
typedef seqlstm_status (*seqlstm_reply_fn)(void *context, const struct seqlstm_reply *reply);

/* Predicts for `count` texts in UTF-8, each a record in the format of the training data without its target: a line, or
 * for CoNLL the tokens of a sequence, one per line. They are cut into tokens, shortened and completed as the training
 * data were. Text i has bytes[i] bytes; `bytes` NULL: each ends with a NUL. `write` gets one reply for each text, in
 * order. UNSUPPORTED: info.texts is 0. INVALID_ARGUMENT: a text is empty, has a line break, or has more tokens than the
 * limit `steps`. CORRUPT_DATA: a text is not UTF-8, or has a token that the model does not know. [context] */
SEQLSTM_API seqlstm_status seqlstm_predict_texts(struct seqlstm_context *context, const char *const *texts,
                                                 const size_t *bytes, int64_t count, seqlstm_reply_fn write,
                                                 void *write_context, struct seqlstm_error *err);

/* ---- tokens and classes ------------------------------------------------------------------------------------------ */

/* A text as ids of the input's vocabulary, with the token of the beginning if the training data have one, and with that
 * of the end if `whole` is not 0. Fills at most `capacity` of `ids` and sets *out_count to the number that there are.
 * INVALID_ARGUMENT: the model has no vocabulary. CORRUPT_DATA: as above. [any] */
SEQLSTM_API seqlstm_status seqlstm_encode(const struct seqlstm_predictor *predictor, const char *text, size_t bytes,
                                          int32_t whole, int32_t *ids, int64_t capacity, int64_t *out_count,
                                          struct seqlstm_error *err);

/* Token ids as text, without marks such as the beginning's. Fills at most `capacity` bytes of `text`, without a NUL,
 * and sets *out_bytes to the number that there are. INVALID_ARGUMENT: no vocabulary, or an id that does not exist.
 * [any] */
SEQLSTM_API seqlstm_status seqlstm_decode(const struct seqlstm_predictor *predictor, const int32_t *ids, int64_t count,
                                          char *text, size_t capacity, size_t *out_bytes, struct seqlstm_error *err);

/* The name of class or token `index` of the output, owned by the session; NULL: there is none. [any] */
SEQLSTM_API const char *seqlstm_predictor_find_class(const struct seqlstm_predictor *predictor, int64_t index);

/* ---- streams ------------------------------------------------------------------------------------------------------
 */

/* A new stream, before its first step. UNSUPPORTED: the model needs a whole sequence: it has a bidirectional or
 * backward layer, `pool`, or attention, or it is an encoder with a decoder. [any] */
SEQLSTM_API seqlstm_status seqlstm_stream_open(struct seqlstm_predictor *predictor, struct seqlstm_stream **out_stream,
                                               struct seqlstm_error *err);
/* NULL is allowed. [stream] */
SEQLSTM_API void seqlstm_stream_close(struct seqlstm_stream *stream);

/* Computes the next `steps` >= 1 steps of the stream. y gets `steps` rows, or one row for the state after the last of
 * them if the model has one output per sequence; NULL: the output is not wanted. After an error the stream is as before
 * the call, unless `steps` is above the limit `stream_steps`: then it may have gone some of the way. [context] */
SEQLSTM_API seqlstm_status seqlstm_stream_step(struct seqlstm_context *context, struct seqlstm_stream *stream,
                                               const void *x, int64_t steps, float *y, struct seqlstm_error *err);

/* Computes the next step of each of `count` different streams, in batches of at most the limit `streams`. x has one row
 * for each stream, and so has y (NULL: not wanted). After an error each stream has taken the step or not. [context] */
SEQLSTM_API seqlstm_status seqlstm_streams_step(struct seqlstm_context *context, struct seqlstm_stream *const *streams,
                                                int64_t count, const void *x, float *y, struct seqlstm_error *err);

/* Steps that the stream has taken. [stream] */
SEQLSTM_API int64_t seqlstm_stream_get_position(const struct seqlstm_stream *stream);

/* Back to before the first step. [stream] */
SEQLSTM_API void seqlstm_stream_reset(struct seqlstm_stream *stream);

/* Writes the state of the stream: info.stream_bytes bytes, which any build, backend and machine reads. *size is the
 * room at `bytes` in bytes, and then what was written. `bytes` NULL: only the size. INVALID_ARGUMENT: too little room.
 * [stream] */
SEQLSTM_API seqlstm_status seqlstm_stream_save(const struct seqlstm_stream *stream, void *bytes, size_t *size,
                                               struct seqlstm_error *err);

/* The stream continues from a saved state of the same model with the same weights. CORRUPT_DATA: the bytes are damaged.
 * INVALID_ARGUMENT: they are of another model, of other weights, or of a newer version. The stream is then as before.
 * [stream] */
SEQLSTM_API seqlstm_status seqlstm_stream_load(struct seqlstm_stream *stream, const void *bytes, size_t size,
                                               struct seqlstm_error *err);

#ifdef __cplusplus
}
#endif

#endif

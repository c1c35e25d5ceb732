/* SPDX-License-Identifier: Apache-2.0 */
/* What lifting makes of an ONNX graph (onnx_lift.h): values, the terms that compute them, and recurrent cells. */
#ifndef SL_INTEROP_ONNX_TERM_H
#define SL_INTEROP_ONNX_TERM_H

#include "graph/graph.h"

#include "interop/import/onnx_dims.h"

enum { SL_ONNX_ARGS_MAX = 8, SL_ONNX_OUTPUTS_MAX = 16 };

/* One feature and where it comes from: channel `channel` of a term. */
struct sl_onnx_channel {
    int32_t term;
    int32_t channel;
};

/* In the order of the feature parts of the dimensions. */
struct sl_onnx_features {
    const struct sl_onnx_channel *list;
    int64_t count;
    const struct sl_onnx_node *via; /* the last node that touched them */
};

enum sl_onnx_term_kind {
    SL_ONNX_TERM_INPUT,
    SL_ONNX_TERM_SEQUENCE, /* Y of a direction of a cell */
    SL_ONNX_TERM_FINAL_H,
    SL_ONNX_TERM_FINAL_C,
    SL_ONNX_TERM_EMBEDDING, /* constants[0]: the table */
    SL_ONNX_TERM_PRODUCT,   /* constants[0]: [inputs, outputs] */
    SL_ONNX_TERM_SHIFT,     /* vectors[0] added */
    SL_ONNX_TERM_SCALE,     /* vectors[0] multiplied */
    SL_ONNX_TERM_ACTIVATION,
    SL_ONNX_TERM_NORM, /* vectors: gain, bias */
    SL_ONNX_TERM_POOL,
    SL_ONNX_TERM_MERGE,
    SL_ONNX_TERM_MASKED
};

struct sl_onnx_term {
    enum sl_onnx_term_kind kind;
    const struct sl_onnx_node *node;
    int64_t width;
    int32_t arg_count;
    struct sl_onnx_features args[SL_ONNX_ARGS_MAX];
    struct sl_onnx_constant table;
    const float *vectors[2];
    struct seqlstm_activation activation;
    float epsilon;
    uint32_t pool_or_merge; /* SEQLSTM_KIND_…; MASKED: the mask's kind */
    double blank;           /* MASKED */
    int32_t cell;           /* index, of SEQUENCE and FINAL_… */
    int32_t direction;
    bool is_used; /* the matching found it in the model */
};

/* A recurrent node. */
struct sl_onnx_cell_use {
    const struct sl_onnx_node *node;
    struct sl_onnx_features x;
    const struct sl_onnx_value *states[2];     /* initial h and c; NULL: absent */
    const struct sl_onnx_constant *weights[4]; /* W, R, B, P; NULL: absent */
    int64_t hidden;
    int32_t directions;
    bool is_batch_first;
    bool has_fixed_lengths; /* sequence_lens is a constant that is not the length of the input */
};

struct sl_onnx_value {
    enum {
        SL_ONNX_OPAQUE,
        SL_ONNX_CONSTANT,
        SL_ONNX_DATA,
        SL_ONNX_LENGTHS, /* of the sequences, plus `shift`, at most 1 where `is_capped` */
        SL_ONNX_FED,     /* an initial state that the caller passes */
        SL_ONNX_STEPS,   /* 0, 1, … along time */
        SL_ONNX_MASK,
        SL_ONNX_COUNT /* number of real steps */
    } kind;
    const struct sl_onnx_node *via; /* NULL: an input */
    const char *reason;             /* OPAQUE */
    const char *input;              /* FED, or OPAQUE without a node */
    struct sl_onnx_constant constant;
    struct sl_onnx_dims dims;
    struct sl_onnx_features features;
    int64_t shift;
    bool is_capped;
    uint32_t mask; /* SEQLSTM_KIND_POOL_SUM: all real steps; _FIRST, _LAST: one of them */
};

/* How the main input's dimensions are read. */
struct sl_onnx_reading {
    const struct sl_onnx_port *input; /* the one that the model reads */
    int32_t rank;
    char roles[3]; /* 'b', 't', 'f' */
    int64_t features;
    bool is_ids;
};

struct sl_onnx_lift {
    struct sl_arena *arena; /* of the file */
    const struct sl_onnx_file *file;
    struct sl_onnx_reading reading;
    struct sl_onnx_term *terms;
    int32_t term_count;
    struct sl_onnx_cell_use *cells;
    int32_t cell_count;
    struct sl_onnx_value *values; /* sorted by name */
    const char **names;
    int32_t value_count;
    int64_t batch, time;  /* their sizes */
    bool is_time_free;    /* the file does not say its length */
    bool uses_lengths;    /* some recurrent node has lengths that vary */
    bool has_order_error; /* a recurrent node has batch and time the other way round */
};

/* A term of `width` channels; NULL: no memory. */
struct sl_onnx_term *sl_onnx_lift_add_term(struct sl_onnx_lift *lift, enum sl_onnx_term_kind kind,
                                           const struct sl_onnx_node *node, int64_t width);
/* All channels of the newest term. */
struct sl_onnx_features sl_onnx_lift_take_all(struct sl_onnx_lift *lift, const struct sl_onnx_node *node);
/* The term of which the features are all channels, in order; NULL: there is none. */
struct sl_onnx_term *sl_onnx_lift_get_whole(const struct sl_onnx_lift *lift, const struct sl_onnx_features *features);

#endif

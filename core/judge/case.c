/* SPDX-License-Identifier: Apache-2.0 */
/* Parses case strings into descriptors. */
#include "judge/case.h"

#include <string.h>

#include "base/operation/op_signature.h"
#include "base/value/text.h"

static const char *const pass_names[SL_PASS_COUNT] = {"inf",  "fwd",    "bwd",     "ranges",    "fd",    "repeat",
                                                      "same", "memory", "threads", "alternate", "claim", "idle"};

/* The sizes by letter; 0 if not given. */
struct sizes {
    int64_t of[26];
};

static int64_t size_or(const struct sizes *s, char letter, int64_t fallback)
{
    int64_t value = s->of[letter - 'A'];
    return value > 0 ? value : fallback;
}

static bool is(const char *field, size_t length, const char *word)
{
    return strlen(word) == length && strncmp(field, word, length) == 0;
}

static seqlstm_status parse_sizes(const char *field, size_t length, struct sizes *s, struct seqlstm_error *err)
{
    memset(s, 0, sizeof *s);
    size_t i = 0;
    while (i < length) {
        char letter = field[i++];
        int64_t value = 0;
        size_t digits = 0;
        while (i < length && field[i] >= '0' && field[i] <= '9' && digits < 12) {
            value = 10 * value + (field[i++] - '0');
            digits++;
        }
        if (letter < 'A' || letter > 'Z' || digits == 0)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "the sizes '%.*s' of the case are not letters followed by numbers", (int)length, field);
        if (value == 0 && letter != 'P') /* no binding has no rows; without a projection P is left out, or 0 */
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the size %c of the case is 0, expected 1 or more", letter);
        s->of[letter - 'A'] = value;
    }
    return SEQLSTM_OK;
}

static seqlstm_status parse_op(const char *field, size_t length, union seqlstm_any_desc *d, struct seqlstm_error *err)
{
    static const char *const cells[] = {"lstm", "gru", "rnn"};
    for (uint32_t i = 0; i < 3; i++)
        if (is(field, length, cells[i])) {
            d->head.op = SEQLSTM_OP_RECURRENT;
            d->recurrent.cell = SEQLSTM_CELL_LSTM + i;
            return SEQLSTM_OK;
        }
    for (uint32_t op = SEQLSTM_OP_EMBEDDING; op < SEQLSTM_OP_COUNT; op++)
        if (is(field, length, sl_op_name(op))) {
            d->head.op = op;
            return SEQLSTM_OK;
        }
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the case begins with '%.*s', which is no operation", (int)length,
                 field);
}

static seqlstm_status parse_lengths(const char *field, size_t length, struct sl_case *c, struct seqlstm_error *err)
{
    static const char *const names[] = {"ragged", "uniform", "ones", "long", "flat"};
    for (int i = 0; i < 5; i++)
        if (is(field, length, names[i])) {
            c->lengths = (enum sl_case_lengths)i;
            return SEQLSTM_OK;
        }
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                 "the lengths of the case are '%.*s', expected ragged, uniform, ones, long or flat", (int)length,
                 field);
}

static seqlstm_status parse_dtype(const char *field, size_t length, struct sl_case *c, struct seqlstm_error *err)
{
    static const struct {
        const char *name;
        uint32_t dtype, compute;
    } names[] = {{"f32", SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_FLOAT32},
                 {"bf16", SEQLSTM_DTYPE_BFLOAT16, SEQLSTM_DTYPE_FLOAT32},
                 {"f16", SEQLSTM_DTYPE_FLOAT16, SEQLSTM_DTYPE_FLOAT32},
                 {"f32-tf32", SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_TF32},
                 {"f32-bf16", SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_BFLOAT16},
                 {"f32-f16", SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_FLOAT16},
                 {"f32-i8", SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_INT8}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is(field, length, names[i].name)) {
            c->dtype = names[i].dtype;
            c->desc.head.dtype_compute = names[i].compute;
            return SEQLSTM_OK;
        }
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                 "the dtype of the case is '%.*s', expected f32, bf16, f16, f32-tf32, f32-bf16, f32-f16 or f32-i8",
                 (int)length, field);
}

static void init_recurrent(struct seqlstm_recurrent_desc *d, const struct sizes *s)
{
    d->direction = size_or(s, 'D', 1) == 2 ? SEQLSTM_DIRECTION_BIDIRECTIONAL : SEQLSTM_DIRECTION_FORWARD;
    d->options = SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_OUTPUT;
    d->layers = size_or(s, 'L', 1);
    d->input = size_or(s, 'I', 3);
    d->hidden = size_or(s, 'H', 5);
    d->projection = s->of['P' - 'A'];
    d->stream_base = 7 * SEQLSTM_STREAMS_PER_LAYER;
    if (d->head.dtype_compute == SEQLSTM_DTYPE_INT8) { /* the data of cases are in [-1, 1] */
        d->data_scale = 127;
        d->data_shift = 128;
    }
    for (int direction = 0; direction < 2; direction++) {
        d->activations[SEQLSTM_PLACE_GATE][direction].kind = SEQLSTM_ACT_SIGMOID;
        d->activations[SEQLSTM_PLACE_CANDIDATE][direction].kind = SEQLSTM_ACT_TANH;
        d->activations[SEQLSTM_PLACE_OUTPUT][direction].kind = SEQLSTM_ACT_TANH;
    }
}

/* Fills the parts of a descriptor that follow from sizes; options come later. */
static void init_row_wise(union seqlstm_any_desc *d, const struct sizes *s)
{
    const int64_t c = size_or(s, 'C', 7), i = size_or(s, 'I', 5), o = size_or(s, 'O', c);
    switch (d->head.op) {
    case SEQLSTM_OP_EMBEDDING:
        d->embedding.vocabulary = size_or(s, 'V', 11);
        d->embedding.features = size_or(s, 'E', 5);
        break;
    case SEQLSTM_OP_DENSE:
        d->dense.input = i;
        d->dense.output = o;
        d->dense.options = SEQLSTM_BIT_DENSE_USE_BIAS;
        break;
    case SEQLSTM_OP_ACTIVATION:
        d->activation.features = c;
        d->activation.activation.kind = SEQLSTM_ACT_TANH;
        break;
    case SEQLSTM_OP_DROPOUT:
        d->dropout.features = c;
        d->dropout.stream = 6 * SEQLSTM_STREAMS_PER_LAYER;
        d->dropout.rate = 0.3f;
        break;
    case SEQLSTM_OP_LAYER_NORM:
        d->layer_norm.features = c;
        d->layer_norm.epsilon = 1e-3f;
        d->layer_norm.options = SEQLSTM_BIT_LAYER_NORM_GAIN | SEQLSTM_BIT_LAYER_NORM_BIAS;
        break;
    case SEQLSTM_OP_POOL:
        d->pool.features = c;
        break;
    case SEQLSTM_OP_MERGE:
        d->merge.inputs = (uint32_t)size_or(s, 'W', 2);
        for (uint32_t k = 0; k < d->merge.inputs && k < SEQLSTM_MAX_MERGE_INPUTS; k++)
            d->merge.widths[k] = c;
        break;
    case SEQLSTM_OP_GATHER:
    case SEQLSTM_OP_SCATTER:
        d->gather.features = c;
        break;
    case SEQLSTM_OP_CAST:
        d->cast.features = c;
        break;
    case SEQLSTM_OP_LOSS:
        d->loss.features = c;
        d->loss.kind = SEQLSTM_KIND_LOSS_MSE;
        d->loss.delta = 0.7f;
        break;
    case SEQLSTM_OP_DENSE_LOSS:
        d->dense_loss.input = i;
        d->dense_loss.output = o;
        d->dense_loss.dense_options = SEQLSTM_BIT_DENSE_USE_BIAS;
        d->dense_loss.kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY;
        d->dense_loss.delta = 0.7f;
        break;
    case SEQLSTM_OP_TOP_K:
        d->top_k.features = c;
        d->top_k.k = size_or(s, 'K', 1);
        d->top_k.stream = 5 * SEQLSTM_STREAMS_PER_LAYER;
        d->top_k.temperature = 1;
        d->top_k.top_p = 1;
        break;
    case SEQLSTM_OP_OPTIMIZER:
        d->optimizer.kind = SEQLSTM_KIND_OPTIMIZER_SGD;
        d->optimizer.beta_1 = 0.9f;
        d->optimizer.beta_2 = 0.999f;
        d->optimizer.rho = 0.9f;
        d->optimizer.epsilon = 1e-7f;
        break;
    case SEQLSTM_OP_ATTENTION:
        d->attention.key = size_or(s, 'K', 5);
        d->attention.value = size_or(s, 'V', d->attention.key);
        d->attention.kind = SEQLSTM_KIND_ATTENTION_DOT;
        d->attention.scale = 1;
        break;
    case SEQLSTM_OP_VECTOR:
        d->vector.kind = SEQLSTM_KIND_VECTOR_FILL;
        break;
    default:
        break;
    }
}

static bool is_flat_vector(uint32_t op)
{
    return op == SEQLSTM_OP_FINITE_CHECK || op == SEQLSTM_OP_SQUARED_NORM || op == SEQLSTM_OP_OPTIMIZER ||
           op == SEQLSTM_OP_VECTOR;
}

/* Operations that exist only in training mode use that mode; for the others the pass decides. */
static void init_head(struct sl_case *c, const struct sizes *s)
{
    struct seqlstm_desc *head = &c->desc.head;
    head->struct_size = sl_op_desc_bytes(head->op);
    head->mode = c->pass == SL_PASS_INFERENCE ? SEQLSTM_MODE_INFERENCE : SEQLSTM_MODE_TRAINING;
    head->dtype_activation = c->dtype;
    head->dtype_activation_grad = c->dtype;
    if (c->lengths == SL_LENGTHS_FLAT) {
        c->rows = size_or(s, is_flat_vector(head->op) ? 'N' : 'R', 9);
        c->rows_in = size_or(s, 'Q', c->rows);
        if (head->op == SEQLSTM_OP_ATTENTION) {
            head->max_sequences = size_or(s, 'B', 3);
            head->max_steps = size_or(s, 'T', 5);
            c->rows_in = head->max_sequences * head->max_steps;
        }
        head->max_rows = c->rows > c->rows_in ? c->rows : c->rows_in;
        return;
    }
    c->steps = size_or(s, 'T', 5);
    c->sequences = size_or(s, 'B', 3);
    head->max_rows = c->steps * c->sequences;
    head->max_sequences = c->sequences;
    head->max_steps = c->steps;
    if (c->lengths == SL_LENGTHS_UNIFORM)
        head->flags |= SEQLSTM_BIT_DESC_UNIFORM;
}

static seqlstm_status parse_options(const char *field, struct sl_case *c, struct seqlstm_error *err)
{
    while (*field) {
        size_t length = strcspn(field, ",");
        SEQLSTM_TRY(sl_case_apply_option(c, field, length, err));
        field += length;
        field += *field == ',';
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_case_parse(const char *text, struct sl_case *out_case, struct seqlstm_error *err)
{
    struct sl_case c;
    struct sizes s;
    const char *fields[6] = {"", "", "", "", "", ""};
    size_t lengths[6] = {0};
    int count = 0;
    memset(&c, 0, sizeof c);
    if (strlen(text) >= sizeof c.text)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a case has at most %d characters", SL_CASE_TEXT_BYTES - 1);
    strcpy(c.text, text);
    for (const char *p = c.text; count < 6; count++) {
        fields[count] = p;
        lengths[count] = count < 5 ? strcspn(p, ":") : strlen(p);
        if (p[lengths[count]] == 0) {
            count++;
            break;
        }
        p += lengths[count] + 1;
    }
    if (count < 5)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "the case '%s' has %d parts, expected op:pass:sizes:dtype:lengths[:options]", text, count);
    SEQLSTM_TRY(parse_op(fields[0], lengths[0], &c.desc, err));
    int pass = 0;
    while (pass < SL_PASS_COUNT && !is(fields[1], lengths[1], pass_names[pass]))
        pass++;
    if (pass == SL_PASS_COUNT)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "'%.*s' is no pass of a case", (int)lengths[1], fields[1]);
    c.pass = (enum sl_case_pass)pass;
    SEQLSTM_TRY(parse_sizes(fields[2], lengths[2], &s, err));
    SEQLSTM_TRY(parse_dtype(fields[3], lengths[3], &c, err));
    SEQLSTM_TRY(parse_lengths(fields[4], lengths[4], &c, err));
    init_head(&c, &s);
    if (c.desc.head.op == SEQLSTM_OP_RECURRENT)
        init_recurrent(&c.desc.recurrent, &s);
    else
        init_row_wise(&c.desc, &s);
    SEQLSTM_TRY(parse_options(fields[5], &c, err));
    if (c.desc.head.op == SEQLSTM_OP_ATTENTION && c.lengths != SL_LENGTHS_FLAT)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "the lengths of an attention case are flat, those of its memories "
                     "the option memories=");
    SEQLSTM_TRY(sl_op_desc_check(&c.desc.head, err));
    *out_case = c;
    return SEQLSTM_OK;
}

void sl_case_clear_rates(struct sl_case *c)
{
    if (c->desc.head.op == SEQLSTM_OP_RECURRENT) {
        struct seqlstm_recurrent_desc *d = &c->desc.recurrent;
        d->dropout = d->recurrent_dropout = d->zoneout_cell = d->zoneout_hidden = d->weight_drop = 0;
    } else if (c->desc.head.op == SEQLSTM_OP_DROPOUT) {
        c->desc.dropout.rate = 0;
    }
}

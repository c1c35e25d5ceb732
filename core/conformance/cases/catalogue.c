/* SPDX-License-Identifier: Apache-2.0 */
/* The list of cases. Sizes are odd on purpose: one, a little below and above vector widths, never only multiples of
 * them. Lengths are ragged, equal, all one, or one is long. */
#include "conformance/cases/catalogue.h"

#include <stddef.h>
#include <string.h>

#include "base/value/text.h"
#include "judge/case.h"

static const char *const level_names[SL_LEVEL_COUNT] = {"load",     "contract", "claims", "forward",
                                                        "backward", "memory",   "threads"};

const char *sl_level_name(enum sl_level level)
{
    return (unsigned)level < SL_LEVEL_COUNT ? level_names[level] : "unknown";
}

enum sl_level sl_level_find(const char *name)
{
    int level = 0;
    while (level < SL_LEVEL_COUNT && strcmp(name, level_names[level]) != 0)
        level++;
    return (enum sl_level)level;
}

struct shape {
    const char *sizes, *lengths;
};

/* The quick suite tries every option at the first shape. */
static const struct shape recurrent_shapes[] = {
    {"T7B5I6H9", "ragged"},   {"T1B1I1H1", "uniform"},   {"T1B4I3H17", "ones"},    {"T11B1I5H16", "uniform"},
    {"T9B17I7H16", "ragged"}, {"T6B3I33H31", "uniform"}, {"T13B8I3H48", "long"},   {"T37B5I16H33", "ragged"},
    {"T5B33I9H64", "ragged"}, {"T4B6I20H130", "ragged"}, {"T3B2I1H7L3", "ragged"}, {"T6B4I5H8L2D2", "ragged"},
    {"T5B70I4H5", "ragged"},  {"T2B2I100H3", "uniform"}, {"T100B2I2H3", "ragged"},
};

/* Shapes at which kernels switch to other methods: many sequences, many rows for one dW, matrices larger than a
 * cache. */
static const struct shape large_shapes[] = {
    {"T4B128I9H64", "ragged"},
    {"T3B20I50H200", "uniform"},
    {"T40B1I64H64", "uniform"},
    {"T3B300I5H20", "long"},
};
static const struct shape larger_shapes[] = {
    {"T10B20I200H200L2", "ragged"}, {"T6B64I65H130", "ragged"},   {"T4B512I7H64", "uniform"},
    {"T3B5I300H257", "ragged"},     {"T2B20I650H650", "uniform"}, {"T200B3I8H32", "ragged"},
};
static const char *const large_options[] = {"", "initial,final,recurrent_dropout", "peephole,cell_clip,no_bias",
                                            "stepwise,initial,final"};

struct variation {
    const char *cells; /* which cells it is for: l (LSTM), g (GRU), r (RNN) */
    const char *extra; /* appended sizes */
    const char *options;
};

static const struct variation variations[] = {
    {"lgr", "", ""},
    {"lgr", "", "initial,final"},
    {"lgr", "", "final,no_output"},
    {"lgr", "", "initial"},
    {"lgr", "", "no_bias"},
    {"lgr", "", "backward"},
    {"lgr", "", "backward,initial,final"},
    {"lgr", "D2", ""},
    {"lgr", "D2", "merge=sum"},
    {"lgr", "D2", "merge=mul,initial,final"},
    {"lgr", "D2", "merge=ave"},
    {"lgr", "L2", "initial,final"},
    {"lgr", "L2D2", ""},
    {"lgr", "L3", "dropout"},
    {"lgr", "L2D2", "merge=sum,dropout,recurrent_dropout,initial,final"},
    {"lgr", "", "dropout"},
    {"lgr", "", "recurrent_dropout"},
    {"lgr", "", "recurrent_dropout,stream,initial,final"},
    {"lgr", "D2", "recurrent_dropout,dropout,stream"},
    {"lgr", "", "zoneout_hidden"},
    {"l", "", "zoneout_cell,zoneout_hidden,stream"},
    {"lgr", "", "weight_drop"},
    {"lgr", "", "gate_clip"},
    {"l", "", "cell_clip"},
    {"l", "", "cell_clip,gate_clip,peephole"},
    {"l", "", "peephole"},
    {"l", "D2", "peephole,no_bias"},
    {"l", "", "coupled_gates"},
    {"l", "", "coupled_gates,peephole,initial,final"},
    {"l", "", "layer_norm"},
    {"r", "", "layer_norm"},
    {"g", "", "reset_after"},
    {"g", "", "reset_after,layer_norm"},
    {"g", "", "reset_after,no_bias"},
    {"g", "L2D2", "reset_after,recurrent_dropout"},
    {"l", "", "coupled_gates,layer_norm"},
    {"l", "L2D2", "layer_norm,dropout"},
    {"l", "P4", ""},
    {"l", "P3L2D2", "initial,final"},
    {"l", "P4", "peephole,recurrent_dropout,zoneout_hidden,cell_clip"},
    {"lgr", "", "act=relu"},
    {"lgr", "", "act=leaky_relu"},
    {"lgr", "", "act=leaky_relu/0.3"},
    {"lgr", "", "act=elu"},
    {"lgr", "", "act=softsign"},
    {"lgr", "", "act=softplus"},
    {"lgr", "", "act=affine"},
    {"lgr", "", "act=scaled_tanh"},
    {"lgr", "", "act=thresholded_relu"},
    {"lgr", "", "act=linear"},
    {"lg", "", "gate_act=hard_sigmoid"},
    {"l", "", "act=leaky_relu,out_act=leaky_relu"},
    {"l", "", "out_act=linear"},
    {"l", "D2", "act2=relu,gate_act2=hard_sigmoid,out_act2=softsign"},
    {"lgr", "", "no_dx"},
    {"lgr", "", "no_dy,initial,final"},
    {"lgr", "", "no_dstate,initial,final"},
    {"lgr", "", "saturated"},
    {"lgr", "", "stepwise"},
    {"lgr", "", "stepwise,initial,final"},
    {"g", "", "stepwise,reset_after,layer_norm,initial,final"},
    {"l", "D2", "stepwise,merge=mul,no_bias"},
    {"l", "P4", "stepwise,peephole,recurrent_dropout,zoneout_hidden,cell_clip,initial,final"},
    {"l", "L2", "stepwise,peephole,layer_norm,dropout,zoneout_cell,weight_drop,initial,final"},
    {"l", "L2D2",
     "peephole,layer_norm,dropout,recurrent_dropout,zoneout_cell,zoneout_hidden,weight_drop,"
     "cell_clip=1,gate_clip=2,initial,final"},
};

/* Row-wise operations: op, sizes, lengths, options. Each is tried with the pass inf and, if it has a backward, bwd. */
struct plain {
    const char *op, *sizes, *lengths, *options;
    bool quick;
};

static const struct plain plains[] = {
    {"embedding", "R9V11E5", "flat", "", true},
    {"embedding", "R70V3E33", "flat", "", true},
    {"embedding", "T7B5V11E8", "ragged", "", true},
    {"embedding", "R1V1E1", "flat", "", true},
    {"embedding", "R9V11E5", "flat", "no_dy", true},
    {"dense", "R9I5O7", "flat", "", true},
    {"dense", "R1I1O1", "flat", "", true},
    {"dense", "R33I17O31", "flat", "no_bias", true},
    {"dense", "R70I64O10", "flat", "act=relu", true},
    {"dense", "R5I130O3", "flat", "act=softmax", true},
    {"dense", "R6I7O9", "flat", "act=log_softmax", true},
    {"dense", "R6I7O9", "flat", "act=sigmoid", true},
    {"dense", "R6I7O9", "flat", "act=tanh", true},
    {"dense", "R6I7O9", "flat", "act=leaky_relu", true},
    {"dense", "R6I7O9", "flat", "act=elu", true},
    {"dense", "R6I7O9", "flat", "act=softplus", true},
    {"dense", "R6I7O9", "flat", "act=softsign", true},
    {"dense", "R6I7O9", "flat", "act=hard_sigmoid", true},
    {"dense", "R6I7O9", "flat", "act=affine", true},
    {"dense", "R6I7O9", "flat", "act=scaled_tanh", true},
    {"dense", "R6I7O9", "flat", "act=thresholded_relu", true},
    {"dense", "T7B5I6O4", "ragged", "no_dx", true},
    {"dense", "R9I5O7", "flat", "no_dy", true},
    {"dense", "R6I7O9", "flat", "act=tanh,no_dy", true},
    {"dense", "R300I20O25", "flat", "", false},
    {"activation", "R9C17", "flat", "act=tanh", true},
    {"activation", "R9C17", "flat", "act=sigmoid", true},
    {"activation", "R9C17", "flat", "act=relu", true},
    {"activation", "R9C17", "flat", "act=leaky_relu", true},
    {"activation", "R9C17", "flat", "act=thresholded_relu", true},
    {"activation", "R9C17", "flat", "act=scaled_tanh", true},
    {"activation", "R9C17", "flat", "act=hard_sigmoid", true},
    {"activation", "R9C17", "flat", "act=elu", true},
    {"activation", "R9C17", "flat", "act=softsign", true},
    {"activation", "R9C17", "flat", "act=softplus", true},
    {"activation", "R9C17", "flat", "act=affine", true},
    {"activation", "R9C17", "flat", "act=softmax", true},
    {"activation", "R9C17", "flat", "act=log_softmax", true},
    {"activation", "R9C17", "flat", "act=linear", true},
    {"activation", "R9C17", "flat", "act=softmax,saturated", true},
    {"activation", "R3C1", "flat", "act=tanh,saturated", true},
    {"activation", "R9C17", "flat", "act=tanh,no_dy", true},
    {"activation", "R9C17", "flat", "act=softmax,no_dy", true},
    {"dropout", "T7B5C9", "ragged", "mask=step", true},
    {"dropout", "T7B5C9", "ragged", "mask=sequence", true},
    {"dropout", "T7B5C9", "ragged", "mask=step,stream", true},
    {"dropout", "T7B5C9", "ragged", "mask=sequence,stream", true},
    {"dropout", "T7B5C9", "ragged", "mask=step,on_sequences", true},
    {"dropout", "T3B2C33", "uniform", "rate=0.9", true},
    {"dropout", "T3B2C33", "uniform", "rate=0", true},
    {"dropout", "T7B5C9", "ragged", "mask=step,no_dy", true},
    {"layer_norm", "R9C17", "flat", "", true},
    {"layer_norm", "R9C17", "flat", "no_gain", true},
    {"layer_norm", "R9C17", "flat", "no_bias", true},
    {"layer_norm", "R40C130", "flat", "no_gain,no_bias", true},
    {"layer_norm", "R9C17", "flat", "no_dy", true},
    {"pool", "T7B5C9", "ragged", "kind=last", true},
    {"pool", "T7B5C9", "ragged", "kind=mean", true},
    {"pool", "T7B5C9", "ragged", "kind=max", true},
    {"pool", "T7B5C9", "ragged", "kind=sum", true},
    {"pool", "T7B5C9", "ragged", "kind=first", true},
    {"pool", "T1B1C1", "ones", "kind=max", true},
    {"pool", "T7B5C9", "ragged", "kind=mean,no_dy", true},
    {"pool", "T7B5C9", "ragged", "kind=max,no_dy", true},
    {"merge", "R9C7W2", "flat", "kind=concat", true},
    {"merge", "R9C7W3", "flat", "kind=concat,width0=4", true},
    {"merge", "R9C7W8", "flat", "kind=sum", true},
    {"merge", "R9C7W3", "flat", "kind=mul", true},
    {"merge", "R9C7W3", "flat", "kind=ave", true},
    {"merge", "R9C7W3", "flat", "kind=concat,width0=4,no_dy", true},
    {"merge", "R9C7W3", "flat", "kind=mul,no_dy", true},
    {"gather", "R9Q5C7", "flat", "", true},
    {"gather", "R40Q3C33", "flat", "", true},
    {"gather", "R9Q5C7", "flat", "no_dy", true},
    {"scatter", "R9Q5C7", "flat", "", true},
    {"scatter", "R5Q5C7", "flat", "", true},
    {"scatter", "R9Q5C7", "flat", "no_dy", true},
    {"cast", "R9C17", "flat", "from=f32,to=bf16", true},
    {"cast", "R9C17", "flat", "from=f32,to=f16", true},
    {"cast", "R9C17", "flat", "from=bf16,to=f32", true},
    {"cast", "R9C17", "flat", "from=f16,to=f32", true},
    {"cast", "R9C17", "flat", "from=f32,to=bf16,no_dy", true},
    {"cast", "R9C17", "flat", "from=f16,to=f32,no_dy", true},
    {"loss", "R9C7", "flat", "kind=mse", true},
    {"loss", "R9C7", "flat", "kind=mae,row_weight", true},
    {"loss", "R9C7", "flat", "kind=huber,row_loss", true},
    {"loss", "R9C1", "flat", "kind=binary_cross_entropy,row_weight,row_loss", true},
    {"loss", "R9C7", "flat", "kind=binary_cross_entropy,saturated", true},
    {"loss", "R9C7", "flat", "kind=cross_entropy", true},
    {"loss", "R33C31", "flat", "kind=cross_entropy,row_weight,class_weight,row_loss,smoothing", true},
    {"loss", "T7B5C9", "ragged", "kind=cross_entropy,row_weight", true},
    {"loss", "R300C1000", "flat", "kind=cross_entropy", false},
    {"dense_loss", "R9I5O7", "flat", "kind=cross_entropy", true},
    {"dense_loss", "R70I17O33", "flat", "kind=cross_entropy,row_weight,class_weight,row_loss,smoothing", true},
    {"dense_loss", "R9I5O3", "flat", "kind=mse,no_bias", true},
    {"dense_loss", "R9I5O1", "flat", "kind=binary_cross_entropy,row_weight", true},
    {"dense_loss", "R300I20O1000", "flat", "kind=cross_entropy", false},
    {"top_k", "R9C17K1", "flat", "kind=best", true},
    {"top_k", "R9C17K5", "flat", "kind=best", true},
    {"top_k", "R3C4K4", "flat", "kind=best", true},
    {"top_k", "T7B5C17K1", "ragged", "kind=sample", true},
    {"top_k", "T7B5C17K1", "ragged", "kind=sample,top_k=5,temperature", true},
    {"top_k", "T7B5C17K1", "ragged", "kind=sample,top_p,stream", true},
    {"top_k", "T7B5C17K1", "ragged", "kind=sample,top_k=5,top_p,temperature", true},
    {"top_k", "T7B5C17K1", "ragged", "kind=sample,top_p=0.5,temperature=2", true},
    {"top_k", "T5B14C17K1", "ragged", "kind=sample,top_k=9,top_p=0.6,temperature=0.3", true},
    {"finite_check", "N1", "flat", "", true},
    {"finite_check", "N1003", "flat", "", true},
    {"squared_norm", "N1", "flat", "", true},
    {"squared_norm", "N5003", "flat", "", true},
    {"optimizer", "N37", "flat", "kind=sgd,weight_decay", true},
    {"optimizer", "N37", "flat", "kind=momentum,momentum", true},
    {"optimizer", "N37", "flat", "kind=nesterov,momentum,weight_decay", true},
    {"optimizer", "N37", "flat", "kind=adam", true},
    {"optimizer", "N5003", "flat", "kind=adam,weight_decay,amsgrad", true},
    {"optimizer", "N37", "flat", "kind=rmsprop", true},
    {"optimizer", "N37", "flat", "kind=rmsprop,momentum,centered", true},
    {"optimizer", "N37", "flat", "kind=adagrad", true},
    {"optimizer", "N37", "flat", "kind=adadelta,weight_decay", true},
    {"optimizer", "N37", "flat", "kind=adam,skip", true},
    {"optimizer", "N37", "flat", "kind=adam,diverged=loss", true},
    {"optimizer", "N37", "flat", "kind=momentum,momentum,diverged=squares,clip_norm", true},
    {"optimizer", "N5003", "flat", "kind=adam,clip_norm", true},
    {"optimizer", "N37", "flat", "kind=sgd,weight_decay,clip_norm=100", true},
    {"vector", "N1003", "flat", "kind=fill", true},
    {"vector", "N1003", "flat", "kind=axpy", true},
    {"vector", "N1003", "flat", "kind=scale", true},
    {"vector", "N1003", "flat", "kind=lerp", true},
    {"vector", "N1003", "flat", "kind=sign_axpy", true},
    {"vector", "N1003", "flat", "kind=clamp", true},
    {"vector", "N1003", "flat", "kind=copy", true},
    {"attention", "R9B4T5K6V7", "flat", "", true},
    {"attention", "R9B4T5K6V7", "flat", "weights,scale", true},
    {"attention", "R9B4T5K6V7", "flat", "kind=additive", true},
    {"attention", "R9B4T5K6", "flat", "shared", true},
    {"attention", "R1B1T1K1V1", "flat", "weights,memories=ones", true},
    {"attention", "R1B5T9K17V33", "flat", "kind=additive,weights,queries=beams", true},
    {"attention", "R40B7T11K33V31", "flat", "queries=packed,weights", true},
    {"attention", "R40B7T11K33", "flat", "queries=packed,shared,memories=uniform,scale", true},
    {"attention", "R40B7T11K33V17", "flat", "kind=additive,queries=packed,weights", true},
    {"attention", "R30B6T40K20", "flat", "queries=beams,shared,memories=long", true},
    {"attention", "R70B3T37K64V65", "flat", "memories=uniform", true},
    {"attention", "R70B3T37K64", "flat", "kind=additive,shared,weights", true},
    {"attention", "R9B4T5K6V7", "flat", "saturated", true},
    {"attention", "R9B4T5K6V7", "flat", "kind=additive,saturated", true},
    {"attention", "R9B4T5K6V7", "flat", "no_dy,weights", true},
    {"attention", "R9B4T5K6", "flat", "no_dy,kind=additive,shared", true},
    {"attention", "R9B4T5K6V7", "flat", "no_dx,kind=additive", true},
    {"attention", "R300B20T30K256", "flat", "queries=packed,shared", false},
    {"attention", "R300B20T30K256", "flat", "queries=packed,kind=additive,weights", false},
    {"pool", "T7B9C4", "ragged", "kind=max,nan", true},
    {"vector", "N1003", "flat", "kind=sign_axpy,nan", true},
    {"vector", "N1003", "flat", "kind=clamp,nan", true},
    {"rnn", "T4B3I5H70", "ragged", "zoneout_hidden", true},
    {"rnn", "T7B5I6H9", "ragged", "act=sigmoid", true},
};

/* Layers that are tried with products in each narrower type; in inference, those of one layer also in int8. */
static const struct plain low_precision[] = {
    {"lstm", "T7B5I6H9", "ragged", "", true},
    {"lstm", "T7B5I6H9", "ragged", "initial,final", true},
    {"lstm", "T7B5I6H9", "ragged", "backward,initial,final", true},
    {"lstm", "T7B5I6H9D2", "ragged", "", true},
    {"lstm", "T7B5I6H9D2", "ragged", "merge=sum,no_bias", true},
    {"lstm", "T7B5I6H9L2", "uniform", "", true},
    {"lstm", "T9B17I7H64", "ragged", "final,no_output", true},
    {"lstm", "T4B35I33H41", "ragged", "recurrent_dropout,zoneout_hidden,peephole", true},
    {"lstm", "T4B19I8H30P12", "ragged", "layer_norm", true},
    {"lstm", "T4B19I8H30", "ragged", "coupled_gates,weight_drop", true},
    {"gru", "T4B19I8H30", "ragged", "", true},
    {"gru", "T7B5I6H9", "ragged", "reset_after", true},
    {"rnn", "T7B5I6H9", "ragged", "", true},
    {"dense", "R9I5O7", "flat", "", true},
    {"dense", "R70I33O17", "flat", "no_bias", true},
    {"dense", "R400I40O340", "flat", "", true},
    {"dense", "R6I70O9", "flat", "act=elu", true},
    {"dense_loss", "R9I5O7", "flat", "kind=cross_entropy", true},
    {"dense_loss", "R40I33O20", "flat", "kind=mse,row_weight", true},
    {"dense_loss", "R20I17O1030", "flat", "kind=cross_entropy,smoothing", true},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *cell_name(char letter)
{
    return letter == 'l' ? "lstm" : letter == 'g' ? "gru" : "rnn";
}

static void emit_as(const char *dtype, sl_catalogue_fn *fn, void *context, enum sl_level level, const char *op,
                    const char *pass, const char *sizes, const char *extra, const char *lengths, const char *options)
{
    char text[SL_CASE_TEXT_BYTES];
    sl_text_snprintf(text, sizeof text, "%s:%s:%s%s:%s:%s%s%s", op, pass, sizes, extra, dtype, lengths,
                     options[0] ? ":" : "", options);
    fn(context, level, text);
}

static void emit(sl_catalogue_fn *fn, void *context, enum sl_level level, const char *op, const char *pass,
                 const char *sizes, const char *extra, const char *lengths, const char *options)
{
    emit_as("f32", fn, context, level, op, pass, sizes, extra, lengths, options);
}

static bool has_word(const char *options, const char *word)
{
    return strstr(options, word) != NULL;
}

/* Is a recurrent variation tried in a pass? */
static bool fits(const struct variation *v, const char *pass)
{
    bool states = has_word(v->options, "initial,final");
    if (strcmp(pass, "ranges") == 0)
        return states && !has_word(v->options, "backward") && !has_word(v->extra, "D2");
    if (strcmp(pass, "inf") == 0)
        return !has_word(v->options, "no_d");
    if (strcmp(pass, "fd") == 0) /* difference quotients at kinks are useless */
        return !has_word(v->options, "saturated") && !has_word(v->options, "thresholded");
    return true;
}

static void each_recurrent(enum sl_level level, const char *pass, bool all_shapes, size_t stride, sl_catalogue_fn *fn,
                           void *context)
{
    for (size_t i = 0; i < COUNT(variations); i += stride) {
        const struct variation *v = &variations[i];
        if (!fits(v, pass))
            continue;
        for (const char *cell = v->cells; *cell; cell++) {
            size_t shapes = all_shapes || (i == 0 && stride == 1) ? COUNT(recurrent_shapes) : 1;
            for (size_t s = 0; s < shapes; s++) {
                const struct shape *shape = &recurrent_shapes[s];
                bool twice = v->extra[0] && (strchr(shape->sizes, 'L') || strchr(shape->sizes, 'D'));
                if (!twice)
                    emit(fn, context, level, cell_name(*cell), pass, shape->sizes, v->extra, shape->lengths,
                         v->options);
            }
        }
    }
}

static void each_large(enum sl_level level, const char *pass, bool full, sl_catalogue_fn *fn, void *context)
{
    for (size_t s = 0; s < COUNT(large_shapes) + (full ? COUNT(larger_shapes) : 0); s++) {
        const struct shape *shape =
            s < COUNT(large_shapes) ? &large_shapes[s] : &larger_shapes[s - COUNT(large_shapes)];
        for (size_t i = 0; i < COUNT(large_options); i++)
            emit(fn, context, level, "lstm", pass, shape->sizes, "", shape->lengths, large_options[i]);
        emit(fn, context, level, "gru", pass, shape->sizes, "", shape->lengths, "reset_after");
        emit(fn, context, level, "rnn", pass, shape->sizes, "", shape->lengths, "");
        emit(fn, context, level, "lstm", pass, shape->sizes, "D2", shape->lengths, "");
    }
}

static bool is_forward_only(const char *op)
{
    static const char *const ops[] = {"top_k", "finite_check", "squared_norm", "optimizer", "vector"};
    for (size_t i = 0; i < COUNT(ops); i++)
        if (strcmp(op, ops[i]) == 0)
            return true;
    return false;
}

static void each_plain(enum sl_level level, const char *pass, bool backward, bool full, size_t stride,
                       sl_catalogue_fn *fn, void *context)
{
    for (size_t i = 0; i < COUNT(plains); i += stride) {
        const struct plain *p = &plains[i];
        /* neither a step function nor NaN has useful difference quotients */
        bool has_quotients = strcmp(p->op, "cast") != 0 && !has_word(p->options, "nan");
        if ((p->quick || full) && !(backward && is_forward_only(p->op)) && (has_quotients || strcmp(pass, "fd") != 0))
            emit(fn, context, level, p->op, pass, p->sizes, "", p->lengths, p->options);
    }
}

/* Operations of which the random numbers depend on the step. */
static void each_drawn(enum sl_level level, sl_catalogue_fn *fn, void *context)
{
    for (size_t i = 0; i < COUNT(plains); i++) {
        const struct plain *p = &plains[i];
        bool draws = strcmp(p->op, "dropout") == 0 || has_word(p->options, "kind=sample");
        if (p->quick && draws && strcmp(p->lengths, "ragged") == 0 && !has_word(p->options, "on_sequences"))
            emit(fn, context, level, p->op, "ranges", p->sizes, "", p->lengths, p->options);
    }
}

static void each_low(enum sl_level level, const char *pass, sl_catalogue_fn *fn, void *context)
{
    static const char *const dtypes[] = {"f32-bf16", "f32-tf32", "f32-f16"};
    for (size_t i = 0; i < COUNT(low_precision); i++) {
        const struct plain *p = &low_precision[i];
        for (size_t k = 0; k < COUNT(dtypes); k++)
            emit_as(dtypes[k], fn, context, level, p->op, pass, p->sizes, "", p->lengths, p->options);
        if (strcmp(pass, "inf") == 0 && strncmp(p->op, "dense", 5) != 0 && !strchr(p->sizes, 'L'))
            emit_as("f32-i8", fn, context, level, p->op, pass, p->sizes, "", p->lengths, p->options);
    }
}

/* Large enough that many pages may stay untouched. */
static const struct {
    const char *op, *options;
} idle_cells[] = {
    {"lstm", ""}, {"lstm", "backward"}, {"gru", "reset_after"}, {"gru", "reset_after,backward"}, {"rnn", ""}};

void sl_catalogue_each(enum sl_level level, bool full, sl_catalogue_fn *fn, void *context)
{
    switch (level) {
    case SL_LEVEL_CLAIMS:
        each_recurrent(level, "claim", false, 1, fn, context);
        each_plain(level, "claim", false, full, 1, fn, context);
        each_low(level, "claim", fn, context);
        break;
    case SL_LEVEL_FORWARD:
        each_recurrent(level, "inf", full, 1, fn, context);
        each_plain(level, "inf", false, full, 1, fn, context);
        each_large(level, "inf", full, fn, context);
        each_low(level, "inf", fn, context);
        each_recurrent(level, "same", false, full ? 1 : 5, fn, context);
        break;
    case SL_LEVEL_BACKWARD:
        each_recurrent(level, "bwd", full, 1, fn, context);
        each_plain(level, "bwd", true, full, 1, fn, context);
        each_large(level, "bwd", full, fn, context);
        each_low(level, "bwd", fn, context);
        each_recurrent(level, "ranges", full, 1, fn, context);
        each_drawn(level, fn, context);
        each_recurrent(level, "fd", false, 1, fn, context);
        each_plain(level, "fd", true, false, 1, fn, context);
        break;
    case SL_LEVEL_MEMORY:
        for (size_t i = 0; i < COUNT(idle_cells); i++) {
            static const char *const dtypes[] = {"f32", "f32-bf16"}, *const lengths[] = {"uniform", "ragged"};
            for (size_t k = 0; k < COUNT(dtypes) * COUNT(lengths); k++)
                emit_as(dtypes[k / COUNT(lengths)], fn, context, level, idle_cells[i].op, "idle", "T24B64I16H256", "",
                        lengths[k % COUNT(lengths)], idle_cells[i].options);
        }
        each_recurrent(level, "memory", false, full ? 1 : 4, fn, context);
        each_plain(level, "memory", false, full, full ? 1 : 4, fn, context);
        each_recurrent(level, "repeat", false, full ? 1 : 3, fn, context);
        each_plain(level, "repeat", false, full, full ? 1 : 3, fn, context);
        break;
    case SL_LEVEL_THREADS:
        each_recurrent(level, "threads", full, full ? 1 : 4, fn, context);
        if (full)
            each_large(level, "threads", false, fn, context);
        each_plain(level, "threads", false, full, full ? 1 : 4, fn, context);
        each_recurrent(level, "alternate", false, full ? 1 : 6, fn, context);
        each_plain(level, "alternate", false, full, full ? 1 : 8, fn, context);
        break;
    default:
        break;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What cuda-cudnn accepts: rules over descriptors, which need neither device nor library. Here it refuses what cuDNN
 * has no parameter for. What cuDNN itself refuses (some shapes under some algorithms) is refused when the operation is
 * created. */
#include <stdio.h>
#include <string.h>

#include <seqlstm/desc_check.h>

#include "common/answer.h"
#include "plugin.h"

static const struct {
    const char *name;
    cudnnRNNAlgo_t algorithm;
} algorithms[] = {{"standard", CUDNN_RNN_ALGO_STANDARD},
                  {"persist_static", CUDNN_RNN_ALGO_PERSIST_STATIC},
                  {"persist_dynamic", CUDNN_RNN_ALGO_PERSIST_DYNAMIC},
                  {"small_h", CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H}};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };
static const char layers_suffix[] = "_layers";

const char *cdn_algorithm_get_name(cudnnRNNAlgo_t algorithm)
{
    int k = 0;
    while (k + 1 < ALGORITHMS && algorithms[k].algorithm != algorithm)
        k++;
    return algorithms[k].name;
}

/* Parses the algorithm at the beginning of the text, and moves the text past it. */
static bool take_algorithm(const char **text, cudnnRNNAlgo_t *out_algorithm)
{
    for (int k = 0; k < ALGORITHMS; k++) {
        const size_t length = strlen(algorithms[k].name);
        if (strncmp(*text, algorithms[k].name, length) != 0)
            continue;
        *text += length;
        *out_algorithm = algorithms[k].algorithm;
        return true;
    }
    return false;
}

bool cdn_variant_find(const char *name, struct cdn_variant *out_variant)
{
    struct cdn_variant v;
    if (!take_algorithm(&name, &v.forward))
        return false;
    v.backward = v.forward;
    if (*name == '+') {
        name++;
        if (!take_algorithm(&name, &v.backward))
            return false;
    }
    v.layers = strcmp(name, layers_suffix) == 0;
    if (!v.layers && *name != '\0')
        return false;
    *out_variant = v;
    return true;
}

static bool refuse(struct seqlstm_answer *answer, uint32_t code, uint32_t option, const char *value, const char *reason,
                   const char *hint)
{
    return answer_no(answer, code, option, reason, hint, "%s", value);
}

/* ---- rules ------------------------------------------------------------------------------------------------------ */

static bool accept_dtypes(const struct seqlstm_desc *d, struct seqlstm_answer *answer)
{
    if (!answer_float32_edges(answer, CDN_ID, d))
        return false;
    const bool narrow = d->dtype_compute == SEQLSTM_DTYPE_FLOAT16 || d->dtype_compute == SEQLSTM_DTYPE_BFLOAT16;
    if (d->dtype_compute == SEQLSTM_DTYPE_FLOAT32 || d->dtype_compute == SEQLSTM_DTYPE_TF32 || (narrow && GPU_KERNELS))
        return true;
    return refuse(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, answer_dtype_name(d->dtype_compute),
                  narrow ? "this build of cuda-cudnn cannot convert to 16 bits: it was built without nvcc"
                         : "cuDNN's recurrent networks compute in float32, tf32, float16 or bfloat16",
                  narrow ? "a build with nvcc, or precision: tf32" : "precision: float32");
}

static bool accept_activations(const struct seqlstm_recurrent_desc *d, struct seqlstm_answer *answer)
{
    const int directions = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    for (int k = 0; k < directions; k++) {
        const uint32_t gate = d->activations[SEQLSTM_PLACE_GATE][k].kind;
        const uint32_t candidate = d->activations[SEQLSTM_PLACE_CANDIDATE][k].kind;
        const uint32_t output = d->activations[SEQLSTM_PLACE_OUTPUT][k].kind;
        const bool rnn = d->cell == SEQLSTM_CELL_RNN;
        if (candidate != SEQLSTM_ACT_TANH && !(rnn && candidate == SEQLSTM_ACT_RELU))
            return refuse(
                answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_ACTIVATION, answer_activation_name(candidate),
                rnn ? "cuDNN's simple RNN supports only tanh and relu" : "cuDNN's cells support no activation but tanh",
                "activation: tanh");
        if (candidate != d->activations[SEQLSTM_PLACE_CANDIDATE][0].kind)
            return refuse(answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_ACTIVATION,
                          answer_activation_name(candidate), "cuDNN uses the same activation in both directions",
                          "the same activation in both directions");
        if (!rnn && gate != SEQLSTM_ACT_SIGMOID)
            return refuse(answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_RECURRENT_ACTIVATION,
                          answer_activation_name(gate), "cuDNN's gates are always sigmoids",
                          "recurrent_activation: sigmoid");
        if (d->cell == SEQLSTM_CELL_LSTM && output != SEQLSTM_ACT_TANH)
            return refuse(answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_OUTPUT_ACTIVATION,
                          answer_activation_name(output), "cuDNN's LSTM supports no output activation but tanh",
                          "output_activation: tanh");
    }
    return true;
}

/* Refuses options for which cuDNN has no parameter. Masks exist only in training. */
static bool accept_options(const struct seqlstm_recurrent_desc *d, struct seqlstm_answer *answer)
{
    const bool training = d->head.mode == SEQLSTM_MODE_TRAINING;
    const uint32_t o = d->options;
    const struct {
        bool on;
        uint32_t option;
        float rate; /* the value; 0: a flag */
        const char *reason, *hint;
    } rules[] = {
        {o & SEQLSTM_BIT_RECURRENT_PEEPHOLE, SEQLSTM_OPTION_PEEPHOLE, 0, "cuDNN's LSTM has no peepholes", ""},
        {o & SEQLSTM_BIT_RECURRENT_COUPLED_GATES, SEQLSTM_OPTION_COUPLED_GATES, 0, "cuDNN's LSTM has no coupled gates",
         ""},
        {o & SEQLSTM_BIT_RECURRENT_LAYER_NORM, SEQLSTM_OPTION_LAYER_NORM, 0,
         "cuDNN's cells have no layer normalisation", ""},
        {d->cell == SEQLSTM_CELL_GRU && !(o & SEQLSTM_BIT_RECURRENT_RESET_AFTER), SEQLSTM_OPTION_RESET_AFTER, 0,
         "cuDNN's GRU always resets after the product", "reset_after: true"},
        {o & SEQLSTM_BIT_RECURRENT_STEPWISE, SEQLSTM_OPTION_LENGTHS, 0,
         "cuDNN computes the weight gradients of each segment from the reserve of that segment", ""},
        {d->gate_clip > 0, SEQLSTM_OPTION_GATE_CLIP, d->gate_clip, "cuDNN clips the cell, not the gates", "cell_clip"},
        {d->zoneout_cell > 0, SEQLSTM_OPTION_ZONEOUT, d->zoneout_cell, "cuDNN has no zoneout", ""},
        {d->zoneout_hidden > 0, SEQLSTM_OPTION_ZONEOUT, d->zoneout_hidden, "cuDNN has no zoneout", ""},
        {training && d->recurrent_dropout > 0, SEQLSTM_OPTION_RECURRENT_DROPOUT, d->recurrent_dropout,
         "cuDNN has no masks on the recurrent input", ""},
        {training && d->weight_drop > 0, SEQLSTM_OPTION_WEIGHT_DROP, d->weight_drop,
         "cuDNN has no masks on the recurrent weights", ""},
        {training && d->dropout > 0, SEQLSTM_OPTION_DROPOUT, d->dropout,
         "cuDNN draws its own masks: for each step, and only between layers", "a dropout layer before this one"},
    };
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        char text[SEQLSTM_DESC_NUMBER_BYTES];
        if (!rules[k].on)
            continue;
        return refuse(answer, SEQLSTM_BIT_REFUSED_OPTION, rules[k].option,
                      rules[k].rate > 0 ? seqlstm_desc_number((double)rules[k].rate, text) : "", rules[k].reason,
                      rules[k].hint);
    }
    return true;
}

static bool accept_form(const struct seqlstm_recurrent_desc *d, struct seqlstm_answer *answer)
{
    static const char *const merges[] = {"concat", "sum", "mul", "ave"};
    const int64_t sizes[] = {d->input, d->hidden, d->head.max_sequences, d->head.max_steps, d->head.max_rows};
    if (d->head.flags & SEQLSTM_BIT_DESC_DETERMINISTIC)
        return refuse(answer, SEQLSTM_BIT_REFUSED_DETERMINISM, SEQLSTM_OPTION_DETERMINISM, "true",
                      "cuDNN does not guarantee that repeated calls of its recurrent networks give the same bits", "");
    if (d->direction == SEQLSTM_DIRECTION_BACKWARD)
        return refuse(answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_DIRECTION, "backward",
                      "cuDNN runs forward or in both directions", "direction: bidirectional");
    if (d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL && d->merge != SEQLSTM_KIND_MERGE_CONCAT)
        return refuse(answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_MERGE, merges[d->merge],
                      "cuDNN always concatenates the two directions", "merge: concat");
    if (d->projection >= d->hidden) { /* to cuDNN, a projection to as many units as the layer has means none */
        char text[SEQLSTM_DESC_NUMBER_BYTES];
        snprintf(text, sizeof text, "%lld", (long long)d->projection);
        return refuse(answer, SEQLSTM_BIT_REFUSED_SHAPE, SEQLSTM_OPTION_PROJECTION, text,
                      "cuDNN projects only to fewer units than the layer has", "a projection smaller than units");
    }
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (sizes[k] > INT32_MAX / 8)
            return refuse(answer, SEQLSTM_BIT_REFUSED_SHAPE, SEQLSTM_OPTION_SHAPE, "",
                          "cuDNN counts in 32 bits: sizes and rows of a batch must be below 2^28", "");
    return true;
}

/* ---- variants --------------------------------------------------------------------------------------------------- */

static void offer(struct seqlstm_answer *answer, int algorithm, bool back_standard, bool layers)
{
    snprintf(answer->variants[answer->variant_count++], sizeof answer->variants[0], "%s%s%s",
             algorithms[algorithm].name, back_standard ? "+standard" : "", layers ? layers_suffix : "");
}

/* Does the algorithm have kernels for this hidden size, with `back` for backward too? cuDNN's plain RNN has one matrix
 * where the LSTM has four. */
static bool fits(const struct seqlstm_recurrent_desc *d, int algorithm, bool back)
{
    const int64_t most = back ? 128 : 192;
    return algorithms[algorithm].algorithm != CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H ||
           d->hidden <= (d->cell == SEQLSTM_CELL_RNN ? 2 * most : most);
}

/* Algorithms that keep the recurrent weights on the chip need equal lengths and support no projection. In training each
 * of them may leave backward to the standard algorithm; pair.c finds out whether that works. */
static void offer_variants(const struct seqlstm_recurrent_desc *d, struct seqlstm_answer *answer)
{
    const bool training = d->head.mode == SEQLSTM_MODE_TRAINING;
    const bool persist = (d->head.flags & SEQLSTM_BIT_DESC_UNIFORM) && d->projection == 0;
    for (int cut = 0; cut < (d->layers > 1 ? 2 : 1); cut++) {
        offer(answer, 0, false, cut == 1);
        for (int k = 1; persist && k < ALGORITHMS; k++)
            if (fits(d, k, training))
                offer(answer, k, false, cut == 1);
        for (int k = 1; persist && training && k < ALGORITHMS; k++)
            if (fits(d, k, false))
                offer(answer, k, true, cut == 1);
    }
}

seqlstm_status cdn_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                            struct seqlstm_error *err)
{
    union seqlstm_any_desc copy;
    const struct seqlstm_recurrent_desc *d = &copy.recurrent;
    const int32_t capability = gpu_parse_class(device_class);
    (void)err;
    if (capability < GPU_CAPABILITY_MIN) {
        refuse(answer, SEQLSTM_BIT_REFUSED_DEVICE, SEQLSTM_OPTION_NONE, device_class,
               capability == 0 ? "cuda-cudnn runs on CUDA devices only" : "cuDNN 9 does not support a device this old",
               "");
        return SEQLSTM_OK;
    }
    if (!seqlstm_desc_check(desc, answer))
        return SEQLSTM_OK;
    if (desc->op != SEQLSTM_OP_RECURRENT) {
        refuse(answer, SEQLSTM_BIT_REFUSED_OPERATION, SEQLSTM_OPTION_NONE, "", "cuda-cudnn runs only recurrent layers",
               "cuda-generic has the other operations");
        return SEQLSTM_OK;
    }
    seqlstm_desc_copy(desc, &copy);
    if (!accept_dtypes(&copy.head, answer) || !accept_options(d, answer) || !accept_activations(d, answer) ||
        !accept_form(d, answer))
        return SEQLSTM_OK;
    answer->accepted = 1;
    offer_variants(d, answer);
    return SEQLSTM_OK;
}

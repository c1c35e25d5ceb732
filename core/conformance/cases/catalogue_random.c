/* SPDX-License-Identifier: Apache-2.0 */
/* Random cases: combinations of options and sizes that are in no list. Each depends only on seed and index, and its
 * string reproduces it without them. */
#include <string.h>

#include <seqlstm/philox.h>

#include "base/value/text.h"
#include "judge/case.h"
#include "conformance/cases/catalogue.h"

struct random {
    uint64_t key, counter;
};

static uint32_t below(struct random *r, uint32_t count)
{
    return (uint32_t)(seqlstm_uniform(r->key, r->counter++, 0, 0) * (float)count);
}

/* Small sizes often, sizes around vector widths sometimes. */
static uint32_t size(struct random *r)
{
    static const uint32_t sizes[] = {1,  1,  2,  3,  4,  5,  6,  7,  8,  9,  12, 15, 16,
                                     17, 20, 24, 31, 32, 33, 40, 48, 63, 64, 65, 80, 97};
    uint32_t most = below(r, 4) == 0 ? sizeof sizes / sizeof *sizes : 14;
    return sizes[below(r, most)];
}

static void append(char *text, const char *option)
{
    size_t used = strlen(text);
    sl_text_snprintf(text + used, SL_CASE_TEXT_BYTES - used, "%s%s", used ? "," : "", option);
}

static const char *pick_activation(struct random *r, bool gate)
{
    static const char *const names[] = {"tanh",           "sigmoid", "relu",     "leaky_relu",
                                        "leaky_relu/0.2", "elu",     "softsign", "scaled_tanh",
                                        "affine",         "linear",  "softplus", "hard_sigmoid"};
    static const char *const gates[] = {"sigmoid", "hard_sigmoid", "tanh", "softsign"};
    return gate ? gates[below(r, 4)] : names[below(r, 12)];
}

static void add_options(struct random *r, const char *cell, char *options)
{
    static const char *const any[] = {
        "no_bias", "dropout", "recurrent_dropout", "zoneout_hidden",       "weight_drop", "gate_clip",
        "stream",  "no_dx",   "dropout=0.5",       "recurrent_dropout=0.1"};
    static const char *const lstm[] = {"peephole",     "coupled_gates", "layer_norm", "cell_clip",
                                       "zoneout_cell", "cell_clip=1",   "gate_clip=2"};
    static const char *const states[] = {"",      "initial,final",   "initial,final",       "initial",
                                         "final", "final,no_output", "initial,final,no_dy", "initial,final,no_dstate"};
    static const char *const places[] = {"act", "act2", "out_act", "out_act2", "gate_act", "gate_act2"};
    char option[64];
    const char *state = states[below(r, 8)];
    if (*state)
        append(options, state);
    for (uint32_t i = below(r, 4); i > 0; i--)
        append(options, any[below(r, sizeof any / sizeof *any)]);
    bool is_lstm = strcmp(cell, "lstm") == 0;
    for (uint32_t i = is_lstm ? below(r, 4) : 0; i > 0; i--)
        append(options, lstm[below(r, sizeof lstm / sizeof *lstm)]);
    if (strcmp(cell, "gru") == 0 && below(r, 2))
        append(options, below(r, 4) == 0 ? "reset_after,layer_norm" : "reset_after");
    if (strcmp(cell, "rnn") == 0 && below(r, 5) == 0)
        append(options, "layer_norm");
    if (below(r, 8) == 0) { /* large weights with unbounded activations would overflow */
        append(options, "saturated");
        return;
    }
    for (uint32_t i = below(r, 3); i > 0; i--) {
        uint32_t place = below(r, is_lstm ? 6 : strcmp(cell, "rnn") == 0 ? 2 : 6);
        if (!is_lstm && (place == 2 || place == 3))
            continue;
        sl_text_snprintf(option, sizeof option, "%s=%s", places[place], pick_activation(r, place >= 4));
        append(options, option);
    }
}

void sl_catalogue_random(uint64_t seed, uint64_t index, char out_text[SL_CASE_TEXT_BYTES])
{
    static const char *const cells[] = {"lstm", "lstm", "gru", "rnn"};
    static const char *const passes[] = {"bwd",    "bwd",     "bwd",  "inf",    "ranges",
                                         "repeat", "threads", "same", "memory", "alternate"};
    static const char *const lengths[] = {"ragged", "ragged", "ragged", "uniform", "ones", "long"};
    static const char *const merges[] = {"concat", "sum", "mul", "ave"};
    struct sl_case parsed;
    struct random r = {seqlstm_mix64(seed, index, UINT64_C(0xCA5E)), 0};
    do {
        char options[SL_CASE_TEXT_BYTES] = "", extra[48] = "";
        const char *cell = cells[below(&r, 4)], *pass = passes[below(&r, 10)];
        bool ranges = strcmp(pass, "ranges") == 0;
        if (ranges)
            append(options, "initial,final");
        else
            add_options(&r, cell, options);
        if (ranges && below(&r, 2))
            append(options, "recurrent_dropout,dropout,zoneout_hidden,stream");
        if (below(&r, 5) == 0)
            append(options, "stepwise");
        if (below(&r, 4) == 0)
            sl_text_snprintf(extra, sizeof extra, "L%u", 2 + below(&r, 2));
        if (!ranges && below(&r, 3) == 0) {
            sl_text_snprintf(extra + strlen(extra), sizeof extra - strlen(extra), "D2");
            char merge[32];
            sl_text_snprintf(merge, sizeof merge, "merge=%s", merges[below(&r, 4)]);
            append(options, merge);
        } else if (!ranges && below(&r, 6) == 0) {
            append(options, "backward");
        }
        if (strcmp(cell, "lstm") == 0 && below(&r, 5) == 0)
            sl_text_snprintf(extra + strlen(extra), sizeof extra - strlen(extra), "P%u", size(&r));
        sl_text_snprintf(out_text, SL_CASE_TEXT_BYTES, "%s:%s:T%uB%uI%uH%u%s:f32:%s%s%s", cell, pass,
                         (ranges ? 3 : 1) + below(&r, 12), size(&r), size(&r), size(&r), extra, lengths[below(&r, 6)],
                         options[0] ? ":" : "", options);
    } while (sl_case_parse(out_text, &parsed, NULL) != SEQLSTM_OK);
}

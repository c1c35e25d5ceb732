/* SPDX-License-Identifier: Apache-2.0 */
/* Whether final states fit the layers that start from them.
 *
 * Sub-layer l takes those of sub-layer l. Two directions hand theirs side by side to one, and one by one to two.
 */
#include "model/read/sections.h"

struct check {
    struct sl_reader *reader;
    struct sl_layer *giver;
    const struct sl_layer *layer;
    struct sl_place place; /* of `initial_state`, or of the layer */
};

static int64_t get_directions(const struct sl_recurrent *r)
{
    return r->direction == SL_DIRECTION_BIDIRECTIONAL ? 2 : 1;
}

static int64_t get_width(const struct sl_recurrent *r)
{
    return r->projection > 0 ? r->projection : r->units;
}

/* The width of the states that one (layer, direction) gets. */
static int64_t get_given(const struct check *c, int64_t width)
{
    const struct sl_recurrent *from = &c->giver->recurrent, *to = &c->layer->recurrent;
    bool joined = get_directions(from) > get_directions(to) && to->initial_state.bridge != SL_BRIDGE_SUM;
    return joined ? 2 * width : width;
}

static void report(const struct check *c, const char *help, const char *what, int64_t given, int64_t wanted)
{
    sl_reader_report(c->reader, "E0321", c->place, help, NULL, "the %s of %s has %lld features, and %s takes %lld",
                     what, c->giver->name, (long long)given, c->layer->name, (long long)wanted);
}

/* States that are copied or added keep their kind and width. */
static void check_widths(const struct check *c)
{
    const struct sl_recurrent *from = &c->giver->recurrent, *to = &c->layer->recurrent;
    int64_t h = get_given(c, get_width(from)), cell = get_given(c, from->units);
    if ((c->giver->kind == SL_LAYER_LSTM) != (c->layer->kind == SL_LAYER_LSTM)) {
        sl_reader_report(c->reader, "E0321", c->place, "use `bridge: dense`", NULL,
                         "%s cannot start from %s: one of them has no cell state", c->layer->name, c->giver->name);
        return;
    }
    bool sum_fits = get_directions(from) == 2 && get_directions(to) == 1 && get_width(from) == get_width(to) &&
                    to->initial_state.bridge == SL_BRIDGE_COPY;
    const char *help = sum_fits ? "use `initial_state: {from: …, bridge: sum}`, or `bridge: dense`"
                                : "use `initial_state: {from: …, bridge: dense}`, or make the widths equal";
    if (h != get_width(to))
        report(c, help, "state", h, get_width(to));
    else if (c->layer->kind == SL_LAYER_LSTM && cell != to->units)
        report(c, help, "cell state", cell, to->units);
}

static void check_pair(const struct check *c)
{
    const struct sl_recurrent *to = &c->layer->recurrent;
    enum sl_bridge bridge = to->initial_state.bridge;
    if (!sl_layer_is_recurrent(c->giver)) {
        if (c->giver->output_shape == SL_SHAPE_SEQUENCE)
            sl_reader_report(c->reader, "E0321", c->place, "name a recurrent layer, or add a `pool` after it", NULL,
                             "%s has no states, and gives one vector for each step", c->giver->name);
        else if (bridge != SL_BRIDGE_DENSE)
            sl_reader_report(c->reader, "E0321", c->place, "use `bridge: dense`", NULL,
                             "%s has no states: a learned layer must turn its vector into states of %s", c->giver->name,
                             c->layer->name);
        return;
    }
    const struct sl_recurrent *from = &c->giver->recurrent;
    if (from->layers != to->layers) {
        sl_reader_report(c->reader, "E0321", c->place,
                         "give both the same number of `layers`, or use `initial_state: none`", NULL,
                         "%s has %lld layer%s, and %s, which starts from %s states, has %lld", c->giver->name,
                         (long long)from->layers, from->layers == 1 ? "" : "s", c->layer->name,
                         from->layers == 1 ? "its" : "their", (long long)to->layers);
        return;
    }
    if (get_directions(from) < get_directions(to)) {
        sl_reader_report(c->reader, "E0321", c->place, NULL, NULL,
                         "%s has one direction, but %s, which starts from its states, has two", c->giver->name,
                         c->layer->name);
        return;
    }
    if (bridge == SL_BRIDGE_SUM && get_directions(from) == get_directions(to))
        sl_reader_report(c->reader, "E0321", c->place, "use `bridge: copy`", NULL,
                         "`bridge: sum` adds two directions, but both layers have the same number of them");
    else if (bridge != SL_BRIDGE_DENSE)
        check_widths(c);
}

/* A stream or a later segment continues from its own states, so it cannot start from others. */
static void check_unit(const struct check *c, const struct sl_model *model)
{
    const struct sl_batching *batching = &model->data.batching;
    if (batching->unit == SL_UNIT_STREAM || batching->bptt > 0)
        sl_reader_report(c->reader, "E0310", c->place, NULL, NULL,
                         "%s takes its first states from %s, but %s carries them from batch to batch", c->layer->name,
                         c->giver->name, batching->unit == SL_UNIT_STREAM ? "`unit: stream`" : "`bptt`");
}

void sl_model_check_states(struct sl_reader *reader, const struct sl_model *model, struct sl_layer *layers)
{
    for (size_t i = 0; i < model->layer_count; i++) {
        const struct sl_layer *layer = &layers[i];
        if (!sl_layer_is_recurrent(layer) || layer->recurrent.initial_state.layer == SL_NO_LAYER)
            continue;
        struct check c = {reader, &layers[layer->recurrent.initial_state.layer], layer,
                          sl_layer_find_option_place(layer, "initial_state")};
        if (sl_layer_is_recurrent(c.giver))
            c.giver->recurrent.gives_state = true;
        if ((int)c.giver->kind < 0 || c.giver->name == NULL || layer->name == NULL)
            continue;
        check_pair(&c);
        check_unit(&c, model);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the version of the schema and pins, and warns about cells that can grow without bound. */
#include <string.h>

#include "model/read/sections.h"

static void check_pins(struct sl_reader *reader, const struct sl_model *model)
{
    for (size_t i = 0; i < model->dispatch.pin_count; i++) {
        const struct sl_pin *pin = &model->dispatch.pins[i];
        size_t id_bytes = strcspn(pin->backend, ":");
        bool listed = model->backend_count == 0;
        for (size_t j = 0; j < model->backend_count; j++) {
            const char *id = model->backends[j].id;
            listed = listed || id == NULL || (strlen(id) == id_bytes && strncmp(id, pin->backend, id_bytes) == 0);
        }
        if (model->layer_count > 0 && sl_model_find_layer(model, pin->layer) == NULL)
            sl_reader_report(reader, "E0320", pin->place, NULL, NULL, "there is no layer `%.60s` to pin", pin->layer);
        if (!listed && pin->backend[0] != 0)
            sl_reader_report(reader, "E0320", pin->place, "add it to `backends`", NULL,
                             "`%.60s` is pinned to `%.60s`, which is not among the backends", pin->layer, pin->backend);
    }
}

static bool is_unbounded(const struct sl_activation *activation)
{
    switch (activation->kind) {
    case SL_ACTIVATION_LINEAR:
    case SL_ACTIVATION_RELU:
    case SL_ACTIVATION_LEAKY_RELU:
    case SL_ACTIVATION_THRESHOLDED_RELU:
    case SL_ACTIVATION_ELU:
    case SL_ACTIVATION_SOFTPLUS:
    case SL_ACTIVATION_AFFINE:
        return true;
    default:
        return false;
    }
}

static void warn_of_growth(struct sl_reader *reader, const struct sl_model *model)
{
    for (size_t i = 0; i < model->layer_count && reader->errors == 0; i++) {
        const struct sl_layer *layer = &model->layers[i];
        if (layer->kind != SL_LAYER_LSTM || layer->recurrent.cell_clip > 0 || layer->recurrent.gate_clip > 0 ||
            layer->recurrent.layer_norm)
            continue;
        const struct sl_recurrent *r = &layer->recurrent;
        if (is_unbounded(&r->activation[SL_FORWARD]) && is_unbounded(&r->output_activation[SL_FORWARD]))
            sl_reader_report(reader, "W0301", sl_layer_find_option_place(layer, "activation"),
                             "add `cell_clip: 10`, or keep tanh inside and put the activation after the layer", NULL,
                             "the states of %s can grow without bound with %s inside the cell", layer->name,
                             sl_activation_kind_get_name(r->activation[SL_FORWARD].kind));
    }
}

void sl_model_check_top(struct sl_reader *reader, const struct sl_node *root, const struct sl_model *model)
{
    const struct sl_node *version = sl_node_find(root, "seqlstm");
    if (version != NULL && !version->refused && !sl_node_is_null(version) && model->version != 1)
        sl_reader_report(reader, "E0301", version->place,
                         reader->saved && model->version > 1 ? "use the newer version of seqlstm that wrote this run"
                                                             : "write `seqlstm: 1`",
                         NULL, "this version of the program supports schema 1, not %s", version->text);
    struct sl_node *output = sl_node_find(root, "output");
    if (output != NULL)
        sl_reader_drop_idle(reader, output, "weight_histograms", model->output.tensorboard, "`tensorboard: true`");
    check_pins(reader, model);
    warn_of_growth(reader, model);
}

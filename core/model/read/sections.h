/* SPDX-License-Identifier: Apache-2.0 */
/* What the section files share: tables of words, value types, and the steps of reading a model. */
#ifndef SL_MODEL_READ_SECTIONS_H
#define SL_MODEL_READ_SECTIONS_H

#include "model/model.h"
#include "model/read/reader.h"

extern const struct sl_word sl_words_activation[];
extern const struct sl_word sl_words_source_type[];
extern const struct sl_word sl_words_generator[];
extern const struct sl_word sl_words_metric[];
extern const struct sl_word sl_words_task[];
extern const struct sl_custom sl_custom_activation_pair;
/* What that reads, for overlays only: an activation, or one for each direction. */
extern const struct sl_section sl_section_activation_pair;
extern const struct sl_custom sl_custom_monitor;

/* The readers of whole sections of the top level, called through its table. */
void sl_model_read_init(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field);
void sl_model_read_layers(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field);
void sl_model_read_data(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field);
void sl_model_read_backends(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node,
                            void *field);

void sl_model_read_pins(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field);
void sl_model_read_plugin_options(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node,
                                  void *entry);

/* For a key that has no effect together with other options: reports an error if the user gave it, otherwise removes its
 * default from the tree. */
void sl_reader_drop_idle(struct sl_reader *reader, struct sl_node *map, const char *key, bool active,
                         const char *needs);

void sl_model_read_train(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field);

/* ---- parts of sl_model_read_layers ---- */

/* The section `model: {encoder, decoder, embedding}`. */
struct sl_model_sides {
    const char *embedding;
};
/* Checks that `encoder` or `decoder` is a list; sl_model_read_layers reads it. */
void sl_model_read_side(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field);

/* The layers of all lists, with their nodes; the encoder's come first. */
struct sl_layer_list {
    struct sl_node *const *nodes;
    struct sl_layer *layers;
    size_t count, encoder_count;
};

/* Gives every layer a name and finds the layers that others name: from, tie_layer, share_layer, initial_state. */
void sl_model_resolve_names(struct sl_reader *reader, const struct sl_layer_list *list);
/* The layer of the encoder that `embedding` (may be NULL) names; NULL: none. */
const struct sl_layer *sl_model_find_embedding(struct sl_reader *reader, const struct sl_node *node,
                                               const struct sl_layer_list *list);
/* Finds the output of each layer, and checks that it fits its readers; sets output_shape and output_used. */
void sl_model_infer_shapes(struct sl_reader *reader, const struct sl_model *model, struct sl_layer *layers);
/* Checks that states fit the layers that start from them; sets gives_state. */
void sl_model_check_states(struct sl_reader *reader, const struct sl_model *model, struct sl_layer *layers);

/* Finds the layers that input feeding connects; sets model->feeding. */
void sl_model_find_feeding(struct sl_reader *reader, struct sl_model *model);

/* The activation of the model's output; linear if the last layer has none. */
const struct sl_activation *sl_model_get_output_activation(const struct sl_model *model);

/* Checks between sections, after everything was read. */
void sl_model_check_data(struct sl_reader *reader, struct sl_node *root, struct sl_model *model);
void sl_model_check_train(struct sl_reader *reader, struct sl_node *root, struct sl_model *model);
/* `train` is the node of the section. */
void sl_model_check_teacher(struct sl_reader *reader, struct sl_node *train, const struct sl_model *model);
void sl_model_check_decode(struct sl_reader *reader, struct sl_node *root, const struct sl_model *model);
void sl_model_check_parallel(struct sl_reader *reader, const struct sl_node *root, const struct sl_model *model);
void sl_model_check_top(struct sl_reader *reader, const struct sl_node *root, const struct sl_model *model);

/* places.c: every value of the tree that was given, sorted by its path. */
struct sl_place_list sl_places_collect(struct sl_reader *reader, const struct sl_node *node);
const struct sl_place_entry *sl_places_find(const struct sl_place_list *places, const char *path);

#endif

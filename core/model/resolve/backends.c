/* SPDX-License-Identifier: Apache-2.0 */
/* Reading `backends:`, the options of a plugin, and `dispatch.pin`. */
#include <string.h>

#include "model/read/sections.h"

void sl_model_read_pins(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    struct sl_dispatch_config *dispatch =
        (struct sl_dispatch_config *)((char *)field - offsetof(struct sl_dispatch_config, pins));
    if (node->kind != SL_NODE_MAP) {
        sl_reader_report_type(reader, option, node, "a map from layers to backends");
        return;
    }
    struct sl_pin *pins = sl_reader_alloc(reader, node->count + 1, sizeof *pins);
    if (pins == NULL)
        return;
    for (size_t i = 0; i < node->count; i++) {
        const struct sl_pair *pair = &node->pairs[i];
        if (pair->value->kind != SL_NODE_SCALAR || sl_node_is_null(pair->value))
            sl_reader_report(reader, "E0101", pair->value->place, NULL, NULL,
                             "a pin is the id of a backend, as in `%.60s: cpu-blas`", pair->key);
        pins[i] = (struct sl_pin){pair->key, pair->value->text, pair->place};
    }
    dispatch->pins = pins;
    dispatch->pin_count = node->count;
}

void sl_model_read_plugin_options(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node,
                                  void *field)
{
    struct sl_backend_entry *entry = field;
    if (node->kind != SL_NODE_MAP) {
        sl_reader_report_type(reader, option, node, "a map");
        return;
    }
    struct sl_backend_option *options = sl_reader_alloc(reader, node->count + 1, sizeof *options);
    if (options == NULL)
        return;
    for (size_t i = 0; i < node->count; i++) {
        const struct sl_pair *pair = &node->pairs[i];
        if (pair->value->kind != SL_NODE_SCALAR)
            sl_reader_report(reader, "E0101", pair->value->place, NULL, NULL,
                             "the option `%.60s` of a plugin is a single value, not %s", pair->key,
                             sl_node_kind_get_name(pair->value->kind));
        options[i] = (struct sl_backend_option){pair->key, pair->value->text, pair->place, pair->value->place};
    }
    entry->options = options;
    entry->option_count = node->count;
}

/* Distinguishes an id from a file, and makes the file's path absolute, in the tree, too. */
static void resolve_plugin(struct sl_reader *reader, struct sl_node *node, struct sl_backend_entry *entry)
{
    struct sl_node *plugin = sl_node_find(node, "plugin");
    size_t length = entry->id ? strlen(entry->id) : 0;
    if (plugin == NULL || entry->id == NULL)
        return;
    if (strchr(entry->id, '/') != NULL) {
        const char *path = sl_reader_resolve_path(reader, plugin, true);
        if (path != NULL)
            entry->file = plugin->text = path;
        entry->id = NULL;
        return;
    }
    if (length > 3 && strcmp(entry->id + length - 3, ".so") == 0)
        sl_reader_report(reader, "E0103", plugin->place,
                         sl_reader_printf(reader, "a file is written with a slash, as in `./%s`", entry->id), NULL,
                         "`%s` is not the id of a backend", entry->id);
}

static bool same_text(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

void sl_model_read_backends(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    struct sl_model *model = field;
    if (node->kind != SL_NODE_LIST || node->count == 0) {
        sl_reader_report(reader, "E0101", node->place, "remove the key to load every backend that is found", NULL,
                         "`%s` takes a list of backends, not %s", option->key,
                         node->kind == SL_NODE_LIST ? "an empty one" : sl_node_kind_get_name(node->kind));
        return;
    }
    struct sl_backend_entry *entries = sl_reader_alloc(reader, node->count, sizeof *entries);
    if (entries == NULL)
        return;
    for (size_t i = 0; i < node->count && !reader->no_memory; i++) {
        sl_reader_read_section(reader, &sl_section_backend, node->items[i], &entries[i]);
        entries[i].place = node->items[i]->place;
        resolve_plugin(reader, node->items[i], &entries[i]);
        for (size_t j = 0; j < i; j++)
            if (same_text(entries[i].id, entries[j].id) || same_text(entries[i].file, entries[j].file))
                sl_reader_report(reader, "E0207", entries[i].place, NULL, NULL, "the backend `%s` is listed twice",
                                 entries[i].id ? entries[i].id : entries[i].file);
    }
    model->backends = entries;
    model->backend_count = node->count;
}

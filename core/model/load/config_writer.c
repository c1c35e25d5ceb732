/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the effective configuration as YAML in block style, from the tree that the reader has completed. */
#include <string.h>

#include "base/value/buf.h"
#include "base/value/text.h"
#include "model/yaml/doc.h"
#include "model/model.h"

enum { ORIGIN_COLUMN = 48 };

struct writing {
    struct sl_buf *out;
    unsigned flags;
    size_t line_start; /* where the current line begins in `out` */
};

static bool is_shown(const struct writing *w, const struct sl_node *node)
{
    return !(w->flags & SL_CONFIG_MINIMAL) || !node->is_default;
}

/* Whether a plain scalar of these characters reads back as itself, in a flow list too. */
static bool is_plain_safe(const char *text)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.+-";
    if (text[0] == 0 || strspn(text, safe) != strlen(text))
        return false;
    return strcmp(text, "-") != 0 && strncmp(text, "---", 3) != 0 && strncmp(text, "...", 3) != 0;
}

static void append_quoted(struct sl_buf *out, const char *text)
{
    sl_buf_append_char(out, '"');
    for (const char *p = text; *p != 0; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            sl_buf_printf(out, "\\%c", c);
        else if (c == '\t')
            sl_buf_append_text(out, "\\t");
        else if (c == '\n')
            sl_buf_append_text(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            sl_buf_printf(out, "\\x%02X", c);
        else if (c == 0xc2 && (unsigned char)p[1] >= 0x80 && (unsigned char)p[1] < 0xa0)
            sl_buf_printf(out, "\\x%02X", (unsigned char)*++p);
        else if (memcmp(p, "\xe2\x80\xa8", strnlen(p, 3)) == 0 && strnlen(p, 3) == 3)
            sl_buf_append_text(out, "\\L"), p += 2;
        else if (memcmp(p, "\xe2\x80\xa9", strnlen(p, 3)) == 0 && strnlen(p, 3) == 3)
            sl_buf_append_text(out, "\\P"), p += 2;
        else if (memcmp(p, "\xef\xbb\xbf", strnlen(p, 3)) == 0 && strnlen(p, 3) == 3)
            sl_buf_append_text(out, "\\uFEFF"), p += 2;
        else
            sl_buf_append_char(out, (char)c);
    }
    sl_buf_append_char(out, '"');
}

static bool is_null_word(const char *text)
{
    return strcmp(text, "~") == 0 || strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 ||
           strcmp(text, "NULL") == 0;
}

static void append_scalar(struct sl_buf *out, const struct sl_node *node)
{
    if (!node->quoted && (node->text[0] == 0 || is_null_word(node->text)))
        sl_buf_append_char(out, '~');
    else if (!node->quoted && is_plain_safe(node->text))
        sl_buf_append_text(out, node->text);
    else
        append_quoted(out, node->text);
}

/* A key is always text, whatever it looks like. */
static void append_key(struct sl_buf *out, const char *key)
{
    if (is_plain_safe(key) && !is_null_word(key))
        sl_buf_append_text(out, key);
    else
        append_quoted(out, key);
}

static void begin_line(struct writing *w, int indent)
{
    w->line_start = w->out->length_bytes;
    sl_buf_fill(w->out, ' ', (size_t)indent);
}

/* Ends the line of a value, with its origin. */
static void end_line(struct writing *w, const struct sl_node *node)
{
    if (w->flags & SL_CONFIG_ORIGIN) {
        size_t length = w->out->length_bytes - w->line_start;
        sl_buf_fill(w->out, ' ', length < ORIGIN_COLUMN ? ORIGIN_COLUMN - length : 1);
        if (node->is_default || node->place.line == 0)
            sl_buf_append_text(w->out, "# default");
        else if (strncmp(node->place.file, "--", 2) == 0 || strncmp(node->place.file, "SEQLSTM_", 8) == 0)
            sl_buf_printf(w->out, "# %s", node->place.file);
        else
            sl_buf_printf(w->out, "# %s:%d", node->place.file, node->place.line);
    }
    sl_buf_append_char(w->out, '\n');
}

static bool is_flat_list(const struct sl_node *node)
{
    if (node->kind != SL_NODE_LIST)
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (node->items[i]->kind != SL_NODE_SCALAR)
            return false;
    return true;
}

static size_t count_shown(const struct writing *w, const struct sl_node *map)
{
    size_t shown = 0;
    for (size_t i = 0; i < map->count; i++)
        shown += is_shown(w, map->pairs[i].value);
    return shown;
}

static void write_pairs(struct writing *w, const struct sl_node *map, int indent, bool in_item);
static void write_items(struct writing *w, const struct sl_node *list, int indent);

/* The value after `key:`: on the same line, or below it. */
static void write_value(struct writing *w, const struct sl_node *node, int indent)
{
    if (node->kind == SL_NODE_SCALAR) {
        sl_buf_append_char(w->out, ' ');
        append_scalar(w->out, node);
        end_line(w, node);
    } else if (is_flat_list(node)) {
        sl_buf_append_text(w->out, " [");
        for (size_t i = 0; i < node->count; i++) {
            sl_buf_append_text(w->out, i ? ", " : "");
            append_scalar(w->out, node->items[i]);
        }
        sl_buf_append_char(w->out, ']');
        end_line(w, node);
    } else if (node->kind == SL_NODE_MAP && count_shown(w, node) == 0) {
        sl_buf_append_text(w->out, " {}");
        end_line(w, node);
    } else {
        sl_buf_append_char(w->out, '\n');
        if (node->kind == SL_NODE_MAP)
            write_pairs(w, node, indent + 2, false);
        else
            write_items(w, node, indent);
    }
}

/* The pairs of a map; the first one of a list item follows its `- `. */
static void write_pairs(struct writing *w, const struct sl_node *map, int indent, bool in_item)
{
    for (size_t i = 0; i < map->count; i++) {
        if (!is_shown(w, map->pairs[i].value))
            continue;
        if (!in_item)
            begin_line(w, indent);
        in_item = false;
        append_key(w->out, map->pairs[i].key);
        sl_buf_append_char(w->out, ':');
        write_value(w, map->pairs[i].value, indent);
    }
}

static void write_items(struct writing *w, const struct sl_node *list, int indent)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct sl_node *item = list->items[i];
        begin_line(w, indent);
        sl_buf_append_char(w->out, '-');
        if (item->kind == SL_NODE_MAP && count_shown(w, item) > 0) {
            sl_buf_append_char(w->out, ' ');
            write_pairs(w, item, indent + 2, true);
        } else {
            write_value(w, item, indent + 2);
        }
    }
}

seqlstm_status sl_model_write_config(const struct sl_model *model, unsigned flags, struct sl_buf *out,
                                     struct seqlstm_error *err)
{
    struct writing w = {out, flags, out->length_bytes};
    write_pairs(&w, model->document, 0, false);
    if (out->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the configuration");
    return SEQLSTM_OK;
}

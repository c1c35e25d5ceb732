/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a tree from the events of libyaml. The first error ends the reading of a file: after broken YAML, everything
 * else would be a guess. */
#include "model/yaml/doc.h"

#include <string.h>

#include <yaml.h>

#include "base/memory/arena.h"
#include "base/value/text.h"
#include "model/yaml/diagnostics.h"

struct anchor {
    const char *name;
    struct sl_node *node;
    bool open; /* still being read: an alias to it would contain itself */
    struct anchor *next;
};

struct reading {
    struct sl_arena *arena;
    struct sl_diagnostics *diagnostics;
    const char *file, *folder;
    const char *text;
    size_t text_bytes;
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; deleted before the next */
    struct anchor *anchors;
    size_t nodes;
    bool broken; /* an error was reported */
    bool no_memory;
};

static struct sl_place place_of(const struct reading *r, yaml_mark_t start, yaml_mark_t end)
{
    struct sl_place place = {r->file, (int)start.line + 1, (int)start.column + 1, 1};
    if (end.line == start.line && end.column > start.column)
        place.length = (int)(end.column - start.column);
    else if (end.line > start.line)
        place.length = 1000; /* to the end of its first line: cut when shown */
    return place;
}

static void fail(struct reading *r, const char *code, struct sl_place place, const char *message, const char *help)
{
    if (!r->broken && !r->no_memory) {
        struct sl_diagnostic finding = {.code = code, .place = place, .message = message, .help = help};
        sl_diagnostics_add(r->diagnostics, &finding);
    }
    r->broken = true;
}

static void *need(struct reading *r, void *memory)
{
    if (memory == NULL)
        r->no_memory = true;
    return memory;
}

/* The place of a byte of the text. */
static struct sl_place place_of_byte(const struct reading *r, size_t offset)
{
    struct sl_place place = {r->file, 1, 1, 1};
    for (size_t i = 0; i < offset && i < r->text_bytes; i++) {
        unsigned char c = (unsigned char)r->text[i];
        if (c == '\n') {
            place.line++;
            place.column = 1;
        } else if ((c & 0xc0) != 0x80) {
            place.column++;
        }
    }
    return place;
}

/* Marks count characters, and an indentation is ASCII. */
static bool is_tab(const struct reading *r, yaml_mark_t mark)
{
    const char *at = r->text, *end = r->text + r->text_bytes;
    for (size_t line = 0; line < mark.line && at; line++) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (at)
            at++;
    }
    return at && mark.column < (size_t)(end - at) && at[mark.column] == '\t';
}

static void report_parser_error(struct reading *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR) {
        r->no_memory = true;
        return;
    }
    const char *problem = p->problem ? p->problem : "cannot be read as YAML";
    char message[256], help[256] = "";
    struct sl_place place;
    if (p->error == YAML_READER_ERROR) {
        place = place_of_byte(r, p->problem_offset);
        sl_text_snprintf(message, sizeof message, "broken YAML: %s", problem);
    } else {
        place = place_of(r, p->problem_mark, p->problem_mark);
        sl_text_snprintf(message, sizeof message, "broken YAML: %s", problem);
        if (p->context != NULL)
            sl_text_snprintf(help, sizeof help, "%s that began in line %zu, column %zu", p->context,
                             p->context_mark.line + 1, p->context_mark.column + 1);
        if (is_tab(r, p->problem_mark))
            sl_text_snprintf(help, sizeof help, "this is a tab, YAML is indented by spaces");
    }
    fail(r, "E0002", place, message, help[0] ? help : NULL);
}

/* Reads the next event; false: stop. */
static bool next_event(struct reading *r)
{
    yaml_event_delete(&r->event);
    memset(&r->event, 0, sizeof r->event);
    if (r->broken || r->no_memory)
        return false;
    if (!yaml_parser_parse(&r->parser, &r->event)) {
        report_parser_error(r);
        return false;
    }
    return true;
}

static bool count_nodes(struct reading *r, size_t added, struct sl_place place)
{
    r->nodes += added;
    if (r->nodes <= SL_DOC_MAX_NODES)
        return true;
    fail(r, "E0004", place, "the file is too large: more than " SL_TEXT_OF(SL_DOC_MAX_NODES) " values, aliases counted",
         NULL);
    return false;
}

static size_t size_of_tree(const struct sl_node *node)
{
    size_t size = 1;
    for (size_t i = 0; i < node->count; i++)
        size += size_of_tree(node->kind == SL_NODE_MAP ? node->pairs[i].value : node->items[i]);
    return size;
}

static bool check_tag(struct reading *r, const yaml_char_t *tag)
{
    if (tag == NULL)
        return true;
    char message[160];
    sl_text_snprintf(message, sizeof message, "the tag `%.60s` is not allowed", (const char *)tag);
    fail(r, "E0005", place_of(r, r->event.start_mark, r->event.start_mark), message,
         "remove it: the key decides how its value is read");
    return false;
}

static struct anchor *add_anchor(struct reading *r, const yaml_char_t *name, struct sl_node *node)
{
    if (name == NULL)
        return NULL;
    struct anchor *anchor = need(r, SL_ARENA_NEW(r->arena, struct anchor));
    if (anchor == NULL)
        return NULL;
    anchor->name = need(r, sl_arena_strdup(r->arena, (const char *)name));
    anchor->node = node;
    anchor->open = true;
    anchor->next = r->anchors;
    if (anchor->name != NULL)
        r->anchors = anchor;
    return anchor;
}

static int depth_of_tree(const struct sl_node *node)
{
    int deepest = 0;
    for (size_t i = 0; i < node->count; i++) {
        int depth = depth_of_tree(node->kind == SL_NODE_MAP ? node->pairs[i].value : node->items[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

static void fail_depth(struct reading *r, struct sl_place place)
{
    fail(r, "E0004", place, "lists and maps are nested more than " SL_TEXT_OF(SL_DOC_MAX_DEPTH) " deep", NULL);
}

static struct sl_node *read_alias(struct reading *r, int depth)
{
    const char *name = (const char *)r->event.data.alias.anchor;
    struct sl_place place = place_of(r, r->event.start_mark, r->event.end_mark);
    const struct anchor *anchor = r->anchors;
    while (anchor != NULL && strcmp(anchor->name, name) != 0)
        anchor = anchor->next;
    if (anchor == NULL || anchor->open) {
        char message[160];
        sl_text_snprintf(message, sizeof message,
                         anchor ? "the alias `*%.60s` contains itself" : "the alias `*%.60s` has no anchor before it",
                         name);
        fail(r, "E0006", place, message, NULL);
        return NULL;
    }
    if (depth - 1 + depth_of_tree(anchor->node) > SL_DOC_MAX_DEPTH) {
        fail_depth(r, place);
        return NULL;
    }
    if (!count_nodes(r, size_of_tree(anchor->node), place))
        return NULL;
    return need(r, sl_node_copy(r->arena, anchor->node));
}

static struct sl_node *read_scalar(struct reading *r)
{
    struct sl_place place = place_of(r, r->event.start_mark, r->event.end_mark);
    const char *text = (const char *)r->event.data.scalar.value;
    size_t length = r->event.data.scalar.length;
    if (!check_tag(r, r->event.data.scalar.tag))
        return NULL;
    if (memchr(text, 0, length) != NULL) {
        fail(r, "E0003", place, "a string must not contain the NUL character", NULL);
        return NULL;
    }
    struct sl_node *node = need(r, sl_node_create_scalar(r->arena, place, r->folder, text));
    if (node == NULL)
        return NULL;
    node->quoted = r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    struct anchor *anchor = add_anchor(r, r->event.data.scalar.anchor, node);
    if (anchor != NULL)
        anchor->open = false;
    return node;
}

static struct sl_node *read_node(struct reading *r, int depth);

static struct sl_node *read_list(struct reading *r, int depth)
{
    struct sl_place place = place_of(r, r->event.start_mark, r->event.start_mark);
    if (!check_tag(r, r->event.data.sequence_start.tag))
        return NULL;
    struct sl_node *list = need(r, sl_node_create(r->arena, SL_NODE_LIST, place, r->folder));
    if (list == NULL)
        return NULL;
    struct anchor *anchor = add_anchor(r, r->event.data.sequence_start.anchor, list);
    while (next_event(r) && r->event.type != YAML_SEQUENCE_END_EVENT) {
        struct sl_node *item = read_node(r, depth + 1);
        if (item == NULL)
            return NULL;
        if (!sl_node_append_item(r->arena, list, item))
            r->no_memory = true;
    }
    if (anchor != NULL)
        anchor->open = false;
    return r->broken || r->no_memory ? NULL : list;
}

/* Copies the keys of `from` that `map` lacks, as `<<` does. */
static bool merge_map(struct reading *r, struct sl_node *map, const struct sl_node *from)
{
    if (from->kind == SL_NODE_LIST) {
        for (size_t i = 0; i < from->count; i++)
            if (!merge_map(r, map, from->items[i]))
                return false;
        return true;
    }
    if (from->kind != SL_NODE_MAP) {
        fail(r, "E0007", from->place, "`<<` takes a map, or a list of maps", NULL);
        return false;
    }
    for (size_t i = 0; i < from->count; i++) {
        const struct sl_pair *pair = &from->pairs[i];
        if (sl_node_find(map, pair->key) != NULL)
            continue;
        if (!sl_node_append_pair(r->arena, map, pair->key, pair->place, sl_node_copy(r->arena, pair->value))) {
            r->no_memory = true;
            return false;
        }
    }
    return true;
}

static bool check_key(struct reading *r, const struct sl_node *map, const char *key, struct sl_place place)
{
    const struct sl_pair *before = sl_node_find_pair(map, key);
    if (before != NULL) {
        char message[200], help[200];
        sl_text_snprintf(message, sizeof message, "the key `%.80s` appears twice", key);
        sl_text_snprintf(help, sizeof help, "it is already in line %d: keep one of the two", before->place.line);
        struct sl_diagnostic finding = {.code = "E0201", .place = place, .message = message, .help = help};
        sl_diagnostics_add(r->diagnostics, &finding);
        return false;
    }
    if (map->count >= SL_DOC_MAX_KEYS) {
        fail(r, "E0004", place, "a map has more than " SL_TEXT_OF(SL_DOC_MAX_KEYS) " keys", NULL);
        return false;
    }
    return true;
}

static struct sl_node *read_map(struct reading *r, int depth)
{
    struct sl_place place = place_of(r, r->event.start_mark, r->event.start_mark);
    if (!check_tag(r, r->event.data.mapping_start.tag))
        return NULL;
    struct sl_node *map = need(r, sl_node_create(r->arena, SL_NODE_MAP, place, r->folder));
    struct sl_node *merged = need(r, sl_node_create(r->arena, SL_NODE_LIST, place, r->folder)); /* values of `<<` */
    if (map == NULL || merged == NULL)
        return NULL;
    bool flow = r->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
    struct anchor *anchor = add_anchor(r, r->event.data.mapping_start.anchor, map);
    while (next_event(r) && r->event.type != YAML_MAPPING_END_EVENT) {
        if (r->event.type != YAML_SCALAR_EVENT) {
            fail(r, "E0008", place_of(r, r->event.start_mark, r->event.start_mark), "a key must be a single word",
                 NULL);
            return NULL;
        }
        const struct sl_node *key = read_node(r, depth + 1);
        if (key == NULL)
            return NULL;
        if (map->count == 0 && !flow)
            map->place.length = key->place.length;
        if (!next_event(r))
            return NULL;
        struct sl_node *value = read_node(r, depth + 1);
        if (value == NULL)
            return NULL;
        bool merge = strcmp(key->text, "<<") == 0 && !key->quoted;
        bool stored = merge ? sl_node_append_item(r->arena, merged, value)
                      : !check_key(r, map, key->text, key->place)
                          ? true
                          : sl_node_append_pair(r->arena, map, key->text, key->place, value);
        if (!stored)
            r->no_memory = true;
    }
    for (size_t i = 0; i < merged->count && !r->broken && !r->no_memory; i++)
        merge_map(r, map, merged->items[i]);
    if (anchor != NULL)
        anchor->open = false;
    return r->broken || r->no_memory ? NULL : map;
}

/* Reads the node that the current event begins; NULL after an error. */
static struct sl_node *read_node(struct reading *r, int depth)
{
    struct sl_place place = place_of(r, r->event.start_mark, r->event.start_mark);
    if (depth > SL_DOC_MAX_DEPTH) {
        fail_depth(r, place);
        return NULL;
    }
    if (r->event.type == YAML_ALIAS_EVENT)
        return read_alias(r, depth);
    if (!count_nodes(r, 1, place))
        return NULL;
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(r);
    case YAML_SEQUENCE_START_EVENT:
        return read_list(r, depth);
    case YAML_MAPPING_START_EVENT:
        return read_map(r, depth);
    default:
        fail(r, "E0002", place, "broken YAML: a value is missing", NULL);
        return NULL;
    }
}

static struct sl_node *read_document(struct reading *r)
{
    struct sl_place start = {r->file, 0, 0, 0};
    if (!next_event(r) || !next_event(r)) /* STREAM-START, then DOCUMENT-START or STREAM-END */
        return NULL;
    if (r->event.type == YAML_STREAM_END_EVENT) {
        fail(r, "E0001", start, "the file is empty", "`seqlstm new model KIND` writes one to start from");
        return NULL;
    }
    if (!next_event(r))
        return NULL;
    struct sl_node *root = read_node(r, 1);
    if (root == NULL || !next_event(r) || !next_event(r)) /* DOCUMENT-END, then what follows */
        return NULL;
    if (r->event.type != YAML_STREAM_END_EVENT)
        fail(r, "E0002", place_of(r, r->event.start_mark, r->event.start_mark),
             "a file has one document, but a second one begins here", NULL);
    return r->broken ? NULL : root;
}

seqlstm_status sl_doc_parse(struct sl_arena *arena, const char *file, const char *folder, const char *text,
                            size_t text_bytes, struct sl_diagnostics *diagnostics, struct sl_node **out,
                            struct seqlstm_error *err)
{
    if (text_bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) { /* a byte order mark, as editors on Windows write */
        text += 3;
        text_bytes -= 3;
    }
    struct reading r = {.arena = arena,
                        .diagnostics = diagnostics,
                        .file = file,
                        .folder = folder,
                        .text = text,
                        .text_bytes = text_bytes};
    size_t bad;
    *out = NULL;
    sl_diagnostics_add_file(diagnostics, file, text, text_bytes);
    if (!sl_text_is_utf8(text, text_bytes, &bad)) {
        fail(&r, "E0003", place_of_byte(&r, bad), "this is not UTF-8", "save the file with the encoding UTF-8");
        return SEQLSTM_OK;
    }
    if (!yaml_parser_initialize(&r.parser))
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to read %s", file);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, text_bytes);
    struct sl_node *root = read_document(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    if (r.no_memory)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to read %s", file);
    *out = root;
    return SEQLSTM_OK;
}

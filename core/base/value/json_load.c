/* SPDX-License-Identifier: Apache-2.0 */
/* sl_json_load of json_tree.h.
 *
 * The scanner of jansson collects a token in a buffer that doubles, and takes no notice where it cannot: the byte is
 * lost, and behind a string that lacks its last quote it reads and writes on. So the text comes to it in parts. A byte
 * for which the buffer must grow is a part of its own: before it comes whether there is room for that, after it whether
 * there was. If not, the text ends there, which the scanner never takes for the end of a string.
 */
#include "base/value/json_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_ROOM = 16, /* of the buffer */
    CHARACTER = 4    /* so many bytes at most are read before the first of them is collected */
};

enum token { TOKEN_NONE, TOKEN_WORD, TOKEN_STRING };

struct source {
    const char *text;
    size_t bytes, at;
    enum token token; /* that is being collected */
    bool escaped;     /* the byte before was a backslash */
    size_t used, room;
    int alone; /* so many bytes more are parts of their own */
    bool failed;
};

static bool ends_word(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n' || byte == '{' || byte == '}' || byte == '[' ||
           byte == ']' || byte == ':' || byte == ',';
}

/* The scanner takes a byte. The one behind a number or a word is collected with it first. */
static void collect(struct source *s, char byte)
{
    s->used = s->token == TOKEN_NONE ? 1 : s->used + 1;
    if (s->token == TOKEN_STRING) {
        s->token = byte == '"' && !s->escaped ? TOKEN_NONE : TOKEN_STRING;
        s->escaped = byte == '\\' && !s->escaped;
    } else if (byte == '"') {
        s->token = TOKEN_STRING;
        s->used = 1;
    } else {
        s->token = ends_word(byte) ? TOKEN_NONE : TOKEN_WORD;
    }
}

static bool has_room(size_t bytes)
{
    void *volatile block = malloc(bytes); /* volatile: a block of no use would be left out */
    const bool there = block != NULL;
    free(block);
    return there;
}

static size_t give(void *buffer, size_t most, void *context)
{
    struct source *s = context;
    size_t count = 0;
    s->failed = s->failed || errno == ENOMEM;
    while (!s->failed && count < most && s->at < s->bytes) {
        const bool grows = s->token != TOKEN_NONE && s->used + 1 == s->room;
        if (grows && count > 0)
            break;
        if (grows && !has_room(2 * s->room)) {
            s->failed = true;
            break;
        }
        collect(s, s->text[s->at]);
        ((char *)buffer)[count++] = s->text[s->at++];
        if (grows) {
            s->room *= 2;
            s->alone = CHARACTER;
        }
        if (s->alone > 0) {
            s->alone--;
            break;
        }
    }
    return count;
}

json_t *sl_json_load(const char *text, size_t bytes, size_t flags, json_error_t *why, bool *out_no_memory)
{
    struct source source = {.text = text, .bytes = bytes, .room = FIRST_ROOM};
    const int before = errno;
    errno = 0;
    json_t *root = json_load_callback(give, &source, flags, why);
    if (source.failed) { /* a number may lack digits */
        json_decref(root);
        root = NULL;
    }
    *out_no_memory = root == NULL && (source.failed || errno == ENOMEM);
    errno = before;
    return root;
}

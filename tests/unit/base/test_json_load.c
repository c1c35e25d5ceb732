/* SPDX-License-Identifier: Apache-2.0 */
/* JSON is read as jansson reads it, wherever a token of the text comes to an end of its buffer; and where an allocation
 * fails it is not read at all, and the text is not to blame. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/value/json_tree.h"
#include "oom.h"

#define FULL "12345678901234" /* whose last quote is the byte for which the buffer must grow */
#define LONG FULL FULL FULL FULL

/* What is repeated in a token, and what stands around it, so that its length goes over 16, 32 and 64 byte by byte. */
static const struct {
    const char *before, *part, *behind;
} tokens[] = {
    {"[\"", "a", "\"]"},
    {"[\"", "a", "\", \"" FULL "\"]"},
    {"[\"\\\"", "a", "\", 1]"},
    {"[\"", "\\n", "\"]"},
    {"[\"x", "\\\\", "\", \"" FULL "\"]"},
    {"[\"", "\\u00e4", "\"]"},
    {"[\"x", "\xc3\xa4", "\"]"},
    {"[\"", "\xe2\x82\xac", "\" ]"},
    {"[\"xyz", "\xf0\x9f\x98\x80", "\"]"},
    {"{\"", "k", "\": 1}"},
    {"{\"key\": \"", "v", "\"\n}"},
    {"[\"" FULL "\", \"", "b", "\", \"" LONG "\"]"},
    {"[0.", "3", "]"},
    {"[0.", "3", ",\"" LONG "\"]"},
    {"[", "1, ", "\"" FULL "\"]"},
    {"[1", "0", "e1]"},
    {"[1234567890123456", "", "\t]"},
    {"[", "[", "\"" FULL "\""},
    {"", "1", ""},
    /* these are no JSON */
    {"[\"", "a", ""},
    {"[\"", "a", "\\\""},
    {"[\"", "a", "\n\"]"},
    {"[\"", "a", "\xff\"]"},
    {"[t", "e", "\"" FULL "\"]"},
    {"[1", "0", "\"" FULL "\"]"},
    {"{\"a\": 1, \"a\": \"", "b", "\"}"},
};
enum {
    TOKENS = sizeof tokens / sizeof *tokens,
    PARTS = 70,
    TEXT_BYTES = 2000,
    FLAGS = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY
};

static size_t write_text(char text[TEXT_BYTES], int token, int parts)
{
    size_t bytes = (size_t)snprintf(text, TEXT_BYTES, "%s", tokens[token].before);
    for (int k = 0; k < parts; k++)
        bytes += (size_t)snprintf(text + bytes, TEXT_BYTES - bytes, "%s", tokens[token].part);
    return bytes + (size_t)snprintf(text + bytes, TEXT_BYTES - bytes, "%s", tokens[token].behind);
}

static void every_text_is_read_as_by_jansson(void **state)
{
    (void)state;
    for (int token = 0; token < TOKENS; token++)
        for (int parts = 0; parts <= PARTS; parts++) {
            char text[TEXT_BYTES];
            bool no_memory = true;
            json_error_t why = {.line = 0}, other = why;
            const size_t bytes = write_text(text, token, parts);
            errno = ERANGE;
            json_t *root = sl_json_load(text, bytes, FLAGS, &why, &no_memory);
            assert_int_equal(errno, ERANGE);
            json_t *expected = json_loadb(text, bytes, FLAGS, &other);
            assert_false(no_memory);
            if ((root == NULL) != (expected == NULL) || (root && !json_equal(root, expected)))
                fail_msg("%s is read as something else", text);
            if (!root && (strcmp(why.text, other.text) != 0 || why.line != other.line || why.column != other.column ||
                          why.position != other.position))
                fail_msg("%s: %s, %d:%d, not %s, %d:%d", text, why.text, why.line, why.column, other.text, other.line,
                         other.column);
            json_decref(root);
            json_decref(expected);
        }
}

/* The end of memory is none of a string: what is behind it is not read. */
static void without_memory_nothing_is_read(void **state)
{
    (void)state;
    static void (*const fail[])(int) = {oom_fail_at, oom_fail_from};
    for (int token = 0; token < TOKENS; token++)
        for (int parts = 0; parts <= PARTS; parts++)
            for (int how = 0; how < 2; how++) {
                char text[TEXT_BYTES];
                json_error_t why;
                const size_t bytes = write_text(text, token, parts);
                bool no_memory = false, plain;
                json_t *root = sl_json_load(text, bytes, FLAGS, &why, &plain);
                const bool fine = root != NULL;
                json_decref(root);
                for (int n = 1;; n++) {
                    fail[how](n);
                    root = sl_json_load(text, bytes, FLAGS, &why, &no_memory);
                    const bool failed = oom_disarm();
                    json_decref(root);
                    if (!failed)
                        break;
                    if (root || (fine && !no_memory))
                        fail_msg("%s without allocation %d: %s", text, n, root ? "read" : why.text);
                }
                assert_true(fine == (root != NULL) && !no_memory);
            }
}

/* ---- the room is taken by another thread ------------------------------------------------------------------------- */

static size_t missing; /* no block of so many bytes is there */

static void *allocate(size_t bytes)
{
    if (bytes != missing)
        return malloc(bytes);
    errno = ENOMEM;
    return NULL;
}

static void room_that_was_there_and_is_gone_is_noticed(void **state)
{
    (void)state;
    static const char *const characters[] = {"a", "\\t", "\\u00e4", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    json_malloc_t before;
    json_free_t release;
    json_get_alloc_funcs(&before, &release);
    json_set_alloc_funcs(allocate, release);
    for (size_t k = 0; k < sizeof characters / sizeof *characters; k++)
        for (size_t first = 1; first <= 6; first++) /* characters begin at other places of the buffer */
            for (size_t more = 0; more <= 6; more++)
                for (missing = 32; missing <= 128; missing *= 2) {
                    char text[TEXT_BYTES];
                    size_t bytes = (size_t)snprintf(text, sizeof text, "[\"%.*s", (int)first, "xxxxxx");
                    while (bytes - 1 < missing / 2 + more)
                        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "%s", characters[k]);
                    bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "\"]");
                    bool no_memory = false;
                    assert_null(sl_json_load(text, bytes, 0, NULL, &no_memory));
                    assert_true(no_memory);
                }
    json_set_alloc_funcs(before, release);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_text_is_read_as_by_jansson),
        cmocka_unit_test(without_memory_nothing_is_read),
        cmocka_unit_test(room_that_was_there_and_is_gone_is_noticed),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Columns count characters: what is wrong in a line has the same place whatever letters are before it, and carets are
 * below it. */
#include "oom.h"
#include "model_fixture.h"

#include <stdio.h>

#include "base/value/text.h"

/* Of one to four bytes. The last one is wider than others, and so are the blanks before carets. */
static const char *const letters[] = {"a", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
enum { LETTERS = sizeof letters / sizeof *letters };

/* `@` stands for a letter. What is wrong comes behind. */
static const char *const lines[] = {
    "name: {x: '@@@', x: 1}",             /* twice */
    "'@@@@@@@@@@': 1",                    /* an unknown key; carets below it as a whole */
    "data: {type: '@@@', train: 3}",      /* values */
    "seed: ['@@', '@@@@']",               /* a list */
    "data: {type: csv, '@': '@@', b",     /* ends early */
    "# @@@ comment\nname: '@@' trailing", /* broken YAML */
    "name: '@@\xff'",                     /* bytes that are no text */
    "name: @@@\xc3 (",
    "name: '@@\x01'",     /* a control character */
    "name: \"@@@@ \\q\"", /* an escape that there is not */
    "model: [{type: lstm, activation: '@@@@@@@@@@@@', units: many}]",
    "model: [{type: lstm, '@@@@@@@@@@@@': 1, return_sequence: 5}]",
    "train: {optimizer: {'@@@@@@@@@@': adam, type: '@@@@@@@@@@@'}}",
};

/* The line with this letter. */
static void fill(char *out, const char *line, const char *letter)
{
    for (; *line; line++)
        out += sprintf(out, "%.*s", *line == '@' ? 4 : 1, *line == '@' ? letter : line);
    *out = '\0';
}

/* All places "m.yaml:2:14" of what is printed, and for each line of carets how many characters are before them. */
static void list_places(const char *text, bool carets, char *out, size_t capacity_bytes)
{
    int bytes = 0;
    *out = '\0';
    for (const char *at = text; (at = strstr(at, "m.yaml:")) != NULL; at++)
        bytes += snprintf(out + bytes, capacity_bytes - (size_t)bytes, "%.*s ", (int)strcspn(at, "\n"), at);
    for (const char *at = text; carets && at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        const size_t before = strcspn(at, "^\n"), bar = strcspn(at, "|");
        if (at[before] == '^' && bar < before)
            bytes += snprintf(out + bytes, capacity_bytes - (size_t)bytes, "^%d+%d ", (int)(before - bar),
                              (int)strspn(at + before, "^"));
    }
}

static void places_do_not_depend_on_letters(void **state)
{
    (void)state;
    int shown = 0;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        char text[512], places[LETTERS][1024];
        for (int l = 0; l < LETTERS; l++) {
            fill(text, lines[k], letters[l]);
            struct loaded loaded = load(text);
            assert_null(loaded.model);
            list_places(sl_buf_text(&loaded.text), l < LETTERS - 1, places[l], sizeof places[l]);
            const size_t compared = l < LETTERS - 1 ? sizeof places[0] : strcspn(places[0], "^");
            if (strncmp(places[l], places[0], compared) != 0)
                fail_msg("%s\n  %s, with `a` instead\n  %s", sl_buf_text(&loaded.text), places[l], places[0]);
            shown += strchr(places[l], ':') != NULL;
            unload(&loaded);
        }
    }
    assert_int_equal(shown, LETTERS * sizeof lines / sizeof *lines); /* each has at least one place */
}

/* Behind many characters the line is cut, and carets stay below what is wrong. */
static void carets_of_long_lines(void **state)
{
    (void)state;
    for (int before = 1; before < 300; before += 7) {
        char text[1024] = "name: {";
        for (int k = 0; k < before; k++)
            strcat(text, k % 10 == 0 ? "'" : k % 10 == 9 ? "'," : "x");
        strcat(text, before % 10 ? "'}\nsedd: 1\n" : "}\nsedd: 1\n");
        snprintf(text + strlen(text), 128, "%*ssede: 2 # %0*d\n", 0, "", before, 0);
        struct loaded l = load(text);
        const char *const printed = sl_buf_text(&l.text);
        assert_null(l.model);
        for (const char *at = printed; (at = strchr(at, '^')) != NULL; at += strspn(at, "^")) {
            const char *caret_line = at, *shown;
            while (caret_line > printed && caret_line[-1] != '\n')
                caret_line--;
            shown = caret_line - 1;
            while (shown > printed && shown[-1] != '\n')
                shown--;
            const char *under = shown + (at - caret_line);
            if (strstr(shown, "sed") && strstr(shown, "sed") < caret_line)
                assert_true(strncmp(under, "sed", 3) == 0 || strncmp(under, "name", 4) == 0);
        }
        unload(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_do_not_depend_on_letters),
        cmocka_unit_test(carets_of_long_lines),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

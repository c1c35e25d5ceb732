/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of the conformance kit: how many of which operation, pass and kind of numbers each level has, quick and
 * full, with the first and the last of them and a checksum of all. Compared with tests/fixtures/dumps/catalogue.txt;
 * see support/dump_file.h.
 */
#include "dump_file.h"
#include "oom.h"

#include "base/value/hash.h"
#include "conformance/cases/catalogue.h"

enum { GROUPS = 64, KEY_BYTES = 48 };

struct group {
    char key[KEY_BYTES], first[SL_CASE_TEXT_BYTES], last[SL_CASE_TEXT_BYTES];
    int64_t count;
    uint64_t checksum;
};

struct groups {
    struct group items[GROUPS];
    int count;
};

/* All cases with the same operation, pass and type are a group. */
static void add(void *context, enum sl_level level, const char *text)
{
    struct groups *groups = context;
    char op[16], pass[16], sizes[64], type[16], key[KEY_BYTES];
    int g = 0;
    (void)level;
    assert_int_equal(sscanf(text, "%15[^:]:%15[^:]:%63[^:]:%15[^:]", op, pass, sizes, type), 4);
    snprintf(key, sizeof key, "%s %s %s", op, pass, type);
    while (g < groups->count && strcmp(groups->items[g].key, key) != 0)
        g++;
    assert_true(g < GROUPS);
    struct group *group = &groups->items[g];
    if (g == groups->count) {
        groups->count++;
        strcpy(group->key, key);
        snprintf(group->first, sizeof group->first, "%s", text);
    }
    snprintf(group->last, sizeof group->last, "%s", text);
    group->count++;
    group->checksum = sl_crc64(group->checksum, text, strlen(text) + 1);
}

static void add_level(struct sl_buf *out, const char *title, const char *text)
{
    static struct groups groups;
    char name[32], size[32];
    memset(&groups, 0, sizeof groups);
    (void)text;
    assert_int_equal(sscanf(title, "%31s %31s", name, size), 2);
    const enum sl_level level = sl_level_find(name);
    assert_true(level != SL_LEVEL_COUNT);
    sl_catalogue_each(level, strcmp(size, "full") == 0, add, &groups);
    for (int g = 0; g < groups.count; g++) {
        const struct group *group = &groups.items[g];
        sl_buf_printf(out, "%4lld %s, %s … %s, %016llx\n", (long long)group->count, group->key, group->first,
                      group->last, (unsigned long long)group->checksum);
    }
}

static void cases_of_each_level(void **state)
{
    (void)state;
    compare_dumps("catalogue", add_level);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_of_each_level),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

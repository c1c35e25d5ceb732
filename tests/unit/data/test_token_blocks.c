/* SPDX-License-Identifier: Apache-2.0 */
/* A text through the token cache that is read and written in several blocks: the same records, tokens and counts as
 * without the cache, and a file that is found whole the next time. */
#include "data_fixture.h"

#include <dirent.h>
#include <sys/stat.h>

#include "data/dataset/dataset_private.h"

#define LARGE                                                                                                          \
    "type: text, train: {file: large.txt}, valid: {split: 0.25}, tokenizer: {type: whitespace, specials: [unk, "       \
    "eos]}, "                                                                                                          \
    "batch_size: 2"

enum { LINES = 90000 };

/* The number of the cache's only token file, which a new one would not have. */
static ino_t find_number(const char *folder)
{
    char path[512];
    struct stat status;
    ino_t number = 0;
    snprintf(path, sizeof path, "%s/tokens", folder);
    DIR *files = opendir(path);
    assert_non_null(files);
    for (struct dirent *entry; (entry = readdir(files)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        if (length < 7 || strcmp(entry->d_name + length - 7, ".tokens") != 0)
            continue;
        snprintf(path, sizeof path, "%s/tokens/%s", folder, entry->d_name);
        assert_int_equal(stat(path, &status), 0);
        number = status.st_ino;
    }
    closedir(files);
    return number;
}

static void compare(const struct data_open *plain, const struct data_open *cached)
{
    const struct sl_dataset *p = plain->train, *c = cached->train;
    const struct sl_vocabulary *ours = sl_data_state_find_vocabulary(plain->state);
    const struct sl_vocabulary *theirs = sl_data_state_find_vocabulary(cached->state);
    assert_non_null(c->token_file);
    assert_null(p->token_file);
    assert_int_equal(p->records, LINES * 3 / 4);
    assert_int_equal(c->records, p->records);
    assert_true(sl_vocabulary_is_same(ours, theirs));
    for (int32_t id = 0; id < sl_vocabulary_get_size(ours); id++)
        assert_int_equal(sl_vocabulary_get_count(ours, id), sl_vocabulary_get_count(theirs, id));
    for (int64_t r = 0; r < p->records; r++) {
        int32_t ids[16];
        assert_int_equal(c->length[r], p->length[r]);
        assert_int_equal(sl_token_file_read(c->token_file, c->start[r], c->length[r], ids, NULL), SEQLSTM_OK);
        for (int32_t t = 0; t < c->length[r]; t++)
            assert_int_equal(c->id_map[ids[t]], p->input_ids[p->start[r] + t]);
    }
}

static void a_text_of_many_blocks_is_the_same(void **state)
{
    (void)state;
    struct sl_buf text = {0};
    char folder[160];
    for (int line = 0; line < LINES; line++)
        sl_buf_printf(&text, line % 3 ? "w%d x w%d\n" : "w%d\n", line % 499, line * 7 % 1009);
    data_write_bytes("large.txt", text.data, text.length_bytes);
    sl_buf_deinit(&text);
    snprintf(folder, sizeof folder, "%s/cache", data_folder);
    struct data_open plain = data_open_train(LARGE, MODEL_LM, "task: language_model");
    setenv("SEQLSTM_CACHE", folder, 1);
    setenv("SEQLSTM_CACHE_LEAST", "0", 1);
    ino_t number = 0;
    for (int time = 0; time < 2; time++) {
        struct data_open cached = data_open_train(LARGE, MODEL_LM, "task: language_model");
        if (time == 0)
            compare(&plain, &cached);
        assert_true(time == 0 || find_number(folder) == number);
        number = find_number(folder);
        assert_true(number != 0);
        data_close(&cached);
    }
    unsetenv("SEQLSTM_CACHE_LEAST");
    unsetenv("SEQLSTM_CACHE");
    data_close(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_text_of_many_blocks_is_the_same)};
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

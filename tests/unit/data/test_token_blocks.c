/* SPDX-License-Identifier: Apache-2.0 */
/* A text through the token cache that is read and written in several blocks: the same records, tokens and counts as
 * without the cache, and a file that is found whole the next time. Of what several threads find wrong, the first in the
 * text is told. */
#include "data_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/dataset/dataset_private.h"
#include "data/read/token_cache.h"
#include "descriptors.h"
#include "oom.h"

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

enum { CHUNK = 1 << 16, CHUNKS = 8 };

static const struct sl_tokenizer words = {.type = SL_TOKENIZER_WHITESPACE, .min_count = 1};

static seqlstm_status open_cache(const char *name, int threads, int64_t chunk, struct sl_token_file **out,
                                 struct seqlstm_error *err)
{
    char text[160], folder[160];
    snprintf(text, sizeof text, "%s/%s", data_folder, name);
    snprintf(folder, sizeof folder, "%s/cache", data_folder);
    const struct sl_token_cache_request request = {
        .text_path = text, .tokenizer = &words, .folder = folder, .threads = threads, .chunk_bytes = chunk};
    return sl_token_cache_open(&request, out, err);
}

/* The first chunk's is found last, since it stands at the chunk's end, the others at the beginning of theirs. */
static void the_first_of_several_errors_is_told(void **state)
{
    (void)state;
    char *text = malloc(CHUNKS * CHUNK), expected[80];
    assert_non_null(text);
    memset(text, 'a', CHUNKS * CHUNK);
    for (int at = 63; at < CHUNKS * CHUNK; at += 64)
        text[at] = at % 1024 == 1023 ? '\n' : ' ';
    text[CHUNK - 100] = '\xFF';
    for (int chunk = 1; chunk < CHUNKS; chunk++)
        text[chunk * CHUNK + 4] = chunk % 2 ? '\xFE' : '\0';
    data_write_bytes("wrong.txt", text, CHUNKS * CHUNK);
    free(text);
    snprintf(expected, sizeof expected, "wrong.txt:%d: byte 0xff at offset %d ", CHUNK / 1024, CHUNK - 100);
    for (int time = 0; time < 60; time++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_token_file *file = NULL;
        assert_int_equal(open_cache("wrong.txt", 2 + time % 3, CHUNK, &file, &err), SEQLSTM_CORRUPT_DATA);
        assert_null(file);
        if (!strstr(err.message, expected))
            fail_msg("\"%s\", expected \"%s\" in it", err.message, expected);
    }
}

/* A write that a signal interrupts, or that writes a part, goes on where it was. */
static void interrupted_writes_go_on(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_token_file *file = NULL;
    uint64_t expected = 0;
    int interrupted = 0;
    data_write("words.txt", "one two three\nfour five\n\ntwo two one\n");
    for (int n = 0;; n++) {
        char command[200];
        if (n > 0)
            io_fail_at(n, EINTR, n % 2 ? 3 : -1);
        const seqlstm_status status = open_cache("words.txt", 1, 8, &file, &err);
        const bool fails = n > 0 && io_disarm();
        if (status == SEQLSTM_OK) {
            const uint64_t crc = sl_token_file_get_header(file)->body_crc64;
            expected = n > 0 ? expected : crc;
            assert_true(crc == expected);
            assert_int_equal(sl_token_file_get_header(file)->tokens, 8);
            sl_token_file_close(file);
            interrupted += fails;
        } else if (!fails || status != SEQLSTM_IO) { /* only what makes the file last and puts it in place may fail */
            fail_msg("call %d: %s", n, err.message);
        }
        snprintf(command, sizeof command, "rm -r '%s/cache'", data_folder);
        assert_int_equal(system(command), 0);
        if (n > 0 && !fails)
            break;
    }
    assert_true(interrupted > 10);
}

/* The n-th read is cut to one byte, ends, or fails with an error. */
enum { READS_ONE_BYTE = -2, READS_NONE = -1 };
static _Atomic int reads, read_target;
static int read_deed; /* or an error number */

ssize_t __real_pread64(int fd, void *out, size_t bytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *out, size_t bytes, off_t offset);

ssize_t __wrap_pread64(int fd, void *out, size_t bytes, off_t offset)
{
    if (atomic_fetch_add(&reads, 1) + 1 != read_target)
        return __real_pread64(fd, out, bytes, offset);
    if (read_deed == READS_ONE_BYTE)
        return __real_pread64(fd, out, 1, offset);
    errno = read_deed;
    return read_deed == READS_NONE ? 0 : -1;
}

static seqlstm_status read_all(const struct sl_token_file *file, uint64_t *out_crc, struct seqlstm_error *err)
{
    const struct sl_token_header *h = sl_token_file_get_header(file);
    int32_t ids[16];
    int64_t counts[16], lines[16];
    struct sl_intern texts;
    assert_true(h->tokens == 8 && h->lines == 4 && h->types == 5);
    sl_intern_init(&texts);
    seqlstm_status status = sl_token_file_read(file, 0, h->tokens, ids, err);
    if (status == SEQLSTM_OK)
        status = sl_token_file_read_texts(file, &texts, err);
    if (status == SEQLSTM_OK)
        status = sl_token_file_read_counts(file, counts, err);
    if (status == SEQLSTM_OK)
        status = sl_token_file_read_lines(file, 0, h->lines + 1, lines, err);
    if (status == SEQLSTM_OK) {
        assert_true(ids[7] == 1 && counts[0] == 3 && lines[4] == 8);
        assert_string_equal(sl_intern_get(&texts, 1, NULL), "one");
        *out_crc = h->body_crc64;
    }
    sl_intern_deinit(&texts);
    return status;
}

/* Made, or found, and read. */
static seqlstm_status open_and_read(int threads, uint64_t *out_crc, struct seqlstm_error *err)
{
    struct sl_token_file *file = NULL;
    seqlstm_status status = open_cache("words.txt", threads, 8, &file, err);
    assert_int_equal(file != NULL, status == SEQLSTM_OK);
    if (status == SEQLSTM_OK)
        status = read_all(file, out_crc, err);
    sl_token_file_close(file);
    return status;
}

static int count_temporaries(void)
{
    char path[200];
    int count = 0;
    snprintf(path, sizeof path, "%s/cache", data_folder);
    DIR *files = opendir(path);
    for (struct dirent *entry; files && (entry = readdir(files)) != NULL;)
        count += entry->d_name[0] != '.' && strstr(entry->d_name, ".tmp") != NULL;
    if (files)
        closedir(files);
    return count;
}

/* A read that is interrupted, or gives a part, goes on. One that fails is told with the file and the system's reason,
 * leaves nothing behind, and the next time all is there: while the cache is made, and where it is found. */
static void each_read_may_fail(void **state)
{
    (void)state;
    static const struct {
        int deed;
        const char *said; /* NULL: it succeeds */
    } deeds[] = {{EINTR, NULL},
                 {READS_ONE_BYTE, NULL},
                 {EIO, "Input/output error"},
                 {READS_NONE, "it was cut short while it was read"}};
    char command[200];
    uint64_t expected = 0, crc = 0;
    snprintf(command, sizeof command, "rm -rf '%s/cache'", data_folder);
    data_write("words.txt", "one two three\nfour five\n\ntwo two one\n");
    for (int found = 0; found < 2; found++)
        for (int threads = 1; threads <= 3; threads += 2)
            for (size_t d = 0; d < sizeof deeds / sizeof *deeds; d++)
                for (int n = 0;; n++) {
                    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                    if (!found)
                        assert_int_equal(system(command), 0);
                    const int before = descriptors_count();
                    read_deed = deeds[d].deed;
                    reads = 0;
                    read_target = n;
                    const seqlstm_status status = open_and_read(threads, &crc, &err);
                    const bool happened = n > 0 && reads >= n;
                    read_target = 0;
                    expected = expected ? expected : crc;
                    if (status != (happened && deeds[d].said ? SEQLSTM_IO : SEQLSTM_OK))
                        fail_msg("read %d, deed %d: %d, %s", n, deeds[d].deed, (int)status, err.message);
                    if (status != SEQLSTM_OK) {
                        assert_non_null(strstr(err.message, deeds[d].said));
                        assert_non_null(strstr(err.message, data_folder));
                        assert_int_equal(count_temporaries(), 0);
                        assert_int_equal(descriptors_count(), before);
                        assert_int_equal(open_and_read(threads, &crc, &err), SEQLSTM_OK);
                    }
                    assert_true(crc == expected);
                    if (n > 0 && !happened) {
                        assert_true(n > (found ? 7 : 15));
                        break;
                    }
                }
}

/* Where the cache cannot be, the text is read as it is, and the reason is told. */
static void without_a_place_for_the_cache(void **state)
{
    (void)state;
    char folder[160];
    struct sl_buf text = {0};
    for (int line = 0; line < LINES; line++)
        sl_buf_printf(&text, "a b%d\n", line % 7);
    data_write_bytes("large.txt", text.data, text.length_bytes);
    data_write("file", "no folder");
    snprintf(folder, sizeof folder, "%s/file", data_folder);
    setenv("SEQLSTM_CACHE", folder, 1);
    setenv("SEQLSTM_CACHE_LEAST", "0", 1);
    struct data_open o = data_open_train(LARGE, MODEL_LM, "task: language_model");
    unsetenv("SEQLSTM_CACHE_LEAST");
    unsetenv("SEQLSTM_CACHE");
    assert_null(o.train->token_file);
    assert_int_equal(o.train->records, LINES * 3 / 4);
    assert_non_null(sl_dataset_find_cache_problem(o.train));
    assert_non_null(strstr(sl_dataset_find_cache_problem(o.train), folder));
    data_close(&o);
    sl_buf_deinit(&text);
}

/* A change at the end of a large text that leaves its size and its time as they were. */
static void a_change_at_the_end_is_noticed(void **state)
{
    (void)state;
    enum { BYTES = 200000 };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_token_file *file = NULL;
    char *text = malloc(BYTES), path[160];
    uint64_t before = 0;
    assert_non_null(text);
    for (int at = 0; at < BYTES; at++)
        text[at] = at % 5 == 4 ? ' ' : 'a';
    snprintf(path, sizeof path, "%s/long.txt", data_folder);
    for (int time = 0; time < 2; time++) {
        const struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
        text[BYTES - 2] = time ? 'b' : 'a';
        data_write_bytes("long.txt", text, BYTES);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        assert_int_equal(open_cache("long.txt", 1, 0, &file, &err), SEQLSTM_OK);
        assert_true(sl_token_file_get_header(file)->body_crc64 != before);
        before = sl_token_file_get_header(file)->body_crc64;
        sl_token_file_close(file);
    }
    free(text);
}

/* What can be opened, but not read. */
static void a_folder_is_no_text(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_token_file *file = NULL;
    assert_int_equal(open_cache(".", 1, 0, &file, &err), SEQLSTM_IO);
    assert_int_equal(err.native_code, EISDIR);
    assert_null(file);
}

/* Training data in the cache: NO_MEMORY, or the whole. (What the C library allocates for itself never fails here.) */
static void training_data_without_memory(void **state)
{
    (void)state;
    char folder[160], command[200];
    data_write("large.txt", "a b\nc\n\nb a d\ne\n");
    struct sl_model *model = data_model(LARGE, MODEL_LM, "task: language_model");
    snprintf(folder, sizeof folder, "%s/cache", data_folder);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    setenv("SEQLSTM_CACHE", folder, 1);
    setenv("SEQLSTM_CACHE_LEAST", "0", 1);
    for (int n = 1, found = 0; found < 2; n++) { /* the file is made, then it is there */
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_dataset *train = NULL;
        struct sl_data_state *fitted = NULL;
        if (!found)
            assert_int_equal(system(command), 0);
        oom_fail_at(n);
        const seqlstm_status status = sl_dataset_open_train(model, &train, &fitted, &err);
        const bool fails = oom_disarm();
        if (status != SEQLSTM_OK && !(fails && status == SEQLSTM_NO_MEMORY))
            fail_msg("allocation %d: status %d, %s", n, (int)status, err.message);
        assert_int_equal(train != NULL, status == SEQLSTM_OK);
        sl_dataset_close(train);
        sl_data_state_destroy(fitted);
        if (!fails) {
            found++;
            n = 0;
        }
    }
    unsetenv("SEQLSTM_CACHE_LEAST");
    unsetenv("SEQLSTM_CACHE");
    sl_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_of_many_blocks_is_the_same),
        cmocka_unit_test(the_first_of_several_errors_is_told),
        cmocka_unit_test(interrupted_writes_go_on),
        cmocka_unit_test(each_read_may_fail),
        cmocka_unit_test(without_a_place_for_the_cache),
        cmocka_unit_test(a_change_at_the_end_is_noticed),
        cmocka_unit_test(a_folder_is_no_text),
        cmocka_unit_test(training_data_without_memory),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

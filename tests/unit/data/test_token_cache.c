/* SPDX-License-Identifier: Apache-2.0 */
/* Token files and their cache: the same tokens as reading the text whole, whatever the threads and the chunks; errors
 * with their place; files that are cut, damaged, foreign, out of date or made by two at once; memory that runs out and
 * disks that are full. */
#include "data_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/value/hash.h"
#include "data/dataset/dataset_private.h"
#include "data/read/raw.h"
#include "data/read/token_build.h"
#include "data/read/token_cache.h"
#include "oom.h"

#define TOKENS_LM "task: language_model"

static char text_path[160], cache_path[160];

static void name_paths(void)
{
    snprintf(text_path, sizeof text_path, "%s/text.txt", data_folder);
    snprintf(cache_path, sizeof cache_path, "%s/cache", data_folder);
    assert_int_equal(mkdir(cache_path, 0777), 0);
}

static void forget(void)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", cache_path);
    assert_int_equal(system(command), 0);
}

/* Words of several scripts, blank lines, blanks at ends, CRLF, CR alone; the last line may end or not. */
static struct sl_buf make_text(uint64_t seed, bool ends)
{
    static const char *const words[] = {"the",   "of",   "<unk>", "\xC3\xA4rger",     "\xE6\x97\xA5\xE6\x9C\xAC",
                                        "don't", "3.5,", "A",     "\xF0\x9F\x98\x80", "zebra",
                                        "x"};
    struct sl_buf text = {0};
    uint64_t state = seed;
    for (int line = 0; line < 90; line++) {
        state = sl_hash_combine(state, (uint64_t)line);
        int count = (int)(state % 9);
        for (int w = 0; w < count; w++)
            sl_buf_printf(&text, "%s%s", words[(state >> (4 * w)) % 11], (state >> w) % 7 == 0 ? "  " : " ");
        if (state % 5 == 0 && state % 11 != 3)
            sl_buf_append_char(&text, '\r');
        if (line < 89 || ends)
            sl_buf_append_char(&text, state % 11 == 3 ? '\r' : '\n');
    }
    return text;
}

static struct sl_token_file *open_cache(const struct sl_tokenizer *tokenizer, bool stream, int threads, int64_t chunk,
                                        struct seqlstm_error *err, seqlstm_status expected)
{
    struct sl_token_cache_request request = {.text_path = text_path,
                                             .tokenizer = tokenizer,
                                             .stream = stream,
                                             .folder = cache_path,
                                             .threads = threads,
                                             .chunk_bytes = chunk};
    struct sl_token_file *file = NULL;
    seqlstm_status status = sl_token_cache_open(&request, &file, err);
    if (status != expected)
        fail_msg("status %d, expected %d: %s", (int)status, (int)expected, err->message);
    return file;
}

/* Token by token what reading the whole text gives; and the lines. */
static void compare(const struct sl_model *model, const struct sl_token_file *file)
{
    struct sl_read read = {.model = model, .source = &model->data.splits[SL_SPLIT_TRAIN]};
    struct sl_raw raw;
    struct sl_intern texts;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_token_header *header = sl_token_file_get_header(file);
    sl_intern_init(&texts);
    assert_int_equal(sl_raw_read(&read, &raw, &err), SEQLSTM_OK);
    assert_null(raw.token_file); /* too small for the cache */
    assert_int_equal(header->tokens, raw.rows);
    assert_int_equal(sl_token_file_read_texts(file, &texts, &err), SEQLSTM_OK);
    assert_int_equal(texts.count, raw.tokens.count);
    int32_t *ids = calloc((size_t)raw.rows + 1, sizeof *ids);
    int64_t *counts = calloc((size_t)texts.count + 1, sizeof *counts), *begins = NULL;
    assert_int_equal(sl_token_file_read(file, 0, raw.rows, ids, &err), SEQLSTM_OK);
    assert_int_equal(sl_token_file_read_counts(file, counts, &err), SEQLSTM_OK);
    for (int64_t i = 0; i < raw.rows; i++) {
        assert_string_equal(sl_intern_get(&texts, ids[i], NULL), sl_intern_get(&raw.tokens, raw.ids[i], NULL));
        counts[ids[i]]--;
    }
    for (int32_t t = 0; t < texts.count; t++)
        assert_int_equal(counts[t], 0);
    begins = calloc((size_t)header->lines + 1, sizeof *begins);
    assert_int_equal(sl_token_file_read_lines(file, 0, header->lines + 1, begins, &err), SEQLSTM_OK);
    assert_int_equal(begins[header->lines], header->tokens);
    bool chars = model->data.tokenizer.type == SL_TOKENIZER_CHAR && model->data.batching.unit == SL_UNIT_STREAM;
    for (int64_t s = 0; !chars && s < raw.series; s++) {
        if (raw.length[s] == 0)
            continue;
        assert_int_equal(begins[raw.line[s] - 1], raw.start[s]);
        assert_int_equal(begins[raw.line[s]], raw.start[s] + raw.length[s]);
        assert_int_equal(sl_token_file_find_line(file, raw.start[s]), raw.line[s]);
    }
    free(ids);
    free(counts);
    free(begins);
    sl_intern_deinit(&texts);
    sl_raw_deinit(&raw);
}

static void test_same_tokens(void **state)
{
    (void)state;
    static const char *const tokenizers[] = {"type: whitespace, specials: [unk, bos, eos]",
                                             "type: whitespace, specials: [unk]",
                                             "type: word, lowercase: true, specials: [unk, eos]",
                                             "type: char, specials: [unk]", "type: char, specials: [unk, eos]"};
    static const int64_t chunks[] = {1, 7, 64, 0};
    for (size_t t = 0; t < 5; t++)
        for (int stream = 0; stream < 2; stream++) {
            char data[300];
            struct sl_buf text = make_text(t + 1, t % 2 == 0);
            name_paths();
            data_write("text.txt", sl_buf_text(&text));
            sl_buf_deinit(&text);
            snprintf(data, sizeof data, "type: text, train: {file: text.txt}, tokenizer: {%s}, batching: {unit: %s}",
                     tokenizers[t], stream ? "stream" : "sequence");
            struct sl_model *model = data_model(data, MODEL_LM, TOKENS_LM);
            uint64_t first = 0;
            for (size_t c = 0; c < 4; c++)
                for (int threads = 1; threads <= 4; threads += 3) {
                    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                    struct sl_token_file *file =
                        open_cache(&model->data.tokenizer, stream, threads, chunks[c], &err, SEQLSTM_OK);
                    compare(model, file);
                    uint64_t crc = sl_token_file_get_header(file)->body_crc64;
                    first = first ? first : crc;
                    assert_true(crc == first); /* the same bytes, however they were made */
                    sl_token_file_close(file);
                    forget();
                    assert_int_equal(mkdir(cache_path, 0777), 0);
                }
            sl_model_destroy(model);
            forget();
        }
}

/* A corrupt byte is found where it stands, in whatever chunk, and by its first place. */
static void test_errors_have_places(void **state)
{
    (void)state;
    static const struct sl_tokenizer words = {.type = SL_TOKENIZER_WHITESPACE, .min_count = 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    name_paths();
    data_write("text.txt", "good words\nmore\nbad \xFF byte\nand \xC0\x80 another\n");
    for (int threads = 1; threads < 5; threads++) {
        open_cache(&words, true, threads, 5, &err, SEQLSTM_CORRUPT_DATA);
        assert_non_null(strstr(err.message, "text.txt:3: byte 0xff at offset 20"));
    }
    data_write("text.txt", "one\r\ntwo\r\rthree \xFF\r\n"); /* each end of a line counts once */
    open_cache(&words, true, 2, 4, &err, SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "text.txt:4: byte 0xff at offset 16"));
    data_write_bytes("text.txt", "good \xFF then more words b\0c\n", 27);
    for (int threads = 1; threads < 5; threads++) {
        open_cache(&words, true, threads, 5, &err, SEQLSTM_CORRUPT_DATA);
        assert_non_null(strstr(err.message, "text.txt:1: byte 0xff at offset 5"));
    }
    data_write_bytes("text.txt", "a\nb\0c\n", 7);
    open_cache(&words, false, 2, 0, &err, SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "text.txt:2: a NUL byte at offset 3"));
    data_write("text.txt", "\xEF\xBB\xBF" /* places are those in the file, its mark included */
                           "a\nb \xFF\n");
    open_cache(&words, true, 2, 2, &err, SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "text.txt:2: byte 0xff at offset 7 "));
    data_write_bytes("text.txt", "\xFF\xFEq\0", 4);
    open_cache(&words, false, 2, 0, &err, SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "UTF-16"));
    data_write("text.txt", "\xEF\xBB\xBFmark\n");
    struct sl_token_file *file = open_cache(&words, true, 2, 2, &err, SEQLSTM_OK);
    assert_int_equal(sl_token_file_get_header(file)->tokens, 1);
    sl_token_file_close(file);
    forget();
}

/* The one file of the cache. */
static void find_file(char out[300])
{
    char command[300];
    snprintf(command, sizeof command, "ls '%s'/*.tokens", cache_path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(out, 300, pipe));
    pclose(pipe);
    out[strlen(out) - 1] = 0;
}

/* Every byte cut off or changed is noticed, and the file is made anew. */
static void test_damage_is_mended(void **state)
{
    (void)state;
    static const struct sl_tokenizer words = {.type = SL_TOKENIZER_WHITESPACE, .min_count = 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char path[300], *good, *again;
    size_t bytes, again_bytes;
    name_paths();
    data_write("text.txt", "to be or not to be\nthat is\n");
    sl_token_file_close(open_cache(&words, true, 1, 0, &err, SEQLSTM_OK));
    find_file(path);
    assert_int_equal(sl_file_read(path, 1 << 20, &good, &bytes, NULL), SEQLSTM_OK);
    for (size_t at = 0; at <= bytes; at++) {
        struct sl_token_file *file = NULL;
        char *bad = malloc(bytes + 1);
        memcpy(bad, good, bytes);
        if (at < bytes) /* one bit */
            bad[at] ^= (char)(1 << at % 8);
        assert_int_equal(sl_file_write(path, bad, at < bytes ? bytes : bytes - 1, NULL), SEQLSTM_OK);
        assert_int_equal(sl_token_file_open(path, true, &file, &err), SEQLSTM_CORRUPT_DATA);
        assert_int_equal(sl_file_write(path, good, at, NULL), SEQLSTM_OK);
        if (at < bytes)
            assert_int_equal(sl_token_file_open(path, true, &file, &err), SEQLSTM_CORRUPT_DATA);
        if (at % 16 == 0) {
            sl_token_file_close(open_cache(&words, true, 1, 0, &err, SEQLSTM_OK));
            assert_int_equal(sl_file_read(path, 1 << 20, &again, &again_bytes, NULL), SEQLSTM_OK);
            assert_int_equal(again_bytes, bytes);
            assert_memory_equal(again, good, bytes);
            free(again);
        }
        free(bad);
    }
    /* As it was, with bytes behind it. */
    struct sl_token_file *longer = NULL;
    char *with_more = calloc(1, bytes + 8);
    memcpy(with_more, good, bytes);
    for (size_t more = 0; more <= 8; more += more ? more : 1) {
        assert_int_equal(sl_file_write(path, with_more, bytes + more, NULL), SEQLSTM_OK);
        for (int prove = 0; prove < 2; prove++) {
            assert_int_equal(sl_token_file_open(path, prove, &longer, &err), more ? SEQLSTM_CORRUPT_DATA : SEQLSTM_OK);
            if (more)
                assert_non_null(strstr(err.message, ".tokens: the size is not what the header says"));
            else
                sl_token_file_close(longer);
        }
    }
    free(with_more);
    /* Another version, right in itself. */
    struct sl_token_header header;
    memcpy(&header, good, sizeof header);
    header.version++;
    header.header_crc64 = sl_crc64(0, &header, sizeof header - sizeof header.header_crc64);
    memcpy(good, &header, sizeof header);
    assert_int_equal(sl_file_write(path, good, bytes, NULL), SEQLSTM_OK);
    struct sl_token_file *file = NULL;
    assert_int_equal(sl_token_file_open(path, true, &file, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "another version"));
    sl_token_file_close(open_cache(&words, true, 1, 0, &err, SEQLSTM_OK));
    free(good);
    forget();
}

/* Another text at the end of cutting than at its beginning, by whatever little: an error, and no file. */
static void expect_what_was_read(void)
{
    static const struct sl_tokenizer words = {.type = SL_TOKENIZER_WHITESPACE, .min_count = 1};
    static const int64_t others[][2] = {{0, 0},  {1, 0},          {-1, 0},          {0, 1},
                                        {0, -1}, {0, 1000000000}, {0, -1000000000}, {-1, 1000000000}};
    struct stat now;
    char made[300];
    snprintf(made, sizeof made, "%s/made", data_folder);
    assert_int_equal(stat(text_path, &now), 0);
    const int64_t mtime_ns = (int64_t)now.st_mtim.tv_sec * 1000000000 + now.st_mtim.tv_nsec;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        const struct sl_token_build build = {
            .text_path = text_path,
            .tokenizer = &words,
            .stream = true,
            .threads = 1,
            .source = {.size_bytes = now.st_size + others[k][0], .mtime_ns = mtime_ns + others[k][1]}};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char expected[400];
        const seqlstm_status status = sl_token_build(&build, made, &err);
        if (k == 0) {
            assert_int_equal(status, SEQLSTM_OK);
            assert_int_equal(unlink(made), 0);
            continue;
        }
        snprintf(expected, sizeof expected, "%s: the file changed while it was read (%lld bytes then, %lld now)",
                 text_path, (long long)build.source.size_bytes, (long long)now.st_size);
        if (status != SEQLSTM_CORRUPT_DATA || strcmp(err.message, expected) != 0)
            fail_msg("%d: status %d, %s", (int)k, (int)status, err.message);
        assert_false(sl_file_exists(made));
    }
}

static void test_changes_are_noticed(void **state)
{
    (void)state;
    static const struct sl_tokenizer words = {.type = SL_TOKENIZER_WHITESPACE, .min_count = 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int32_t id;
    name_paths();
    data_write("text.txt", "a b c\n");
    struct sl_token_file *file = open_cache(&words, true, 1, 0, &err, SEQLSTM_OK);
    data_write("text.txt", "a b c d e\n");
    struct sl_token_file *other = open_cache(&words, true, 1, 0, &err, SEQLSTM_OK);
    assert_int_equal(sl_token_file_get_header(other)->tokens, 5);
    assert_int_equal(sl_token_file_get_header(file)->tokens, 3); /* a process that has the old one keeps it */
    assert_int_equal(sl_token_file_read(file, 2, 1, &id, &err), SEQLSTM_OK);
    sl_token_file_close(file);
    sl_token_file_close(other);
    expect_what_was_read();
    /* Cut while it is open: an error, not the end of the program. */
    char path[300];
    find_file(path);
    file = open_cache(&words, true, 1, 0, &err, SEQLSTM_OK);
    assert_int_equal(truncate(path, 128), 0);
    assert_int_equal(sl_token_file_read(file, 0, 3, (int32_t[3]){0}, &err), SEQLSTM_IO);
    assert_non_null(strstr(err.message, "cut short"));
    sl_token_file_close(file);
    forget();
    data_write("cache", "a file, no folder");
    open_cache(&words, true, 1, 0, &err, SEQLSTM_NOT_FOUND);
    forget();
}

/* Every option that tokens depend on, and a text of the same size and time, give other tokens; the same again gives the
 * file that is there. */
static void test_what_tokens_depend_on(void **state)
{
    (void)state;
    const char *unk[] = {"unk"}, *begin[] = {"unk", "bos"}, *both[] = {"unk", "bos", "eos"};
    const struct {
        struct sl_tokenizer tokenizer;
        bool stream;
        int64_t tokens, types;
    } cases[] = {
        {{.type = SL_TOKENIZER_WHITESPACE, .specials = {unk, 1}}, true, 6, 5},
        {{.type = SL_TOKENIZER_WHITESPACE, .specials = {unk, 1}, .lowercase = true}, true, 6, 4},
        {{.type = SL_TOKENIZER_WORD, .specials = {unk, 1}}, true, 7, 5},
        {{.type = SL_TOKENIZER_CHAR, .specials = {unk, 1}}, true, 13, 7},
        {{.type = SL_TOKENIZER_WHITESPACE, .specials = {begin, 2}}, true, 8, 6},
        {{.type = SL_TOKENIZER_WHITESPACE, .specials = {both, 3}}, true, 10, 7},
        {{.type = SL_TOKENIZER_CHAR, .specials = {unk, 1}}, false, 11, 6},
    };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct stat text, before, after;
    char path[300];
    name_paths();
    data_write("text.txt", "A a, b\nb c a\n");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct sl_token_file *file = open_cache(&cases[i].tokenizer, cases[i].stream, 1, 0, &err, SEQLSTM_OK);
            const struct sl_token_header *header = sl_token_file_get_header(file);
            if (header->tokens != cases[i].tokens || header->types != cases[i].types)
                fail_msg("case %d: %d tokens of %d types", (int)i, (int)header->tokens, (int)header->types);
            sl_token_file_close(file);
        }
    }
    forget();
    assert_int_equal(mkdir(cache_path, 0777), 0);
    struct sl_token_file *first = open_cache(&cases[0].tokenizer, true, 1, 0, &err, SEQLSTM_OK);
    find_file(path);
    assert_int_equal(stat(path, &before), 0);
    struct sl_token_file *again = open_cache(&cases[0].tokenizer, true, 1, 0, &err, SEQLSTM_OK);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    sl_token_file_close(again);
    assert_int_equal(stat(text_path, &text), 0);
    const struct timespec later[2] = {text.st_atim, {text.st_mtim.tv_sec + 7, text.st_mtim.tv_nsec}};
    assert_int_equal(utimensat(AT_FDCWD, text_path, later, 0), 0); /* the same bytes, written again */
    again = open_cache(&cases[0].tokenizer, true, 1, 0, &err, SEQLSTM_OK);
    assert_int_equal(sl_token_file_get_header(again)->source.mtime_ns -
                         sl_token_file_get_header(first)->source.mtime_ns,
                     INT64_C(7000000000));
    sl_token_file_close(again);
    data_write("text.txt", "A a, b\nbbc a\n");
    assert_int_equal(utimensat(AT_FDCWD, text_path, (struct timespec[2]){text.st_atim, text.st_mtim}, 0), 0);
    struct sl_token_file *other = open_cache(&cases[0].tokenizer, true, 1, 0, &err, SEQLSTM_OK);
    assert_int_equal(sl_token_file_get_header(other)->tokens, 5);
    assert_int_equal(sl_token_file_get_header(first)->tokens, 6);
    sl_token_file_close(first);
    sl_token_file_close(other);
    forget();
}

static void *open_in_thread(void *context)
{
    static const struct sl_tokenizer words = {.type = SL_TOKENIZER_WHITESPACE, .min_count = 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    *(struct sl_token_file **)context = open_cache(&words, true, 2, 64, &err, SEQLSTM_OK);
    return NULL;
}

static void test_many_at_once(void **state)
{
    (void)state;
    enum { MANY = 8 };
    pthread_t threads[MANY];
    struct sl_token_file *files[MANY];
    struct sl_buf text = make_text(5, true);
    name_paths();
    data_write("text.txt", sl_buf_text(&text));
    sl_buf_deinit(&text);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_in_thread, &files[i]), 0);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    uint64_t first = sl_token_file_get_header(files[0])->body_crc64;
    for (int i = 0; i < MANY; i++) {
        assert_true(sl_token_file_get_header(files[i])->body_crc64 == first);
        sl_token_file_close(files[i]);
    }
    forget();
}

/* The n-th allocation fails, for every n: an error, nothing left open or half made. */
static void test_out_of_memory(void **state)
{
    (void)state;
    static const struct sl_tokenizer words = {.type = SL_TOKENIZER_WHITESPACE, .min_count = 1, .lowercase = true};
    struct sl_token_file *file = NULL;
    struct sl_buf text = make_text(9, true);
    name_paths();
    data_write("text.txt", sl_buf_text(&text));
    sl_buf_deinit(&text);
    for (int n = 1;; n++) {
        struct sl_token_cache_request request = {
            .text_path = text_path, .tokenizer = &words, .folder = cache_path, .threads = 1, .chunk_bytes = 256};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        oom_fail_at(n);
        seqlstm_status status = sl_token_cache_open(&request, &file, &err);
        if (!oom_disarm()) {
            assert_int_equal(status, SEQLSTM_OK);
            sl_token_file_close(file);
            break;
        }
        if (status == SEQLSTM_OK) /* the name of a lock or a pipe of the C library */
            sl_token_file_close(file);
        else
            assert_int_equal(status, SEQLSTM_NO_MEMORY);
        forget();
        assert_int_equal(mkdir(cache_path, 0777), 0);
    }
    forget();
}

/* The n-th write, fsync or rename fails: an error that names the cache, and nothing left behind but the lock and what
 * was there before. */
static void test_full_disk(void **state)
{
    (void)state;
    static const struct sl_tokenizer words = {.type = SL_TOKENIZER_WHITESPACE, .min_count = 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_token_file *file = NULL;
    int failures = 0;
    name_paths();
    data_write("text.txt", "old\n");
    sl_token_file_close(open_cache(&words, false, 1, 0, &err, SEQLSTM_OK));
    struct sl_buf text = make_text(9, true);
    data_write("text.txt", sl_buf_text(&text));
    sl_buf_deinit(&text);
    for (int n = 1;; n++) {
        struct sl_token_cache_request request = {
            .text_path = text_path, .tokenizer = &words, .folder = cache_path, .threads = 1, .chunk_bytes = 256};
        char command[300];
        io_fail_at(n, ENOSPC, n % 2 ? 3 : -1);
        seqlstm_status status = sl_token_cache_open(&request, &file, &err);
        if (!io_disarm()) {
            assert_int_equal(status, SEQLSTM_OK);
            break;
        }
        assert_int_equal(status, SEQLSTM_IO);
        assert_int_equal(err.native_code, ENOSPC);
        failures++;
        snprintf(command, sizeof command, "test $(ls '%s' | wc -l) = 2", cache_path);
        if (strstr(err.message, "sync") == NULL)
            assert_int_equal(system(command), 0);
    }
    assert_true(failures > 5);
    assert_int_equal(sl_token_file_get_header(file)->lines, 90);
    sl_token_file_close(file);
    forget();
}

/* A dataset whose text is in the cache gives the batches of one that was read whole. */
static void test_dataset(void **state)
{
    (void)state;
    static const char *const batchings[] = {"unit: stream, bptt: 7", "bucketing: pools, pool: 3",
                                            "bucketing: {count: 3}, pad_to: bucket"};
    for (int b = 0; b < 3; b++) {
        char data[400];
        struct sl_buf text = make_text(3, true);
        name_paths();
        data_write("text.txt", sl_buf_text(&text));
        sl_buf_deinit(&text);
        snprintf(data, sizeof data,
                 "type: text, train: {file: text.txt}, valid: {split: 0.2}, "
                 "tokenizer: {type: whitespace, vocab_size: 8, specials: [unk, bos, eos]}, batch_size: 4, "
                 "batching: {%s}",
                 batchings[b]);
        struct data_open whole = data_open_train(data, MODEL_LM, TOKENS_LM);
        setenv("SEQLSTM_CACHE", cache_path, 1);
        setenv("SEQLSTM_CACHE_LEAST", "1", 1);
        struct data_open cached = data_open_train(data, MODEL_LM, TOKENS_LM);
        struct sl_dataset *valid = data_open_split(&cached, SL_SPLIT_VALID);
        unsetenv("SEQLSTM_CACHE_LEAST");
        struct sl_dataset *whole_valid = data_open_split(&whole, SL_SPLIT_VALID);
        assert_non_null(cached.train->token_file);
        assert_null(whole.train->token_file);
        assert_true(sl_dataset_get_counts(cached.train)->unknown_tokens > 0);
        const struct sl_dataset *pairs[2][2] = {{whole.train, cached.train}, {whole_valid, valid}};
        for (int p = 0; p < 2; p++) {
            assert_memory_equal(sl_dataset_get_counts(pairs[p][0]), sl_dataset_get_counts(pairs[p][1]),
                                sizeof(struct sl_data_counts));
            struct sl_batcher *left = data_batcher(pairs[p][0], SL_BATCHING_TRAIN, 3, 2, 0);
            struct sl_batcher *right = data_batcher(pairs[p][1], SL_BATCHING_TRAIN, 3, 2, 0);
            for (struct sl_batch *x, *y; (x = data_next(left)) != NULL; sl_batch_destroy(x), sl_batch_destroy(y)) {
                y = data_next(right);
                assert_true(y && x->axis.rows == y->axis.rows && x->sequences == y->sequences);
                assert_memory_equal(x->input.ids, y->input.ids, (size_t)x->axis.rows * 4);
                assert_memory_equal(x->target.ids, y->target.ids, (size_t)x->axis.rows * 4);
            }
            assert_null(data_next(right));
            sl_batcher_close(left);
            sl_batcher_close(right);
        }
        sl_dataset_close(valid);
        sl_dataset_close(whole_valid);
        data_close(&whole);
        data_close(&cached);
        unsetenv("SEQLSTM_CACHE");
        forget();
    }
}

/* Without <unk> the first unknown token is named with its line. */
static void test_unknown_has_its_line(void **state)
{
    (void)state;
    name_paths();
    data_write("text.txt", "a b\nb a\na b\nb a\n\na c\n");
    struct sl_model *model = data_model("type: text, train: {file: text.txt}, valid: {file: text.txt}, "
                                        "tokenizer: {type: whitespace, specials: [eos], vocab: words.txt}",
                                        MODEL_LM, TOKENS_LM);
    struct sl_dataset *dataset = NULL;
    struct sl_data_state *learned = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    data_write("words.txt", "a\nb\n");
    setenv("SEQLSTM_CACHE", cache_path, 1);
    setenv("SEQLSTM_CACHE_LEAST", "1", 1);
    assert_int_equal(sl_dataset_open_train(model, &dataset, &learned, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "text.txt:6: the token \"c\""));
    unsetenv("SEQLSTM_CACHE_LEAST");
    unsetenv("SEQLSTM_CACHE");
    sl_model_destroy(model);
    forget();
}

/* Ids are of two bytes where they fit: up to 65,536 different words, `<unk>` included. */
static void test_widths_of_ids(void **state)
{
    (void)state;
    for (int words = 65534; words <= 65537; words++) {
        struct sl_buf text = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        for (int w = 0; w < words; w++)
            sl_buf_printf(&text, w % 64 == 63 ? "w%d\n" : "w%d ", w);
        sl_buf_append_text(&text, "w7\n");
        name_paths();
        data_write("text.txt", sl_buf_text(&text));
        sl_buf_deinit(&text);
        struct sl_model *model = data_model("type: text, train: {file: text.txt}, batching: {unit: stream}, "
                                            "tokenizer: {type: whitespace, specials: [unk]}",
                                            MODEL_LM, TOKENS_LM);
        struct sl_token_file *file = open_cache(&model->data.tokenizer, true, 2, 0, &err, SEQLSTM_OK);
        const struct sl_token_header *header = sl_token_file_get_header(file);
        assert_int_equal(header->id_bytes, header->types <= 65536 ? 2 : 4);
        compare(model, file);
        sl_token_file_close(file);
        sl_model_destroy(model);
        forget();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_tokens),
        cmocka_unit_test(test_widths_of_ids),
        cmocka_unit_test(test_errors_have_places),
        cmocka_unit_test(test_damage_is_mended),
        cmocka_unit_test(test_changes_are_noticed),
        cmocka_unit_test(test_what_tokens_depend_on),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_dataset),
        cmocka_unit_test(test_unknown_has_its_line),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

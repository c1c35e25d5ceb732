/* SPDX-License-Identifier: Apache-2.0 */
/* See cost_cache.h. */
#include "dispatch/cost/cost_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/system/absolute_path.h"
#include "base/value/buf.h"
#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/value/hash.h"
#include "base/value/path.h"
#include "base/value/text.h"

enum { FILE_LIMIT = 64 << 20, COMPACT_BYTES = 4 << 20, LOCK_TRIES = 100, LOCK_WAIT_NS = 10000000 };
enum { KEY_DIGITS = 2 * SL_HASH_DIGITS };

struct sl_cost_cache {
    char *folder, *path; /* NULL: in memory only */
    struct sl_cost_record *records;
    size_t count, capacity, saved; /* records [saved, count) are not in the file yet */
    bool damaged;
};

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for measured costs");
}

/* ---- lines ---- */

static void write_line(const struct sl_cost_record *record, struct sl_buf *out)
{
    size_t begin = out->length_bytes;
    sl_buf_printf(out, "%016" PRIx64 "%016" PRIx64 " %s%.1f %.1f ", record->key.words[0], record->key.words[1],
                  record->refused ? "!"
                  : record->bound ? ">"
                                  : "",
                  record->forward_ns, record->backward_ns);
    for (const char *c = record->label; *c; c++)
        sl_buf_append_char(out, (unsigned char)*c < ' ' || (*c == ' ' && !record->refused) ? '_' : *c);
    if (!out->failed)
        sl_buf_printf(out, " %016" PRIx64 "\n", sl_crc64(0, out->data + begin, out->length_bytes - begin));
}

static bool read_hex(const char *text, uint64_t *out)
{
    *out = 0;
    for (int i = 0; i < SL_HASH_DIGITS; i++) {
        const char *digits = "0123456789abcdef", *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (digit == NULL)
            return false;
        *out = *out << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

/* The number up to the next blank; NULL: there is none. */
static const char *read_number(const char *text, const char *end, double *out)
{
    const char *blank = memchr(text, ' ', (size_t)(end - text));
    bool good = blank && sl_text_parse_float64(text, (size_t)(blank - text), out) && isfinite(*out) && *out >= 0;
    return good ? blank + 1 : NULL;
}

static bool read_line(const char *line, size_t bytes, struct sl_cost_record *out)
{
    uint64_t sum;
    if (bytes < KEY_DIGITS + 1 + 1 + SL_HASH_DIGITS || line[KEY_DIGITS] != ' ' ||
        line[bytes - SL_HASH_DIGITS - 1] != ' ' || !read_hex(line + bytes - SL_HASH_DIGITS, &sum) ||
        sl_crc64(0, line, bytes - SL_HASH_DIGITS - 1) != sum)
        return false;
    const char *end = line + bytes - SL_HASH_DIGITS - 1, *at = line + KEY_DIGITS + 1;
    out->bound = *at == '>';
    out->refused = *at == '!';
    at += out->bound || out->refused;
    if (!read_hex(line, &out->key.words[0]) || !read_hex(line + SL_HASH_DIGITS, &out->key.words[1]) ||
        !(at = read_number(at, end, &out->forward_ns)) || !(at = read_number(at, end, &out->backward_ns)))
        return false;
    snprintf(out->label, sizeof out->label, "%.*s", (int)(end - at), at);
    return true;
}

/* ---- records ---- */

static seqlstm_status add(struct sl_cost_cache *cache, const struct sl_cost_record *record, struct seqlstm_error *err)
{
    if (cache->count == cache->capacity) {
        size_t capacity = cache->capacity ? 2 * cache->capacity : 64;
        struct sl_cost_record *records = realloc(cache->records, capacity * sizeof *records);
        if (records == NULL)
            return no_memory(err);
        cache->records = records;
        cache->capacity = capacity;
    }
    cache->records[cache->count++] = *record;
    return SEQLSTM_OK;
}

/* The good lines of a file's text. */
static seqlstm_status read_text(struct sl_cost_cache *cache, const char *text, size_t bytes, struct seqlstm_error *err)
{
    for (const char *end = text + bytes; text < end;) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        struct sl_cost_record record;
        if (stop && read_line(text, (size_t)(stop - text), &record))
            SEQLSTM_TRY(add(cache, &record, err));
        else
            cache->damaged = true;
        text = stop ? stop + 1 : end;
    }
    return SEQLSTM_OK;
}

const struct sl_cost_record *sl_cost_cache_find(const struct sl_cost_cache *cache, const struct sl_cost_key *key)
{
    for (size_t r = cache->count; r-- > 0;)
        if (memcmp(&cache->records[r].key, key, sizeof *key) == 0)
            return &cache->records[r];
    return NULL;
}

seqlstm_status sl_cost_cache_add(struct sl_cost_cache *cache, const struct sl_cost_record *record,
                                 struct seqlstm_error *err)
{
    return add(cache, record, err);
}

/* ---- opening and closing ---- */

static char *join(const char *folder, const char *name)
{
    return folder && folder[0] == '/' ? sl_path_join(folder, name) : NULL;
}

/* NULL: there is no such folder, or no memory. */
static char *find_folder(void)
{
    const char *own = getenv("SEQLSTM_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *absolute = NULL;
    if (own)
        return own[0] && sl_path_absolute(own, &absolute, NULL) == SEQLSTM_OK ? absolute : NULL;
    return xdg && xdg[0] == '/' ? join(xdg, "seqlstm") : join(home, ".cache/seqlstm");
}

seqlstm_status sl_cost_cache_open(const char *folder, struct sl_cost_cache **out_cache, struct seqlstm_error *err)
{
    struct sl_cost_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return no_memory(err);
    cache->folder = folder ? strdup(folder) : find_folder();
    cache->path = cache->folder ? sl_path_join(cache->folder, "costs") : NULL;
    char *text = NULL;
    size_t bytes = 0;
    seqlstm_status status = SEQLSTM_OK;
    if (cache->path && sl_file_read(cache->path, FILE_LIMIT, &text, &bytes, NULL) == SEQLSTM_OK)
        status = read_text(cache, text, bytes, err);
    free(text);
    cache->saved = cache->count;
    if (status != SEQLSTM_OK) {
        sl_cost_cache_close(cache);
        return status;
    }
    *out_cache = cache;
    return SEQLSTM_OK;
}

void sl_cost_cache_close(struct sl_cost_cache *cache)
{
    if (cache == NULL)
        return;
    free(cache->folder);
    free(cache->path);
    free(cache->records);
    free(cache);
}

const char *sl_cost_cache_find_folder(const struct sl_cost_cache *cache)
{
    return cache->folder;
}

/* ---- saving ---- */

static seqlstm_status fail_io(const char *path, const char *what, struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_IO, "%s: cannot be %s: %s", path, what, strerror(errno));
}

/* A file descriptor that holds the lock until it is closed. */
static seqlstm_status lock(const struct sl_cost_cache *cache, int *out_lock, struct seqlstm_error *err)
{
    char *path = sl_path_join(cache->folder, "costs.lock");
    if (path == NULL)
        return no_memory(err);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    seqlstm_status status = fd < 0 ? fail_io(path, "opened", err) : SEQLSTM_OK;
    free(path);
    SEQLSTM_TRY(status);
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            *out_lock = fd;
            return SEQLSTM_OK;
        }
        if (errno != EWOULDBLOCK && errno != EINTR)
            break;
        nanosleep(&(struct timespec){.tv_nsec = LOCK_WAIT_NS}, NULL);
    }
    close(fd);
    SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%s is locked by another run", cache->folder);
}

static bool is_last_of_key(const struct sl_cost_cache *cache, size_t r)
{
    return sl_cost_cache_find(cache, &cache->records[r].key) == &cache->records[r];
}

/* Rewrites the file: its records (of a large file the newer half) and the added ones. */
static seqlstm_status rewrite(struct sl_cost_cache *cache, const char *text, size_t bytes, struct seqlstm_error *err)
{
    struct sl_cost_cache all = {0};
    struct sl_buf buf = {0};
    seqlstm_status status = read_text(&all, text, bytes, err);
    for (size_t r = cache->saved; status == SEQLSTM_OK && r < cache->count; r++)
        status = add(&all, &cache->records[r], err);
    size_t first = bytes > COMPACT_BYTES ? all.count / 2 : 0;
    for (size_t r = first; status == SEQLSTM_OK && r < all.count; r++)
        if (is_last_of_key(&all, r))
            write_line(&all.records[r], &buf);
    if (status == SEQLSTM_OK && buf.failed)
        status = no_memory(err);
    if (status == SEQLSTM_OK)
        status = sl_file_write(cache->path, buf.data ? buf.data : "", buf.length_bytes, err);
    sl_buf_deinit(&buf);
    free(all.records);
    return status;
}

/* Appends whole lines in one write. `torn`: the file ends inside a line. */
static seqlstm_status append(const struct sl_cost_cache *cache, bool torn, struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    if (torn)
        sl_buf_append_char(&buf, '\n');
    for (size_t r = cache->saved; r < cache->count; r++)
        write_line(&cache->records[r], &buf);
    seqlstm_status status = buf.failed ? no_memory(err) : SEQLSTM_OK;
    int fd = status == SEQLSTM_OK ? open(cache->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (status == SEQLSTM_OK && fd < 0)
        status = fail_io(cache->path, "opened", err);
    if (status == SEQLSTM_OK && write(fd, buf.data, buf.length_bytes) != (ssize_t)buf.length_bytes)
        status = fail_io(cache->path, "written", err);
    if (fd >= 0 && close(fd) != 0 && status == SEQLSTM_OK)
        status = fail_io(cache->path, "written", err);
    sl_buf_deinit(&buf);
    return status;
}

seqlstm_status sl_cost_cache_save(struct sl_cost_cache *cache, struct seqlstm_error *err)
{
    if (cache->path == NULL || (cache->saved == cache->count && !cache->damaged))
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_file_make_folders(cache->folder, err));
    int held = -1;
    SEQLSTM_TRY(lock(cache, &held, err));
    char *text = NULL;
    size_t bytes = 0;
    seqlstm_status status = SEQLSTM_OK;
    if (sl_file_exists(cache->path) && sl_file_read(cache->path, FILE_LIMIT, &text, &bytes, err) == SEQLSTM_NO_MEMORY)
        status = SEQLSTM_NO_MEMORY;
    if (status == SEQLSTM_OK)
        status = cache->damaged || bytes > COMPACT_BYTES ? rewrite(cache, text ? text : "", bytes, err)
                                                         : append(cache, bytes && text[bytes - 1] != '\n', err);
    free(text);
    close(held);
    if (status == SEQLSTM_OK) {
        cache->saved = cache->count;
        cache->damaged = false;
    }
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Generated pairs, as the lines of two files.
 *
 *   addition        "535+61" and "596": two numbers of 1 to `digits` digits (each number of digits as often), none
 *                   begins with 0 but 0 itself. No two pairs of a split have the same two numbers, in either order, and
 * no pair of one split occurs in another: a hash of the numbers decides to which split they belong. So valid and test
 * hold sums that training never saw, whatever the sizes and seeds. copy, reverse   `length` symbols, "3 0 7", and the
 * same again, forwards or backwards.
 *
 * Every number is a function of (seed, split, draw): a record is the same whatever the size of the set.
 */
#include "data/read/raw_pairs.h"

#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "data/no_memory.h"

/* Shares of all sums, in parts of this number. */
enum { SHARES = 16, VALID_SHARES = 2, TEST_SHARES = 2 };

/* Draws for one pair: when so many in a row were taken before, hardly any are left. */
#define MOST_DRAWS 100000

/* A whole number in [0, count). */
static uint64_t draw_below(uint64_t key, uint64_t record, uint64_t draw, uint64_t count)
{
    uint32_t counter[4] = {(uint32_t)draw, (uint32_t)(draw >> 32), (uint32_t)record, (uint32_t)(record >> 32)};
    uint32_t word[4];
    seqlstm_philox4x32(counter, key, word);
    return ((uint64_t)word[0] << 32 | word[1]) % count;
}

/* The sums that were drawn before, by their hashes: at most half of the slots are used; 0 is a free one. */
struct sum_set {
    uint64_t *slots; /* [mask + 1] */
    uint64_t mask;
};

static bool sum_set_init(struct sum_set *set, int64_t sums)
{
    uint64_t count = 16;
    while (count < 2 * (uint64_t)sums)
        count *= 2;
    *set = (struct sum_set){.slots = calloc(count, sizeof *set->slots), .mask = count - 1};
    return set->slots != NULL;
}

/* False if it was there. */
static bool sum_set_add(struct sum_set *set, uint64_t hash)
{
    uint64_t at = hash & set->mask;
    while (set->slots[at] != 0 && set->slots[at] != hash)
        at = (at + 1) & set->mask;
    if (set->slots[at] == hash)
        return false;
    set->slots[at] = hash;
    return true;
}

/* A whole number in [0, count) from 64 random bits; the bits that remain serve the next draw. */
static uint64_t take_below(uint64_t *bits, uint64_t count)
{
    __extension__ const unsigned __int128 product = (unsigned __int128)*bits * count;
    *bits = (uint64_t)product;
    return (uint64_t)(product >> 64);
}

/* The least number of so many digits and one more; 0 stands for the numbers of one digit. */
static const uint64_t least[] = {0,
                                 UINT64_C(10),
                                 UINT64_C(100),
                                 UINT64_C(1000),
                                 UINT64_C(10000),
                                 UINT64_C(100000),
                                 UINT64_C(1000000),
                                 UINT64_C(10000000),
                                 UINT64_C(100000000),
                                 UINT64_C(1000000000),
                                 UINT64_C(10000000000),
                                 UINT64_C(100000000000),
                                 UINT64_C(1000000000000),
                                 UINT64_C(10000000000000),
                                 UINT64_C(100000000000000),
                                 UINT64_C(1000000000000000),
                                 UINT64_C(10000000000000000)};

/* A number of 1 to `digits` digits, at most 17: first how many digits, then which number of so many. Without branches,
 * which would be mispredicted half of the time. */
static uint64_t take_number(uint64_t bits, uint64_t digits)
{
    const uint64_t low = least[take_below(&bits, digits)];
    return low + take_below(&bits, 9 * low + 10 * (uint64_t)(low == 0));
}

/* The split that a sum belongs to. */
static enum sl_split find_owner(uint64_t hash)
{
    uint64_t share = hash >> 32 & (SHARES - 1);
    return share < VALID_SHARES ? SL_SPLIT_VALID : share < VALID_SHARES + TEST_SHARES ? SL_SPLIT_TEST : SL_SPLIT_TRAIN;
}

/* Two numbers of this split that no record before this one has; false when none was found. Two sums with the same hash
 * (of 64 bits) count as the same sum: the later one is not made. */
static bool draw_sum(const struct sl_read *read, uint64_t key, uint64_t record, struct sum_set *seen, uint64_t out[2])
{
    const uint64_t digits = (uint64_t)(read->source->digits > 0 ? read->source->digits : 3);
    for (uint32_t draw = 0; draw < MOST_DRAWS; draw++) {
        const uint32_t counter[4] = {draw, 0, (uint32_t)record, (uint32_t)(record >> 32)};
        uint32_t word[4];
        seqlstm_philox4x32(counter, key, word);
        for (size_t i = 0; i < 2; i++)
            out[i] = take_number((uint64_t)word[2 * i] << 32 | word[2 * i + 1], digits);
        const uint64_t low = out[0] < out[1] ? out[0] : out[1], high = out[0] < out[1] ? out[1] : out[0];
        const uint64_t hash = seqlstm_mix64(low, high, 0) | 1; /* never that of a free slot */
        if (find_owner(hash) == read->split && sum_set_add(seen, hash))
            return true;
    }
    return false;
}

enum { MOST_WRITTEN = 24 };

/* A number and the character after it, at most MOST_WRITTEN bytes; returns where they end. */
static char *write_number(char *at, uint64_t number, char end)
{
    if (number < 10000) { /* the number of digits is unpredictable: all four are always written */
        const char text[8] = {(char)('0' + number / 1000), (char)('0' + number / 100 % 10),
                              (char)('0' + number / 10 % 10), (char)('0' + number % 10), end};
        const size_t zeros = (size_t)(number < 1000) + (size_t)(number < 100) + (size_t)(number < 10);
        memcpy(at, text + zeros, 5);
        return at + 5 - zeros;
    }
    char text[MOST_WRITTEN], *begin = text + sizeof text;
    *--begin = end;
    do
        *--begin = (char)('0' + number % 10);
    while (number /= 10);
    const size_t bytes = (size_t)(text + sizeof text - begin);
    memcpy(at, begin, bytes);
    return at + bytes;
}

static seqlstm_status make_addition(const struct sl_read *read, uint64_t key, struct sl_buf *source,
                                    struct sl_buf *target, struct seqlstm_error *err)
{
    struct sum_set seen;
    uint64_t numbers[2];
    seqlstm_status status = SEQLSTM_OK;
    if (!sum_set_init(&seen, read->source->size))
        return SL_DATA_NO_MEMORY(err);
    for (int64_t r = 0; status == SEQLSTM_OK && r < read->source->size; r++) {
        if (!draw_sum(read, key, (uint64_t)r, &seen, numbers)) {
            status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                       "the generator `addition` found %lld different sums of numbers of up to %lld "
                                       "digits for `%s`, expected %lld: say more `digits` or a smaller `size`",
                                       (long long)r, (long long)read->source->digits, sl_split_get_name(read->split),
                                       (long long)read->source->size);
            break;
        }
        char line[2 * MOST_WRITTEN];
        const char *end = write_number(write_number(line, numbers[0], '+'), numbers[1], '\n');
        sl_buf_append(source, line, (size_t)(end - line));
        end = write_number(line, numbers[0] + numbers[1], '\n');
        sl_buf_append(target, line, (size_t)(end - line));
    }
    free(seen.slots);
    return status;
}

/* One line of `length` symbols, forwards or backwards. */
static void put_symbols(const struct sl_source *config, uint64_t key, uint64_t record, uint64_t length, bool backwards,
                        struct sl_buf *out)
{
    const uint64_t symbols = (uint64_t)(config->symbols > 1 ? config->symbols : 8);
    for (uint64_t i = 0; i < length; i++) {
        uint64_t at = backwards ? length - 1 - i : i;
        sl_buf_printf(out, "%s%llu", i ? " " : "", (unsigned long long)draw_below(key, record, 16 + at, symbols));
    }
    sl_buf_append_char(out, '\n');
}

static void make_symbols(const struct sl_read *read, uint64_t key, struct sl_buf *source, struct sl_buf *target)
{
    const struct sl_source *config = read->source;
    const uint64_t low = (uint64_t)(config->length_min > 0 ? config->length_min : 1);
    const uint64_t high = (uint64_t)config->length_max > low ? (uint64_t)config->length_max : low;
    for (int64_t r = 0; r < config->size; r++) {
        const uint64_t length = low + draw_below(key, (uint64_t)r, 0, high - low + 1);
        put_symbols(config, key, (uint64_t)r, length, false, source);
        put_symbols(config, key, (uint64_t)r, length, config->generator == SL_GENERATOR_REVERSE, target);
    }
}

static seqlstm_status keep(struct sl_buf *buf, struct sl_raw *raw, size_t *out_bytes, struct seqlstm_error *err)
{
    raw->name = strdup(sl_generator_get_name(raw->source->generator));
    *out_bytes = buf->length_bytes;
    raw->text = buf->failed ? NULL : sl_buf_take(buf, NULL);
    return raw->name && raw->text ? SEQLSTM_OK : SL_DATA_NO_MEMORY(err);
}

seqlstm_status sl_generate_pairs(const struct sl_read *read, struct sl_raw *source, size_t *out_source_bytes,
                                 struct sl_raw *target, size_t *out_target_bytes, struct seqlstm_error *err)
{
    const struct sl_source *config = read->source;
    const uint64_t seed = config->has_seed ? config->seed : read->model->seed;
    const uint64_t stream = UINT64_C(0x7061697273) + (uint64_t)config->generator;
    const uint64_t key = seqlstm_mix64(seed, stream, (uint64_t)read->split);
    struct sl_buf from = {0}, to = {0};
    seqlstm_status status = SEQLSTM_OK;
    if (config->generator == SL_GENERATOR_ADDITION)
        status = make_addition(read, key, &from, &to, err);
    else
        make_symbols(read, key, &from, &to);
    if (status == SEQLSTM_OK)
        status = keep(&from, source, out_source_bytes, err);
    if (status == SEQLSTM_OK)
        status = keep(&to, target, out_target_bytes, err);
    sl_buf_deinit(&from);
    sl_buf_deinit(&to);
    return status;
}

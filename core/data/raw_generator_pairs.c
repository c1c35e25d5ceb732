/* SPDX-License-Identifier: Apache-2.0 */
/* Generated pairs, as the lines that they would be in two files.
 *
 *   addition        "535+61" and "596": two numbers of 1 to `digits` digits (each number of digits as often), none
 *                   begins with 0 but 0 itself. No two pairs of a split have the same two numbers, in whichever order,
 *                   and none of one split occurs in another: a hash of the numbers says whose they are, so that valid
 *                   and test hold sums that training never saw, whatever the sizes and seeds.
 *   copy, reverse   `length` symbols, "3 0 7", and the same again, forwards or backwards.
 *
 * Every number is a function of (seed, split, draw): a record is the same whatever the size of the set.
 */
#include "data/raw_pairs.h"

#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "base/text.h"

/* Shares of all sums, out of so many. */
enum { SHARES = 16, VALID_SHARES = 2, TEST_SHARES = 2 };

/* Draws for one pair: after so many that were all taken before there are hardly any left. */
#define MOST_DRAWS 100000

/* A whole number in [0, count). */
static uint64_t
draw_below(uint64_t key, uint64_t record, uint64_t draw, uint64_t count)
{
    uint32_t counter[4] = {(uint32_t)draw, (uint32_t)(draw >> 32), (uint32_t)record, (uint32_t)(record >> 32)};
    uint32_t word[4];
    seqlstm_philox4x32(counter, key, word);
    return ((uint64_t)word[0] << 32 | word[1]) % count;
}

/* A number of `digits` digits. */
static uint64_t
draw_number(uint64_t key, uint64_t record, uint64_t draw, uint64_t digits)
{
    uint64_t low = 1;
    for (uint64_t i = 1; i < digits; i++)
        low *= 10;
    return digits == 1 ? draw_below(key, record, draw, 10) : low + draw_below(key, record, draw, 9 * low);
}

/* The split that a sum of these two numbers belongs to. */
static enum sl_split
find_owner(uint64_t a, uint64_t b)
{
    uint64_t share = seqlstm_mix64(a < b ? a : b, a < b ? b : a, 0) % SHARES;
    return share < VALID_SHARES ? SL_SPLIT_VALID : share < VALID_SHARES + TEST_SHARES ? SL_SPLIT_TEST : SL_SPLIT_TRAIN;
}

/* Two numbers of this split that no record before this one has; false when none was found. */
static bool
draw_sum(const struct sl_read *read, uint64_t key, uint64_t record, struct sl_intern *seen, uint64_t out[2])
{
    const uint64_t digits = (uint64_t)(read->source->digits > 0 ? read->source->digits : 3);
    for (uint64_t draw = 0; draw < MOST_DRAWS; draw++) {
        for (uint64_t i = 0; i < 2; i++)
            out[i] = draw_number(key, record, 4 * draw + 2 * i + 1,
                                 1 + draw_below(key, record, 4 * draw + 2 * i, digits));
        const uint64_t low = out[0] < out[1] ? out[0] : out[1], high = out[0] < out[1] ? out[1] : out[0];
        const int32_t count = seen->count;
        char both[64];
        if (find_owner(out[0], out[1]) != read->split)
            continue;
        int bytes = sl_text_snprintf(both, sizeof both, "%llu+%llu", (unsigned long long)low, (unsigned long long)high);
        sl_intern_add(seen, both, (size_t)bytes);
        if (seen->count > count || seen->failed)
            return true;
    }
    return false;
}

static seqlstm_status
make_addition(const struct sl_read *read, uint64_t key, struct sl_buf *source, struct sl_buf *target,
              struct seqlstm_error *err)
{
    struct sl_intern seen;
    uint64_t numbers[2];
    seqlstm_status status = SEQLSTM_OK;
    sl_intern_init(&seen);
    for (int64_t r = 0; status == SEQLSTM_OK && r < read->source->size; r++) {
        if (!draw_sum(read, key, (uint64_t)r, &seen, numbers)) {
            status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                       "the generator `addition` found %lld different sums of numbers of up to %lld "
                                       "digits for `%s`, expected %lld: say more `digits` or a smaller `size`",
                                       (long long)r, (long long)read->source->digits, sl_split_get_name(read->split),
                                       (long long)read->source->size);
            break;
        }
        sl_buf_printf(source, "%llu+%llu\n", (unsigned long long)numbers[0], (unsigned long long)numbers[1]);
        sl_buf_printf(target, "%llu\n", (unsigned long long)(numbers[0] + numbers[1]));
    }
    if (status == SEQLSTM_OK && seen.failed)
        status = SL_DATA_NO_MEMORY(err);
    sl_intern_deinit(&seen);
    return status;
}

/* One line of `length` symbols, forwards or backwards. */
static void
put_symbols(const struct sl_source *config, uint64_t key, uint64_t record, uint64_t length, bool backwards,
            struct sl_buf *out)
{
    const uint64_t symbols = (uint64_t)(config->symbols > 1 ? config->symbols : 8);
    for (uint64_t i = 0; i < length; i++) {
        uint64_t at = backwards ? length - 1 - i : i;
        sl_buf_printf(out, "%s%llu", i ? " " : "", (unsigned long long)draw_below(key, record, 16 + at, symbols));
    }
    sl_buf_append_char(out, '\n');
}

static void
make_symbols(const struct sl_read *read, uint64_t key, struct sl_buf *source, struct sl_buf *target)
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

static seqlstm_status
keep(struct sl_buf *buf, struct sl_raw *raw, size_t *out_bytes, struct seqlstm_error *err)
{
    raw->name = strdup(sl_generator_get_name(raw->source->generator));
    *out_bytes = buf->length_bytes;
    raw->text = buf->failed ? NULL : sl_buf_take(buf, NULL);
    return raw->name && raw->text ? SEQLSTM_OK : SL_DATA_NO_MEMORY(err);
}

seqlstm_status
sl_generate_pairs(const struct sl_read *read, struct sl_raw *source, size_t *out_source_bytes, struct sl_raw *target,
                  size_t *out_target_bytes, struct seqlstm_error *err)
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Masks by arithmetic on eight bytes at a time. See word_edges.h. */
#include "data/text/word_edges.h"

#include <string.h>

enum { BLOCK = 64 };

#define EACH(byte) ((byte)*UINT64_C(0x0101010101010101))

/* One bit for each of eight bytes, the first one lowest: 1 where the byte is not a blank. Sums stay inside their byte,
 * since bit 7 of each is cleared first; bytes from 0x80 on are no blanks. */
static uint64_t find_solid(const char *text)
{
    uint64_t x;
    memcpy(&x, text, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    uint64_t low = x & EACH(0x7F);
    uint64_t from_tab = low + EACH(0x80 - '\t'), above_return = low + EACH(0x7F - '\r');
    uint64_t no_space = (low ^ EACH(' ')) + EACH(0x7F);
    uint64_t solid = (x | ((~from_tab | above_return) & no_space)) & EACH(0x80);
    /* Bit 7 of byte k goes to bit 56 + k: 7 + 8 k + (49 - 7 k); all other products of the constant's bits and these are
     * below or above those eight, and no two are equal, so nothing carries. */
    return ((solid >> 7) * UINT64_C(0x0102040810204080)) >> 56;
}

void sl_word_edges_init(struct sl_word_edges *edges, const char *text, size_t bytes)
{
    edges->text = text;
    edges->bytes = bytes;
    edges->next = edges->open = 0;
    edges->inside = 0;
}

int sl_word_edges_next(struct sl_word_edges *edges)
{
    size_t *at = edges->at;
    if (edges->inside)
        *at++ = edges->open;
    while (edges->next < edges->bytes && at - edges->at <= 2 * SL_WORD_EDGES_WORDS - BLOCK) {
        const char *block = edges->text + edges->next;
        size_t rest = edges->bytes - edges->next;
        uint64_t solid = 0;
        for (int part = 0; part < 8; part++)
            solid |= find_solid(block + 8 * part) << 8 * part;
        if (rest < BLOCK)
            solid &= (UINT64_C(1) << rest) - 1;
        for (uint64_t change = solid ^ (solid << 1 | edges->inside); change; change &= change - 1)
            *at++ = edges->next + (size_t)__builtin_ctzll(change);
        edges->inside = solid >> 63;
        edges->next += BLOCK;
    }
    if (edges->inside && edges->next >= edges->bytes) {
        *at++ = edges->bytes;
        edges->inside = 0;
    }
    if (edges->inside)
        edges->open = *--at;
    return (int)(at - edges->at) / 2;
}

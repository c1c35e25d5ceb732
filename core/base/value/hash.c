/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-64/XZ by eight bytes at a time, and a multiplicative hash.
 *
 * The checksum's tables are linear: the entry of i is the exclusive or of the entries of i's bits. So the source holds
 * 8 tables x 8 bits, and the preprocessor makes the 8 x 256 entries from them.
 */
#include "base/value/hash.h"

#include <string.h>

#define BIT_0(E)                                                                                                       \
    E(0xB32E4CBE03A75F6Fu, 0xF4843657A840A05Bu, 0x7BD0C384FF8F5E33u, 0xF7A18709FF1EBC66u, 0x7D9BA13851336649u,         \
      0xFB374270A266CC92u, 0x64B62BCAEBC387A1u, 0xC96C5795D7870F42u)
#define BIT_1(E)                                                                                                       \
    E(0x54E979925CD0F10Du, 0xA9D2F324B9A1E21Au, 0xC17D4962DC4DDAB1u, 0x10223DEE1795ABE7u, 0x20447BDC2F2B57CEu,         \
      0x4088F7B85E56AF9Cu, 0x8111EF70BCAD5F38u, 0x90FB71CAD654A0F5u)
#define BIT_2(E)                                                                                                       \
    E(0x3F0BE14A916A6DCBu, 0x7E17C29522D4DB96u, 0xFC2F852A45A9B72Cu, 0x6A87A57F245D70DDu, 0xD50F4AFE48BAE1BAu,         \
      0x38C63AD73E7BDDF1u, 0x718C75AE7CF7BBE2u, 0xE318EB5CF9EF77C4u)
#define BIT_3(E)                                                                                                       \
    E(0x1DEE8A5E222CA1DCu, 0x3BDD14BC445943B8u, 0x77BA297888B28770u, 0xEF7452F111650EE0u, 0x4C300AC98DC40345u,         \
      0x986015931B88068Au, 0xA218840D981E1391u, 0xD6E9A7309F3239A7u)
#define BIT_4(E)                                                                                                       \
    E(0x5C2D776033C4205Eu, 0xB85AEEC0678840BCu, 0xE26D72AB601E9FFDu, 0x56024A7D6F33217Fu, 0xAC0494FADE6642FEu,         \
      0xCAD186DE13C29B79u, 0x077BA297888B2877u, 0x0EF7452F111650EEu)
#define BIT_5(E)                                                                                                       \
    E(0x6184D55F721267C6u, 0xC309AABEE424CF8Cu, 0x14CBFA566747819Du, 0x2997F4ACCE8F033Au, 0x532FE9599D1E0674u,         \
      0xA65FD2B33A3C0CE8u, 0xDE670A4DDB760755u, 0x2E16BBB019E2102Fu)
#define BIT_6(E)                                                                                                       \
    E(0x22EF0D5934F964ECu, 0x45DE1AB269F2C9D8u, 0x8BBC3564D3E593B0u, 0x85A0C5E208C539E5u, 0x999924EFBE846D4Fu,         \
      0xA1EAE6F4D206C41Bu, 0xD10D62C20B0396B3u, 0x30C26AAFB90933E3u)
#define BIT_7(E)                                                                                                       \
    E(0xDABE95AFC7875F40u, 0x27A584742000A005u, 0x4F4B08E84001400Au, 0x9E9611D080028014u, 0xAFF48C8AAF0B1EADu,         \
      0xCD31B63EF11823DFu, 0x08BBC3564D3E593Bu, 0x117786AC9A7CB276u)

/* The entry of the byte i, given the entries of its eight bits. */
#define ENTRY(i, b0, b1, b2, b3, b4, b5, b6, b7)                                                                       \
    (((i)&1 ? b0 : 0) ^ ((i)&2 ? b1 : 0) ^ ((i)&4 ? b2 : 0) ^ ((i)&8 ? b3 : 0) ^ ((i)&16 ? b4 : 0) ^                   \
     ((i)&32 ? b5 : 0) ^ ((i)&64 ? b6 : 0) ^ ((i)&128 ? b7 : 0))

#define FOUR(i, ...)                                                                                                   \
    ENTRY(i, __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__), ENTRY((i) + 3, __VA_ARGS__)
#define SIXTEEN(i, ...)                                                                                                \
    FOUR(i, __VA_ARGS__), FOUR((i) + 4, __VA_ARGS__), FOUR((i) + 8, __VA_ARGS__), FOUR((i) + 12, __VA_ARGS__)
#define SIXTY_FOUR(i, ...)                                                                                             \
    SIXTEEN(i, __VA_ARGS__), SIXTEEN((i) + 16, __VA_ARGS__), SIXTEEN((i) + 32, __VA_ARGS__),                           \
        SIXTEEN((i) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                                     \
    {                                                                                                                  \
        SIXTY_FOUR(0, __VA_ARGS__), SIXTY_FOUR(64, __VA_ARGS__), SIXTY_FOUR(128, __VA_ARGS__),                         \
            SIXTY_FOUR(192, __VA_ARGS__)                                                                               \
    }

/* crc_table[k][i]: what the byte i does to the checksum, k bytes further on. */
static const uint64_t crc_table[8][256] = {BIT_0(TABLE), BIT_1(TABLE), BIT_2(TABLE), BIT_3(TABLE),
                                           BIT_4(TABLE), BIT_5(TABLE), BIT_6(TABLE), BIT_7(TABLE)};

/* Eight bytes as a number, the first lowest, on any machine. */
static uint64_t load_le64(const unsigned char *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

uint64_t sl_crc64(uint64_t crc, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        crc ^= load_le64(p);
        crc = crc_table[7][crc & 0xFF] ^ crc_table[6][crc >> 8 & 0xFF] ^ crc_table[5][crc >> 16 & 0xFF] ^
              crc_table[4][crc >> 24 & 0xFF] ^ crc_table[3][crc >> 32 & 0xFF] ^ crc_table[2][crc >> 40 & 0xFF] ^
              crc_table[1][crc >> 48 & 0xFF] ^ crc_table[0][crc >> 56];
    }
    for (; bytes > 0; bytes--, p++)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *p) & 0xFF];
    return ~crc;
}

/* A bijection in which every input bit reaches every output bit. */
static uint64_t scramble(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    return x;
}

uint64_t sl_hash_combine(uint64_t hash, uint64_t value)
{
    return scramble(hash * 0x9E3779B97F4A7C15u + 0x632BE59BD9B4E019u + scramble(value));
}

uint64_t sl_hash_bytes(const void *data, size_t bytes, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t hash = scramble(seed ^ 0x9E3779B97F4A7C15u) + bytes;
    for (size_t left = bytes; left > 0;) {
        unsigned char tail[8] = {0};
        size_t n = left < 8 ? left : 8;
        memcpy(tail, p, n);
        hash = (hash ^ scramble(load_le64(tail))) * 0x9E3779B97F4A7C15u;
        hash = hash << 29 | hash >> 35;
        p += n;
        left -= n;
    }
    return scramble(hash);
}

uint64_t sl_hash_text(const char *text)
{
    return sl_hash_bytes(text, strlen(text), 0);
}

const char *sl_hash_write(uint64_t hash, char text[SL_HASH_TEXT_BYTES])
{
    for (int i = SL_HASH_DIGITS; i-- > 0; hash >>= 4)
        text[i] = "0123456789abcdef"[hash & 15];
    text[SL_HASH_DIGITS] = 0;
    return text;
}

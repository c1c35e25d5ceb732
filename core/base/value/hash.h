/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums for files and hashes for tables. The values are the same on every machine. [any thread]
 *
 * sl_crc64 finds damage in checkpoints and cache files: CRC-64/XZ (reflected polynomial 0xC96C5795D7870F42, the
 * checksum of the .xz format), whose value for "123456789" is 0x995DC9BBDF1939FA. It is streaming: crc = sl_crc64(0, a,
 * n); crc = sl_crc64(crc, b, m).
 */
#ifndef SL_BASE_VALUE_HASH_H
#define SL_BASE_VALUE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Of a checksum or hash as text: its digits, and the zero at the end. */
enum { SL_HASH_DIGITS = 16, SL_HASH_TEXT_BYTES = SL_HASH_DIGITS + 1 };

/* Lower-case hex with leading zeros; returns `text`. */
const char *sl_hash_write(uint64_t hash, char text[SL_HASH_TEXT_BYTES]);

/* Continues the checksum `crc` (0 at the start) over `bytes` bytes. */
uint64_t sl_crc64(uint64_t crc, const void *data, size_t bytes);

/* A well mixed 64-bit hash, not cryptographic. Different seeds give independent hashes. */
uint64_t sl_hash_bytes(const void *data, size_t bytes, uint64_t seed);
uint64_t sl_hash_text(const char *text);

/* Mixes a value into a running hash; order matters. */
uint64_t sl_hash_combine(uint64_t hash, uint64_t value);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* base/value: single values without files or threads. Text, growable buffers, hashes, base64, JSON and HTML output,
 * checked arithmetic.
 *
 * This file: numbers and words as text: parsing and printing that no locale changes, UTF-8, "did you mean". Nothing
 * here allocates. [any thread] */
#ifndef SL_BASE_VALUE_TEXT_H
#define SL_BASE_VALUE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

/* Longest output of the functions that print a number, NUL included. */
#define SL_TEXT_NUMBER_BYTES 32

/* A constant that is a macro, as a string literal: for messages that name a limit. */
#define SL_TEXT_OF(macro)         SL_TEXT_OF_TOKENS(macro)
#define SL_TEXT_OF_TOKENS(tokens) #tokens

/* The whole of text[0..length) is one number in the YAML 1.2 core schema: optional sign, digits with an optional point
 * and exponent (`1`, `.5`, `1.`, `1e-3`), or `.inf`, `-.inf`, `.nan` in the three spellings of the schema. Correctly
 * rounded; beyond the range it is infinite or 0, as IEEE 754 says. False (out untouched) for anything else, for blanks
 * around, and beyond 1000 characters. */
bool sl_text_parse_float64(const char *text, size_t length, double *out);

/* The same for integers: decimal with optional sign, `0o17`, `0xff`. False when it does not fit. */
bool sl_text_parse_int64(const char *text, size_t length, int64_t *out);

/* The shortest text that reads back as the same number: `0.1`, `1`, `1e-07` is `1e-7`, `-0`; `.inf`, `-.inf`, `.nan`
 * (as YAML; JSON has no word for them). Finite ones are valid JSON. Returns its length. */
size_t sl_text_print_float64(char out[SL_TEXT_NUMBER_BYTES], double value);
size_t sl_text_print_float32(char out[SL_TEXT_NUMBER_BYTES], float value);

/* The value, but NaN without a sign, which printf would show: it depends on the processor and says nothing. */
double sl_text_unsign_nan(double value);

/* snprintf as in the C locale, whatever the program's locale is. Same result as snprintf. */
int sl_text_snprintf(char *out, size_t capacity_bytes, const char *format, ...) SEQLSTM_PRINTF(3, 4);
int sl_text_vsnprintf(char *out, size_t capacity_bytes, const char *format, va_list args) SEQLSTM_PRINTF(3, 0);

/* Decodes the character at text[0..length), length > 0. Returns its bytes, 1 to 4, or 0 when the bytes are not valid
 * UTF-8 (overlong forms, surrogates and values over U+10FFFF are not). */
size_t sl_text_utf8_decode(const char *text, size_t length, uint32_t *out_code_point);

/* Writes the character (at most 4 bytes, no NUL) and returns its bytes; 0 for an invalid one. */
size_t sl_text_utf8_encode(char out[4], uint32_t code_point);

/* True if all of it is UTF-8; otherwise *out_offset (may be NULL) is the first bad byte. */
bool sl_text_is_utf8(const char *text, size_t length, size_t *out_offset);

/* Edits between two words: insert, delete, replace, swap of neighbours. Beyond 63 bytes a word is compared by its first
 * 63. */
size_t sl_text_distance(const char *a, const char *b);

/* The name nearest to `word` for a "did you mean", or NULL when none is near enough (more than a third of the letters
 * are wrong) and `word` does not begin exactly one. Upper and lower case, `-` and `_` count as equal. Of equally near
 * names the first is chosen; a name equal to `word` is found too. */
const char *sl_text_closest(const char *word, const char *const *names, size_t n_names);

/* A time for people: "1.5s", "42s", "3m07s", "2h15m"; "?" for what is no time. */
void sl_text_write_seconds(char out[24], double seconds);

#endif

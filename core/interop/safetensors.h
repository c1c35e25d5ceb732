/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors format: named arrays in one file, which many programs can read.
 *
 *   8 bytes        length N of the header, little endian
 *   N bytes        JSON: {"__metadata__": {text: text}, name: {"dtype", "shape", "data_offsets": [begin, end]}}
 *   the rest       the arrays, row-major, little endian, without holes or overlaps, offsets from here
 *
 * The reader checks everything: a header over 100 MB, a key twice, offsets that overlap, leave holes, run over the end
 * or disagree with the shape, and trailing bytes are all SEQLSTM_CORRUPT_DATA with the reason.
 *
 * Files written with a checksum carry it in the metadata as "checksum", sixteen hexadecimal digits: CRC-64
 * (base/hash.h) over the header, in which those digits read 0, and over the arrays. To other programs it is one more
 * entry of the metadata.
 *
 * Written bytes depend on the arguments alone, and stand in the order given.
 */
#ifndef SL_INTEROP_SAFETENSORS_H
#define SL_INTEROP_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

enum { SL_SAFETENSORS_RANK = 8 };

enum sl_safetensors_dtype {
    SL_SAFETENSORS_BOOL,
    SL_SAFETENSORS_U8,
    SL_SAFETENSORS_I8,
    SL_SAFETENSORS_U16,
    SL_SAFETENSORS_I16,
    SL_SAFETENSORS_U32,
    SL_SAFETENSORS_I32,
    SL_SAFETENSORS_U64,
    SL_SAFETENSORS_I64,
    SL_SAFETENSORS_F16,
    SL_SAFETENSORS_BF16,
    SL_SAFETENSORS_F32,
    SL_SAFETENSORS_F64,
    SL_SAFETENSORS_DTYPE_COUNT
};

/* One array. When read, everything is borrowed from the file. Data need not be aligned. */
struct sl_safetensors_entry {
    const char *name;
    enum sl_safetensors_dtype dtype;
    int32_t rank;
    int64_t shape[SL_SAFETENSORS_RANK];
    const void *data;
    size_t data_bytes; /* elements times size of the dtype; the writer computes it itself */
};

struct sl_safetensors_text {
    const char *key;
    const char *value;
};

/* ---- reading -------------------------------------------------------------------------------------- */

struct sl_safetensors;

/* Maps the file and checks its structure, not its checksum. Errors: NOT_FOUND, IO, NO_MEMORY, CORRUPT_DATA. The file
 * must not shrink while it is open. [any thread] */
seqlstm_status sl_safetensors_open(const char *path, struct sl_safetensors **out_file, struct seqlstm_error *err);
void sl_safetensors_close(struct sl_safetensors *file);

/* The same on bytes that the caller keeps; `name` is used in messages. */
seqlstm_status sl_safetensors_open_bytes(const char *name, const void *data, size_t bytes,
                                         struct sl_safetensors **out_file, struct seqlstm_error *err);

/* Reads all of it and compares. CORRUPT_DATA when the sums differ or the file has none. */
seqlstm_status sl_safetensors_verify(const struct sl_safetensors *file, struct seqlstm_error *err);

/* In the order of their data. */
int32_t sl_safetensors_get_count(const struct sl_safetensors *file);
const struct sl_safetensors_entry *sl_safetensors_get_entry(const struct sl_safetensors *file, int32_t index);

/* NULL when there is none. */
const struct sl_safetensors_entry *sl_safetensors_find(const struct sl_safetensors *file, const char *name);
const char *sl_safetensors_find_text(const struct sl_safetensors *file, const char *key);

/* Copies an entry of type F32, F64, F16 or BF16 as float32 (F64 rounds to nearest). CORRUPT_DATA when the entry is of
 * another type or has other than `elems` elements. */
seqlstm_status sl_safetensors_read_float32(const struct sl_safetensors_entry *entry, float *out, int64_t elems,
                                           struct seqlstm_error *err);

/* "F32" … ; static. Bytes of one element. */
const char *sl_safetensors_dtype_get_name(enum sl_safetensors_dtype dtype);
size_t sl_safetensors_dtype_get_bytes(enum sl_safetensors_dtype dtype);
/* Elements of a shape; -1 when it overflows or has a negative side. */
int64_t sl_safetensors_count_elems(const struct sl_safetensors_entry *entry);

/* ---- writing -------------------------------------------------------------------------------------- */

struct sl_safetensors_content {
    const struct sl_safetensors_entry *entries;
    int32_t entry_count;
    const struct sl_safetensors_text *texts;
    int32_t text_count;
    bool checksum;
};

/* Writes the file atomically (sl_file_writer): after a failure the old one is untouched. Errors: IO, NO_MEMORY,
 * INVALID_ARGUMENT (a name or key twice, not UTF-8, or a bad shape). [any thread] */
seqlstm_status sl_safetensors_write(const char *path, const struct sl_safetensors_content *content,
                                    struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The header of .npy files: magic, version, length, a Python dictionary padded with blanks and a newline. */
#include "interop/npy_write.h"

#include <assert.h>
#include <inttypes.h>

void sl_npy_append_header(struct sl_buf *out, int dimensions, const int64_t *shape)
{
    enum { PREFIX_BYTES = 10, ALIGNMENT = 64 };
    assert(dimensions >= 1 && dimensions <= 4);
    struct sl_buf text = {0};
    sl_buf_append_text(&text, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < dimensions; i++)
        sl_buf_printf(&text, i ? " %" PRId64 "," : "%" PRId64 ",", shape[i]);
    if (dimensions > 1)
        sl_buf_truncate(&text, text.length_bytes - 1);
    sl_buf_append_text(&text, "), }");
    size_t used = PREFIX_BYTES + text.length_bytes + 1;
    sl_buf_fill(&text, ' ', (ALIGNMENT - used % ALIGNMENT) % ALIGNMENT);
    sl_buf_append_char(&text, '\n');
    sl_buf_append(out, "\x93NUMPY\x01\x00", 8);
    sl_buf_append_char(out, (char)(text.length_bytes & 0xff));
    sl_buf_append_char(out, (char)(text.length_bytes >> 8));
    sl_buf_append(out, sl_buf_text(&text), sl_buf_text_bytes(&text));
    out->failed = out->failed || text.failed;
    sl_buf_deinit(&text);
}

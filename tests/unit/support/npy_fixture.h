/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files for tests. */
#ifndef SL_TESTS_NPY_FIXTURE_H
#define SL_TESTS_NPY_FIXTURE_H

#include <stdio.h>
#include <string.h>

enum { NPY_HEADER = 128 };

/* The first bytes of a file of version 1, which end at a multiple of 64; `shape` as Python writes it: "(2, 3)". */
static inline void npy_write_header(char out[NPY_HEADER], const char *type, const char *shape)
{
    char text[NPY_HEADER - 10];
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    memset(out, ' ', NPY_HEADER);
    memcpy(out, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(out + 10, text, strlen(text));
    out[NPY_HEADER - 1] = '\n';
}

#endif

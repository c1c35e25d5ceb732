/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the text files that tests/fixtures/make_fixtures.py writes, and brings their tensors into the packed
 * rows and canonical layouts of ops.h. Failures end the cmocka test. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "ref_harness.h"

enum { FIXTURE_TENSORS = 64 };

struct fixture_tensor {
    char name[64];
    int64_t dims[4];
    int rank;
    int64_t elems;
    double *values;
};

struct fixture {
    void *file;
    char line[4096]; /* the next case's line, read ahead */
    char keys[512];  /* of the current case: " cell=lstm layers=2 …" */
    char name[64];
    struct fixture_tensor tensors[FIXTURE_TENSORS];
    int count;
};

/* `name`: "torch". The folder is $SEQLSTM_SOURCE/tests/fixtures. */
void fixture_open(struct fixture *f, const char *name);
bool fixture_next(struct fixture *f);
void fixture_close(struct fixture *f);

/* All of it through `one_case`; the test fails unless there are `expected` cases. */
void fixture_run(const char *name, void (*one_case)(struct fixture *f), int expected);

/* A key of the current case; `otherwise` where it is absent. The text is valid until the next call. */
const char *fixture_text(struct fixture *f, const char *key, const char *otherwise);
int64_t fixture_int(struct fixture *f, const char *key, int64_t otherwise);
/* Comma-separated numbers; returns how many. */
int fixture_list(struct fixture *f, const char *key, double *out, int capacity);

/* NULL where absent; fixture_get fails instead, and checks the number of elements. */
const double *fixture_find(const struct fixture *f, const char *name);
const double *fixture_get(const struct fixture *f, const char *name, int64_t elems);

/* Padded [T, B, n] (batch_first: [B, T, n]) into the packed rows of rh's axis. `reverse` turns the time of
 * sequences of equal length around. */
void fixture_pack(const struct rh *rh, const double *padded, int64_t n, bool batch_first, bool reverse, double *rows);

/* Gates of `rows_each` rows of `columns`: out gate g is in gate order[g]. */
void fixture_reorder(const double *in, const int *order, int gates, int64_t rows_each, int64_t columns, double *out);
/* out [n, m] = in [m, n] transposed */
void fixture_transpose(const double *in, int64_t m, int64_t n, double *out);

/* |got - expected| <= tolerance * max(1, |expected|), or the test fails with case, name and element. */
void fixture_compare(const struct fixture *f, const char *name, const double *got, const double *expected, int64_t n,
                     double tolerance);

#endif

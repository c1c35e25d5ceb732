/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void fixture_open(struct fixture *f, const char *name)
{
    memset(f, 0, sizeof *f);
    const char *source = getenv("SEQLSTM_SOURCE");
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/fixtures/%s.txt", source ? source : ".", name);
    f->file = fopen(path, "r");
    if (f->file == NULL)
        fail_msg("%s cannot be opened", path);
    while (fgets(f->line, sizeof f->line, f->file) && strncmp(f->line, "case ", 5) != 0)
        continue;
    assert_true(strncmp(f->line, "case ", 5) == 0);
}

static void forget(struct fixture *f)
{
    for (int k = 0; k < f->count; k++)
        free(f->tensors[k].values);
    f->count = 0;
}

static void read_tensor(struct fixture *f)
{
    assert_true(f->count < FIXTURE_TENSORS);
    struct fixture_tensor *t = &f->tensors[f->count];
    memset(t, 0, sizeof *t);
    char *rest = NULL, *word = strtok_r(f->line + 7, " \n", &rest);
    snprintf(t->name, sizeof t->name, "%s", word);
    t->elems = 1;
    while ((word = strtok_r(NULL, " \n", &rest)) && t->rank < 4) {
        t->dims[t->rank] = atoll(word);
        t->elems *= t->dims[t->rank++];
    }
    t->values = calloc((size_t)t->elems, sizeof(double));
    f->count++;
    for (int64_t k = 0; k < t->elems; k++)
        if (fscanf(f->file, "%lf", &t->values[k]) != 1)
            fail_msg("%s, %s: %lld values, expected %lld", f->name, t->name, (long long)k, (long long)t->elems);
}

bool fixture_next(struct fixture *f)
{
    forget(f);
    if (strncmp(f->line, "case ", 5) != 0)
        return false;
    char *space = strchr(f->line + 5, ' ');
    snprintf(f->name, sizeof f->name, "%.*s", (int)(space - f->line - 5), f->line + 5);
    snprintf(f->keys, sizeof f->keys, "%.500s", space);
    f->keys[strcspn(f->keys, "\n")] = '\0';
    f->line[0] = '\0';
    while (fgets(f->line, sizeof f->line, f->file)) {
        if (strncmp(f->line, "case ", 5) == 0)
            break;
        if (strncmp(f->line, "tensor ", 7) == 0)
            read_tensor(f);
        f->line[0] = '\0';
    }
    assert_true(f->count > 0);
    return true;
}

void fixture_close(struct fixture *f)
{
    forget(f);
    fclose(f->file);
}

const char *fixture_text(struct fixture *f, const char *key, const char *otherwise)
{
    static char value[256];
    char wanted[64];
    snprintf(wanted, sizeof wanted, " %s=", key);
    const char *at = strstr(f->keys, wanted);
    if (at == NULL)
        return otherwise;
    at += strlen(wanted);
    snprintf(value, sizeof value, "%.*s", (int)strcspn(at, " "), at);
    return value;
}

int64_t fixture_int(struct fixture *f, const char *key, int64_t otherwise)
{
    const char *text = fixture_text(f, key, NULL);
    return text ? atoll(text) : otherwise;
}

int fixture_list(struct fixture *f, const char *key, double *out, int capacity)
{
    const char *text = fixture_text(f, key, NULL);
    int n = 0;
    while (text && n < capacity) {
        out[n++] = atof(text);
        text = strchr(text, ',');
        if (text)
            text++;
    }
    return n;
}

const double *fixture_find(const struct fixture *f, const char *name)
{
    for (int k = 0; k < f->count; k++)
        if (strcmp(f->tensors[k].name, name) == 0)
            return f->tensors[k].values;
    return NULL;
}

const double *fixture_get(const struct fixture *f, const char *name, int64_t elems)
{
    for (int k = 0; k < f->count; k++)
        if (strcmp(f->tensors[k].name, name) == 0) {
            if (f->tensors[k].elems != elems)
                fail_msg("%s: %s has %lld elements, expected %lld", f->name, name, (long long)f->tensors[k].elems,
                         (long long)elems);
            return f->tensors[k].values;
        }
    fail_msg("%s has no tensor %s", f->name, name);
    return NULL;
}

void fixture_pack(const struct rh *rh, const double *padded, int64_t n, bool batch_first, bool reverse, double *rows)
{
    const struct seqlstm_axis *a = &rh->axis;
    for (int64_t t = 0; t < a->steps; t++)
        for (int64_t b = 0; b < a->batch_sizes[t]; b++) {
            const int64_t from_t = reverse ? a->steps - 1 - t : t;
            const int64_t from = batch_first ? b * a->steps + from_t : from_t * a->sequences + b;
            memcpy(rows + (a->row_offsets[t] + b) * n, padded + from * n, (size_t)n * sizeof *rows);
        }
}

void fixture_reorder(const double *in, const int *order, int gates, int64_t rows_each, int64_t columns, double *out)
{
    const int64_t block = rows_each * columns;
    for (int g = 0; g < gates; g++)
        memcpy(out + g * block, in + order[g] * block, (size_t)block * sizeof *out);
}

void fixture_transpose(const double *in, int64_t m, int64_t n, double *out)
{
    for (int64_t j = 0; j < m; j++)
        for (int64_t k = 0; k < n; k++)
            out[k * m + j] = in[j * n + k];
}

void fixture_compare(const struct fixture *f, const char *name, const double *got, const double *expected, int64_t n,
                     double tolerance)
{
    for (int64_t k = 0; k < n; k++)
        if (!(fabs(got[k] - expected[k]) <= tolerance * fmax(1, fabs(expected[k]))))
            fail_msg("%s: %s[%lld] is %.15g, expected %.15g", f->name, name, (long long)k, got[k], expected[k]);
}

void fixture_run(const char *name, void (*one_case)(struct fixture *f), int expected)
{
    struct fixture f;
    int cases = 0;
    fixture_open(&f, name);
    for (; fixture_next(&f); cases++)
        one_case(&f);
    fixture_close(&f);
    assert_int_equal(cases, expected);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and the error record of the backend ABI, and two macros for functions that return them.
 *
 * Every function of the contract that can fail returns a `seqlstm_status`. On failure it also fills a
 * `struct seqlstm_error`, which the caller owns. There is nothing to free, and nothing is kept per thread. Texts are
 * copied into the record, so they stay valid after a plugin is closed. Self-contained C11, usable from C++.
 */
#ifndef SEQLSTM_STATUS_H
#define SEQLSTM_STATUS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One of the codes below. Its width is fixed because it is part of the ABI. */
typedef int32_t seqlstm_status;

enum {
    SEQLSTM_OK = 0,
    SEQLSTM_INVALID_ARGUMENT = 1, /* the caller broke the contract of the function */
    SEQLSTM_INVALID_CONFIG = 2,   /* the user's model file, option or flag is wrong */
    SEQLSTM_NOT_FOUND = 3,        /* a file, name or backend does not exist */
    SEQLSTM_UNSUPPORTED = 4,      /* not possible here, now or later: the host tries the next backend */
    SEQLSTM_UNAVAILABLE = 5,      /* a library or device is missing on this machine: tests skip, and say so */
    SEQLSTM_NO_MEMORY = 6,        /* host or device memory ran out */
    SEQLSTM_IO = 7,               /* reading or writing failed; native_code is errno */
    SEQLSTM_CORRUPT_DATA = 8,     /* input data or a stored file is damaged or incomplete */
    SEQLSTM_NUMERIC = 9,          /* NaN or infinity, or training diverged */
    SEQLSTM_ABI_MISMATCH = 10,    /* plugin and host have different ABI versions */
    SEQLSTM_DEVICE = 11,          /* the device or its library failed; native_code is its code */
    SEQLSTM_CANCELLED = 12,       /* the user stopped it */
    SEQLSTM_INTERNAL = 13         /* a bug in seqlstm or in the plugin */
};

/* What went wrong. The caller owns it; every function that takes one also accepts NULL. */
struct seqlstm_error {
    uint32_t struct_size; /* bytes of the caller's struct; set by SEQLSTM_ERROR_INIT */
    int32_t code;         /* the status that was returned */
    int32_t native_code;  /* errno, cudaError_t, cudnnStatus_t, dnnl_status_t; 0: none */
    uint32_t reserved0;   /* zero */
    char where[112];      /* "lstm_forward.c:212", or the file:line:col of the user's input */
    char message[896];    /* one sentence: what is wrong, which value, what was expected */
};

/* clang-format off */
#define SEQLSTM_ERROR_INIT {(uint32_t)sizeof(struct seqlstm_error), 0, 0, 0, {0}, {0}}
/* clang-format on */

/* Attribute of a function: its argument `string` is a printf format whose arguments begin at `first` (both count from
 * 1; first 0: a va_list). The compiler checks the calls. */
#if defined(__GNUC__)
#define SEQLSTM_PRINTF(string, first) __attribute__((format(printf, string, first)))
#else
#define SEQLSTM_PRINTF(string, first)
#endif

/* Fills `err` (NULL is allowed) and returns `code`. [any] */
static inline SEQLSTM_PRINTF(5, 6) seqlstm_status seqlstm_error_set(struct seqlstm_error *err, seqlstm_status code,
                                                                    const char *file, int line, const char *format, ...)
{
    /* the record of an older caller may be shorter than ours: write it only if it has all of `message` */
    if (err == NULL || err->struct_size < offsetof(struct seqlstm_error, message) + sizeof err->message)
        return code;
    const char *base = file;
    for (const char *p = file; *p; p++)
        if (*p == '/')
            base = p + 1;
    err->code = code;
    err->native_code = 0;
    snprintf(err->where, sizeof err->where, "%s:%d", base, line);
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

/* Returns from the calling function with `code` and the formatted message in `err`. */
#define SEQLSTM_FAIL(err, code, ...) return seqlstm_error_set((err), (code), __FILE__, __LINE__, __VA_ARGS__)

/* Returns from the calling function when `expression` is not SEQLSTM_OK; the function that failed has filled `err`. */
#define SEQLSTM_TRY(expression)                                                                                        \
    do {                                                                                                               \
        seqlstm_status seqlstm_try_status_ = (expression);                                                             \
        if (seqlstm_try_status_ != SEQLSTM_OK)                                                                         \
            return seqlstm_try_status_;                                                                                \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A call that must succeed. */
#ifndef SL_TESTS_OK_H
#define SL_TESTS_OK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <seqlstm/status.h>

/* Fails the test, with the message of the error. */
static inline void ok(seqlstm_status status, const struct seqlstm_error *err)
{
    if (status != SEQLSTM_OK)
        fail_msg("%s (%s)", err->message, err->where);
}

#endif

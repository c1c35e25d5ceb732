/* SPDX-License-Identifier: Apache-2.0 */
/* Failing on purpose (fake_cudnn.h). */
#include "fake_cudnn.h"

#define API __attribute__((visibility("default")))

static _Atomic int calls_left; /* the call that takes the last one fails; 0: none does */
static _Atomic bool has_failed;

API void fake_cudnn_fail_at(int n)
{
    has_failed = false;
    calls_left = n;
}

API int fake_cudnn_disarm(void)
{
    calls_left = 0;
    return has_failed;
}

bool fake_fails_in_turn(void)
{
    const bool now = calls_left > 0 && --calls_left == 0;
    has_failed = has_failed || now;
    return now;
}

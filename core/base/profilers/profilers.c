/* SPDX-License-Identifier: Apache-2.0 */
/* See profilers.h. */
#include "base/profilers/profilers.h"

#include <pthread.h>

#include "base/profilers/itt.h"
#include "base/profilers/nvtx.h"

static void attach(void)
{
    sl_nvtx_attach();
    sl_itt_attach();
}

void sl_profilers_attach(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, attach);
}

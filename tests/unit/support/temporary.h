/* SPDX-License-Identifier: Apache-2.0 */
/* Where tests make their files: in TMPDIR, or in /tmp, also where TMPDIR is longer than the paths of the tests have
 * room for. */
#ifndef TEMPORARY_H
#define TEMPORARY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEMPORARY_BYTES = 96, TEMPORARY_FOLDER_MOST = 64 };

/* Writes what mkdtemp and mkstemp take, and returns it. */
static inline char *temporary_template(char out[TEMPORARY_BYTES], const char *name)
{
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] != '/' || strlen(folder) > TEMPORARY_FOLDER_MOST)
        folder = "/tmp";
    snprintf(out, TEMPORARY_BYTES, "%s/seqlstm-%.10s-XXXXXX", folder, name);
    return out;
}

#endif

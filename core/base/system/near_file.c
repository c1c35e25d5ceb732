/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/near_file.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/path.h"
#include "base/value/text.h"

/* Names of the same ending are near if they are without it, or differ by one letter. */
static bool is_near(const char *said, const char *found)
{
    const char *ending = strrchr(said, '.'), *other = strrchr(found, '.');
    char stem[NAME_MAX + 1], other_stem[NAME_MAX + 1];
    const char *const one = other_stem;
    if (ending == NULL || other == NULL || strcmp(ending, other) != 0)
        return true;
    sl_text_snprintf(stem, sizeof stem, "%.*s", (int)(ending - said), said);
    sl_text_snprintf(other_stem, sizeof other_stem, "%.*s", (int)(other - found), found);
    return sl_text_distance(stem, other_stem) <= 1 || sl_text_closest(stem, &one, 1) != NULL;
}

char *sl_near_file_find(const char *path)
{
    enum { NAMES_MOST = 256 };
    char *folder = sl_path_folder(path), *names[NAMES_MOST], *near = NULL;
    DIR *open = folder ? opendir(folder) : NULL;
    size_t count = 0;
    for (struct dirent *entry; open && count < NAMES_MOST && (entry = readdir(open)) != NULL;)
        if (entry->d_name[0] != '.' && (names[count] = strdup(entry->d_name)) != NULL)
            count++;
    if (open)
        closedir(open);
    const char *closest = sl_text_closest(sl_path_name(path), (const char *const *)names, count);
    near = closest && is_near(sl_path_name(path), closest) ? strdup(closest) : NULL;
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(folder);
    return near;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A fuzz target without libFuzzer: one call for each file, and for each file directly in each folder, that is named;
 * before them for the target's own seeds. Prints how many. Exit status 1: there were none, or one cannot be read.
 *
 *   TARGET FILE|FOLDER... */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/support/temporary.h"
#include "fuzz.h"

#pragma weak LLVMFuzzerInitialize

static int replayed, failed;

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0)
        bytes = malloc(size > 0 ? (size_t)size : 1); /* of exactly this size, for the address sanitizer */
    if (bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size) {
        LLVMFuzzerTestOneInput(bytes, (size_t)size);
        replayed++;
    } else {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        failed++;
    }
    free(bytes);
    if (file)
        fclose(file);
}

static void replay(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        replay_file(path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        char inside[1024];
        snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.' && entry->d_type != DT_DIR)
            replay_file(inside);
    }
    closedir(folder);
}

/* The target writes its seeds while it initializes. */
static void replay_seeds(int argc, char **argv)
{
    char command[TEMPORARY_BYTES + 32], seeds[TEMPORARY_BYTES];
    fuzz_require(mkdtemp(temporary_template(seeds, "seeds")) != NULL && setenv("SEQLSTM_FUZZ_SEEDS", seeds, 1) == 0);
    LLVMFuzzerInitialize(&argc, &argv);
    replay(seeds);
    snprintf(command, sizeof command, "rm -r %s", seeds);
    failed += system(command) != 0;
}

int main(int argc, char **argv)
{
    if (LLVMFuzzerInitialize)
        replay_seeds(argc, argv);
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    printf("%d inputs\n", replayed);
    return failed > 0 || replayed == 0;
}

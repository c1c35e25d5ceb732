/* SPDX-License-Identifier: Apache-2.0 */
/* Files of weights in formats that are not read here. */
#include "interop/foreign.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/system/file.h"

enum { HEAD_BYTES = 128 };

struct foreign {
    const char *what;
    const char *python; /* %s: the file, and the stem of the new one's name */
};

static const struct foreign torch = {
    "a file of PyTorch", "import torch, safetensors.torch as s; s.save_file({k: v.clone() for k, v in torch.load('%s', "
                         "map_location='cpu', weights_only=True).items()}, '%s.safetensors')"};
static const struct foreign npz = {
    "an archive of NumPy",
    "import numpy, safetensors.numpy as s; s.save_file(dict(numpy.load('%s')), '%s.safetensors')"};
static const struct foreign npy = {
    "one array of NumPy",
    "import numpy, safetensors.numpy as s; s.save_file({'NAME': numpy.load('%s')}, '%s.safetensors')"};
static const struct foreign keras = {"a file of Keras",
                                     "import keras, safetensors.numpy as s; s.save_file({w.path: w.numpy() for w in "
                                     "keras.models.load_model('%s').weights}, '%s.safetensors')"};

static bool has(const unsigned char *head, size_t bytes, const char *text)
{
    size_t length = strlen(text);
    for (size_t at = 0; at + length <= bytes; at++)
        if (memcmp(head + at, text, length) == 0)
            return true;
    return false;
}

/* NULL: none of these. Archives are told apart by the name of their first member. */
static const struct foreign *find(const unsigned char *head, size_t bytes)
{
    enum { MEMBER = 30 }; /* where the name begins */
    static const unsigned char zip[] = {'P', 'K', 3, 4}, hdf[] = {0x89, 'H', 'D', 'F'}, numpy[] = {0x93, 'N', 'U', 'M'};
    if (bytes >= sizeof hdf && memcmp(head, hdf, sizeof hdf) == 0)
        return &keras;
    if (bytes >= sizeof numpy && memcmp(head, numpy, sizeof numpy) == 0)
        return &npy;
    if (bytes >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5) /* pickle, which torch.save wrote before 1.6 */
        return bytes > 8 && memcmp(head + 2, "\0\0\0\0\0\0", 6) == 0 ? NULL : &torch; /* NULL: safetensors */
    if (bytes <= MEMBER || memcmp(head, zip, sizeof zip) != 0)
        return NULL;
    size_t length = head[26] + 256u * head[27], left = bytes - MEMBER;
    const unsigned char *name = head + MEMBER;
    length = length < left ? length : left;
    if (has(name, length, ".npy"))
        return &npz;
    return has(name, length, "metadata.json") || has(name, length, "config.json") || has(name, length, ".h5") ? &keras
                                                                                                              : &torch;
}

seqlstm_status sl_foreign_refuse(const char *path, struct seqlstm_error *err)
{
    unsigned char head[HEAD_BYTES] = {0};
    char python[512];
    FILE *file = sl_file_is_regular(path) ? fopen(path, "rbe") : NULL; /* a pipe can be read only once */
    size_t bytes = file ? fread(head, 1, sizeof head, file) : 0;
    if (file)
        fclose(file);
    const struct foreign *found = find(head, bytes);
    if (found == NULL)
        return SEQLSTM_OK;
    const char *begin = strrchr(path, '/'), *name = begin ? begin + 1 : path;
    const char *ending = strrchr(name, '.');
    size_t stem = ending && ending > name ? (size_t)(ending - path) : strlen(path);
    char new_name[256];
    snprintf(new_name, sizeof new_name, "%.*s", (int)(stem < 200 ? stem : 200), path);
    const char *first = strstr(found->python, "%s"), *second = strstr(first + 2, "%s");
    snprintf(python, sizeof python, "%.*s%.160s%.*s%s%s", (int)(first - found->python), found->python, path,
             (int)(second - first - 2), first + 2, new_name, second + 2);
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                 "%s is %s; this line writes its weights as safetensors, which can be imported: python3 -c \"%s\"",
                 path, found->what, python);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See objects.h. */
#include "registry/objects.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct object {
    const char *path;    /* resolved */
    const char *soname;  /* "" if none */
    const char **needed; /* sonames */
    uint32_t needed_count;
    const char *build_id;
    bool taken;
};

struct collection {
    struct sl_arena *arena;
    struct object *objects;
    uint32_t count, capacity;
    bool failed;
};

static const char *read_build_id(struct sl_arena *arena, const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        const unsigned char *p = (const unsigned char *)(info->dlpi_addr + segment->p_vaddr);
        const unsigned char *end = p + segment->p_memsz;
        size_t align = segment->p_align == 8 ? 8 : 4;
        while ((size_t)(end - p) >= sizeof(ElfW(Nhdr))) {
            ElfW(Nhdr) note;
            memcpy(&note, p, sizeof note);
            const unsigned char *name = p + sizeof note;
            size_t name_bytes = ((size_t)note.n_namesz + 3) & ~(size_t)3;
            size_t body = (sizeof note + name_bytes + align - 1) & ~(align - 1);
            size_t total = (body + note.n_descsz + align - 1) & ~(align - 1);
            if (body + note.n_descsz > (size_t)(end - p))
                break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
                char *hex = sl_arena_alloc(arena, (size_t)note.n_descsz * 2 + 1);
                for (size_t k = 0; hex && k < note.n_descsz; k++) {
                    static const char digits[] = "0123456789abcdef";
                    hex[2 * k] = digits[p[body + k] >> 4];
                    hex[2 * k + 1] = digits[p[body + k] & 15];
                }
                return hex;
            }
            if (total > (size_t)(end - p))
                break;
            p += total;
        }
    }
    return sl_arena_strdup(arena, "");
}

/* An address from the dynamic section, relocated: on most machines, but not on all, glibc has done that already. */
static ElfW(Addr) relocated(const struct dl_phdr_info *info, ElfW(Addr) address)
{
    return address < info->dlpi_addr ? address + info->dlpi_addr : address;
}

static bool read_dynamic(struct collection *all, const struct dl_phdr_info *info, struct object *object)
{
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    object->soname = "";
    if (!dynamic)
        return true;
    const char *strings = NULL;
    uint32_t needed = 0;
    for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB)
            strings = (const char *)relocated(info, d->d_un.d_ptr);
        needed += d->d_tag == DT_NEEDED;
    }
    if (!strings)
        return true;
    object->needed = SL_ARENA_ARRAY(all->arena, const char *, needed ? needed : 1);
    if (!object->needed)
        return false;
    for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SONAME)
            object->soname = strings + d->d_un.d_val;
        if (d->d_tag == DT_NEEDED)
            object->needed[object->needed_count++] = strings + d->d_un.d_val;
    }
    return true;
}

static int visit(struct dl_phdr_info *info, size_t bytes, void *context)
{
    struct collection *all = context;
    (void)bytes;
    if (!info->dlpi_name || info->dlpi_name[0] != '/')
        return 0; /* the program, the vdso */
    if (all->count == all->capacity) {
        uint32_t capacity = all->capacity ? 2 * all->capacity : 32;
        struct object *grown = SL_ARENA_ARRAY(all->arena, struct object, capacity);
        if (!grown)
            goto failed;
        if (all->count)
            memcpy(grown, all->objects, all->count * sizeof *grown);
        all->objects = grown;
        all->capacity = capacity;
    }
    struct object *object = &all->objects[all->count];
    char real[PATH_MAX];
    const char *name = realpath(info->dlpi_name, real) ? real : info->dlpi_name;
    object->path = sl_arena_strdup(all->arena, name);
    object->build_id = read_build_id(all->arena, info);
    if (!object->path || !object->build_id || !read_dynamic(all, info, object))
        goto failed;
    all->count++;
    return 0;
failed:
    all->failed = true;
    return 1;
}

static struct object *find_object(struct collection *all, const char *soname)
{
    for (uint32_t i = 0; i < all->count; i++) {
        const char *slash = strrchr(all->objects[i].path, '/');
        if (strcmp(all->objects[i].soname, soname) == 0 ||
            strcmp(slash ? slash + 1 : all->objects[i].path, soname) == 0)
            return &all->objects[i];
    }
    return NULL;
}

seqlstm_status sl_objects_find(struct sl_arena *arena, const char *path, struct sl_backend_file **out_files,
                               uint32_t *out_count, struct seqlstm_error *err)
{
    struct collection all = {.arena = arena};
    dl_iterate_phdr(visit, &all);
    struct object **order = SL_ARENA_ARRAY(arena, struct object *, all.count + 1);
    struct sl_backend_file *files = SL_ARENA_ARRAY(arena, struct sl_backend_file, all.count + 1);
    if (all.failed || !order || !files)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while listing the files of %s", path);
    uint32_t count = 0;
    for (uint32_t i = 0; i < all.count && count == 0; i++)
        if (strcmp(all.objects[i].path, path) == 0) {
            all.objects[i].taken = true;
            order[count++] = &all.objects[i];
        }
    for (uint32_t done = 0; done < count; done++) {
        const struct object *object = order[done];
        for (uint32_t k = 0; k < object->needed_count; k++) {
            struct object *next = find_object(&all, object->needed[k]);
            if (next && !next->taken) {
                next->taken = true;
                order[count++] = next;
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        files[i].path = order[i]->path;
        files[i].soname = sl_arena_strdup(arena, order[i]->soname);
        if (!files[i].soname)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while listing the files of %s", path);
        files[i].build_id = order[i]->build_id;
    }
    *out_files = files;
    *out_count = count;
    return SEQLSTM_OK;
}

seqlstm_status sl_objects_list(struct sl_arena *arena, struct sl_backend_file **out_files, uint32_t *out_count,
                               struct seqlstm_error *err)
{
    struct collection all = {.arena = arena};
    dl_iterate_phdr(visit, &all);
    struct sl_backend_file *files = SL_ARENA_ARRAY(arena, struct sl_backend_file, all.count + 1);
    if (all.failed || !files)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while listing mapped files");
    for (uint32_t i = 0; i < all.count; i++) {
        files[i] = (struct sl_backend_file){.path = all.objects[i].path,
                                            .soname = sl_arena_strdup(arena, all.objects[i].soname),
                                            .build_id = all.objects[i].build_id};
        if (!files[i].soname)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while listing mapped files");
    }
    *out_files = files;
    *out_count = all.count;
    return SEQLSTM_OK;
}

sl_hidden_function sl_objects_find_hidden(const char *name)
{
    sl_hidden_function found;
    void *symbol = dlsym(RTLD_NEXT, name);
    memcpy(&found, &symbol, sizeof found);
    return found;
}

const char *sl_objects_find_path(const void *code)
{
    Dl_info found;
    return dladdr(code, &found) ? found.dli_fname : NULL;
}

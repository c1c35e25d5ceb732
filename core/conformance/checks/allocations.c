/* SPDX-License-Identifier: Apache-2.0 */
/* See allocations.h. */
#include "conformance/checks/allocations.h"

#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "registry/watch/running.h"

enum { OBJECTS_MOST = 64 };

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT, ADDRESS = R_X86_64_64 };
#elif defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT, ADDRESS = R_AARCH64_ABS64 };
#else
enum { JUMP_SLOT = -1, GLOB_DAT = -1, ADDRESS = -1 }; /* nothing is counted */
#endif

/* A mapped file whose calls are counted. */
struct object {
    uintptr_t begin, end;
    char name[64];
    _Atomic int64_t count;
    bool told;
};

static struct object objects[OBJECTS_MOST]; /* the first is the plugin */
static int object_count;

/* ---- the functions that count --------------------------------------------------------------------------------- */

static void note(const void *caller)
{
    const struct sl_running *running = sl_running_get();
    if (!running || (running->function != SL_FUNCTION_FORWARD && running->function != SL_FUNCTION_BACKWARD))
        return;
    for (int k = 0; k < object_count; k++)
        if ((uintptr_t)caller >= objects[k].begin && (uintptr_t)caller < objects[k].end)
            atomic_fetch_add_explicit(&objects[k].count, 1, memory_order_relaxed);
}

#define NOTE note(__builtin_return_address(0))

static void *count_malloc(size_t bytes)
{
    NOTE;
    return malloc(bytes);
}

static void *count_calloc(size_t count, size_t bytes)
{
    NOTE;
    return calloc(count, bytes);
}

static void *count_realloc(void *block, size_t bytes)
{
    NOTE;
    return realloc(block, bytes);
}

static void *count_aligned_alloc(size_t alignment, size_t bytes)
{
    NOTE;
    return memalign(alignment, bytes);
}

static int count_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    NOTE;
    return posix_memalign(out, alignment, bytes);
}

static char *count_strdup(const char *text)
{
    NOTE;
    return strdup(text);
}

/* The core does not link C++'s `new`, so the function at the address that was there does the work. */
static void *(*new_one)(size_t), *(*new_array)(size_t);

static void *count_new(size_t bytes)
{
    NOTE;
    return new_one(bytes);
}

static void *count_new_array(size_t bytes)
{
    NOTE;
    return new_array(bytes);
}

struct replacement {
    const char *name;
    void *function;
    void *(**original)(size_t); /* if the function has to call the one it replaces; else NULL */
};

static const struct replacement replacements[] = {
    {"malloc", (void *)(uintptr_t)count_malloc, NULL},
    {"calloc", (void *)(uintptr_t)count_calloc, NULL},
    {"realloc", (void *)(uintptr_t)count_realloc, NULL},
    {"aligned_alloc", (void *)(uintptr_t)count_aligned_alloc, NULL},
    {"memalign", (void *)(uintptr_t)count_aligned_alloc, NULL},
    {"posix_memalign", (void *)(uintptr_t)count_posix_memalign, NULL},
    {"strdup", (void *)(uintptr_t)count_strdup, NULL},
    {"_Znwm", (void *)(uintptr_t)count_new, &new_one},
    {"_Znam", (void *)(uintptr_t)count_new_array, &new_array},
};

/* ---- the addresses of an object ------------------------------------------------------------------------------- */

static void replace(void **place, const struct replacement *with)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)place / page * page;
    if (*place == with->function || mprotect((void *)begin, page, PROT_READ | PROT_WRITE) != 0)
        return;
    if (with->original && *with->original == NULL)
        memcpy(with->original, place, sizeof *place);
    *place = with->function; /* the page stays writable, because parts of it may have been writable before */
}

static void replace_all(uintptr_t base, const ElfW(Rela) * relocations, size_t bytes, const ElfW(Sym) * symbols,
                        const char *names)
{
    for (size_t k = 0; relocations && symbols && names && k < bytes / sizeof *relocations; k++) {
        const int type = (int)ELF64_R_TYPE(relocations[k].r_info);
        if ((type != JUMP_SLOT && type != GLOB_DAT && type != ADDRESS) || relocations[k].r_addend != 0)
            continue;
        const char *name = names + symbols[ELF64_R_SYM(relocations[k].r_info)].st_name;
        for (size_t r = 0; r < sizeof replacements / sizeof *replacements; r++)
            if (strcmp(name, replacements[r].name) == 0)
                replace((void **)(base + relocations[k].r_offset), &replacements[r]);
    }
}

/* An address in the dynamic section. glibc has already turned it into an address in memory. */
static const void *locate(uintptr_t base, uintptr_t value)
{
    return (const void *)(value < base ? value + base : value);
}

static void replace_in(uintptr_t base, const ElfW(Dyn) * dynamic)
{
    const void *symbols = NULL, *names = NULL, *jumps = NULL, *others = NULL;
    size_t jump_bytes = 0, other_bytes = 0;
    for (; dynamic->d_tag != DT_NULL; dynamic++)
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            symbols = locate(base, dynamic->d_un.d_ptr);
            break;
        case DT_STRTAB:
            names = locate(base, dynamic->d_un.d_ptr);
            break;
        case DT_JMPREL:
            jumps = locate(base, dynamic->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            jump_bytes = dynamic->d_un.d_val;
            break;
        case DT_RELA:
            others = locate(base, dynamic->d_un.d_ptr);
            break;
        case DT_RELASZ:
            other_bytes = dynamic->d_un.d_val;
            break;
        }
    replace_all(base, jumps, jump_bytes, symbols, names);
    replace_all(base, others, other_bytes, symbols, names);
}

/* ---- the objects ---------------------------------------------------------------------------------------------- */

/* Libraries that every program uses, and that allocate for others. */
static bool is_of_the_system(const char *name)
{
    static const char *const known[] = {"libc.",  "ld-",      "libpthread.", "libdl.",    "libm.",
                                        "librt.", "libasan.", "libtsan.",    "libubsan.", "libstdc++."};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strncmp(name, known[k], strlen(known[k])) == 0)
            return true;
    return false;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int watch_object(struct dl_phdr_info *info, size_t bytes, void *path)
{
    (void)bytes;
    char real[4096];
    if (!info->dlpi_name || !realpath(info->dlpi_name, real) || strcmp(real, path) != 0)
        return 0;
    struct object *object = &objects[object_count];
    const ElfW(Dyn) *dynamic = NULL;
    *object = (struct object){.begin = UINTPTR_MAX};
    strncpy(object->name, base_name(path), sizeof object->name - 1);
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[k].p_vaddr;
        if (info->dlpi_phdr[k].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)begin;
        if (info->dlpi_phdr[k].p_type != PT_LOAD)
            continue;
        object->begin = begin < object->begin ? begin : object->begin;
        object->end =
            begin + info->dlpi_phdr[k].p_memsz > object->end ? begin + info->dlpi_phdr[k].p_memsz : object->end;
    }
    object_count++;
    if (dynamic)
        replace_in(info->dlpi_addr, dynamic);
    return 1;
}

void sl_allocations_watch(const struct sl_backend_record *record)
{
    object_count = 0;
    for (uint32_t f = 0; f < record->file_count && object_count < OBJECTS_MOST; f++) {
        char real[4096];
        if (realpath(record->files[f].path, real) && (f == 0 || !is_of_the_system(base_name(real))))
            dl_iterate_phdr(watch_object, real);
        if (f == 0 && object_count == 0)
            return; /* the first must be the plugin */
    }
}

int64_t sl_allocations_take_own(void)
{
    return object_count > 0 ? atomic_exchange(&objects[0].count, 0) : 0;
}

const char *sl_allocations_take_library(void)
{
    for (int k = 1; k < object_count; k++)
        if (!objects[k].told && atomic_load(&objects[k].count) > 0) {
            objects[k].told = true;
            return objects[k].name;
        }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads dynamic symbols from files and Build-IDs and dependencies from mapped objects. */
#include "registry/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUERY_PREFIX "seqlstm_backend_query_v"

/* ---- the file ------------------------------------------------------------------------------- */

struct view {
    const unsigned char *data;
    size_t bytes;
};

/* The `bytes` bytes at `offset`, or NULL when the file is shorter. */
static const void *at(struct view view, uint64_t offset, uint64_t bytes)
{
    if (offset > view.bytes || bytes > view.bytes - offset)
        return NULL;
    return view.data + offset;
}

static bool is_query_symbol(const char *name)
{
    size_t n = strlen(QUERY_PREFIX);
    return strncmp(name, QUERY_PREFIX, n) == 0 && name[n] != 0 && strspn(name + n, "0123456789") == strlen(name + n);
}

static seqlstm_status check_symbols(struct view view, const ElfW(Shdr) * symbols, const ElfW(Shdr) * strings,
                                    struct seqlstm_error *err)
{
    uint64_t count = symbols->sh_size / sizeof(ElfW(Sym));
    const char *text = at(view, strings->sh_offset, strings->sh_size);
    if (!text || strings->sh_size == 0 || text[strings->sh_size - 1] != 0 ||
        symbols->sh_offset % sizeof(uint64_t) != 0 || !at(view, symbols->sh_offset, count * sizeof(ElfW(Sym))))
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "the file is damaged: its symbol table lies outside it");
    const ElfW(Sym) *table = (const void *)(view.data + symbols->sh_offset);
    bool found = false;
    int foreign = 0;
    const char *first = NULL;
    for (uint64_t i = 1; i < count; i++) {
        unsigned bind = ELF64_ST_BIND(table[i].st_info);
        if (table[i].st_shndx == SHN_UNDEF || bind == STB_LOCAL || table[i].st_name >= strings->sh_size)
            continue;
        const char *name = text + table[i].st_name;
        if (strcmp(name, SEQLSTM_QUERY_SYMBOL) == 0)
            found = true;
        else if (!is_query_symbol(name) && foreign++ == 0)
            first = name;
    }
    if (!found)
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "it does not export %s: it is no seqlstm backend of ABI v%u",
                     SEQLSTM_QUERY_SYMBOL, SEQLSTM_ABI_MAJOR);
    if (foreign > 0)
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH,
                     "it exports %d symbol%s besides %s (%.100s%s): link it with a version script", foreign,
                     foreign == 1 ? "" : "s", SEQLSTM_QUERY_SYMBOL, first, foreign == 1 ? "" : ", …");
    return SEQLSTM_OK;
}

static seqlstm_status check_image(struct view view, struct seqlstm_error *err)
{
    const ElfW(Ehdr) *head = at(view, 0, sizeof *head);
    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "it is not an ELF file");
    ElfW(Ehdr) own = {.e_machine = 0};
#if defined(__x86_64__)
    own.e_machine = EM_X86_64;
#elif defined(__aarch64__)
    own.e_machine = EM_AARCH64;
#endif
    if (head->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        (own.e_machine != 0 && head->e_machine != own.e_machine))
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "it is made for another kind of processor (ELF machine %u)",
                     (unsigned)head->e_machine);
    if (head->e_type != ET_DYN)
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "it is not a shared object (ELF type %u)", (unsigned)head->e_type);
    const ElfW(Shdr) *sections = at(view, head->e_shoff, (uint64_t)head->e_shnum * sizeof *sections);
    if (!sections || head->e_shnum == 0 || head->e_shoff % sizeof(uint64_t) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "the file is damaged or cut short: no section table");
    for (unsigned i = 0; i < head->e_shnum; i++)
        if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < head->e_shnum)
            return check_symbols(view, &sections[i], &sections[sections[i].sh_link], err);
    SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "it exports nothing");
}

seqlstm_status sl_elf_check_plugin(const char *path, struct seqlstm_error *err)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) {
        int code = errno;
        if (file >= 0)
            close(file);
        SEQLSTM_FAIL(err, SEQLSTM_IO, "it cannot be read: %s", strerror(code));
    }
    struct view view = {NULL, (size_t)status.st_size};
    void *map = MAP_FAILED;
    if (S_ISREG(status.st_mode) && status.st_size > 0)
        map = mmap(NULL, view.bytes, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (map == MAP_FAILED)
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "it is not an ELF file");
    view.data = map;
    seqlstm_status rc = check_image(view, err);
    munmap(map, view.bytes);
    return rc;
}

/* ---- mapped objects ------------------------------------------------------------------------- */

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

/* An address of the dynamic section: glibc relocates them in place on most machines, not on all. */
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

seqlstm_status sl_elf_collect(struct sl_arena *arena, const char *path, struct sl_backend_file **out_files,
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

seqlstm_status sl_elf_list(struct sl_arena *arena, struct sl_backend_file **out_files, uint32_t *out_count,
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

/* SPDX-License-Identifier: Apache-2.0 */
/* See elf.h. */
#include "registry/kind/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool is_query_symbol(const struct sl_plugin_kind *kind, const char *name)
{
    size_t n = strlen(kind->symbol_stem);
    return strncmp(name, kind->symbol_stem, n) == 0 && name[n] != 0 &&
           strspn(name + n, "0123456789") == strlen(name + n);
}

static seqlstm_status check_symbols(struct view view, const struct sl_plugin_kind *kind, const ElfW(Shdr) * symbols,
                                    const ElfW(Shdr) * strings, struct seqlstm_error *err)
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
        if (strcmp(name, kind->symbol) == 0)
            found = true;
        else if (!is_query_symbol(kind, name) && foreign++ == 0)
            first = name;
    }
    if (!found)
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "it does not export %s, so it is not a seqlstm %s of ABI v%u",
                     kind->symbol, kind->noun, kind->abi_major);
    if (foreign > 0)
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH,
                     "it exports %d symbol%s besides %s (%.100s%s): link it with a version script", foreign,
                     foreign == 1 ? "" : "s", kind->symbol, first, foreign == 1 ? "" : ", …");
    return SEQLSTM_OK;
}

static seqlstm_status check_image(struct view view, const struct sl_plugin_kind *kind, struct seqlstm_error *err)
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
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "it is built for another kind of processor (ELF machine %u)",
                     (unsigned)head->e_machine);
    if (head->e_type != ET_DYN)
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "it is not a shared object (ELF type %u)", (unsigned)head->e_type);
    const ElfW(Shdr) *sections = at(view, head->e_shoff, (uint64_t)head->e_shnum * sizeof *sections);
    if (!sections || head->e_shnum == 0 || head->e_shoff % sizeof(uint64_t) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "the file is damaged or cut short: no section table");
    for (unsigned i = 0; i < head->e_shnum; i++)
        if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < head->e_shnum)
            return check_symbols(view, kind, &sections[i], &sections[sections[i].sh_link], err);
    SEQLSTM_FAIL(err, SEQLSTM_ABI_MISMATCH, "it exports nothing");
}

seqlstm_status sl_elf_check_plugin(const char *path, const struct sl_plugin_kind *kind, struct seqlstm_error *err)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is not waited for */
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
    seqlstm_status rc = check_image(view, kind, err);
    munmap(map, view.bytes);
    return rc;
}

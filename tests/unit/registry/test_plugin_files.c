/* SPDX-License-Identifier: Apache-2.0 */
/* What a file must be before it is mapped as a plugin: images of ELF files with one thing wrong, and files that are not
 * loaded whatever they hold. */
#include "ok.h"
#include "scratch.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/file_writer.h"
#include "registry/kind/elf.h"
#include "registry/loader.h"

/* ---- images ------------------------------------------------------------------------------------------------------ */

enum { SYMBOLS = 8, STRINGS = 256 };

struct image {
    Elf64_Ehdr head;
    Elf64_Shdr sections[3]; /* none, symbols, strings */
    Elf64_Sym symbols[SYMBOLS];
    char strings[STRINGS];
};

static struct image image;
static size_t image_bytes;
static int symbol_count;
static size_t string_bytes;

static void add_symbol(const char *name, unsigned bind, uint16_t section)
{
    image.symbols[symbol_count] = (Elf64_Sym){.st_name = (Elf64_Word)string_bytes,
                                              .st_info = (unsigned char)ELF64_ST_INFO(bind, STT_FUNC),
                                              .st_shndx = section};
    memcpy(image.strings + string_bytes, name, strlen(name) + 1);
    string_bytes += strlen(name) + 1;
    symbol_count++;
    image.sections[1].sh_size = (uint64_t)symbol_count * sizeof(Elf64_Sym);
    image.sections[2].sh_size = string_bytes;
}

/* A backend that exports what it must, and uses a function of another library. */
static void make_image(void)
{
    memset(&image, 0, sizeof image);
    image_bytes = sizeof image;
    symbol_count = 1; /* the first one stands for none */
    string_bytes = 1;
    memcpy(image.head.e_ident, ELFMAG, SELFMAG);
    image.head.e_ident[EI_CLASS] = ELFCLASS64;
    image.head.e_type = ET_DYN;
#if defined(__aarch64__)
    image.head.e_machine = EM_AARCH64;
#else
    image.head.e_machine = EM_X86_64;
#endif
    image.head.e_shoff = offsetof(struct image, sections);
    image.head.e_shnum = 3;
    image.sections[1] = (Elf64_Shdr){.sh_type = SHT_DYNSYM, .sh_link = 2, .sh_offset = offsetof(struct image, symbols)};
    image.sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = offsetof(struct image, strings)};
    add_symbol("malloc", STB_GLOBAL, SHN_UNDEF);
    add_symbol(SEQLSTM_QUERY_SYMBOL, STB_GLOBAL, 1);
}

static void leave_right(void)
{
}

static void export_other_version(void)
{
    add_symbol("seqlstm_backend_query_v17", STB_GLOBAL, 1);
}

static void have_local(void)
{
    add_symbol("helper", STB_LOCAL, 1);
}

static void export_one(void)
{
    add_symbol("helper", STB_WEAK, 1);
}

static void export_two(void)
{
    add_symbol("first", STB_GLOBAL, 1);
    add_symbol("second", STB_GLOBAL, 1);
}

static void export_stem(void)
{
    add_symbol("seqlstm_backend_query_v", STB_GLOBAL, 1);
}

static void export_odd_version(void)
{
    add_symbol("seqlstm_backend_query_v1b", STB_GLOBAL, 1);
}

static void export_none(void)
{
    image.symbols[2].st_shndx = SHN_UNDEF;
}

static void name_outside(void)
{
    image.symbols[2].st_name = (Elf64_Word)image.sections[2].sh_size;
}

static void cut_head(void)
{
    image_bytes = sizeof image.head - 1;
}

static void cut_sections(void)
{
    image_bytes = offsetof(struct image, sections) + sizeof image.sections - 1;
}

static void cut_strings(void)
{
    image_bytes = offsetof(struct image, strings) + string_bytes - 1;
}

static void cut_to_nothing(void)
{
    image_bytes = 0;
}

static void spoil_magic(void)
{
    image.head.e_ident[3] = 'G';
}

static void halve_class(void)
{
    image.head.e_ident[EI_CLASS] = ELFCLASS32;
}

static void change_machine(void)
{
    image.head.e_machine = EM_S390;
}

static void be_a_program(void)
{
    image.head.e_type = ET_EXEC;
}

static void have_no_section(void)
{
    image.head.e_shnum = 0;
}

static void shift_sections(void)
{
    image.head.e_shoff += 4;
}

static void move_sections_out(void)
{
    image.head.e_shoff = UINT64_MAX - 7;
}

static void link_outside(void)
{
    image.sections[1].sh_link = 3;
}

static void have_no_symbols(void)
{
    image.sections[1].sh_type = SHT_SYMTAB;
}

static void have_no_strings(void)
{
    image.sections[2].sh_size = 0;
}

static void end_no_string(void)
{
    image.sections[2].sh_size--;
}

static void shift_symbols(void)
{
    image.sections[1].sh_offset += 4;
}

static void move_symbols_out(void)
{
    image.sections[1].sh_offset = sizeof image;
}

static void each_image_is_checked(void **state)
{
    (void)state;
#define DAMAGED "the file is damaged: its symbol table lies outside it"
#define CUT     "the file is damaged or cut short: no section table"
#define BESIDES " besides " SEQLSTM_QUERY_SYMBOL
#define SCRIPT  ": link it with a version script"
#define NOT_ONE "it does not export " SEQLSTM_QUERY_SYMBOL ", so it is not a seqlstm backend of ABI v0"
    static const struct {
        void (*change)(void);
        const char *message; /* NULL: it is right */
    } rows[] = {{leave_right, NULL},
                {export_other_version, NULL},
                {have_local, NULL},
                {export_one, "it exports 1 symbol" BESIDES " (helper)" SCRIPT},
                {export_two, "it exports 2 symbols" BESIDES " (first, …)" SCRIPT},
                {export_stem, "it exports 1 symbol" BESIDES " (seqlstm_backend_query_v)" SCRIPT},
                {export_odd_version, "it exports 1 symbol" BESIDES " (seqlstm_backend_query_v1b)" SCRIPT},
                {export_none, NOT_ONE},
                {name_outside, NOT_ONE},
                {cut_head, "it is not an ELF file"},
                {cut_to_nothing, "it is not an ELF file"},
                {cut_sections, CUT},
                {cut_strings, DAMAGED},
                {spoil_magic, "it is not an ELF file"},
                {halve_class, NULL},
                {change_machine, "it is built for another kind of processor (ELF machine 22)"},
                {be_a_program, "it is not a shared object (ELF type 2)"},
                {have_no_section, CUT},
                {shift_sections, CUT},
                {move_sections_out, CUT},
                {link_outside, "it exports nothing"},
                {have_no_symbols, "it exports nothing"},
                {have_no_strings, DAMAGED},
                {end_no_string, DAMAGED},
                {shift_symbols, DAMAGED},
                {move_symbols_out, DAMAGED}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        make_image();
        rows[k].change();
        assert_int_equal(sl_file_write(scratch_path("plugin.so"), &image, image_bytes, NULL), SEQLSTM_OK);
        const seqlstm_status status = sl_elf_check_plugin(scratch_path("plugin.so"), &sl_backend_kind, &err);
        if (rows[k].change == halve_class) { /* with the number of the machine, which depends on it */
            assert_int_equal(status, SEQLSTM_ABI_MISMATCH);
            assert_non_null(strstr(err.message, "it is built for another kind of processor (ELF machine "));
            continue;
        }
        if (status != (rows[k].message ? SEQLSTM_ABI_MISMATCH : SEQLSTM_OK) ||
            strcmp(err.message, rows[k].message ? rows[k].message : "") != 0)
            fail_msg("image %d: %s", (int)k, err.message);
    }
}

static void a_file_that_cannot_be_read_is_no_plugin(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_elf_check_plugin(scratch_path("gone.so"), &sl_backend_kind, &err), SEQLSTM_IO);
    assert_string_equal(err.message, "it cannot be read: No such file or directory");
    assert_int_equal(sl_elf_check_plugin(scratch_folder, &sl_backend_kind, &err), SEQLSTM_ABI_MISMATCH);
    assert_string_equal(err.message, "it is not an ELF file");
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void expect_record(const char *path, bool trust, enum sl_backend_status status, const char *reason)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_backend_record record = {.id = "x"};
    struct seqlstm_backend table;
    struct sl_arena arena;
    sl_arena_init(&arena);
    memset(&table, 0x55, sizeof table);
    ok(sl_loader_load(&arena, &sl_backend_kind, path, trust, &record, &table, &err), &err);
    assert_string_equal(record.reason, reason);
    assert_int_equal(record.status, status);
    assert_string_equal(record.file, path);
    assert_null(table.id); /* of no plugin that was refused */
    sl_arena_deinit(&arena);
}

/* Each with its own reason, before anything is mapped. */
static void files_are_refused_before_they_are_mapped(void **state)
{
    (void)state;
    char reason[600], path[256], open[256], folder[256], real[4096];
    make_image();
    snprintf(path, sizeof path, "%s", scratch_path("gone.so"));
    snprintf(open, sizeof open, "%s", scratch_path("open.so"));
    snprintf(folder, sizeof folder, "%s", scratch_path("folder.so"));
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_int_equal(sl_file_write(open, &image, image_bytes - sizeof image.strings, NULL), SEQLSTM_OK);
    assert_int_equal(chmod(open, 0666), 0);
    expect_record("open.so", true, SL_BACKEND_REFUSED, "its path is not absolute");
    snprintf(reason, sizeof reason, "%s: No such file or directory", path);
    expect_record(path, true, SL_BACKEND_NOT_FOUND, reason);
    snprintf(reason, sizeof reason, "%s is not a file", folder);
    expect_record(folder, true, SL_BACKEND_REFUSED, reason);
    snprintf(path, sizeof path, "%s/beyond", open);
    snprintf(reason, sizeof reason, "%s: Not a directory", path);
    expect_record(path, true, SL_BACKEND_REFUSED, reason);
    assert_non_null(realpath(open, real));
    snprintf(reason, sizeof reason, "it is not safe to load: any user may write to %.256s (--trust loads it anyway)",
             real);
    expect_record(open, false, SL_BACKEND_REFUSED, reason);
    expect_record(open, true, SL_BACKEND_REFUSED, "the file is damaged: its symbol table lies outside it");
}

/* A link of one's own leads to what others may replace. */
static void where_a_link_leads_is_what_must_be_safe(void **state)
{
    (void)state;
    char reason[600], target[256], folder[256], real[4096];
    make_image();
    snprintf(folder, sizeof folder, "%s", scratch_path("shared"));
    snprintf(target, sizeof target, "%s", scratch_path("shared/x.so"));
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_int_equal(sl_file_write(target, &image, image_bytes - sizeof image.strings, NULL), SEQLSTM_OK);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(symlink(target, scratch_path("link.so")), 0);
    assert_non_null(realpath(folder, real));
    snprintf(reason, sizeof reason, "it is not safe to load: any user may write to %.256s (--trust loads it anyway)",
             real);
    expect_record(scratch_path("link.so"), false, SL_BACKEND_REFUSED, reason);
    assert_int_equal(chmod(folder, 0755), 0);
    expect_record(scratch_path("link.so"), false, SL_BACKEND_REFUSED,
                  "the file is damaged: its symbol table lies outside it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_image_is_checked),
        cmocka_unit_test(a_file_that_cannot_be_read_is_no_plugin),
        cmocka_unit_test(files_are_refused_before_they_are_mapped),
        cmocka_unit_test(where_a_link_leads_is_what_must_be_safe),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

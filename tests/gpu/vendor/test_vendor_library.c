/* SPDX-License-Identifier: Apache-2.0 */
/* Where vendors' libraries are found: in each of the folders below a named one, whichever it is, in a Python
 * environment only where the wheels put them, and nowhere else. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../unit/support/temporary.h"
#include "common/vendor_library.h"

#define FILE_NAME "libsurely_nowhere.so.3"

static const char *const folders[] = {"", "lib64/", "nvidia/one/lib/", "nvidia/two/lib/", NULL};
static const struct vendor_library wanted = {FILE_NAME, folders};
static char root[TEMPORARY_BYTES];
static const char *real; /* a library that is there */

/* Makes root/below/FILE_NAME, a link to the real library, or removes it again. */
static void put(const char *below, bool there)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, below);
    for (char *at = path + strlen(root) + 1; there && (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    strcat(path, FILE_NAME);
    assert_int_equal(there ? symlink(real, path) : unlink(path), 0);
}

static bool opens(const char *place, char reason[512])
{
    reason[0] = '\0';
    void *library = vendor_library_open(&wanted, place, reason, 512);
    if (library)
        dlclose(library);
    return library != NULL;
}

static void each_folder_below_is_searched(void **state)
{
    (void)state;
    char reason[512];
    for (int k = 0; folders[k]; k++) {
        assert_false(opens(root, reason));
        assert_non_null(strstr(reason, "has no " FILE_NAME));
        assert_non_null(strstr(reason, "lib64/ nvidia/one/lib/ nvidia/two/lib/"));
        put(folders[k], true);
        if (!opens(root, reason))
            fail_msg("not found in `%s`: %s", folders[k], reason);
        put(folders[k], false);
    }
}

static void environments_have_the_folders_of_wheels(void **state)
{
    (void)state;
    static const char *const variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    char reason[512], below[128];
    for (int v = 0; v < 2; v++) {
        unsetenv("VIRTUAL_ENV");
        unsetenv("CONDA_PREFIX");
        for (int k = 0; folders[k]; k++) {
            snprintf(below, sizeof below, "lib/python3.11/site-packages/%s", folders[k]);
            put(below, true);
            assert_false(opens("auto", reason));
            setenv(variables[v], root, 1);
            assert_int_equal(opens("auto", reason), strncmp(folders[k], "nvidia/", 7) == 0);
            unsetenv(variables[v]);
            put(below, false);
        }
    }
}

static void files_are_named_too(void **state)
{
    (void)state;
    char reason[512];
    assert_true(opens(real, reason));
    assert_false(opens("/no/such/place", reason));
    assert_true(reason[0] != '\0');
}

static void missing_functions_are_named(void **state)
{
    (void)state;
    const char *missing = NULL;
    void *library = dlopen(real, RTLD_NOW | RTLD_LOCAL), *found = NULL;
    vendor_library_find(library, "cos", &found, &missing);
    assert_true(found != NULL && missing == NULL);
    vendor_library_find(library, "first_of_two", &found, &missing);
    vendor_library_find(library, "second_of_two", &found, &missing);
    assert_true(found == NULL && strcmp(missing, "first_of_two") == 0);
    dlclose(library);
}

int main(void)
{
    static char command[TEMPORARY_BYTES + 32];
    void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL), *function = library ? dlsym(library, "cos") : NULL;
    Dl_info info;
    if (function == NULL || dladdr(function, &info) == 0 || info.dli_fname[0] != '/' ||
        mkdtemp(temporary_template(root, "vendor")) == NULL) {
        printf("1..0 # SKIP there is no libm.so.6\n");
        return 0;
    }
    real = info.dli_fname;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_folder_below_is_searched),
        cmocka_unit_test(environments_have_the_folders_of_wheels),
        cmocka_unit_test(files_are_named_too),
        cmocka_unit_test(missing_functions_are_named),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) == 0 ? failed : 1;
}

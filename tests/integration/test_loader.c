/* docker.so as a file: what it exports, what it needs, and what it answers when the implementation
 * beside it cannot be loaded. */
#include "ep.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *output_of(const char *command)
{
    EpBytes bytes = {0};
    sprov_sink sink = ep_sink(&bytes);
    char block[4096];
    FILE *pipe = popen(command, "re");
    cr_assert_not_null(pipe);
    for (size_t n; (n = fread(block, 1, sizeof block, pipe)) > 0;)
        sink.write(&bytes, block, n);
    cr_assert_eq(pclose(pipe), 0, "%s", command);
    return bytes.data;
}

Test(loader, exports_one_symbol)
{
    char *symbols = output_of("nm -D --defined-only " PROVIDER);
    cr_assert(strstr(symbols, " T sprov_entry_v1\n"), "%s", symbols);
    cr_assert_eq(strchr(symbols, '\n')[1], '\0', "more than one: %s", symbols);
}

#ifdef SANITIZE_none
Test(loader, needs_libc_alone_and_stays_mapped)
{
    char *dynamic = output_of("readelf -dW " PROVIDER);
    char *needed = strstr(dynamic, "(NEEDED)");
    cr_assert(needed && strstr(needed, "[libc.so.6]"), "%s", dynamic);
    cr_assert_null(strstr(needed + 1, "(NEEDED)"), "%s", dynamic);
    cr_assert(strstr(dynamic, "NODELETE"), "%s", dynamic);
    cr_assert_null(strstr(dynamic, "RUNPATH"), "%s", dynamic);
    cr_assert_null(strstr(dynamic, "RPATH"), "%s", dynamic);
}
#endif

/* -------------------------------------------------------------- without its other half */

static void copy_to(const char *path)
{
    char *command = ep_format("cp '%s' '%s'", PROVIDER, path);
    cr_assert_eq(system(command), 0);
}

static void check_answers(const char *folder)
{
    char *path = ep_format("%s/docker.so", folder);
    copy_to(path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(library, "%s", dlerror());
    sprov_entry_fn get = (sprov_entry_fn)dlsym(library, SPROV_ENTRY_SYMBOL);
    const sprov_entry *entry = get();
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_provider *provider = NULL;
    cr_assert_not_null(entry);
    cr_expect_str_eq(entry->descriptor->id, "docker");
    cr_expect_null(entry->get_extension("sprov.lifecycle/1"));
    cr_expect_eq(entry->api->open(NULL, NULL, &provider, &error), SPROV_E_UNAVAILABLE);
    cr_expect_null(provider);
    cr_expect_str_eq(error.reason, "implementation-not-loaded");
    cr_expect(strstr(error.message, folder) && strstr(error.message, "docker-provider.impl"), "%s",
              error.message);
    cr_expect_null(strchr(error.message, '\n'), "%s", error.message);
    cr_expect_lt(strlen(error.message), 511, "cut: %s", error.message);
    cr_expect_eq(entry->api->open(NULL, NULL, &provider, NULL), SPROV_E_UNAVAILABLE);
    entry->api->release(NULL);
    unlink(path);
}

static char *new_folder(void)
{
    char *folder = ep_format("/tmp/sprov-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    return folder;
}

Test(loader, alone_in_a_folder_names_the_file_that_is_missing)
{
    char *folder = new_folder();
    check_answers(folder);
    rmdir(folder);
}

Test(loader, beside_a_broken_file_says_so_in_one_line)
{
    char *folder = new_folder(), *broken = ep_format("%s/docker-provider.impl", folder);
    FILE *file = fopen(broken, "we");
    cr_assert(file && fputs("no library\n", file) >= 0 && fclose(file) == 0);
    check_answers(folder);
    unlink(broken);
    rmdir(folder);
}

Test(loader, by_a_long_path_still_tells_the_whole_story)
{
    char *folder = new_folder(), deep[401];
    memset(deep, 'd', 200);
    memset(deep + 200, 'e', 200);
    deep[200] = '/';
    deep[400] = '\0';
    char *path = ep_format("%s/%s", folder, deep);
    cr_assert_eq(system(ep_format("mkdir -p %s", path)), 0);
    char *copy = ep_format("%s/docker.so", path);
    copy_to(copy);
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_provider *provider = NULL;
    void *library = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
    const sprov_entry *entry = ((sprov_entry_fn)dlsym(library, SPROV_ENTRY_SYMBOL))();
    cr_assert_eq(entry->api->open(NULL, NULL, &provider, &error), SPROV_E_UNAVAILABLE);
    cr_expect(strstr(error.message, "install what is missing"), "%s", error.message);
    system(ep_format("rm -r %s", folder));
}

#include <criterion/criterion.h>
#include <glib/gstdio.h>

#include "loader.h"

/* A provider whose every function is this one: tables are looked at here and never called. */
static void nothing(void)
{
}

static void fill(void *table, uint32_t size)
{
    void (*function)(void) = nothing;
    memset(table, 0, size);
    memcpy(table, &size, sizeof size);
    for (char *p = (char *)table + 8; p < (char *)table + size; p += sizeof function)
        memcpy(p, &function, sizeof function);
}

static sprov_api api;
static sprov_ext_lifecycle lifecycle;
static sprov_descriptor descriptor;
static sprov_entry entry;
static HsProvider provider;

static const void *get_extension(const char *id)
{
    return strcmp(id, SPROV_EXT_LIFECYCLE) == 0 ? &lifecycle : NULL;
}

static void setup(void)
{
    fill(&api, sizeof api);
    fill(&lifecycle, sizeof lifecycle);
    descriptor = (sprov_descriptor){sizeof descriptor, 0, "mock", "Mock", "1.0.0", "us"};
    entry = (sprov_entry){sizeof entry, SPROV_ABI_MINOR, &descriptor, &api, get_extension};
}

static void refused(const char *told)
{
    GError *error = NULL;
    cr_assert_not(hs_provider_check(&provider, &entry, &error));
    cr_assert_eq(error->code, SPROV_E_ABI);
    cr_assert(strstr(error->message, told), "%s", error->message);
    g_error_free(error);
}

TestSuite(host_loader, .init = setup);

Test(host_loader, whole_tables_are_taken)
{
    cr_assert(hs_provider_check(&provider, &entry, NULL));
    cr_assert_eq(provider.api, &api);
    cr_assert_eq(provider.lifecycle, &lifecycle);
    cr_assert_null(provider.files);
}

Test(host_loader, tables_of_a_later_minor_version_are_taken)
{
    entry.abi_minor = 7;
    entry.struct_size += 8;
    api.struct_size = 4096;
    cr_assert(hs_provider_check(&provider, &entry, NULL));
}

Test(host_loader, a_null_entry_is_refused)
{
    cr_assert_not(hs_provider_check(&provider, NULL, NULL));
}

Test(host_loader, a_table_that_is_too_small_or_too_large_is_refused_by_name)
{
    api.struct_size -= 1;
    refused("the api");
    api.struct_size = 4097;
    refused("the api");
    setup();
    entry.struct_size -= 8;
    refused("the entry");
    setup();
    descriptor.struct_size = 8;
    refused("the descriptor");
    setup();
    lifecycle.struct_size = 0;
    refused(SPROV_EXT_LIFECYCLE);
}

Test(host_loader, a_missing_function_is_refused_by_name)
{
    api.write_file = NULL;
    refused("write_file()");
    setup();
    api.build_template = NULL;
    refused("build_template()");
    setup();
    lifecycle.list = NULL;
    refused("list()");
}

Test(host_loader, a_missing_table_or_name_is_refused)
{
    entry.api = NULL;
    refused("api");
    setup();
    entry.descriptor = NULL;
    refused("descriptor");
    setup();
    entry.get_extension = NULL;
    refused("get_extension()");
    setup();
    descriptor.version = NULL;
    refused("version");
}

/* ----------------------------------------------------------------- finding one */

static char *folder, *file;

static void make_file(void)
{
    folder = g_dir_make_tmp("host-sim-XXXXXX", NULL);
    file = g_build_filename(folder, "mock.so", NULL);
    g_file_set_contents(file, "x", 1, NULL);
    g_chmod(folder, 0755);
    g_chmod(file, 0644);
}

static void drop_file(void)
{
    g_unlink(file);
    g_rmdir(folder);
    g_free(file);
    g_free(folder);
}

static bool find(const char *name, char **ret_path, GError **error)
{
    const char *const folders[] = {"/nonexistent", folder, NULL};
    return hs_provider_find(name, folders, ret_path, error);
}

TestSuite(host_find, .init = make_file, .fini = drop_file);

Test(host_find, a_bare_name_is_looked_up_in_the_folders)
{
    g_autofree char *path = NULL;
    g_autofree char *with_suffix = NULL;
    cr_assert(find("mock", &path, NULL));
    cr_assert_str_eq(path, file);
    cr_assert(find("mock.so", &with_suffix, NULL));
    cr_assert_str_eq(with_suffix, file);
}

Test(host_find, a_path_is_taken_as_it_is)
{
    g_autofree char *path = NULL;
    cr_assert(find(file, &path, NULL));
    cr_assert_str_eq(path, file);
}

Test(host_find, a_name_that_is_nowhere_tells_where_it_was_looked_for)
{
    g_autoptr(GError) error = NULL;
    char *path = NULL;
    cr_assert_not(find("mokc", &path, &error));
    cr_assert_eq(error->code, SPROV_E_NOT_FOUND);
    cr_assert(strstr(error->message, folder));
    cr_assert(strstr(error->message, "SANDBOX_PROVIDER_PATH"));
    cr_assert_null(path);
}

static void find_is_denied(const char *name, const char *object)
{
    g_autoptr(GError) error = NULL;
    char *path = NULL;
    cr_assert_not(find(name, &path, &error));
    cr_assert_eq(error->code, SPROV_E_DENIED);
    cr_assert(strstr(error->message, object), "%s", error->message);
    cr_assert(strstr(error->message, "chmod o-w"));
    cr_assert_null(path);
}

Test(host_find, a_file_that_everybody_may_write_is_refused)
{
    g_chmod(file, 0646);
    find_is_denied(file, file);
    find_is_denied("mock", file);
}

Test(host_find, a_folder_that_everybody_may_write_is_refused_sticky_or_not)
{
    g_chmod(folder, 0757);
    find_is_denied(file, folder);
    g_chmod(folder, 01777);
    find_is_denied("mock", folder);
}

Test(host_find, a_link_in_a_folder_that_everybody_may_write_is_refused)
{
    g_autofree char *open_folder = g_dir_make_tmp("host-sim-XXXXXX", NULL);
    g_autofree char *link = g_build_filename(open_folder, "mock.so", NULL);
    cr_assert_eq(symlink(file, link), 0);
    g_chmod(open_folder, 0777);
    find_is_denied(link, open_folder);
    g_unlink(link);
    g_rmdir(open_folder);
}

Test(host_find, a_folder_is_no_provider)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *with_slash = g_strconcat(folder, "/", NULL);
    char *path = NULL;
    cr_assert_not(find(with_slash, &path, &error));
    cr_assert_eq(error->code, SPROV_E_NOT_FOUND);
}

Test(host_find, the_folders_are_those_of_the_environment_and_then_the_installed_one)
{
    g_setenv("SANDBOX_PROVIDER_PATH", "/a::/b", TRUE);
    g_auto(GStrv) folders = hs_provider_folders();
    cr_assert_eq(g_strv_length(folders), 3);
    cr_assert_str_eq(folders[0], "/a");
    cr_assert_str_eq(folders[1], "/b");
    cr_assert(g_str_has_suffix(folders[2], "/sandbox-providers"));
}

#include "loader.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "error.h"

#define MAX_STRUCT_SIZE 4096

/* The tables of version 1.0 are a head of eight bytes and then nothing but pointers, so that a
 * list of names in their order is all it takes to check one. */
#define TABLE_HEAD 8
#define ASSERT_TABLE(type, last, names)                                                            \
    static_assert(offsetof(type, last) ==                                                          \
                      TABLE_HEAD + (G_N_ELEMENTS(names) - 2) * sizeof(void (*)(void)),             \
                  "the names of " #type)

static const char *const api_members[] = {"open",    "close",          "create",    "release",
                                          "start",   "exec",           "read_file", "write_file",
                                          "destroy", "build_template", NULL};
ASSERT_TABLE(sprov_api, build_template, api_members);

static const char *const lifecycle_members[] = {"describe", "stop", "info",
                                                "set_env",  "list", NULL};
ASSERT_TABLE(sprov_ext_lifecycle, list, lifecycle_members);

static const char *const processes_members[] = {
    "spawn", "release", "id",     "wait",   "kill", "write_stdin", "close_stdin", "resize",
    "read",  "fd",      "resume", "forget", "list", "find",        NULL};
ASSERT_TABLE(sprov_ext_processes, find, processes_members);

static const char *const archive_members[] = {"write_files", "put", "get", NULL};
ASSERT_TABLE(sprov_ext_archive, get, archive_members);

static const char *const files_members[] = {"stat",   "list",   "make_directory",
                                            "remove", "rename", NULL};
ASSERT_TABLE(sprov_ext_files, rename, files_members);

static const char *const templates_members[] = {"describe",
                                                "resolve_repository",
                                                "list",
                                                "dispose",
                                                "create_template",
                                                "keep_template",
                                                "release_template",
                                                "from",
                                                "set_workdir",
                                                "set_envs",
                                                "run_cmd",
                                                "run_with_secrets",
                                                "apt_install",
                                                "pip_install",
                                                "npm_install",
                                                "definition",
                                                "dockerfile",
                                                "template_id",
                                                "workdir",
                                                "secret_names",
                                                "create_sandbox",
                                                NULL};
ASSERT_TABLE(sprov_ext_templates, create_sandbox, templates_members);

static const char *const provider_members[] = {"info", "prune", NULL};
ASSERT_TABLE(sprov_ext_provider, prune, provider_members);

static const char *const *const extension_members[] = {
    lifecycle_members, processes_members, archive_members,
    files_members,     templates_members, provider_members,
};

const char *const hs_extension_ids[] = {
    SPROV_EXT_LIFECYCLE,
    SPROV_EXT_PROCESSES,
    SPROV_EXT_ARCHIVE,
    SPROV_EXT_FILES,
    SPROV_EXT_TEMPLATES,
    SPROV_EXT_PROVIDER,
    NULL,
};

static bool check_size(const char *what, const void *table, gsize least, GError **error)
{
    uint32_t size = *(const uint32_t *)table;
    if (size >= least && size <= MAX_STRUCT_SIZE)
        return true;
    return hs_fail(error, SPROV_E_ABI,
                   "%s has struct_size %u, but ABI 1.0 wants %" G_GSIZE_FORMAT
                   " to %d; build the provider against the released headers",
                   what, size, least, MAX_STRUCT_SIZE);
}

static bool check_table(const char *what, const void *table, const char *const *members,
                        GError **error)
{
    gsize count = g_strv_length((char **)members);
    if (!check_size(what, table, TABLE_HEAD + count * sizeof(void (*)(void)), error))
        return false;
    for (gsize i = 0; i < count; i++) {
        void (*function)(void);
        memcpy(&function, (const char *)table + TABLE_HEAD + i * sizeof function, sizeof function);
        if (!function)
            return hs_fail(error, SPROV_E_ABI,
                           "%s has no %s(); one that can't do it answers SPROV_E_UNSUPPORTED", what,
                           members[i]);
    }
    return true;
}

static bool check_descriptor(const sprov_descriptor *descriptor, GError **error)
{
    if (!descriptor)
        return hs_fail(error, SPROV_E_ABI, "the entry has no descriptor");
    gsize least = offsetof(sprov_descriptor, vendor) + sizeof descriptor->vendor;
    if (!check_size("the descriptor", descriptor, least, error))
        return false;
    if (!descriptor->id || !descriptor->name || !descriptor->version || !descriptor->vendor)
        return hs_fail(error, SPROV_E_ABI, "the descriptor lacks id, name, version or vendor");
    return true;
}

bool hs_provider_check(HsProvider *provider, const sprov_entry *entry, GError **error)
{
    const void *extensions[G_N_ELEMENTS(extension_members)];
    if (!entry)
        return hs_fail(error, SPROV_E_ABI, SPROV_ENTRY_SYMBOL "() answered NULL");
    gsize least = offsetof(sprov_entry, get_extension) + sizeof entry->get_extension;
    if (!check_size("the entry", entry, least, error))
        return false;
    if (!check_descriptor(entry->descriptor, error))
        return false;
    if (!entry->api)
        return hs_fail(error, SPROV_E_ABI, "the entry has no api");
    if (!check_table("the api", entry->api, api_members, error))
        return false;
    if (!entry->get_extension)
        return hs_fail(error, SPROV_E_ABI, "the entry has no get_extension()");
    for (gsize i = 0; i < G_N_ELEMENTS(extensions); i++) {
        extensions[i] = entry->get_extension(hs_extension_ids[i]);
        if (extensions[i] &&
            !check_table(hs_extension_ids[i], extensions[i], extension_members[i], error))
            return false;
    }
    provider->entry = entry;
    provider->api = entry->api;
    provider->lifecycle = extensions[0];
    provider->processes = extensions[1];
    provider->archive = extensions[2];
    provider->files = extensions[3];
    provider->templates = extensions[4];
    provider->provider = extensions[5];
    return true;
}

/* A shared object runs in our process: what others may write is code of others. */
static bool refuse_writable(const char *path, mode_t kind, GError **error)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return hs_fail(error, SPROV_E_NOT_FOUND, "provider %s: %s", path, g_strerror(errno));
    if ((st.st_mode & S_IFMT) != kind)
        return hs_fail(error, SPROV_E_NOT_FOUND, "provider %s is not a %s; name its .so file", path,
                       kind == S_IFDIR ? "folder" : "regular file");
    if (st.st_mode & S_IWOTH)
        return hs_fail(error, SPROV_E_DENIED,
                       "refusing to load a provider that everybody can replace: %s is "
                       "world-writable; chmod o-w it%s",
                       path, kind == S_IFDIR ? " or move the provider to another folder" : "");
    return true;
}

/* path may be a link: both the folder of the link and that of the file decide what is loaded. */
static bool check_file(const char *path, char **ret_path, GError **error)
{
    g_autofree char *real = realpath(path, NULL);
    if (!real)
        return hs_fail(error, SPROV_E_NOT_FOUND,
                       "no provider at %s: %s; give the path of its .so file", path,
                       g_strerror(errno));
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *real_folder = g_path_get_dirname(real);
    if (!refuse_writable(real, S_IFREG, error) || !refuse_writable(real_folder, S_IFDIR, error) ||
        !refuse_writable(folder, S_IFDIR, error))
        return false;
    *ret_path = g_steal_pointer(&real);
    return true;
}

char *hs_beside_program(const char *path)
{
    g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *folder = program ? g_path_get_dirname(program) : g_strdup(".");
    return g_build_filename(folder, path, NULL);
}

/* As ninja lays them out. */
static void add_built(GPtrArray *folders)
{
    static const char *const built[] = {"../plugin/docker", "../plugin/local"};
    for (gsize i = 0; i < G_N_ELEMENTS(built); i++) {
        g_autofree char *folder = hs_beside_program(built[i]);
        if (g_file_test(folder, G_FILE_TEST_IS_DIR))
            g_ptr_array_add(folders, g_steal_pointer(&folder));
    }
}

char **hs_provider_folders(void)
{
    g_autoptr(GPtrArray) folders = g_ptr_array_new_with_free_func(g_free);
    const char *search = g_getenv("SANDBOX_PROVIDER_PATH");
    g_auto(GStrv) parts = g_strsplit(search ? search : "", ":", -1);
    for (char **part = parts; *part; part++) {
        if (**part)
            g_ptr_array_add(folders, g_strdup(*part));
    }
    add_built(folders);
    g_ptr_array_add(folders, g_strdup(HS_PROVIDERS_DIR));
    g_ptr_array_add(folders, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&folders), FALSE);
}

bool hs_provider_find(const char *name, const char *const *folders, char **ret_path, GError **error)
{
    if (strchr(name, '/'))
        return check_file(name, ret_path, error);
    g_autofree char *file =
        g_str_has_suffix(name, ".so") ? g_strdup(name) : g_strconcat(name, ".so", NULL);
    for (const char *const *folder = folders; *folder; folder++) {
        g_autofree char *path = g_build_filename(*folder, file, NULL);
        struct stat st;
        if (lstat(path, &st) == 0)
            return check_file(path, ret_path, error);
    }
    g_autofree char *searched = g_strjoinv(", ", (char **)folders);
    return hs_fail(error, SPROV_E_NOT_FOUND,
                   "no provider \"%s\": no %s in %s; name its file by path (./%s) or its folder "
                   "in SANDBOX_PROVIDER_PATH",
                   name, file, searched, file);
}

bool hs_provider_load(const char *name, HsProvider **ret_provider, GError **error)
{
    g_autoptr(HsProvider) provider = g_new0(HsProvider, 1);
    g_auto(GStrv) folders = hs_provider_folders();
    if (!hs_provider_find(name, (const char *const *)folders, &provider->path, error))
        return false;
    provider->dl = dlopen(provider->path, RTLD_NOW | RTLD_LOCAL);
    if (!provider->dl)
        return hs_fail(error, SPROV_E_ABI, "cannot load the provider: %s", dlerror());
    sprov_entry_fn entry;
    *(void **)&entry = dlsym(provider->dl, SPROV_ENTRY_SYMBOL);
    if (!entry)
        return hs_fail(error, SPROV_E_ABI,
                       "%s is no sandbox provider of ABI %d: it exports no " SPROV_ENTRY_SYMBOL,
                       provider->path, SPROV_ABI_MAJOR);
    if (!hs_provider_check(provider, entry(), error)) {
        g_prefix_error(error, "provider %s: ", provider->path);
        return false;
    }
    *ret_provider = g_steal_pointer(&provider);
    return true;
}

void hs_provider_free(HsProvider *provider)
{
    if (!provider)
        return;
    if (provider->dl)
        dlclose(provider->dl);
    g_free(provider->path);
    g_free(provider);
}

/* Loading, the entry, extensions, configuration: what needs no sandbox, or hardly one. */
#include "cases/cases.h"

#include <dlfcn.h>
#include <elf.h>
#include <string.h>

static void loads(void)
{
    void *again = dlopen(case_lib()->path, RTLD_NOW | RTLD_LOCAL);
    CHECK_THAT(again != NULL, "%s", dlerror());
    CHECK(dlsym(again, SPROV_ENTRY_SYMBOL) != NULL);
    CHECK_INT(dlclose(again), 0);
    CHECK_THAT(dlsym(RTLD_DEFAULT, SPROV_ENTRY_SYMBOL) == NULL,
               "its symbols are in everybody's scope although it was loaded with RTLD_LOCAL");
}

/* Names of all symbols that the file defines for others, separated by spaces. */
static const char *exported(const char *file, gsize size)
{
    const Elf64_Ehdr *head = (const void *)file;
    CHECK(size > sizeof *head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0);
    const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);
    g_autoptr(GString) names = g_string_new(NULL);
    for (int i = 0; i < head->e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM)
            continue;
        const Elf64_Sym *symbols = (const void *)(file + sections[i].sh_offset);
        const char *texts = file + sections[sections[i].sh_link].sh_offset;
        for (gsize k = 0; k < sections[i].sh_size / sizeof *symbols; k++) {
            bool is_defined = symbols[k].st_shndx != SHN_UNDEF && symbols[k].st_shndx != SHN_ABS;
            if (is_defined && ELF64_ST_BIND(symbols[k].st_info) != STB_LOCAL)
                g_string_append_printf(names, "%s%s", names->len ? " " : "",
                                       texts + symbols[k].st_name);
        }
    }
    return case_text("%s", names->str);
}

static void exports_one_symbol(void)
{
    g_autofree char *file = NULL;
    gsize size = 0;
    CHECK(g_file_get_contents(case_lib()->path, &file, &size, NULL));
    CHECK_TEXT(case_bytes(exported(file, size)), SPROV_ENTRY_SYMBOL);
}

static void has_an_entry(void)
{
    const sprov_entry *entry = case_lib()->entry;
    const sprov_descriptor *descriptor = entry->descriptor;
    CHECK(entry->struct_size >= sizeof *entry);
    CHECK(descriptor->struct_size >= sizeof *descriptor);
    CHECK(entry->api->struct_size >= sizeof *entry->api);
    CHECK(g_regex_match_simple("^[a-z0-9][a-z0-9._-]*$", descriptor->id, 0, 0));
    CHECK(g_regex_match_simple("^[0-9]+\\.[0-9]+\\.[0-9]+", descriptor->version, 0, 0));
    CHECK(descriptor->name[0] && g_utf8_validate(descriptor->name, -1, NULL));
    CHECK(g_utf8_validate(descriptor->vendor, -1, NULL));
    sprov_entry_fn again;
    *(void **)&again = dlsym(case_lib()->dl, SPROV_ENTRY_SYMBOL);
    CHECK(again() == entry);
}

static void has_one_major(void)
{
    CHECK(dlsym(case_lib()->dl, "sprov_entry_v0") == NULL);
    CHECK(dlsym(case_lib()->dl, "sprov_entry_v2") == NULL);
    CHECK(dlsym(case_lib()->dl, SPROV_ENTRY_SYMBOL) != NULL);
    CHECK(case_provider() != NULL);
}

/* Tables of version 1.0 are a head of eight bytes and then pointers to functions. */
static void check_pointers(const char *what, const void *table, gsize size)
{
    for (gsize at = 8; at < size; at += sizeof(void *)) {
        void *pointer;
        memcpy(&pointer, (const char *)table + at, sizeof pointer);
        CHECK_THAT(pointer != NULL, "%s has no function at byte %" G_GSIZE_FORMAT, what, at);
    }
}

static void has_all_functions(void)
{
    check_pointers("the api", case_api(), sizeof *case_api());
    /* Also one without templates answers, and touches nothing. */
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    request.definition = "[]";
    sprov_status status =
        case_api()->build_template(case_provider(), &request, NULL, NULL, case_error());
    CHECK(status == SPROV_E_UNSUPPORTED || status == SPROV_E_INVALID_ARGUMENT);
}

static const struct {
    const char *id;
    gsize size;
} extensions[] = {
    {SPROV_EXT_LIFECYCLE, sizeof(sprov_ext_lifecycle)},
    {SPROV_EXT_PROCESSES, sizeof(sprov_ext_processes)},
    {SPROV_EXT_ARCHIVE, sizeof(sprov_ext_archive)},
    {SPROV_EXT_FILES, sizeof(sprov_ext_files)},
    {SPROV_EXT_TEMPLATES, sizeof(sprov_ext_templates)},
    {SPROV_EXT_PROVIDER, sizeof(sprov_ext_provider)},
};

static const void *extension(const char *id)
{
    return case_lib()->entry->get_extension(id);
}

static void extensions_are_whole(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(extensions); i++) {
        const void *table = extension(extensions[i].id);
        CHECK(!table || *(const uint32_t *)table >= extensions[i].size);
        if (table)
            check_pointers(extensions[i].id, table, extensions[i].size);
    }
}

static void unknown_extensions_are_null(void)
{
    for (int i = 0; i < 10; i++)
        CHECK(extension(case_text("sprov.%s/1", case_token())) == NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(extensions); i++) {
        const char *id = extensions[i].id;
        CHECK(extension(case_text("%sx", id)) == NULL);
        CHECK(extension(case_text("%.*s", (int)strlen(id) - 1, id)) == NULL);
        g_autofree char *upper = g_ascii_strup(id, -1);
        CHECK(extension(upper) == NULL);
    }
    CHECK(extension("") == NULL);
    CHECK(extension(NULL) == NULL);
}

static void extensions_stay(void)
{
    const void *before[G_N_ELEMENTS(extensions)];
    for (gsize i = 0; i < G_N_ELEMENTS(extensions); i++)
        before[i] = extension(extensions[i].id);
    case_provider();
    for (gsize i = 0; i < G_N_ELEMENTS(extensions); i++)
        CHECK(extension(extensions[i].id) == before[i]);
}

/* ---- configuration and options */

static void refuses_config(const char *config)
{
    sprov_provider *provider = NULL;
    gint64 begin = case_now_ms();
    CHECK_STATUS(case_api()->open(NULL, config, &provider, case_error()), SPROV_E_INVALID_ARGUMENT);
    CHECK(provider == NULL);
    CHECK(case_on_time(begin, 1000));
}

static void refuses_options(const char *options, const char *named)
{
    sprov_sandbox *sandbox = NULL;
    gint64 begin = case_now_ms();
    CHECK_STATUS(case_api()->create(case_provider(), options, NULL, &sandbox, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK(sandbox == NULL);
    CHECK_THAT(!named || strstr(case_last_error()->message, named),
               "the message does not name %s: %s", named, case_last_error()->message);
    CHECK(case_on_time(begin, 1000));
}

static const char *deep(void)
{
    g_autofree char *opened = g_strnfill(10000, '[');
    return case_text("{\"env\":%s", opened);
}

static void wrong_json_is_refused(void)
{
    static const char *const wrong[] = {"", "{", "[]", "null", "5", "{} x", "{\"a\":1,}"};
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        refuses_config(wrong[i]);
        refuses_options(wrong[i], NULL);
    }
    refuses_config(deep());
    refuses_options(deep(), NULL);
    const char *key = case_token();
    refuses_config(case_text("{\"%s\":true}", key));
    CHECK(strstr(case_last_error()->message, key) != NULL);
    refuses_options(case_text("{\"%s\":true}", key), key);
    refuses_options("{\"id\":\"a\",\"id\":\"b\"}", NULL);
}

static void wrong_options_are_named(void)
{
    static const struct {
        const char *options, *named;
    } wrong[] = {
        {"{\"id\":5}", "id"},
        {"{\"id\":\"\"}", "id"},
        {"{\"name\":[]}", "name"},
        {"{\"env\":[\"A=1\"]}", "env"},
        {"{\"env\":{\"A\":1}}", "A"},
        {"{\"env\":{\"\":\"x\"}}", "env"},
        {"{\"env\":{\"A=B\":\"x\"}}", "A=B"},
        {"{\"workingDirectory\":\"not/absolute\"}", "workingDirectory"},
        {"{\"timeout\":-1}", "timeout"},
        {"{\"timeout\":\"soon\"}", "timeout"},
        {"{\"timeout\":1e400}", NULL},
        {"{\"labels\":{\"a\":null}}", "labels"},
        {"{\"instructions\":1}", "instructions"},
        {"{\"autoStart\":\"yes\"}", "autoStart"},
        {"{\"user\":0}", "user"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++)
        refuses_options(wrong[i].options, wrong[i].named);
    g_autofree char *long_id = g_strnfill(256, 'i');
    refuses_options(case_text("{\"id\":\"%s\"}", long_id), "id");
    /* A large value that is right goes through. */
    g_autofree char *large = g_strnfill(1 << 20, 'x');
    case_create(case_text("{\"env\":{\"LARGE\":\"%s\"}}", large));
}

static void a_host_may_offer_nothing(void)
{
    sprov_host bare = SPROV_INIT(sprov_host);
    bare.abi_minor = SPROV_ABI_MINOR;
    const sprov_host *hosts[] = {NULL, &bare};
    for (gsize i = 0; i < G_N_ELEMENTS(hosts); i++) {
        const char *token = case_token();
        sprov_provider *provider = case_open(hosts[i], case_config());
        sprov_sandbox *sandbox = case_handle(case_shared_id(), NULL, provider);
        CHECK_STATUS(case_api()->start(sandbox, NULL, NULL, case_error()), SPROV_OK);
        const char *path = case_text("%s/%s", case_folder(sandbox), token);
        case_write(sandbox, path, case_bytes(token), 0);
        CHECK_TEXT(case_read(sandbox, path), token);
        CHECK_TEXT(case_sh(sandbox, "cat '%s'", path).out, token);
        /* Nobody has to ask why something failed. */
        sprov_exec_request none = SPROV_INIT(sprov_exec_request);
        CHECK_INT(case_api()->exec(sandbox, &none, NULL, NULL, NULL), SPROV_E_INVALID_ARGUMENT);
    }
}

const Case cases_abi[] = {
    {"ABI-01", 1, "core", "it loads with RTLD_NOW and RTLD_LOCAL", "1.1", loads},
    {"ABI-02", 1, "core", "it exports the entry symbol and nothing else", "1.1",
     exports_one_symbol},
    {"ABI-03", 1, "core", "its entry and descriptor are valid, the same each time", "1.1",
     has_an_entry},
    {"ABI-04", 1, "core", "it exports the entry of this major version alone", "1.2", has_one_major},
    {"ABI-07", 1, "core", "every function of the core is there", "1.4", has_all_functions},
    {"ABI-08", 1, "core", "an extension that is there has all its functions", "1.5",
     extensions_are_whole},
    {"ABI-09", 1, "core", "an extension id that is not quite right is NULL", "1.5",
     unknown_extensions_are_null},
    {"ABI-10", 1, "core", "an extension is the same each time, before and after open()", "1.5",
     extensions_stay},
    {"ABI-14", 1, "core", "wrong JSON and unknown keys are refused at once, by name", "3.7",
     wrong_json_is_refused},
    {"ABI-39", 1, "core", "a wrong option is refused by create() and named", "3.7",
     wrong_options_are_named},
    {"ABI-15", 1, "core", "a host may offer nothing, not even an error struct", "3.3",
     a_host_may_offer_nothing},
    {0},
};

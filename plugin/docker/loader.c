/*
 * docker.so: the symbol that hosts look for, and nothing else. The implementation beside it needs
 * libcurl, OpenSSL and more; a host such as Node exports its own under the same names, and the
 * dynamic linker would bind ours to those. RTLD_DEEPBIND gives the implementation its own libraries
 * first. What keeps it from loading is told by open().
 */
#include "docker/entry.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Sanitizers have to see every call, and refuse it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DEEPBIND 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DEEPBIND 0
#endif
#endif
#ifndef DEEPBIND
#define DEEPBIND RTLD_DEEPBIND
#endif

static const sprov_entry *implementation;
static char reason[sizeof((sprov_error *)NULL)->message];

/* ----------------------------------------------------- what answers when it is not there */

static sprov_status fail(sprov_error *error)
{
    if (error && error->struct_size >= sizeof *error) {
        error->code = SPROV_E_UNAVAILABLE;
        error->flags = 0;
        error->native = 0;
        strcpy(error->reason, "implementation-not-loaded");
        strcpy(error->message, reason);
        error->detail[0] = '\0';
    }
    return SPROV_E_UNAVAILABLE;
}

static sprov_status no_open(const sprov_host *host, const char *config, sprov_provider **provider,
                            sprov_error *error)
{
    return fail(error);
}

static sprov_status no_close(sprov_provider *provider, sprov_error *error)
{
    return fail(error);
}

static sprov_status no_create(sprov_provider *provider, const char *options,
                              const sprov_callbacks *callbacks, sprov_sandbox **sandbox,
                              sprov_error *error)
{
    return fail(error);
}

static void no_release(sprov_sandbox *sandbox)
{
}

static sprov_status no_start(sprov_sandbox *sandbox, const sprov_call *call,
                             sprov_start_result *result, sprov_error *error)
{
    return fail(error);
}

static sprov_status no_exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                            const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    return fail(error);
}

static sprov_status no_read(sprov_sandbox *sandbox, const sprov_read_request *request,
                            const sprov_call *call, sprov_read_result *result, sprov_error *error)
{
    return fail(error);
}

static sprov_status no_write(sprov_sandbox *sandbox, const sprov_write_request *request,
                             const sprov_call *call, sprov_error *error)
{
    return fail(error);
}

static sprov_status no_destroy(sprov_sandbox *sandbox, const sprov_call *call, sprov_error *error)
{
    return fail(error);
}

static sprov_status no_build(sprov_provider *provider, const sprov_template_request *request,
                             const sprov_call *call, sprov_template_result *result,
                             sprov_error *error)
{
    return fail(error);
}

static const void *no_extension(const char *id)
{
    return NULL;
}

static const sprov_api no_api = {
    .struct_size = sizeof(sprov_api),
    .open = no_open,
    .close = no_close,
    .create = no_create,
    .release = no_release,
    .start = no_start,
    .exec = no_exec,
    .read_file = no_read,
    .write_file = no_write,
    .destroy = no_destroy,
    .build_template = no_build,
};

static const sprov_descriptor no_descriptor = {
    .struct_size = sizeof(sprov_descriptor),
    .id = "docker",
    .name = "Docker sandbox provider",
    .version = SPROV_VERSION,
    .vendor = "sprov",
};

static const sprov_entry no_entry = {
    .struct_size = sizeof(sprov_entry),
    .abi_minor = SPROV_ABI_MINOR,
    .descriptor = &no_descriptor,
    .api = &no_api,
    .get_extension = no_extension,
};

/* ------------------------------------------------------------------------- loading */

static void set_reason(const char *file, const char *why)
{
    snprintf(reason, sizeof reason,
             "the Docker provider's implementation is not loaded: %.180s: %.200s; install what is "
             "missing and start the host again",
             file, why ? why : "unknown error");
    for (char *p = reason; *p; p++) {
        if (*p == '\n')
            *p = ' ';
    }
}

static void load(void)
{
    Dl_info self;
    char file[4096];
    if (!dladdr(&no_entry, &self) || !self.dli_fname) {
        set_reason(SPROV_DOCKER_FILE, "its own folder is unknown");
        return;
    }
    const char *slash = strrchr(self.dli_fname, '/');
    int folder = slash ? (int)(slash + 1 - self.dli_fname) : 0;
    int n = snprintf(file, sizeof file, "%.*s%s", folder, self.dli_fname, SPROV_DOCKER_FILE);
    if (n < 0 || (size_t)n >= sizeof file) {
        set_reason(SPROV_DOCKER_FILE, "its folder's name is too long");
        return;
    }
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | DEEPBIND);
    void *symbol = handle ? dlsym(handle, SPROV_DOCKER_SYMBOL) : NULL;
    if (!symbol) {
        set_reason(file, dlerror());
        return;
    }
    sprov_entry_fn get;
    memcpy(&get, &symbol, sizeof get);
    implementation = get();
}

const sprov_entry *sprov_entry_v1(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return implementation ? implementation : &no_entry;
}

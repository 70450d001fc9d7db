/*
 * A host that exports functions under the names of the libraries the Docker provider uses, as Node
 * does with its own OpenSSL, nghttp2 and zlib. Each of them ends the process. As Node it is no PIE
 * either and names environ, so that the one of libc stays empty. Prints TAP: the provider does its
 * work and none was called, while a library loaded the plain way is captured.
 */
#include <sandbox_provider.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void captured(const char *name)
{
    fprintf(stderr, "# %s of the host was called\n", name);
    abort();
}

#define TRAP(name)                                                                                 \
    SPROV_EXPORT void name(void);                                                                  \
    void name(void)                                                                                \
    {                                                                                              \
        captured(#name);                                                                           \
    }

/* OpenSSL */
TRAP(SSL_new)
TRAP(SSL_CTX_new)
TRAP(SSL_CTX_free)
TRAP(SSL_free)
TRAP(TLS_client_method)
TRAP(OPENSSL_init_ssl)
TRAP(OPENSSL_init_crypto)
TRAP(OpenSSL_version_num)
TRAP(EVP_Digest)
TRAP(EVP_DigestInit_ex)
TRAP(EVP_MD_CTX_new)
TRAP(EVP_sha256)
TRAP(SHA256)
TRAP(BIO_new)
TRAP(CRYPTO_malloc)
TRAP(CRYPTO_free)
TRAP(ERR_get_error)
TRAP(RAND_bytes)
/* nghttp2 */
TRAP(nghttp2_session_server_new)
TRAP(nghttp2_session_client_new)
TRAP(nghttp2_session_mem_recv)
TRAP(nghttp2_session_send)
TRAP(nghttp2_session_callbacks_new)
TRAP(nghttp2_version)
/* zlib and what else libarchive has inside */
TRAP(inflate)
TRAP(inflateInit_)
TRAP(inflateInit2_)
TRAP(inflateEnd)
TRAP(deflate)
TRAP(deflateInit_)
TRAP(crc32)
TRAP(zlibVersion)
TRAP(lzma_code)
TRAP(ZSTD_decompressStream)
TRAP(BZ2_bzDecompress)
/* libcurl */
TRAP(curl_global_init)
TRAP(curl_easy_init)
TRAP(curl_easy_setopt)
TRAP(curl_easy_getinfo)
TRAP(curl_easy_reset)
TRAP(curl_easy_pause)
TRAP(curl_easy_cleanup)
TRAP(curl_multi_init)
TRAP(curl_multi_add_handle)
TRAP(curl_multi_perform)
TRAP(curl_multi_poll)
TRAP(curl_multi_info_read)
TRAP(curl_multi_cleanup)
TRAP(curl_slist_append)
/* Jansson */
TRAP(json_loads)
TRAP(json_loadb)
TRAP(json_dumps)
TRAP(json_object)
TRAP(json_object_get)
TRAP(json_object_set_new)
TRAP(json_string)
TRAP(json_delete)
TRAP(json_pack)
/* libarchive */
TRAP(archive_read_new)
TRAP(archive_read_open)
TRAP(archive_read_next_header)
TRAP(archive_read_free)
TRAP(archive_write_new)
TRAP(archive_write_header)
TRAP(archive_write_free)
TRAP(archive_entry_new)
/* GLib */
TRAP(g_malloc)
TRAP(g_malloc0)
TRAP(g_free)
TRAP(g_strdup)
TRAP(g_strdup_printf)
TRAP(g_error_free)
TRAP(g_hash_table_new)
TRAP(g_mutex_lock)
TRAP(g_thread_try_new)

/* --------------------------------------------------------------------------- checks */

static int count, failures;

static void check(const char *name, int ok)
{
    count++;
    failures += !ok;
    printf("%sok %d - %s\n", ok ? "" : "not ", count, name);
    fflush(stdout);
}

/* Without a scope of its own libcurl asks the host's zlib for its version, and the child dies. */
static int is_captured_without_care(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit no_core = {0};
        setrlimit(RLIMIT_CORE, &no_core);
        void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
        char *(*version)(void) = library ? (char *(*)(void))dlsym(library, "curl_version") : NULL;
        if (version)
            version();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

static int has_its_own_environ(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    char ***of_libc = libc ? (char ***)dlsym(libc, "environ") : NULL;
    return of_libc && of_libc != &environ && !*of_libc && environ;
}

typedef struct {
    char data[1024];
    size_t size;
} Bytes;

static sprov_flow take(void *ctx, const void *data, size_t size)
{
    Bytes *bytes = ctx;
    if (size > sizeof bytes->data - bytes->size)
        return SPROV_FLOW_STOP;
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return SPROV_FLOW_CONTINUE;
}

static sprov_source_status give(void *ctx, void *buffer, size_t capacity, size_t *size)
{
    int *given = ctx;
    *size = *given ? 0 : 7;
    memcpy(buffer, "hostile", *size);
    *given = 1;
    return SPROV_SOURCE_OK;
}

static int is_fine(const char *what, sprov_status status, const sprov_error *error)
{
    if (status != SPROV_OK)
        printf("# %s: %d %s\n", what, status, error->message);
    return status == SPROV_OK;
}

static int runs(const sprov_api *api, sprov_sandbox *sandbox)
{
    Bytes bytes = {.size = 0};
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    sprov_error error = SPROV_INIT(sprov_error);
    sink.ctx = &bytes;
    sink.write = take;
    request.command = "echo hello; exit 3";
    request.stdout_sink = &sink;
    return is_fine("exec", api->exec(sandbox, &request, NULL, &result, &error), &error) &&
           result.exit_code == 3 && bytes.size == 6 && memcmp(bytes.data, "hello\n", 6) == 0;
}

static int moves_files(const sprov_api *api, sprov_sandbox *sandbox)
{
    Bytes bytes = {.size = 0};
    int given = 0;
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sprov_source source = SPROV_INIT(sprov_source);
    sprov_write_request write = SPROV_INIT(sprov_write_request);
    sprov_read_request read = SPROV_INIT(sprov_read_request);
    sprov_error error = SPROV_INIT(sprov_error);
    sink.ctx = &bytes;
    sink.write = take;
    source.fd = -1;
    source.size = 7;
    source.ctx = &given;
    source.read = give;
    write.path = read.path = "/tmp/hostile";
    write.source = &source;
    read.sink = &sink;
    return is_fine("write", api->write_file(sandbox, &write, NULL, &error), &error) &&
           is_fine("read", api->read_file(sandbox, &read, NULL, NULL, &error), &error) &&
           bytes.size == 7 && memcmp(bytes.data, "hostile", 7) == 0;
}

int main(int argc, char **argv)
{
    if (argc < 2 || access(argv[1], R_OK) != 0) {
        printf("1..0 # skip sanitizers allow no symbol scope of its own\n");
        return argc < 2 ? 0 : 1;
    }
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_provider *provider = NULL;
    sprov_sandbox *sandbox = NULL;
    check("the host's names come first for a library loaded the plain way",
          is_captured_without_care());
    check("the host's environment is not where libc has its own", has_its_own_environ());
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    sprov_entry_fn get = library ? (sprov_entry_fn)dlsym(library, SPROV_ENTRY_SYMBOL) : NULL;
    const sprov_api *api = get ? get()->api : NULL;
    if (!api || !is_fine("open", api->open(NULL, NULL, &provider, &error), &error) ||
        !is_fine("create",
                 api->create(provider, "{\"image\":\"busybox:latest\"}", NULL, &sandbox, &error),
                 &error)) {
        check("the provider opens", 0);
        printf("1..%d\n", count);
        return 1;
    }
    check("a sandbox starts", is_fine("start", api->start(sandbox, NULL, NULL, &error), &error));
    check("a command runs", runs(api, sandbox));
    check("a file goes in and comes out", moves_files(api, sandbox));
    check("the sandbox is gone", is_fine("destroy", api->destroy(sandbox, NULL, &error), &error));
    api->release(sandbox);
    check("the provider closes", is_fine("close", api->close(provider, &error), &error));
    printf("1..%d\n", count);
    return failures ? 1 : 0;
}

#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copyplan.h"
#include "error.h"
#include "session.h"
#include "streams.h"
#include "table.h"
#include "tree.h"

typedef struct {
    HsSession *session;
    sprov_sandbox *sandbox;
    const HsPlace *from, *to;
} Copy;

/* ---------------------------------------------------------------------------- what is there */

static bool stat_inside(const Copy *copy, const char *path, HsKind *ret_kind, GError **error)
{
    static const char *const names[] = {[HS_KIND_FILE] = "file", [HS_KIND_DIRECTORY] = "directory"};
    g_autofree char *trimmed = hs_path_trim(path);
    sprov_call call = hs_session_call(copy->session, SPROV_CALL_NO_CREATE);
    sprov_error failure = SPROV_INIT(sprov_error);
    json_t *found = json_array();
    sprov_status status = copy->session->lib->files->stat(
        copy->sandbox, trimmed, SPROV_FILES_MISSING_OK, &call, hs_table_take, found, &failure);
    const char *type = json_string_value(json_object_get(json_array_get(found, 0), "type"));
    *ret_kind = type ? HS_KIND_OTHER : HS_KIND_NOTHING;
    for (HsKind kind = HS_KIND_FILE; type && kind <= HS_KIND_DIRECTORY; kind++) {
        if (strcmp(type, names[kind]) == 0)
            *ret_kind = kind;
    }
    json_decref(found);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

static HsKind stat_here(const char *path)
{
    struct stat st;
    g_autofree char *trimmed = hs_path_trim(path);
    if (stat(trimmed, &st) < 0)
        return HS_KIND_NOTHING;
    return S_ISREG(st.st_mode)   ? HS_KIND_FILE
           : S_ISDIR(st.st_mode) ? HS_KIND_DIRECTORY
                                 : HS_KIND_OTHER;
}

static bool kind_of(const Copy *copy, const HsPlace *place, const char *path, HsKind *ret_kind,
                    GError **error)
{
    if (place->id)
        return stat_inside(copy, path, ret_kind, error);
    *ret_kind = stat_here(path);
    return true;
}

static bool check_source(const Copy *copy, HsKind kind, GError **error)
{
    const char *path = copy->from->path;
    const char *where = copy->from->id ? " in the sandbox" : "";
    if (kind == HS_KIND_NOTHING)
        return hs_fail(error, SPROV_E_NOT_FOUND, "there is no %s%s", path, where);
    if (kind == HS_KIND_OTHER || (kind == HS_KIND_FILE && g_str_has_suffix(path, "/")))
        return hs_fail(error, SPROV_E_INVALID_ARGUMENT, "%s%s is no %s", path, where,
                       kind == HS_KIND_FILE ? "directory" : "file and no directory");
    return true;
}

/* The last part of the source's name, whatever way it is written. */
static char *name_of(const HsPlace *place)
{
    g_autofree char *real = place->id ? NULL : realpath(place->path, NULL);
    g_autofree char *named = hs_path_trim(place->path);
    const char *path =
        real && (hs_path_is_contents(named) || g_str_has_suffix(named, "..")) ? real : named;
    return g_path_get_basename(path);
}

/* That of a directory which an earlier copy left here may lead anywhere. */
static bool is_link_here(const HsPlace *place, const char *path)
{
    struct stat st;
    return !place->id && lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Nobody named it: the sandbox did, or the copy before. */
static bool check_no_link(const Copy *copy, const char *path, GError **error)
{
    return strcmp(path, copy->to->path) == 0 || !is_link_here(copy->to, path) ||
           hs_fail(error, SPROV_E_CONFLICT,
                   "%s is a directory in the sandbox and a link here, which is not written through",
                   path);
}

/* Where the source goes by the rules of copyplan.h. */
static bool plan(const Copy *copy, HsKind *ret_source, char **ret_path, bool *ret_is_new,
                 GError **error)
{
    g_autofree char *name = name_of(copy->from);
    g_autofree char *parent = hs_path_parent(copy->to->path);
    HsCopy rules = {.name = name, .target = copy->to->path};
    HsKind final;
    if (!kind_of(copy, copy->from, copy->from->path, &rules.source, error) ||
        !check_source(copy, rules.source, error) ||
        !kind_of(copy, copy->to, copy->to->path, &rules.target_kind, error) ||
        !kind_of(copy, copy->to, parent, &rules.parent_kind, error))
        return false;
    rules.contents = hs_path_is_contents(copy->from->path);
    if (!hs_copy_plan(&rules, ret_path, error) ||
        !kind_of(copy, copy->to, *ret_path, &final, error))
        return false;
    *ret_source = rules.source;
    *ret_is_new = final == HS_KIND_NOTHING;
    if (rules.source == HS_KIND_DIRECTORY && !*ret_is_new && final != HS_KIND_DIRECTORY)
        return hs_fail(error, SPROV_E_INVALID_ARGUMENT, "%s is there and is no directory",
                       *ret_path);
    if (rules.source == HS_KIND_FILE && final == HS_KIND_DIRECTORY)
        return hs_fail(error, SPROV_E_INVALID_ARGUMENT, "%s is there and is a directory",
                       *ret_path);
    return rules.source == HS_KIND_FILE || rules.target_kind != HS_KIND_DIRECTORY ||
           check_no_link(copy, *ret_path, error);
}

/* ----------------------------------------------------------------------- the tar in between */

/* Files of this machine at the other end of a pipe, on a thread of their own. */
typedef struct {
    const HsServices *services;
    const char *directory;
    bool packs, with_top;
    int fd;
    GError *error;
} Worker;

static void *work(void *data)
{
    Worker *worker = data;
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = uselocale(utf8); /* names are bytes, and libarchive wants letters */
    if (worker->packs)
        hs_tree_pack(worker->directory, worker->with_top, worker->fd, worker->services,
                     &worker->error);
    else
        hs_tree_unpack(worker->fd, worker->directory, worker->services, &worker->error);
    uselocale(before);
    if (utf8)
        freelocale(utf8);
    close(worker->fd);
    return NULL;
}

/* What the source says at the end of the pipe depends on how the worker ended. */
typedef struct {
    HsSource source;
    sprov_source_status (*read)(void *ctx, void *buffer, size_t capacity, size_t *count);
    GThread *thread;
    Worker *worker;
} Feed;

static sprov_source_status read_feed(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    Feed *feed = ctx;
    sprov_source_status status = feed->read(&feed->source, buffer, capacity, count);
    if (status != SPROV_SOURCE_OK || *count > 0)
        return status;
    if (feed->thread)
        g_thread_join(g_steal_pointer(&feed->thread));
    return feed->worker->error ? SPROV_SOURCE_GIVE_UP : SPROV_SOURCE_OK;
}

static bool put(const Copy *copy, const char *directory, const sprov_source *source,
                sprov_status *ret_status, GError **error)
{
    sprov_call call = hs_session_call(copy->session, SPROV_CALL_NO_CREATE);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_put_request request = SPROV_INIT(sprov_put_request);
    request.directory = directory;
    request.tar = source;
    *ret_status = copy->session->lib->archive->put(copy->sandbox, &request, &call, &failure);
    return *ret_status == SPROV_OK || hs_fail_call(error, *ret_status, &failure);
}

static bool get(const Copy *copy, const sprov_sink *sink, sprov_status *ret_status, GError **error)
{
    sprov_call call = hs_session_call(copy->session, SPROV_CALL_NO_CREATE);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_get_request request = SPROV_INIT(sprov_get_request);
    request.path = copy->from->path;
    request.tar = sink;
    *ret_status = copy->session->lib->archive->get(copy->sandbox, &request, &call, &failure);
    return *ret_status == SPROV_OK || hs_fail_call(error, *ret_status, &failure);
}

static bool make_pipe(int fds[2], GError **error)
{
    return pipe2(fds, O_CLOEXEC) == 0 ||
           hs_fail(error, SPROV_E_EXHAUSTED, "no pipe: %s", g_strerror(errno));
}

/* The worker's own error says more than that the other side then gave up. */
static bool settle(Worker *worker, bool ok, GError **error)
{
    if (!worker->error)
        return ok;
    bool only_follows = !ok && worker->error->code == SPROV_E_IO && error && *error &&
                        (*error)->code != SPROV_E_REFUSED && (*error)->code != HS_READER_GONE;
    if (only_follows) {
        g_clear_error(&worker->error);
        return false;
    }
    g_clear_error(error);
    g_propagate_error(error, g_steal_pointer(&worker->error));
    return false;
}

static bool put_directory(const Copy *copy, const char *directory, bool is_new, GError **error)
{
    int fds[2];
    sprov_status status;
    if (!make_pipe(fds, error))
        return false;
    Worker worker = {.services = &copy->session->services,
                     .directory = copy->from->path,
                     .packs = true,
                     .with_top = is_new,
                     .fd = fds[1]};
    Feed feed = {.worker = &worker, .thread = g_thread_new("pack", work, &worker)};
    hs_source_init(&feed.source, fds[0], false);
    feed.read = feed.source.source.read;
    sprov_source source = feed.source.source;
    source.ctx = &feed;
    source.read = read_feed;
    bool ok = put(copy, directory, &source, &status, error);
    close(fds[0]); /* a worker that still writes ends */
    if (feed.thread)
        g_thread_join(feed.thread);
    return settle(&worker, ok, error);
}

static bool get_directory(const Copy *copy, const char *directory, GError **error)
{
    int fds[2];
    HsSink sink;
    sprov_status status;
    if (!make_pipe(fds, error))
        return false;
    Worker worker = {.services = &copy->session->services, .directory = directory, .fd = fds[0]};
    GThread *thread = g_thread_new("unpack", work, &worker);
    hs_sink_init(&sink, fds[1], copy->session->services.cancel.fd);
    bool ok = get(copy, &sink.sink, &status, error);
    close(fds[1]);
    g_thread_join(thread);
    return settle(&worker, ok, error);
}

/* ------------------------------------------------------------------------------- one file */

static bool put_file(const Copy *copy, const char *path, GError **error)
{
    struct stat st = {0};
    HsSource source;
    int fd = open(copy->from->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hs_fail(error, SPROV_E_IO, "%s: %s", copy->from->path, g_strerror(errno));
    fstat(fd, &st);
    hs_source_init(&source, fd, true);
    sprov_call call = hs_session_call(copy->session, SPROV_CALL_NO_CREATE);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    request.path = path;
    request.mode = st.st_mode & 0777;
    request.source = &source.source;
    sprov_status status =
        copy->session->lib->api->write_file(copy->sandbox, &request, &call, &failure);
    close(fd);
    if (status == SPROV_E_REFUSED && source.failure)
        return hs_fail(error, SPROV_E_IO, "%s: %s", copy->from->path, g_strerror(source.failure));
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

static bool read_into(const Copy *copy, int fd, const char *path, GError **error)
{
    HsSink sink;
    hs_sink_init(&sink, fd, copy->session->services.cancel.fd);
    sprov_call call = hs_session_call(copy->session, SPROV_CALL_NO_CREATE);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    sprov_read_result result = SPROV_INIT(sprov_read_result);
    request.path = copy->from->path;
    request.sink = &sink.sink;
    sprov_status status =
        copy->session->lib->api->read_file(copy->sandbox, &request, &call, &result, &failure);
    if (status == SPROV_E_REFUSED && sink.failure)
        return hs_fail_write(error, path, sink.failure);
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW},
                                {result.mtime_ns / 1000000000, result.mtime_ns % 1000000000}};
    if (status == SPROV_OK && (fchmod(fd, result.mode & 0777) < 0 || futimens(fd, times) < 0))
        return hs_fail(error, SPROV_E_IO, "%s: %s", path, g_strerror(errno));
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

/* Only a whole file gets the name. */
static bool get_file(const Copy *copy, const char *path, GError **error)
{
    g_autofree char *partial = g_strconcat(path, ".XXXXXX", NULL);
    int fd = g_mkstemp_full(partial, O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return hs_fail(error, SPROV_E_IO, "%s: %s", path, g_strerror(errno));
    bool ok = read_into(copy, fd, path, error);
    int close_failed = close(fd);
    if (ok && (close_failed != 0 || rename(partial, path) != 0))
        ok = hs_fail(error, SPROV_E_IO, "%s: %s", path, g_strerror(errno));
    if (!ok)
        unlink(partial);
    return ok;
}

/* -------------------------------------------------------------------------------- the whole */

static bool put_stream(const Copy *copy, GError **error)
{
    HsKind kind;
    HsSource source;
    sprov_status status;
    if (!stat_inside(copy, copy->to->path, &kind, error))
        return false;
    if (kind != HS_KIND_DIRECTORY)
        return hs_fail(error, SPROV_E_INVALID_ARGUMENT,
                       "an archive is unpacked in a directory, and %s is none", copy->to->path);
    hs_source_init(&source, STDIN_FILENO, false);
    bool ok = put(copy, copy->to->path, &source.source, &status, error);
    if (ok || status != SPROV_E_REFUSED || !source.failure)
        return ok;
    g_clear_error(error);
    return hs_fail(error, SPROV_E_IO, "cannot read standard input: %s", g_strerror(source.failure));
}

static bool get_stream(const Copy *copy, GError **error)
{
    HsSink sink;
    sprov_status status;
    hs_sink_init(&sink, STDOUT_FILENO, copy->session->services.cancel.fd);
    bool ok = get(copy, &sink.sink, &status, error);
    if (ok || status != SPROV_E_REFUSED || !sink.failure)
        return ok;
    g_clear_error(error);
    return hs_fail_write(error, "standard output", sink.failure);
}

static bool copy_planned(const Copy *copy, GError **error)
{
    g_autofree char *path = NULL;
    HsKind source;
    bool is_new;
    if (!plan(copy, &source, &path, &is_new, error))
        return false;
    if (source == HS_KIND_FILE)
        return (copy->to->id ? put_file : get_file)(copy, path, error);
    return copy->to->id ? put_directory(copy, path, is_new, error)
                        : get_directory(copy, path, error);
}

static bool need(const HsSession *session, GError **error)
{
    return (session->lib->archive && session->lib->files) ||
           hs_fail(error, SPROV_E_UNSUPPORTED,
                   "the provider lacks " SPROV_EXT_ARCHIVE " or " SPROV_EXT_FILES
                   ", which cp needs");
}

static bool copy_work(HsSession *session, sprov_sandbox *sandbox, void *data, int *ret_exit,
                      GError **error)
{
    const HsPlace *places = data;
    Copy copy = {session, sandbox, &places[0], &places[1]};
    if (!need(session, error))
        return false;
    if (hs_place_is_stream(copy.from))
        return put_stream(&copy, error);
    if (hs_place_is_stream(copy.to))
        return get_stream(&copy, error);
    return copy_planned(&copy, error);
}

static int run(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    g_auto(HsPlace) from = {0}, to = {0};
    g_autoptr(GError) error = NULL;
    int exit_code = 0;
    if (!hs_cli_parse(&cli, self, NULL, argv, &exit_code))
        return exit_code;
    if (g_strv_length(cli.rest) != 2)
        return hs_cli_misuse(self, "give two paths: ID:PATH LOCAL, or LOCAL ID:PATH");
    if (!hs_place_parse(cli.rest[0], hs_cli_id(&cli), &from, &error) ||
        !hs_place_parse(cli.rest[1], hs_cli_id(&cli), &to, &error))
        return hs_cli_misuse(self, "%s", error->message);
    if (!from.id == !to.id)
        return hs_cli_misuse(self, from.id ? "one of the two has to be here: copy in two steps"
                                           : "one of the two has to be ID:PATH, in a sandbox");
    HsPlace places[] = {from, to};
    return hs_session_work(self, &cli, from.id ? from.id : to.id, copy_work, places);
}

const HsCommand hs_cmd_cp = {
    .name = "cp",
    .usage = "(ID:PATH LOCAL | LOCAL ID:PATH)",
    .summary = "copy files and directories into a sandbox or out of it",
    .about =
        "Copies a file, or a directory with all below it, between this machine and a sandbox, by\n"
        "the rules of docker cp: into a directory that is there, else under the new name; \"/.\"\n"
        "behind a directory means what is in it; directories above are not made. As LOCAL, - is\n"
        "a tar archive on a standard stream. A link that is named is followed, those below are\n"
        "copied as links, into a sandbox none that leads out of the directory. In the sandbox\n"
        "what is new belongs to its user, here to who runs this.\n"
        "A sandbox that is stopped is started again; none is created.",
    .notes = HS_EXIT_CODES
    "  141  nobody reads the output any more\n"
    "\n"
    "An id ends before the first \":/\", or else the first ':'. For another one give\n"
    "--id ID and :PATH. What begins with / or . is LOCAL.\n"
    "\n"
    "Examples:\n"
    "  host-sim cp project work:/workspace\n"
    "  host-sim cp work:/workspace/out/. results\n"
    "  tar c src | host-sim cp - work:/workspace",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID,
    .usage_exit = HS_EXIT_USAGE,
    .run = run,
};

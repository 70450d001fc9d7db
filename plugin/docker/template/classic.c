#include "template/classic.h"

#include "buildkit/trace.h"

#include <string.h>

#define ERROR_COLOR "\x1b[91m"
#define NO_COLOR "\x1b[0m"

struct DkrClassic {
    DkrProgress *progress;
    guint step; /* 0: before the first */
    char *name;
    bool cached;
};

DkrClassic *dkr_classic_new(DkrProgress *progress)
{
    DkrClassic *classic = g_new0(DkrClassic, 1);
    classic->progress = progress;
    return classic;
}

void dkr_classic_free(DkrClassic *classic)
{
    if (!classic)
        return;
    g_free(classic->name);
    g_free(classic);
}

static DkrProtoBytes bytes_of(const char *text)
{
    return (DkrProtoBytes){(const guint8 *)text, strlen(text)};
}

static void tell(DkrClassic *classic, bool completed, const char *error)
{
    char digest[16];
    g_snprintf(digest, sizeof digest, "%u", classic->step);
    DkrTraceVertex vertex = {.digest = bytes_of(digest),
                             .name = bytes_of(classic->name),
                             .error = bytes_of(error),
                             .cached = classic->cached,
                             .started = true,
                             .completed = completed};
    dkr_progress_vertex(classic->progress, &vertex);
}

static void end_step(DkrClassic *classic)
{
    if (classic->name)
        tell(classic, true, "");
    g_clear_pointer(&classic->name, g_free);
}

/* "Step 3/4 : RUN x", or "STEP 3/4: RUN x" as Podman has it. NULL for anything else. */
static const char *step_name(const char *text)
{
    const char *colon = strchr(text, ':');
    gsize digits = strlen("Step ");
    if (g_ascii_strncasecmp(text, "Step ", digits) != 0 || !colon)
        return NULL;
    digits += strspn(text + digits, "0123456789/");
    const char *end = text + digits + (text[digits] == ' ');
    return end == colon && colon[1] == ' ' ? colon + 2 : NULL;
}

static void begin_step(DkrClassic *classic, const char *name)
{
    end_step(classic);
    classic->step++;
    classic->name = g_strchomp(g_strdup(name));
    classic->cached = false;
    tell(classic, false, "");
}

/* What the builder says of its own doings. */
static bool is_remark(const char *text)
{
    static const char *const beginnings[] = {" ---> ", "--> ", "Removing intermediate container ",
                                             "Successfully ", "COMMIT "};
    for (gsize i = 0; i < G_N_ELEMENTS(beginnings); i++)
        if (g_str_has_prefix(text, beginnings[i]))
            return true;
    return false;
}

/* What comes of the error stream is in red. */
static void take_log(DkrClassic *classic, const char *text)
{
    char digest[16];
    bool is_error = g_str_has_prefix(text, ERROR_COLOR);
    g_autofree char *plain = g_strdup(text + (is_error ? strlen(ERROR_COLOR) : 0));
    if (is_error && g_str_has_suffix(plain, NO_COLOR))
        plain[strlen(plain) - strlen(NO_COLOR)] = '\0';
    g_snprintf(digest, sizeof digest, "%u", classic->step);
    DkrTraceLog log = {
        .vertex = bytes_of(digest), .stream = is_error ? 2 : 1, .text = bytes_of(plain)};
    dkr_progress_log(classic->progress, &log);
}

void dkr_classic_feed(DkrClassic *classic, const char *text)
{
    const char *name = step_name(text);
    if (name)
        begin_step(classic, name);
    else if (g_str_has_prefix(text, " ---> Using cache"))
        classic->cached = true;
    else if (g_str_has_prefix(text, "Successfully "))
        end_step(classic);
    else if (classic->name && !is_remark(text) && strcmp(text, "\n") != 0)
        take_log(classic, text);
}

void dkr_classic_fail(DkrClassic *classic, int exit_code, const char *message)
{
    g_autofree char *coded = g_strdup_printf("%s: exit code: %d", message, exit_code);
    if (classic->name)
        tell(classic, true, exit_code >= 0 ? coded : message);
    g_clear_pointer(&classic->name, g_free);
}

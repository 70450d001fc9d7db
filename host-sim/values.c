#include "values.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "error.h"

#define LONGEST_WORD 40

/* Edits from a to b where two swapped neighbours count as one; G_MAXUINT for long words. */
static guint edits(const char *a, const char *b)
{
    guint d[LONGEST_WORD + 1][LONGEST_WORD + 1];
    gsize la = strlen(a), lb = strlen(b);
    if (la > LONGEST_WORD || lb > LONGEST_WORD)
        return G_MAXUINT;
    for (gsize i = 0; i <= la; i++) {
        for (gsize j = 0; j <= lb; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = (guint)(i + j);
                continue;
            }
            guint change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = MIN(MIN(d[i - 1][j], d[i][j - 1]) + 1, change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[la][lb];
}

const char *hs_nearest(const char *word, const char *const *known)
{
    const char *best = NULL;
    guint limit = (guint)MIN(strlen(word) / 3 + 1, 3) + 1;
    for (; *known; known++) {
        guint n = edits(word, *known);
        if (n < limit) {
            best = *known;
            limit = n;
        }
    }
    return best;
}

bool hs_parse_seconds(const char *text, gint64 *ret_ms, GError **error)
{
    char *end = NULL;
    double seconds = g_ascii_strtod(text, &end);
    if (!*text || strspn(text, "0123456789.") != strlen(text) || *end)
        return hs_fail(error, HS_USAGE,
                       "\"%s\" is no time: give seconds such as 30 or 0.5 (0: no limit)", text);
    if (seconds == 0)
        *ret_ms = -1;
    else if (seconds >= (double)G_MAXINT64 / 1000)
        *ret_ms = G_MAXINT64;
    else
        *ret_ms = MAX((gint64)llround(seconds * 1000), 1);
    return true;
}

bool hs_parse_age(const char *text, gint64 *ret_ms, GError **error)
{
    static const struct {
        char unit;
        gint64 ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
    char *end = NULL;
    guint64 n = g_ascii_strtoull(text, &end, 10);
    for (gsize i = 0; i < G_N_ELEMENTS(units) && g_ascii_isdigit(*text); i++) {
        if (*end == units[i].unit && end[1] == '\0' && n <= (guint64)(G_MAXINT64 / units[i].ms)) {
            *ret_ms = (gint64)n * units[i].ms;
            return true;
        }
    }
    return hs_fail(error, HS_USAGE, "\"%s\" is no age: give a number with s, m, h or d, like 12h",
                   text);
}

#define LAST_NAMED_SIGNAL 31
#define LAST_SIGNAL 64

bool hs_parse_signal(const char *text, int *ret_signal, GError **error)
{
    const char *name = g_ascii_strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    for (int n = 1; n <= LAST_SIGNAL; n++) {
        g_autofree char *number = g_strdup_printf("%d", n);
        const char *known = n <= LAST_NAMED_SIGNAL ? sigabbrev_np(n) : NULL;
        if (strcmp(text, number) == 0 || (known && g_ascii_strcasecmp(name, known) == 0)) {
            *ret_signal = n;
            return true;
        }
    }
    return hs_fail(error, HS_USAGE,
                   "\"%s\" is no signal: give a name such as TERM, or a number from 1 to %d", text,
                   LAST_SIGNAL);
}

bool hs_parse_mode(const char *text, guint32 *ret_mode, GError **error)
{
    guint64 mode = g_ascii_strtoull(text, NULL, 8);
    if (!*text || strspn(text, "01234567") != strlen(text) || mode < 1 || mode > 0777)
        return hs_fail(error, HS_USAGE,
                       "\"%s\" is no mode: give octal permission bits from 0001 to 0777", text);
    *ret_mode = (guint32)mode;
    return true;
}

bool hs_parse_log_level(const char *text, sprov_log_level *ret_level, GError **error)
{
    static const char *const levels[] = {"error", "warning", "info", "debug", NULL};
    for (int i = 0; levels[i]; i++) {
        if (strcmp(text, levels[i]) == 0) {
            *ret_level = i;
            return true;
        }
    }
    return hs_fail(error, HS_USAGE, "\"%s\" is no log level: use error, warning, info or debug",
                   text);
}

bool hs_check_env(const char *const *entries, GError **error)
{
    for (; entries && *entries; entries++) {
        if (**entries == '\0' || **entries == '=')
            return hs_fail(error, HS_USAGE,
                           "--env \"%s\" has no name: give NAME=VALUE, or NAME to take it away",
                           *entries);
    }
    return true;
}

bool hs_json_argument(const char *option, const char *text, char **ret_json, GError **error)
{
    g_autofree char *contents = NULL;
    g_autoptr(GError) failure = NULL;
    if (text[0] != '@')
        contents = g_strdup(text);
    else if (!g_file_get_contents(text + 1, &contents, NULL, &failure))
        return hs_fail(error, HS_USAGE, "%s: %s", option, failure->message);
    json_error_t where;
    json_t *json = json_loads(contents, JSON_REJECT_DUPLICATES, &where);
    if (!json)
        return hs_fail(error, HS_USAGE, "%s is no JSON object: line %d, column %d: %s", option,
                       where.line, where.column, where.text);
    bool is_object = json_is_object(json);
    json_decref(json);
    if (!is_object)
        return hs_fail(error, HS_USAGE, "%s is no JSON object: it has to begin with {", option);
    *ret_json = g_steal_pointer(&contents);
    return true;
}

bool hs_options_with_id(const char *options, const char *id, char **ret_options, GError **error)
{
    if (!id) {
        *ret_options = g_strdup(options);
        return true;
    }
    if (!*id || !g_utf8_validate(id, -1, NULL))
        return hs_fail(error, HS_USAGE, "--id \"%s\" is no sandbox id: it is %s", id,
                       *id ? "not valid UTF-8" : "empty");
    json_t *json = json_loads(options ? options : "{}", 0, NULL);
    json_object_set_new(json, "id", json_string(id));
    *ret_options = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return true;
}

char *hs_options_clone(const char *options, const char *overrides)
{
    json_t *json = json_loads(options ? options : "{}", 0, NULL);
    json_t *changes = json_loads(overrides ? overrides : "{}", 0, NULL);
    json_object_del(json, "id");
    json_object_del(json, "name");
    json_object_update(json, changes);
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(changes);
    json_decref(json);
    return text;
}

char *hs_age_text(gint64 seconds)
{
    static const struct {
        gint64 seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    gsize i = 0;
    while (units[i].seconds > 1 && seconds < 2 * units[i].seconds)
        i++;
    return g_strdup_printf("%" G_GINT64_FORMAT " %s", MAX(seconds, 0) / units[i].seconds,
                           units[i].unit);
}

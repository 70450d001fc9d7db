#include "options/json.h"

#include "base/error.h"
#include "base/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define QUOTED_CHARACTERS 64
#define MEMBER(type, target, field) ((type *)(void *)((char *)(target) + (field)->offset))

char *dkr_json_quote(const char *text)
{
    GString *out = g_string_new("\"");
    glong left = QUOTED_CHARACTERS;
    for (; *text && left > 0; text = g_utf8_next_char(text), left--) {
        gunichar c = g_utf8_get_char(text);
        if (c == '"' || c == '\\')
            g_string_append_printf(out, "\\%c", (char)c);
        else if (g_unichar_iscntrl(c) || c == 0x2028 || c == 0x2029)
            g_string_append_printf(out, "\\u%04x", c);
        else
            g_string_append_unichar(out, c);
    }
    g_string_append(out, *text ? "...\"" : "\"");
    return g_string_free(out, FALSE);
}

static bool is_plain_key(const char *key)
{
    return key[0] != '\0' && strlen(key) <= QUOTED_CHARACTERS &&
           strspn(key, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_") == strlen(key);
}

char *dkr_json_path_text(const DkrJsonPath *path)
{
    GString *out = g_string_new(NULL);
    for (; path; path = path->parent) {
        g_autofree char *step = NULL;
        if (!path->key) {
            step = g_strdup_printf("[%zu]", path->index);
        } else if (is_plain_key(path->key)) {
            step = g_strdup_printf("%s%s", path->parent ? "." : "", path->key);
        } else {
            g_autofree char *quoted = dkr_json_quote(path->key);
            step = g_strdup_printf("[%s]", quoted);
        }
        g_string_prepend(out, step);
    }
    return g_string_free(out, FALSE);
}

static bool fail_at(const DkrJsonPath *path, GError **error, const char *reason, const char *text)
{
    g_autofree char *where = dkr_json_path_text(path);
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, reason, "%s%s%s", where, path ? ": " : "", text);
}

bool dkr_json_fail(const DkrJsonPath *path, GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    return fail_at(path, error, "invalid-option", text);
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    default:
        return "null";
    }
}

bool dkr_json_fail_type(const DkrJsonPath *path, const json_t *value, const char *expected,
                        GError **error)
{
    return dkr_json_fail(path, error, "expected %s, got %s", expected, type_name(value));
}

/* Jansson itself recurses to 2048 levels, more than the stack of a small thread may hold. */
static bool check_depth(const char *text, const char *what, GError **error)
{
    bool in_string = false;
    int depth = 0;
    int line = 1;
    const char *line_start = text;
    for (const char *p = text; *p; p++) {
        if (*p == '\n') {
            line++;
            line_start = p + 1;
        } else if (in_string && *p == '\\' && p[1]) {
            p++;
        } else if (*p == '"') {
            in_string = !in_string;
        } else if (!in_string && (*p == '{' || *p == '[')) {
            if (++depth > DKR_JSON_MAX_DEPTH)
                return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-option",
                                "%s: line %d, column %td: nested deeper than %d levels", what, line,
                                p - line_start + 1, DKR_JSON_MAX_DEPTH);
        } else if (!in_string && (*p == '}' || *p == ']')) {
            depth--;
        }
    }
    return true;
}

/* Jansson quotes the text where it stopped, which may be half a secret: only a duplicate key,
 * which is a name, is repeated. */
static bool fail_parse(const char *what, const json_error_t *from, GError **error)
{
    g_autofree char *text = g_strdup(from->text);
    enum json_error_code code = json_error_code(from);
    char *near = strstr(text, " near '");
    if (near && code != json_error_duplicate_key)
        *near = '\0';
    const char *why = text;
    if (code == json_error_null_character || code == json_error_null_byte_in_key)
        why = "a string may not hold \\u0000";
    else if (code == json_error_numeric_overflow)
        why = "a number is beyond 64 bits";
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-option", "%s: line %d, column %d: %s",
                    what, from->line, MAX(from->column, 1), why);
}

bool dkr_json_parse_object(const char *text, const char *what, json_t **ret_object, GError **error)
{
    text = text ? text : "{}";
    if (strnlen(text, DKR_JSON_MAX_BYTES + 1) > DKR_JSON_MAX_BYTES)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-option", "%s: longer than %u bytes",
                        what, DKR_JSON_MAX_BYTES);
    if (!check_depth(text, what, error))
        return false;
    json_error_t from;
    json_auto_t *value = json_loads(text, JSON_REJECT_DUPLICATES, &from);
    if (!value)
        return fail_parse(what, &from, error);
    if (!json_is_object(value))
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-option",
                        "%s: expected an object, got %s", what, type_name(value));
    *ret_object = json_incref(value);
    return true;
}

char *dkr_json_to_text(const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    char *copy = g_strdup(text);
    free(text);
    return copy;
}

static bool fail_unknown(const DkrJsonPath *path, const char *key, const DkrJsonField *fields,
                         GError **error)
{
    g_autoptr(GPtrArray) known = g_ptr_array_new();
    for (; fields->key; fields++) {
        if (!fields->is_refused)
            g_ptr_array_add(known, (char *)fields->key);
    }
    g_ptr_array_add(known, NULL);
    const char *nearest = spr_nearest(key, (const char *const *)known->pdata);
    g_autofree char *quoted = dkr_json_quote(key);
    g_autofree char *all = g_strjoinv(", ", (char **)known->pdata);
    g_autofree char *text =
        nearest ? g_strdup_printf("unknown option %s; did you mean \"%s\"?", quoted, nearest)
                : g_strdup_printf("unknown option %s; known are %s", quoted, all);
    return fail_at(path, error, "unknown-option", text);
}

static const DkrJsonField *find_field(const DkrJsonField *fields, const char *key)
{
    for (; fields->key; fields++) {
        if (strcmp(fields->key, key) == 0)
            return fields;
    }
    return NULL;
}

bool dkr_json_read_object(const json_t *value, const DkrJsonPath *path, const DkrJsonField *fields,
                          void *target, GError **error)
{
    if (!json_is_object(value))
        return dkr_json_fail_type(path, value, "an object", error);
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)value, key, member)
    {
        const DkrJsonField *field = find_field(fields, key);
        if (!field)
            return fail_unknown(path, key, fields, error);
        DkrJsonPath at = {.parent = path, .key = key};
        if (!field->read(member, &at, field, target, error))
            return false;
    }
    for (; fields->key; fields++) {
        if (fields->is_required && !json_object_get(value, fields->key))
            return dkr_json_fail(path, error, "\"%s\" is missing", fields->key);
    }
    return true;
}

bool dkr_json_read_bool(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                        void *target, GError **error)
{
    if (!json_is_boolean(value))
        return dkr_json_fail_type(path, value, "a boolean", error);
    *MEMBER(DkrOptBool, target, field) = (DkrOptBool){.is_set = true, .value = json_is_true(value)};
    return true;
}

static bool fail_range(const DkrJsonPath *path, const DkrJsonField *field, const char *got,
                       GError **error)
{
    if (field->max == G_MAXINT64)
        return dkr_json_fail(path, error,
                             "%s is out of range, must be %" G_GINT64_FORMAT " or more", got,
                             field->min);
    return dkr_json_fail(path, error,
                         "%s is out of range, must be %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT,
                         got, field->min, field->max);
}

bool dkr_json_read_integer(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                           void *target, GError **error)
{
    gint64 n = json_integer_value(value);
    char got[32];
    g_snprintf(got, sizeof got, "%" G_GINT64_FORMAT, n);
    if (json_is_real(value)) { /* JSON knows one kind of number: 3e5 and 300000.0 are integers */
        double real = json_real_value(value);
        g_ascii_formatd(got, sizeof got, "%.15g", real);
        if (real < -0x1p63 || real >= 0x1p63)
            return fail_range(path, field, got, error);
        n = (gint64)real;
        if ((double)n != real)
            return dkr_json_fail(path, error, "expected a whole number, got %s", got);
    } else if (!json_is_integer(value)) {
        return dkr_json_fail_type(path, value, "a number", error);
    }
    if (n < field->min || n > field->max)
        return fail_range(path, field, got, error);
    *MEMBER(DkrOptInt, target, field) = (DkrOptInt){.is_set = true, .value = n};
    return true;
}

const char *dkr_json_wrong_path(const char *key, const char *text)
{
    if (text[0] != '/')
        return "must be an absolute path";
    return dkr_json_is_long_path(text) ? DKR_JSON_LONG_PATH : NULL;
}

bool dkr_json_is_long_path(const char *path)
{
    bool is_long = strlen(path) >= PATH_MAX;
    for (gsize size; *path; path += size + (path[size] == '/')) {
        size = strcspn(path, "/");
        is_long = is_long || size > NAME_MAX;
    }
    return is_long;
}

static bool check_text(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                       const char *key, GError **error)
{
    if (!json_is_string(value))
        return dkr_json_fail_type(path, value, "a string", error);
    gint64 length = (gint64)json_string_length(value);
    if (length == 0 && field->min > 0)
        return dkr_json_fail(path, error, "must not be empty");
    if (field->max > 0 && length > field->max)
        return dkr_json_fail(path, error,
                             "is %" G_GINT64_FORMAT " bytes long, at most %" G_GINT64_FORMAT
                             " are allowed",
                             length, field->max);
    const char *wrong = field->wrong ? field->wrong(key, json_string_value(value)) : NULL;
    return wrong ? dkr_json_fail(path, error, "%s", wrong) : true;
}

bool dkr_json_read_text(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                        void *target, GError **error)
{
    if (!check_text(value, path, field, NULL, error))
        return false;
    char **member = MEMBER(char *, target, field);
    g_free(*member);
    *member = g_strdup(json_string_value(value));
    return true;
}

bool dkr_json_read_word(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                        void *target, GError **error)
{
    if (!check_text(value, path, field, NULL, error))
        return false;
    if (!g_strv_contains(field->words, json_string_value(value))) {
        g_autofree char *quoted = dkr_json_quote(json_string_value(value));
        g_autofree char *words = g_strjoinv(", ", (char **)field->words);
        return dkr_json_fail(path, error, "must be one of %s, got %s", words, quoted);
    }
    return dkr_json_read_text(value, path, field, target, error);
}

bool dkr_json_read_texts(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                         void *target, GError **error)
{
    if (!json_is_array(value))
        return dkr_json_fail_type(path, value, "an array of strings", error);
    g_autoptr(GStrvBuilder) texts = g_strv_builder_new();
    for (size_t i = 0; i < json_array_size(value); i++) {
        DkrJsonPath at = {.parent = path, .index = i};
        const json_t *element = json_array_get(value, i);
        if (!check_text(element, &at, field, NULL, error))
            return false;
        g_strv_builder_add(texts, json_string_value(element));
    }
    char ***member = MEMBER(char **, target, field);
    g_strfreev(*member);
    *member = g_strv_builder_end(texts);
    return true;
}

bool dkr_json_read_pairs(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                         void *target, GError **error)
{
    if (!json_is_object(value))
        return dkr_json_fail_type(path, value, "an object of strings", error);
    DkrPairs *pairs = MEMBER(DkrPairs, target, field);
    pairs->items = g_new0(DkrPair, json_object_size(value));
    const char *key;
    json_t *element;
    json_object_foreach((json_t *)value, key, element)
    {
        DkrJsonPath at = {.parent = path, .key = key};
        if (key[0] == '\0')
            return dkr_json_fail(path, error, "a key must not be empty");
        if (!check_text(element, &at, field, key, error))
            return false;
        DkrPair *pair = &pairs->items[pairs->count++];
        pair->name = g_strdup(key);
        pair->value = g_strdup(json_string_value(element));
    }
    return true;
}

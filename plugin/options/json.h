/*
 * JSON text to checked values: a strict parser for what a host hands over, and readers that fill a
 * struct from a table of fields. Every error is one line that names the path of the wrong value.
 * Called by the readers of options/; pure, any thread.
 */
#pragma once

#include "options/values.h"

#include <jansson.h>

#define DKR_JSON_MAX_BYTES (4u << 20)
#define DKR_JSON_MAX_DEPTH 64

/* Where a value stands: a list on the stack from the value up to the root, which is NULL. */
typedef struct DkrJsonPath {
    const struct DkrJsonPath *parent;
    const char *key; /* NULL for an element of an array */
    size_t index;
} DkrJsonPath;

/* "mounts[1].volumeOptions.subpath" */
char *dkr_json_path_text(const DkrJsonPath *path);

/* text in quotes for a message, on one line and cut when it is long. */
char *dkr_json_quote(const char *text);

/* Parses text into an object that the caller owns. Refused are anything but one object, duplicate
 * keys, NUL in strings, more than DKR_JSON_MAX_BYTES and more than DKR_JSON_MAX_DEPTH levels; the
 * error names line and column, and what ("sandbox options") was parsed. NULL is "{}". */
bool dkr_json_parse_object(const char *text, const char *what, json_t **ret_object, GError **error);

/* The value on one line, to be freed with g_free(); NULL when memory ran out. */
char *dkr_json_to_text(const json_t *value);

/* SPR_E_INVALID_ARGUMENT, reason "invalid-option", with the path in front. False always. */
bool dkr_json_fail(const DkrJsonPath *path, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* "<path>: expected <expected>, got a number" */
bool dkr_json_fail_type(const DkrJsonPath *path, const json_t *value, const char *expected,
                        GError **error);

/* One key of an object: its reader stores the value in the member of the target that lies at
 * offset. min and max bound an integer, or the length in bytes of each string, where max 0 is any.
 * wrong() says what is wrong with a string, or with a pair of an object of strings (key is NULL
 * otherwise), and answers NULL when all is well. */
typedef struct DkrJsonField DkrJsonField;
typedef bool (*DkrJsonReader)(const json_t *value, const DkrJsonPath *path,
                              const DkrJsonField *field, void *target, GError **error);
struct DkrJsonField {
    const char *key;
    DkrJsonReader read;
    size_t offset;
    gint64 min;
    gint64 max;
    bool is_required;
    bool is_refused; /* read() always fails: it is not told as known */
    const char *const *words; /* what read_word takes, NULL-terminated */
    const char *(*wrong)(const char *key, const char *text); /* may be NULL */
};

/* Reads every key of value by fields, which end with a key of NULL. An unknown key is refused
 * with the nearest known one, reason "unknown-option". On failure target may be half filled. */
bool dkr_json_read_object(const json_t *value, const DkrJsonPath *path, const DkrJsonField *fields,
                          void *target, GError **error);

/* Readers for tables; in brackets the type of the member. */
bool dkr_json_read_bool(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                        void *target, GError **error); /* DkrOptBool */
bool dkr_json_read_integer(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                           void *target, GError **error); /* DkrOptInt */
bool dkr_json_read_text(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                        void *target, GError **error); /* char * */
bool dkr_json_read_word(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                        void *target, GError **error); /* char *, one of field->words */
bool dkr_json_read_texts(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                         void *target, GError **error); /* char **, NULL-terminated */
bool dkr_json_read_pairs(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                         void *target, GError **error); /* DkrPairs */

/* Longer than any path may be, or with a name that is. */
bool dkr_json_is_long_path(const char *path);
#define DKR_JSON_LONG_PATH "a path has at most 4095 bytes, and 255 in each name"

/* For DkrJsonField.wrong. */
const char *dkr_json_wrong_path(const char *key, const char *text);

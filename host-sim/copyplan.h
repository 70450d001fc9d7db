/*
 * Where a copy goes, by the rules that users of cp and docker cp know: a name that is there and is
 * a directory gets the source inside, "/." behind a source means what is in it, and directories
 * above the target are never made. Pure.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef enum {
    HS_KIND_NOTHING,
    HS_KIND_FILE,
    HS_KIND_DIRECTORY,
    HS_KIND_OTHER
} HsKind;

/* One of the two arguments. */
typedef struct {
    char *id;   /* of the sandbox that path is in; NULL: here */
    char *path; /* "-": a standard stream, when it is here */
} HsPlace;

void hs_place_clear(HsPlace *place);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(HsPlace, hs_place_clear)

/* "ID:PATH", where the id ends before the first ":/" or, without one, the first ':'; ":PATH" is of
 * the sandbox with the id given, which may be NULL. What begins with '/' or '.' is a path here. */
bool hs_place_parse(const char *word, const char *id, HsPlace *ret_place, GError **error);

bool hs_place_is_stream(const HsPlace *place);

/* Whether the path is that of a directory's contents: ".", or "/." at its end. */
bool hs_path_is_contents(const char *path);

/* Without slashes at its end, unless it is "/". */
char *hs_path_trim(const char *path);

/* The directory above it: "." for a plain name. */
char *hs_path_parent(const char *path);

typedef struct {
    HsKind source; /* a file or a directory */
    bool contents;
    const char *name;   /* the source's last part */
    const char *target; /* as it was given */
    HsKind target_kind, parent_kind;
} HsCopy;

/* The file to write, or the directory that what is in the source goes to, made if need be. */
bool hs_copy_plan(const HsCopy *copy, char **ret_path, GError **error);

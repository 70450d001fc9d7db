#include "template/repository.h"

#include <string.h>

#define URL_MOST 2048
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

static bool fail(const char *url, const char *what, GError **error)
{
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-clone-url",
                    "the repository's cloneUrl \"%.200s\" %s", url, what);
}

/* Where the scheme's colon stands, or NULL. */
static const char *scheme_end(const char *url)
{
    gsize size = strspn(url, LETTERS DIGITS ".-");
    return g_ascii_isalpha(*url) && url[size] == ':' ? url + size : NULL;
}

static bool check_port(const char *port)
{
    return port[strspn(port, DIGITS)] == '\0' && strlen(port) <= 9 &&
           g_ascii_strtoull(port, NULL, 10) <= 65535;
}

/* "." and ".." are resolved as browsers do; an empty part is kept, to be refused. */
static char *resolve_path(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    for (char **part = parts; *part; part++) {
        bool is_last = part[1] == NULL;
        bool up = strcmp(*part, "..") == 0, here = strcmp(*part, ".") == 0;
        if (up && kept->len > 0)
            g_ptr_array_remove_index(kept, kept->len - 1);
        if (!up && !here)
            g_ptr_array_add(kept, *part);
        else if (is_last)
            g_ptr_array_add(kept, (char *)"");
    }
    g_ptr_array_add(kept, NULL);
    return g_strjoinv("/", (char **)kept->pdata);
}

static bool has_empty_part(const char *path)
{
    return *path == '\0' || *path == '/' || g_str_has_suffix(path, "/") || strstr(path, "//");
}

/* The given text where git reads it as a browser would, else one that it does. */
static char *for_git(const char *url, const char *authority, const char *path)
{
    g_autofree char *whole = g_strconcat("https://", authority, "/", path, NULL);
    return g_strdup(
        g_ascii_strcasecmp(whole, url) == 0 && g_str_has_prefix(url, "https://") ? url : whole);
}

bool dkr_repository_check_url(const char *url, char **ret_url, GError **error)
{
    static const char plain[] = "must be an https URL with a plain host and path";
    static const char such[] = "must be an https URL such as https://host/owner/repo.git";
    static const char none[] = "is no URL";
    if (*url == '\0' || strlen(url) > URL_MOST || url[strspn(url, LETTERS DIGITS ":/._-")] != '\0')
        return fail(url, plain, error);
    const char *colon = scheme_end(url);
    if (!colon)
        return fail(url, none, error);
    if (colon - url != 5 || g_ascii_strncasecmp(url, "https", 5) != 0)
        return fail(url, such, error);
    const char *begin = colon + 1 + strspn(colon + 1, "/");
    gsize size = strcspn(begin, "/");
    g_autofree char *authority = g_strndup(begin, size);
    char *port = strchr(authority, ':');
    if (port)
        *port++ = '\0';
    if (*authority == '\0' || (port && !check_port(port)))
        return fail(url, none, error);
    g_autofree char *path = resolve_path(begin[size] ? begin + size + 1 : "");
    if (strchr(authority, '_') || strchr(path, ':') || has_empty_part(path))
        return fail(url, such, error);
    if (port)
        port[-1] = ':';
    *ret_url = for_git(url, authority, path);
    return true;
}

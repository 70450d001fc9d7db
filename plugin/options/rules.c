#include "options/rules.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#define HOSTNAME_MAX 63
#define LETTERS_AND_DIGITS G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS

static bool consists_of(const char *text, const char *characters)
{
    return *text && text[strspn(text, characters)] == '\0';
}

const char *dkr_rule_variable(const char *name, const char *text)
{
    return strchr(name, '=') ? "a variable's name must not contain \"=\"" : NULL;
}

const char *dkr_rule_user(const char *key, const char *user)
{
    g_auto(GStrv) parts = g_strsplit(user, ":", -1);
    guint count = g_strv_length(parts);
    bool fits = count == 1 || (count == 2 && parts[1][0] != '\0');
    return fits && parts[0][0] != '\0' ? NULL : "expected a name or uid, or \"user:group\"";
}

const char *dkr_rule_platform(const char *key, const char *platform)
{
    g_auto(GStrv) parts = g_strsplit(platform, "/", -1);
    guint count = g_strv_length(parts);
    bool fits = count == 2 || count == 3;
    for (char **part = parts; *part; part++)
        fits = fits && consists_of(*part, G_CSET_a_2_z G_CSET_DIGITS "._-");
    return fits ? NULL : "expected \"os/arch\" or \"os/arch/variant\", as \"linux/arm64\"";
}

static bool is_host(const char *name)
{
    g_auto(GStrv) labels = g_strsplit(name, ".", -1);
    bool fits = *labels != NULL;
    for (char **label = labels; *label; label++)
        fits = fits && consists_of(*label, LETTERS_AND_DIGITS "-_") && (*label)[0] != '-' &&
               !g_str_has_suffix(*label, "-");
    return fits;
}

const char *dkr_rule_hostname(const char *key, const char *name)
{
    return is_host(name) && strlen(name) <= HOSTNAME_MAX
               ? NULL
               : "expected a host name of at most 63 letters, digits, \"-\" and \".\"";
}

const char *dkr_rule_address(const char *key, const char *address)
{
    return g_hostname_is_ip_address(address) ? NULL : "expected an address in numbers";
}

const char *dkr_rule_extra_host(const char *name, const char *address)
{
    if (!is_host(name))
        return "the key must be a host name";
    return strcmp(address, "host-gateway") == 0 || g_hostname_is_ip_address(address)
               ? NULL
               : "expected an address in numbers, or \"host-gateway\"";
}

static bool is_port(const char *text, guint64 least)
{
    return consists_of(text, G_CSET_DIGITS) &&
           g_ascii_string_to_unsigned(text, 10, least, G_MAXUINT16, NULL, NULL);
}

static bool is_published(const char *port)
{
    static const char *const protocols[] = {"tcp", "udp", "sctp", NULL};
    const char *slash = strchr(port, '/');
    g_autofree char *number = slash ? g_strndup(port, (gsize)(slash - port)) : g_strdup(port);
    return is_port(number, 1) && (!slash || g_strv_contains(protocols, slash + 1));
}

const char *dkr_rule_port(const char *port, const char *at)
{
    const char *colon = strrchr(at, ':');
    gsize size = colon ? (gsize)(colon - at) : 0;
    bool in_brackets = size > 2 && at[0] == '[' && at[size - 1] == ']';
    g_autofree char *address = in_brackets ? g_strndup(at + 1, size - 2) : g_strndup(at, size);
    if (!is_published(port))
        return "the key must be a port of the sandbox, as \"8080\" or \"53/udp\"";
    bool fits = !colon || (g_hostname_is_ip_address(address) &&
                           in_brackets == (strchr(address, ':') != NULL));
    return fits && is_port(colon ? colon + 1 : at, 0)
               ? NULL
               : "expected a port of the engine's machine, as \"8080\" or \"0.0.0.0:8080\", "
                 "where 0 is any that is free";
}

const char *dkr_rule_device(const char *key, const char *device)
{
    g_auto(GStrv) parts = g_strsplit(device, ":", -1);
    guint count = g_strv_length(parts);
    bool fits = count >= 1 && count <= 3 && parts[0][0] == '/' &&
                (count < 2 || parts[1][0] == '/') && (count < 3 || consists_of(parts[2], "rwm"));
    return fits ? NULL : "expected \"/dev/name\", \"/dev/name:/dev/inside\" or those and \":rwm\"";
}

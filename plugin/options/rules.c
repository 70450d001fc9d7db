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

const char *dkr_rule_device(const char *key, const char *device)
{
    g_auto(GStrv) parts = g_strsplit(device, ":", -1);
    guint count = g_strv_length(parts);
    bool fits = count >= 1 && count <= 3 && parts[0][0] == '/' &&
                (count < 2 || parts[1][0] == '/') && (count < 3 || consists_of(parts[2], "rwm"));
    return fits ? NULL : "expected \"/dev/name\", \"/dev/name:/dev/inside\" or those and \":rwm\"";
}

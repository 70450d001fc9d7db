#include "options/provider.h"

#include "base/error.h"
#include "options/json.h"

#include <stddef.h>
#include <string.h>

#define TIMEOUT_MOST_MS (24 * 3600 * 1000)
#define SECRET_NAME_MOST 128
#define TOKEN G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "!#$%&'*+-.^_`|~"

void dkr_provider_config_free(DkrProviderConfig *config)
{
    if (!config)
        return;
    g_free(config->host);
    g_free(config->socket_path);
    g_free(config->protocol);
    g_free(config->username);
    g_free(config->context);
    g_free(config->ca);
    g_free(config->cert);
    g_free(config->key);
    g_free(config->key_secret);
    g_free(config->ssh_config);
    g_free(config->version);
    dkr_pairs_clear(&config->headers);
    g_free(config->runtime_dir);
    g_free(config);
}

static const char *wrong_certificate(const char *key, const char *text)
{
    return *text == '/' || strstr(text, "-----BEGIN ")
               ? NULL
               : "must be an absolute path, or the certificate itself in PEM form";
}

/* Whatever else a key's place holds may be the key, in one of its forms. */
static const char *wrong_key(const char *key, const char *text)
{
    return *text == '/' ? NULL
                        : "must be the absolute path of a PEM file: a private key does not belong "
                          "here";
}

static const char *wrong_secret(const char *key, const char *text)
{
    bool is_name = strlen(text) <= SECRET_NAME_MOST && !strstr(text, "-----");
    for (const char *p = text; *p; p++)
        is_name = is_name && !g_ascii_iscntrl(*p);
    return is_name ? NULL : "must be the short name of a secret: the key does not belong here";
}

/* What the provider sets itself, and what would carry a secret. */
static const char *wrong_header(const char *name, const char *text)
{
    static const char *const own[] = {"Host",       "Content-Length",    "Content-Type",
                                      "Connection", "Transfer-Encoding", "Upgrade",
                                      "Expect",     "User-Agent",        "Accept-Encoding"};
    static const char *const secret[] = {"Authorization", "Proxy-Authorization", "Cookie",
                                         "X-Registry-Auth", "X-Registry-Config"};
    for (size_t i = 0; i < G_N_ELEMENTS(own); i++) {
        if (g_ascii_strcasecmp(name, own[i]) == 0)
            return "is set by the provider itself";
    }
    for (size_t i = 0; i < G_N_ELEMENTS(secret); i++) {
        if (g_ascii_strcasecmp(name, secret[i]) == 0)
            return "carries a secret, which does not belong in the configuration";
    }
    if (*name == '\0' || strspn(name, TOKEN) != strlen(name))
        return "is no name of a header";
    if (*text == '\0')
        return "must not be empty";
    for (const char *p = text; *p; p++) {
        if (g_ascii_iscntrl(*p))
            return "must be one line without control characters";
    }
    return NULL;
}

/* What dockerode takes and nobody can take here; field->words: why, and the way out. */
static bool refuse(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                   void *target, GError **error)
{
    return dkr_json_fail(path, error, "not supported: %s", field->words[0]);
}

#define WHY(text)                                                                                  \
    .is_refused = true, .words = (const char *const[])                                             \
    {                                                                                              \
        text, NULL                                                                                 \
    }
#define OWN_SSH                                                                                    \
    "ssh is the system's own; keys and options go into a file that \"sshConfig\" names, the user " \
    "into \"username\" or the address"
#define NO_FUNCTION "it is a function of JavaScript: leave it out"

static const char *const protocols[] = {"http", "https", "ssh", NULL};

#define AT(member) offsetof(DkrProviderConfig, member)

static const DkrJsonField config_fields[] = {
    {"host", dkr_json_read_text, AT(host), .min = 1},
    {"socketPath", dkr_json_read_text, AT(socket_path), .min = 1, .wrong = dkr_json_wrong_path},
    {"protocol", dkr_json_read_word, AT(protocol), .words = protocols},
    {"username", dkr_json_read_text, AT(username), .min = 1},
    {"port", dkr_json_read_integer, AT(port), .min = 1, .max = 65535},
    {"context", dkr_json_read_text, AT(context), .min = 1},
    {"ca", dkr_json_read_text, AT(ca), .min = 1, .wrong = wrong_certificate},
    {"cert", dkr_json_read_text, AT(cert), .min = 1, .wrong = wrong_certificate},
    {"key", dkr_json_read_text, AT(key), .min = 1, .wrong = wrong_key},
    {"keySecret", dkr_json_read_text, AT(key_secret), .min = 1, .wrong = wrong_secret},
    {"sshConfig", dkr_json_read_text, AT(ssh_config), .min = 1, .wrong = dkr_json_wrong_path},
    {"version", dkr_json_read_text, AT(version), .min = 1},
    {"headers", dkr_json_read_pairs, AT(headers), .wrong = wrong_header},
    {"timeout", dkr_json_read_integer, AT(timeout), .min = 1, .max = TIMEOUT_MOST_MS},
    {"environment", dkr_json_read_bool, AT(environment)},
    {"sshOptions", refuse, WHY(OWN_SSH)},
    {"sshAuthAgent", refuse, WHY(OWN_SSH)},
    {"agent", refuse, WHY(NO_FUNCTION)},
    {"checkServerIdentity", refuse, WHY(NO_FUNCTION)},
    {"connectionTimeout", refuse, WHY("a connection has 10 s: \"timeout\" is for requests")},
    {"passphrase", refuse,
     WHY("a key has no password here: give it without one, by \"key\" or \"keySecret\"")},
    {"runtimeDir", dkr_json_read_text, AT(runtime_dir), .wrong = dkr_json_wrong_path},
    {NULL},
};

bool dkr_provider_config_parse(const char *json, DkrProviderConfig **ret_config, GError **error)
{
    json_auto_t *object = NULL;
    if (!dkr_json_parse_object(json, "provider config", &object, error))
        return false;
    g_autoptr(DkrProviderConfig) config = g_new0(DkrProviderConfig, 1);
    if (!dkr_json_read_object(object, NULL, config_fields, config, error))
        return false;
    *ret_config = g_steal_pointer(&config);
    return true;
}

bool dkr_provider_config_read(const json_t *value, const DkrJsonPath *path,
                              const DkrJsonField *field, void *target, GError **error)
{
    static const char *const keys[] = {"environment", "runtimeDir"};
    g_autoptr(DkrProviderConfig) config = g_new0(DkrProviderConfig, 1);
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        DkrJsonPath at = {.parent = path, .key = keys[i]};
        if (json_object_get(value, keys[i]))
            return dkr_json_fail(&at, error,
                                 "is the whole provider's: give it to open() as configuration");
    }
    if (!dkr_json_read_object(value, path, config_fields, config, error))
        return false;
    *(DkrProviderConfig **)((char *)target + field->offset) = g_steal_pointer(&config);
    return true;
}

bool dkr_provider_config_names_engine(const DkrProviderConfig *config)
{
    return config->host || config->socket_path || config->context;
}

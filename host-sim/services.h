/*
 * What this host offers a provider: its log on standard error, a cancel token that signals fire,
 * and secrets. One HsServices per process, made on the main thread; it outlives every provider
 * opened with it, and its log may be called from any thread.
 */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#include "ext/host.h"

typedef struct {
    sprov_host host;
    sprov_host_secrets host_secrets;
    sprov_callbacks callbacks;
    sprov_cancel cancel; /* fired by the first SIGINT, SIGTERM or SIGHUP */
    sprov_log_level log_level;
    bool log_json;
    GPtrArray *secrets;
    GPtrArray *secret_names; /* NULL-terminated */
    GPtrArray *logins;       /* by registry */
    char *clone_url;         /* of the repository that a build is of, or NULL */
} HsServices;

/* services stays where it is: the tables in it point to it. secrets and logins are the texts of
 * --secret and --login, or NULL. Installs the signal handlers. */
bool hs_services_init(HsServices *services, sprov_log_level log_level, bool log_json,
                      const char *const *secrets, const char *const *logins, GError **error);
void hs_services_clear(HsServices *services);

/* The names to ask for in secret_env, or NULL when there are none. */
const char *const *hs_services_secret_names(const HsServices *services);

/* From now on repository_access answers with the cloneUrl of {"repository": {...}}, and with the
 * secret GH_TOKEN if one was given; any other definition, or none, changes nothing. */
void hs_services_offer_repository(HsServices *services, const json_t *definition);

/* One line of the host itself, under topic "host-sim". */
void hs_log(const HsServices *services, sprov_log_level level, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* The line that ends a failed command: always shown, as JSON with what came along if so asked. */
void hs_report(const HsServices *services, const GError *error);

/* The signal that fired the token, or 0. */
int hs_signal_caught(void);

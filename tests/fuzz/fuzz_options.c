/*
 * libFuzzer target: any text as sandbox options. What is refused carries a one-line error; what is
 * taken makes a create body that is JSON again, and gives its answer to the API and inspect checks.
 */
#include "base/error.h"
#include "options/sandbox.h"
#include "sandbox/info.h"
#include "sandbox/spec.h"
#include "sandbox/warnings.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_error(const GError *error)
{
    require(error && error->domain == SPR_ERROR && error->message[0] != '\0');
    require(!strpbrk(error->message, "\r\n") && g_utf8_validate(error->message, -1, NULL));
}

/* An engine that applies everything shows in inspect what it was sent. */
static void use_options(const DkrSandboxOptions *options)
{
    const char *image = options->image ? options->image : options->template_id;
    DkrSpecContext ctx = {.image = image ? image : "i",
                          .workdir = options->working_directory,
                          .owner = "o",
                          .version = "v",
                          .created = "c"};
    g_autoptr(GError) error = NULL;
    g_autofree char *body = dkr_spec_create_body(options, &ctx, &error);
    require(body != NULL);
    json_auto_t *sent = json_loads(body, JSON_REJECT_DUPLICATES, NULL);
    require(sent != NULL);
    json_auto_t *inspect =
        json_pack("{s:O, s:O}", "Config", sent, "HostConfig", json_object_get(sent, "HostConfig"));
    require(dkr_spec_verify(options, inspect, &error));
    g_auto(GStrv) warnings = dkr_warnings(options, inspect, NULL, false);
    require(!warnings[0] || strstr(warnings[0], "bypass"));
    if (!dkr_spec_check_api(options, 41, &error))
        require_error(error);
    DkrInfoSource source = {.options = options, .status = "pending"};
    g_autofree char *info = dkr_info_sandbox(&source, NULL, NULL);
    require(info != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(DkrSandboxOptions) options = NULL;
    if (dkr_sandbox_options_parse(text, &options, &error))
        use_options(options);
    else
        require_error(error);
    return 0;
}

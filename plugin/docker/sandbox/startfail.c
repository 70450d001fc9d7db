#include "sandbox/startfail.h"

#include "base/error.h"
#include "engine/failure.h"

#include <string.h>

typedef struct {
    const char *text; /* lower case */
    int exit_code;
    const char *says;
} ProgramRule;

static const ProgramRule program_rules[] = {
    {"executable file not found", 127, "command not found"},
    {"exec format error", 126, "cannot execute: wrong format"},
    {"is a directory", 126, "is a directory"},
    {"permission denied", 126, "permission denied"},
    {"no such file or directory", 127, "no such file or directory"},
};

static bool has(const char *low, const char *needle)
{
    return strstr(low, needle) != NULL;
}

bool dkr_start_names_user(const char *text)
{
    g_autofree char *low = g_ascii_strdown(text, -1);
    return has(low, "unable to find user") || has(low, "no matching entries in passwd") ||
           has(low, "unable to find group");
}

bool dkr_start_was_cut(const char *text)
{
    g_autofree char *low = g_ascii_strdown(text, -1);
    return has(low, "init") && has(low, "connection reset by peer") && !has(low, "exec: \"");
}

/* In the runtime's words; the first that is found counts. */
static bool fail_by_text(const char *low, const char *text, const char *cwd, const char *user,
                         GError **error)
{
    if (has(low, "chdir to cwd") || has(low, "cwd must be an absolute path"))
        return spr_fail(error, SPR_E_NOT_FOUND, "bad-cwd",
                        "the working directory \"%s\" cannot be entered: make it first, or name "
                        "another",
                        cwd ? cwd : "of the sandbox");
    if (dkr_start_names_user(low))
        return spr_fail(error, SPR_E_NOT_FOUND, "no-such-user",
                        "the sandbox has no user \"%s\": use one of its /etc/passwd, or numbers",
                        user ? user : "");
    if (has(low, "argument list too long"))
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "too-long",
                        "an argument or variable has 128 KiB or more, which no Linux program "
                        "takes: hand it over by standard input or a file");
    if (has(low, "resource temporarily unavailable") || has(low, "cannot allocate memory") ||
        has(low, "connection reset by peer"))
        return spr_fail(error, SPR_E_EXHAUSTED, "no-process",
                        "no process could be started in the sandbox: its pids or memory limit is "
                        "reached");
    if (dkr_failure_says_ended(low)) {
        spr_fail(error, SPR_E_NOT_READY, "sandbox-gone",
                 "the sandbox ended before the command ran: start it again");
        spr_error_add_flags(error, SPR_ERROR_SANDBOX_GONE);
        return false;
    }
    return spr_fail(error, SPR_E_INTERNAL, "exec-failed", "the engine could not start it: %s",
                    text);
}

bool dkr_start_failure(const char *text, const char *argv0, const char *cwd, const char *user,
                       int *ret_exit_code, char **ret_line, GError **error)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    g_autofree char *low = g_ascii_strdown(valid, -1);
    bool of_cwd = has(low, "chdir to cwd") || has(low, "cwd must be");
    bool of_program = !of_cwd && (has(low, "exec: \"") || has(low, "exec format error"));
    for (gsize i = 0; i < G_N_ELEMENTS(program_rules) && of_program; i++) {
        if (!has(low, program_rules[i].text))
            continue;
        *ret_exit_code = program_rules[i].exit_code;
        *ret_line = g_strdup_printf("%s: %s\n", argv0, program_rules[i].says);
        return true;
    }
    return fail_by_text(low, g_strstrip(valid), cwd, user, error);
}

#include "compose.h"

#include <errno.h>
#include <stdio.h>

#define OF_FILES (SPR_WIRE_RUN_FILES | SPR_WIRE_RUN_STDIN | SPR_WIRE_RUN_PIPES | SPR_WIRE_RUN_INPUT)

extern char **environ;

static char shell_path[] = "/bin/sh", shell_flag[] = "-c";

bool sup_run_parse(SprWireReader *r, SupRun *run)
{
    run->flags = (uint32_t)spr_wire_get(r, 4);
    run->rows = (uint16_t)spr_wire_get(r, 2);
    run->columns = (uint16_t)spr_wire_get(r, 2);
    run->retain = spr_wire_get(r, 8);
    run->deadline_ms = (int64_t)spr_wire_get(r, 8);
    run->grace_ms = (int64_t)spr_wire_get(r, 8);
    run->credit_out = (uint32_t)spr_wire_get(r, 4);
    run->credit_err = (uint32_t)spr_wire_get(r, 4);
    run->n_argv = (uint32_t)spr_wire_get(r, 4);
    run->n_env = (uint32_t)spr_wire_get(r, 4);
    run->strings = (const char *)r->at;
    run->size = r->left;
    bool shell = run->flags & SPR_WIRE_RUN_SHELL;
    bool files = run->flags & SPR_WIRE_RUN_FILES;
    bool pipes = run->flags & SPR_WIRE_RUN_PIPES, input = run->flags & SPR_WIRE_RUN_INPUT;
    bool own_streams = run->flags & SPR_WIRE_RUN_DETACHED || run->rows > 0;
    if (r->bad || run->n_argv == 0 || (shell && run->n_argv != 1) ||
        (files && (run->flags & ~OF_FILES || run->rows)) || (input && !pipes) ||
        (input && run->flags & SPR_WIRE_RUN_STDIN) || (own_streams && pipes) ||
        run->n_argv > SPR_WIRE_MAX_STRINGS || run->n_env > SPR_WIRE_MAX_STRINGS)
        return false;
    for (uint32_t i = 0; i < run->n_argv + run->n_env + 2; i++)
        spr_wire_get_text(r);
    return !r->bad && r->left == 0;
}

/* The command line as `list` shows it: shortened, never exact. */
static void describe(char *const *argv, uint32_t n, char text[SPR_WIRE_COMMAND_TEXT])
{
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const char *from = argv[i];
        if (i > 0 && at < SPR_WIRE_COMMAND_TEXT - 1)
            text[at++] = ' ';
        while (*from && at < SPR_WIRE_COMMAND_TEXT - 1)
            text[at++] = *from++;
    }
    text[at] = '\0';
}

static bool same_name(const char *a, const char *b)
{
    while (*a && *a != '=' && *a == *b) {
        a++;
        b++;
    }
    return (*a == '\0' || *a == '=') && (*b == '\0' || *b == '=');
}

/* The server's own, without what the request sets or takes away; then what it sets. The last of
 * several with one name counts. */
static char **compose_env(char **at, char *const *given, uint32_t n_given)
{
    for (char **own = environ; *own; own++) {
        bool kept = true;
        for (uint32_t i = 0; i < n_given && kept; i++)
            kept = !same_name(*own, given[i]);
        if (kept)
            *at++ = *own;
    }
    for (uint32_t i = 0; i < n_given; i++) {
        bool last = strchr(given[i], '=') != NULL;
        for (uint32_t j = i + 1; j < n_given && last; j++)
            last = !same_name(given[i], given[j]);
        if (last)
            *at++ = given[i];
    }
    *at++ = NULL;
    *at++ = NULL;
    return at;
}

static size_t count_own(void)
{
    size_t n = 0;
    while (environ[n])
        n++;
    return n;
}

bool sup_run_compose(const SupRun *run, SupLaunch *launch, char text[SPR_WIRE_COMMAND_TEXT])
{
    size_t pointers = run->n_argv + 3 + count_own() + (size_t)run->n_env * 2 + 2;
    size_t needed = pointers * sizeof(char *) + run->size;
    if (needed > SUP_REGION_SIZE - sizeof *launch) {
        errno = E2BIG;
        return false;
    }
    char **at = (char **)(void *)(launch + 1);
    char *strings = (char *)(at + pointers);
    memcpy(strings, run->strings, run->size);

    char **given = at + pointers - run->n_env;
    const char *next = strings;
    launch->cwd = next;
    next += strlen(next) + 1;
    launch->user = next;
    next += strlen(next) + 1;
    launch->argv = at;
    launch->shell = run->flags & SPR_WIRE_RUN_SHELL;
    if (launch->shell) {
        *at++ = shell_path;
        *at++ = shell_flag;
    }
    char **first = at;
    for (uint32_t i = 0; i < run->n_argv; i++, next += strlen(next) + 1)
        *at++ = (char *)next;
    *at++ = NULL;
    describe(first, run->n_argv, text);
    snprintf(launch->program, sizeof launch->program, "%s", launch->argv[0]);

    launch->home_given = false;
    for (uint32_t i = 0; i < run->n_env; i++, next += strlen(next) + 1) {
        given[i] = (char *)next;
        launch->home_given |= same_name(next, "HOME");
    }
    launch->env = at;
    compose_env(at, given, run->n_env);
    launch->deadline_ms = run->deadline_ms;
    launch->grace_ms = run->grace_ms;
    launch->wait_background = run->flags & SPR_WIRE_RUN_WAIT_BACKGROUND;
    launch->tell_start = run->flags & SPR_WIRE_RUN_DETACHED;
    launch->files = run->flags & SPR_WIRE_RUN_FILES;
    launch->terminal = run->rows > 0 && run->columns > 0;
    launch->error = 0;
    launch->step = SPR_WIRE_STEP_NONE;
    launch->leader = 0;
    launch->used = needed;
    return true;
}

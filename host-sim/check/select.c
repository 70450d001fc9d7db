#include "check/check.h"

#include <fnmatch.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cases/cases.h"

static const Case *const areas[] = {
    cases_abi,          cases_arguments,   cases_guest,           cases_nulls,
    cases_fired,        cases_descriptors, cases_lifecycle,       cases_identity,
    cases_exec,         cases_env,         cases_streaming,       cases_timeout,
    cases_files,        cases_write,       cases_concurrency,     cases_info,
    cases_options,      cases_templates,   cases_definitions,     cases_builds,
    cases_wire,         cases_way,         cases_processes,       cases_process_streams,
    cases_process_push, cases_tree,        cases_archive,         cases_corners,
    cases_embedding,    cases_outside,     cases_mounts,          cases_repositories,
    cases_rights,       cases_sources,     cases_process_corners, cases_secrets,
    cases_stress,
};

static const Case *const last_of_all = &case_leaks;

const Case *check_find(const char *id)
{
    for (gsize i = 0; i < G_N_ELEMENTS(areas); i++) {
        for (const Case *one = areas[i]; one->id; one++) {
            if (strcmp(one->id, id) == 0)
                return one;
        }
    }
    return strcmp(last_of_all->id, id) == 0 ? last_of_all : NULL;
}

static bool matches_any(char **globs, const char *id)
{
    for (; globs && *globs; globs++) {
        if (fnmatch(*globs, id, 0) == 0)
            return true;
    }
    return false;
}

static bool is_selected(const CheckSetup *setup, const Case *one)
{
    if (one->level > setup->level || matches_any(setup->exclude, one->id))
        return false;
    return !setup->include || matches_any(setup->include, one->id);
}

GPtrArray *check_select(const CheckSetup *setup)
{
    GPtrArray *selected = g_ptr_array_new();
    for (gsize i = 0; i < G_N_ELEMENTS(areas); i++) {
        for (const Case *one = areas[i]; one->id; one++) {
            if (is_selected(setup, one))
                g_ptr_array_add(selected, (void *)one);
        }
    }
    if (is_selected(setup, last_of_all))
        g_ptr_array_add(selected, (void *)last_of_all);
    return selected;
}

/* The first case of any level, or NULL. */
static const Case *find_like(const char *glob)
{
    for (gsize i = 0; i < G_N_ELEMENTS(areas); i++) {
        for (const Case *one = areas[i]; one->id; one++) {
            if (fnmatch(glob, one->id, 0) == 0)
                return one;
        }
    }
    return fnmatch(glob, last_of_all->id, 0) == 0 ? last_of_all : NULL;
}

static bool has_like(const GPtrArray *selected, const char *glob)
{
    for (guint i = 0; i < selected->len; i++) {
        const Case *one = selected->pdata[i];
        if (fnmatch(glob, one->id, 0) == 0)
            return true;
    }
    return false;
}

/* A slip would pass for a success of fewer cases. */
static bool check_glob(const CheckSetup *setup, const GPtrArray *selected, const char *option,
                       const char *glob, bool has_to_be_selected)
{
    const Case *like = find_like(glob);
    if (!like)
        fprintf(stderr,
                "host-sim check: %s %s: there is no such case (host-sim check --list --level 4)\n",
                option, glob);
    else if (!has_to_be_selected || has_like(selected, glob))
        return true;
    else
        fprintf(stderr,
                "host-sim check: %s %s selects nothing: %s is of level %d, the run of level %d%s\n",
                option, glob, like->id, like->level, setup->level,
                setup->exclude ? ", or --exclude has it" : "");
    return false;
}

bool check_globs(const CheckSetup *setup, const GPtrArray *selected)
{
    for (char **glob = setup->include; glob && *glob; glob++) {
        if (!check_glob(setup, selected, "--include", *glob, true))
            return false;
    }
    for (char **glob = setup->exclude; glob && *glob; glob++) {
        if (!check_glob(setup, selected, "--exclude", *glob, false))
            return false;
    }
    if (selected->len == 0)
        fprintf(stderr, "host-sim check: no case is selected (host-sim check --list shows them)\n");
    return selected->len > 0;
}

static void print_json(const GPtrArray *selected)
{
    json_t *list = json_array();
    for (guint i = 0; i < selected->len; i++) {
        const Case *one = selected->pdata[i];
        json_array_append_new(list, json_pack("{s:s, s:i, s:s, s:s, s:s}", "id", one->id, "level",
                                              one->level, "gate", one->gate, "clause", one->clause,
                                              "sentence", one->sentence));
    }
    json_dumpf(list, stdout, JSON_INDENT(1));
    printf("\n");
    json_decref(list);
}

int check_list(const CheckSetup *setup, bool as_json)
{
    g_autoptr(GPtrArray) selected = check_select(setup);
    if (!check_globs(setup, selected))
        return CHECK_EXIT_NOTHING;
    if (as_json)
        print_json(selected);
    for (guint i = 0; !as_json && i < selected->len; i++) {
        const Case *one = selected->pdata[i];
        printf("%s  %d  %s  %s\n", one->id, one->level, one->gate, one->sentence);
    }
    if (fflush(stdout) != 0)
        return CHECK_EXIT_FAILED;
    return CHECK_EXIT_PASSED;
}

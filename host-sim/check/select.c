#include "check/check.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cases/cases.h"

static const Case *const areas[] = {
    cases_abi,
    cases_arguments,
    cases_guest,
    cases_nulls,
    cases_fired,
    cases_descriptors,
    cases_lifecycle,
    cases_exec,
    cases_env,
    cases_streaming,
    cases_timeout,
    cases_files,
    cases_write,
    cases_concurrency,
    cases_info,
    cases_options,
    cases_templates,
    cases_builds,
    cases_wire,
    cases_processes,
    cases_process_streams,
    cases_process_push,
    cases_tree,
    cases_archive,
    cases_corners,
    cases_embedding,
    cases_outside,
    cases_mounts,
    cases_repositories,
    cases_rights,
    cases_sources,
    cases_process_corners,
    cases_secrets,
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
        if (g_pattern_match_simple(*globs, id))
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
    if (as_json)
        print_json(selected);
    for (guint i = 0; !as_json && i < selected->len; i++) {
        const Case *one = selected->pdata[i];
        printf("%s  %d  %s  %s\n", one->id, one->level, one->gate, one->sentence);
    }
    if (fflush(stdout) != 0)
        return CHECK_EXIT_FAILED;
    return selected->len ? CHECK_EXIT_PASSED : CHECK_EXIT_NOTHING;
}

#include "fuzz/fuzz.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "error.h"

static bool fuzz_init(Fuzz *fuzz, const FuzzSetup *setup, GError **error)
{
    sigset_t wanted;
    g_autofree char *pattern = g_build_filename(g_get_tmp_dir(), "host-sim-fuzz-XXXXXX", NULL);
    *fuzz = (Fuzz){.setup = setup, .limit_ms = fuzz_setup_limit_ms(setup), .signals = -1};
    fuzz->run = g_strdup_printf("%08x", g_random_int());
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGHUP);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    fuzz->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (!g_mkdtemp(pattern))
        return hs_fail(error, SPROV_E_EXHAUSTED, "no folder for scripts: %s: %s", pattern,
                       g_strerror(errno));
    fuzz->folder = g_steal_pointer(&pattern);
    setvbuf(stdout, NULL, _IOLBF, 0);
    return fuzz_ask_gates(fuzz, error);
}

static void fuzz_clear(Fuzz *fuzz)
{
    if (fuzz->folder) {
        g_autofree char *script = g_build_filename(fuzz->folder, "script", NULL);
        g_remove(script);
        g_rmdir(fuzz->folder);
    }
    if (fuzz->signals >= 0)
        close(fuzz->signals);
    g_free(fuzz->folder);
    g_free(fuzz->run);
}

static int unusable(Fuzz *fuzz, const GError *error)
{
    int exit_code = fuzz->caught ? 128 + fuzz->caught : FUZZ_EXIT_UNUSABLE;
    fprintf(stderr, "host-sim fuzz: %s\n", error->message);
    fuzz_clear(fuzz);
    return exit_code;
}

static void show_gates(const Fuzz *fuzz)
{
    printf("provider %s", fuzz->setup->provider);
    for (guint i = 0; i < FUZZ_GATES; i++) {
        if (fuzz->gates & 1u << i)
            printf(", %s", fuzz_gate_names[i]);
    }
    printf("\n");
}

/* ---- findings */

static void save(const Fuzz *fuzz, const FuzzScript *script, guint32 seed, const char *told)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *name = g_strdup_printf("fuzz-%u.script", seed);
    g_autofree char *path = g_build_filename(fuzz->setup->folder, name, NULL);
    g_autofree char *text = fuzz_script_text(script);
    char *body = strchr(text, '\n');
    g_autofree char *flat = hs_one_line(told);
    g_autofree char *page =
        g_strdup_printf("%.*s\n# seed %u: %s%s", (int)(body - text), text, seed, flat, body);
    printf("%s", text);
    if (g_file_set_contents(path, page, -1, &error))
        printf("the script is in %s (host-sim fuzz --replay)\n", path);
    else
        fprintf(stderr, "host-sim fuzz: %s\n", error->message);
}

static const char *last_round(const char *output)
{
    const char *last = g_strrstr(output, "\nround ");
    return last ? last : "\n";
}

static void report(Fuzz *fuzz, const FuzzScript *script, guint32 seed, const FuzzOutcome *outcome)
{
    guint failed;
    guint tried;
    printf("seed %u: %s: %s%s", seed, job_verdict_name(outcome->verdict), outcome->message,
           last_round(outcome->output));
    printf("shrinking %u calls ...\n", script->calls->len);
    g_autoptr(FuzzScript) best = fuzz_shrink(fuzz, script, outcome, &failed, &tried);
    if (failed > 0)
        printf("%u calls are left, which fail in %u of %u runs:\n", best->calls->len, failed,
               tried);
    else
        printf("%u calls up to there did not fail again in %u runs:\n", best->calls->len, tried);
    save(fuzz, best, seed, outcome->message);
}

int fuzz_run(const FuzzSetup *setup)
{
    Fuzz fuzz;
    g_autoptr(GError) error = NULL;
    guint scripts = 0;
    guint calls = 0;
    bool is_found = false;
    if (!fuzz_init(&fuzz, setup, &error))
        return unusable(&fuzz, error);
    show_gates(&fuzz);
    gint64 end = g_get_monotonic_time() + setup->time_s * G_USEC_PER_SEC;
    while (!is_found && !fuzz.caught && g_get_monotonic_time() < end && scripts < setup->scripts) {
        g_auto(FuzzOutcome) outcome = {0};
        guint32 seed = setup->seed + scripts++;
        g_autoptr(FuzzScript) script = fuzz_generate(seed, setup->lanes, setup->length, fuzz.gates);
        if (!fuzz_replay(&fuzz, script, &outcome, &error))
            return unusable(&fuzz, error);
        calls += script->calls->len;
        is_found = outcome.verdict != JOB_PASS;
        if (is_found)
            report(&fuzz, script, seed, &outcome);
    }
    int exit_code = fuzz.caught ? 128 + fuzz.caught : is_found ? FUZZ_EXIT_FOUND : 0;
    printf("%u scripts of %u calls, seeds %u to %u: %s\n", scripts, calls, setup->seed,
           setup->seed + MAX(scripts, 1) - 1, is_found ? "one failed" : "nothing found");
    fuzz_clear(&fuzz);
    return exit_code;
}

/* ---- a script of before */

static bool read_script(const Fuzz *fuzz, FuzzScript **ret_script, GError **error)
{
    g_autofree char *text = NULL;
    const char *path = fuzz->setup->replay;
    if (!g_file_get_contents(path, &text, NULL, error))
        return false;
    if (!fuzz_script_parse(text, ret_script, error)) {
        g_prefix_error(error, "%s: ", path);
        return false;
    }
    guint missing = (*ret_script)->gates & ~fuzz->gates;
    for (guint i = 0; i < FUZZ_GATES; i++) {
        if (missing & 1u << i)
            return hs_fail(error, SPROV_E_UNSUPPORTED, "%s needs %s, which %s has not got", path,
                           fuzz_gate_names[i], fuzz->setup->provider);
    }
    return true;
}

int fuzz_run_replay(const FuzzSetup *setup)
{
    Fuzz fuzz;
    g_autoptr(GError) error = NULL;
    g_autoptr(FuzzScript) script = NULL;
    guint failed = 0;
    if (!fuzz_init(&fuzz, setup, &error) || !read_script(&fuzz, &script, &error))
        return unusable(&fuzz, error);
    for (guint i = 0; i < setup->times && !fuzz.caught; i++) {
        g_auto(FuzzOutcome) outcome = {0};
        if (!fuzz_replay(&fuzz, script, &outcome, &error))
            return unusable(&fuzz, error);
        printf("%s%s%s%s\n", outcome.output, job_verdict_name(outcome.verdict),
               outcome.message ? ": " : "", outcome.message ? outcome.message : "");
        failed += outcome.verdict != JOB_PASS;
    }
    printf("%u of %u runs failed\n", failed, setup->times);
    fuzz_clear(&fuzz);
    return failed > 0 ? FUZZ_EXIT_FOUND : 0;
}

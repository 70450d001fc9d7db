#include "base/error.h"
#include "sandbox/placement.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <string.h>

static bool decide(const char *options_json, const char *image_json, const char *architecture,
                   DkrPlacement *placement, GError **error)
{
    g_autoptr(DkrSandboxOptions) options = NULL;
    json_auto_t *image = json_loads(image_json, 0, NULL);
    cr_assert(dkr_sandbox_options_parse(options_json, &options, NULL));
    return dkr_placement_decide(options, image, architecture, placement, error);
}

static DkrPlacement decided(const char *options_json, const char *image_json,
                            const char *architecture)
{
    DkrPlacement placement = {0};
    cr_assert(decide(options_json, image_json, architecture, &placement, NULL));
    return placement;
}

#define AMD64_IMAGE "{\"Architecture\":\"amd64\",\"Config\":{}}"
#define ARM64_IMAGE "{\"Architecture\":\"arm64\",\"Config\":{\"Entrypoint\":[\"/e\",\"x\"]}}"

static guint16 machine_of(const SprProgram *program)
{
    Elf64_Ehdr head;
    cr_assert(program->size > sizeof head && memcmp(program->bytes, ELFMAG, SELFMAG) == 0);
    memcpy(&head, program->bytes, sizeof head);
    return head.e_machine;
}

Test(placement, the_program_is_that_of_the_engine_s_processor_not_of_the_image)
{
    static const struct {
        const char *names[2];
        guint16 machine;
    } known[] = {{{"amd64", "x86_64"}, EM_X86_64}, {{"arm64", "aarch64"}, EM_AARCH64}};
    g_auto(GStrv) volumes = g_new0(char *, 3);
    int built = 0;
    for (int i = 0; i < 4; i++) {
        const char *name = known[i / 2].names[i % 2];
        g_auto(DkrPlacement) placement =
            decided(NULL, i / 2 == 0 ? ARM64_IMAGE : AMD64_IMAGE, name);
        if (!placement.use) {
            cr_expect(strstr(placement.reason, name), "%s", placement.reason);
            continue;
        }
        cr_expect_eq(machine_of(&placement.program), known[i / 2].machine);
        cr_expect(!volumes[0] || (i % 2 == 0) == !g_strv_contains((const char *const *)volumes,
                                                                  placement.volume),
                  "each build has a volume, whatever its processor is called");
        if (i % 2 == 0)
            volumes[built++] = g_strdup(placement.volume);
    }
    cr_expect(built >= 1);
}

Test(placement, an_engine_that_does_not_tell_its_processor_is_taken_for_its_image_s)
{
    g_auto(DkrPlacement) placement = decided(NULL, AMD64_IMAGE, "");
    g_auto(DkrPlacement) told = decided(NULL, AMD64_IMAGE, "amd64");
    cr_expect_eq(placement.use, told.use);
    cr_expect_str_eq(placement.volume, told.volume);
    g_auto(DkrPlacement) none = decided(NULL, "{\"Config\":{}}", "");
    cr_expect(!none.use && strstr(none.reason, "unknown"));
}

Test(placement, without_a_program_for_it_auto_does_without_and_required_is_an_error)
{
    g_auto(DkrPlacement) placement = decided(NULL, AMD64_IMAGE, "riscv64");
    g_auto(DkrPlacement) other = {0};
    g_autoptr(GError) error = NULL;
    cr_expect(!placement.use && strstr(placement.reason, "riscv64"));
    cr_expect_not(decide("{\"supervisor\":\"required\"}", AMD64_IMAGE, "riscv64", &other, &error));
    cr_expect(spr_error_is(error, SPR_E_UNSUPPORTED, "no-supervisor"));
    cr_expect(strstr(error->message, "riscv64"));
}

Test(placement, whoever_may_mount_has_a_volume_of_its_own)
{
    static const char *const may[] = {
        "{\"id\":\"a\",\"privileged\":true}", "{\"id\":\"a\",\"capAdd\":[\"SYS_ADMIN\"]}",
        "{\"id\":\"a\",\"capAdd\":[\"NET_RAW\",\"cap_Sys_Admin\"]}",
        "{\"id\":\"a\",\"capAdd\":[\"all\"]}", "{\"id\":\"a\",\"capAdd\":[\"CAP_ALL\"]}"};
    g_autofree char *own = dkr_placement_own_volume("a"), *others = dkr_placement_own_volume("b");
    cr_expect_str_neq(own, others);
    for (gsize i = 0; i < G_N_ELEMENTS(may); i++) {
        g_auto(DkrPlacement) placement = decided(may[i], AMD64_IMAGE, "");
        cr_expect(placement.volume_is_own, "%s", may[i]);
        cr_expect_str_eq(placement.volume, own);
    }
    g_auto(DkrPlacement) plain =
        decided("{\"id\":\"a\",\"capAdd\":[\"NET_ADMIN\"]}", AMD64_IMAGE, "");
    cr_expect(!plain.volume_is_own);
    cr_expect_str_neq(plain.volume, own);
}

static void expect_refused(const char *options_json)
{
    g_autoptr(DkrSandboxOptions) options = NULL;
    g_autoptr(GError) error = NULL;
    cr_expect_not(dkr_sandbox_options_parse(options_json, &options, &error), "%s", options_json);
    cr_expect(spr_error_is(error, SPR_E_INVALID_ARGUMENT, "invalid-option"), "%s", options_json);
    cr_expect(error && strstr(error->message, "the provider's own"), "%s: %s", options_json,
              error ? error->message : "");
}

Test(placement, its_paths_are_refused_in_options_however_they_are_written)
{
    static const char *const paths[] = {"/.sprov",
                                        "/.sprov/",
                                        "//.sprov",
                                        "/./.sprov/run",
                                        "/.sprov/bin",
                                        "/.sprov//bin///x",
                                        "/a/../.sprov",
                                        "/.sprov/../.sprov",
                                        "/.sprov/bin/..",
                                        "/../../.sprov/run/",
                                        "///a/b/../../.sprov/new"};
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autofree char *volume = g_strdup_printf("{\"volumes\":{\"data\":\"%s:ro\"}}", paths[i]);
        g_autofree char *bind = g_strdup_printf("{\"volumes\":{\"/srv\":\"%s\"}}", paths[i]);
        g_autofree char *tmpfs = g_strdup_printf("{\"tmpfs\":{\"%s\":\"size=1m\"}}", paths[i]);
        g_autofree char *mount = g_strdup_printf(
            "{\"mounts\":[{\"type\":\"volume\",\"source\":\"v\",\"target\":\"%s\"}]}", paths[i]);
        expect_refused(volume);
        expect_refused(bind);
        expect_refused(tmpfs);
        expect_refused(mount);
    }
    g_auto(DkrPlacement) fine =
        decided("{\"tmpfs\":{\"/.sprovide\":\"\",\"/a/.sprov\":\"\"}}", AMD64_IMAGE, "");
    cr_expect(fine.volume);
}

Test(placement, its_volumes_are_refused_in_options)
{
    g_auto(DkrPlacement) shared = decided(NULL, AMD64_IMAGE, "");
    g_autofree char *own = dkr_placement_own_volume("a");
    const char *const names[] = {shared.volume, own};
    for (int i = 0; i < 2; i++) {
        g_autofree char *volume = g_strdup_printf("{\"volumes\":{\"%s\":\"/d\"}}", names[i]);
        g_autofree char *mount = g_strdup_printf(
            "{\"mounts\":[{\"type\":\"volume\",\"source\":\"%s\",\"target\":\"/d\"}]}", names[i]);
        g_autofree char *part =
            g_strdup_printf("{\"mounts\":[{\"type\":\"volume\",\"source\":\"%s\","
                            "\"target\":\"/d\",\"volumeOptions\":{\"subpath\":"
                            "\"x\"}}]}",
                            names[i]);
        expect_refused(volume);
        expect_refused(mount);
        expect_refused(part);
    }
}

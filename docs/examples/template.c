/* A template in C: example-template PROVIDER.so prints its Dockerfile and its id; needs no engine. */
#include <dlfcn.h>
#include <stdio.h>
#include <ext/templates.h>

static void print(void *ctx, const char *text, size_t size)
{
    printf("%s\n", text);
}

int main(int argc, char **argv)
{
    static const char *const tools[] = {"git", "ca-certificates", NULL};
    static const char *const variables[] = {"NODE_ENV=production", NULL};
    static const char *const packages[] = {"typescript", "tsx", NULL};
    static const char *const checkout[] = {"git init .", "git config user.name sandbox", NULL};
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    sprov_entry_fn entry = library ? (sprov_entry_fn)dlsym(library, SPROV_ENTRY_SYMBOL) : NULL;
    if (!entry) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: example-template PROVIDER.so");
        return 125;
    }
    const sprov_ext_templates *t = entry()->get_extension(SPROV_EXT_TEMPLATES);
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_provider *provider = NULL;
    sprov_template *grown[6] = {NULL};
    int ok = t && entry()->api->open(NULL, NULL, &provider, &error) == SPROV_OK &&
             t->create_template(provider, NULL, &grown[0], &error) == SPROV_OK &&
             t->apt_install(grown[0], tools, "{\"noInstallRecommends\":true}", &grown[1],
                            &error) == SPROV_OK &&
             t->set_envs(grown[1], variables, NULL, &grown[2], &error) == SPROV_OK &&
             t->npm_install(grown[2], packages, "{\"g\":true}", &grown[3], &error) == SPROV_OK &&
             t->set_workdir(grown[3], "/workspace", &grown[4], &error) == SPROV_OK &&
             t->run_cmd(grown[4], checkout, &grown[5], &error) == SPROV_OK &&
             t->dockerfile(grown[5], print, NULL, &error) == SPROV_OK &&
             t->template_id(grown[5], print, NULL, &error) == SPROV_OK;
    if (!ok)
        fprintf(stderr, "%s\n", error.message);
    for (int i = 0; t && i < 6; i++)
        t->release_template(grown[i]);
    if (provider)
        entry()->api->close(provider, NULL);
    return ok ? 0 : 125;
}

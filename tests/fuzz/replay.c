/*
 * Runs a fuzz target once over each file of the folders that it is given, without libFuzzer, so that
 * what fuzzing found is tried in every build. Speaks TAP.
 */
#include <glib.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    unsigned count = 0;
    for (int i = 1; i < argc; i++) {
        GDir *folder = g_dir_open(argv[i], 0, NULL);
        for (const char *name; folder && (name = g_dir_read_name(folder));) {
            g_autofree char *path = g_build_filename(argv[i], name, NULL);
            g_autofree char *data = NULL;
            gsize size;
            if (!g_file_get_contents(path, &data, &size, NULL))
                continue;
            printf("# %s\n", name);
            fflush(stdout);
            LLVMFuzzerTestOneInput((const uint8_t *)data, size);
            count++;
        }
        g_clear_pointer(&folder, g_dir_close);
    }
    printf("%s 1 - %u inputs of the corpus go through\n1..1\n", count > 0 ? "ok" : "not ok", count);
    return count > 0 ? 0 : 1;
}

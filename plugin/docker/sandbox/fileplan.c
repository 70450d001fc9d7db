#include "sandbox/fileplan.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { /* exit codes of the script */
    PROBE_OK = 0,
    PROBE_NOT_FOUND = 40,
    PROBE_DIRECTORY = 41,
    PROBE_SPECIAL = 42,
    PROBE_NOT_DIRECTORY = 43,
    PROBE_DENIED = 44,
    PROBE_LOOP = 45,
    PROBE_NAME = 46
};

/* The last component is followed by hand, the directory by the shell's own cd -P, but for one that
 * is another for each process that looks. "x" behind each command substitution keeps line breaks at
 * a name's end. A denied mkdir prints the nearest directory that is there and the mounts, so that a
 * read-only file system can be told. */
const char dkr_file_probe_script[] =
    "p=$1 how=$2 n=0\n"
    "case $p in */|*/.|*/..) slash=1;; *) slash=;; esac\n"
    "while :; do\n"
    "  while case $p in ?*/) :;; *) false;; esac; do p=${p%/}; done\n"
    "  [ -d \"$p\" ] && exit 41\n"
    "  d=${p%/*} b=${p##*/}\n"
    "  [ -n \"$d\" ] || d=/\n"
    "  [ ${#b} -le 255 ] || exit 46\n"
    "  if [ \"$how\" = write ] && [ ! -d \"$d\" ]; then\n"
    "    umask 022\n"
    "    if ! m=$(mkdir -p -- \"$d\" 2>&1); then\n"
    "      case $m in *'Not a directory'*|*'File exists'*) exit 43;; *'name too long'*) exit 46;;\n"
    "      *) d=${d%/*}; while [ -n \"$d\" ] && [ ! -d \"$d\" ]; do d=${d%/*}; done\n"
    "         printf '%s\\0' \"${d:-/}\"; cat /proc/self/mountinfo; exit 44;; esac\n"
    "    fi\n"
    "  fi\n"
    "  case $d/ in /proc/self/*|/proc/thread-self/*) p=$d/$b; break;; esac\n"
    "  if ! r=$(cd -P -- \"$d\" 2>/dev/null && pwd -P && echo x); then\n"
    "    [ -d \"$d\" ] && exit 44\n"
    "    u=$d; while [ -n \"$u\" ] && [ ! -e \"$u\" ]; do u=${u%/*}; done\n"
    "    [ -n \"$u\" ] && [ ! -d \"$u\" ] && exit 43\n"
    "    [ -n \"$u\" ] && [ ! -x \"$u\" ] && exit 44\n"
    "    exit 40\n"
    "  fi\n"
    "  d=${r%?x}; p=${d%/}/$b\n"
    "  [ -L \"$p\" ] || break\n"
    "  n=$((n+1)); [ $n -le 40 ] || exit 45\n"
    "  t=$(readlink -- \"$p\" && echo x) || exit 44; t=${t%?x}\n"
    "  case $t in /*) p=$t;; *) p=${d%/}/$t;; esac\n"
    "done\n"
    "[ -d \"$p\" ] && exit 41\n"
    "if [ -e \"$p\" ]; then\n"
    "  [ -n \"$slash\" ] && exit 43\n"
    "  [ -f \"$p\" ] || exit 42\n"
    "  [ \"$how\" = read ] && [ ! -r \"$p\" ] && exit 44\n"
    "  s=$(stat -c '%a %u %g %s %Y' -- \"$p\") || exit 1\n"
    "  kind=f\n"
    "else\n"
    "  [ \"$how\" = read ] && { [ -x \"$d\" ] || exit 44; exit 40; }\n"
    "  [ -n \"$slash\" ] && exit 41\n"
    "  s='0 0 0 0 0' kind=-\n"
    "fi\n"
    "w=-; [ -w \"$p\" ] && w=w\n"
    "dw=-; [ -w \"$d\" ] && dw=w\n"
    "printf '%s\\0' \"$kind\" \"$p\" \"$d\" \"$s\" \"$w\" \"$dw\" \"$(id -u)\" \"$(id -g)\"\n"
    "cat /proc/self/mountinfo\n";

#define FIELDS 8

/* ------------------------------------------------------------------------ mountinfo */

/* A mount point in mountinfo: octal escapes for space, tab, newline and backslash. */
static char *unescape(const char *text)
{
    GString *out = g_string_new(NULL);
    for (const char *p = text; *p; p++) {
        if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] && p[3]) {
            g_string_append_c(out, (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0')));
            p += 3;
        } else {
            g_string_append_c(out, *p);
        }
    }
    return g_string_free(out, FALSE);
}

static bool is_below(const char *path, const char *directory)
{
    gsize n = strlen(directory);
    if (strcmp(directory, "/") == 0)
        return true;
    return strncmp(path, directory, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The mount that path lies on: the last of the longest mount points above it. */
static bool find_mount(const char *mountinfo, const char *path, char **ret_point,
                       bool *ret_read_only)
{
    g_auto(GStrv) lines = g_strsplit(mountinfo, "\n", -1);
    g_autofree char *best = NULL;
    for (char **line = lines; *line; line++) {
        g_auto(GStrv) fields = g_strsplit(*line, " ", -1);
        if (g_strv_length(fields) < 6)
            continue;
        g_autofree char *point = unescape(fields[4]);
        if (!is_below(path, point) || (best && strlen(point) < strlen(best)))
            continue;
        g_free(best);
        best = g_steal_pointer(&point);
        *ret_read_only =
            g_str_has_prefix(fields[5], "ro") && (fields[5][2] == ',' || fields[5][2] == '\0');
    }
    *ret_point = g_steal_pointer(&best);
    return *ret_point != NULL;
}

bool dkr_file_in_archive(const char *mountinfo, const char *path, const char *const *mounts)
{
    g_autofree char *point = NULL;
    bool read_only;
    if (!find_mount(mountinfo, path, &point, &read_only))
        return false;
    return strcmp(point, "/") == 0 || g_strv_contains(mounts, point);
}

bool dkr_file_is_mount(const char *mountinfo, const char *path)
{
    g_autofree char *point = NULL;
    bool read_only;
    return find_mount(mountinfo, path, &point, &read_only) && strcmp(point, path) == 0;
}

bool dkr_file_is_read_only(const char *mountinfo, const char *path)
{
    g_autofree char *point = NULL;
    bool read_only = false;
    return find_mount(mountinfo, path, &point, &read_only) && read_only;
}

/* ---------------------------------------------------------------------------- facts */

typedef struct {
    int exit_code;
    SprErrorCode code;
    const char *reason;
    const char *says;
} ProbeRule;

static const ProbeRule probe_rules[] = {
    {PROBE_NOT_FOUND, SPR_E_NOT_FOUND, "no-such-file", "no such file"},
    {PROBE_DIRECTORY, SPR_E_INVALID_ARGUMENT, "is-directory", "is a directory"},
    {PROBE_SPECIAL, SPR_E_INVALID_ARGUMENT, "not-regular",
     "is a device, pipe or socket; only regular files are transferred"},
    {PROBE_NOT_DIRECTORY, SPR_E_INVALID_ARGUMENT, "not-directory",
     "a file stands where a directory is needed"},
    {PROBE_DENIED, SPR_E_DENIED, "permission", "the sandbox's user has no permission"},
    {PROBE_LOOP, SPR_E_INVALID_ARGUMENT, "link-loop", "too many links"},
    {PROBE_NAME, SPR_E_INVALID_ARGUMENT, "name-too-long", "a file's name has at most 255 bytes"},
};

/* Whether what a denied probe printed shows a read-only file system. */
static bool shows_read_only(const char *output, gsize size)
{
    const char *end = size > 0 ? memchr(output, '\0', size) : NULL;
    if (!end)
        return false;
    g_autofree char *mountinfo = g_strndup(end + 1, size - (gsize)(end + 1 - output));
    return dkr_file_is_read_only(mountinfo, output);
}

static bool fail_probe(const char *output, gsize size, int exit_code, const char *shown,
                       GError **error)
{
    if (exit_code == PROBE_DENIED && shows_read_only(output, size))
        return spr_fail(error, SPR_E_DENIED, "read-only", "%s: the file system is read-only there",
                        shown);
    for (gsize i = 0; i < G_N_ELEMENTS(probe_rules); i++) {
        const ProbeRule *rule = &probe_rules[i];
        if (rule->exit_code == exit_code)
            return spr_fail(error, rule->code, rule->reason, "%s: %s", shown, rule->says);
    }
    return spr_fail(error, SPR_E_UNSUPPORTED, "no-tools",
                    "%s: the image lacks the tools (stat, readlink, mkdir, id) that files need "
                    "without a supervisor",
                    shown);
}

bool dkr_file_facts_parse(const char *output, gsize size, int exit_code, const char *shown,
                          DkrFileFacts *ret_facts, GError **error)
{
    const char *fields[FIELDS];
    const char *p = output, *end = output + size;
    DkrFileFacts facts = {0};
    unsigned long long uid, gid, file_size;
    long long mtime;
    if (exit_code != PROBE_OK)
        return fail_probe(output, size, exit_code, shown, error);
    for (gsize i = 0; i < FIELDS; i++) {
        fields[i] = p;
        p = memchr(p, '\0', (gsize)(end - p));
        if (!p++)
            return fail_probe(output, size, -1, shown, error);
    }
    if (sscanf(fields[3], "%o %llu %llu %llu %lld", &facts.mode, &uid, &gid, &file_size, &mtime) !=
        5)
        return fail_probe(output, size, -1, shown, error);
    facts.kind = fields[0][0] == 'f' ? DKR_FILE_REGULAR : DKR_FILE_MISSING;
    facts.path = g_strdup(fields[1]);
    facts.directory = g_strdup(fields[2]);
    facts.uid = (gint64)uid;
    facts.gid = (gint64)gid;
    facts.size = file_size;
    facts.mtime_s = mtime;
    facts.may_write = fields[4][0] == 'w';
    facts.may_write_directory = fields[5][0] == 'w';
    facts.user_uid = g_ascii_strtoll(fields[6], NULL, 10);
    facts.user_gid = g_ascii_strtoll(fields[7], NULL, 10);
    facts.mountinfo = g_strndup(p, (gsize)(end - p));
    *ret_facts = facts;
    return true;
}

void dkr_file_facts_clear(DkrFileFacts *facts)
{
    g_free(facts->path);
    g_free(facts->directory);
    g_free(facts->mountinfo);
    *facts = (DkrFileFacts){0};
}

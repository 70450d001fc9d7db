#include "sandbox/kill.h"

#include "base/error.h"
#include "sandbox/command.h"

#include <stdio.h>

/* Shell builtins alone: slim images have neither ps nor kill. $1 token, $2 signal.
 * look() finds in $tree the live processes of the tree, with the closure over sessions and
 * children, since a child may have cleared its environment. Sessions 0 and 1 are not the tree's.
 * Who cleared its environment and left its session and its parent, too, cannot be told from what
 * others left behind. So strays() counts as left what began since the tree did ($since) and is
 * nobody's: it bears no token, is not of the main process's session, and its ancestors lead to the
 * first process rather than to an exec, whose parent is 0. */
static const char script[] =
    "t=$1 sig=$2\n"
    "look() {\n"
    "  all= tree=' ' sids=' ' marked=' '\n"
    "  for d in /proc/[0-9]*; do\n"
    "    p=${d#/proc/}; [ \"$p\" = $$ ] && continue\n"
    "    l=; IFS= read -r l <$d/stat || [ -n \"$l\" ] || continue\n"
    "    l=${l##*) }; set -f; set -- $l; set +f\n"
    "    case $1 in Z|X) continue;; esac\n"
    "    all=\"$all $p:$2:$4:${20}\"\n"
    "    while IFS= read -r e || [ -n \"$e\" ]; do\n"
    "      case $e in *\"" DKR_KILL_VARIABLE "=$t\"*)\n"
    "        tree=\"$tree$p \"; [ \"$4\" -gt 1 ] && sids=\"$sids$4 \"\n"
    "        [ \"${20}\" -lt ${since:-${20}0} ] && since=${20}; break;;\n"
    "      *\"" DKR_KILL_VARIABLE "=\"*) marked=\"$marked$p \";;\n"
    "      esac\n"
    "    done <$d/environ\n"
    "  done\n"
    "  more=1\n"
    "  while [ -n \"$more\" ]; do\n"
    "    more=\n"
    "    for x in $all; do\n"
    "      part $x\n"
    "      case $tree in *\" $p \"*) continue;; esac\n"
    "      case $sids in *\" $s \"*) hit=1;; *) hit=;; esac\n"
    "      case $tree in *\" $pp \"*) hit=1;; esac\n"
    "      [ -n \"$hit\" ] && { tree=\"$tree$p \"; more=1; }\n"
    "    done\n"
    "  done\n"
    "}\n"
    "part() { p=${1%%:*} y=${1#*:}; pp=${y%%:*} y=${y#*:}; s=${y%:*} b=${y#*:}; }\n"
    "count() { n=$#; }\n"
    "strays() {\n"
    "  more=1 ours=\" $$ \"\n"
    "  while [ -n \"$more\" ]; do\n"
    "    more=\n"
    "    for x in $all; do\n"
    "      part $x\n"
    "      case $ours$marked in *\" $p \"*) continue;; esac\n"
    "      case $ours$marked in *\" $pp \"*) hit=1;; *) hit=;; esac\n"
    "      [ $p -gt 1 ] && [ $pp -eq 0 ] && hit=1\n"
    "      [ -n \"$hit\" ] && { ours=\"$ours$p \"; more=1; }\n"
    "    done\n"
    "  done\n"
    "  for x in $all; do\n"
    "    part $x\n"
    "    case $ours$marked$tree$killed in *\" $p \"*) continue;; esac\n"
    "    [ $p -gt 1 ] && [ $s -gt 1 ] && [ $b -ge $since ] && left=$((left+1))\n"
    "  done\n"
    "}\n"
    "run() {\n"
    "  look; count $tree; found=$n left=0\n"
    "  if [ \"$sig\" != 9 ]; then\n"
    "    for p in $tree; do kill -$sig $p; done\n"
    "  elif [ $found -gt 0 ]; then\n"
    "    i=0 before=\n"
    "    while [ \"$tree\" != \"$before\" ] && [ $i -lt 50 ]; do\n"
    "      for p in $tree; do kill -STOP $p; done\n"
    "      before=$tree i=$((i+1)); look\n"
    "    done\n"
    "    i=0 killed=\n"
    "    while :; do\n"
    "      for p in $tree; do kill -KILL $p; done; killed=\"$killed$tree\"\n"
    "      look; count $tree; left=$n i=$((i+1))\n"
    "      [ $left -eq 0 ] || [ $i -ge 200 ] && break\n"
    "    done\n"
    "  fi\n"
    "  [ $found -eq 0 ] || strays\n"
    "}\n"
    "run 2>/dev/null\n"
    "echo found $found left $left\n";

static bool gather(void *ctx, const void *data, gsize size)
{
    GString *text = ctx;
    g_string_append_len(text, data, (gssize)MIN(size, 4096 - MIN(text->len, 4096)));
    return true;
}

bool dkr_kill_tree(const DkrContext *context, const char *container, const char *user,
                   const char *token, int signal, const SprWait *wait, guint *ret_found,
                   guint *ret_left, GError **error)
{
    g_autofree char *number = g_strdup_printf("%d", signal);
    const char *const argv[] = {"/bin/sh", "-c", script, "sh", token, number, NULL};
    static const char *const env[] = {"LC_ALL=C", NULL};
    g_autoptr(GString) text = g_string_new(NULL);
    DkrCommand command = {.argv = argv,
                          .env = env,
                          .cwd = "/",
                          .user = user,
                          .out = {gather, text},
                          .is_helper = true};
    DkrCommandResult result;
    if (!dkr_client_answers(context->client, wait, error) ||
        !dkr_command_run(context, container, &command, wait, &result, error))
        return false;
    if (sscanf(text->str, "found %u left %u", ret_found, ret_left) != 2)
        return spr_fail(error, SPR_E_IO, "kill-failed",
                        "the command's processes could not be looked up: %s", text->str);
    return true;
}

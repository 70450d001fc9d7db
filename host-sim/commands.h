/*
 * The commands, one group to a file. main.c lists them.
 */
#pragma once

#include "cli.h"

extern const HsCommand hs_cmd_info;
extern const HsCommand hs_cmd_run;
extern const HsCommand hs_cmd_start;
extern const HsCommand hs_cmd_clone;
extern const HsCommand hs_cmd_exec;
extern const HsCommand hs_cmd_stop;
extern const HsCommand hs_cmd_rm;
extern const HsCommand hs_cmd_ls;
extern const HsCommand hs_cmd_prune;
extern const HsCommand hs_cmd_cp;
extern const HsCommand hs_cmd_read;
extern const HsCommand hs_cmd_write;
extern const HsCommand hs_cmd_get;
extern const HsCommand hs_cmd_put;
extern const HsCommand hs_cmd_ps;
extern const HsCommand hs_cmd_kill;
extern const HsCommand hs_cmd_logs;
extern const HsCommand hs_cmd_attach;
extern const HsCommand hs_cmd_build;
extern const HsCommand hs_cmd_template;
extern const HsCommand hs_cmd_templates;
extern const HsCommand hs_cmd_check;
extern const HsCommand hs_cmd_fuzz;

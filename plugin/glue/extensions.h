/*
 * The extension tables, each in the file of its name. Used by glue_extension() alone.
 */
#pragma once

#include "glue/glue.h"

#include <ext/archive.h>
#include <ext/files.h>
#include <ext/lifecycle.h>
#include <ext/processes.h>
#include <ext/provider.h>
#include <ext/templates.h>

extern const sprov_ext_archive glue_archive;
extern const sprov_ext_files glue_files;
extern const sprov_ext_lifecycle glue_lifecycle;
extern const sprov_ext_processes glue_processes;
extern const sprov_ext_provider glue_provider;
extern const sprov_ext_templates glue_templates;

/*
 * Where the supervisor is inside a container, and the label that tells so. Constants alone.
 */
#pragma once

#include "options/sandbox.h"

#define DKR_SUPERVISOR_BIN_DIRECTORY DKR_RESERVED_DIRECTORY "/bin"
#define DKR_SUPERVISOR_FILE "sprov-supervisor"
#define DKR_SUPERVISOR_PROGRAM DKR_SUPERVISOR_BIN_DIRECTORY "/" DKR_SUPERVISOR_FILE
#define DKR_SUPERVISOR_RUN_DIRECTORY DKR_RESERVED_DIRECTORY "/run"
#define DKR_SUPERVISOR_RUN_OPTIONS "rw,nosuid,nodev,noexec,size=256k,mode=1777"

/* "<program id>:main" or "<program id>:exec" */
#define DKR_SUPERVISOR_LABEL "sprov.supervisor"

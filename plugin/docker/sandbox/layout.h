/*
 * Where the supervisor is inside a container, and the label that tells so. Constants alone.
 */
#pragma once

#include "options/sandbox.h"

/* The root of the volume with the program: "bin" has it, and on "run" and "host" is mounted what
 * changes. They are in the volume, so that engines find them there at each start, and with the mode
 * that runtimes give to what is mounted over them. */
#define DKR_SUPERVISOR_DIRECTORY DKR_RESERVED_DIRECTORY
#define DKR_SUPERVISOR_BIN_DIRECTORY DKR_RESERVED_DIRECTORY "/bin"
#define DKR_SUPERVISOR_FILE "sprov-supervisor"
#define DKR_SUPERVISOR_PROGRAM DKR_SUPERVISOR_BIN_DIRECTORY "/" DKR_SUPERVISOR_FILE
#define DKR_SUPERVISOR_RUN_DIRECTORY DKR_RESERVED_DIRECTORY "/run"
#define DKR_SUPERVISOR_RUN_OPTIONS "rw,nosuid,nodev,noexec,size=256k,mode=1777"
/* The folder of the host with its sockets. */
#define DKR_SUPERVISOR_HOST_DIRECTORY DKR_RESERVED_DIRECTORY "/host"

/* Of a container that is never started, whose volume is filled or looked into: the volume's name.
 */
#define DKR_HELPER_LABEL "sprov.helper"
/* What its own name begins with. */
#define DKR_HELPER_NAME "sprov-helper-"

/* "<program id>:main" or "<program id>:exec" */
#define DKR_SUPERVISOR_LABEL "sprov.supervisor"

/* The socket that the supervisor connects to at its boot, as the host sees it. */
#define DKR_SOCKET_LABEL "sprov.socket"

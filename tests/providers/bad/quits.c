/* Sin: ends the process with success as soon as it is loaded. */
#include "bad.h"

#include <stdlib.h>

static __attribute__((constructor)) void quit(void)
{
    exit(0);
}

BAD_TABLES(&mock_api, mock_get_extension)

/* Sin: any id of an extension that begins as a known one gets it. */
#include "bad.h"

#include <string.h>

static const void *get_extension(const char *id)
{
    bool is_like = id && strncmp(id, SPROV_EXT_LIFECYCLE, strlen("sprov.lifecycle")) == 0;
    return is_like ? &mock_lifecycle : mock_get_extension(id);
}

BAD_TABLES(&mock_api, get_extension)

/* Sin: an extension is there, and one of its functions is not. */
#include "bad.h"

#include <string.h>

static const void *get_extension(const char *id)
{
    static sprov_ext_lifecycle hollow;
    if (!id || strcmp(id, SPROV_EXT_LIFECYCLE) != 0)
        return mock_get_extension(id);
    hollow = mock_lifecycle;
    hollow.list = NULL;
    return &hollow;
}

BAD_TABLES(&mock_api, get_extension)

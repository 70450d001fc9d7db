/* Sin: takes output for a C string, so that it ends at the first NUL. */
#include "filter.h"

#include <string.h>

static sprov_flow write_text(BadFilter *filter, const char *data, size_t size)
{
    return bad_pass_on(filter, data, strnlen(data, size));
}

BAD_FILTER_ENTRY(write_text, NULL)

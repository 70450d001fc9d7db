/* Sin: makes text of output, in which what is no ASCII becomes a question mark. */
#include "filter.h"

#include <stdlib.h>
#include <string.h>

static sprov_flow write_repaired(BadFilter *filter, const char *data, size_t size)
{
    char *text = malloc(size);
    for (size_t i = 0; i < size; i++)
        text[i] = data[i] & 0x80 ? '?' : data[i];
    sprov_flow flow = bad_pass_on(filter, text, size);
    free(text);
    return flow;
}

BAD_FILTER_ENTRY(write_repaired, NULL)

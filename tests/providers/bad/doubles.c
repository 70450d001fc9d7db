/* Sin: large pieces of output come twice. */
#include "filter.h"

static sprov_flow write_twice(BadFilter *filter, const char *data, size_t size)
{
    sprov_flow flow = bad_pass_on(filter, data, size);
    return flow == SPROV_FLOW_CONTINUE && size > 1000 ? bad_pass_on(filter, data, size) : flow;
}

BAD_FILTER_ENTRY(write_twice, NULL)

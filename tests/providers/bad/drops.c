/* Sin: of output that comes in several pieces the last is lost. */
#include "filter.h"

static sprov_flow hold_back(BadFilter *filter, const char *data, size_t size)
{
    if (filter->pieces++ == 0)
        return bad_pass_on(filter, data, size);
    sprov_flow flow = bad_pass_on(filter, filter->kept, filter->kept_size);
    filter->kept_size = 0;
    bad_keep(filter, data, size);
    return flow;
}

BAD_FILTER_ENTRY(hold_back, NULL)

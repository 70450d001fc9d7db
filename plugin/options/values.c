#include "options/values.h"

void dkr_pairs_clear(DkrPairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        g_free(pairs->items[i].name);
        g_free(pairs->items[i].value);
    }
    g_free(pairs->items);
    *pairs = (DkrPairs){0};
}

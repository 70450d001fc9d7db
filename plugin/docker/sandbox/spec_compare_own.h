/*
 * What the parts of the comparison share: spec_compare.c, which has the table of options, and
 * spec_compare_mounts.c. Pure; any thread.
 */
#pragma once

#include "sandbox/spec.h"

typedef struct {
    const DkrSandboxOptions *options;
    const json_t *sent;    /* the body of a create */
    const json_t *inspect; /* of the container */
    const DkrSpecImages *images;
    GPtrArray *found;
} DkrComparison;

typedef struct DkrCompareField DkrCompareField;
struct DkrCompareField {
    const char *path; /* of the option */
    const char *key;  /* of the engine */
    bool of_host;     /* in HostConfig */
    bool guards;      /* something stands on it: an engine that leaves it out is refused */
    bool is_used;     /* by the calls of who asks, whatever the container was made with */
    bool tells_none;  /* compared with sent NULL, too: the option was given and is empty */
    json_int_t usual; /* what holds where an engine has nothing or 0 */
    void (*compare)(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                    const json_t *got);
};

/* sent and got NULL: "nothing". */
void dkr_compare_note(DkrComparison *c, const DkrCompareField *field, const char *path,
                      const json_t *sent, const json_t *got);

/* Of what the container has beyond what was asked for: it guards nothing that was. */
void dkr_compare_note_more(DkrComparison *c, const DkrCompareField *field, const char *path,
                           const json_t *got);

/* What an engine leaves out is false, 0 or "". */
bool dkr_compare_is_same(const json_t *sent, const json_t *got);

void dkr_compare_binds(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                       const json_t *got);
void dkr_compare_tmpfs(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                       const json_t *got);
void dkr_compare_mounts(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                        const json_t *got);

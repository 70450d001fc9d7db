/*
 * Rules: which requests a fault is for. A WireRules is one set of them, as a rules file or the
 * control socket gave it, with its counts; the proxy asks it once for each request, in the order
 * in which they arrive.
 */
#pragma once

#include "wire/fault.h"

typedef struct WireRules WireRules;

/* array: [{matcher and action}]. Errors name the rule. */
bool wire_rules_parse(json_t *array, WireRules **ret_rules, GError **error);
void wire_rules_free(WireRules *rules);

/* Counts the request for every rule that it matches and puts those faults into faults that are
 * for it; of two with the same action the later rule counts. */
void wire_rules_apply(WireRules *rules, const char *method, const char *target,
                      WireFault *faults[WIRE_DO_COUNT]);

/* Whether a request is meant by "METHOD PATTERN", "METHOD" or "PATTERN"; '*' stands for any
 * method. */
bool wire_request_matches(const char *request, const char *method, const char *target);

/* The path behind "/v1.NN"; *ret_api (may be NULL) is NN or -1. */
const char *wire_target_path(const char *target, int *ret_api);

/* '*' stands for bytes other than '/', '**' for any. A pattern without '?' is held against the
 * path alone, one with it against path and query. */
bool wire_path_matches(const char *pattern, const char *target);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(WireRules, wire_rules_free)

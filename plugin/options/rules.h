/*
 * What is wrong with the text of a single option, in words for its user; NULL when all is well. For
 * DkrJsonField.wrong of the table in options/sandbox.c alone; pure, any thread.
 */
#pragma once

/* The longest argument that Linux takes, or variable with "=" and its name. */
#define DKR_ARGUMENT_MAX (128 * 1024 - 1)

const char *dkr_rule_variable(const char *name, const char *text);
const char *dkr_rule_user(const char *key, const char *user);

/* "os/arch", "os/arch/variant" */
const char *dkr_rule_platform(const char *key, const char *platform);

/* One or more labels of RFC 1123, at most 63 characters: what the kernel takes. */
const char *dkr_rule_hostname(const char *key, const char *name);

/* IPv4 or IPv6 in numbers */
const char *dkr_rule_address(const char *key, const char *address);

const char *dkr_rule_extra_host(const char *name, const char *address);
const char *dkr_rule_port(const char *port, const char *at);

/* "/dev/on/host[:/path/in/sandbox[:permissions]]" */
const char *dkr_rule_device(const char *key, const char *device);

/*
 * The tables of the suite, one an area, each ended by an entry of zeros. To add a case, see the
 * ten lines in check/case.h.
 */
#pragma once

#include "check/case.h"

extern const Case cases_abi[];
extern const Case cases_arguments[];
extern const Case cases_guest[];
extern const Case cases_descriptors[];
extern const Case cases_fired[];
extern const Case cases_nulls[];
extern const Case cases_lifecycle[];
extern const Case cases_identity[];
extern const Case cases_exec[];
extern const Case cases_env[];
extern const Case cases_streaming[];
extern const Case cases_timeout[];
extern const Case cases_files[];
extern const Case cases_write[];
extern const Case cases_tree[];
extern const Case cases_archive[];
extern const Case cases_concurrency[];
extern const Case cases_info[];
extern const Case cases_options[];
extern const Case cases_templates[];
extern const Case cases_definitions[];
extern const Case cases_builds[];
extern const Case cases_wire[];
extern const Case cases_way[];
extern const Case cases_corners[];
extern const Case cases_embedding[];
extern const Case cases_outside[];
extern const Case cases_mounts[];
extern const Case cases_repositories[];
extern const Case cases_secrets[];
extern const Case cases_rights[];
extern const Case cases_sources[];
extern const Case cases_process_corners[];
extern const Case cases_stress[];
extern const Case cases_processes[];
extern const Case cases_process_streams[];
extern const Case cases_process_push[];
extern const Case case_leaks; /* run after all others */

/*
 * Whether the answers to the calls of one round can be explained: is there an order of them, true
 * to what was over before what began, in which the model allows each answer? Keeps the set of all
 * states that the sandboxes may be in. One thread, when the lanes of a round have met.
 */
#pragma once

#include "fuzz/model.h"

typedef struct FuzzJudge FuzzJudge;

FuzzJudge *fuzz_judge_new(void);
void fuzz_judge_free(FuzzJudge *judge);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FuzzJudge, fuzz_judge_free)

/* calls are those of one round, at most FUZZ_ROUND_CALLS, those of a lane in their order. Returns
 * the index of a call that nothing explains, or -1. beside_... of the answers are filled in. */
int fuzz_judge_round(FuzzJudge *judge, const FuzzCall *calls, FuzzAnswer *answers, guint count);

guint fuzz_judge_states(const FuzzJudge *judge);

/* One line about an answer; free with g_free(). */
char *fuzz_answer_text(const FuzzCall *call, const FuzzAnswer *answer);
/* What is known of the sandbox and the files of a call before its round; free with g_free(). */
char *fuzz_judge_text(const FuzzJudge *judge, const FuzzCall *call);

/* The words of the Why screen: what happens in each phase, whether the proof holds, what each wrong rule
 * does. */
#ifndef TOWERSCOPE_TUI_WHY_WORDS_H
#define TOWERSCOPE_TUI_WHY_WORDS_H

#include <stddef.h>

#include "tui/why_step.h"

/* "load", ...; "" for WHY_NOTHING. */
const char *why_phase_name(enum why_phase phase);

/* What happens in the phase, with the step's own numbers. tower: the one whose scope is looked at; scope: it
 * is on. */
void why_phase_words(enum why_phase phase, const struct why_step *step, int tower, bool scope, char *out,
                     size_t size);

enum why_verdict { WHY_UNPROVEN, WHY_HOLDS, WHY_FAILS };

/* Whether N towers made the step that one tower with the whole batch would have made, to rounding: losses
 * within 1e-5, gradients within 1e-4 of their norm. Two lines: what was found, and what it means. */
enum why_verdict why_proof_words(const struct why_step *step, char *found, char *meaning, size_t size);

/* A wrong rule: one sentence with the step's numbers (brief: at most 25 columns); its formula; a few
 * sentences on it. "" for a name that is not known. */
void why_rule_words(const struct event_alternative *rule, const struct why_step *step, bool brief, char *out,
                    size_t size);
const char *why_rule_formula(const char *name);
const char *why_rule_explained(const char *name);

#endif

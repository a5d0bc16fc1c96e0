#include "engine/wire/state_rule.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"

bool event_rule(const struct event *event, const char **rule) {
    static const char apply[] = "why apply ";
    if (event->kind == EVENT_STEP || event->kind == EVENT_RUN_START) {
        bool wrong = event->kind == EVENT_STEP && event->step.applied;
        *rule = wrong ? event->step.applied : "";
        return true;
    }
    if (event->kind != EVENT_COMMAND || !event->command.text || !text_is(event->command.status, "applied"))
        return false;
    const char *text = event->command.text;
    bool applies = !strncmp(text, apply, sizeof apply - 1);
    *rule = applies ? text + sizeof apply - 1 : "";
    return applies || text_begins(text, "why restore") || text_begins(text, "restore");
}

/* A good state is kept at the start, before a wrong rule comes into force, and as the run trains on. */
static void fold_good(struct run_state *state, const struct event *event) {
    const char *rule;
    if (event->kind == EVENT_RUN_START)
        state->good_step =
            event->run_start.resumed_from == WIRE_UNKNOWN_INT ? 0 : event->run_start.resumed_from;
    else if (event->kind == EVENT_REWIND)
        state->good_step = event->rewind.to;
    else if (event->kind == EVENT_COMMAND && event_rule(event, &rule) && *rule && !*state->rule)
        state->good_step = event->command.step;
}

bool state_rewind(const struct run_state *state, int64_t *to) {
    int64_t at = state->at_step, last = at == WIRE_UNKNOWN_INT ? at : at - at % GOOD_EVERY;
    *to = state->good_step;
    if (*state->rule || state->good_step == WIRE_UNKNOWN_INT || last <= state->good_step)
        return state->good_step != WIRE_UNKNOWN_INT;
    *to = last; /* if its loss was good: the engine alone knows */
    return false;
}

bool state_late(const struct run_state *state, const struct event *event) {
    return event->kind == EVENT_STEP && event->seq == 0 && state->at_step != WIRE_UNKNOWN_INT &&
           event->step.step <= state->at_step;
}

void state_rule_fold(struct run_state *state, const struct event *event) {
    const char *rule;
    fold_good(state, event);
    if (!state_late(state, event) && event_rule(event, &rule))
        snprintf(state->rule, sizeof state->rule, "%s", rule);
}

uint8_t state_rule_number(struct run_state *state, const char *name) {
    int i = 0;
    if (!name)
        return 0;
    while (i < state->rule_count && strncmp(state->rules[i], name, STATE_RULE_NAME - 1) != 0)
        i++;
    if (i == STATE_RULES)
        return STATE_RULES;
    if (i == state->rule_count) {
        bool last = i == STATE_RULES - 1;
        snprintf(state->rules[i], STATE_RULE_NAME, "%s", last ? "other" : name);
        state->rule_count++;
    }
    return (uint8_t)(i + 1);
}

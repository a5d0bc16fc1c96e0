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

/* A live step that comes late says nothing of now. */
void state_rule_fold(struct run_state *state, const struct event *event) {
    const char *rule;
    bool late = event->kind == EVENT_STEP && event->seq == 0 && state->at_step != WIRE_UNKNOWN_INT &&
                event->step.step <= state->at_step;
    if (!late && event_rule(event, &rule))
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

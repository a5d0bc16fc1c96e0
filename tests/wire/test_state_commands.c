/* What the fold knows of commands, wrong rules and the ways back: what the next step takes, and where a
 * rewind goes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/wire/state.h"
#include "engine/wire/state_rule.h"
#include "tests/support/cmocka.h"
#include "tests/support/events.h"
#include "tests/support/fold.h"

static void a_rewind_brings_back_the_step_before_the_wrong_rule(void **context) {
    (void)context;
    struct run_state *state = state_new();
    struct arena arena = {0};
    fold_steps(state, 1, 1, 5, 2);
    struct event wrong = events_step(6, 6, 2, &arena);
    wrong.step.applied = "sum";
    fold_apply(state, wrong);
    wrong.seq = wrong.step.step = 7;
    fold_apply(state, wrong);
    struct event phase = event_new(EVENT_PHASE);
    phase.seq = 8;
    phase.phase.step = 7;
    phase.phase.phase = "update";
    fold_apply(state, phase);
    struct run_state *copy = state_copy(state);
    assert_non_null(copy);
    struct event rewind = event_new(EVENT_REWIND);
    rewind.seq = 9;
    rewind.rewind.step = 7;
    rewind.rewind.to = 5;
    fold_apply(state, rewind);
    fold_apply(copy, rewind);
    for (int i = 0; i < 2; i++) {
        const struct run_state *each = i ? copy : state;
        assert_int_equal(each->at_step, 5);
        assert_int_equal(each->step.kind, EVENT_STEP);
        assert_int_equal(each->step.step.step, 5);
        assert_null(each->step.step.applied);
        assert_int_equal(each->step.step.tower_count, 2);
        assert_int_equal(each->step_phase.kind, EVENT_NONE);
    }
    rewind.seq = 10;
    rewind.rewind.to = 3;
    fold_apply(state, rewind);
    assert_int_equal(state->step.kind, EVENT_NONE);
    state_free(copy);
    state_free(state);
    arena_free(&arena);
}

/* What a rewind goes back to is known after a start, a resume, a rewind and under a wrong rule. */
static void where_a_rewind_goes(void **context) {
    (void)context;
    struct run_state *state = state_new();
    struct arena arena = {0};
    int64_t to;
    assert_false(state_rewind(state, &to));
    assert_int_equal(to, WIRE_UNKNOWN_INT);
    fold_apply(state, fold_start(1, WIRE_UNKNOWN_INT));
    fold_steps(state, 2, 1, 99, 2);
    assert_true(state_rewind(state, &to) && to == 0);
    fold_steps(state, 101, 100, 130, 2);
    assert_false(state_rewind(state, &to)); /* to 100, if its loss was good */
    assert_int_equal(to, 100);
    fold_apply(state, fold_command(132, "why apply sum", "refused", 130));
    assert_false(state_rewind(state, &to));
    fold_apply(state, fold_command(133, "why apply sum", "applied", 130));
    struct event wrong = events_step(134, 250, 2, &arena);
    wrong.step.applied = "sum";
    fold_apply(state, wrong);
    fold_apply(state, fold_command(135, "why apply last", "applied", 250));
    assert_true(state_rewind(state, &to) && to == 130);
    struct event rewind = event_new(EVENT_REWIND);
    rewind.seq = 136;
    rewind.rewind.step = 250;
    rewind.rewind.to = 130;
    fold_apply(state, rewind);
    fold_apply(state, fold_command(137, "why restore --rewind", "applied", 130));
    assert_true(state_rewind(state, &to) && to == 130);
    fold_steps(state, 138, 131, 210, 2);
    assert_true(!state_rewind(state, &to) && to == 200);
    fold_apply(state, fold_start(218, 205));
    assert_true(state_rewind(state, &to) && to == 205);
    state_free(state);
    arena_free(&arena);
}

/* What the next step takes is told by the start, the last step, and commands since. */
static void settings_of_the_next_step(void **context) {
    (void)context;
    struct run_state *state = state_new();
    struct arena arena = {0};
    struct event start = fold_start(1, WIRE_UNKNOWN_INT);
    start.run_start.lr = 0.5;
    start.run_start.batch = 64;
    fold_apply(state, start);
    assert_true(state->lr == 0.5 && state->batch == 64);
    struct event step = events_step(2, 1, 2, &arena);
    step.step.lr = 0.25;
    step.step.images = 32;
    fold_apply(state, step);
    assert_true(state->lr == 0.25 && state->batch == 32);
    struct event set = fold_command(3, "set lr 0.125", "applied", 1); /* as older records tell it */
    fold_apply(state, set);
    assert_true(state->lr == 0.25);
    set.seq = 4;
    set.command.lr = 0.125;
    fold_apply(state, set);
    assert_true(state->lr == 0.125 && state->batch == 32);
    set.seq = 5;
    set.command.lr = 3;
    set.command.status = "refused";
    fold_apply(state, set);
    assert_true(state->lr == 0.125);
    set = fold_command(6, "set batch 96", "applied", 1);
    set.command.batch = 96;
    fold_apply(state, set);
    assert_true(state->lr == 0.125 && state->batch == 96);
    assert_int_equal(state->towers, 2);
    struct event towers = event_new(EVENT_TOWERS);
    towers.seq = 7;
    towers.towers.step = 1;
    towers.towers.from = 2;
    towers.towers.to = 5;
    fold_apply(state, towers);
    assert_int_equal(state->towers, 5);
    step.seq = 0; /* a live step that comes late */
    fold_apply(state, step);
    assert_true(state->lr == 0.125 && state->batch == 96);
    state_free(state);
    arena_free(&arena);
}

/* After a rewind of its own accord the figures are those of the last step before, not none. */
static void a_rewind_shows_the_last_good_step(void **context) {
    (void)context;
    struct run_state *state = state_new();
    fold_apply(state, fold_start(1, WIRE_UNKNOWN_INT));
    fold_steps(state, 2, 1, 350, 2);
    struct event rewind = event_new(EVENT_REWIND);
    rewind.seq = 352;
    rewind.rewind.step = 350;
    rewind.rewind.to = 300;
    fold_apply(state, rewind);
    assert_int_equal(state->step.kind, EVENT_STEP);
    assert_int_equal(state->step.step.step, 300);
    assert_int_equal(state->step.step.tower_count, 2);
    rewind.seq = 353; /* further back than what is kept: none is better than one that has not happened */
    rewind.rewind.to = 200;
    fold_apply(state, rewind);
    assert_int_equal(state->step.kind, EVENT_NONE);
    state_free(state);
}

/* The rule in force changes with the command, not with the step after it; the curve knows every rule. */
static void a_wrong_rule_comes_and_goes_with_its_command(void **context) {
    (void)context;
    struct run_state *state = state_new();
    struct arena arena = {0};
    fold_apply(state, fold_start(1, WIRE_UNKNOWN_INT));
    fold_steps(state, 2, 1, 3, 2);
    fold_apply(state, fold_command(5, "why apply sum", "refused", 3));
    assert_string_equal(state->rule, "");
    fold_apply(state, fold_command(6, "why apply sum", "applied", 3));
    assert_string_equal(state->rule, "sum");
    struct event wrong = events_step(7, 4, 2, &arena);
    wrong.step.applied = "sum";
    fold_apply(state, wrong);
    assert_string_equal(state->rule, "sum");
    fold_apply(state, fold_command(8, "why restore", "applied", 4));
    assert_string_equal(state->rule, "");
    wrong.seq = 0; /* a live step that comes late */
    fold_apply(state, wrong);
    assert_string_equal(state->rule, "");
    fold_apply(state, fold_command(9, "why apply last", "applied", 4));
    wrong = events_step(10, 5, 2, &arena);
    wrong.step.applied = "last";
    fold_apply(state, wrong);
    struct run_state *copy = state_copy(state);
    assert_non_null(copy);
    fold_apply(copy, fold_start(11, 4));
    assert_string_equal(copy->rule, "");
    assert_string_equal(state->rule, "last");
    static const char *const rules[] = {"", "", "", "sum", "last"};
    assert_int_equal(state->point_count, 5);
    for (int i = 0; i < 5; i++) {
        int rule = state->points[i].applied;
        assert_string_equal(rule ? state->rules[rule - 1] : "", rules[i]);
    }
    state_free(copy);
    state_free(state);
    arena_free(&arena);
}

/* More rules than there is room for, and names of any length. */
static void many_wrong_rules_stay_bounded(void **context) {
    (void)context;
    struct run_state *state = state_new();
    struct arena arena = {0};
    for (int i = 1; i <= 300; i++) {
        char name[64];
        snprintf(name, sizeof name, "%d-is-a-rule-of-a-long-long-long-name", i);
        struct event event = events_step(i, i, 1, &arena);
        event.step.applied = i % 2 ? name : i % 4 ? "x" : "sum";
        fold_apply(state, event);
        int rule = state->points[i - 1].applied;
        assert_in_range(rule, 1, STATE_RULES);
        assert_true(strlen(state->rules[rule - 1]) < STATE_RULE_NAME);
    }
    assert_in_range(state->rule_count, 2, STATE_RULES);
    state_free(state);
    arena_free(&arena);
}

/* What a screen of the console asks for by itself is no marker, and a line of the log for those who look for
 * it. */
static void screens_are_quiet(void **context) {
    (void)context;
    struct run_state *state = state_new();
    fold_apply(state, fold_start(1, WIRE_UNKNOWN_INT));
    int64_t before = state->log_count;
    struct event own = fold_command(2, "set lr 0.05", "applied", 0);
    own.command.screen = "Why";
    fold_apply(state, own);
    fold_apply(state, fold_command(3, "set lr 0.06", "applied", 0));
    fold_apply(state, fold_command(4, "why on", "applied", 0));
    fold_apply(state, fold_command(5, "phase next", "applied", 0));
    own.seq = 6;
    own.command.status = "refused";
    fold_apply(state, own);
    assert_int_equal(state->marker_count, 1);
    assert_string_equal(state->markers[0].text, "set lr 0.06");
    static const bool quiet[] = {true, false, false, false, false};
    assert_int_equal(state->log_count, before + 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(state->log[before + i].quiet, quiet[i]);
    /* a step that is looked into makes a line where it is walked, not while the run trains on */
    struct event why = event_new(EVENT_WHY), training = event_new(EVENT_STATE);
    why.why.step = 1;
    fold_apply(state, why);
    assert_int_equal(state->log_count, before + 6);
    assert_true(state->log[before + 5].quiet);
    training.state.state = "training";
    fold_apply(state, training);
    before = state->log_count;
    fold_apply(state, why);
    assert_int_equal(state->log_count, before);
    state_free(state);
}

static struct event asked(const char *id, const char *from, const char *text, const char *status) {
    struct event event = fold_command(0, text, status, 3);
    event.command.id = id;
    event.command.from = from;
    return event;
}

/* Commands wait in the order they came, say how far they are, and go with their answers; those of screens
 * are not told. */
static void what_is_pending(void **context) {
    (void)context;
    struct run_state *state = state_new(), *copy;
    fold_apply(state, asked("1", "ctl", "towers 300", "pending"));
    fold_apply(state, asked("1", "ada@pts/1", "eval", "pending")); /* another's first command */
    struct event of_screen = asked("2", "ada@pts/1", "why on", "pending");
    of_screen.command.screen = "Why";
    fold_apply(state, of_screen);
    assert_int_equal(state->pending_count, 2);
    struct event how_far = asked("1", "ctl", "towers 300", "pending");
    how_far.command.reason = "7 of 300 towers have their memory";
    fold_apply(state, how_far);
    assert_int_equal(state->pending_count, 2);
    assert_string_equal(state->pending[0].command.reason, how_far.command.reason);
    assert_null(state->pending[1].command.reason);
    copy = state_copy(state); /* of a record, which has none */
    assert_int_equal(copy->pending_count, 0);
    state_free(copy);
    fold_apply(state, asked("1", "ctl", "towers 300", "refused"));
    assert_int_equal(state->pending_count, 1);
    assert_string_equal(state->pending[0].command.text, "eval");
    for (int i = 0; i < 3 * STATE_PENDING; i++) { /* more than are kept */
        char id[16];
        snprintf(id, sizeof id, "more %d", i);
        fold_apply(state, asked(id, "ctl", "save", "pending"));
    }
    assert_int_equal(state->pending_count, STATE_PENDING);
    fold_apply(state, asked("1", "ada@pts/1", "eval", "applied"));
    assert_string_equal(state->pending[STATE_PENDING - 2].command.text, "save");
    assert_int_equal(state->pending_count, STATE_PENDING - 1);
    fold_apply(state, fold_start(1, 3)); /* another engine knows nothing of them */
    assert_int_equal(state->pending_count, 0);
    state_free(state);
}

static void fold_layers(struct run_state *state, int64_t step, double norm, int64_t count) {
    struct event_layer layers[STATE_LAYERS + 3] = {{.name = "conv1", .grad_norm = norm}};
    struct event event = event_new(EVENT_LAYERS);
    event.layers.step = step;
    event.layers.layers = layers;
    event.layers.layer_count = count;
    fold_apply(state, event);
}

/* The layers' past is bounded, goes back with the run, and knows what a wrong rule made. */
static void the_past_of_the_layers(void **context) {
    (void)context;
    struct run_state *state = state_new();
    const struct state_layers_past *past = &state->layers_past;
    for (int i = 1; i <= STATE_LAYERS_PAST + 10; i++)
        fold_layers(state, 100 * i, i, STATE_LAYERS + 3);
    assert_int_equal(past->count, STATE_LAYERS_PAST);
    assert_int_equal(past->step[0], 1100);
    assert_true(past->grad_norm[0][0] == 11 &&
                past->grad_norm[STATE_LAYERS_PAST - 1][0] == STATE_LAYERS_PAST + 10);
    struct event rewind = event_new(EVENT_REWIND);
    rewind.seq = 1;
    rewind.rewind.to = 2950;
    fold_apply(state, rewind);
    assert_int_equal(past->step[past->count - 1], 2900);
    fold_layers(state, 2900, 7, 1); /* told again */
    assert_int_equal(past->count, 19);
    assert_true(past->grad_norm[18][0] == 7 && isnan(past->grad_norm[18][1]) && !past->wrong[18]);
    fold_apply(state, fold_command(2, "why apply sum", "applied", 2950));
    fold_layers(state, 3000, 8, 1);
    assert_true(past->count == 20 && past->wrong[19]);
    struct run_state *copy = state_copy(state);
    assert_memory_equal(&copy->layers_past, past, sizeof *past);
    state_free(copy);
    state_free(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rewind_brings_back_the_step_before_the_wrong_rule),
        cmocka_unit_test(where_a_rewind_goes),
        cmocka_unit_test(settings_of_the_next_step),
        cmocka_unit_test(a_rewind_shows_the_last_good_step),
        cmocka_unit_test(a_wrong_rule_comes_and_goes_with_its_command),
        cmocka_unit_test(many_wrong_rules_stay_bounded),
        cmocka_unit_test(screens_are_quiet),
        cmocka_unit_test(what_is_pending),
        cmocka_unit_test(the_past_of_the_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

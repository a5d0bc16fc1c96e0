/* Keys: one table for dispatcher, footer and help; the prompt; what the console asks of the run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/wire/command.h"
#include "tests/support/cmocka.h"
#include "tests/support/screen.h"
#include "tests/support/stream.h"
#include "tui/app.h"
#include "tui/format.h"
#include "tui/prompt.h"

/* ---- the table */

static void every_key_means_one_thing(void **state) {
    (void)state;
    struct keymap keymap;
    keymap_default(&keymap);
    for (unsigned where = WHERE_LIVE; where <= WHERE_REPLAY; where++)
        for (int i = 0; i < keymap.count; i++)
            for (int k = 0; k < 3; k++) {
                const struct key_binding *binding = &keymap.bindings[i];
                if (!binding->keys[k] || !(binding->where & where))
                    continue;
                unsigned there = where | (binding->where & WHERE_SCREENS);
                assert_int_equal(keymap_action(&keymap, binding->keys[k], there), binding->action);
                char name[16];
                press_name(binding->keys[k], name);
                assert_int_equal(press_named(name), binding->keys[k]);
                assert_true(*binding->sentence && *binding->name);
            }
}

static void remapping(void **state) {
    (void)state;
    struct keymap keymap;
    keymap_default(&keymap);
    assert_int_equal(keymap_set(&keymap, "pause", "p"), STATUS_OK);
    assert_int_equal(keymap_action(&keymap, 'p', WHERE_LIVE), ACTION_PAUSE);
    assert_int_equal(keymap_action(&keymap, ' ', WHERE_LIVE), ACTION_NONE);
    assert_int_equal(keymap_action(&keymap, 'p', WHERE_REPLAY), ACTION_LAST_MARKER);
    assert_int_equal(keymap_set(&keymap, "smooth", "="), STATUS_OK); /* one of two: the other goes up */
    assert_int_equal(keymap_set(&keymap, "window", "+"), STATUS_OK);
    assert_int_equal(keymap_action(&keymap, '=', WHERE_LIVE), ACTION_SMOOTH);
    assert_int_equal(keymap_set(&keymap, "pause", "n"), STATUS_OK); /* a screen's own, too */
    assert_int_equal(keymap_action(&keymap, 'n', WHERE_LIVE | WHERE_ON_WHY), ACTION_PAUSE);
    assert_int_equal(keymap_action(&keymap, 'n', WHERE_REPLAY), ACTION_NEXT_MARKER);
    assert_int_equal(keymap_set(&keymap, "pause", "p"), STATUS_OK);
    assert_int_equal(keymap_set(&keymap, "next-phase", "n"), STATUS_OK);
    assert_int_equal(keymap_set(&keymap, "pawse", "p"), STATUS_BAD_INPUT);
    assert_int_equal(keymap_set(&keymap, "pause", "nokey"), STATUS_BAD_INPUT);
    struct keymap before = keymap;
    assert_int_equal(keymap_set(&keymap, "pause", "q"), STATUS_BAD_INPUT); /* the only way out */
    assert_memory_equal(&before, &keymap, sizeof keymap);
    assert_int_equal(keymap_set(&keymap, "leave", "^X"), STATUS_OK);
    assert_int_equal(keymap_action(&keymap, PRESS_CONTROL('x'), WHERE_LIVE), ACTION_LEAVE);
}

/* ---- the prompt */

static void type(struct prompt *prompt, const char *text) {
    for (; *text; text++)
        prompt_key(prompt, *text, command_complete);
}

static void editing(void **state) {
    (void)state;
    static struct prompt prompt;
    prompt_begin(&prompt, "");
    type(&prompt, "towers 44");
    prompt_key(&prompt, PRESS_BACKSPACE, NULL);
    prompt_key(&prompt, PRESS_HOME, NULL);
    prompt_key(&prompt, 0xe9, NULL); /* é, two bytes */
    prompt_key(&prompt, PRESS_RIGHT, NULL);
    prompt_key(&prompt, PRESS_LEFT, NULL);
    prompt_key(&prompt, PRESS_LEFT, NULL);
    prompt_key(&prompt, PRESS_DELETE, NULL);
    assert_string_equal(prompt.text, "towers 4");
    prompt_key(&prompt, PRESS_END, NULL);
    prompt_key(&prompt, PRESS_CONTROL('w'), NULL);
    assert_string_equal(prompt.text, "towers ");
    assert_int_equal(prompt_key(&prompt, PRESS_ENTER, NULL), PROMPT_ENTERED);
    prompt_begin(&prompt, "");
    for (int i = 0; i < 1000; i++)
        prompt_key(&prompt, 0x4e2d, NULL);
    assert_true(strlen(prompt.text) < PROMPT_TEXT);
    prompt_key(&prompt, PRESS_CONTROL('u'), NULL);
    assert_string_equal(prompt.text, "");
    assert_int_equal(prompt_key(&prompt, PRESS_BACKSPACE, NULL), PROMPT_CANCELLED);
}

static void history_and_completion(void **state) {
    (void)state;
    static struct prompt prompt;
    const char *lines[] = {"pause", "towers 2", "towers 2", "  "};
    for (int i = 0; i < 4; i++) {
        prompt_begin(&prompt, lines[i]);
        prompt_key(&prompt, PRESS_ENTER, NULL);
    }
    assert_int_equal(prompt.history_count, 2);
    prompt_begin(&prompt, "dra");
    prompt_key(&prompt, PRESS_UP, NULL);
    assert_string_equal(prompt.text, "towers 2");
    prompt_key(&prompt, PRESS_UP, NULL);
    prompt_key(&prompt, PRESS_UP, NULL);
    assert_string_equal(prompt.text, "pause");
    prompt_key(&prompt, PRESS_DOWN, NULL);
    prompt_key(&prompt, PRESS_DOWN, NULL);
    assert_string_equal(prompt.text, "dra");
    prompt_begin(&prompt, "");
    type(&prompt, "se\t");
    assert_string_equal(prompt.text, "set "); /* the one there is, and on with it */
    type(&prompt, "\t\t");
    assert_string_equal(prompt.text, "set momentum ");
    prompt_begin(&prompt, "");
    type(&prompt, "set l\t");
    assert_string_equal(prompt.text, "set lr "); /* ready for its value */
    prompt_key(&prompt, PRESS_TAB, command_complete);
    assert_string_equal(prompt.text, "set l"); /* after the last, what was typed */
    for (int i = 0; i < 200; i++) {
        char line[32];
        snprintf(line, sizeof line, "note %d", i);
        prompt_begin(&prompt, line);
        prompt_key(&prompt, PRESS_ENTER, NULL);
    }
    assert_int_equal(prompt.history_count, PROMPT_HISTORY);
}

/* ---- what the console asks of the run */

struct desk {
    struct app *app;
    struct run_state *state;
    struct canvas *canvas;
    double now;
};

static struct desk desk_new(const struct stream_script *script, bool watch) {
    struct app_options options = {.watch = watch};
    preferences_default(&options.preferences);
    keymap_default(&options.keymap);
    struct desk desk = {app_new(&options), stream_state(script), canvas_new(24, 80), 10};
    assert_true(desk.app && desk.state && desk.canvas);
    app_draw(desk.app, desk.canvas, desk.state, 1, desk.now);
    return desk;
}

static void desk_free(struct desk *desk) {
    app_free(desk->app);
    state_free(desk->state);
    canvas_free(desk->canvas);
}

static bool desk_shows(struct desk *desk, const char *text) {
    app_draw(desk->app, desk->canvas, desk->state, 1, desk->now);
    char *screen = screen_text(desk->canvas);
    bool found = strstr(screen, text) != NULL;
    free(screen);
    return found;
}

static void expect_command(struct desk *desk, int key, const char *text) {
    assert_int_equal(app_key(desk->app, key, desk->state, desk->now), APP_COMMAND);
    assert_string_equal(app_text(desk->app), text);
}

static enum app_wish type_line(struct desk *desk, const char *text) {
    enum app_wish wish = app_key(desk->app, ':', desk->state, desk->now);
    for (; *text; text++)
        wish = app_key(desk->app, *text, desk->state, desk->now);
    return wish == APP_NOTHING ? app_key(desk->app, PRESS_ENTER, desk->state, desk->now) : wish;
}

static void commands(void **state) {
    (void)state;
    struct desk desk = desk_new(&(struct stream_script){.towers = 4, .steps = 20}, false);
    expect_command(&desk, ' ', "pause");
    expect_command(&desk, 's', "step");
    expect_command(&desk, '+', "towers 5");
    expect_command(&desk, '+', "towers 6"); /* on top of what was asked a moment ago */
    expect_command(&desk, '-', "towers 5");
    desk.now += 10;
    expect_command(&desk, '-', "towers 3"); /* that was long ago */
    assert_int_equal(type_line(&desk, "set lr 0.05"), APP_COMMAND);
    assert_string_equal(app_text(desk.app), "set lr 0.05");
    assert_int_equal(type_line(&desk, "towers 0"), APP_NOTHING); /* refused before it is sent */
    assert_true(desk_shows(&desk, "towers"));
    assert_int_equal(app_key(desk.app, 'Q', desk.state, desk.now), APP_NOTHING);
    assert_true(desk_shows(&desk, "stop the run?"));
    assert_int_equal(app_key(desk.app, 'n', desk.state, desk.now), APP_NOTHING);
    app_key(desk.app, 'Q', desk.state, desk.now);
    expect_command(&desk, 'y', "stop");
    assert_int_equal(app_key(desk.app, 'q', desk.state, desk.now), APP_LEAVE);
    desk_free(&desk);
}

/* What is asked about with a key is asked about when it is typed. */
static void typed_is_asked_too(void **state) {
    (void)state;
    static const struct {
        const char *line, *question;
    } asked[] = {{"stop", "stop the run? It saves and ends."},
                 {"stop --discard", "stop the run? It ends, saved or not."},
                 {"restore --rewind", "back to step 12? Steps 13 to 20 are lost."},
                 {"why restore --rewind", "back to step 12? Steps 13 to 20 are lost."},
                 {"why apply sum", "train on under \"sum\"? why restore takes it back."}};
    struct desk desk = desk_new(
        &(struct stream_script){.towers = 4, .steps = 20, .applied = "sum", .applied_after = 12}, false);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        assert_int_equal(type_line(&desk, asked[i].line), APP_NOTHING);
        assert_true(desk_shows(&desk, asked[i].question));
        assert_int_equal(app_key(desk.app, 'n', desk.state, desk.now), APP_NOTHING);
        assert_true(desk_shows(&desk, "not done"));
        type_line(&desk, asked[i].line);
        expect_command(&desk, 'y', asked[i].line);
    }
    assert_int_equal(type_line(&desk, "restore"), APP_COMMAND); /* drops nothing */
    desk_free(&desk);
}

/* An alarm does not wait until the good news before it has had its time, and what is said after it is read.
 */
static void an_alarm_stands_at_once(void **state) {
    (void)state;
    struct desk desk = desk_new(&(struct stream_script){.towers = 4, .steps = 20}, false);
    struct event alarm = event_new(EVENT_ALARM);
    alarm.seq = desk.state->last_seq + 1;
    alarm.alarm.level = "error";
    alarm.alarm.text = "step 21: the loss is not finite";
    app_say(desk.app, STYLE_GOOD, "set lr 500 applied", desk.now);
    assert_true(desk_shows(&desk, "set lr 500 applied"));
    assert_int_equal(state_apply(desk.state, &alarm), STATUS_OK);
    assert_true(desk_shows(&desk, "step 21: the loss is not finite"));
    app_say(desk.app, STYLE_GOOD, "set lr 0.1 applied", desk.now);
    assert_true(desk_shows(&desk, "set lr 0.1 applied"));
    desk_free(&desk);
}

/* An alarm that came long before the console did tells when; who took it away does not get it again for that.
 */
static void an_old_alarm_tells_its_time(void **state) {
    (void)state;
    struct desk desk = desk_new(&(struct stream_script){.towers = 4, .steps = 20, .alarm_at = 20}, false);
    struct event control = event_new(EVENT_CONTROL);
    double came = desk.state->alarm.time;
    setenv("TZ", "UTC", 1);
    assert_true(desk_shows(&desk, " alarm: ") && !desk_shows(&desk, ":00  alarm: "));
    char when[FORMAT_SIZE + 16];
    for (int i = 0; i < 2; i++) {
        control.time = came + (i ? 100000 : 100);
        assert_int_equal(state_apply(desk.state, &control), STATUS_OK);
        format_time(when, came, i == 1);
        strcat(when, "  alarm: ");
        assert_true(desk_shows(&desk, when));
    }
    assert_int_equal(app_key(desk.app, 'x', desk.state, desk.now), APP_NOTHING);
    assert_false(desk_shows(&desk, "alarm: "));
    control.time = came + 1;
    assert_int_equal(state_apply(desk.state, &control), STATUS_OK);
    assert_false(desk_shows(&desk, "alarm: "));
    desk_free(&desk);
}

/* What another console or ctl has asked for is told while it is under way. */
static void others_commands_are_told(void **state) {
    (void)state;
    struct desk desk = desk_new(&(struct stream_script){.towers = 4, .steps = 20}, true);
    struct event event = event_new(EVENT_COMMAND);
    event.command.id = "1";
    event.command.from = "ctl";
    event.command.text = "towers 300";
    event.command.status = "pending";
    assert_int_equal(state_apply(desk.state, &event), STATUS_OK);
    assert_true(desk_shows(&desk, "towers 300 (ctl) pending"));
    event.command.step = 5000;
    assert_int_equal(state_apply(desk.state, &event), STATUS_OK);
    assert_true(desk_shows(&desk, "towers 300 (ctl) pending: waits for step 5 000"));
    event.command.reason = "7 of 300 towers have their memory";
    assert_int_equal(state_apply(desk.state, &event), STATUS_OK);
    assert_true(desk_shows(&desk, "towers 300 (ctl) pending: 7 of 300 towers have their memory"));
    app_say(desk.app, STYLE_WARNING, "something pressing", desk.now);
    assert_true(desk_shows(&desk, "something pressing"));
    desk.now += 10;
    event.command.id = "2";
    event.command.text = "save";
    event.command.reason = NULL;
    assert_int_equal(state_apply(desk.state, &event), STATUS_OK);
    assert_true(desk_shows(&desk, "7 of 300 towers have their memory   and 1 more"));
    event.command.status = "applied";
    assert_int_equal(state_apply(desk.state, &event), STATUS_OK);
    event.command.id = "1";
    event.command.text = "towers 300";
    assert_int_equal(state_apply(desk.state, &event), STATUS_OK);
    assert_false(desk_shows(&desk, "pending"));
    desk_free(&desk);
}

/* In a record the line that tells where one is comes back with the next move. */
static void a_move_takes_the_message_away(void **state) {
    (void)state;
    struct app_options options = {.replay = true};
    preferences_default(&options.preferences);
    keymap_default(&options.keymap);
    struct desk desk = {app_new(&options), stream_state(&(struct stream_script){.towers = 4, .steps = 20}),
                        canvas_new(24, 80), 10};
    const struct feed_status about = {.replay = true, .speed = 4, .seconds = 1, .all = 2};
    assert_true(desk.app && desk.state && desk.canvas);
    app_about(desk.app, &about);
    app_say(desk.app, STYLE_WARNING, "no marker before here", desk.now);
    assert_true(desk_shows(&desk, "no marker before here"));
    assert_int_equal(app_key(desk.app, '+', desk.state, desk.now), APP_MOVE);
    assert_false(desk_shows(&desk, "no marker before here"));
    assert_true(desk_shows(&desk, "stopped 4"));
    desk_free(&desk);
}

static void answers(void **state) {
    (void)state;
    struct desk desk = desk_new(&(struct stream_script){.towers = 4, .steps = 20}, false);
    expect_command(&desk, '+', "towers 5");
    app_sent(desk.app, "7", NULL, desk.now);
    assert_true(desk_shows(&desk, "towers 5: pending"));
    assert_true(app_awaits(desk.app));
    struct event event = event_new(EVENT_COMMAND);
    event.command.id = "7";
    event.command.text = "towers 5";
    event.command.status = "applied";
    event.command.step = 21;
    state_apply(desk.state, &event);
    assert_true(desk_shows(&desk, "applied at step 21"));
    assert_false(app_awaits(desk.app));
    desk.now += 60;
    assert_false(desk_shows(&desk, "applied"));
    expect_command(&desk, ' ', "pause");
    app_sent(desk.app, "8", NULL, desk.now);
    desk.now += 3;
    assert_true(desk_shows(&desk, "pause: pending"));
    desk.now += 3; /* it did not even say that it has the command */
    assert_true(desk_shows(&desk, "pause: the engine does not answer: is its process stopped?"));
    event.command.id = "8";
    event.command.text = "pause";
    event.command.status = "pending";
    state_apply(desk.state, &event);
    assert_false(desk_shows(&desk, "does not answer"));
    expect_command(&desk, '+', "towers 5");
    app_sent(desk.app, "8", NULL, desk.now);
    event.command.text = "towers 5";
    event.command.reason = "3 of 5 towers have their memory"; /* how far it is */
    state_apply(desk.state, &event);
    assert_true(desk_shows(&desk, "towers 5: 3 of 5 towers have their memory"));
    event.command.reason = "4 of 5 towers have their memory";
    state_apply(desk.state, &event);
    desk.now += 60;
    assert_true(desk_shows(&desk, "towers 5: 4 of 5 towers have their memory"));
    event.command.reason = NULL;
    event.command.text = "pause";
    event.command.status = "applied";
    state_apply(desk.state, &event);
    assert_true(desk_shows(&desk, "pause applied"));
    expect_command(&desk, ' ', "pause");
    app_sent(desk.app, "9", NULL, desk.now);
    event.command.id = "9";
    event.command.status = "pending";
    state_apply(desk.state, &event);
    desk.now += 60; /* a step may take long */
    assert_true(desk_shows(&desk, "pause: pending"));
    expect_command(&desk, ' ', "pause");
    app_sent(desk.app, NULL, "the engine does not answer", desk.now);
    assert_true(desk_shows(&desk, "the engine does not answer"));
    desk_free(&desk);
}

/* With the help open its own keys act, and no other. */
static void the_help_keeps_its_keys(void **state) {
    (void)state;
    struct desk desk = desk_new(&(struct stream_script){.towers = 4, .steps = 20}, false);
    const int closing[] = {'?', 'q', PRESS_ESCAPE, PRESS_ENTER, 'h', 'x'};
    for (size_t i = 0; i < sizeof closing / sizeof *closing; i++) {
        app_key(desk.app, '?', desk.state, desk.now);
        assert_true(desk_shows(&desk, "the towers side by side"));
        for (const char *key = "s+-Qncy12 :/"; *key; key++)
            assert_int_equal(app_key(desk.app, *key, desk.state, desk.now), APP_NOTHING);
        assert_false(desk_shows(&desk, "the towers side by side")); /* space went a page on */
        assert_int_equal(app_key(desk.app, PRESS_END, desk.state, desk.now), APP_NOTHING);
        assert_true(desk_shows(&desk, "page-down, home, end"));
        assert_int_equal(app_key(desk.app, PRESS_HOME, desk.state, desk.now), APP_NOTHING);
        assert_true(desk_shows(&desk, "the towers side by side"));
        assert_int_equal(app_key(desk.app, closing[i], desk.state, desk.now), APP_NOTHING);
        assert_false(desk_shows(&desk, "the towers side by side"));
    }
    desk_free(&desk);
}

/* What the prompt changes is said, in the place of an older refusal. */
static void changes_are_said(void **state) {
    (void)state;
    struct desk desk = desk_new(&(struct stream_script){.towers = 4, .steps = 20}, false);
    type_line(&desk, "set foo 1");
    assert_true(desk_shows(&desk, "no setting"));
    assert_true(desk_shows(&desk, "log-scale"));
    assert_int_equal(type_line(&desk, "set theme light"), APP_RESTYLE);
    assert_true(desk_shows(&desk, "theme = light"));
    assert_false(desk_shows(&desk, "no setting"));
    type_line(&desk, "key foo z");
    assert_true(desk_shows(&desk, "no action"));
    type_line(&desk, "budget");
    assert_false(desk_shows(&desk, "no action"));
    type_line(&desk, "key pause n");
    assert_true(desk_shows(&desk, "key pause = n, taken from page-on and next-phase"));
    app_key(desk.app, '2', desk.state, desk.now);
    expect_command(&desk, 'n', "pause");
    desk_free(&desk);
}

static void watchers_send_nothing(void **state) {
    (void)state;
    struct desk desk = desk_new(&(struct stream_script){.towers = 4, .steps = 20}, true);
    for (const char *key = " s+-Q"; *key; key++)
        assert_int_equal(app_key(desk.app, *key, desk.state, desk.now), APP_NOTHING);
    assert_int_equal(type_line(&desk, "pause"), APP_NOTHING);
    assert_true(desk_shows(&desk, "only watches"));
    desk_free(&desk);
    desk = desk_new(&(struct stream_script){.towers = 2, .steps = 20, .ended = true}, false);
    assert_int_equal(app_key(desk.app, ' ', desk.state, desk.now), APP_NOTHING);
    desk_free(&desk);
}

/* What a stranger wrote into an event never reaches the terminal as an escape. */
static void hostile_text(void **state) {
    (void)state;
    struct desk desk = desk_new(&(struct stream_script){.towers = 2, .steps = 5}, false);
    struct event event = event_new(EVENT_NOTE);
    event.seq = 1000;
    event.note.step = 5;
    event.note.text = "\033]0;title\007\xff\xfe \xe2\x80\xae right to left \x9b 31m";
    state_apply(desk.state, &event);
    app_key(desk.app, '7', desk.state, desk.now);
    app_draw(desk.app, desk.canvas, desk.state, 1, desk.now);
    for (int i = 0; i < desk.canvas->rows * desk.canvas->cols; i++) {
        uint32_t rune = desk.canvas->cells[i].rune;
        assert_true(rune == 0 ||
                    (rune >= 0x20 && rune != 0x7f && !(rune >= 0x80 && rune < 0xa0) && rune != 0x202e));
    }
    desk_free(&desk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_means_one_thing),
        cmocka_unit_test(remapping),
        cmocka_unit_test(editing),
        cmocka_unit_test(history_and_completion),
        cmocka_unit_test(commands),
        cmocka_unit_test(typed_is_asked_too),
        cmocka_unit_test(a_move_takes_the_message_away),
        cmocka_unit_test(others_commands_are_told),
        cmocka_unit_test(an_alarm_stands_at_once),
        cmocka_unit_test(an_old_alarm_tells_its_time),
        cmocka_unit_test(answers),
        cmocka_unit_test(the_help_keeps_its_keys),
        cmocka_unit_test(changes_are_said),
        cmocka_unit_test(watchers_send_nothing),
        cmocka_unit_test(hostile_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

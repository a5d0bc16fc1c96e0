/* Commands: what is understood, what is refused, and with which words. */
#include <string.h>

#include "engine/wire/command.h"
#include "engine/wire/event.h"
#include "tests/support/cmocka.h"

static struct command parse(const char *text) {
    struct command command;
    if (command_parse(text, &command) != STATUS_OK)
        fail_msg("refused: %s: %s", text, status_text());
    return command;
}

static void refuse(const char *text, const char *words) {
    struct command command;
    memset(&command, 0x5a, sizeof command);
    struct command before = command;
    if (command_parse(text, &command) != STATUS_BAD_INPUT)
        fail_msg("accepted: %s", text);
    if (!strstr(status_text(), words))
        fail_msg("\"%s\" was expected in: %s", words, status_text());
    assert_memory_equal(&command, &before, sizeof command);
}

static void good_commands_are_understood(void **context) {
    (void)context;
    static const char *const plain[] = {"pause", "resume", "save", "stop"};
    static const enum command_kind kinds[] = {COMMAND_PAUSE, COMMAND_RESUME, COMMAND_SAVE, COMMAND_STOP};
    for (int i = 0; i < 4; i++)
        assert_int_equal(parse(plain[i]).kind, kinds[i]);
    assert_int_equal(parse("step").count, 1);
    assert_int_equal(parse("step 3").count, 3);
    assert_false(parse("phase next").run);
    assert_true(parse("phase run").run);
    struct command command = parse("  towers   4 ");
    assert_true(command.kind == COMMAND_TOWERS && command.count == 4 && command.at == WIRE_UNKNOWN_INT);
    assert_string_equal(command.text, "towers 4");
    command = parse("set lr 0.05");
    assert_true(command.kind == COMMAND_SET && command.setting == SETTING_LR && command.value == 0.05);
    assert_true(parse("set lr 1e20").value == 1e20);
    assert_true(parse("set momentum 0.9").setting == SETTING_MOMENTUM);
    assert_true(parse("set batch 256").value == 256);
    assert_true(parse("set eval-every 0").setting == SETTING_EVAL_EVERY);
    assert_true(parse("eval --confusion").confusion && !parse("eval").confusion);
    assert_true(parse("status --json").json);
    assert_int_equal(parse("why on").why, WHY_ON);
    command = parse("why apply clip-before");
    assert_int_equal(command.why, WHY_APPLY);
    assert_string_equal(command.name, "clip-before");
    assert_true(parse("why restore --rewind").rewind && parse("restore --rewind").rewind);
    command = parse("note  the loss \t fell off a cliff, here and now and there");
    assert_string_equal(command.note, "the loss fell off a cliff, here and now and there");
    command = parse("images 3 16");
    assert_true(command.count == 3 && command.first == 16);
}

static void bad_commands_are_refused_with_the_reason(void **context) {
    (void)context;
    refuse("", "empty");
    refuse("batch 64", "it is a setting: set batch VALUE");
    refuse("towrs 3", "the nearest is \"towers\"");
    refuse("frobnicate", "there are pause, resume,");
    refuse("   ", "empty");
    refuse("puase", "\"pause\"");
    refuse("tower 4", "\"towers\"");
    refuse("towers", "towers N");
    refuse("towers 0", "1 to 1024");
    refuse("towers x", "no whole number");
    refuse("towers 2.5", "no whole number");
    refuse("towers -1", "out of range");
    refuse("towers 99999999999999999999", "no whole number");
    refuse("towers 2 3", "towers N");
    refuse("set lr", "set KEY VALUE");
    refuse("set lr -1", "out of range");
    refuse("set lr nan", "no number");
    refuse("set lr inf", "no number");
    refuse("set lr 0x10", "no number");
    refuse("set lr 0,05", "no number");
    refuse("set lrr 1", "\"lr\"");
    refuse("set momentum 1", "less than 1");
    refuse("set batch 0", "out of range");
    refuse("set batch 1.5", "no whole number");
    refuse("step 0", "out of range");
    refuse("phase", "phase next|run");
    refuse("phase back", "phase next|run");
    refuse("pause now", "pause");
    refuse("eval --all", "--confusion");
    refuse("why", "why on|off");
    refuse("why apply", "why on|off");
    refuse("why apply unscopde", "\"unscoped\"");
    refuse("why restore rewind", "why on|off");
    refuse("note", "note TEXT");
    refuse("stop --now", "stop");
    char longest[2000];
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "note ", 5);
    longest[1999] = 0;
    refuse(longest, "more than");
    longest[230] = 0;
    refuse(longest, "at most 199");
    longest[204] = 0;
    assert_int_equal(parse(longest).kind, COMMAND_NOTE);
}

static void control_bytes_never_get_through(void **context) {
    (void)context;
    struct command command = parse("note \x1b[2J\x07 caf\xc3\xa9 \xc2\x9b");
    assert_string_equal(command.note, "?[2J? caf\xc3\xa9 ?");
    refuse("note caf\xe9", "byte 9 of this one, 0xE9");
    refuse("\xc3", "byte 1 of this one, 0xC3");
}

static void a_line_round_trips(void **context) {
    (void)context;
    struct command command = parse("note say \"hi\" \\ é"), back;
    memcpy(command.id, "a-7", 4);
    memcpy(command.from, "me@pts/3", 9);
    command.at = 120;
    char line[WIRE_COMMAND_MAX];
    size_t length;
    assert_int_equal(command_encode(&command, line, sizeof line, &length), STATUS_OK);
    assert_true(line[length - 1] == '\n');
    assert_int_equal(command_decode(line, length, &back), STATUS_OK);
    assert_string_equal(back.note, command.note);
    assert_string_equal(back.id, "a-7");
    assert_string_equal(back.from, "me@pts/3");
    assert_int_equal(back.at, 120);
    assert_int_equal(command_encode(&command, line, 10, &length), STATUS_BAD_INPUT);
}

static void bad_lines_are_refused(void **context) {
    (void)context;
    static const char *const bad[] = {"",
                                      "x",
                                      "[]",
                                      "{}",
                                      "{\"command\":3}",
                                      "{\"command\":\"towers 0\"}",
                                      "{\"command\":\"pause\",\"at\":-1}",
                                      "{\"command\":\"pause\",\"at\":9007199254740993}",
                                      "{\"command\":\"pause\",\"at\":\"1\"}",
                                      "{\"command\":\"pause\",\"id\":7}",
                                      "{\"command\":\"pause\"",
                                      "\xff\xfe"};
    struct command command;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (command_decode(bad[i], strlen(bad[i]), &command) != STATUS_BAD_INPUT)
            fail_msg("accepted: %s", bad[i]);
    static char longest[WIRE_COMMAND_MAX + 1];
    memset(longest, ' ', sizeof longest);
    memcpy(longest, "{\"command\":\"pause\"}", 19);
    assert_int_equal(command_decode(longest, WIRE_COMMAND_MAX, &command), STATUS_OK);
    assert_int_equal(command_decode(longest, WIRE_COMMAND_MAX + 1, &command), STATUS_BAD_INPUT);
}

static void help_and_completion_cover_every_command(void **context) {
    (void)context;
    const char *sentence;
    for (int i = 0; i < COMMAND_KINDS; i++) {
        const char *usage = command_usage(i, &sentence), *found[40];
        assert_true(usage && sentence && *sentence);
        char first[32];
        memcpy(first, usage, 3);
        first[3] = 0;
        assert_true(command_complete(first, found, 40) > 0);
    }
    assert_null(command_usage(COMMAND_KINDS, &sentence));
    const char *found[40];
    assert_int_equal(command_complete("s", found, 40),
                     5); /* step, set, save, status, stop: short enough to show */
    assert_string_equal(found[1], "set ");
    assert_int_equal(command_complete("", found, 16), COMMAND_KINDS);
    assert_int_equal(command_complete("stop", found, 40), 1);
    assert_string_equal(found[0], "stop --discard");
    assert_int_equal(command_complete("why apply p", found, 40), 2);
    assert_string_equal(found[0], "why apply print-last");
    assert_int_equal(command_complete("set lr", found, 40), 1);
    assert_string_equal(found[0], "set lr "); /* a value is wanted */
    assert_int_equal(command_complete("set lr ", found, 40), 0);
    assert_int_equal(command_complete("", found, 3), 3);
    assert_int_equal(command_complete("zzz", found, 3), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_commands_are_understood),
        cmocka_unit_test(bad_commands_are_refused_with_the_reason),
        cmocka_unit_test(control_bytes_never_get_through),
        cmocka_unit_test(a_line_round_trips),
        cmocka_unit_test(bad_lines_are_refused),
        cmocka_unit_test(help_and_completion_cover_every_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

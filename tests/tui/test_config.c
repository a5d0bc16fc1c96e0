/* config.ini of the console, and what the prompt changes: the good is taken, the wrong is named and changes
 * nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tui/config.h"
#include "tui/palette.h"

static char path[1024];

static enum status read_text(const char *text, struct preferences *preferences, struct keymap *keymap) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    preferences_default(preferences);
    keymap_default(keymap);
    return config_read(path, preferences, keymap);
}

static void good(void **state) {
    (void)state;
    struct preferences preferences;
    struct keymap keymap;
    assert_int_equal(
        read_text(
            "[console]\ntheme = light\npalette = grey\nglyphs = block\nsmoothing = 2\nwindow = 1000\n"
            "log-scale = on\nnumber-interval = 1.5\nsynchronized = off\n[keys]\npause = p\nleave = ^X\n",
            &preferences, &keymap),
        STATUS_OK);
    assert_int_equal(preferences.theme, THEME_LIGHT);
    assert_int_equal(preferences.palette, PALETTE_GREY);
    assert_int_equal(preferences.glyphs, GLYPH_BLOCK);
    assert_int_equal(preferences.smoothing, 2);
    assert_int_equal(preferences.window, 1000);
    assert_true(preferences.log_scale && !preferences.synchronized);
    assert_true(!(preferences.number_interval < 1.5) && !(preferences.number_interval > 1.5));
    assert_int_equal(keymap_action(&keymap, 'p', WHERE_LIVE), ACTION_PAUSE);
    assert_int_equal(keymap_action(&keymap, PRESS_CONTROL('x'), WHERE_LIVE), ACTION_LEAVE);
    assert_int_equal(read_text("", &preferences, &keymap), STATUS_OK);
    assert_int_equal(config_read("/nonexistent/config.ini", &preferences, &keymap), STATUS_OK);
    assert_int_equal(config_read("", &preferences, &keymap), STATUS_OK);
}

static void wrong(void **state) {
    (void)state;
    static const struct {
        const char *text, *named;
    } all[] = {
        {"[console]\nthem = light\n", ":2"},
        {"[console]\n\ntheme = pink\n", ":3"},
        {"[console]\nsmoothing = 4\n", "smoothing"},
        {"[console]\nwindow = 1.5\n", "window"},
        {"[console]\nplot-interval = 0\n", "plot-interval"},
        {"[keys]\npawse = p\n", "pawse"},
        {"[keys]\npause = nokey\n", "nokey"},
        {"[keys]\npause = q\n", "leave"},
        {"[colours]\nx = 1\n", "colours"},
        {"theme = light\n", "[console]"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct preferences preferences, before;
        struct keymap keymap, keys_before;
        preferences_default(&before);
        keymap_default(&keys_before);
        assert_int_equal(read_text(all[i].text, &preferences, &keymap), STATUS_BAD_INPUT);
        if (!strstr(status_text(), all[i].named) || !strstr(status_text(), "config.ini"))
            fail_msg("\"%s\" names neither the file nor %s", status_text(), all[i].named);
        assert_memory_equal(&preferences, &before, sizeof before);
        assert_memory_equal(keymap.bindings, keys_before.bindings,
                            (size_t)keymap.count * sizeof *keymap.bindings);
    }
}

static void the_prompt(void **state) {
    (void)state;
    struct preferences preferences;
    struct keymap keymap;
    bool taken;
    char said[256];
    preferences_default(&preferences);
    keymap_default(&keymap);
    assert_int_equal(config_line("set theme light", &preferences, &keymap, &taken, said, sizeof said),
                     STATUS_OK);
    assert_true(taken && preferences.theme == THEME_LIGHT);
    assert_int_equal(config_line("set lr 0.1", &preferences, &keymap, &taken, said, sizeof said), STATUS_OK);
    assert_false(taken); /* the run's own */
    assert_int_equal(config_line("pause", &preferences, &keymap, &taken, said, sizeof said), STATUS_OK);
    assert_false(taken);
    assert_int_equal(config_line("set theme", &preferences, &keymap, &taken, said, sizeof said),
                     STATUS_BAD_INPUT);
    assert_int_equal(config_line("set theme light dark", &preferences, &keymap, &taken, said, sizeof said),
                     STATUS_BAD_INPUT);
    assert_int_equal(config_line("key pause", &preferences, &keymap, &taken, said, sizeof said),
                     STATUS_BAD_INPUT);
    assert_int_equal(config_line("key pause p", &preferences, &keymap, &taken, said, sizeof said), STATUS_OK);
    assert_int_equal(keymap_action(&keymap, 'p', WHERE_LIVE), ACTION_PAUSE);
    const char *found[16];
    int count = config_complete("set th", found, 16);
    assert_int_equal(count, 1);
    assert_string_equal(found[0], "set theme ");
}

static int begin(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s/config.ini", getenv("TEST_TMP"));
    return 0;
}

/* Where a terminal takes red, green and blue the numbers of 256 colours would all be dark blues. */
static void colours_of_a_direct_terminal(void **state) {
    (void)state;
    enum { DIRECT = 1 << 24 };
    for (int colour = -1; colour < 256; colour++) {
        assert_int_equal(palette_number(colour, 8), colour);
        assert_int_equal(palette_number(colour, 256), colour);
    }
    for (int colour = -1; colour < 8; colour++) /* its own */
        assert_int_equal(palette_number(colour, DIRECT), colour);
    assert_int_equal(palette_number(214, DIRECT), 0xffaf00);
    assert_int_equal(palette_number(244, DIRECT), 0x808080);
    assert_int_equal(palette_number(231, DIRECT), 0xffffff);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_of_a_direct_terminal),
        cmocka_unit_test(good),
        cmocka_unit_test(wrong),
        cmocka_unit_test(the_prompt),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}

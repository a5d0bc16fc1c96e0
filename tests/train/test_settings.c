#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/cmocka.h"

#include "engine/train/settings.h"

static const struct model_defaults no_defaults = {NAN, NAN, NAN, NAN, NAN, NAN, 0};

static void refused(const char *key, const char *value, const char *expected) {
    struct settings settings, before;
    settings_clear(&settings);
    before = settings;
    assert_int_equal(settings_set(&settings, "here:7", key, value), STATUS_BAD_INPUT);
    if (!strstr(status_text(), "here:7") || !strstr(status_text(), expected))
        fail_msg("\"%s\" lacks \"%s\"", status_text(), expected);
    assert_int_equal(settings.given, before.given);
    assert_int_equal(settings.towers, before.towers);
    assert_string_equal(settings.model, before.model);
}

static void test_refusals(void **state) {
    (void)state;
    refused("bathc", "64", "\"batch\"");
    refused("momentun", "0.9", "\"momentum\"");
    refused("towers", "0", "at least 1");
    refused("towers", "x", "whole number");
    refused("towers", "2.5", "whole number");
    refused("towers", "", "whole number");
    refused("towers", "1025", "at most 1024");
    refused("lr", "-1", "at least 0");
    refused("lr", "nan", "a number");
    refused("lr", "0,1", "a number");
    refused("momentum", "1", "less than 1");
    refused("lr-decay", "0", "more than 0");
    refused("ema", "1", "less than 1");
    refused("precision", "f16", "f32|tf32|bf16");
    refused("precision", "f32|tf32", "one of");
    refused("seed", "9007199254740993", "at most 9007199254740992"); /* its double is that of 2^53 */
    refused("seed", "9223372036854775807", "at most 9007199254740992");
    refused("resume", "perhaps", "yes or no");
    refused("model", "", "empty");
    char long_name[1100];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    refused("model", long_name, "at most 1023");
}

static void test_layers(void **state) {
    (void)state;
    struct settings file, flags, all;
    settings_clear(&file);
    settings_clear(&flags);
    assert_int_equal(settings_set(&file, "f", "lr", "0.5"), STATUS_OK);
    assert_int_equal(settings_set(&file, "f", "batch", "64"), STATUS_OK);
    assert_int_equal(settings_set(&file, "f", "steps", "9"), STATUS_OK);
    assert_int_equal(settings_set(&file, "f", "deterministic", "yes"), STATUS_OK);
    assert_int_equal(settings_set(&flags, "--lr", "lr", "0.25"), STATUS_OK);
    assert_int_equal(settings_set(&flags, "--b", "batch_per_tower", "32"), STATUS_OK);
    assert_int_equal(settings_set(&flags, "--d", "deterministic", "no"), STATUS_OK);
    settings_clear(&all);
    settings_overlay(&all, &file);
    settings_overlay(&all, &flags);
    assert_int_equal(settings_check(&all, "all"), STATUS_OK);
    assert_true(all.lr == 0.25);
    assert_int_equal(all.batch, -1); /* the other rule took its place */
    assert_int_equal(all.batch_per_tower, 32);
    assert_int_equal(all.steps, 9);
    assert_false(all.deterministic);
    struct model_defaults defaults = {0.01, 0.5, NAN, 0.9, NAN, NAN, 77};
    settings_complete(&all, &defaults);
    assert_true(all.lr == 0.25 && all.lr_decay == 0.5 && all.momentum == 0.9 && all.ema == 0.9999);
    assert_true(all.decay_epochs == 350 && all.clip_norm == 0 && isnan(all.weight_decay));
    assert_int_equal(all.batch, -1);
    assert_int_equal(all.towers, 2);
    assert_int_equal(all.epochs, -1);

    assert_int_equal(settings_set(&flags, "--batch", "batch", "8"), STATUS_OK);
    assert_int_equal(settings_check(&flags, "flags"), STATUS_BAD_INPUT);
    assert_non_null(strstr(status_text(), "batch-per-tower"));
}

static void test_every_default_is_allowed(void **state) {
    (void)state;
    int count;
    const struct setting_key *keys = settings_keys(&count);
    for (int i = 0; i < count; i++) {
        struct settings settings;
        settings_clear(&settings);
        assert_ptr_equal(settings_find(keys[i].key), &keys[i]);
        assert_non_null(keys[i].sentence);
        if (keys[i].fallback &&
            settings_set(&settings, "default", keys[i].key, keys[i].fallback) != STATUS_OK)
            fail_msg("%s", status_text());
    }
}

/* What is written reads back to the same, key by key. */
static void test_file(void **state) {
    (void)state;
    struct settings settings, back;
    settings_clear(&settings);
    const char *const pairs[][2] = {{"model", "a model;of mine.ini"},
                                    {"lr", "0.1"},
                                    {"momentum", "0.33333333333333331"},
                                    {"weight-decay", "1e-20"},
                                    {"seed", "9007199254740992"},
                                    {"deterministic", "yes"},
                                    {"clip-norm", "1e30"},
                                    {"distort", "crop,flip"},
                                    {"epochs", "3"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (settings_set(&settings, "t", pairs[i][0], pairs[i][1]) != STATUS_OK)
            fail_msg("%s", status_text());
    settings_complete(&settings, &no_defaults);
    char path[600];
    snprintf(path, sizeof path, "%s/config.ini", getenv("TEST_TMP"));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(settings_write(&settings, file), STATUS_OK);
    assert_int_equal(fclose(file), 0);
    settings_clear(&back);
    if (settings_read(&back, path) != STATUS_OK)
        fail_msg("%s", status_text());
    int count;
    const struct setting_key *keys = settings_keys(&count);
    for (int i = 0; i < count; i++) {
        char was[600], is[600];
        settings_format(&settings, &keys[i], was, sizeof was);
        settings_format(&back, &keys[i], is, sizeof is);
        if (keys[i].kept)
            assert_string_equal(was, is);
    }

    /* what would be read back as something else */
    static const char *const no[] = {"two ; parts", "; begins", " blank", "blank ",
                                     "two\nlines",  "\033[31m", "\t"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        snprintf(settings.model, sizeof settings.model, "%s", no[i]);
        file = fopen("/dev/null", "w");
        assert_int_equal(settings_write(&settings, file), STATUS_BAD_INPUT);
        fclose(file);
    }
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void test_bad_files(void **state) {
    (void)state;
    struct settings settings, before;
    char path[600];
    snprintf(path, sizeof path, "%s/bad.ini", getenv("TEST_TMP"));
    settings_clear(&settings);
    before = settings;
    const char *const texts[][2] = {{"lr = 0.1\n# a comment\nbathc = 7\n", "bad.ini:3: "},
                                    {"lr = 0.1\nlr = 0.2\n", "bad.ini:2: "},
                                    {"[model]\nlr = 0.1\n", "[model]"}};
    for (size_t i = 0; i < 3; i++) {
        write_text(path, texts[i][0]);
        assert_int_equal(settings_read(&settings, path), STATUS_BAD_INPUT);
        if (!strstr(status_text(), texts[i][1]))
            fail_msg("\"%s\" lacks \"%s\"", status_text(), texts[i][1]);
        assert_int_equal(settings.given, before.given);
    }
    snprintf(path, sizeof path, "%s/none.ini", getenv("TEST_TMP"));
    assert_int_equal(settings_read(&settings, path), STATUS_NOT_FOUND);
}

/* A setting that is not given is no setting of nothing. */
static void test_changes(void **state) {
    (void)state;
    struct settings old, now;
    char words[400];
    settings_clear(&old);
    settings_clear(&now);
    assert_int_equal(settings_changes(&old, &now, words, sizeof words), 0);
    assert_string_equal(words, "");
    assert_int_equal(settings_set(&now, "here", "devices", "ref"), STATUS_OK);
    assert_int_equal(settings_set(&now, "here", "steps", "30"), STATUS_OK);
    assert_int_equal(settings_set(&now, "here", "weight-decay", "0.1"), STATUS_OK);
    assert_int_equal(settings_changes(&old, &now, words, sizeof words), 3);
    assert_string_equal(words, "devices from the default to ref, steps from none to 30, weight-decay from the "
                               "model's to 0.1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_every_default_is_allowed),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

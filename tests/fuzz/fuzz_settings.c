/* The reader of a run's settings: what it takes can be written down, and is read again as it was. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct settings *settings) {
    char *text = NULL, changes[400];
    size_t length;
    FILE *file = open_memstream(&text, &length);
    struct settings back;
    if (!file)
        return;
    enum status status = settings_write(settings, file);
    fclose(file);
    settings_clear(&back);
    if (status == STATUS_OK && (settings_read_text(&back, "again", text) != STATUS_OK ||
                                settings_changes(settings, &back, changes, sizeof changes) != 0))
        abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    struct settings settings, before;
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    settings_clear(&settings);
    before = settings;
    enum status status = settings_read_text(&settings, "config.ini", text);
    if (status == STATUS_OK) {
        struct settings whole = settings;
        static const struct model_defaults defaults = {
            .lr = NAN, .lr_decay = NAN, .decay_epochs = NAN, .momentum = NAN, .clip_norm = NAN, .ema = NAN};
        check(&settings);
        if (settings_check(&settings, "config.ini") == STATUS_OK) {
            settings_complete(&whole, &defaults);
            check(&whole);
        }
    } else if (!*status_text() || settings.given != before.given) {
        abort();
    }
    free(text);
    return 0;
}

/* The reader of the console's own settings, and the prompt's lines that change them: a refusal changes
 * nothing, and whatever is taken leaves a key to get out by. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/files.h"
#include "tui/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct preferences *preferences, const struct keymap *keymap) {
    bool way_out = false;
    if (preferences->smoothing < 0 || preferences->smoothing >= SMOOTHINGS || preferences->window < 0 ||
        !(preferences->number_interval > 0) || !(preferences->plot_interval > 0))
        abort();
    for (int i = 0; i < keymap->count; i++)
        for (int k = 0; k < 3; k++)
            way_out |= keymap->bindings[i].action == ACTION_LEAVE && keymap->bindings[i].keys[k];
    if (!way_out)
        abort();
}

/* By their values: bytes between a struct's fields may differ. */
static void same(const struct keymap *a, const struct keymap *b) {
    if (a->count != b->count)
        abort();
    for (int i = 0; i < a->count; i++)
        if (memcmp(a->bindings[i].keys, b->bindings[i].keys, sizeof a->bindings[i].keys) != 0)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct preferences preferences;
    struct keymap keymap, before;
    preferences_default(&preferences);
    keymap_default(&keymap);
    before = keymap;
    fuzz_clear();
    fuzz_put("config.ini", data, size);
    if (config_read(fuzz_path("config.ini"), &preferences, &keymap) != STATUS_OK) {
        if (!*status_text())
            abort();
        same(&keymap, &before);
    }
    check(&preferences, &keymap);
    char line[256];
    const char *found[8];
    bool taken;
    char said[256];
    if (size >= sizeof line)
        return 0;
    memcpy(line, data, size);
    line[size] = 0;
    before = keymap;
    if (config_line(line, &preferences, &keymap, &taken, said, sizeof said) != STATUS_OK)
        same(&keymap, &before);
    check(&preferences, &keymap);
    int count = config_complete(line, found, 8);
    for (int i = 0; i < count; i++)
        if (strlen(found[i]) >= sizeof line)
            abort();
    return 0;
}

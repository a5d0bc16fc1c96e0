/* The reader of --script files: commands come by step, each once. */
#include <stdint.h>
#include <stdlib.h>

#include "cli/script.h"
#include "tests/fuzz/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct script script;
    fuzz_clear();
    fuzz_put("script", data, size);
    enum status status = script_read(fuzz_path("script"), NULL, NULL, &script);
    if (status != STATUS_OK)
        return *status_text() ? 0 : (abort(), 0);
    int64_t at = 0;
    int count = 0;
    for (const struct command *command; (command = script_take(&script, INT64_MAX)); count++) {
        if (command->at < at)
            abort();
        at = command->at;
    }
    if (count != script.count)
        abort();
    script_free(&script);
    return 0;
}

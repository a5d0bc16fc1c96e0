/* The reader of clients' commands: what it takes is within its ranges and is read again as it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/wire/command.h"
#include "engine/wire/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct command *command) {
    char line[WIRE_COMMAND_MAX];
    size_t length;
    struct command back;
    for (const unsigned char *s = (const unsigned char *)command->text; *s; s++)
        if (*s < 0x20 || *s == 0x7f)
            abort();
    if (command->kind == COMMAND_TOWERS && (command->count < 1 || command->count > 1024))
        abort();
    if (command->kind == COMMAND_SET && !(command->value >= 0 && command->value <= 1e30))
        abort();
    if (command_encode(command, line, sizeof line, &length) != STATUS_OK)
        abort();
    if (command_decode(line, length, &back) != STATUS_OK || strcmp(back.text, command->text) ||
        strcmp(back.id, command->id) || back.at != command->at || back.kind != command->kind)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct command command;
    if (command_decode((const char *)data, size, &command) == STATUS_OK)
        check(&command);
    char text[1500];
    if (size < sizeof text) { /* as a person types it */
        memcpy(text, data, size);
        text[size] = 0;
        if (command_parse(text, &command) == STATUS_OK)
            check(&command);
    }
    return 0;
}

/* `towerscope protocol`: the table of events, for PROTOCOL.md. */
#include <stdio.h>

#include "cli/cli.h"
#include "engine/wire/protocol.h"

int command_protocol(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        fprintf(stderr, "usage: towerscope protocol\n");
        return EXIT_USAGE;
    }
    protocol_write(stdout);
    return EXIT_DONE;
}

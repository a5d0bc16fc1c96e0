/* Lines in the very form that event_encode gives them, read without a JSON library. A record is nothing but
 * such lines, and reading a long one is most of what opening a replay takes. */
#ifndef TOWERSCOPE_ENGINE_WIRE_QUICK_H
#define TOWERSCOPE_ENGINE_WIRE_QUICK_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/arena.h"
#include "engine/wire/event.h"

/* True: *out is what event_decode_json makes of the line, to the last bit. False: nothing is known of the
 * line and *out is as it was (pieces may lie in the arena). So it is for whatever is out of the ordinary:
 * another order of fields, a field that is not in the table, white space, an escape or a byte that is no
 * ASCII in a text, a number whose nearest double takes more than one rounding, a wrong type, a torn line, no
 * memory. */
bool event_decode_quick(const char *line, size_t length, struct arena *arena, struct event *out);

#endif

/* Events to and from JSON lines, from the one table of fields. */
#ifndef TOWERSCOPE_ENGINE_WIRE_CODEC_H
#define TOWERSCOPE_ENGINE_WIRE_CODEC_H

#include <stddef.h>

#include "engine/base/arena.h"
#include "engine/wire/event.h"
#include "kernels/status.h"

/* Encode as one line, newline included, into memory of the arena. float32 values are given as doubles rounded
 * to 9 significant digits. STATUS_BAD_INPUT: the line would pass WIRE_LINE_MAX (nothing is written). */
enum status event_encode(const struct event *event, struct arena *arena, char **line, size_t *length);

/* Decode one line (a trailing newline is fine). Strings and arrays live in the arena. Fields that are not
 * known are skipped; missing ones are unknown. An event that is not known gives STATUS_OK and kind
 * EVENT_NONE. STATUS_BAD_INPUT: no JSON object, no "event", a field of the wrong type, a line too long. */
enum status event_decode(const char *line, size_t length, struct arena *arena, struct event *out);

/* The same without the short way for lines as event_encode writes them (quick.h), which it is the measure of.
 */
enum status event_decode_json(const char *line, size_t length, struct arena *arena, struct event *out);

#endif

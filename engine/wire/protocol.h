/* The description of the stream for people, made from the table of fields. */
#ifndef TOWERSCOPE_ENGINE_WIRE_PROTOCOL_H
#define TOWERSCOPE_ENGINE_WIRE_PROTOCOL_H

#include <stdio.h>

/* Write every event with its fields, as the part of PROTOCOL.md between its two marks. */
void protocol_write(FILE *file);

#endif

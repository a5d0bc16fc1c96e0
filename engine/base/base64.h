/* Base64 (RFC 4648, with padding): pixels inside JSON. */
#ifndef TOWERSCOPE_ENGINE_BASE_BASE64_H
#define TOWERSCOPE_ENGINE_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the text for `count` bytes, the ending 0 included. */
size_t base64_size(size_t count);

/* Write the text, ending 0 included, into out[base64_size(count)]. */
void base64_encode(const uint8_t *bytes, size_t count, char *out);

/* Read text into out[room]. Returns the number of bytes, or -1: a character that is none, a length that is no
 * multiple of 4, or more than `room` bytes. */
long base64_decode(const char *text, uint8_t *out, size_t room);

#endif

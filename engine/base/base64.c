#include "engine/base/base64.h"

#include <stdbool.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_size(size_t count) {
    return (count + 2) / 3 * 4 + 1;
}

void base64_encode(const uint8_t *bytes, size_t count, char *out) {
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        uint32_t group = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (left > 2 ? bytes[i + 2] : 0);
        *out++ = alphabet[group >> 18];
        *out++ = alphabet[group >> 12 & 63];
        *out++ = left > 1 ? alphabet[group >> 6 & 63] : '=';
        *out++ = left > 2 ? alphabet[group & 63] : '=';
    }
    *out = 0;
}

static int value_of(char c) {
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

long base64_decode(const char *text, uint8_t *out, size_t room) {
    size_t length = strlen(text), used = 0;
    if (length % 4)
        return -1;
    for (size_t i = 0; i < length; i += 4) {
        bool last = i + 4 == length;
        int padding = last ? (text[i + 3] == '=') + (text[i + 2] == '=' && text[i + 3] == '=') : 0;
        uint32_t group = 0;
        for (int j = 0; j < 4; j++) {
            int value = j >= 4 - padding ? 0 : value_of(text[i + (size_t)j]);
            if (value < 0)
                return -1;
            group = group << 6 | (uint32_t)value;
        }
        for (int j = 0; j < 3 - padding; j++) {
            if (used == room)
                return -1;
            out[used++] = (uint8_t)(group >> (16 - 8 * j));
        }
    }
    return (long)used;
}

#include "engine/wire/repeats.h"

/* FNV-1a, 64 bits, see engine/wire/live.c. */
static uint64_t hash_text(uint64_t hash, const char *text) {
    for (const unsigned char *s = (const unsigned char *)(text ? text : ""); *s; s++)
        hash = (hash ^ *s) * UINT64_C(0x100000001b3);
    return (hash ^ 0xFF) * UINT64_C(0x100000001b3); /* "ab","c" is not "a","bc" */
}

int64_t repeats_count(struct repeats *repeats, const struct event_alarm *alarm) {
    uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325) ^ (uint64_t)alarm->tower, alarm->level);
    hash = hash_text(hash_text(hash, alarm->tensor), alarm->text);
    int place = 0;
    repeats->alarms++;
    for (int i = 0; i < REPEATS; i++) {
        if (repeats->seen[i].count > 0 && repeats->seen[i].hash == hash) {
            repeats->seen[i].newest = repeats->alarms;
            return ++repeats->seen[i].count;
        }
        if (repeats->seen[i].newest < repeats->seen[place].newest)
            place = i;
    }
    repeats->seen[place].hash = hash;
    repeats->seen[place].count = 1;
    repeats->seen[place].newest = repeats->alarms;
    return 1;
}

bool repeats_told(int64_t n) {
    while (n % 10 == 0)
        n /= 10;
    return n == 1;
}

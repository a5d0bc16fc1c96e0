#include "datasets/order.h"

#include "engine/base/random.h"

void order_epoch(uint64_t seed, int64_t epoch, int64_t count, uint32_t *order) {
    struct random random = random_begin(seed, RANDOM_SHUFFLE, (uint64_t)epoch);
    for (int64_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    for (int64_t i = count - 1; i > 0; i--) {
        uint32_t j = random_below(&random, (uint32_t)(i + 1));
        uint32_t other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
}

int64_t order_shard(int64_t images, int towers, int tower, int64_t *first) {
    int64_t whole = images / towers, more = images % towers;
    *first = whole * tower + (tower < more ? tower : more);
    return whole + (tower < more ? 1 : 0);
}

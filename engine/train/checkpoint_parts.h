/* What a checkpoint is made of, for its writer and its reader. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_CHECKPOINT_PARTS_H
#define TOWERSCOPE_ENGINE_TRAIN_CHECKPOINT_PARTS_H

#include "engine/train/checkpoint.h"
#include "engine/wire/safetensors.h"

enum { CHECKPOINT_NAME_MAX = MODEL_NAME_MAX + 32, CHECKPOINT_SLOTS = 3 };

/* The slots of a parameter: what follows its name, and the word in the metadata; the first is the parameter
 * itself. */
struct checkpoint_slot {
    const char *suffix, *word;
    size_t offset; /* of its pointer in struct snapshot */
};
extern const struct checkpoint_slot checkpoint_slots[CHECKPOINT_SLOTS];

enum checkpoint_number { CHECKPOINT_WHOLE, CHECKPOINT_REAL, CHECKPOINT_FLAG };

enum { CHECKPOINT_COUNTER_BYTES = 8 };

/* A number of the run's state: a tensor of one value. */
struct checkpoint_counter {
    const char *name;
    enum checkpoint_number number; /* int64_t, double or bool in struct snapshot; I64 or F64 in the file */
    size_t offset;
    bool may_be_negative;
};
extern const struct checkpoint_counter checkpoint_counters[];
extern const int checkpoint_counter_count;

/* The flat array of a slot; NULL: the snapshot has none. */
static inline const float *checkpoint_slot_values(const struct snapshot *snapshot, int slot) {
    return *(const float *const *)((const char *)snapshot + checkpoint_slots[slot].offset);
}

/* Write a snapshot to the file called `name` in a folder that is held by its descriptor (`path` is for
 * sentences), replacing what is there only when all of it is on the disk. *bytes (may be NULL): of the file.
 * STATUS_NON_FINITE: a value that is not finite, with the tensor's name; nothing is written. STATUS_IO,
 * STATUS_NO_SPACE: path, bytes wanted and the system's reason; what was there before is untouched and nothing
 * is left aside. */
enum status checkpoint_write_in(int folder, const char *name, const char *path,
                                const struct snapshot *snapshot, uint64_t *bytes);

/* STATUS_BAD_INPUT names the first number of a snapshot that does not agree with the others, as found and as
 * expected; `path` begins the message. */
enum status checkpoint_check(const char *path, const struct snapshot *snapshot);

/* What the metadata keep of a tensor's values, to see that they are as they were saved. */
uint32_t checkpoint_sum(const float *values, size_t count);

/* What a word or a counter (a name and its bytes) adds to the word "state": the sum over all of them but that
 * word, in any order, shows whether the settings and counters are as they were saved. */
uint64_t checkpoint_state_part(const char *name, const void *value, size_t size);

/* STATUS_NON_FINITE when one of values[count] is not finite; `where` begins the message. */
enum status checkpoint_finite(const char *where, const char *tensor, const float *values, size_t count);

#endif

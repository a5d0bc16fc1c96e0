/* How much memory can still be asked for before the system begins to kill. */
#ifndef TOWERSCOPE_ENGINE_BASE_MEMORY_H
#define TOWERSCOPE_ENGINE_BASE_MEMORY_H

#include <stddef.h>

/* Bytes that are free for this process: the least of what the system calls available, what its control group
 * leaves and what its address space limit (ulimit -v) leaves. 0: not known. */
size_t memory_available(void);

/* Bytes as a person reads them, "173.2 MiB" (2^20), into out[32]; returns out. */
const char *memory_words(size_t bytes, char out[32]);

#endif

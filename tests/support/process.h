/* What the system says of a process. -1: it is gone, or the system does not say. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_PROCESS_H
#define TOWERSCOPE_TESTS_SUPPORT_PROCESS_H

#include <stdarg.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes that are in memory. */
int64_t process_memory(pid_t pid);

/* Open descriptors. */
int process_descriptors(pid_t pid);

/* Processor time of the thread of that name, in seconds. */
double process_thread_seconds(pid_t pid, const char *name);

/* Run a command of the shell in a folder (2,000 bytes together at most); its exit code, 128: a signal ended
 * it. */
int process_shell(const char *folder, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

#endif

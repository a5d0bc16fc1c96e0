/* Clients that do not behave, for the hub. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_BAD_CLIENT_H
#define TOWERSCOPE_TESTS_SUPPORT_BAD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/wire/live.h"

/* A connected socket to the run, blocking; -1: refused. */
int bad_connect(const struct live_run *run);

/* Send bytes; false: the other end is gone. */
bool bad_send(int fd, const char *bytes, size_t length);

/* Send a text. */
bool bad_say(int fd, const char *text);

/* Say hello as a console would, with this protocol number. */
bool bad_greet(int fd, int protocol, const char *program, bool events);

/* The next line (without its newline), waiting at most `seconds`; false: none came, or the end. */
bool bad_line(int fd, char *out, size_t size, double seconds);

/* Whether the other end closes within `seconds`; what it says meanwhile is read and forgotten. */
bool bad_closed(int fd, double seconds);

#endif

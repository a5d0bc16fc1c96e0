/* What is known of the machine while a run trains: live-only `device` events. */
#ifndef TOWERSCOPE_CLI_TELEMETRY_H
#define TOWERSCOPE_CLI_TELEMETRY_H

#include "engine/wire/event.h"

struct telemetry { /* all zero: nothing measured yet */
    double measured, cpu_seconds;
};

/* Fill a device event for this process on the processor; false: not yet due (each two seconds). `threads`:
 * how many it computes with. */
bool telemetry_measure(struct telemetry *telemetry, const char *device, int threads, struct event *out);

#endif

/* Devices that live in a shared object of their own, backend_NAME.so, loaded when they are needed.
 *
 * It is looked for in $TOWERSCOPE_PLUGINS when that is set (there alone), else beside the program, else in
 * ../lib/towerscope from there. A plugin defines one function, PLUGIN_ENTRY, and uses status_*() of the
 * program. */
#ifndef TOWERSCOPE_KERNELS_PLUGIN_H
#define TOWERSCOPE_KERNELS_PLUGIN_H

#include "kernels/device.h"

#define PLUGIN_ENTRY      towerscope_plugin
#define PLUGIN_ENTRY_NAME "towerscope_plugin"

typedef const struct device_ops *plugin_entry(void);

/* Write the path of backend_NAME.so to `path`. STATUS_UNSUPPORTED: there is none; the text names the places.
 */
enum status plugin_find(const char *name, char *path, size_t size);

/* Load it, once for the life of the program (libraries of drivers start threads and are never unloaded), and
 * return its table. STATUS_UNSUPPORTED: there is none, a library that it needs is missing (the text names
 * it), or it was made for another version of the table of devices. */
enum status plugin_load(const char *name, const struct device_ops **out);

#endif

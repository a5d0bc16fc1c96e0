#include "tui/view_orders.h"

#include <stdarg.h>
#include <stdio.h>

void orders_add(struct view_orders *orders, const char *format, ...) {
    if (orders->count == ORDERS)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(orders->commands[orders->count++], ORDER_TEXT, format, args);
    va_end(args);
}

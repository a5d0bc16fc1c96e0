/* What a screen asks of the run: commands to send in order, or one to send if the person says yes. */
#ifndef TOWERSCOPE_TUI_VIEW_ORDERS_H
#define TOWERSCOPE_TUI_VIEW_ORDERS_H

#include <stdbool.h>

enum { ORDERS = 6, ORDER_TEXT = 64 };

struct view_orders {
    char commands[ORDERS][ORDER_TEXT];
    int count;
    char question[256]; /* not empty: ask this first; "y" sends the commands */
    char said[256];     /* not empty: words for the message line */
};

/* One more; what does not fit any more is left out. */
void orders_add(struct view_orders *orders, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

/* A lesson as something the console shows: its run is in this process, and Enter goes on. */
#ifndef TOWERSCOPE_CLI_LESSON_FEED_H
#define TOWERSCOPE_CLI_LESSON_FEED_H

#include "cli/lesson.h"
#include "tui/app.h"
#include "tui/feed.h"

/* The first part is told already. Points options->guide to the feed's; the lesson outlives the feed. */
enum status lesson_feed(struct lesson *lesson, struct app_options *options, struct feed **out);

#endif

/* Who holds control of a run: one console of those attached. The first gets it; when it leaves, the one that
 * asked, else the one that is attached longest. `ctl` may always send, and --watch never. */
#include <string.h>

#include "engine/base/clock.h"
#include "engine/hub/internal.h"

static bool is_console(const struct peer *peer) {
    return peer->greeted && peer->events && !peer->foreign && !peer->gone;
}

static struct peer *find(struct hub *hub, int64_t number) {
    for (int i = 0; i < hub->peer_count; i++)
        if (hub->peers[i]->number == number)
            return hub->peers[i];
    return NULL;
}

/* Tell every console, each whether control is its own. */
static void announce(struct hub *hub) {
    const struct peer *holder = find(hub, hub->holder), *asking = find(hub, hub->asking);
    struct event event = event_new(EVENT_CONTROL);
    int64_t consoles = 0;
    for (int i = 0; i < hub->peer_count; i++)
        consoles += is_console(hub->peers[i]);
    event.time = clock_wall();
    event.control.watchers = consoles - (holder ? 1 : 0);
    if (holder) {
        event.control.holder_user = holder->user;
        event.control.holder_terminal = holder->terminal;
    }
    if (asking) {
        event.control.asking_user = asking->user;
        event.control.asking_terminal = asking->terminal;
    }
    for (int i = 0; i < hub->peer_count; i++) {
        event.control.yours = hub->peers[i] == holder;
        if (is_console(hub->peers[i]))
            hub_tell(hub, hub->peers[i], &event);
    }
}

bool hub_may_command(struct hub *hub, const struct peer *peer, const char **reason) {
    if (peer->watch)
        *reason = "a console started with --watch sends no commands";
    else if (!strcmp(peer->program, "ctl") || hub->holder == peer->number)
        return true;
    else
        *reason = "another console holds control; ask for it";
    return false;
}

void hub_control_came(struct hub *hub, struct peer *peer) {
    if (!is_console(peer))
        return;
    if (!hub->holder && !peer->watch)
        hub->holder = peer->number;
    announce(hub);
}

/* Numbers rise with time. */
static int64_t longest_attached(const struct hub *hub, const struct peer *leaving) {
    int64_t number = 0;
    for (int i = 0; i < hub->peer_count; i++) {
        const struct peer *peer = hub->peers[i];
        if (is_console(peer) && !peer->watch && peer != leaving && (!number || peer->number < number))
            number = peer->number;
    }
    return number;
}

void hub_control_left(struct hub *hub, const struct peer *peer) {
    if (!peer->greeted || !peer->events)
        return;
    if (hub->asking == peer->number)
        hub->asking = 0;
    if (hub->holder == peer->number) {
        hub->holder = hub->asking;
        hub->asking = 0;
        if (!hub->holder)
            hub->holder = longest_attached(hub, peer);
    }
    announce(hub);
}

void hub_control_word(struct hub *hub, struct peer *peer, const char *word, double now) {
    bool holds = hub->holder == peer->number;
    if (!is_console(peer) || peer->watch)
        return;
    if (!strcmp(word, "ask") && !holds) {
        if (hub->asking == peer->number)
            return;
        if (hub->holder) {
            hub->asking = peer->number;
            hub->asked_at = now;
        } else {
            hub->holder = peer->number;
        }
    } else if (!strcmp(word, "give") && holds && hub->asking) {
        hub->holder = hub->asking;
        hub->asking = 0;
    } else if (!strcmp(word, "refuse") && holds) {
        hub->asking = 0;
    } else if (!strcmp(word, "drop") && holds) {
        hub->holder = hub->asking;
        hub->asking = 0;
    } else {
        return;
    }
    announce(hub);
}

void hub_control_tick(struct hub *hub, double now) {
    if (!hub->asking || now - hub->asked_at < hub->options.control_seconds)
        return;
    hub->holder = hub->asking;
    hub->asking = 0;
    announce(hub);
}

#include "tests/support/fold.h"
#include "tests/support/cmocka.h"
#include "tests/support/events.h"

void fold_apply(struct run_state *state, struct event event) {
    assert_int_equal(state_apply(state, &event), STATUS_OK);
}

struct event fold_start(int64_t seq, int64_t resumed_from) {
    struct event event = event_new(EVENT_RUN_START);
    event.seq = seq;
    event.time = 1700000000;
    event.run_start.run = "quiet-harbor";
    event.run_start.model = "cifar10";
    event.run_start.towers = 2;
    event.run_start.resumed_from = resumed_from;
    return event;
}

void fold_steps(struct run_state *state, int64_t seq, int64_t first, int64_t last, int towers) {
    for (int64_t step = first; step <= last; step++) {
        struct arena arena = {0};
        fold_apply(state, events_step(seq ? seq + step - first : 0, step, towers, &arena));
        arena_free(&arena);
    }
}

struct event fold_command(int64_t seq, const char *text, const char *status, int64_t step) {
    struct event event = event_new(EVENT_COMMAND);
    event.seq = seq;
    event.command.text = text;
    event.command.status = status;
    event.command.step = step;
    return event;
}

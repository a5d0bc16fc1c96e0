/* How often a console draws: as it is set to where few share the machine's processors, less often in a crowd,
 * and never in step with the others. */
#include <math.h>

#include "tests/support/cmocka.h"
#include "tui/beat.h"

static void expect_near(double found, double wanted) {
    if (!(fabs(found - wanted) <= 1e-12))
        fail_msg("found %g, expected %g", found, wanted);
}

static void few_draw_as_they_are_set(void **state) {
    (void)state;
    expect_near(beat_interval(0.2, 0, 2), 0.2); /* not known yet */
    expect_near(beat_interval(0.2, 1, 1), 0.2);
    expect_near(beat_interval(0.2, 4, 2), 0.2);
    expect_near(beat_interval(0.2, 128, 64), 0.2); /* a large machine has room for all */
    expect_near(beat_interval(0.05, 20, 10), 0.05);
}

static void a_crowd_shares_their_frames(void **state) {
    (void)state;
    expect_near(beat_interval(0.2, 20, 2), 1);
    expect_near(beat_interval(0.2, 20, 1), 2);
    expect_near(beat_interval(0.2, 20, 8), 0.25);
    for (int processors = 1; processors <= 64; processors *= 4) {
        double few = BEAT_CONSOLES * processors / 0.2; /* frames of them all in a second */
        for (int consoles = 1; consoles <= 20 * processors; consoles++)
            assert_true(consoles / beat_interval(0.2, consoles, processors) <= few + 1e-9);
        expect_near(20 * processors / beat_interval(0.2, 20 * processors, processors) / few, 1);
    }
}

static void no_crowd_stops_a_console(void **state) {
    (void)state;
    expect_near(beat_interval(0.2, 200, 2), BEAT_SLOWEST);
    expect_near(beat_interval(0.2, 1e18, 1), BEAT_SLOWEST);
    expect_near(beat_interval(0.2, -1e18, 1), 0.2); /* an engine that says nonsense */
    expect_near(beat_interval(1, 20, 2), BEAT_SLOWEST);
    expect_near(beat_interval(10, 200, 2), 10); /* as it is set */
    for (int consoles = 1; consoles < 300; consoles++)
        assert_true(beat_interval(0.2, consoles, 2) <= beat_interval(0.2, consoles + 1, 2));
}

static void each_has_a_beat_of_its_own(void **state) {
    (void)state;
    enum { PROCESSES = 1000, PARTS = 10 };
    int parts[PARTS] = {0};
    for (int64_t process = 4000; process < 4000 + PROCESSES; process++) {
        double beat = beat_own(process);
        assert_true(beat >= 1 && beat < 1.1);
        expect_near(beat, beat_own(process));
        parts[(int)((beat - 1) * 10 * PARTS)]++;
    }
    for (int i = 0; i < PARTS; i++) /* neighbours by number are spread over all of it */
        if (parts[i] < PROCESSES / PARTS / 2)
            fail_msg("%d of %d processes in part %d of %d", parts[i], PROCESSES, i, PARTS);
}

static void there_is_a_processor(void **state) {
    (void)state;
    assert_true(beat_processors() >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_draw_as_they_are_set), cmocka_unit_test(a_crowd_shares_their_frames),
        cmocka_unit_test(no_crowd_stops_a_console), cmocka_unit_test(each_has_a_beat_of_its_own),
        cmocka_unit_test(there_is_a_processor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The record: what is written comes back, whatever a crash or a full disk did to the file. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/wire/codec.h"
#include "engine/wire/record.h"
#include "tests/support/cmocka.h"
#include "tests/support/events.h"

static char folder[512], path[600];

static int make_folder(void **context) {
    (void)context;
    const char *tmp = getenv("TEST_TMP");
    snprintf(folder, sizeof folder, "%s/record.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/%s", folder, RECORD_FILE);
    return 0;
}

static int remove_folder(void **context) {
    (void)context;
    unlink(path);
    return rmdir(folder);
}

static struct record_writer *open_writer(void) {
    struct record_writer *writer;
    if (record_writer_open(folder, &writer) != STATUS_OK)
        fail_msg("%s", status_text());
    return writer;
}

static enum status append_note(struct record_writer *writer, int64_t seq, const char *text) {
    struct arena arena = {0};
    struct event note = event_new(EVENT_NOTE);
    note.seq = seq;
    note.note.step = seq;
    note.note.text = text;
    char *line;
    size_t length;
    assert_int_equal(event_encode(&note, &arena, &line, &length), STATUS_OK);
    enum status status = record_append(writer, line, length, seq);
    arena_free(&arena);
    return status;
}

static void append_bytes(const char *bytes, size_t length) {
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* Read on: the seq numbers of the events there are, the sum of them. */
static int read_all(struct record_reader *reader, int64_t until, int64_t *sum) {
    struct arena arena = {0};
    struct event event;
    int count = 0;
    enum status status;
    *sum = 0;
    while ((status = record_next(reader, until, &arena, &event)) == STATUS_OK) {
        count++;
        *sum += event.seq;
        arena_reset(&arena);
    }
    assert_int_equal(status, STATUS_BUSY);
    arena_free(&arena);
    return count;
}

static struct record_reader *open_reader(int64_t offset) {
    struct record_reader *reader;
    if (record_reader_open(folder, offset, &reader) != STATUS_OK)
        fail_msg("%s", status_text());
    return reader;
}

static void lines_come_back_as_they_are_written(void **context) {
    (void)context;
    struct record_writer *writer = open_writer();
    assert_int_equal(record_last_seq(writer), 0);
    struct record_reader *reader = open_reader(0);
    int64_t sum, middle = 0;
    assert_int_equal(read_all(reader, -1, &sum), 0);
    for (int64_t seq = 1; seq <= 1000; seq++) {
        assert_int_equal(append_note(writer, seq, "hello"), STATUS_OK);
        if (seq == 500)
            middle = record_offset(writer);
        if (seq % 100 == 0 && seq != 500) {
            assert_int_equal(read_all(reader, -1, &sum), seq == 600 ? 200 : 100);
        }
    }
    assert_int_equal(read_all(reader, -1, &sum), 0);
    assert_int_equal(record_reader_offset(reader), record_offset(writer));
    assert_int_equal(record_seek(reader, 0), STATUS_OK);
    assert_int_equal(read_all(reader, middle, &sum), 500);
    assert_int_equal(sum, 500 * 501 / 2);
    assert_int_equal(record_reader_offset(reader), middle);
    assert_int_equal(read_all(reader, -1, &sum), 500);
    int64_t tail;
    assert_int_equal(record_tail(reader, 10, &tail), STATUS_OK);
    assert_int_equal(record_seek(reader, tail), STATUS_OK);
    assert_int_equal(read_all(reader, -1, &sum), 10);
    assert_int_equal(sum, 10 * (991 + 1000) / 2);
    assert_int_equal(record_tail(reader, 1000, &tail), STATUS_OK);
    assert_int_equal(tail, 0);
    assert_int_equal(record_reader_damaged(reader), 0);
    record_reader_close(reader);
    record_writer_close(writer);
}

static void a_torn_last_line_is_cut_and_numbers_go_on(void **context) {
    (void)context;
    struct record_writer *writer = open_writer();
    for (int64_t seq = 1; seq <= 5; seq++)
        assert_int_equal(append_note(writer, seq, "a"), STATUS_OK);
    int64_t whole = record_offset(writer), sum;
    record_writer_close(writer);
    append_bytes("{\"event\":\"note\",\"se", 19);
    struct record_reader *reader = open_reader(0);
    assert_int_equal(read_all(reader, -1, &sum), 5);
    assert_int_equal(record_reader_torn(reader), 19);
    writer = open_writer();
    assert_int_equal(record_last_seq(writer), 5);
    assert_int_equal(record_offset(writer), whole);
    assert_int_equal(append_note(writer, 6, "the line after a crash, longer than the torn one"), STATUS_OK);
    assert_int_equal(read_all(reader, -1, &sum), 1); /* a reader that saw the torn piece goes on, too */
    assert_int_equal(sum, 6);
    assert_int_equal(record_reader_damaged(reader), 0);
    assert_int_equal(record_reader_torn(reader), 0);
    record_reader_close(reader);
    record_writer_close(writer);
    /* nothing but a torn line */
    assert_int_equal(truncate(path, 7), 0);
    writer = open_writer();
    assert_true(record_last_seq(writer) == 0 && record_offset(writer) == 0);
    record_writer_close(writer);
}

static void damage_is_skipped_and_counted(void **context) {
    (void)context;
    struct record_writer *writer = open_writer();
    assert_int_equal(append_note(writer, 1, "a"), STATUS_OK);
    record_writer_close(writer);
    static char huge[300000];
    memset(huge, 'x', sizeof huge);
    huge[sizeof huge - 1] = '\n';
    append_bytes(huge, sizeof huge);
    append_bytes("\n\0\0\0\n{}\n", 8);
    append_bytes("{\"event\":\"note\",\"seq\":9}\n{\"event\":\"later\",\"seq\":10}\n", 53);
    struct record_reader *reader = open_reader(0);
    int64_t sum;
    assert_int_equal(read_all(reader, -1, &sum), 3);
    assert_int_equal(sum, 1 + 9 + 10);
    assert_int_equal(record_reader_damaged(reader), 4);
    record_reader_close(reader);
    writer = open_writer();
    assert_int_equal(record_last_seq(writer), 10);
    record_writer_close(writer);
    append_bytes("what\nis\nthis\n", 13); /* three lines had numbers */
    writer = open_writer();
    assert_int_equal(record_last_seq(writer), 13);
    record_writer_close(writer);
    assert_int_equal(truncate(path, 0), 0);
    append_bytes("what\nis\nthis\n", 13);
    assert_int_equal(record_writer_open(folder, &writer), STATUS_BAD_INPUT);
    assert_non_null(strstr(status_text(), RECORD_FILE));
}

static void every_cut_of_a_record_can_be_read(void **context) {
    (void)context;
    struct record_writer *writer = open_writer();
    int64_t ends[21] = {0}, sum;
    for (int64_t seq = 1; seq <= 20; seq++) {
        assert_int_equal(append_note(writer, seq, "x"), STATUS_OK);
        ends[seq] = record_offset(writer);
    }
    record_writer_close(writer);
    for (int64_t size = ends[20]; size >= 0; size--) {
        assert_int_equal(truncate(path, size), 0);
        int64_t lines = 20;
        while (ends[lines] > size)
            lines--;
        struct record_reader *reader = open_reader(0);
        assert_int_equal(read_all(reader, -1, &sum), lines);
        assert_int_equal(record_reader_torn(reader), size - ends[lines]);
        record_reader_close(reader);
    }
}

static void a_full_disk_loses_nothing_that_fits_in_memory(void **context) {
    (void)context;
    signal(SIGXFSZ, SIG_IGN);
    struct record_writer *writer = open_writer();
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit small = {1000, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int64_t seq = 1, sum;
    while (append_note(writer, seq, "some words, so that a line is cut in its middle") == STATUS_OK)
        seq++;
    assert_non_null(strstr(status_text(), RECORD_FILE));
    struct record_reader *reader = open_reader(0);
    assert_int_equal(read_all(reader, -1, &sum), seq - 1);
    assert_int_equal(record_reader_torn(reader), 0); /* no piece of a line */
    assert_int_equal(record_last_seq(writer), seq - 1);
    for (int i = 0; i < 500; i++)
        assert_int_equal(append_note(writer, ++seq, "waits"), STATUS_IO);
    assert_int_equal(record_retry(writer), STATUS_IO);
    size_t length;
    int64_t first = 0;
    assert_non_null(record_waiting(writer, 0, &length, &first));
    assert_int_equal(first, record_last_seq(writer) + 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(record_retry(writer), STATUS_OK);
    assert_null(record_waiting(writer, 0, &length, &first));
    assert_int_equal(record_last_seq(writer), seq);
    assert_int_equal(record_lost(writer), 0);
    assert_int_equal(record_seek(reader, 0), STATUS_OK);
    assert_int_equal(read_all(reader, -1, &sum), seq);
    assert_int_equal(sum, seq * (seq + 1) / 2);
    record_reader_close(reader);
    record_writer_close(writer);
}

static void what_does_not_fit_in_memory_is_counted(void **context) {
    (void)context;
    assert_int_equal(symlink("/dev/full", path), 0);
    struct record_writer *writer = open_writer();
    static char text[60000];
    memset(text, 'x', sizeof text - 1);
    for (int64_t seq = 1; seq <= 400; seq++) /* 24 MB */
        assert_int_equal(append_note(writer, seq, text), STATUS_IO);
    size_t length;
    int64_t first, waiting = 0;
    while (record_waiting(writer, waiting, &length, &first))
        waiting++;
    assert_true(waiting > 200 && waiting < 400);
    assert_int_equal(record_lost(writer) + waiting, 400);
    assert_int_equal(first, 400);
    record_writer_close(writer);
}

/* All that was written comes again, and the next lines go behind it. */
static void a_file_that_was_removed_is_made_again(void **context) {
    (void)context;
    struct record_writer *writer = open_writer();
    struct record_reader *reader;
    int64_t sum;
    char moved[600];
    for (int64_t seq = 1; seq <= 3; seq++)
        assert_int_equal(append_note(writer, seq, "text"), STATUS_OK);
    int fd = open(folder, O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    snprintf(moved, sizeof moved, "%s/moved", folder);
    for (int round = 0; round < 2; round++) {
        assert_false(record_unlinked(writer));
        assert_int_equal(round == 0 ? unlink(path) : rename(path, moved), 0);
        assert_true(record_unlinked(writer));
        assert_int_equal(append_note(writer, 4 + 2 * round, "while it has no name"), STATUS_OK);
        assert_int_equal(mkdir(path, 0700), 0); /* what lies in its place stays */
        assert_int_equal(record_restore(writer, fd, folder), STATUS_REFUSED);
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(record_restore(writer, fd, folder), STATUS_OK);
        assert_false(record_unlinked(writer));
        assert_int_equal(append_note(writer, 5 + 2 * round, "text"), STATUS_OK);
    }
    assert_int_equal(record_reader_open(folder, 0, &reader), STATUS_OK);
    assert_int_equal(read_all(reader, -1, &sum), 7);
    assert_int_equal(sum, 7 * 8 / 2);
    assert_int_equal(record_reader_size(reader), record_offset(writer));
    record_reader_close(reader);
    record_writer_close(writer);
    assert_int_equal(unlink(moved), 0);
    close(fd);
}

static void what_is_no_record_is_refused(void **context) {
    (void)context;
    struct record_reader *reader;
    assert_int_equal(record_reader_open(folder, 0, &reader), STATUS_NOT_FOUND);
    assert_non_null(strstr(status_text(), RECORD_FILE));
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(record_reader_open(folder, 0, &reader), STATUS_IO);
    struct record_writer *writer;
    assert_int_equal(record_writer_open(folder, &writer), STATUS_IO);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(record_reader_open(folder, 0, &reader), STATUS_IO);
    assert_int_equal(record_writer_open(folder, &writer),
                     STATUS_BAD_INPUT); /* not taken, and not waited for */
    assert_non_null(strstr(status_text(), "is a pipe or a socket; a file is expected"));
}

/* A terabyte that was never written, within the record and at its end: nobody reads through it. */
/* Some editors and copies put it there. */
static void a_byte_order_mark_is_no_part_of_the_first_line(void **context) {
    (void)context;
    append_bytes("\xEF\xBB\xBF{\"event\":\"note\",\"seq\":1}\n", 28);
    append_bytes("\xEF\xBB\xBF{\"event\":\"note\",\"seq\":2}\n{\"event\":\"note\",\"seq\":3}\n", 53);
    int64_t sum;
    struct record_reader *reader = open_reader(0);
    assert_int_equal(read_all(reader, -1, &sum), 2);
    assert_int_equal(sum, 1 + 3);
    assert_int_equal(record_reader_damaged(reader), 1);
    assert_int_equal(record_reader_offset(reader), record_reader_size(reader));
    record_reader_close(reader);
}

static void a_hole_is_stepped_over(void **context) {
    (void)context;
    const int64_t much = INT64_C(1) << 40;
    struct record_writer *writer = open_writer();
    for (int64_t seq = 1; seq <= 3; seq++)
        assert_int_equal(append_note(writer, seq, "a"), STATUS_OK);
    int64_t whole = record_offset(writer), offset, sum;
    record_writer_close(writer);
    int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (ftruncate(fd, much) != 0 || lseek(fd, whole + 65536, SEEK_DATA) >= 0) {
        close(fd);
        skip(); /* this file system has no such files, or tells nothing of holes */
    }
    assert_in_range(record_data_end(fd, much), whole, whole + 65536);
    struct record_reader *reader = open_reader(0);
    assert_int_equal(read_all(reader, -1, &sum), 3);
    assert_int_equal(record_reader_damaged(reader), 1);
    assert_int_equal(record_tail(reader, 2, &offset), STATUS_OK);
    assert_true(offset > 0 && offset < whole);
    record_reader_close(reader);
    append_bytes("\n{\"event\":\"note\",\"seq\":9}\n", 26);
    assert_int_equal(ftruncate(fd, 2 * much), 0);
    reader = open_reader(0);
    assert_int_equal(read_all(reader, -1, &sum), 4);
    assert_int_equal(sum, 1 + 2 + 3 + 9);
    assert_int_equal(record_reader_damaged(reader), 2);
    record_reader_close(reader);
    writer = open_writer();
    assert_true(record_last_seq(writer) == 9 && record_offset(writer) == much + 26);
    record_writer_close(writer);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(lines_come_back_as_they_are_written),
        TEST(a_torn_last_line_is_cut_and_numbers_go_on),
        TEST(damage_is_skipped_and_counted),
        TEST(every_cut_of_a_record_can_be_read),
        TEST(a_full_disk_loses_nothing_that_fits_in_memory),
        TEST(what_does_not_fit_in_memory_is_counted),
        TEST(a_file_that_was_removed_is_made_again),
        TEST(what_is_no_record_is_refused),
        TEST(a_byte_order_mark_is_no_part_of_the_first_line),
        TEST(a_hole_is_stepped_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

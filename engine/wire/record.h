/* The record of a run, FOLDER/events.jsonl: one event a line, numbered from 1 without holes, only ever
 * appended to. */
#ifndef TOWERSCOPE_ENGINE_WIRE_RECORD_H
#define TOWERSCOPE_ENGINE_WIRE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/wire/event.h"
#include "kernels/status.h"

#define RECORD_FILE "events.jsonl"

/* ---- writing */

struct record_writer;

/* Open FOLDER's record for appending; the caller holds the folder's lock. A last line that was torn by a
 * crash is cut off. Numbers go on after the last one of the record. STATUS_IO; STATUS_BAD_INPUT: there is a
 * record and its end can't be read. */
enum status record_writer_open(const char *folder, struct record_writer **out);

/* What is not yet written is tried once more; NULL is fine. */
void record_writer_close(struct record_writer *writer);

/* Append whole lines. A line that the disk does not take is kept (up to 16 MiB of them, then the oldest is
 * given up and counted) and tried again by record_retry; a piece of a line never stays in the file.
 * STATUS_IO: lines are waiting, the sentence says why. */
enum status record_append(struct record_writer *writer, const char *line, size_t length, int64_t seq);

/* Try the waiting lines again. STATUS_OK: none wait any more. */
enum status record_retry(struct record_writer *writer);

int64_t record_last_seq(const struct record_writer *writer); /* written; 0: none */
int64_t record_offset(const struct record_writer *writer);   /* bytes written: where the next line begins */
int64_t record_lost(const struct record_writer *writer);     /* lines given up */
bool record_unlinked(const struct record_writer *writer);    /* somebody removed or renamed the file */

/* Put the record where it belongs again, with all that was written so far: into the folder with this
 * descriptor, at `folder` for the sentences. For a record that somebody removed or renamed, also with its
 * folder: what is open can still be read. On failure the old file is written on. STATUS_IO; STATUS_REFUSED:
 * something else is in its place. */
enum status record_restore(struct record_writer *writer, int folder_fd, const char *folder);

/* The folder was moved, with the record in it: for the sentences. */
void record_moved(struct record_writer *writer, const char *folder);

/* Bring what is written of the record in the folder with this descriptor to the disk, its name too: so that
 * what is written afterwards is never ahead of it, whenever the power goes. STATUS_OK also where there is
 * none just now, or one that can't be brought there (a device). STATUS_IO. */
enum status record_sync(int folder_fd);

/* The lines that wait, oldest first: line i, or NULL past the end. */
const char *record_waiting(const struct record_writer *writer, int64_t i, size_t *length, int64_t *seq);

/* ---- reading */

struct record_reader;

/* Open a record for reading from byte `offset` on, which is the beginning of a line. `path` is the file, or a
 * run's folder. STATUS_NOT_FOUND, STATUS_IO. Close with record_reader_close (NULL is fine). */
enum status record_reader_open(const char *path, int64_t offset, struct record_reader **out);
void record_reader_close(struct record_reader *reader);

/* The next event before byte `until` (-1: the end of the file as it is now). STATUS_BUSY: there is none
 * (yet): the file ends here, or in a line that is not whole; ask again when it has grown. Lines that can't be
 * read are skipped and counted. An event of an unknown kind is given with kind EVENT_NONE. */
enum status record_next(struct record_reader *reader, int64_t until, struct arena *arena, struct event *out);

/* The next line itself, newline included, a byte order mark at the head of the file left out; good until the
 * next call. */
enum status record_next_line(struct record_reader *reader, int64_t until, const char **line, size_t *length);

int64_t record_reader_offset(const struct record_reader *reader);  /* where the next line begins */
int64_t record_reader_damaged(const struct record_reader *reader); /* lines that could not be read */
int64_t record_reader_size(const struct record_reader *reader);    /* bytes of the file now */
/* Bytes after the last whole line, when at the end. */
int64_t record_reader_torn(const struct record_reader *reader);

/* Where the last bytes of a record's file of this size end that are no hole: what follows are zeros that were
 * never written (a crash of the machine, a disk that was full), and no lines. Moves the descriptor's place.
 */
int64_t record_data_end(int fd, int64_t size);

/* Go on from another line's beginning. */
enum status record_seek(struct record_reader *reader, int64_t offset);

/* The last byte offset from which on the record holds at least `lines` whole lines (0: fewer in all). Reads
 * only the end of the file: when that has too few lines (a file of zeros), the offset lies inside a line. */
enum status record_tail(struct record_reader *reader, int64_t lines, int64_t *offset);

#endif

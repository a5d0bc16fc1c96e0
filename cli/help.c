#include "cli/help.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "tui/canvas.h"

enum { COLUMNS_MIN = 40, COLUMNS_MAX = 110, COLUMNS_PAGER = 79, HANG = 8, PART_MIN = 20 };

static int columns_of(FILE *to) {
    struct winsize size;
    if (!isatty(fileno(to)) || ioctl(fileno(to), TIOCGWINSZ, &size) || size.ws_col == 0)
        return COLUMNS_PAGER;
    int columns = size.ws_col - 1;
    return columns < COLUMNS_MIN ? COLUMNS_MIN : columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
}

/* The column of the second part of a line; 0: it has one part. */
static int second_part(const char *line, size_t bytes, size_t indent) {
    for (size_t i = indent; i + 2 < bytes; i++)
        if (line[i] == ' ' && line[i + 1] == ' ') {
            while (i < bytes && line[i] == ' ')
                i++;
            return (int)i;
        }
    return 0;
}

/* Where what does not fit goes on. A first part that fills its column is followed by a single blank: such a
 * line hangs as the one before it. */
static int hang_of(const char *line, size_t bytes, size_t indent, int before, int columns) {
    if (indent == 0 && strncmp(line, "usage:", 6) != 0)
        return 0;
    int hang = second_part(line, bytes, indent);
    if (hang == 0)
        hang = before > 0 ? before : (int)indent + HANG;
    return columns - hang < PART_MIN ? HANG : hang;
}

/* Whether a line goes on with what the line before it began. */
static bool goes_on(const char *line, size_t bytes, size_t indent, int hang, bool prose) {
    if (bytes == 0)
        return false;
    if (indent == 0)
        return prose && strncmp(line, "usage:", 6) != 0;
    return hang > HANG && (int)indent == hang;
}

static void put_folded(const char *text, int hang, int columns, FILE *to) {
    int room = columns;
    while (*text) {
        size_t bytes = text_fit(text, room), shown = bytes;
        while (shown > 0 && text[shown - 1] == ' ')
            shown--;
        fprintf(to, "%.*s\n", (int)shown, text);
        text += bytes + strspn(text + bytes, " ");
        if (*text)
            fprintf(to, "%*s", hang, "");
        room = columns - hang;
    }
}

void help_fold(const char *text, int columns, FILE *to) {
    char whole[2048];
    int before = 0;
    while (*text) {
        size_t bytes = strcspn(text, "\n"), indent = strspn(text, " "), used = 0;
        if (bytes == 0) {
            fputc('\n', to);
            before = 0;
            text++;
            continue;
        }
        bool prose = indent == 0 && strncmp(text, "usage:", 6) != 0;
        int hang = hang_of(text, bytes, indent, before, columns),
            column = prose ? 0 : second_part(text, bytes, indent);
        do {
            used += (size_t)snprintf(whole + used, sizeof whole - used, "%s%.*s", used ? " " : "",
                                     (int)(bytes - (used ? indent : 0)), text + (used ? indent : 0));
            text += bytes + (text[bytes] == '\n');
            bytes = strcspn(text, "\n");
            indent = strspn(text, " ");
        } while (used + bytes + 2 < sizeof whole && goes_on(text, bytes, indent, column, prose));
        put_folded(whole, hang, columns, to);
        before = prose ? 0 : hang;
    }
}

void help_text(const char *text, FILE *to) {
    help_fold(text, columns_of(to), to);
}

int help_print(void (*write)(FILE *to)) {
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    if (memory) {
        write(memory);
        if (fclose(memory) == 0 && text)
            help_text(text, stdout);
    }
    if (!text)
        write(stdout);
    free(text);
    return EXIT_DONE;
}

#include "datasets/format.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/source.h"
#include "engine/base/memory.h"
#include "engine/base/printable.h"

char *folder_path(const char *folder, const char *name) {
    char *path = NULL;
    size_t length = strlen(folder);
    const char *slash = length != 0 && folder[length - 1] == '/' ? "" : "/";
    return asprintf(&path, "%s%s%s", folder, slash, name) < 0 ? NULL : path;
}

enum status folder_find(const char *folder, const char *const *names, char **path) {
    *path = NULL;
    enum status seen = STATUS_NOT_FOUND;
    for (; *names; names++) {
        char *candidate = folder_path(folder, *names);
        if (!candidate)
            return status_fail(STATUS_NO_MEMORY, "%s: no memory to look for its files", folder);
        struct stat info;
        if (stat(candidate, &info) == 0) {
            *path = candidate;
            return STATUS_OK;
        }
        /* A later spelling may be whole, so a broken one is only told when no other is there. */
        if (seen == STATUS_NOT_FOUND && errno != ENOENT)
            seen = source_system_failure("open", candidate, errno);
        else if (seen == STATUS_NOT_FOUND && lstat(candidate, &info) == 0)
            seen = source_system_failure("open", candidate, ENOENT);
        free(candidate);
    }
    return seen;
}

const char *folder_near(const char *folder, const char *word, const char *other, char out[NEAR_SIZE]) {
    *out = 0;
    DIR *listing = opendir(folder);
    for (const struct dirent *entry; listing && !*out && (entry = readdir(listing));)
        if (*entry->d_name != '.' && strcasestr(entry->d_name, word) && strcasestr(entry->d_name, other))
            snprintf(out, NEAR_SIZE, "; there is %.90s, which is another name", entry->d_name);
    if (listing)
        closedir(listing);
    return out;
}

static bool ends_with(const char *name, const char *end) {
    size_t length = strlen(name), size = strlen(end);
    return length >= size && !strcasecmp(name + length - size, end);
}

const char *folder_unready(const char *folder, const char *stem, char out[NEAR_SIZE]) {
    static const char pictures[] = "files of pictures are not read; put their pixels into IDX files";
    static const struct {
        const char *end, *words;
    } kinds[] = {
        {".bin.part",
         "what `towerscope data make` left when it was ended: remove the folder and make it again"},
        {".bin.gz", "unpack it with gunzip"},
        {".tar.gz", "unpack it with tar xf, and give the folder that comes of it"},
        {".png", pictures},
        {".jpg", pictures},
        {".jpeg", pictures},
    };
    *out = 0;
    DIR *listing = opendir(folder);
    for (const struct dirent *entry; listing && !*out && (entry = readdir(listing));)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (!strncmp(entry->d_name, stem, strlen(stem)) && ends_with(entry->d_name, kinds[i].end))
                snprintf(out, NEAR_SIZE, "; there is %.90s: %s", entry->d_name, kinds[i].words);
    if (listing)
        closedir(listing);
    return out;
}

enum status images_allocate(struct image_set *set, int64_t count, struct shape shape, const char *where) {
    char words[32];
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, shape_size(shape), &bytes))
        return status_fail(STATUS_BAD_INPUT,
                           "%s: %lld images of %dx%dx%d are more than this machine can address", where,
                           (long long)count, shape.h, shape.w, shape.c);
    set->pixels = malloc(bytes ? bytes : 1);
    set->labels = malloc(count ? (size_t)count : 1);
    set->count = count;
    set->shape = shape;
    if (!set->pixels || !set->labels)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory for %lld images (%s)", where, (long long)count,
                           memory_words(bytes, words));
    return STATUS_OK;
}

enum status labels_check(const char *path, const uint8_t *labels, int64_t count, int classes,
                         const char *whose, const char *hint) {
    int least = 255, most = 0;
    int64_t first = -1;
    for (int64_t i = 0; i < count; i++) {
        least = labels[i] < least ? labels[i] : least;
        most = labels[i] > most ? labels[i] : most;
        if (first < 0 && labels[i] >= classes)
            first = i;
    }
    if (first < 0)
        return STATUS_OK;
    const char *from_one = least == 1 && most == classes ? "; are they numbered from 1?" : "";
    return status_fail(STATUS_BAD_INPUT, "%s: record %lld has the %s %d; allowed are 0 to %d%s%s", path,
                       (long long)first, whose, labels[first], classes - 1, from_one, hint);
}

/* Make room for `count` names, all NULL. */
static enum status names_allocate(struct dataset *data, int count) {
    data->class_names = calloc((size_t)count, sizeof *data->class_names);
    if (!data->class_names)
        return status_fail(STATUS_NO_MEMORY, "no memory for %d class names", count);
    data->classes = count;
    return STATUS_OK;
}

enum status names_copy(struct dataset *data, const char *const *names, int count) {
    STATUS_TRY(names_allocate(data, count));
    for (int i = 0; i < count; i++)
        if (!(data->class_names[i] = strdup(names[i])))
            return status_fail(STATUS_NO_MEMORY, "no memory for %d class names", count);
    return STATUS_OK;
}

/* Cut `text` into its lines that are not blank, in place; returns how many, the first `most` in lines. */
static int cut_lines(char *text, const char **lines, int most) {
    int count = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\r\n"));) {
        line += strspn(line, " \t");
        for (size_t n = strlen(line); n != 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'); n--)
            line[n - 1] = 0;
        char clean[256]; /* names are shown on terminals */
        memcpy(line, clean, text_printable(clean, sizeof clean, line) + 1);
        if (*line && count++ < most)
            lines[count - 1] = line;
    }
    return count;
}

enum status names_read(struct dataset *data, const char *path, int expected) {
    enum { MOST_BYTES = 65536, MOST_NAMES = 256 };
    const char *lines[MOST_NAMES];
    struct source *source = NULL;
    size_t got = 0;
    char *text = malloc(MOST_BYTES + 1);
    enum status status =
        text ? source_open(path, &source) : status_fail(STATUS_NO_MEMORY, "%s: no memory to read it", path);
    if (status == STATUS_OK)
        status = source_read(source, text, MOST_BYTES + 1, &got);
    if (status == STATUS_OK && got > MOST_BYTES)
        status =
            status_fail(STATUS_BAD_INPUT, "%s is not a list of class names: it holds more than 64 KiB", path);
    if (status == STATUS_OK && memchr(text, 0, got))
        status = status_fail(STATUS_BAD_INPUT, "%s is not a list of class names: it holds bytes of 0", path);
    if (status == STATUS_OK) {
        text[got] = 0;
        int count = cut_lines(text + (strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0), lines, MOST_NAMES);
        if (expected ? count != expected : count < 2 || count > MOST_NAMES)
            status = expected ? status_fail(STATUS_BAD_INPUT, "%s holds %d class names; %d are expected",
                                            path, count, expected)
                              : status_fail(STATUS_BAD_INPUT, "%s holds %d class names; 2 to %d are expected",
                                            path, count, MOST_NAMES);
        else
            status = names_copy(data, lines, count);
    }
    source_close(source);
    free(text);
    return status;
}

void note_add(struct dataset *data, const char *format, ...) {
    char line[1024], clean[1024], *longer = NULL;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_printable(clean, sizeof clean, line);
    if (asprintf(&longer, "%swarning: %s\n", data->notes ? data->notes : "", clean) < 0)
        return;
    free(data->notes);
    data->notes = longer;
}

/* Whether a file is by its name of the kind that is read here. Texts and the archive that all came in are
 * not.
 */
static bool looks_like_data(const char *name) {
    static const char *const other[] = {".txt", ".html", ".md", ".ini", ".tar.gz", ".tgz"},
                             *const words[] = {"batch", "ubyte", "images", "labels"},
                             *const ends[] = {".bin", ".gz", ".idx"};
    bool looks = false;
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (ends_with(name, other[i]))
            return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        looks = looks || strcasestr(name, words[i]);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        looks = looks || ends_with(name, ends[i]);
    return looks && *name != '.';
}

static bool is_unused(const char *folder, const char *name, const char *const *known) {
    struct stat info;
    for (; *known; known++)
        if (!strcmp(name, *known))
            return false;
    if (!looks_like_data(name))
        return false;
    char *path = folder_path(folder, name);
    bool file = path && stat(path, &info) == 0 && S_ISREG(info.st_mode);
    free(path);
    return file;
}

void note_unused(struct dataset *data, const char *folder, const char *const *known) {
    enum { TOLD = 4 };
    struct dirent **entries;
    char names[512] = "";
    size_t used = 0;
    int unused = 0, count = scandir(folder, &entries, NULL, versionsort);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (is_unused(folder, name, known) && unused++ < TOLD)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%.90s", used ? ", " : "", name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    if (unused > TOLD)
        snprintf(names + used, sizeof names - used, " and %d more", unused - TOLD);
    if (unused > 0)
        note_add(data, "%s holds files that look like data and are not used: %s", folder, names);
}

enum { MOST_THREADS = 16 };

struct parallel {
    enum status (*work)(void *context, int index);
    void *context;
    int count;
    atomic_int next;
    pthread_mutex_t lock;
    int failed; /* lowest index that failed, or count */
    enum status status;
    char text[1024];
};

static void *parallel_thread(void *argument) {
    struct parallel *p = argument;
    for (int i; (i = atomic_fetch_add(&p->next, 1)) < p->count;) {
        enum status status = p->work(p->context, i);
        if (status == STATUS_OK)
            continue;
        pthread_mutex_lock(&p->lock);
        if (i < p->failed) {
            p->failed = i;
            p->status = status;
            snprintf(p->text, sizeof p->text, "%s", status_text());
        }
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

enum status parallel_run(int count, enum status (*work)(void *context, int index), void *context) {
    struct parallel p = {.work = work, .context = context, .count = count, .failed = count};
    pthread_t threads[MOST_THREADS];
    int started = 0, wanted = 1;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        wanted = CPU_COUNT(&set);
    if (wanted > count)
        wanted = count;
    pthread_mutex_init(&p.lock, NULL);
    /* The caller is one of the threads: with none but it everything still gets done. */
    while (started < wanted - 1 && started < MOST_THREADS &&
           pthread_create(&threads[started], NULL, parallel_thread, &p) == 0)
        started++;
    parallel_thread(&p);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&p.lock);
    return p.failed < count ? status_fail(p.status, "%s", p.text) : STATUS_OK;
}

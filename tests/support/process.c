#include "tests/support/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int64_t process_memory(pid_t pid) {
    char path[64];
    long long pages = -1;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    int found = fscanf(file, "%*d %lld", &pages);
    fclose(file);
    return found == 1 ? pages * sysconf(_SC_PAGESIZE) : -1;
}

int process_descriptors(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *list = opendir(path);
    int count = -2; /* . and .. */
    if (!list)
        return -1;
    while (readdir(list))
        count++;
    closedir(list);
    return count;
}

static double thread_seconds(int pid, const char *thread, const char *name) {
    char path[64], line[1024], words[64];
    long long user, system;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", pid, thread);
    snprintf(words, sizeof words, "(%.50s)", name);
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    const char *end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    if (!end || !strstr(line, words) ||
        sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld", &user, &system) != 2)
        return -1;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

double process_thread_seconds(pid_t pid, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *list = opendir(path);
    double seconds = -1;
    for (struct dirent *entry; list && seconds < 0 && (entry = readdir(list));)
        if (entry->d_name[0] != '.')
            seconds = thread_seconds((int)pid, entry->d_name, name);
    if (list)
        closedir(list);
    return seconds;
}

int process_shell(const char *folder, const char *format, va_list arguments) {
    char command[2000];
    int length = snprintf(command, sizeof command, "cd '%s'; ", folder);
    vsnprintf(command + length, sizeof command - (size_t)length, format, arguments);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

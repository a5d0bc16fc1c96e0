#include "cli/bench_torch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *bench_torch_name(enum bench_torch_setting setting) {
    return setting == TORCH_BEST ? "S4" : "S2";
}

/* Where Debian keeps OpenBLAS built on OpenMP; another BLAS is used when it is not installed. */
#define OPENMP_BLAS "/usr/lib/x86_64-linux-gnu/openblas-openmp"

static void set_environment(enum bench_torch_setting setting, int threads, const char *isa) {
    char text[16];
    snprintf(text, sizeof text, "%d", threads);
    setenv("OMP_NUM_THREADS", text, 1);
    setenv("MALLOC_MMAP_MAX_", "0", 1);
    setenv("MALLOC_TRIM_THRESHOLD_", "8589934592", 1);
    setenv("MALLOC_TOP_PAD_", "268435456", 1);
    if (setting == TORCH_BEST)
        setenv("LD_LIBRARY_PATH", OPENMP_BLAS, 1);
    else
        setenv("OPENBLAS_NUM_THREADS", "1", 1);
    if (!isa || strcmp(isa, "avx512") == 0)
        return;
    bool avx2 = strcmp(isa, "avx2") == 0;
    setenv("DNNL_MAX_CPU_ISA", avx2 ? "AVX2" : "SSE41", 1);
    setenv("ATEN_CPU_CAPABILITY", avx2 ? "avx2" : "default", 1);
    setenv("OPENBLAS_CORETYPE", avx2 ? "Haswell" : "Nehalem", 1);
}

static void become(const char *python, const char *script, enum bench_torch_setting setting, int threads,
                   int batch, const char *isa) {
    char threads_text[16], batch_text[16];
    snprintf(threads_text, sizeof threads_text, "%d", threads);
    snprintf(batch_text, sizeof batch_text, "%d", batch);
    set_environment(setting, threads, isa);
    bool best = setting == TORCH_BEST;
    execlp(python, python, script, "--threads", threads_text, "--batch", batch_text,
           best ? "--channels-last" : (char *)NULL, "--banded", (char *)NULL);
    _exit(127);
}

/* A line of its output, without the newline; false at its end. */
static bool read_line(int from, char *line, size_t size) {
    size_t used = 0;
    while (used + 1 < size) {
        ssize_t got = read(from, line + used, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != 1)
            return false;
        if (line[used] == '\n') {
            line[used] = '\0';
            return true;
        }
        used++;
    }
    return false;
}

enum status bench_torch_open(const char *python, const char *script, enum bench_torch_setting setting,
                             int threads, int batch, const char *isa, struct bench_torch *out) {
    *out = (struct bench_torch){0};
    if (access(script, R_OK) != 0)
        return status_fail(STATUS_UNSUPPORTED, "%s: %s; run make bench in the source's folder", script,
                           strerror(errno));
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0)
        return status_fail(STATUS_IO, "no pipe: %s", strerror(errno));
    if (pipe2(from, O_CLOEXEC) != 0) {
        close(to[0]);
        close(to[1]);
        return status_fail(STATUS_IO, "no pipe: %s", strerror(errno));
    }
    pid_t process = fork();
    if (process == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (dup2(to[0], STDIN_FILENO) < 0 || dup2(from[1], STDOUT_FILENO) < 0 ||
            dup2(null, STDERR_FILENO) < 0)
            _exit(127);
        become(python, script, setting, threads, batch, isa);
    }
    close(to[0]);
    close(from[1]);
    *out = (struct bench_torch){.process = process, .to = to[1], .from = from[0]};
    char line[128];
    if (process < 0 || !read_line(out->from, line, sizeof line) ||
        sscanf(line, "ready %31s", out->version) != 1) {
        bench_torch_close(out);
        return status_fail(STATUS_UNSUPPORTED, "%s has no PyTorch that works (Debian: python3-torch)",
                           python);
    }
    return STATUS_OK;
}

enum status bench_torch_run(struct bench_torch *torch, double seconds, double *rate) {
    char line[64];
    int length = snprintf(line, sizeof line, "%.3f\n", seconds);
    if (write(torch->to, line, (size_t)length) != length || !read_line(torch->from, line, sizeof line) ||
        sscanf(line, "%lf", rate) != 1)
        return status_fail(STATUS_IO, "PyTorch ended before its time");
    return STATUS_OK;
}

void bench_torch_close(struct bench_torch *torch) {
    if (torch->process <= 0)
        return;
    close(torch->to); /* the end of its input ends it */
    close(torch->from);
    kill(torch->process, SIGTERM);
    while (waitpid(torch->process, NULL, 0) < 0 && errno == EINTR) {
    }
    *torch = (struct bench_torch){0};
}

#include "cli/bench_library.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *name, *brief, *words, *script, *package;
    const char *options[3]; /* of the script, up to NULL */
} settings[LIBRARY_SETTINGS] = {
    [TORCH_ORDINARY] =
        {"PyTorch", "S2", "channels first, torch's LRN", "torch_step.py", "Debian: python3-torch", {NULL}},
    [TORCH_BEST] = {"PyTorch",
                    "S4",
                    "channels last, LRN as banded convolution",
                    "torch_step.py",
                    "Debian: python3-torch",
                    {"--channels-last", "--banded", NULL}},
    [TENSORFLOW_BEST] = {"TensorFlow",
                         "TF",
                         "tf.function, LRN as banded convolution",
                         "tensorflow_step.py",
                         "pip's tensorflow-cpu, and --tensorflow for its Python",
                         {NULL}},
};

const char *bench_library_name(enum bench_library_setting setting) {
    return settings[setting].name;
}

const char *bench_library_short(enum bench_library_setting setting) {
    return settings[setting].brief;
}

const char *bench_library_words(enum bench_library_setting setting) {
    return settings[setting].words;
}

/* Where Debian keeps OpenBLAS built on OpenMP; another BLAS is used when it is not installed. */
#define OPENMP_BLAS "/usr/lib/x86_64-linux-gnu/openblas-openmp"

static void set_environment(enum bench_library_setting setting, int threads, const char *isa) {
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

static void become(const struct bench_library_request *r, const char *script) {
    char threads[16], batch[16];
    snprintf(threads, sizeof threads, "%d", r->threads);
    snprintf(batch, sizeof batch, "%d", r->batch);
    set_environment(r->setting, r->threads, r->isa);
    const char *const *options = settings[r->setting].options;
    execlp(r->python, r->python, script, "--threads", threads, "--batch", batch, options[0], options[1],
           (char *)NULL);
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

enum status bench_library_open(const struct bench_library_request *r, struct bench_library *out) {
    *out = (struct bench_library){0};
    char script[PATH_MAX];
    if ((size_t)snprintf(script, sizeof script, "%s/%s", r->scripts, settings[r->setting].script) >=
        sizeof script)
        return status_fail(STATUS_UNSUPPORTED, "--scripts: a path of over %d bytes", PATH_MAX);
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
        become(r, script);
    }
    close(to[0]);
    close(from[1]);
    *out = (struct bench_library){.process = process, .to = to[1], .from = from[0]};
    char line[128];
    if (process < 0 || !read_line(out->from, line, sizeof line) ||
        sscanf(line, "ready %31s", out->version) != 1) {
        bench_library_close(out);
        return status_fail(STATUS_UNSUPPORTED, "%s has no %s that works (%s)", r->python,
                           settings[r->setting].name, settings[r->setting].package);
    }
    return STATUS_OK;
}

enum status bench_library_run(struct bench_library *library, double seconds, double *rate) {
    char line[64];
    int length = snprintf(line, sizeof line, "%.3f\n", seconds);
    if (write(library->to, line, (size_t)length) != length || !read_line(library->from, line, sizeof line) ||
        sscanf(line, "%lf", rate) != 1)
        return status_fail(STATUS_IO, "the library beside us ended before its time");
    return STATUS_OK;
}

void bench_library_close(struct bench_library *library) {
    if (library->process <= 0)
        return;
    close(library->to); /* the end of its input ends it */
    close(library->from);
    kill(library->process, SIGTERM);
    while (waitpid(library->process, NULL, 0) < 0 && errno == EINTR) {
    }
    *library = (struct bench_library){0};
}

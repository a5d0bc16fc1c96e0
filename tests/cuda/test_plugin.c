/* The GPU plugin as a file: what it asks of the machine, and the architectures it has code for. Nothing of it
 * runs. */
#include "tests/support/cmocka.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIP = 77, ARCHITECTURE_MAX = 999 };

static unsigned char *file;
static size_t file_size;

static bool read_plugin(void) {
    char path[512];
    const char *build = getenv("BUILD");
    snprintf(path, sizeof path, "%s/backend_cuda.so", build ? build : ".");
    FILE *in = fopen(path, "rb");
    if (!in)
        return false;
    fseek(in, 0, SEEK_END);
    file_size = (size_t)ftell(in);
    rewind(in);
    file = malloc(file_size);
    bool whole = file && fread(file, 1, file_size, in) == file_size;
    fclose(in);
    return whole;
}

static const Elf64_Shdr *section(const char *name) {
    const Elf64_Ehdr *head = (const void *)file;
    const Elf64_Shdr *all = (const void *)(file + head->e_shoff);
    const char *names = (const char *)file + all[head->e_shstrndx].sh_offset;
    for (int i = 0; i < head->e_shnum; i++)
        if (!strcmp(names + all[i].sh_name, name))
            return &all[i];
    fail_msg("no section %s", name);
    return NULL;
}

/* The driver's library is found by the runtime, so that the plugin loads where there is none. */
static void test_needed(void **state) {
    (void)state;
    const Elf64_Shdr *dynamic = section(".dynamic");
    const char *strings = (const char *)file + section(".dynstr")->sh_offset;
    const Elf64_Dyn *entry = (const void *)(file + dynamic->sh_offset);
    bool cudart = false, cublas = false, cudnn = false, nccl = false;
    for (; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag != DT_NEEDED)
            continue;
        const char *name = strings + entry->d_un.d_val;
        if (!strncmp(name, "libcuda.so", 10) || !strncmp(name, "libnvidia", 9))
            fail_msg("linked to the driver: %s", name);
        cudart |= !strncmp(name, "libcudart.so", 12);
        cublas |= !strncmp(name, "libcublas.so", 12);
        cudnn |= !strncmp(name, "libcudnn.so", 11);
        nccl |= !strncmp(name, "libnccl.so", 10);
    }
    assert_true(cudart);
    assert_true(cublas);
    assert_true(cudnn);
    assert_true(nccl);
}

/* A fat binary: a head, then one entry per architecture. Only the fields that are read here. */
struct fat_head {
    uint32_t magic;
    uint16_t version, head_bytes;
    uint64_t bytes; /* of the entries */
};

struct fat_entry {
    uint16_t kind; /* 1: PTX, 2: machine code */
    uint16_t unknown;
    uint32_t head_bytes;
    uint64_t bytes;
    uint32_t compressed, unknown2;
    uint16_t minor, major;
    uint32_t architecture;
};

static void check_fat_binary(const unsigned char *at, const unsigned char *end) {
    static const int wanted[] = {75, 80, 86, 90, 100, 120};
    bool code[ARCHITECTURE_MAX + 1] = {false}, ptx[ARCHITECTURE_MAX + 1] = {false};
    while (at + sizeof(struct fat_entry) <= end) {
        struct fat_entry entry;
        memcpy(&entry, at, sizeof entry);
        assert_true(entry.architecture <= ARCHITECTURE_MAX);
        assert_true(entry.head_bytes >= sizeof entry && entry.head_bytes <= 4096);
        (entry.kind == 1 ? ptx : code)[entry.architecture] = true;
        at += entry.head_bytes + entry.bytes;
    }
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!code[wanted[i]])
            fail_msg("no code for sm_%d", wanted[i]);
    if (!ptx[120])
        fail_msg("no PTX for what comes after sm_120");
}

/* Each source of kernels brings a fat binary. */
static void test_architectures(void **state) {
    (void)state;
    const Elf64_Shdr *fat = section(".nv_fatbin");
    const unsigned char *at = file + fat->sh_offset, *end = at + fat->sh_size;
    int count = 0;
    while (at + sizeof(struct fat_head) <= end) {
        struct fat_head head;
        memcpy(&head, at, sizeof head);
        if (head.magic != 0xba55ed50) { /* filling between two */
            at += 8;
            continue;
        }
        assert_true(head.bytes <= (size_t)(end - at) - head.head_bytes);
        at += head.head_bytes;
        check_fat_binary(at, at + head.bytes);
        at += head.bytes;
        count++;
    }
    print_message("%d fat binaries\n", count);
    assert_true(count >= 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_needed), cmocka_unit_test(test_architectures)};
    if (!read_plugin()) {
        printf("this build has no GPU plugin: no CUDA toolkit was found\n");
        return SKIP;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(file);
    return failed;
}

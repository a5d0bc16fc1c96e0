/* A libnvidia-ml of one GPU that says what the test wants. */
#ifndef TOWERSCOPE_TESTS_CUDA_FAKE_NVML_H
#define TOWERSCOPE_TESTS_CUDA_FAKE_NVML_H

#include <pthread.h>

struct fake_nvml {
    pthread_mutex_t lock;
    pthread_cond_t asked_again;
    int rounds;       /* how often the GPU was looked up */
    int started;      /* starts minus stops */
    int start_error;  /* what the start gives */
    int lookup_error; /* what looking the GPU up gives */
    int power_error;  /* what asking for power gives */
    unsigned use, celsius, milliwatts, mhz;
    unsigned long long used, total;
};

/* The bus of the one GPU. */
#define FAKE_NVML_BUS "0000:3b:00.0"

struct fake_nvml *fake_nvml(void);

#endif

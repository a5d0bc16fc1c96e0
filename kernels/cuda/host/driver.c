#include "kernels/cuda/host/driver.h"

#include <unistd.h>

bool cuda_driver_present(void) {
    static const char *const files[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/nvgpu",
                                        "/dev/nvhost-gpu"};
    for (unsigned i = 0; i < sizeof files / sizeof *files; i++)
        if (!access(files[i], F_OK))
            return true;
    return false;
}

const char *cuda_driver_absence(void) {
    return "no NVIDIA driver on this machine: there is no /dev/nvidiactl";
}

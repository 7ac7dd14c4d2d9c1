/* A stand-in for libcuda.so.1: as many cards as INFEROPS_FAKE_CUDA names bandwidths, "1600,1500" in GB/s.
 * Copies take as long as such a card would need, when they are waited for. "fail NAME CODE" entries separated by ';' follow:
 * INFEROPS_FAKE_CUDA="1600,1600;fail cuMemAlloc_v2 2". "hang NAME" never returns. Without
 * the variable the same line is read of /etc/inferops-fake/cuda.conf. Names and arguments: CUDA driver API. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int current = 0;
static double queued_bytes = 0;
static size_t taken = 0, sizes[1024];
static unsigned int made = 0;

/* The environment, else the one line of /etc/inferops-fake/cuda.conf. */
static const char *setting_of_host(void) {
    static char line[512];
    const char *set = getenv("INFEROPS_FAKE_CUDA");
    FILE *file = set ? NULL : fopen("/etc/inferops-fake/cuda.conf", "re");
    if (set || !file) return set;
    if (!fgets(line, sizeof line, file)) line[0] = 0;
    fclose(file);
    line[strcspn(line, "\r\n")] = 0;
    return line;
}

static int asked(const char *name) {
    const char *setting = setting_of_host(), *at = setting ? strchr(setting, ';') : NULL;
    while (at) {
        char word[64];
        int code = 0;
        if (sscanf(at + 1, "fail %63s %d", word, &code) == 2 && !strcmp(word, name)) return code;
        if (sscanf(at + 1, "hang %63[^;]", word) == 1 && !strcmp(word, name)) for (;;) pause();
        at = strchr(at + 1, ';');
    }
    return 0;
}

static double bandwidth(int card) {
    const char *at = setting_of_host();
    for (; at && card > 0; card--) at = strpbrk(at, ",;") ? strpbrk(at, ",;") + 1 : NULL;
    return at ? atof(at) : 0;
}

int cuInit(unsigned int flags) { (void)flags; return asked("cuInit"); }

int cuDeviceGetCount(int *count) {
    const char *at = setting_of_host();
    for (*count = at && *at ? 1 : 0; at && *at && *at != ';'; at++) *count += *at == ',';
    return asked("cuDeviceGetCount");
}

int cuDeviceGet(int *device, int ordinal) { *device = 100 + ordinal; return asked("cuDeviceGet"); }

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    static const unsigned char as_in_nvml[16] = {0x51, 0xa7, 0, 0, 0, 0, 0x40, 0, 0x80};
    memcpy(uuid, as_in_nvml, 16);
    uuid[15] = (unsigned char)(device - 100);
    return asked("cuDeviceGetUuid_v2");
}

int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)(long)device; return asked("cuDevicePrimaryCtxRetain"); }

int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return taken ? 999 : 0; }

int cuCtxSetCurrent(void *context) { current = (int)(long)context - 100; return asked("cuCtxSetCurrent"); }

int cuMemGetInfo_v2(size_t *free_, size_t *total) {
    const char *mib = getenv("INFEROPS_FAKE_CUDA_FREE_MIB");
    *total = (size_t)97887 << 20;
    *free_ = (mib ? (size_t)atol(mib) << 20 : *total) - taken;
    return asked("cuMemGetInfo_v2");
}

/* A pointer is a number of ours: which allocation it was. */
int cuMemAlloc_v2(size_t *pointer, size_t size) {
    int code = asked("cuMemAlloc_v2");
    if (!code) {
        *pointer = ++made % 1024;
        sizes[*pointer] = size;
        taken += size;
    }
    return code;
}

int cuMemFree_v2(size_t pointer) {
    if (pointer >= 1024 || !sizes[pointer]) return 1;
    taken -= sizes[pointer];
    sizes[pointer] = 0;
    return 0;
}

int cuMemcpyDtoDAsync_v2(size_t target, size_t source, size_t size, void *stream) {
    (void)stream;
    if (target == source) return 1;
    queued_bytes += 2.0 * (double)size;
    return asked("cuMemcpyDtoDAsync_v2");
}

int cuCtxSynchronize(void) {
    double seconds = queued_bytes / (bandwidth(current) * 1e9);
    struct timespec wait = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    queued_bytes = 0;
    nanosleep(&wait, NULL);
    return asked("cuCtxSynchronize");
}

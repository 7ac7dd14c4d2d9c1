/* Stand-in for libnvidia-ml.so.1: eight simulated cards whose readings come from small text files.
 *
 * Files, later ones win; each line is `KEY VALUE…` or `gpu INDEX KEY VALUE`:
 *   $INFEROPS_FAKE_NVML_CONF   (default /etc/inferops-fake/nvml.conf): what the machine is
 *   $INFEROPS_FAKE_NVML_STATE  (default every /dev/shm/inferops-fake-nvml.*.state): what it is doing, written by an engine;
 *                              ignored when older than five seconds, since then nobody is running any more
 * Keys: count, name, driver, cuda (13000), memory_mib, power_limit_mw, power_min_mw, power_max_mw, cc (120),
 *       persistence, ecc, `fail FUNCTION CODE` (that function then returns this nvmlReturn_t; -1: never returns);
 *       gpu N: power_mw util mem_util mem_used_mib temp sm_clock mem_clock throttle pid lost
 *              pcie_tx pcie_rx (KB/s) pcie_gen pcie_width p2p (nvmlGpuP2PStatus_t towards every card) xid ecc_errors
 * Functions that are missing here are "Function Not Found" to nvidia-ml-py, and only when called.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, GPU_IS_LOST = 15 };
enum { MAX_GPUS = 16, MAX_FAILS = 32, STALE_SECONDS = 5 };
#define API __attribute__((visibility("default"))) int
#define MIB (1024ULL * 1024ULL)

typedef struct {
    int index, lost;
    unsigned power_mw, limit_mw, util, mem_util, temp, sm_clock, mem_clock, pid;
    unsigned pcie_tx, pcie_rx, pcie_gen, pcie_width, p2p, xid;
    unsigned long long mem_used_mib, throttle, ecc_errors;
} gpu_t;

typedef struct { char name[64]; int code; } fail_t;

static struct {
    unsigned count, memory_mib, limit_mw, min_mw, max_mw, cc, cuda;
    int persistence, ecc, fails, initialized;
    char name[160], driver[160];
    gpu_t gpu[MAX_GPUS];
    fail_t fail[MAX_FAILS];
} now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void defaults(void) {
    int initialized = now.initialized;
    memset(&now, 0, sizeof now);
    now.initialized = initialized;
    now.count = 8;
    now.memory_mib = 97887;
    now.limit_mw = 600000;
    now.min_mw = 300000;
    now.max_mw = 600000;
    now.cc = 120;
    now.cuda = 13000;
    now.persistence = 1;
    now.ecc = 1;
    strcpy(now.name, "NVIDIA RTX PRO 6000 Blackwell Server Edition");
    strcpy(now.driver, "580.95.05");
    for (int i = 0; i < MAX_GPUS; i++) {
        gpu_t *g = &now.gpu[i];
        g->index = i;
        g->power_mw = 30000;
        g->temp = 30;
        g->sm_clock = 180;
        g->mem_clock = 405;
        g->throttle = 1; /* idle */
        g->mem_used_mib = 2;
        g->pcie_gen = 5;
        g->pcie_width = 16;
    }
}

static void set_gpu(gpu_t *g, const char *key, const char *value) {
    unsigned long long number = strtoull(value, NULL, 0);
    if (!strcmp(key, "power_mw")) g->power_mw = number;
    else if (!strcmp(key, "limit_mw")) g->limit_mw = number;
    else if (!strcmp(key, "util")) g->util = number;
    else if (!strcmp(key, "mem_util")) g->mem_util = number;
    else if (!strcmp(key, "mem_used_mib")) g->mem_used_mib = number;
    else if (!strcmp(key, "temp")) g->temp = number;
    else if (!strcmp(key, "sm_clock")) g->sm_clock = number, g->mem_clock = 12481;
    else if (!strcmp(key, "mem_clock")) g->mem_clock = number;
    else if (!strcmp(key, "throttle")) g->throttle = number;
    else if (!strcmp(key, "pid")) g->pid = number;
    else if (!strcmp(key, "lost")) g->lost = number;
    else if (!strcmp(key, "pcie_tx")) g->pcie_tx = number;
    else if (!strcmp(key, "pcie_rx")) g->pcie_rx = number;
    else if (!strcmp(key, "pcie_gen")) g->pcie_gen = number;
    else if (!strcmp(key, "pcie_width")) g->pcie_width = number;
    else if (!strcmp(key, "p2p")) g->p2p = number;
    else if (!strcmp(key, "xid")) g->xid = number;
    else if (!strcmp(key, "ecc_errors")) g->ecc_errors = number;
}

static void set_machine(const char *key, char *value) {
    unsigned number = strtoul(value, NULL, 0);
    if (!strcmp(key, "count")) now.count = number > MAX_GPUS ? MAX_GPUS : number;
    else if (!strcmp(key, "memory_mib")) now.memory_mib = number;
    else if (!strcmp(key, "power_limit_mw")) now.limit_mw = number;
    else if (!strcmp(key, "power_min_mw")) now.min_mw = number;
    else if (!strcmp(key, "power_max_mw")) now.max_mw = number;
    else if (!strcmp(key, "cc")) now.cc = number;
    else if (!strcmp(key, "cuda")) now.cuda = number;
    else if (!strcmp(key, "persistence")) now.persistence = number;
    else if (!strcmp(key, "ecc")) now.ecc = number;
    else if (!strcmp(key, "name")) snprintf(now.name, sizeof now.name, "%s", value);
    else if (!strcmp(key, "driver")) snprintf(now.driver, sizeof now.driver, "%s", value);
    else if (!strcmp(key, "fail") && now.fails < MAX_FAILS) {
        fail_t *f = &now.fail[now.fails];
        if (sscanf(value, "%63s %d", f->name, &f->code) == 2) now.fails++;
    }
}

static void read_file(const char *path, int live) {
    struct stat info;
    if (stat(path, &info) || (live && time(NULL) - info.st_mtime > STALE_SECONDS)) return;
    FILE *file = fopen(path, "re");
    if (!file) return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        char key[32], value[160];
        int index;
        if (line[0] == '#') continue;
        if (sscanf(line, "gpu %d %31s %159s", &index, key, value) == 3) {
            if (index >= 0 && index < MAX_GPUS) set_gpu(&now.gpu[index], key, value);
        } else if (sscanf(line, "%31s %159[^\n]", key, value) == 2) {
            set_machine(key, value);
        }
    }
    fclose(file);
}

static void refresh(void) {
    defaults();
    const char *conf = getenv("INFEROPS_FAKE_NVML_CONF"), *state = getenv("INFEROPS_FAKE_NVML_STATE");
    read_file(conf ? conf : "/etc/inferops-fake/nvml.conf", 0);
    if (state) {
        read_file(state, 1);
        return;
    }
    DIR *folder = opendir("/dev/shm");
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *name = entry->d_name, *end = strrchr(name, '.');
        if (strncmp(name, "inferops-fake-nvml.", 19) || !end || strcmp(end, ".state")) continue;
        char path[320];
        snprintf(path, sizeof path, "/dev/shm/%s", name);
        read_file(path, 1);
    }
    closedir(folder);
}

/* Refresh, then the staged failure of this function, if there is one. */
static int enter(const char *function) {
    refresh();
    for (int i = 0; i < now.fails; i++)
        if (!strcmp(now.fail[i].name, function)) {
            while (now.fail[i].code < 0) pause();
            return now.fail[i].code;
        }
    return now.initialized ? SUCCESS : UNINITIALIZED;
}

#define BEGIN                                                                                                          \
    pthread_mutex_lock(&lock);                                                                                         \
    int status = enter(__func__);                                                                                      \
    if (status == SUCCESS)
#define END                                                                                                            \
    pthread_mutex_unlock(&lock);                                                                                       \
    return status;
/* A card: `g` is its fresh state; a lost or unknown one fails. */
#define CARD                                                                                                           \
    BEGIN {                                                                                                            \
        gpu_t *g = device;                                                                                             \
        if (g < now.gpu || g >= now.gpu + now.count) status = INVALID_ARGUMENT;                                        \
        else if (g->lost) status = GPU_IS_LOST;                                                                        \
        else
#define DONE } END

API nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    now.initialized++;
    int status = enter(__func__);
    if (status != SUCCESS) now.initialized--;
    END
}
API nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API nvmlShutdown(void) {
    BEGIN now.initialized--;
    END
}
__attribute__((visibility("default"))) const char *nvmlErrorString(int code) {
    switch (code) {
    case SUCCESS: return "The operation was successful";
    case UNINITIALIZED: return "NVML was not first initialized with nvmlInit()";
    case INVALID_ARGUMENT: return "A supplied argument is invalid";
    case NOT_SUPPORTED: return "The requested operation is not available on target device";
    case NOT_FOUND: return "A query to find an object was unsuccessful";
    case INSUFFICIENT_SIZE: return "An input argument is not large enough";
    case 9: return "NVIDIA driver is not loaded";
    case GPU_IS_LOST: return "The GPU has fallen off the bus or has otherwise become inaccessible";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

API nvmlSystemGetDriverVersion(char *text, unsigned size) {
    BEGIN snprintf(text, size, "%s", now.driver);
    END
}
API nvmlSystemGetNVMLVersion(char *text, unsigned size) {
    BEGIN snprintf(text, size, "13.%s", now.driver);
    END
}
API nvmlSystemGetCudaDriverVersion(int *version) {
    BEGIN *version = now.cuda;
    END
}
API nvmlSystemGetCudaDriverVersion_v2(int *version) {
    BEGIN *version = now.cuda;
    END
}
API nvmlSystemGetProcessName(unsigned pid, char *text, unsigned size) {
    BEGIN snprintf(text, size, "simulated-%u", pid);
    END
}

API nvmlDeviceGetCount_v2(unsigned *count) {
    BEGIN *count = now.count;
    END
}
API nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    BEGIN {
        if (index >= now.count) status = INVALID_ARGUMENT;
        else if (now.gpu[index].lost) status = GPU_IS_LOST;
        else *device = &now.gpu[index];
    }
    END
}
static void uuid_of(const gpu_t *g, char *text, unsigned size) {
    snprintf(text, size, "GPU-51a70000-0000-4000-8000-%012x", g->index);
}
static unsigned bus_of(const gpu_t *g) { return 0x01 + 0x20 * g->index; }
static void bus_id_of(const gpu_t *g, char *text, unsigned size) { snprintf(text, size, "00000000:%02X:00.0", bus_of(g)); }

API nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    BEGIN {
        status = NOT_FOUND;
        for (unsigned i = 0; i < now.count; i++) {
            char text[96];
            uuid_of(&now.gpu[i], text, sizeof text);
            if (!strcmp(text, uuid)) *device = &now.gpu[i], status = SUCCESS;
        }
    }
    END
}
API nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device) {
    BEGIN {
        status = NOT_FOUND;
        for (unsigned i = 0; i < now.count; i++) {
            char text[32];
            bus_id_of(&now.gpu[i], text, sizeof text);
            if (!strcasecmp(text, id) || !strcasecmp(text + 4, id)) *device = &now.gpu[i], status = SUCCESS;
        }
    }
    END
}
API nvmlDeviceGetIndex(void *device, unsigned *index) { CARD *index = g->index; DONE }
API nvmlDeviceGetMinorNumber(void *device, unsigned *minor) { CARD *minor = g->index; DONE }
API nvmlDeviceGetName(void *device, char *text, unsigned size) { CARD snprintf(text, size, "%s", now.name); DONE }
API nvmlDeviceGetUUID(void *device, char *text, unsigned size) { CARD uuid_of(g, text, size); DONE }
API nvmlDeviceGetSerial(void *device, char *text, unsigned size) { CARD snprintf(text, size, "51%08d", g->index); DONE }
API nvmlDeviceGetVbiosVersion(void *device, char *text, unsigned size) { CARD snprintf(text, size, "98.02.00.00.00"); DONE }
API nvmlDeviceGetBrand(void *device, int *brand) { CARD *brand = 14; DONE }          /* NVIDIA RTX */
API nvmlDeviceGetArchitecture(void *device, unsigned *arch) { CARD *arch = 10; DONE } /* Blackwell */
API nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    CARD {
        *major = now.cc / 10;
        *minor = now.cc % 10;
    }
    DONE
}
API nvmlDeviceGetNumGpuCores(void *device, unsigned *cores) { CARD *cores = 24064; DONE }
API nvmlDeviceGetMemoryBusWidth(void *device, unsigned *bits) { CARD *bits = 512; DONE }

typedef struct { char legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char bus_id[32]; } pci_t;
API nvmlDeviceGetPciInfo_v3(void *device, pci_t *pci) {
    CARD {
        memset(pci, 0, sizeof *pci);
        pci->bus = bus_of(g);
        pci->device_id = 0x2bb510de;
        snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", bus_of(g));
        bus_id_of(g, pci->bus_id, sizeof pci->bus_id);
    }
    DONE
}
API nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *value) { CARD *value = g->pcie_gen; DONE }
API nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *value) { CARD *value = 5; DONE }
API nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *value) { CARD *value = g->pcie_width; DONE }
API nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *value) { CARD *value = 16; DONE }
API nvmlDeviceGetPcieThroughput(void *device, int counter, unsigned *kb_s) {
    CARD *kb_s = counter == 0 ? g->pcie_tx : g->pcie_rx; /* the real driver measures for 20 ms here */
    DONE
}
API nvmlDeviceGetPcieReplayCounter(void *device, unsigned *value) { CARD *value = 0; DONE }

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2_t;
API nvmlDeviceGetMemoryInfo(void *device, memory_t *memory) {
    CARD {
        memory->total = now.memory_mib * MIB;
        memory->used = g->mem_used_mib * MIB;
        memory->free = memory->total - memory->used;
    }
    DONE
}
API nvmlDeviceGetMemoryInfo_v2(void *device, memory_v2_t *memory) {
    CARD {
        memory->total = now.memory_mib * MIB;
        memory->reserved = 637 * MIB;
        memory->used = g->mem_used_mib * MIB;
        memory->free = memory->total - memory->used - memory->reserved;
    }
    DONE
}
API nvmlDeviceGetBAR1MemoryInfo(void *device, memory_t *memory) {
    CARD {
        memory->total = 131072 * MIB;
        memory->used = 2 * MIB;
        memory->free = memory->total - memory->used;
    }
    DONE
}

API nvmlDeviceGetPowerUsage(void *device, unsigned *mw) { CARD *mw = g->power_mw; DONE }
static unsigned limit_of(const gpu_t *g) { return g->limit_mw ? g->limit_mw : now.limit_mw; }
API nvmlDeviceGetPowerManagementLimit(void *device, unsigned *mw) { CARD *mw = limit_of(g); DONE }
API nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw) { CARD *mw = limit_of(g); DONE }
API nvmlDeviceGetPowerManagementDefaultLimit(void *device, unsigned *mw) { CARD *mw = now.max_mw; DONE }
API nvmlDeviceGetPowerManagementMode(void *device, int *mode) { CARD *mode = 1; DONE }
API nvmlDeviceGetPowerManagementLimitConstraints(void *device, unsigned *low, unsigned *high) {
    CARD {
        *low = now.min_mw;
        *high = now.max_mw;
    }
    DONE
}

typedef struct { unsigned gpu, memory; } utilization_t;
API nvmlDeviceGetUtilizationRates(void *device, utilization_t *rates) {
    CARD {
        rates->gpu = g->util;
        rates->memory = g->mem_util;
    }
    DONE
}
API nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) { (void)sensor; CARD *celsius = g->temp; DONE }
typedef struct { unsigned version; int sensor, celsius; } temperature_t;
API nvmlDeviceGetTemperatureV(void *device, temperature_t *reading) { CARD reading->celsius = g->temp; DONE }
API nvmlDeviceGetTemperatureThreshold(void *device, int kind, unsigned *celsius) { CARD *celsius = kind == 0 ? 95 : 90; DONE }
API nvmlDeviceGetFanSpeed(void *device, unsigned *percent) { (void)percent; CARD status = NOT_SUPPORTED; DONE }
API nvmlDeviceGetPerformanceState(void *device, int *state) { CARD *state = g->sm_clock > 1000 ? 1 : 8; DONE }
API nvmlDeviceGetClockInfo(void *device, int kind, unsigned *mhz) { CARD *mhz = kind == 2 ? g->mem_clock : g->sm_clock; DONE }
API nvmlDeviceGetMaxClockInfo(void *device, int kind, unsigned *mhz) { CARD *mhz = kind == 2 ? 12481 : 2430; DONE }
API nvmlDeviceGetApplicationsClock(void *device, int kind, unsigned *mhz) { CARD *mhz = kind == 2 ? 12481 : 2430; DONE }
API nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) { CARD *reasons = g->throttle; DONE }
API nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons) { CARD *reasons = g->throttle; DONE }
API nvmlDeviceGetSupportedClocksThrottleReasons(void *device, unsigned long long *reasons) { CARD *reasons = 0x1ff; DONE }
API nvmlDeviceGetSupportedClocksEventReasons(void *device, unsigned long long *reasons) { CARD *reasons = 0x1ff; DONE }
API nvmlDeviceGetPersistenceMode(void *device, int *mode) { CARD *mode = now.persistence; DONE }
API nvmlDeviceGetComputeMode(void *device, int *mode) { CARD *mode = 0; DONE }
API nvmlDeviceGetEccMode(void *device, int *current, int *pending) { CARD *current = *pending = now.ecc; DONE }
API nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count) {
    (void)kind, (void)counter;
    CARD *count = g->ecc_errors;
    DONE
}
API nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) { CARD *current = *pending = 0; DONE }

typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute_instance; } process_t;
API nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_t *list) {
    CARD {
        unsigned room = *count;
        *count = g->pid ? 1 : 0;
        if (g->pid && room < 1) status = INSUFFICIENT_SIZE;
        else if (g->pid) list[0] = (process_t){g->pid, g->mem_used_mib * MIB, 0xFFFFFFFF, 0xFFFFFFFF};
    }
    DONE
}
API nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, process_t *list) { (void)list; CARD *count = 0; DONE }
API nvmlDeviceGetTopologyCommonAncestor(void *device, void *other, int *level) { (void)other; CARD *level = 40; DONE } /* system */
API nvmlDeviceGetP2PStatus(void *device, void *other, int what, int *p2p) {
    (void)what;
    CARD *p2p = g->p2p ? g->p2p : ((gpu_t *)other)->p2p;
    DONE
}

/* Events: an Xid is told once to the whole process, when the file begins to name it. */
typedef struct { void *device; unsigned long long type, data; unsigned instance, compute_instance; } event_t;
static unsigned told[MAX_GPUS];
API nvmlEventSetCreate(void **set) {
    BEGIN *set = told;
    END
}
API nvmlDeviceRegisterEvents(void *device, unsigned long long kinds, void *set) { (void)kinds, (void)set; CARD status = SUCCESS; DONE }
API nvmlEventSetWait_v2(void *set, event_t *event, unsigned timeout_ms) {
    (void)set, (void)timeout_ms;
    BEGIN {
        status = TIMEOUT;
        for (unsigned i = 0; i < now.count && status == TIMEOUT; i++) {
            if (now.gpu[i].xid && now.gpu[i].xid != told[i]) {
                *event = (event_t){&now.gpu[i], 8, now.gpu[i].xid, 0xFFFFFFFF, 0xFFFFFFFF};
                status = SUCCESS;
            }
            told[i] = now.gpu[i].xid;
        }
    }
    END
}
API nvmlEventSetFree(void *set) {
    (void)set;
    BEGIN {}
    END
}

/* Yardstick for GPU paths: bare C loops over cuFile and over pinned staging, one clock read for each I/O or group.
 *
 *     gpuloop sync|batch|staged|copyout BLOCK DEPTH WORKERS SECONDS FILE [direct]
 *
 * sync: cuFileRead, registered buffer. batch: one batch of DEPTH at a time. staged: groups of DEPTH blocks read into
 * pinned memory, one copy each, two groups in flight. copyout: the reverse, device to host to pwrite.
 * Prints I/Os per second of all workers, and CPU seconds for each GiB.
 * build: cc -O2 gpuloop.c -o gpuloop -I$CUDA/include -L$CUDA/lib64 -L$CUDA/lib64/stubs -lcuda -lcufile -lpthread
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <cufile.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OK(call)                                                                                                       \
  do {                                                                                                                 \
    int code_ = (int)(call);                                                                                           \
    if (code_) {                                                                                                       \
      fprintf(stderr, "gpuloop: %s: %d\n", #call, code_);                                                              \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

static size_t block;
static unsigned depth;
static double seconds;
static int fd;
static uint64_t blocks;
static CUfileHandle_t handle;
static CUcontext context;

struct worker {
  pthread_t thread;
  uint64_t seed, ios;
  double elapsed;
  uint32_t histogram[4096];
};

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static off_t offset(struct worker *w) {
  uint64_t z = (w->seed += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return (off_t)((uint64_t)(((unsigned __int128)z * blocks) >> 64) * block);
}

static void count(struct worker *w, uint64_t begun, uint64_t done, unsigned n) {
  uint64_t v = done - begun;
  w->histogram[v < 64 ? v : (63 - (unsigned)__builtin_clzll(v)) * 64 % 4096] += n;
  w->ios += n;
}

static CUdeviceptr device_memory(size_t nbytes, int registered) {
  CUdeviceptr memory;
  OK(cuMemAlloc(&memory, nbytes));
  if (registered)
    OK(cuFileBufRegister((void *)memory, nbytes, 0).err);
  return memory;
}

static void sync_loop(struct worker *w, uint64_t end) {
  CUdeviceptr memory = device_memory(block < 4096 ? 4096 : block, 1);
  for (uint64_t t = now(), done; t < end; t = done) {
    if (cuFileRead(handle, (void *)memory, block, offset(w), 0) != (ssize_t)block)
      exit(1);
    done = now();
    count(w, t, done, 1);
  }
  cuFileBufDeregister((void *)memory);
}

static void batch_loop(struct worker *w, uint64_t end) {
  CUdeviceptr memory = device_memory(block * depth, 1);
  CUfileBatchHandle_t batch;
  OK(cuFileBatchIOSetUp(&batch, depth).err);
  CUfileIOParams_t *entries = calloc(depth, sizeof *entries);
  CUfileIOEvents_t *events = calloc(depth, sizeof *events);
  for (uint64_t t = now(), done; t < end; t = done) {
    for (unsigned i = 0; i < depth; i++) {
      entries[i].mode = CUFILE_BATCH;
      entries[i].fh = handle;
      entries[i].opcode = CUFILE_READ;
      entries[i].u.batch.devPtr_base = (void *)memory;
      entries[i].u.batch.devPtr_offset = (off_t)(i * block);
      entries[i].u.batch.file_offset = offset(w);
      entries[i].u.batch.size = block;
    }
    OK(cuFileBatchIOSubmit(batch, depth, entries, 0).err);
    for (unsigned got = 0, n; got < depth; got += n) {
      n = depth;
      OK(cuFileBatchIOGetStatus(batch, 1, &n, events, NULL).err);
      for (unsigned i = 0; i < n; i++)
        OK(events[i].status != CUFILE_COMPLETE || events[i].ret != block);
    }
    done = now();
    count(w, t, done, depth);
  }
  cuFileBatchIODestroy(batch);
  cuFileBufDeregister((void *)memory);
}

static void staged_loop(struct worker *w, uint64_t end, int out) {
  size_t group = block * depth;
  CUdeviceptr memory = device_memory(2 * group, 0);
  char *host;
  CUstream stream;
  CUevent events[2];
  OK(cuMemHostAlloc((void **)&host, 2 * group, 0));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 2; i++)
    OK(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
  uint64_t begun[2] = {0, 0};
  if (out)
    for (int i = 0; i < 2; i++) {
      OK(cuMemcpyDtoHAsync(host + i * group, memory + i * group, group, stream));
      OK(cuEventRecord(events[i], stream));
    }
  unsigned g = 0;
  for (uint64_t t = now(); t < end; g++) {
    unsigned i = g & 1;
    if (out || g >= 2)
      while (cuEventQuery(events[i]) == CUDA_ERROR_NOT_READY)
        ;
    if (!out && g >= 2)
      count(w, begun[i], now(), depth);
    begun[i] = t;
    for (unsigned k = 0; k < depth; k++) {
      char *place = host + i * group + k * block;
      ssize_t n = out ? pwrite(fd, place, block, offset(w)) : pread(fd, place, block, offset(w));
      if (n != (ssize_t)block)
        exit(1);
    }
    if (out) {
      OK(cuMemcpyDtoHAsync(host + i * group, memory + i * group, group, stream));
      count(w, t, now(), depth);
    } else {
      OK(cuMemcpyHtoDAsync(memory + i * group, host + i * group, group, stream));
    }
    OK(cuEventRecord(events[i], stream));
    t = now();
  }
  OK(cuStreamSynchronize(stream));
}

static const char *mode;

static void *run(void *argument) {
  struct worker *w = argument;
  OK(cuCtxSetCurrent(context));
  uint64_t begin = now(), end = begin + (uint64_t)(seconds * 1e9);
  if (!strcmp(mode, "sync"))
    sync_loop(w, end);
  else if (!strcmp(mode, "batch"))
    batch_loop(w, end);
  else
    staged_loop(w, end, !strcmp(mode, "copyout"));
  w->elapsed = (double)(now() - begin) / 1e9;
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 7)
    return fprintf(stderr, "usage: gpuloop MODE BLOCK DEPTH WORKERS SECONDS FILE [direct]\n"), 2;
  mode = argv[1];
  block = strtoull(argv[2], NULL, 10);
  depth = (unsigned)atoi(argv[3]);
  int workers = atoi(argv[4]);
  seconds = atof(argv[5]);
  int out = !strcmp(mode, "copyout");
  fd = open(argv[6], (out ? O_RDWR : O_RDONLY) | (argc > 7 ? O_DIRECT : 0));
  struct stat st;
  if (fd < 0 || fstat(fd, &st))
    return perror("gpuloop"), 1;
  blocks = (uint64_t)st.st_size / block;
  CUdevice device;
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  if (!strcmp(mode, "sync") || !strcmp(mode, "batch")) {
    OK(cuFileDriverOpen().err);
    CUfileDescr_t description = {.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD};
    description.handle.fd = fd;
    OK(cuFileHandleRegister(&handle, &description).err);
  }
  struct worker *all = calloc((size_t)workers, sizeof *all);
  for (int i = 0; i < workers; i++) {
    all[i].seed = (uint64_t)i + 1;
    pthread_create(&all[i].thread, NULL, run, &all[i]);
  }
  double rate = 0, ios = 0;
  for (int i = 0; i < workers; i++) {
    pthread_join(all[i].thread, NULL);
    rate += (double)all[i].ios / all[i].elapsed;
    ios += (double)all[i].ios;
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  printf("%.0f %.4f\n", rate, cpu / (ios * (double)block / 1073741824.0));
  return 0;
}

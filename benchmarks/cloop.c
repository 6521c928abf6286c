/* Yardstick: what a bare C loop reaches with one clock read and one histogram count for each I/O, and nothing else.
 *
 *     cloop noop|pread BLOCK SECONDS WORKERS [FILE ...]     random offsets; one file for each worker
 *
 * Prints I/Os per second of all workers. Not code of gdsfw: a limit to hold it against.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct worker {
  pthread_t thread;
  int fd;
  uint64_t block, blocks, seconds, ios;
  double rate;
  uint32_t histogram[3776];
};

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t next(uint64_t *s) {
  uint64_t z = (*s += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static uint32_t slot(uint64_t v) {
  if (v < 128)
    return (uint32_t)v;
  uint32_t shift = (uint32_t)(63 - __builtin_clzll(v)) - 6;
  return (shift + 1) * 64 + (uint32_t)(v >> shift) - 64;
}

static int64_t __attribute__((noinline)) noop(int fd, void *buffer, uint64_t size, int64_t offset) {
  (void)fd, (void)buffer, (void)offset;
  __asm__ volatile("" ::: "memory");
  return (int64_t)size;
}

static int64_t __attribute__((noinline)) reader(int fd, void *buffer, uint64_t size, int64_t offset) {
  return pread(fd, buffer, size, offset);
}

static int64_t (*volatile io)(int, void *, uint64_t, int64_t);

static void *run(void *argument) {
  struct worker *w = argument;
  void *buffer;
  if (posix_memalign(&buffer, 4096, w->block))
    return NULL;
  memset(buffer, 1, w->block);
  uint64_t seed = (uint64_t)(uintptr_t)w, begin = now(), t = begin, end = begin + w->seconds * 1000000000u;
  int64_t (*call)(int, void *, uint64_t, int64_t) = io;
  while (t < end) {
    uint64_t offset = (uint64_t)(((unsigned __int128)next(&seed) * w->blocks) >> 64) * w->block;
    if (call(w->fd, buffer, w->block, (int64_t)offset) != (int64_t)w->block) {
      perror("cloop");
      exit(1);
    }
    uint64_t done = now();
    w->histogram[slot(done - t)]++;
    t = done;
    w->ios++;
  }
  w->rate = (double)w->ios / ((double)(t - begin) / 1e9);
  free(buffer);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 5)
    return fprintf(stderr, "usage: cloop noop|pread BLOCK SECONDS WORKERS [FILE ...]\n"), 2;
  int workers = atoi(argv[4]), files = argc - 5;
  int reads = !strcmp(argv[1], "pread");
  io = reads ? reader : noop;
  struct worker *all = calloc((size_t)workers, sizeof *all);
  for (int i = 0; i < workers; i++) {
    all[i].block = strtoull(argv[2], NULL, 10);
    all[i].seconds = strtoull(argv[3], NULL, 10);
    all[i].blocks = 1u << 18;
    if (reads) {
      struct stat st;
      all[i].fd = open(argv[5 + i % files], O_RDONLY);
      if (all[i].fd < 0 || fstat(all[i].fd, &st))
        return perror("cloop: open"), 1;
      all[i].blocks = (uint64_t)st.st_size / all[i].block;
    }
  }
  for (int i = 0; i < workers; i++)
    pthread_create(&all[i].thread, NULL, run, &all[i]);
  double sum = 0;
  for (int i = 0; i < workers; i++) {
    pthread_join(all[i].thread, NULL);
    sum += all[i].rate;
  }
  printf("%.0f\n", sum);
  return 0;
}

/* Yardstick: random reads of one file through io_uring with a fixed depth, one clock read and one histogram count for
 * each I/O, and nothing else: no stop flag, no timeouts, no short counts, no other shapes of load.
 *
 *     uringloop BLOCK SECONDS DEPTH BATCH FIXED DIRECT FILE
 *
 * BATCH: I/Os submitted and collected at once. FIXED: 1 registers buffer and file. Prints I/Os per second and I/Os per
 * second of CPU. Not code of gdsfw: a limit to hold it against.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { SINGLE_ISSUER = 1 << 12, DEFER_TASKRUN = 1 << 13, READ = 22 };

static uint64_t read_clock(clockid_t which) {
  struct timespec t;
  clock_gettime(which, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t next(uint64_t *s) {
  uint64_t z = (*s += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static uint32_t histogram[3776];

static void count(uint64_t v) {
  uint32_t shift = v < 128 ? 0 : (uint32_t)(63 - __builtin_clzll(v)) - 6;
  histogram[v < 128 ? (uint32_t)v : (shift + 1) * 64 + (uint32_t)(v >> shift) - 64]++;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 8)
    return fprintf(stderr, "usage: uringloop BLOCK SECONDS DEPTH BATCH FIXED DIRECT FILE\n"), 2;
  uint64_t block = strtoull(argv[1], NULL, 10), seconds = strtoull(argv[2], NULL, 10), seed = 1, ios = 0;
  uint32_t depth = (uint32_t)atoi(argv[3]), batch = (uint32_t)atoi(argv[4]);
  int fixed = atoi(argv[5]), file = open(argv[7], O_RDONLY | (atoi(argv[6]) ? O_DIRECT : 0));
  struct stat st;
  if (file < 0 || fstat(file, &st))
    die("open");
  struct io_uring_params p = {.flags = SINGLE_ISSUER | DEFER_TASKRUN};
  int fd = (int)syscall(SYS_io_uring_setup, depth, &p);
  if (fd < 0)
    die("io_uring_setup");
  size_t sq_size = p.sq_off.array + p.sq_entries * 4, cq_size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
  uint8_t *map = mmap(NULL, sq_size > cq_size ? sq_size : cq_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                      IORING_OFF_SQ_RING);
  struct io_uring_sqe *sqes = mmap(NULL, p.sq_entries * sizeof *sqes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                                   fd, IORING_OFF_SQES);
  uint8_t *buffer;
  if (map == MAP_FAILED || (void *)sqes == MAP_FAILED || posix_memalign((void **)&buffer, 4096, block * depth))
    die("memory");
  memset(buffer, 1, block * depth);
  if (fixed) {
    struct iovec all = {buffer, block * depth};
    if (syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS, &all, 1) ||
        syscall(SYS_io_uring_register, fd, IORING_REGISTER_FILES, &file, 1))
      die("io_uring_register");
  }
  uint32_t *sq_tail = (uint32_t *)(map + p.sq_off.tail), sq_mask = p.sq_entries - 1, tail = *sq_tail;
  uint32_t *cq_head = (uint32_t *)(map + p.cq_off.head), *cq_tail = (uint32_t *)(map + p.cq_off.tail);
  uint32_t cq_mask = p.cq_entries - 1, head = *cq_head, *array = (uint32_t *)(map + p.sq_off.array);
  struct io_uring_cqe *cqes = (struct io_uring_cqe *)(map + p.cq_off.cqes);
  uint32_t *spare = calloc(depth, sizeof *spare), spares = depth, in_flight = 0;
  uint64_t *issued = calloc(depth, sizeof *issued), blocks = (uint64_t)st.st_size / block;
  for (uint32_t i = 0; i < depth; i++)
    spare[i] = i;
  for (uint32_t i = 0; i < p.sq_entries; i++)
    array[i] = i;
  uint64_t cpu = read_clock(CLOCK_THREAD_CPUTIME_ID), begin = read_clock(CLOCK_MONOTONIC), now = begin;
  uint64_t end = begin + seconds * 1000000000u;
  while (now < end) {
    uint32_t made = 0;
    for (; spares && made < batch; made++, tail++) {
      uint32_t slot = spare[--spares];
      uint64_t at = (uint64_t)(((unsigned __int128)next(&seed) * blocks) >> 64) * block;
      sqes[tail & sq_mask] = (struct io_uring_sqe){
          .opcode = fixed ? IORING_OP_READ_FIXED : READ,
          .flags = fixed ? IOSQE_FIXED_FILE : 0,
          .fd = fixed ? 0 : file,
          .off = at,
          .addr = (uint64_t)(uintptr_t)(buffer + slot * block),
          .len = (uint32_t)block,
          .user_data = slot,
      };
      issued[slot] = now;
    }
    __atomic_store_n(sq_tail, tail, __ATOMIC_RELEASE);
    in_flight += made;
    uint32_t wait = spares ? 0 : batch; /* fill up first */
    if (syscall(SYS_io_uring_enter, fd, made, wait, wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0) < 0 && errno != EINTR)
      die("io_uring_enter");
    uint32_t ready = __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE);
    now = read_clock(CLOCK_MONOTONIC);
    for (; head != ready; head++, ios++, in_flight--) {
      struct io_uring_cqe *c = &cqes[head & cq_mask];
      if (c->res != (int32_t)block)
        return fprintf(stderr, "uringloop: result %d\n", c->res), 1;
      count(now - issued[c->user_data]);
      spare[spares++] = (uint32_t)c->user_data;
    }
    __atomic_store_n(cq_head, head, __ATOMIC_RELEASE);
  }
  double used = (double)(read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu) / 1e9;
  printf("%.0f %.0f\n", (double)ios / ((double)(now - begin) / 1e9), (double)ios / used);
  return 0;
}

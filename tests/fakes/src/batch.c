/* batch.c - batches: entries that a pool of threads does in any order.
 *
 * Rules that differ. hipFile copies the entries and takes all or none; cuFile looks at the caller's entries when it
 * comes to them, and reports ill-formed ones as events. In compatibility mode cuFile runs out of slabs (entries beyond
 * them never complete) and never reports entries of a second submission that comes before the first is through.
 */
#include "file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum event_status { PENDING = 2, INVALID = 4, CANCELED = 8, COMPLETE = 16, FAILED = 64 };
enum state { QUEUED, RUNNING, ENDED, STUCK };

#define BATCH_MODE 1
#define HIP_MOST 128
#define MAX_EVENTS 1024

struct params { /* CUfileIOParams_t, hipFileIOParams_t */
  int mode;
  struct {
    uint64_t base;
    off_t file_offset, buffer_offset;
    size_t size;
  } batch;
  uint64_t handle;
  int opcode;
  void *cookie;
};

struct event { /* CUfileIOEvents_t, hipFileIOEvents_t */
  void *cookie;
  int status;
  size_t result;
};

struct entry {
  struct batch *batch;
  struct params copy;
  const struct params *params; /* the copy or the caller's own */
  void *cookie;
  enum state state;
  int status;
  ssize_t result;
  int lost;           /* never to be reported */
  struct entry *next; /* of the batch */
};

struct batch {
  unsigned capacity;
  unsigned outstanding, running;
  struct entry *entries;
  struct batch *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct batch *batches;
static unsigned threads;
static size_t slabs_in_use;
static uint64_t random_state;

static struct status invalid(void) { return file_status(IS_HIP ? FILE_INVALID_VALUE : FILE_INTERNAL); }

static struct batch *find(struct batch *handle) {
  struct batch *b = batches;
  while (b && b != handle)
    b = b->next;
  return b;
}

/* ---- order ---- */

static unsigned below(unsigned n) {
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)((random_state >> 33) % n);
}

/* One of n things that came in the order 0, 1, ...: `order` says which. */
static unsigned pick(unsigned n) {
  char order[16];
  core()->text("order", order, sizeof order);
  if (!strcmp(order, "fifo"))
    return 0;
  return !strcmp(order, "reverse") ? n - 1 : below(n);
}

/* ---- the threads ---- */

static unsigned count_state(const struct batch *b, enum state state) {
  unsigned n = 0;
  for (const struct entry *e = b->entries; e; e = e->next)
    n += e->state == state;
  return n;
}

static struct entry *next_queued(void) {
  unsigned n = 0;
  for (struct batch *b = batches; b; b = b->next)
    n += count_state(b, QUEUED);
  if (!n)
    return NULL;
  unsigned skip = pick(n);
  for (struct batch *b = batches; b; b = b->next)
    for (struct entry *e = b->entries; e; e = e->next)
      if (e->state == QUEUED && !skip--)
        return e;
  return NULL;
}

/* Without the lock: what an entry comes to. */
static ssize_t run(const struct entry *e, int *status) {
  static struct standin_site site = {.name = "batch_entry"};
  const struct params *p = e->params;
  struct transfer t = {
      p->handle, p->batch.base, p->batch.size, p->batch.file_offset, p->batch.buffer_offset, p->opcode ? WRITE : READ,
      0};
  struct standin_fault fault = {0};
  int error = 0;
  *status = FAILED;
  if (enter(&site, &fault)) {
    *status = fault.code == CANCELED || fault.code == INVALID || fault.code == 32 ? (int)fault.code : FAILED;
    return fault.code > 0 ? -fault.error : fault.code;
  }
  ssize_t moved = transfer_run(&t, &fault, &error);
  if (moved >= 0)
    *status = COMPLETE;
  if (moved == -1)
    moved = IS_HIP ? -error : -EIO;
  return moved;
}

static void *work(void *nothing) {
  pthread_mutex_lock(&lock);
  for (;;) {
    struct entry *e = next_queued();
    if (!e) {
      pthread_cond_wait(&changed, &lock);
      continue;
    }
    e->state = RUNNING;
    e->batch->running++;
    pthread_mutex_unlock(&lock);
    int status;
    ssize_t result = run(e, &status);
    pthread_mutex_lock(&lock);
    e->state = ENDED;
    e->status = status;
    e->result = result;
    e->batch->running--;
    slabs_in_use--;
    pthread_cond_broadcast(&changed);
  }
  return nothing;
}

static void start_threads(void) {
  for (unsigned most = (unsigned)core()->setting("threads", 4); threads < most; threads++)
    core()->start_thread(work, NULL);
}

/* ---- submission ---- */

static int ill_formed(const struct params *p) {
  struct transfer t = {
      p->handle, p->batch.base, p->batch.size, p->batch.file_offset, p->batch.buffer_offset, p->opcode ? WRITE : READ,
      0};
  struct target target;
  struct file *file = registry_use(p->handle);
  if (!file)
    return FILE_NOT_REGISTERED;
  registry_done(file);
  if (p->mode != BATCH_MODE || p->opcode < 0 || p->opcode > 1)
    return FILE_INVALID_VALUE;
  int code = registry_target(&t, &target);
  return code == -1 ? FILE_INVALID_VALUE : -code;
}

static void append(struct batch *b, struct entry *e) {
  struct entry **link = &b->entries;
  while (*link)
    link = &(*link)->next;
  *link = e;
  b->outstanding++;
}

static void add_entry(struct batch *b, const struct params *p, int lost) {
  struct entry *e = calloc(1, sizeof *e);
  *e = (struct entry){.batch = b, .copy = *p, .cookie = p->cookie, .lost = lost};
  e->params = IS_HIP ? &e->copy : p;
  int code = ill_formed(p);
  if (code) {
    e->state = ENDED;
    e->status = INVALID;
    e->result = -code;
  } else if (!*driver_direct() && slabs_in_use >= parameter_slabs()) {
    e->state = STUCK;
    core()->trace("stuck");
  } else {
    slabs_in_use++;
  }
  append(b, e);
}

static struct status submit(struct batch *b, unsigned n, const struct params *params) {
  int one_at_a_time = !IS_HIP && !*driver_direct() && core()->setting("one_submission", 1);
  if (n > b->capacity - b->outstanding)
    return file_status(IS_HIP ? FILE_BATCH_FULL : FILE_INTERNAL);
  for (unsigned i = 0; IS_HIP && i < n; i++) {
    int code = ill_formed(&params[i]);
    if (code)
      return file_status(code);
  }
  int lost = one_at_a_time && b->outstanding;
  if (lost)
    core()->misuse("a batch gets another submission before the first one is through: it would never be reported");
  for (unsigned i = 0; i < n; i++)
    add_entry(b, &params[i], lost);
  start_threads();
  pthread_cond_broadcast(&changed);
  return file_status(FILE_OK);
}

STANDIN_EXPORT struct status fn_file(BatchIOSetUp)(struct batch **handle, unsigned capacity) {
  ENTER_STATUS(fn_file(BatchIOSetUp));
  size_t most = IS_HIP ? HIP_MOST : parameter_size(PARAMETER_BATCH);
  if (!core() || (!IS_HIP && !driver_users()))
    return file_status(FILE_INTERNAL);
  most = (size_t)core()->setting("batch_limit", (int64_t)most);
  if (!handle || !capacity || capacity > most)
    return invalid();
  struct batch *b = calloc(1, sizeof *b);
  b->capacity = capacity;
  pthread_mutex_lock(&lock);
  if (!random_state)
    random_state = (uint64_t)core()->setting("seed", 1);
  b->next = batches;
  batches = b;
  pthread_mutex_unlock(&lock);
  *handle = b;
  return file_status(FILE_OK);
}

STANDIN_EXPORT struct status fn_file(BatchIOSubmit)(struct batch *handle, unsigned n, struct params *params,
                                                    unsigned flags) {
  ENTER_STATUS(fn_file(BatchIOSubmit));
  (void)flags;
  if (!n || !params)
    return invalid();
  pthread_mutex_lock(&lock);
  struct batch *b = find(handle);
  struct status status = b ? submit(b, n, params) : invalid();
  pthread_mutex_unlock(&lock);
  return status;
}

/* ---- events ---- */

static unsigned reportable(const struct batch *b) {
  unsigned n = 0;
  for (const struct entry *e = b->entries; e; e = e->next)
    n += e->state == ENDED && !e->lost;
  return n;
}

static struct event report(struct batch *b, unsigned index) {
  struct entry **link = &b->entries;
  while ((*link)->state != ENDED || (*link)->lost || index--)
    link = &(*link)->next;
  struct entry *e = *link;
  struct event event = {e->cookie, e->status, (size_t)e->result};
  *link = e->next;
  b->outstanding--;
  free(e);
  return event;
}

static unsigned report_all(struct batch *b, unsigned room, struct event *events) {
  unsigned most = (unsigned)core()->setting("report", MAX_EVENTS), n = 0;
  room = room < most ? room : most;
  for (unsigned left; n < room && (left = reportable(b)); n++)
    events[n] = report(b, pick(left));
  return n;
}

static int wait_for_change(const struct timespec *until) {
  return until ? pthread_cond_timedwait(&changed, &lock, until) : pthread_cond_wait(&changed, &lock);
}

static struct timespec from_now(const struct timespec *timeout) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += timeout->tv_sec;
  until.tv_nsec += timeout->tv_nsec;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  return until;
}

STANDIN_EXPORT struct status fn_file(BatchIOGetStatus)(struct batch *handle, unsigned least, unsigned *n,
                                                       struct event *events, struct timespec *timeout) {
  ENTER_STATUS(fn_file(BatchIOGetStatus));
  if (!n || !*n || !events || least > *n)
    return invalid();
  if (timeout && (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec > 999999999))
    return file_status(FILE_INVALID_VALUE);
  struct timespec until = timeout ? from_now(timeout) : (struct timespec){0};
  pthread_mutex_lock(&lock);
  struct batch *b = find(handle);
  while (b && reportable(b) < (least < b->outstanding ? least : b->outstanding))
    if (wait_for_change(timeout ? &until : NULL))
      break;
    else
      b = find(handle);
  if (b)
    *n = report_all(b, *n, events);
  pthread_mutex_unlock(&lock);
  return b ? file_status(FILE_OK) : invalid();
}

/* ---- the end ---- */

static void cancel(struct batch *b) {
  for (struct entry *e = b->entries; e; e = e->next) {
    if (e->state != QUEUED && e->state != STUCK)
      continue;
    slabs_in_use -= e->state == QUEUED;
    e->state = ENDED;
    e->status = CANCELED;
  }
  pthread_cond_broadcast(&changed);
}

static void wait_running(struct batch *b) {
  while (b->running)
    pthread_cond_wait(&changed, &lock);
}

STANDIN_EXPORT struct status fn_file(BatchIOCancel)(struct batch *handle) {
  ENTER_STATUS(fn_file(BatchIOCancel));
  pthread_mutex_lock(&lock);
  struct batch *b = find(handle);
  if (b)
    cancel(b);
  if (b && IS_HIP)
    wait_running(b);
  pthread_mutex_unlock(&lock);
  return b || !IS_HIP ? file_status(FILE_OK) : invalid();
}

/* Under the lock. */
static void destroy(struct batch *b) {
  struct batch **link = &batches;
  cancel(b);
  wait_running(b);
  while (*link != b)
    link = &(*link)->next;
  *link = b->next;
  for (struct entry *e; (e = b->entries);) {
    b->entries = e->next;
    free(e);
  }
  free(b);
}

STANDIN_EXPORT void fn_file(BatchIODestroy)(struct batch *handle) {
  ENTER_VOID(fn_file(BatchIODestroy));
  pthread_mutex_lock(&lock);
  if (find(handle))
    destroy(handle);
  pthread_mutex_unlock(&lock);
}

void batch_clear(void) {
  pthread_mutex_lock(&lock);
  while (batches)
    destroy(batches);
  pthread_mutex_unlock(&lock);
}

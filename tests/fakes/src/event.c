/* event.c - marks in a stream. */
#include "stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define BLOCKING_SYNC 1
#define DISABLE_TIMING 2
#define INTERPROCESS 4

struct event {
  int device;
  unsigned flags;
  uint64_t recorded, passed; /* marks put into streams, marks that were reached */
  struct timespec when;
  int users; /* the owner, and marks on their way */
  struct event *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct event *events;

static int is_event(const struct event *event) {
  const struct event *e = events;
  while (e && e != event)
    e = e->next;
  return e != NULL;
}

/* Under the lock. */
static void let_go(struct event *e) {
  if (!--e->users)
    free(e);
}

struct mark {
  struct event *event;
  uint64_t number;
};

static void pass(void *argument) {
  struct mark *mark = argument;
  struct event *e = mark->event;
  pthread_mutex_lock(&lock);
  if (mark->number > e->passed) {
    e->passed = mark->number;
    clock_gettime(CLOCK_MONOTONIC, &e->when);
  }
  pthread_cond_broadcast(&changed);
  let_go(e);
  pthread_mutex_unlock(&lock);
  free(mark);
}

static void wait_mark(void *argument) {
  struct mark *mark = argument;
  pthread_mutex_lock(&lock);
  while (mark->event->passed < mark->number)
    pthread_cond_wait(&changed, &lock);
  let_go(mark->event);
  pthread_mutex_unlock(&lock);
  free(mark);
}

/* Lock held on OK. */
static int use(struct event *event, struct device **device) {
  int status = device_use(device);
  if (status)
    return status;
  pthread_mutex_lock(&lock);
  if (is_event(event))
    return OK;
  pthread_mutex_unlock(&lock);
  return INVALID_HANDLE;
}

STANDIN_EXPORT int fn_event_create(struct event **event, unsigned flags) {
  ENTER(fn_event_create);
  struct device *device;
  int status = device_use(&device);
  if (status)
    return answer(status);
  if (flags & ~(unsigned)(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS))
    return answer(INVALID_VALUE);
  struct event *e = calloc(1, sizeof *e);
  *e = (struct event){.device = device->ordinal, .flags = flags, .users = 1};
  pthread_mutex_lock(&lock);
  e->next = events;
  events = e;
  pthread_mutex_unlock(&lock);
  *event = e;
  return OK;
}

#if IS_HIP
STANDIN_EXPORT int hipEventCreate(struct event **event) { return fn_event_create(event, 0); }
#endif

STANDIN_EXPORT int fn_event_destroy(struct event *event) {
  ENTER(fn_event_destroy);
  struct device *device;
  int status = use(event, &device);
  if (status)
    return answer(status);
  struct event **link = &events;
  while (*link != event)
    link = &(*link)->next;
  *link = event->next;
  let_go(event);
  pthread_mutex_unlock(&lock);
  return OK;
}

STANDIN_EXPORT int fn_event_record(struct event *event, void *handle) {
  ENTER(fn_event_record);
  struct device *device;
  int status = use(event, &device);
  if (status)
    return answer(status);
  pthread_mutex_unlock(&lock);
  struct stream *stream = stream_find(handle, device->ordinal);
  if (!stream || stream_device(stream) != event->device)
    return answer(INVALID_HANDLE); /* both must be of one device */
  struct mark *mark = malloc(sizeof *mark);
  pthread_mutex_lock(&lock);
  *mark = (struct mark){event, ++event->recorded};
  event->users++;
  pthread_mutex_unlock(&lock);
  stream_push(stream, pass, mark);
  return OK;
}

STANDIN_EXPORT int fn_event_query(struct event *event) {
  ENTER(fn_event_query);
  struct device *device;
  int status = use(event, &device);
  if (status)
    return answer(status);
  status = event->passed < event->recorded ? NOT_READY : device_at(event->device)->error;
  pthread_mutex_unlock(&lock);
  return answer(status);
}

STANDIN_EXPORT int fn_event_synchronize(struct event *event) {
  ENTER(fn_event_synchronize);
  struct device *device;
  int status = use(event, &device);
  if (status)
    return answer(status);
  for (uint64_t number = event->recorded; event->passed < number;)
    pthread_cond_wait(&changed, &lock);
  status = device_at(event->device)->error;
  pthread_mutex_unlock(&lock);
  return answer(status);
}

static int elapsed(float *ms, struct event *from, struct event *to) {
  struct device *device;
  int status = use(from, &device);
  if (status)
    return status;
  if (!is_event(to) || !from->recorded || !to->recorded || (from->flags | to->flags) & DISABLE_TIMING ||
      from->device != to->device)
    status = INVALID_HANDLE;
  else if (from->passed < from->recorded || to->passed < to->recorded)
    status = NOT_READY;
  else
    *ms = (float)((double)(to->when.tv_sec - from->when.tv_sec) * 1e3 +
                  (double)(to->when.tv_nsec - from->when.tv_nsec) * 1e-6);
  pthread_mutex_unlock(&lock);
  return status;
}

STANDIN_EXPORT int fn_event_elapsed(float *ms, struct event *from, struct event *to) {
  ENTER(fn_event_elapsed);
  return answer(elapsed(ms, from, to));
}

#if !IS_HIP
STANDIN_EXPORT int cuEventElapsedTime_v2(float *ms, struct event *from, struct event *to) {
  ENTER(cuEventElapsedTime_v2);
  return elapsed(ms, from, to);
}
#endif

STANDIN_EXPORT int fn_stream_wait_event(void *handle, struct event *event, unsigned flags) {
  ENTER(fn_stream_wait_event);
  struct device *device;
  int status = flags > 1 ? INVALID_VALUE : use(event, &device);
  if (status)
    return answer(status);
  int pending = event->passed < event->recorded;
  struct mark *mark = pending ? malloc(sizeof *mark) : NULL;
  if (pending) {
    *mark = (struct mark){event, event->recorded};
    event->users++;
  }
  pthread_mutex_unlock(&lock);
  struct stream *stream = stream_find(handle, device->ordinal);
  if (!stream)
    return answer(INVALID_HANDLE);
  if (pending)
    stream_push(stream, wait_mark, mark);
  return OK;
}

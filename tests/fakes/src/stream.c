/* stream.c - each stream is a thread that does queued work in order.
 *
 * The default stream waits for what the device's blocking streams have, and they for it; streams made with the
 * non-blocking flag stay out of that.
 */
#include "stream.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define NON_BLOCKING 1
#define LEGACY ((void *)1)
#define MAX_FINISHED 1024

struct work {
  standin_work *run;
  void *argument;
  struct work *next;
};

struct stream {
  int device, is_default;
  unsigned flags;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct work *first, **last;
  uint64_t queued, done;
  int dying;
  int users; /* the owner, the thread, and other streams that wait */
  struct stream *next;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *streams;
static struct stream *defaults[MAX_DEVICES];

void start_thread(void *(*body)(void *), void *argument) {
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the caller's */
  if (!pthread_create(&thread, NULL, body, argument))
    pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void let_go(struct stream *s) {
  pthread_mutex_lock(&s->lock);
  int left = --s->users;
  pthread_mutex_unlock(&s->lock);
  if (!left)
    free(s);
}

static void *stream_thread(void *argument) {
  struct stream *s = argument;
  pthread_mutex_lock(&s->lock);
  while (s->first || !s->dying) {
    struct work *work = s->first;
    if (!work) {
      pthread_cond_wait(&s->changed, &s->lock);
      continue;
    }
    s->first = work->next;
    if (!s->first)
      s->last = &s->first;
    pthread_mutex_unlock(&s->lock);
    work->run(work->argument);
    free(work);
    pthread_mutex_lock(&s->lock);
    s->done++;
    pthread_cond_broadcast(&s->changed);
  }
  pthread_mutex_unlock(&s->lock);
  let_go(s);
  return NULL;
}

static struct stream *make(int device, unsigned flags, int is_default) {
  struct stream *s = calloc(1, sizeof *s);
  s->device = device;
  s->flags = flags;
  s->is_default = is_default;
  s->users = 2;
  s->last = &s->first;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  start_thread(stream_thread, s);
  return s;
}

static uint64_t append(struct stream *s, standin_work *run, void *argument) {
  struct work *work = malloc(sizeof *work);
  *work = (struct work){.run = run, .argument = argument};
  pthread_mutex_lock(&s->lock);
  *s->last = work;
  s->last = &work->next;
  uint64_t number = ++s->queued;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  return number;
}

static void wait_for(struct stream *s, uint64_t number) {
  pthread_mutex_lock(&s->lock);
  while (s->done < number)
    pthread_cond_wait(&s->changed, &s->lock);
  pthread_mutex_unlock(&s->lock);
}

struct barrier {
  struct stream *stream;
  uint64_t number;
};

static void pass_barrier(void *argument) {
  struct barrier *barrier = argument;
  wait_for(barrier->stream, barrier->number);
  let_go(barrier->stream);
  free(barrier);
}

/* `s` goes on only when `other` has done what it has now. */
static void wait_behind(struct stream *s, struct stream *other) {
  pthread_mutex_lock(&other->lock);
  int busy = other->done < other->queued;
  struct barrier *barrier = busy ? malloc(sizeof *barrier) : NULL;
  if (busy) {
    *barrier = (struct barrier){other, other->queued};
    other->users++;
  }
  pthread_mutex_unlock(&other->lock);
  if (busy)
    append(s, pass_barrier, barrier);
}

static uint64_t push(struct stream *s, standin_work *run, void *argument) {
  pthread_mutex_lock(&list_lock);
  if (s->is_default) {
    for (struct stream *other = streams; other; other = other->next)
      if (other->device == s->device && !(other->flags & NON_BLOCKING))
        wait_behind(s, other);
  } else if (!(s->flags & NON_BLOCKING) && defaults[s->device]) {
    wait_behind(s, defaults[s->device]);
  }
  uint64_t number = append(s, run, argument);
  pthread_mutex_unlock(&list_lock);
  return number;
}

void stream_push(struct stream *s, standin_work *run, void *argument) { push(s, run, argument); }

void stream_run(struct stream *s, standin_work *run, void *argument) { wait_for(s, push(s, run, argument)); }

void stream_drain(struct stream *s) {
  pthread_mutex_lock(&s->lock);
  uint64_t number = s->queued;
  pthread_mutex_unlock(&s->lock);
  wait_for(s, number);
}

static struct stream *default_of(int device) {
  pthread_mutex_lock(&list_lock);
  if (!defaults[device])
    defaults[device] = make(device, 0, 1);
  pthread_mutex_unlock(&list_lock);
  return defaults[device];
}

struct stream *stream_find(void *handle, int device) {
  if (!handle || handle == LEGACY)
    return default_of(device);
  pthread_mutex_lock(&list_lock);
  struct stream *s = streams;
  while (s && s != handle)
    s = s->next;
  pthread_mutex_unlock(&list_lock);
  return s;
}

int stream_device(const struct stream *s) { return s->device; }

void stream_finish(int device) {
  struct stream *found[MAX_FINISHED];
  int n = 0;
  pthread_mutex_lock(&list_lock);
  for (struct stream *s = streams; s && n < MAX_FINISHED - 1; s = s->next)
    if (s->device == device) {
      s->users++;
      found[n++] = s;
    }
  if (defaults[device]) {
    defaults[device]->users++;
    found[n++] = defaults[device];
  }
  pthread_mutex_unlock(&list_lock);
  while (n--) {
    stream_drain(found[n]);
    let_go(found[n]);
  }
}

/* The stream of an entry point, and its device: of the current one, unless `anywhere`. */
static int use(void *handle, int anywhere, struct stream **stream) {
  struct device *device;
  int status = device_use(&device);
  if (status)
    return status;
  *stream = stream_find(handle, device->ordinal);
  if (!*stream)
    return INVALID_HANDLE;
  if ((*stream)->device == device->ordinal || anywhere)
    return OK;
  return control_setting("strict", 1) ? INVALID_HANDLE : OK;
}

STANDIN_EXPORT int fn_stream_create(void **handle, unsigned flags) {
  ENTER(fn_stream_create);
  struct device *device;
  int status = device_use(&device);
  if (status)
    return answer(status);
  if (!handle || flags & ~(unsigned)NON_BLOCKING)
    return answer(INVALID_VALUE);
  struct stream *s = make(device->ordinal, flags, 0);
  pthread_mutex_lock(&list_lock);
  s->next = streams;
  streams = s;
  pthread_mutex_unlock(&list_lock);
  *handle = s;
  return OK;
}

#if IS_HIP
STANDIN_EXPORT int hipStreamCreate(void **handle) { return fn_stream_create(handle, 0); }
#endif

STANDIN_EXPORT int fn_stream_destroy(void *handle) {
  ENTER(fn_stream_destroy);
  struct stream *s, **link = &streams;
  int status = use(handle, 1, &s);
  if (status)
    return answer(status);
  if (s->is_default)
    return answer(INVALID_HANDLE);
  pthread_mutex_lock(&list_lock);
  while (*link && *link != s)
    link = &(*link)->next;
  if (*link)
    *link = s->next;
  pthread_mutex_unlock(&list_lock);
  pthread_mutex_lock(&s->lock);
  s->dying = 1; /* what it still has to do goes on */
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  let_go(s);
  return OK;
}

STANDIN_EXPORT int fn_stream_synchronize(void *handle) {
  ENTER(fn_stream_synchronize);
  struct stream *s;
  int status = use(handle, 1, &s);
  if (status)
    return answer(status);
  stream_drain(s);
  return answer(device_at(s->device)->error);
}

STANDIN_EXPORT int fn_stream_query(void *handle) {
  ENTER(fn_stream_query);
  struct stream *s;
  int status = use(handle, 1, &s);
  if (status)
    return answer(status);
  pthread_mutex_lock(&s->lock);
  int busy = s->done < s->queued;
  pthread_mutex_unlock(&s->lock);
  return answer(busy ? NOT_READY : device_at(s->device)->error);
}

STANDIN_EXPORT int fn_stream_flags(void *handle, unsigned *flags) {
  ENTER(fn_stream_flags);
  struct stream *s;
  int status = use(handle, 1, &s);
  if (!status)
    *flags = s->flags;
  return answer(status);
}

#if IS_HIP
STANDIN_EXPORT int hipStreamGetDevice(void *handle, int *device) {
  ENTER(hipStreamGetDevice);
  struct stream *s;
  int status = use(handle, 1, &s);
  if (!status)
    *device = s->device;
  return answer(status);
}
#endif

STANDIN_EXPORT int fn_host_function(void *handle, standin_work *function, void *argument) {
  ENTER(fn_host_function);
  struct stream *s;
  int status = use(handle, 0, &s);
  if (status)
    return answer(status);
  if (!function)
    return answer(INVALID_VALUE);
  stream_push(s, function, argument);
  return OK;
}

int stream_core_device(void *handle) {
  struct stream *s;
  int status = use(handle, 1, &s);
  return status ? -status : s->device;
}

int stream_core_enqueue(void *handle, standin_work *work, void *argument) {
  struct stream *s;
  int status = use(handle, 1, &s);
  if (!status)
    stream_push(s, work, argument);
  return status;
}

int stream_core_wait(void *handle) {
  struct stream *s;
  int status = use(handle, 1, &s);
  if (!status)
    stream_drain(s);
  return status;
}

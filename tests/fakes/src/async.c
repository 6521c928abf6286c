/* async.c - transfers that a stream does. Size and offsets are read when the stream gets there; hipFile reads those
 * early that the stream was registered for as fixed, cuFile none.
 */
#include "file.h"

#include <pthread.h>
#include <stdlib.h>

#define FIXED_BUFFER_OFFSET 1
#define FIXED_FILE_OFFSET 2
#define FIXED_SIZE 4
#define ALL_FLAGS 15u

struct stream_entry {
  void *stream;
  unsigned flags;
  struct stream_entry *next;
};

struct operation {
  struct transfer transfer; /* what is fixed already */
  size_t most;              /* the size at submission */
  size_t *size;             /* NULL: fixed */
  off_t *file_offset, *buffer_offset;
  ssize_t *moved;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream_entry *streams;

static struct stream_entry **find(void *stream) {
  struct stream_entry **link = &streams;
  while (*link && (*link)->stream != stream)
    link = &(*link)->next;
  return link;
}

static unsigned flags_of(void *stream) {
  pthread_mutex_lock(&lock);
  struct stream_entry *entry = *find(stream);
  unsigned flags = entry ? entry->flags : 0;
  pthread_mutex_unlock(&lock);
  return flags;
}

STANDIN_EXPORT struct status fn_file(StreamRegister)(void *stream, unsigned flags) {
  ENTER_STATUS(fn_file(StreamRegister));
  if (!core() || core()->start() || core()->stream_device(stream) < 0 || (IS_HIP && flags & ~ALL_FLAGS))
    return file_status(FILE_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  struct stream_entry **link = find(stream);
  int known = *link != NULL;
  if (!known) {
    *link = malloc(sizeof **link);
    **link = (struct stream_entry){stream, flags, NULL};
  }
  pthread_mutex_unlock(&lock);
  return file_status(known ? FILE_INVALID_VALUE : FILE_OK);
}

STANDIN_EXPORT struct status fn_file(StreamDeregister)(void *stream) {
  ENTER_STATUS(fn_file(StreamDeregister));
  pthread_mutex_lock(&lock);
  struct stream_entry **link = find(stream), *entry = *link;
  if (entry)
    *link = entry->next;
  pthread_mutex_unlock(&lock);
  if (entry && core()->stream_wait(stream))
    core()->misuse("a stream is destroyed before the file library has let go of it");
  free(entry);
  return file_status(entry ? FILE_OK : FILE_INVALID_VALUE);
}

/* On the stream's thread. */
static void run(void *argument) {
  static struct standin_site site = {.name = "stream_io"};
  struct operation *o = argument;
  struct transfer t = o->transfer;
  struct standin_fault fault = {0};
  int error;
  if (o->size)
    t.size = *o->size;
  if (o->file_offset)
    t.file_offset = *o->file_offset;
  if (o->buffer_offset)
    t.buffer_offset = *o->buffer_offset;
  ssize_t moved;
  if (enter(&site, &fault))
    moved = fault.code > 0 ? -fault.code : fault.code;
  else if (IS_HIP && t.size > o->most)
    moved = -FILE_INVALID_VALUE;
  else
    moved = transfer_run(&t, &fault, &error);
  if (IS_HIP && moved == -1)
    moved = -FILE_INTERNAL;
  *o->moved = moved;
  free(o);
}

/* hipFile refuses at once what cuFile reports through the count. */
static struct status refused_early(const struct transfer *t, int device) {
  struct target target;
  struct file *file = registry_use(t->handle);
  if (!file)
    return file_status(FILE_NOT_REGISTERED);
  registry_done(file);
  if (!IS_HIP)
    return file_status(FILE_OK);
  int code = registry_target(t, &target);
  if (code)
    return file_status(code == -1 ? FILE_INVALID_VALUE : -code);
  return file_status(target.device >= 0 && target.device != device ? FILE_INVALID_VALUE : FILE_OK);
}

static struct status submit(struct transfer t, size_t *size, off_t *file_offset, off_t *buffer_offset, ssize_t *moved,
                            void *stream) {
  if (!driver_users()) {
    struct status status = driver_need(); /* opens the driver, and fails all the same */
    return status.code ? status : file_status(FILE_INVALID_VALUE);
  }
  if (!t.base || !size || !file_offset || !buffer_offset || !moved)
    return file_status(FILE_INVALID_VALUE);
  int device = core()->stream_device(stream);
  if (device < 0)
    return IS_HIP ? file_status(FILE_INVALID_VALUE) : gpu_status(-device);
  t.size = *size;
  t.file_offset = *file_offset;
  t.buffer_offset = *buffer_offset;
  struct status status = refused_early(&t, device);
  if (status.code)
    return status;
  unsigned fixed = IS_HIP ? flags_of(stream) : 0;
  struct operation *o = malloc(sizeof *o);
  *o = (struct operation){t,
                          t.size,
                          fixed & FIXED_SIZE ? NULL : size,
                          fixed & FIXED_FILE_OFFSET ? NULL : file_offset,
                          fixed & FIXED_BUFFER_OFFSET ? NULL : buffer_offset,
                          moved};
  *moved = 0;
  core()->enqueue(stream, run, o);
  return file_status(FILE_OK);
}

STANDIN_EXPORT struct status fn_file(ReadAsync)(uint64_t handle, uint64_t base, size_t *size, off_t *file_offset,
                                                off_t *buffer_offset, ssize_t *moved, void *stream) {
  ENTER_STATUS(fn_file(ReadAsync));
  struct transfer t = {.handle = handle, .base = base, .opcode = READ};
  return submit(t, size, file_offset, buffer_offset, moved, stream);
}

STANDIN_EXPORT struct status fn_file(WriteAsync)(uint64_t handle, uint64_t base, size_t *size, off_t *file_offset,
                                                 off_t *buffer_offset, ssize_t *moved, void *stream) {
  ENTER_STATUS(fn_file(WriteAsync));
  struct transfer t = {.handle = handle, .base = base, .opcode = WRITE};
  return submit(t, size, file_offset, buffer_offset, moved, stream);
}

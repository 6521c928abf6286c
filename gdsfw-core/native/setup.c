/* setup.c - everything a loop needs is allocated and checked here, so that the loop itself allocates nothing. */
#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool config_is_sound(const struct gdsfw_config *c) {
  const struct gdsfw_io *io = c->io;
  bool known = c->struct_size == sizeof *c && c->abi == GDSFW_ENGINE_ABI && io && io->abi == GDSFW_ABI;
  if (!known || !c->live || c->iodepth == 0 || c->compress_percent > 100 || c->dedupe_percent > 100)
    return false;
  struct gdsfw_io table = io_copy(io);
  bool queued = table.queue != NULL;
  if (queued && (table.queue->abi != GDSFW_ABI || c->batch_submit == 0 || c->batch_complete == 0))
    return false;
  if ((c->shape.reads && !queued && !table.read) || (c->shape.writes && !queued && !table.write))
    return false;
  return queued || c->iodepth == 1;
}

static struct gdsfw_queue queue_copy(const struct gdsfw_queue *queue) {
  struct gdsfw_queue copy = {0};
  if (queue)
    memcpy(&copy, queue, queue->struct_size < sizeof copy ? queue->struct_size : sizeof copy);
  return copy;
}

/* A key whose slot is empty is refused when the job is planned; here it must not crash. */
static bool table_has_what_it_takes(const struct worker *w) {
  const struct gdsfw_config *c = w->config;
  const struct gdsfw_queue *queue = &w->queue;
  if (w->io.queue && !(queue->open && queue->submit && queue->reap && queue->close))
    return false;
  bool host = w->io.flags & GDSFW_HOST_VISIBLE;
  bool flushes = c->shape.writes && (c->fsync_every || c->fdatasync_every || c->end_fsync);
  if (flushes && !w->io.flush)
    return false;
  if (c->check && !w->io.verify && !host)
    return false;
  if (c->shape.writes && c->write_fill == FILL_PATTERN && !w->io.fill && !host)
    return false;
  return !c->register_per_io || (w->io.register_buffer && w->io.deregister_buffer);
}

/* Does every slot lie inside the buffer? A table that moves nothing may have none. */
static bool slots_fit(const struct worker *w) {
  const struct gdsfw_config *c = w->config;
  uint64_t span, end;
  if (c->buffer_size == 0 && !(w->io.flags & GDSFW_HOST_VISIBLE))
    return true;
  if (c->iodepth > 1 && c->slot_stride < w->offsets.largest)
    return false;
  if (__builtin_mul_overflow(c->slot_stride, (uint64_t)c->iodepth - 1, &span) ||
      __builtin_add_overflow(span, c->buffer_offset, &end) || __builtin_add_overflow(end, w->offsets.largest, &end))
    return false;
  return end <= c->buffer_size;
}

static void pace_init(struct worker *w) {
  const struct gdsfw_config *c = w->config;
  for (int d = 0; d < 2; d++) {
    w->pace[d] = (struct pace){
        .rate_bytes = c->rate_bytes[d],
        .rate_iops = c->rate_iops[d],
        .poisson = c->poisson != 0,
    };
    w->paced |= pace_limits(&w->pace[d]);
  }
  w->arrivals = stream_make(c->shape.seed, STREAM_ARRIVAL);
}

static int allocate(struct worker *w) {
  const struct gdsfw_config *c = w->config;
  w->offset_files = calloc(c->shape.file_count + 1, sizeof *w->offset_files);
  w->unsynced = calloc(c->shape.file_count + 1, sizeof *w->unsynced);
  w->stale = calloc(c->iodepth, sizeof *w->stale);
  return w->offset_files && w->unsynced && w->stale ? 0 : ENOMEM;
}

static void clear_results(struct worker *w) {
  struct gdsfw_result *r = w->result;
  uint32_t abi = r->abi, size = r->struct_size;
  memset(r, 0, sizeof *r);
  r->abi = abi;
  r->struct_size = size;
  uint32_t stop = w->live->stop;
  memset(w->live, 0, sizeof *w->live);
  w->live->stop |= stop;
}

int worker_init(struct worker *w, const struct gdsfw_config *config, struct gdsfw_result *result) {
  memset(w, 0, sizeof *w);
  if (!config_is_sound(config) || result->struct_size != sizeof *result)
    return EINVAL;
  w->config = config;
  w->result = result;
  w->live = config->live;
  w->io = io_copy(config->io);
  w->queue = queue_copy(w->io.queue);
  w->log.fd = config->log_fd;
  w->writes_to_fsync = config->fsync_every;
  w->writes_to_fdatasync = config->fdatasync_every;
  w->nonces = stream_make(config->shape.seed, STREAM_BUFFER);
  if (!table_has_what_it_takes(w))
    return EOPNOTSUPP;
  clear_results(w);
  pace_init(w);
  result->separate_lat = w->paced || w->io.queue;
  int error = allocate(w);
  if (!error)
    error = offsets_init(&w->offsets, &config->shape, w->offset_files);
  if (!error && !slots_fit(w))
    error = EINVAL;
  if (!error && (config->written || config->generations))
    error = track_init(&w->track, config, w->offsets.once ? w->offsets.cell : 0);
  /* Without the record of what was written the job still runs; without generations it could not verify. */
  if (error == EFBIG && !config->generations)
    error = 0;
  return error ? error : buffers_init(w);
}

void worker_free(struct worker *w) {
  track_free(&w->track);
  free(w->offset_files);
  free(w->unsynced);
  free(w->stale);
  free(w->pool);
}

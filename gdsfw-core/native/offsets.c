/* offsets.c - the sequence of I/O. engine/offsets.py is its twin: equal shapes give equal sequences.
 *
 * Each I/O takes its draws in the order file, direction, size, offset, each from its own stream, and only where there
 * is a choice. Points that are easy to get differently:
 *
 * - A mix with read_percent 0 or 100 has one direction, and no direction is drawn.
 * - Sequential: every direction of a file has its own position; a direction's pass is over when its position reaches
 *   the length. Random: both directions share one pass; with once_per_block (uniform only) it is over after `cells`
 *   I/Os, otherwise once the bytes issued to the file in this pass reach its length.
 * - A file is finished when its pass is over in every direction. When the last file finishes, a new pass of all of
 *   them begins at once: positions and counts at zero, pass number one higher, runs ended.
 * - Files of length 0 are always finished.
 * - A drawn size is cut first to the file (random: its length; once_per_block and sequential: what is left at the
 *   offset), and last, with the offset already chosen, to what is left of the whole sequence.
 * - A range's size is low + step * below((high - low) / step + 1), without a draw when that is 1 choice.
 * - Round robin begins with file 0, and so does every pass of the sequential service.
 */
#include "offsets.h"

#include <errno.h>

static int blocks_init(struct offset_blocks *blocks, const struct gdsfw_blocks *spec, uint64_t align) {
  if (spec->count == 0 || (spec->step && spec->count != 2))
    return EINVAL;
  uint64_t smallest = UINT64_MAX;
  blocks->choices = spec->choices;
  blocks->count = spec->count;
  for (uint64_t i = 0; i < spec->count; i++) {
    if (spec->choices[i].size == 0)
      return EINVAL;
    blocks->total_weight += spec->choices[i].weight;
    if (spec->choices[i].size < smallest)
      smallest = spec->choices[i].size;
  }
  if (spec->step) {
    if (spec->choices[1].size < spec->choices[0].size)
      return EINVAL;
    blocks->low = spec->choices[0].size;
    blocks->step = spec->step;
    blocks->steps = (spec->choices[1].size - blocks->low) / spec->step + 1;
  } else if (spec->count > 1 && blocks->total_weight == 0) {
    return EINVAL;
  }
  blocks->single = spec->count == 1 || blocks->steps == 1 ? spec->choices[0].size : 0;
  blocks->unit = align ? align : smallest;
  return 0;
}

static uint64_t largest_block(const struct gdsfw_shape *shape) {
  uint64_t largest = 0;
  const uint32_t used[2] = {shape->reads, shape->writes};
  for (int d = 0; d < 2; d++)
    for (uint64_t i = 0; used[d] && i < shape->blocks[d].count; i++)
      if (shape->blocks[d].choices[i].size > largest)
        largest = shape->blocks[d].choices[i].size;
  return largest;
}

static uint64_t round_up(uint64_t value, uint64_t to) { return to ? (value + to - 1) / to * to : value; }

/* Start pass number offsets->pass on every file. */
static void begin_pass(struct offsets *o) {
  o->unfinished = 0;
  if (o->file_service == SERVICE_SEQUENTIAL)
    o->current = 0;
  for (uint32_t i = 0; i < o->file_count; i++) {
    struct offset_file *file = &o->files[i];
    file->position[0] = file->position[1] = file->done = 0;
    file->run_position = UINT64_MAX;
    file->finished = file->length == 0;
    o->unfinished += !file->finished;
    if (o->once && file->length)
      file->order = permutation_make(o->seed, i, o->pass, file->pass_length);
  }
}

static int files_init(struct offsets *o, const struct gdsfw_shape *shape) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < shape->file_count; i++) {
    struct offset_file *file = &o->files[i];
    *file = (struct offset_file){.start = shape->files[i].start, .length = shape->files[i].length};
    file->pass_length = o->once ? (file->length + o->cell - 1) / o->cell : file->length;
    sum += file->length;
  }
  if (sum == 0)
    return EINVAL;
  if (shape->io_size)
    o->limit = shape->io_size;
  else if (shape->unlimited || __builtin_mul_overflow(sum, shape->loops ? shape->loops : 1, &o->limit))
    o->limit = UINT64_MAX;
  return 0;
}

int offsets_init(struct offsets *o, const struct gdsfw_shape *shape, struct offset_file *files) {
  struct gdsfw_shape s = *shape;
  if (s.reads && s.writes && s.read_percent == 0)
    s.reads = 0;
  if (s.reads && s.writes && s.read_percent >= 100)
    s.writes = 0;
  if (s.file_count == 0 || !(s.reads || s.writes))
    return EINVAL;
  *o = (struct offsets){
      .direction_stream = stream_make(s.seed, STREAM_DIRECTION),
      .size_stream = stream_make(s.seed, STREAM_SIZE),
      .file_stream = stream_make(s.seed, STREAM_FILE),
      .offset_stream = stream_make(s.seed, STREAM_OFFSET),
      .files = files,
      .file_count = s.file_count,
      .current = s.file_service == SERVICE_ROUNDROBIN ? s.file_count - 1 : 0,
      .file_service = s.file_service,
      .random = s.random,
      .once = s.random && s.once_per_block && s.distribution == DISTRIBUTION_UNIFORM,
      .mixed = s.reads && s.writes,
      .only = s.reads ? DIRECTION_READ : DIRECTION_WRITE,
      .read_percent = s.read_percent,
      .distribution = s.distribution,
      .theta = s.theta,
      .largest = largest_block(&s),
      .cell = round_up(largest_block(&s), s.block_align),
      .seed = s.seed,
  };
  if (s.reads && blocks_init(&o->blocks[DIRECTION_READ], &s.blocks[DIRECTION_READ], s.block_align))
    return EINVAL;
  if (s.writes && blocks_init(&o->blocks[DIRECTION_WRITE], &s.blocks[DIRECTION_WRITE], s.block_align))
    return EINVAL;
  if (files_init(o, &s))
    return EINVAL;
  begin_pass(o);
  return 0;
}

static uint32_t next_unfinished(const struct offsets *o, uint32_t from) {
  uint32_t index = from;
  while (o->files[index].finished)
    index = index + 1 == o->file_count ? 0 : index + 1;
  return index;
}

static inline uint32_t pick_file(struct offsets *o) {
  if (o->file_count == 1)
    return 0;
  uint32_t from = o->current;
  if (o->file_service == SERVICE_RANDOM)
    from = (uint32_t)stream_below(&o->file_stream, o->file_count);
  else if (o->file_service == SERVICE_ROUNDROBIN)
    from = from + 1 == o->file_count ? 0 : from + 1;
  return o->current = next_unfinished(o, from);
}

static inline uint32_t pick_direction(struct offsets *o, const struct offset_file *file) {
  if (!o->mixed)
    return o->only;
  uint32_t direction = stream_below(&o->direction_stream, 100) < o->read_percent ? DIRECTION_READ : DIRECTION_WRITE;
  if (!o->random && file->position[direction] >= file->length)
    direction = !direction;
  return direction;
}

static uint64_t draw_size(struct offsets *o, const struct offset_blocks *blocks) {
  if (blocks->steps)
    return blocks->low + blocks->step * stream_below(&o->size_stream, blocks->steps);
  uint64_t r = stream_below(&o->size_stream, blocks->total_weight);
  uint64_t i = 0;
  for (; r >= blocks->choices[i].weight; i++)
    r -= blocks->choices[i].weight;
  return blocks->choices[i].size;
}

static inline uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static inline void place_sequential(struct offsets *o, struct offset_file *file, struct gdsfw_planned_io *io) {
  uint64_t *position = &file->position[io->direction];
  io->offset = file->start + *position;
  io->size = least(io->size, file->length - *position);
  *position += io->size;
  bool other_over = !o->mixed || file->position[!io->direction] >= file->length;
  file->finished = *position >= file->length && other_over;
}

static inline void place_once(struct offsets *o, struct offset_file *file, struct gdsfw_planned_io *io) {
  uint64_t at = permutation_at(&file->order, file->done++) * o->cell;
  io->offset = file->start + at;
  io->size = least(io->size, file->length - at);
  file->finished = file->done >= file->pass_length;
}

static inline void place_random(struct offsets *o, struct offset_file *file, struct gdsfw_planned_io *io) {
  uint64_t unit = o->blocks[io->direction].unit;
  io->size = least(io->size, file->length);
  uint64_t positions = (file->length - io->size) / unit + 1;
  uint64_t position = o->distribution == DISTRIBUTION_UNIFORM ? stream_below(&o->offset_stream, positions)
                                                              : distribution_draw(o, file, io->direction, positions);
  if (o->distribution == DISTRIBUTION_RUNS)
    file->run_position = position + (io->size + unit - 1) / unit;
  io->offset = file->start + unit * position;
  file->done += io->size;
  file->finished = file->done >= file->pass_length;
}

bool offsets_next(struct offsets *o, struct gdsfw_planned_io *io) {
  if (o->issued >= o->limit)
    return false;
  io->file = pick_file(o);
  struct offset_file *file = &o->files[io->file];
  io->direction = pick_direction(o, file);
  const struct offset_blocks *blocks = &o->blocks[io->direction];
  io->size = blocks->single ? blocks->single : draw_size(o, blocks);
  if (!o->random)
    place_sequential(o, file, io);
  else if (o->once)
    place_once(o, file, io);
  else
    place_random(o, file, io);
  io->size = least(io->size, o->limit - o->issued);
  o->issued += io->size;
  if (file->finished && --o->unfinished == 0) {
    o->pass++;
    begin_pass(o);
  }
  return true;
}

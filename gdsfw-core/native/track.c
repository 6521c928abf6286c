/* track.c - a bit, and with generations a count, for each granule of the range that a loop may write. */
#include "track.h"

#include <errno.h>
#include <stdlib.h>

#define MOST_MEMORY (256ull << 20)

static uint64_t gcd(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* The largest size that divides every offset (from a file's start) and every block that is written. */
static uint64_t find_granule(const struct gdsfw_shape *shape, uint64_t cell) {
  const struct gdsfw_blocks *blocks = &shape->blocks[DIRECTION_WRITE];
  uint64_t granule = gcd(shape->block_align, blocks->step);
  for (uint64_t i = 0; i < blocks->count; i++)
    granule = gcd(granule, blocks->choices[i].size);
  return gcd(granule, cell);
}

static uint64_t memory_needed(const struct gdsfw_config *config, uint64_t granule) {
  uint64_t granules = 0;
  for (uint32_t i = 0; i < config->shape.file_count; i++)
    granules += config->shape.files[i].length / granule + 1;
  return granules / 8 + (config->generations ? granules * sizeof(uint32_t) : 0);
}

int track_init(struct track *track, const struct gdsfw_config *config, uint64_t cell) {
  const struct gdsfw_shape *shape = &config->shape;
  *track = (struct track){.file_count = shape->file_count, .generations = config->generations};
  track->granule = find_granule(shape, cell);
  if (memory_needed(config, track->granule) > MOST_MEMORY)
    return EFBIG;
  track->files = calloc(shape->file_count, sizeof *track->files);
  if (!track->files)
    return ENOMEM;
  for (uint32_t i = 0; i < shape->file_count; i++) {
    struct track_file *file = &track->files[i];
    file->start = shape->files[i].start;
    file->length = shape->files[i].length;
    file->granules = (shape->files[i].length + track->granule - 1) / track->granule;
    file->bits = calloc(file->granules / 64 + 1, sizeof *file->bits);
    if (config->generations)
      file->generations = calloc(file->granules + 1, sizeof *file->generations);
    if (!file->bits || (config->generations && !file->generations))
      return ENOMEM;
  }
  return 0;
}

void track_free(struct track *track) {
  for (uint32_t i = 0; track->files && i < track->file_count; i++) {
    free(track->files[i].bits);
    free(track->files[i].generations);
  }
  free(track->files);
}

static void set_bits(uint64_t *bits, uint64_t from, uint64_t to, bool value) {
  while (from < to) {
    uint64_t at = from % 64, n = to - from < 64 - at ? to - from : 64 - at;
    uint64_t mask = (n == 64 ? UINT64_MAX : ((1ull << n) - 1)) << at;
    bits[from / 64] = value ? bits[from / 64] | mask : bits[from / 64] & ~mask;
    from += n;
  }
}

void track_written(struct track *track, const struct gdsfw_planned_io *io, bool acknowledged) {
  struct track_file *file = &track->files[io->file];
  uint64_t begin = io->offset - file->start, end = begin + io->size;
  uint64_t first = begin / track->granule, touched = (end + track->granule - 1) / track->granule;
  /* A granule at the end of the range counts as whole; elsewhere only the last block of all is cut. */
  uint64_t whole = end == file->length ? touched : end / track->granule;
  set_bits(file->bits, first, acknowledged ? whole : touched, acknowledged);
  if (acknowledged && whole < touched)
    track->last = (struct gdsfw_range){io->file, file->start + whole * track->granule, end - whole * track->granule};
  for (uint64_t i = first; track->generations && i < touched; i++) {
    uint32_t next = (file->generations[i] & ~GENERATION_UNKNOWN) + 1;
    file->generations[i] = acknowledged ? next : next | GENERATION_UNKNOWN;
  }
}

uint64_t track_run(const struct track *track, uint32_t index, uint64_t offset, uint64_t size, uint32_t *generation) {
  if (!track->generations) {
    *generation = 0;
    return size;
  }
  const struct track_file *file = &track->files[index];
  uint64_t begin = offset - file->start, at = begin / track->granule;
  *generation = file->generations[at];
  uint64_t end = begin;
  while (end < begin + size && file->generations[at] == *generation)
    end = ++at * track->granule;
  return end < begin + size ? end - begin : size;
}

static uint64_t next_bit(const uint64_t *bits, uint64_t from, uint64_t end, bool value) {
  while (from < end) {
    uint64_t word = (value ? bits[from / 64] : ~bits[from / 64]) >> (from % 64);
    if (word) {
      uint64_t at = from + (uint64_t)__builtin_ctzll(word);
      return at < end ? at : end;
    }
    from = (from / 64 + 1) * 64;
  }
  return end;
}

struct range_list {
  struct gdsfw_range *ranges;
  uint64_t room, count;
};

static void append(struct range_list *list, struct gdsfw_range range) {
  struct gdsfw_range *last = list->count && list->count <= list->room ? &list->ranges[list->count - 1] : NULL;
  if (last && last->file == range.file && last->start + last->length == range.start) {
    last->length += range.length;
    return;
  }
  if (list->count < list->room)
    list->ranges[list->count] = range;
  list->count++;
}

uint64_t track_ranges(const struct track *track, struct gdsfw_range *ranges, uint64_t room) {
  struct range_list list = {ranges, room, 0};
  for (uint32_t i = 0; i < track->file_count; i++) {
    const struct track_file *file = &track->files[i];
    uint64_t last_granule = (track->last.start - file->start) / track->granule, at = 0;
    bool has_last = track->last.length && track->last.file == i;
    while (at < file->granules) {
      uint64_t begin = next_bit(file->bits, at, file->granules, true);
      /* The cut block goes into its place in the order, unless a whole write covers it. */
      if (has_last && last_granule >= at && last_granule < begin)
        append(&list, track->last);
      if (begin == file->granules)
        break;
      at = next_bit(file->bits, begin, file->granules, false);
      uint64_t end = at * track->granule < file->length ? at * track->granule : file->length;
      append(&list, (struct gdsfw_range){i, file->start + begin * track->granule, end - begin * track->granule});
    }
  }
  return list.count <= room ? list.count : UINT64_MAX;
}

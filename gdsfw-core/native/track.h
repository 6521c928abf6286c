/* track.h - which bytes were acknowledged as written, and how often a block was rewritten. */
#ifndef GDSFW_TRACK_H
#define GDSFW_TRACK_H

#include "engine.h"

struct track_file {
  uint64_t start, length;
  uint64_t granules;
  uint64_t *bits;        /* one for each granule that is known to hold what was written last */
  uint32_t *generations; /* how often a granule was written by this loop */
};

/* Memory is found once, before the loop. A granule divides every block and offset that the loop writes, so that only
 * the end of a file or the very last block covers part of one. */
struct track {
  struct track_file *files; /* NULL when nothing is tracked */
  uint32_t file_count;
  bool generations;
  uint64_t granule;
  struct gdsfw_range last; /* the last block, when it covered part of a granule */
};

enum { GENERATION_UNKNOWN = 1u << 31 }; /* or-ed to the count: a write failed, the bytes may be old or new */

/* `cell` is the distance of offsets with once_per_block, else 0. Returns 0, ENOMEM, or EFBIG when the blocks are so
 * small that keeping track takes more than 256 MiB. */
int track_init(struct track *track, const struct gdsfw_config *config, uint64_t cell);
void track_free(struct track *track);

void track_written(struct track *track, const struct gdsfw_planned_io *io, bool acknowledged);

/* From `offset` of a file on: how many bytes, at most `size`, share one generation, and which. */
uint64_t track_run(const struct track *track, uint32_t file, uint64_t offset, uint64_t size, uint32_t *generation);

/* Merged ranges in file order; returns how many, UINT64_MAX when they do not fit. */
uint64_t track_ranges(const struct track *track, struct gdsfw_range *ranges, uint64_t room);

#endif

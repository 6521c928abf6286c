/* inspect.c - parts of the engine called one at a time: the plan's preview of a sequence, and property tests. */
#include "histogram.h"
#include "inspect.h"
#include "offsets.h"

#include <errno.h>

GDSFW_EXPORT int64_t gdsfw_preview(const struct gdsfw_shape *shape, struct gdsfw_planned_io *ios, uint64_t n) {
  struct offsets offsets;
  struct offset_file *files = calloc(shape->file_count ? shape->file_count : 1, sizeof *files);
  if (!files)
    return -ENOMEM;
  int64_t count = -offsets_init(&offsets, shape, files);
  if (count == 0)
    while ((uint64_t)count < n && offsets_next(&offsets, &ios[count]))
      count++;
  free(files);
  return count;
}

GDSFW_EXPORT void gdsfw_permute(uint64_t seed, uint64_t file_index, uint64_t pass, uint64_t n, uint64_t first,
                                uint64_t count, uint64_t *out) {
  struct permutation p = permutation_make(seed, file_index, pass, n);
  for (uint64_t i = 0; i < count; i++)
    out[i] = permutation_at(&p, first + i);
}

GDSFW_EXPORT uint32_t gdsfw_histogram_index(uint64_t value) { return histogram_index(value); }

GDSFW_EXPORT uint64_t gdsfw_engine_sizes(uint32_t which) {
  static const uint64_t sizes[] = {
      sizeof(struct gdsfw_config), sizeof(struct gdsfw_result), sizeof(struct gdsfw_live),
      sizeof(struct gdsfw_shape),  sizeof(struct gdsfw_io),     sizeof(struct gdsfw_queue),
  };
  return which < sizeof sizes / sizeof sizes[0] ? sizes[which] : 0;
}

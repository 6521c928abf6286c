/* engine.c - entry points of the library. */
#include "worker.h"

#include <errno.h>
#include <stdlib.h>

GDSFW_EXPORT uint32_t gdsfw_engine_abi(void) { return GDSFW_ENGINE_ABI; }

GDSFW_EXPORT int32_t gdsfw_run(const struct gdsfw_config *config, struct gdsfw_result *result) {
  struct worker *w = aligned_alloc(64, (sizeof *w + 63) / 64 * 64);
  if (!w)
    return ENOMEM;
  int error = worker_init(w, config, result);
  if (!error && w->io.queue)
    loop_queue(w);
  else if (!error)
    loop_sync(w);
  worker_free(w);
  free(w);
  return error;
}

/* list.h - moves a given list of blocks: what the Python sessions call. */
#ifndef GDSFW_LIST_H
#define GDSFW_LIST_H

#include "decode.h"

#include <stdbool.h>

struct gdsfw_list_result {
  uint64_t bytes;  /* moved */
  uint64_t index;  /* of the first block that failed */
  uint32_t domain; /* enum gdsfw_domain: GDSFW_NONE when all went well */
  uint32_t reserved;
  int64_t code;
};

/* Move n blocks, in any order, through the table's queue or one by one. Stops at the first failure, when nothing is in
 * flight any more. Returns 0, or -ENOMEM. */
int64_t gdsfw_move_list(const struct gdsfw_io *table, const struct gdsfw_queue_options *options,
                        const struct gdsfw_request *requests, uint64_t n, struct gdsfw_list_result *result);

#endif

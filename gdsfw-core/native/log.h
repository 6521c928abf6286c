/* log.h - one line of text for each I/O, gathered in memory and written in large pieces. */
#ifndef GDSFW_LOG_H
#define GDSFW_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { LOG_BYTES = 64 << 10, LOG_LONGEST_LINE = 160 };

struct io_log {
  int fd; /* -1: no log */
  int error;
  uint32_t used;
  char text[LOG_BYTES];
};

struct log_entry {
  uint64_t time_ns; /* completion, since the start of the loop */
  const char *operation;
  uint64_t file, offset, size, latency_ns;
  uint64_t domain, code; /* 0, 0 for success */
};

/* Adds "time_ns,operation,file,offset,bytes,latency_ns,domain,code". */
void log_add(struct io_log *log, const struct log_entry *entry);
void log_flush(struct io_log *log);

#endif

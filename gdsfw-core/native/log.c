/* log.c - formatting and writing of the I/O log. */
#include "log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static char *put_number(char *to, uint64_t value) {
  char digits[20];
  int n = 0;
  do
    digits[n++] = (char)('0' + value % 10);
  while (value /= 10);
  while (n)
    *to++ = digits[--n];
  return to;
}

static char *put_field(char *to, uint64_t value, char after) {
  to = put_number(to, value);
  *to++ = after;
  return to;
}

/* Whole lines in one write(2), so that workers which share the file do not break each other's lines. */
void log_flush(struct io_log *log) {
  uint32_t done = 0;
  while (log->fd >= 0 && done < log->used) {
    ssize_t n = write(log->fd, log->text + done, log->used - done);
    if (n > 0) {
      done += (uint32_t)n;
    } else if (n == 0 || errno != EINTR) {
      log->error = n ? errno : EIO;
      log->fd = -1;
    }
  }
  log->used = 0;
}

void log_add(struct io_log *log, const struct log_entry *entry) {
  if (log->used > LOG_BYTES - LOG_LONGEST_LINE)
    log_flush(log);
  char *to = put_field(log->text + log->used, entry->time_ns, ',');
  size_t length = strlen(entry->operation);
  memcpy(to, entry->operation, length);
  to[length] = ',';
  to = put_field(to + length + 1, entry->file, ',');
  to = put_field(to, entry->offset, ',');
  to = put_field(to, entry->size, ',');
  to = put_field(to, entry->latency_ns, ',');
  to = put_field(to, entry->domain, ',');
  to = put_field(to, entry->code, '\n');
  log->used = (uint32_t)(to - log->text);
}

/* hostmap.c - whether the kernel would let a driver pin host pages, judged by /proc/self/maps. */
#include "memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#define TMPFS_MAGIC 0x01021994
#define HUGETLBFS_MAGIC 0x958458f6

/* Pages of a file on a disk cannot be pinned for long when they may be written: the file system could not know. */
static int writable_for_long(const char *path) {
  struct statfs fs;
  if (!strncmp(path, "/memfd:", 7) || !strncmp(path, "/dev/zero", 9))
    return 1;
  return !statfs(path, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

static int refused(const char *permissions, const char *path, int read_only) {
  int shared_file = permissions[3] == 's' && *path == '/';
  if (permissions[0] != 'r')
    return 1;
  if (read_only)
    return 0;
  return permissions[1] != 'w' || (shared_file && !writable_for_long(path));
}

int hostmap_check(uint64_t address, size_t size, int read_only, int *file_backed) {
  FILE *maps = fopen("/proc/self/maps", "re");
  if (!maps)
    return INVALID_VALUE;
  char line[4096], permissions[8], path[4000];
  uint64_t next = address, low, high;
  *file_backed = 0;
  while (next < address + size && fgets(line, sizeof line, maps)) {
    *path = 0;
    if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %3999[^\n]", &low, &high, permissions, path) < 3 || high <= next)
      continue;
    if (low > next || refused(permissions, path, read_only))
      break;
    *file_backed |= *path == '/';
    next = high;
  }
  fclose(maps);
  return next >= address + size ? OK : INVALID_VALUE;
}

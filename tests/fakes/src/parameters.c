/* parameters.c - the file library's own settings. cuFile has them; hipFile has the functions, unimplemented. */
#include "file.h"

#include <stdlib.h>
#include <string.h>

#define SIZES 12
#define FLAGS 14
#define STRINGS 4
#define SLABS 3

/* Defaults and ranges of the size parameters, in the order of CUFileSizeTConfigParameter_t. */
static size_t sizes[SIZES] = {0, 128, 4, 8192, 4, 16384, 131072, 1024, 33554432, 128, 4, 0};
static bool flags[FLAGS] = {[FLAG_ALLOW_COMPAT] = true, [FLAG_SYSTEM_MEMORY] = true};
static bool flag_set[FLAGS];
static size_t fewest_slabs; /* as set by the caller, 0: not set */

size_t parameter_size(int which) { return sizes[which]; }
bool parameter_flag(int which) { return flags[which]; }
void parameter_put(int which, size_t value) { sizes[which] = value; }

void parameter_put_flag(int which, bool value) {
  flags[which] = value;
  flag_set[which] = true;
}

size_t parameter_slabs(void) {
  if (IS_HIP)
    return SIZE_MAX; /* its threads map memory for each call */
  return fewest_slabs ? fewest_slabs : (size_t)core()->setting("slabs", 64);
}

static void from_environment(const char *name, int which) {
  const char *text = getenv(name);
  if (!text || flag_set[which])
    return;
  if (!strcmp(text, "true") || (!IS_HIP && !strcmp(text, "1")))
    flags[which] = true;
  else if (!strcmp(text, "false") || (!IS_HIP && !strcmp(text, "0")))
    flags[which] = false;
}

void parameter_defaults(void) {
#if IS_HIP
  static bool read; /* hipFile looks at its environment once */
  if (read)
    return;
  read = true;
  from_environment("HIPFILE_ALLOW_COMPAT_MODE", FLAG_ALLOW_COMPAT);
  from_environment("HIPFILE_FORCE_COMPAT_MODE", FLAG_FORCE_COMPAT);
  if (flags[FLAG_FORCE_COMPAT])
    flags[FLAG_ALLOW_COMPAT] = true;
#else
  from_environment("CUFILE_ALLOW_COMPAT_MODE", FLAG_ALLOW_COMPAT);
  from_environment("CUFILE_FORCE_COMPAT_MODE", FLAG_FORCE_COMPAT);
  from_environment("CUFILE_USE_PCIP2PDMA", FLAG_P2PDMA);
#endif
}

#if IS_HIP

#define UNIMPLEMENTED(name, ...)                                                                                       \
  STANDIN_EXPORT struct status fn_file(name)(__VA_ARGS__) {                                                            \
    ENTER_STATUS(fn_file(name));                                                                                       \
    return file_status(FILE_INTERNAL);                                                                                 \
  }

#pragma GCC diagnostic ignored "-Wunused-parameter"
UNIMPLEMENTED(GetParameterSizeT, int which, size_t *value)
UNIMPLEMENTED(GetParameterBool, int which, bool *value)
UNIMPLEMENTED(GetParameterString, int which, char *text, int size)
UNIMPLEMENTED(SetParameterSizeT, int which, size_t value)
UNIMPLEMENTED(SetParameterBool, int which, bool value)
UNIMPLEMENTED(SetParameterString, int which, const char *text)
UNIMPLEMENTED(DriverSetPollMode, bool poll, size_t threshold)
UNIMPLEMENTED(DriverSetMaxDirectIOSize, size_t kb)
UNIMPLEMENTED(DriverSetMaxCacheSize, size_t kb)
UNIMPLEMENTED(DriverSetMaxPinnedMemSize, size_t kb)

#else

static const size_t lowest[SIZES] = {0, 1, 1, 1, 1, 4, 4, 4, 4, 1, 4, 0};
static const size_t highest[SIZES] = {3,       1024,    128,      1 << 20, 128,   1 << 20,
                                      1 << 24, 1 << 16, 1u << 31, 256,     16384, 1 << 20};
static size_t slab_sizes[SLABS] = {4, 1024, 16384}, slab_counts[SLABS] = {128, 64, 64};
static char strings[STRINGS][256] = {"ERROR", "", "", ""};

/* Whether a parameter may be set now. */
static struct status settable(int which, int known) {
  if (which < 0 || which >= known)
    return file_status(FILE_INVALID_VALUE);
  return file_status(driver_users() ? FILE_ALREADY_OPEN : FILE_OK);
}

STANDIN_EXPORT struct status cuFileGetParameterSizeT(int which, size_t *value) {
  ENTER_STATUS(cuFileGetParameterSizeT);
  if (which < 0 || which >= SIZES || !value)
    return file_status(FILE_INVALID_VALUE);
  *value = sizes[which];
  return file_status(FILE_OK);
}

STANDIN_EXPORT struct status cuFileGetParameterBool(int which, bool *value) {
  ENTER_STATUS(cuFileGetParameterBool);
  if (which < 0 || which >= FLAGS || !value)
    return file_status(FILE_INVALID_VALUE);
  *value = flags[which];
  return file_status(FILE_OK);
}

STANDIN_EXPORT struct status cuFileGetParameterString(int which, char *text, int size) {
  ENTER_STATUS(cuFileGetParameterString);
  if (which < 0 || which >= STRINGS || !text || size <= (int)strlen(strings[which]))
    return file_status(FILE_INVALID_VALUE);
  strcpy(text, strings[which]);
  return file_status(FILE_OK);
}

STANDIN_EXPORT struct status cuFileSetParameterSizeT(int which, size_t value) {
  ENTER_STATUS(cuFileSetParameterSizeT);
  struct status status = settable(which, SIZES);
  if (!status.code && (value < lowest[which] || value > highest[which]))
    status = file_status(FILE_INVALID_VALUE);
  if (!status.code)
    sizes[which] = value;
  return status;
}

STANDIN_EXPORT struct status cuFileSetParameterBool(int which, bool value) {
  ENTER_STATUS(cuFileSetParameterBool);
  struct status status = settable(which, FLAGS);
  if (!status.code)
    parameter_put_flag(which, value);
  return status;
}

STANDIN_EXPORT struct status cuFileSetParameterString(int which, const char *text) {
  ENTER_STATUS(cuFileSetParameterString);
  struct status status = settable(which, STRINGS);
  if (!status.code && (!text || strlen(text) >= sizeof strings[0]))
    status = file_status(FILE_INVALID_VALUE);
  if (!status.code)
    strcpy(strings[which], text);
  return status;
}

STANDIN_EXPORT struct status cuFileGetParameterMinMaxValue(int which, size_t *least, size_t *most) {
  ENTER_STATUS(cuFileGetParameterMinMaxValue);
  if (which < 0 || which >= SIZES || !least || !most)
    return file_status(FILE_INVALID_VALUE);
  *least = lowest[which];
  *most = highest[which];
  return file_status(FILE_OK);
}

STANDIN_EXPORT struct status cuFileSetParameterPosixPoolSlabArray(const size_t *sizes_kb, const size_t *counts, int n) {
  ENTER_STATUS(cuFileSetParameterPosixPoolSlabArray);
  if (!sizes_kb || !counts || n != SLABS)
    return file_status(FILE_INVALID_VALUE);
  if (driver_users())
    return file_status(FILE_ALREADY_OPEN);
  memcpy(slab_sizes, sizes_kb, sizeof slab_sizes);
  memcpy(slab_counts, counts, sizeof slab_counts);
  fewest_slabs = counts[0];
  for (int i = 1; i < n; i++)
    fewest_slabs = counts[i] < fewest_slabs ? counts[i] : fewest_slabs;
  return file_status(FILE_OK);
}

STANDIN_EXPORT struct status cuFileGetParameterPosixPoolSlabArray(size_t *sizes_kb, size_t *counts, int n) {
  ENTER_STATUS(cuFileGetParameterPosixPoolSlabArray);
  if (!sizes_kb || !counts || n != SLABS)
    return file_status(FILE_INVALID_VALUE);
  memcpy(sizes_kb, slab_sizes, sizeof slab_sizes);
  memcpy(counts, slab_counts, sizeof slab_counts);
  return file_status(FILE_OK);
}

/* The older setters; without effect once the driver is open. */
static struct status put(int which, size_t value) {
  if (!value)
    return file_status(FILE_INVALID_VALUE);
  if (!driver_users())
    sizes[which] = value;
  return file_status(FILE_OK);
}

STANDIN_EXPORT struct status cuFileDriverSetPollMode(bool poll, size_t threshold_kb) {
  ENTER_STATUS(cuFileDriverSetPollMode);
  if (!driver_users())
    parameter_put_flag(FLAG_POLL, poll);
  return put(PARAMETER_POLL_KB, threshold_kb);
}

STANDIN_EXPORT struct status cuFileDriverSetMaxDirectIOSize(size_t kb) {
  ENTER_STATUS(cuFileDriverSetMaxDirectIOSize);
  return put(PARAMETER_MAX_DIRECT_KB, kb);
}

STANDIN_EXPORT struct status cuFileDriverSetMaxCacheSize(size_t kb) {
  ENTER_STATUS(cuFileDriverSetMaxCacheSize);
  return put(PARAMETER_MAX_CACHE_KB, kb);
}

STANDIN_EXPORT struct status cuFileDriverSetMaxPinnedMemSize(size_t kb) {
  ENTER_STATUS(cuFileDriverSetMaxPinnedMemSize);
  return put(PARAMETER_MAX_PINNED_KB, kb);
}

STANDIN_EXPORT struct status cuFileGetBARSizeInKB(int device, size_t *kb) {
  ENTER_STATUS(cuFileGetBARSizeInKB);
  if (!kb || !core() || device < 0 || device >= core()->devices())
    return file_status(FILE_INVALID_VALUE);
  *kb = 262144;
  return file_status(FILE_OK);
}

#endif

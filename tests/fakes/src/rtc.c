/* rtc.c - the run-time compilers (libnvrtc, libhiprtc): kernels become host code, a shared library in place of an image
 * for a GPU. The C++ compiler is $CXX or c++. Options are looked at for an architecture only.
 */
#include "standin.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if IS_HIP
#define RTC(name) hiprtc##name
#define CODE(tail) hiprtcGetCode##tail
#define ARCHITECTURE "--offload-arch="
#else
#define RTC(name) nvrtc##name
#define CODE(tail) nvrtcGetCUBIN##tail
#define ARCHITECTURE "--gpu-architecture="
#endif

/* nvrtcResult and hiprtcResult, the same numbers. */
enum { RTC_OK = 0, RTC_INVALID_INPUT = 3, RTC_INVALID_PROGRAM = 4, RTC_INVALID_OPTION = 5, RTC_COMPILATION = 6 };

extern char **environ;

struct program {
  char *source, *code, log[16384];
  size_t size;
};

STANDIN_EXPORT int RTC(Version)(int *major, int *minor) {
  *major = IS_HIP ? 7 : 13;
  *minor = 0;
  return RTC_OK;
}

STANDIN_EXPORT int RTC(CreateProgram)(struct program **program, const char *source, const char *name, int headers,
                                      const char *const *contents, const char *const *names) {
  (void)name, (void)contents, (void)names;
  if (!source || headers)
    return RTC_INVALID_INPUT;
  *program = calloc(1, sizeof **program);
  (*program)->source = strdup(source);
  return RTC_OK;
}

STANDIN_EXPORT int RTC(DestroyProgram)(struct program **program) {
  if (!program || !*program)
    return RTC_INVALID_PROGRAM;
  free((*program)->source);
  free((*program)->code);
  free(*program);
  *program = NULL;
  return RTC_OK;
}

/* The source between what makes it host code and an entry for each of its kernels. */
static int write_source(const struct program *p, const char *path) {
  static const char mark[] = "__global__ void ";
  FILE *file = fopen(path, "we");
  if (!file)
    return -1;
  fprintf(file, "#include \"%s\"\n#line 1 \"kernels.cpp\"\n%s\n", STANDIN_TEXT(KERNEL_HOST), p->source);
  for (const char *at = p->source; (at = strstr(at, mark));) {
    at += sizeof mark - 1;
    fprintf(file, "KERNEL_ENTRY(%.*s)\n", (int)strcspn(at, "( "), at);
  }
  return fclose(file);
}

static int compile(char *const *arguments, const char *log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log, 01 | 0100, 0600); /* O_WRONLY | O_CREAT */
  pid_t pid;
  int status = -1, failed = posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed || waitpid(pid, &status, 0) != pid)
    return -1;
  return status;
}

static char *contents(const char *path, size_t *size) {
  FILE *file = fopen(path, "re");
  if (!file)
    return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *found = calloc(1, *size + 1);
  *size = fread(found, 1, *size, file);
  fclose(file);
  return found;
}

STANDIN_EXPORT int RTC(CompileProgram)(struct program *p, int count, const char *const *options) {
  if (!p)
    return RTC_INVALID_PROGRAM;
  for (int i = 0; i < count; i++)
    if (!strncmp(options[i], ARCHITECTURE, strlen(ARCHITECTURE)) && !options[i][strlen(ARCHITECTURE)])
      return RTC_INVALID_OPTION;
  char folder[] = "/tmp/standin-rtc-XXXXXX", source[64], library[64], log[64];
  if (!mkdtemp(folder))
    return RTC_COMPILATION;
  snprintf(source, sizeof source, "%s/kernels.cpp", folder);
  snprintf(library, sizeof library, "%s/kernels.so", folder);
  snprintf(log, sizeof log, "%s/log", folder);
  const char *compiler = getenv("CXX");
  char *arguments[] = {(char *)(compiler && *compiler ? compiler : "c++"),
                       "-std=c++17",
                       "-O2",
                       "-fPIC",
                       "-shared",
                       "-Wno-unknown-pragmas",
                       "-o",
                       library,
                       source,
                       NULL};
  int status = write_source(p, source) ? -1 : compile(arguments, log);
  size_t length;
  char *text = contents(log, &length);
  snprintf(p->log, sizeof p->log, "%s", text ? text : "the C++ compiler cannot be run");
  free(text);
  free(p->code);
  p->code = status ? NULL : contents(library, &p->size);
  unlink(source);
  unlink(library);
  unlink(log);
  rmdir(folder);
  return p->code ? RTC_OK : RTC_COMPILATION;
}

STANDIN_EXPORT int CODE(Size)(struct program *p, size_t *size) {
  if (!p || !p->code)
    return RTC_INVALID_PROGRAM;
  *size = p->size;
  return RTC_OK;
}

STANDIN_EXPORT int CODE()(struct program *p, char *code) {
  if (!p || !p->code)
    return RTC_INVALID_PROGRAM;
  memcpy(code, p->code, p->size);
  return RTC_OK;
}

STANDIN_EXPORT int RTC(GetProgramLogSize)(struct program *p, size_t *size) {
  *size = strlen(p->log) + 1;
  return RTC_OK;
}

STANDIN_EXPORT int RTC(GetProgramLog)(struct program *p, char *log) {
  memcpy(log, p->log, strlen(p->log) + 1);
  return RTC_OK;
}

STANDIN_EXPORT const char *RTC(GetErrorString)(int result) { return result ? "STANDIN_RTC_ERROR" : "STANDIN_RTC_OK"; }

/* control.h - settings, rules of failing and slow calls, the trace and what was misused. */
#ifndef STANDIN_CONTROL_H
#define STANDIN_CONTROL_H

#include "standin.h"

int control_enter(struct standin_site *site, struct standin_fault *fault);
int64_t control_setting(const char *name, int64_t otherwise);
void control_text(const char *name, char *value, size_t size);
void control_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
void control_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* At the top of an entry point: count, trace, delay, and answer for a rule. */
#define ENTER(symbol)                                                                                                  \
  do {                                                                                                                 \
    static struct standin_site site_ = {.name = STANDIN_TEXT(symbol)};                                                 \
    struct standin_fault fault_ = {0};                                                                                 \
    if (control_enter(&site_, &fault_))                                                                                \
      return answer((int)fault_.code);                                                                                 \
  } while (0)

/* An entry point's return value; HIP remembers the last error of each thread. */
int answer(int status);

#endif

/* control.c - settings, rules of failing and slow calls, the trace and what was misused. README.md has the grammar. */
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_SETTINGS 64
#define MAX_RULES 64

enum rule_kind { RULE_FAIL, RULE_DELAY, RULE_SHORT };

struct rule {
  enum rule_kind kind;
  char site[64];
  unsigned long first, last, every; /* of the calls since the rule was made */
  unsigned long seen;
  int64_t value;
  int error;
};

static const char *const known_settings[] = {
    "devices",  "memory", "pinned",      "driver_version", "strict",         "host_pointer",   "read_only_register",
    "contexts", "p2p",    "max_io",      "version",        "slabs",          "one_submission", "order",
    "seed",     "report", "batch_limit", "tmpfs",          "require_direct", "trace",          "lack",
    "threads",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
  char name[32], value[512];
} settings[MAX_SETTINGS];
static int nsettings;
static struct rule rules[MAX_RULES];
static atomic_int nrules;
static struct standin_site *sites;
static int trace_fd = -1;
static atomic_int tracing;
static char last_misuse[512];
static unsigned long misuses;

static int known(const char *name) {
  for (size_t i = 0; i < sizeof known_settings / sizeof *known_settings; i++)
    if (!strcmp(known_settings[i], name))
      return 1;
  return 0;
}

static int set(const char *name, const char *value) {
  int i = 0;
  while (i < nsettings && strcmp(settings[i].name, name))
    i++;
  if (!known(name) || i == MAX_SETTINGS || strlen(value) >= sizeof settings[i].value)
    return -1;
  nsettings = i == nsettings ? i + 1 : nsettings;
  strcpy(settings[i].name, name);
  strcpy(settings[i].value, value);
  if (!strcmp(name, "trace")) {
    if (trace_fd >= 0)
      close(trace_fd);
    trace_fd = *value ? open(value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    tracing = trace_fd >= 0;
  }
  return 0;
}

/* WHICH of a rule: N, N+, %N or *. */
static int parse_which(const char *which, struct rule *rule) {
  char *end;
  rule->first = 1;
  rule->last = ~0ul;
  rule->every = 1;
  if (!strcmp(which, "*"))
    return 0;
  if (*which == '%') {
    rule->first = rule->every = strtoul(which + 1, &end, 10);
    return *end || !rule->every ? -1 : 0;
  }
  rule->first = strtoul(which, &end, 10);
  if (*end != '+')
    rule->last = rule->first;
  return (*end && strcmp(end, "+")) || !rule->first ? -1 : 0;
}

/* SITE:WHICH:VALUE[:ERRNO] */
static int add_rule(enum rule_kind kind, char *text) {
  char *rest = text, *end;
  char *site = strsep(&rest, ":"), *which = strsep(&rest, ":"), *value = strsep(&rest, ":");
  struct rule rule = {.kind = kind};
  if (!site || !which || !value || strlen(site) >= sizeof rule.site || nrules == MAX_RULES || parse_which(which, &rule))
    return -1;
  strcpy(rule.site, site);
  rule.value = strtoll(value, &end, 0);
  if (*end)
    return -1;
  rule.error = rest ? atoi(rest) : EIO;
  rules[nrules] = rule;
  nrules++;
  return 0;
}

static void clear_rules(const char *site) {
  int kept = 0;
  for (int i = 0; i < nrules; i++)
    if (*site && strcmp(rules[i].site, site))
      rules[kept++] = rules[i];
  nrules = kept;
}

static int apply(char *statement) {
  char *value = strchr(statement, '=');
  if (value)
    *value++ = 0;
  if (!strcmp(statement, "clear")) {
    clear_rules(value ? value : "");
    return 0;
  }
  if (!value)
    return -1;
  if (!strcmp(statement, "fail"))
    return add_rule(RULE_FAIL, value);
  if (!strcmp(statement, "delay"))
    return add_rule(RULE_DELAY, value);
  if (!strcmp(statement, "short"))
    return add_rule(RULE_SHORT, value);
  return set(statement, value);
}

static int apply_all(const char *text) {
  char *copy = strdup(text), *rest = copy, *statement;
  int bad = 0;
  pthread_mutex_lock(&lock);
  while ((statement = strsep(&rest, ";\n")))
    if (*statement && apply(statement)) {
      fprintf(stderr, ENVIRONMENT ": cannot use `%s`\n", statement);
      bad = -1;
    }
  pthread_mutex_unlock(&lock);
  free(copy);
  return bad;
}

static void from_environment(void) {
  const char *text = getenv(ENVIRONMENT);
  if (text && apply_all(text))
    _exit(70); /* a test that asks for what does not exist must not pass */
}

STANDIN_EXPORT int fn_control(const char *text) {
  pthread_once(&once, from_environment);
  return apply_all(text);
}

/* How often an entry point was called, or work of a kind was done. */
STANDIN_EXPORT unsigned long fn_calls(const char *name) {
  unsigned long calls = 0;
  pthread_mutex_lock(&lock);
  for (struct standin_site *site = sites; site; site = site->next)
    if (!strcmp(site->name, name))
      calls += site->calls;
  pthread_mutex_unlock(&lock);
  return calls;
}

/* How often something undefined on real hardware was done; the last one's description. */
STANDIN_EXPORT unsigned long fn_misuse(const char **text) {
  if (text)
    *text = last_misuse;
  return misuses;
}

static void write_trace(const char *format, va_list arguments) {
  char line[640];
  int length = vsnprintf(line, sizeof line - 1, format, arguments);
  length = length < (int)sizeof line - 1 ? length : (int)sizeof line - 2;
  line[length] = '\n';
  if (write(trace_fd, line, (size_t)length + 1) < 0)
    tracing = 0;
}

void control_trace(const char *format, ...) {
  if (!tracing)
    return;
  va_list arguments;
  va_start(arguments, format);
  write_trace(format, arguments);
  va_end(arguments);
}

void control_misuse(const char *format, ...) {
  va_list arguments;
  pthread_mutex_lock(&lock);
  va_start(arguments, format);
  vsnprintf(last_misuse, sizeof last_misuse, format, arguments);
  va_end(arguments);
  misuses++;
  pthread_mutex_unlock(&lock);
  fprintf(stderr, "stand-in: misuse: %s\n", last_misuse);
  control_trace("misuse %s", last_misuse);
}

void control_text(const char *name, char *value, size_t size) {
  pthread_once(&once, from_environment);
  *value = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < nsettings; i++)
    if (!strcmp(settings[i].name, name))
      snprintf(value, size, "%s", settings[i].value);
  pthread_mutex_unlock(&lock);
}

int64_t control_setting(const char *name, int64_t otherwise) {
  char value[512];
  control_text(name, value, sizeof value);
  return *value ? strtoll(value, NULL, 0) : otherwise;
}

static void remember(struct standin_site *site) {
  pthread_mutex_lock(&lock);
  if (!site->known) {
    site->next = sites;
    sites = site;
    site->known = 1;
  }
  pthread_mutex_unlock(&lock);
}

static int matches(struct rule *rule, const char *name) {
  if (strcmp(rule->site, name))
    return 0;
  unsigned long n = ++rule->seen;
  return n >= rule->first && n <= rule->last && (n - rule->first) % rule->every == 0;
}

static void pause_for(int64_t ns) {
  struct timespec left = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
  while (nanosleep(&left, &left) && errno == EINTR)
    ;
}

int control_enter(struct standin_site *site, struct standin_fault *fault) {
  pthread_once(&once, from_environment);
  site->calls++;
  if (!site->known)
    remember(site);
  control_trace("call %s tid=%ld", site->name, syscall(SYS_gettid));
  if (!nrules)
    return 0;
  int failed = 0;
  int64_t delay = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < nrules; i++) {
    if (!matches(&rules[i], site->name))
      continue;
    if (rules[i].kind == RULE_DELAY) {
      delay += rules[i].value;
    } else if (rules[i].kind == RULE_SHORT) {
      fault->limit = rules[i].value;
    } else {
      failed = 1;
      fault->code = rules[i].value;
      fault->error = rules[i].error;
    }
  }
  pthread_mutex_unlock(&lock);
  if (delay)
    pause_for(delay);
  return failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Many bugs in one build: many-cc includes this file in a source in which a bug is planted, as

       sum += BUG(17, x[i - 1], x[i]);
       if (BUG(18, 0, 1)) release(block);

   SEQLSTM_BUG holds the numbers of the bugs that are in force, such as `17,18`. SEQLSTM_BUG_REACHED names a file with a
   byte for each number, which is set to 1 where a process comes by the bug. Both are read when a program or plugin is
   loaded, and from the nearest ancestor that has them where a test starts a program with another environment. Each
   program and plugin has a copy of what is below. */
#ifndef SEQLSTM_BUG_H
#define SEQLSTM_BUG_H

#define BUG_COUNT            4096
#define BUG(n, buggy, right) (bug_is(n) ? (buggy) : (right))

#define BUG_SHARED __attribute__((weak, visibility("hidden")))

#pragma GCC diagnostic push
#ifndef __cplusplus
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#endif

/* other names, so that no source has a name of its own taken away, and none calls a function of its own named `open` */
extern int bug_open(const char *path, int flags, ...) __asm__("__open");
extern long bug_read(int file, void *bytes, unsigned long count) __asm__("__read");
extern int bug_close(int file) __asm__("__close");
extern int bug_parent(void) __asm__("getppid");
extern void *bug_map(void *at, unsigned long size, int protection, int flags, int file, long offset) __asm__("mmap");

BUG_SHARED unsigned char bug_on[BUG_COUNT];
BUG_SHARED unsigned char bug_unseen[BUG_COUNT];
BUG_SHARED unsigned char *bug_reached = bug_unseen;
BUG_SHARED unsigned char bug_ready = 0;
BUG_SHARED char bug_text[131072];

/* Reads /proc/PROCESS/WHAT into bug_text, ended by two zeros. */
BUG_SHARED long bug_read_proc(int process, const char *what)
{
    char path[64] = "/proc/", digits[12];
    int at = 6, count = 0;
    long size = 0, got;
    for (; process > 0; process /= 10)
        digits[count++] = (char)('0' + process % 10);
    while (count > 0)
        path[at++] = digits[--count];
    for (; *what; what++)
        path[at++] = *what;
    int file = bug_open(path, 02000000); /* O_RDONLY | O_CLOEXEC */
    if (file < 0)
        return -1;
    while ((got = bug_read(file, bug_text + size, sizeof(bug_text) - 2 - (unsigned long)size)) > 0)
        size += got;
    bug_close(file);
    bug_text[size] = bug_text[size + 1] = '\0';
    return size;
}

/* The value of a variable in bug_text, or NULL. */
BUG_SHARED const char *bug_find(const char *name)
{
    for (const char *at = bug_text; *at;) {
        const char *a = at, *b = name;
        while (*b && *a == *b)
            a++, b++;
        if (!*b && *a == '=')
            return a + 1;
        while (*at)
            at++;
        at++;
    }
    return (const char *)0;
}

/* The parent of a process, 0 if there is none. */
BUG_SHARED int bug_parent_of(int process)
{
    long size = bug_read_proc(process, "/stat"), at = size;
    int parent = 0;
    while (at > 0 && bug_text[at] != ')')
        at--;
    if (at <= 0)
        return 0;
    for (at += 4; bug_text[at] >= '0' && bug_text[at] <= '9'; at++)
        parent = 10 * parent + (bug_text[at] - '0');
    return parent;
}

__attribute__((constructor, used)) BUG_SHARED void bug_load(void)
{
    if (bug_ready)
        return;
    bug_ready = 1;
    int process = 0;
    if (bug_read_proc(0, "self/environ") < 0)
        return;
    const char *numbers = bug_find("SEQLSTM_BUG");
    for (process = numbers ? 0 : bug_parent(); process > 1 && !numbers;) {
        if (bug_read_proc(process, "/environ") >= 0)
            numbers = bug_find("SEQLSTM_BUG");
        if (!numbers) /* what has been found stays in bug_text */
            process = bug_parent_of(process);
    }
    if (!numbers)
        return;
    for (const char *at = numbers; *at;) {
        int n = 0;
        for (; *at >= '0' && *at <= '9'; at++)
            n = 10 * n + (*at - '0');
        if (n > 0 && n < BUG_COUNT)
            bug_on[n] = 1;
        while (*at && !(*at >= '0' && *at <= '9'))
            at++;
    }
    const char *path = bug_find("SEQLSTM_BUG_REACHED");
    int file = path && *path ? bug_open(path, 02000002) : -1; /* O_RDWR | O_CLOEXEC */
    if (file < 0)
        return;
    void *bytes = bug_map((void *)0, BUG_COUNT, 3, 1, file, 0); /* PROT_READ | PROT_WRITE, MAP_SHARED */
    if (bytes != (void *)-1)
        bug_reached = (unsigned char *)bytes;
    bug_close(file);
}

#pragma GCC diagnostic pop

static inline __attribute__((unused)) int bug_is(int n)
{
    bug_reached[n] = 1;
    return bug_on[n];
}

#endif

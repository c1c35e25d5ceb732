/* SPDX-License-Identifier: Apache-2.0 */
/* Redirects stdout and stderr to an unnamed file for a while. See outlet.h. */
#include "registry/watch/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/value/text.h"
#include "registry/watch/plugin_text.h"

enum { SHOWN = 80, FAR = 256 }; /* our descriptors are beyond those that a careless loop closes */

/* Where the limit of descriptors does not allow it, near ones. */
static int duplicate_far(int file)
{
    int far = fcntl(file, F_DUPFD_CLOEXEC, FAR);
    return far >= 0 ? far : fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static int move_far(int file)
{
    int far = file >= 0 ? duplicate_far(file) : -1;
    if (far < 0)
        return file;
    close(file);
    return far;
}

static uint64_t get_inode(int file)
{
    struct stat status;
    return file >= 0 && fstat(file, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* False: its descriptor was closed, and its number may be another file's. */
static bool has_file(struct sl_outlet *outlet)
{
    if (outlet->file >= 0 && get_inode(outlet->file) != outlet->inode)
        outlet->file = -1;
    return outlet->file >= 0;
}

static void lead(const struct sl_outlet *outlet, bool away)
{
    for (int k = 0; k < 2; k++)
        if (outlet->kept[k] >= 0)
            dup2(away ? outlet->file : outlet->kept[k], STDOUT_FILENO + k);
}

void sl_outlet_pause(struct sl_outlet *outlet, bool pause)
{
    if (pause)
        pthread_mutex_lock(&outlet->lock);
    if (outlet->depth > 0)
        lead(outlet, !pause);
    if (!pause)
        pthread_mutex_unlock(&outlet->lock);
}

void sl_outlet_hold(struct sl_outlet *outlet)
{
    pthread_mutex_lock(&outlet->lock);
}

void sl_outlet_let_go(struct sl_outlet *outlet)
{
    pthread_mutex_unlock(&outlet->lock);
}

static void close_kept(struct sl_outlet *outlet)
{
    for (int k = 0; k < 2; k++) {
        if (outlet->kept[k] >= 0)
            close(outlet->kept[k]);
        outlet->kept[k] = -1;
    }
}

static void open_file(struct sl_outlet *outlet)
{
    outlet->file = move_far(memfd_create("outlet", MFD_CLOEXEC));
    outlet->inode = get_inode(outlet->file);
}

void sl_outlet_renew(struct sl_outlet *outlet)
{
    lead(outlet, false);
    close_kept(outlet);
    outlet->depth = 0;
    if (has_file(outlet))
        close(outlet->file);
    open_file(outlet);
}

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    struct sl_outlet *outlet = context;
    sl_outlet_pause(outlet, true);
    outlet->inner->write(outlet->inner->context, level, message);
    sl_outlet_pause(outlet, false);
}

void sl_outlet_init(struct sl_outlet *outlet, const struct sl_log *inner, bool stderr_too)
{
    memset(outlet, 0, sizeof *outlet);
    pthread_mutex_init(&outlet->lock, NULL);
    outlet->inner = inner;
    outlet->stderr_too = stderr_too;
    outlet->kept[0] = outlet->kept[1] = -1;
    open_file(outlet);
    if (inner && inner->write)
        outlet->log = (struct sl_log){.write = write_log, .context = outlet, .level = inner->level};
}

void sl_outlet_deinit(struct sl_outlet *outlet)
{
    if (outlet->file >= 0)
        close(outlet->file);
    pthread_mutex_destroy(&outlet->lock);
}

void sl_outlet_begin(struct sl_outlet *outlet)
{
    if (outlet->depth++ > 0 || outlet->file < 0)
        return;
    if (fflush(stdout) != 0 && outlet->error == 0) /* writes our own output first */
        outlet->error = errno;
    fflush(stderr);
    pthread_mutex_lock(&outlet->lock);
    for (int k = 0; k < (outlet->stderr_too ? 2 : 1); k++)
        outlet->kept[k] = duplicate_far(STDOUT_FILENO + k);
    lead(outlet, true);
    pthread_mutex_unlock(&outlet->lock);
}

void sl_outlet_pass_on(struct sl_outlet *outlet, const char *name)
{
    char line[1024]; /* a longer line comes in several */
    off_t at = 0;
    ssize_t n;
    if (outlet->depth != 1 || !has_file(outlet))
        return;
    fflush(stdout); /* what the plugin left in stdio's buffers */
    fflush(stderr);
    while ((n = pread(outlet->file, line, sizeof line - 1, at)) > 0) {
        line[n] = 0;
        size_t bytes = strcspn(line, "\n");
        at += (off_t)bytes + (bytes < (size_t)n);
        line[bytes] = 0;
        sl_plugin_text_clean(line, sizeof line);
        dprintf(outlet->kept[1] >= 0 ? outlet->kept[1] : STDERR_FILENO, "%s: %s\n", name, line);
    }
}

bool sl_outlet_end(struct sl_outlet *outlet, char *text, size_t capacity_bytes)
{
    if (--outlet->depth > 0)
        return false;
    fflush(stdout); /* then what the plugin left in stdio's buffers */
    fflush(stderr);
    pthread_mutex_lock(&outlet->lock);
    lead(outlet, false);
    close_kept(outlet);
    pthread_mutex_unlock(&outlet->lock);
    off_t written = has_file(outlet) ? lseek(outlet->file, 0, SEEK_CUR) : 0;
    if (written <= 0)
        return false;
    char words[SHOWN + 1];
    ssize_t n = pread(outlet->file, words, SHOWN, 0);
    words[n > 0 ? n : 0] = 0;
    words[strcspn(words, "\r\n")] = 0;
    sl_plugin_text_clean(words, sizeof words);
    sl_text_snprintf(text, capacity_bytes, "wrote %lld byte%s to stdout or stderr, and may use the host's log only: %s",
                     (long long)written, written == 1 ? "" : "s", words);
    if (ftruncate(outlet->file, 0) != 0 || lseek(outlet->file, 0, SEEK_SET) != 0) {
        close(outlet->file);
        outlet->file = -1;
    }
    return true;
}

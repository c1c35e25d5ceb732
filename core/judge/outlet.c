/* SPDX-License-Identifier: Apache-2.0 */
/* Redirects stdout and stderr to an unnamed file for a while. See outlet.h. */
#include "judge/outlet.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/value/text.h"

enum { SHOWN = 80 };

static void lead(const struct sl_outlet *outlet, bool away)
{
    for (int k = 0; k < 2; k++)
        if (outlet->kept[k] >= 0)
            dup2(away ? outlet->file : outlet->kept[k], STDOUT_FILENO + k);
}

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    struct sl_outlet *outlet = context;
    pthread_mutex_lock(&outlet->lock);
    if (outlet->depth > 0)
        lead(outlet, false);
    outlet->inner->write(outlet->inner->context, level, message);
    if (outlet->depth > 0)
        lead(outlet, true);
    pthread_mutex_unlock(&outlet->lock);
}

void sl_outlet_init(struct sl_outlet *outlet, const struct sl_log *inner, bool stderr_too)
{
    memset(outlet, 0, sizeof *outlet);
    pthread_mutex_init(&outlet->lock, NULL);
    outlet->inner = inner;
    outlet->stderr_too = stderr_too;
    outlet->kept[0] = outlet->kept[1] = -1;
    outlet->file = memfd_create("outlet", MFD_CLOEXEC);
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
    fflush(NULL); /* writes our own output first */
    pthread_mutex_lock(&outlet->lock);
    for (int k = 0; k < (outlet->stderr_too ? 2 : 1); k++)
        outlet->kept[k] = fcntl(STDOUT_FILENO + k, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    lead(outlet, true);
    pthread_mutex_unlock(&outlet->lock);
}

bool sl_outlet_end(struct sl_outlet *outlet, char *text, size_t capacity_bytes)
{
    if (--outlet->depth > 0 || outlet->file < 0)
        return false;
    fflush(NULL); /* then what the plugin left in stdio's buffers */
    pthread_mutex_lock(&outlet->lock);
    lead(outlet, false);
    for (int k = 0; k < 2; k++) {
        if (outlet->kept[k] >= 0)
            close(outlet->kept[k]);
        outlet->kept[k] = -1;
    }
    pthread_mutex_unlock(&outlet->lock);
    off_t written = lseek(outlet->file, 0, SEEK_CUR);
    if (written <= 0)
        return false;
    char words[SHOWN + 1];
    ssize_t n = pread(outlet->file, words, SHOWN, 0);
    words[n > 0 ? n : 0] = 0;
    words[strcspn(words, "\r\n")] = 0;
    sl_text_snprintf(text, capacity_bytes, "wrote %lld byte%s to stdout or stderr, and may use the host's log only: %s",
                     (long long)written, written == 1 ? "" : "s", words);
    if (ftruncate(outlet->file, 0) != 0 || lseek(outlet->file, 0, SEEK_SET) != 0) {
        close(outlet->file);
        outlet->file = -1;
    }
    return true;
}

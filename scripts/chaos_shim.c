/* Preloaded into featpipe by chaos.py: a disk that fails now and then, and a clock that jumps.

   CHAOS_EIO=N    about every N-th write or sync of a file below $CHAOS_FOLDER answers EIO
   CHAOS_CLOCK=S  the wall clock jumps by up to S seconds, forth and back, every second
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int fails(int descriptor) {
    static long every = -1;
    static const char *folder;
    static unsigned seed;
    if (every < 0) {
        const char *given = getenv("CHAOS_EIO");
        folder = getenv("CHAOS_FOLDER");
        seed = (unsigned)getpid() * 2654435761u;
        every = given ? atol(given) : 0;
    }
    if (every <= 0 || !folder) return 0;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return !strncmp(path, folder, strlen(folder)) && rand_r(&seed) % every == 0;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite(int d, const void *b, size_t n, off_t o) {
    if (fails(d)) { errno = EIO; return -1; }
    return NEXT(pwrite)(d, b, n, o);
}

ssize_t pwrite64(int d, const void *b, size_t n, off64_t o) {
    if (fails(d)) { errno = EIO; return -1; }
    return NEXT(pwrite64)(d, b, n, o);
}

int fdatasync(int d) {
    if (fails(d)) { errno = EIO; return -1; }
    return NEXT(fdatasync)(d);
}

int fsync(int d) {
    if (fails(d)) { errno = EIO; return -1; }
    return NEXT(fsync)(d);
}

int clock_gettime(clockid_t clock, struct timespec *t) {
    int answer = NEXT(clock_gettime)(clock, t);
    const char *most = getenv("CHAOS_CLOCK");
    if (!answer && most && clock == CLOCK_REALTIME) {
        unsigned seed = (unsigned)t->tv_sec * 2654435761u;
        long width = atol(most);
        t->tv_sec += (long)(rand_r(&seed) % (2 * width + 1)) - width;
    }
    return answer;
}

/* A library for LD_PRELOAD that counts the calls of a process to the kernel, has one of them fail or be its last, and
 * records what it does to the disk. `system_calls.py` beside it builds and steers it.
 *
 *   PPFAULTS_COUNTS  a file of counters, one for each role and family, which all processes share
 *   PPFAULTS_CALLS   `role family n errno`: the n-th call of this family by processes of this role fails with this
 *                    errno; with a `+` after it all later calls fail, too, until the last counter is set;
 *                    with errno 0 the process is killed
 *   PPFAULTS_WITNESS the folder of the files in which trials note what was acknowledged: no call of these fails
 *   PPFAULTS_RECORD  a file to which each change of the disk is appended, of files below PPFAULTS_ROOT
 *
 * A change is recorded after it was made and before the caller knows of it: what another process does because of it
 * stands later in the record. Only calls of programs and libraries pass here, not those within the C library itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* system_calls.py knows the order of these names. */
enum role { MANAGER, DISPATCHER, AGENT, TRIAL, OTHER, ROLES };
static const char *const role_names[] = {"manager", "dispatcher", "agent", "trial", "other"};
enum family { OPEN, WRITE, SYNC, RENAME, UNLINK, MKDIR, CONNECT, SEND, RECV, ACCEPT, FORK, THREAD, MMAP, FAMILIES };
static const char *const family_names[] = {"open", "write", "sync", "rename", "unlink", "mkdir", "connect",
                                           "send", "recv", "accept", "fork", "thread", "mmap"};
#define EVERY FAMILIES /* of the calls that change something outside of the process: what a kill can interrupt */

static atomic_ulong *counts; /* ROLES x (FAMILIES + 1), and whether the machine is well again */
#define COUNTERS (ROLES * (FAMILIES + 1) + 1)
static enum role mine = OTHER;
static int target_family = -1, target_errno;
static unsigned long target_n;
static int lasts;
static int record = -1;
static const char *root, *witness;

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}
#define REAL(result, name, ...) \
    static result (*call)(__VA_ARGS__); \
    if (!call) call = (result (*)(__VA_ARGS__))real(name)

#define CONTAINS(word) (memmem(line, (size_t)size, word, sizeof word - 1) != NULL)

static enum role role_of_this_process(void) {
    char line[8192];
    int file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : syscall(SYS_read, file, line, sizeof line);
    if (file >= 0) syscall(SYS_close, file);
    if (size <= 0) return OTHER;
    if (getenv("PITCHPIPE_REPORTS")) return TRIAL;
    if (CONTAINS("watchdog.py")) return OTHER;
    if (CONTAINS("pitchpipe.trial_agent")) return AGENT;
    if (CONTAINS("pitchpipe.dispatcher")) return DISPATCHER;
    return CONTAINS("start.py\0") || CONTAINS("\0pitchpipe\0") ? MANAGER : OTHER;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("PPFAULTS_COUNTS"), *plan = getenv("PPFAULTS_CALLS");
    mine = role_of_this_process();
    if (path) {
        int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
        if (file >= 0) {
            void *memory = mmap(NULL, sizeof(atomic_ulong) * COUNTERS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            syscall(SYS_close, file);
            if (memory != MAP_FAILED) counts = memory;
        }
    }
    if (plan && counts) {
        char role[16], family[16], sign = 0;
        if (sscanf(plan, "%15s %15s %lu %d%c", role, family, &target_n, &target_errno, &sign) >= 4 && !strcmp(role, role_names[mine])) {
            for (int each = 0; each < FAMILIES; each++)
                if (!strcmp(family, family_names[each])) target_family = each;
            if (!strcmp(family, "every")) target_family = EVERY;
            lasts = sign == '+';
        }
    }
    path = getenv("PPFAULTS_RECORD");
    root = getenv("PPFAULTS_ROOT");
    witness = getenv("PPFAULTS_WITNESS");
    if (path && *path && root) {
        record = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (record >= 0) { /* out of the way of programs that close or number descriptors */
            int high = (int)syscall(SYS_fcntl, record, F_DUPFD_CLOEXEC, 900);
            syscall(SYS_close, record);
            record = high;
        }
    }
}

static int is_due(enum family which) {
    if (!counts) return 0;
    unsigned long n = atomic_fetch_add(&counts[mine * (FAMILIES + 1) + which], 1) + 1;
    return (int)which == target_family && (n == target_n || (lasts && n > target_n && !counts[COUNTERS - 1]));
}

/* Count a call; return whether it fails, with errno set. A process that is to die here does not return. */
static int fails(enum family which) {
    int saved = errno;
    if (which != MMAP && which != RECV && is_due(EVERY)) {
        syscall(SYS_kill, getpid(), SIGKILL);
        for (;;) pause();
    }
    if (is_due(which)) {
        errno = target_errno;
        return 1;
    }
    errno = saved;
    return 0;
}

static int is_witness(const char *path) { return witness && !strncmp(path, witness, strlen(witness)); }

static int is_witness_open(int file) {
    char link[64], path[PATH_MAX];
    if (!witness || !counts) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = syscall(SYS_readlink, link, path, PATH_MAX - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return is_witness(path);
}

/* ------------------------------------------------------------------ the record */

struct change {
    uint32_t size; /* of the whole entry */
    char what;     /* see system_calls.py */
    char padding[3];
    uint64_t inode, offset;
    uint32_t path, other, data; /* lengths of what follows */
};

static int below_root(const char *path) { return !strncmp(path, root, strlen(root)); }

static void note(char what, uint64_t inode, uint64_t offset, const char *path, const char *other, const struct iovec *data, int pieces) {
    struct iovec parts[64];
    struct change head = {.what = what, .inode = inode, .offset = offset, .path = (uint32_t)strlen(path), .other = (uint32_t)strlen(other)};
    int saved = errno, count = 3;
    for (int piece = 0; piece < pieces && count < 64; piece++) parts[count++] = data[piece], head.data += (uint32_t)data[piece].iov_len;
    head.size = (uint32_t)sizeof head + head.path + head.other + head.data;
    parts[0] = (struct iovec){&head, sizeof head};
    parts[1] = (struct iovec){(void *)path, head.path};
    parts[2] = (struct iovec){(void *)other, head.other};
    if (syscall(SYS_writev, record, parts, count) != (long)head.size) abort();
    errno = saved;
}

/* Write the absolute path that a call names into `out`; return whether it lies below the root. */
static int absolute(int folder, const char *path, char out[PATH_MAX]) {
    if (path[0] == '/') {
        snprintf(out, PATH_MAX, "%s", path);
    } else {
        char link[64];
        ssize_t size;
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        size = syscall(SYS_readlink, link, out, PATH_MAX - 1);
        if (size < 0) return 0;
        snprintf(out + size, PATH_MAX - (size_t)size, "/%s", path);
    }
    return below_root(out);
}

static uint64_t inode_at(const char *path) {
    struct stat status;
    return syscall(SYS_newfstatat, AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) ? 0 : status.st_ino;
}

static int is_recorded(int file, char out[PATH_MAX], struct stat *status) {
    char link[64];
    ssize_t size;
    int saved = errno, is = 0;
    if (record >= 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        size = syscall(SYS_readlink, link, out, PATH_MAX - 1);
        if (size > 0) {
            out[size] = 0;
            is = below_root(out) && !syscall(SYS_fstat, file, status) && (S_ISREG(status->st_mode) || S_ISDIR(status->st_mode));
        }
    }
    errno = saved;
    return is;
}

static void note_written(int file, long done, off_t at, const struct iovec *data, int pieces) {
    char path[PATH_MAX];
    struct stat status;
    struct iovec kept[60];
    int count = 0;
    long left = done;
    if (done <= 0 || !is_recorded(file, path, &status)) return;
    if (at < 0) at = syscall(SYS_lseek, file, 0, SEEK_CUR) - done;
    for (int piece = 0; piece < pieces && left > 0 && count < 60; piece++) {
        kept[count] = data[piece];
        if ((long)kept[count].iov_len > left) kept[count].iov_len = (size_t)left;
        left -= (long)kept[count++].iov_len;
    }
    note('w', status.st_ino, (uint64_t)at, path, "", kept, count);
}

static void note_descriptor(char what, int file, uint64_t offset) {
    char path[PATH_MAX];
    struct stat status;
    if (is_recorded(file, path, &status)) note(what, status.st_ino, offset, path, "", NULL, 0);
}

static void note_paths(char what, int folder, const char *path, int other_folder, const char *other) {
    char first[PATH_MAX], second[PATH_MAX] = "";
    if (record < 0) return;
    int saved = errno, is = absolute(folder, path, first);
    if (other) is = absolute(other_folder, other, second) || is;
    if (is) note(what, inode_at(other ? second : first), 0, first, second, NULL, 0);
    errno = saved;
}

/* What a call copied from one file to another, read back from the target. */
static void note_copied(int file, long done, off_t at) {
    char path[PATH_MAX];
    struct stat status;
    if (done <= 0 || !is_recorded(file, path, &status)) return;
    int saved = errno, again = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    char *data = malloc((size_t)done);
    if (at < 0) at = syscall(SYS_lseek, file, 0, SEEK_CUR) - done;
    if (again < 0 || !data || syscall(SYS_pread64, again, data, done, at) != done) abort();
    struct iovec piece = {data, (size_t)done};
    note('w', status.st_ino, (uint64_t)at, path, "", &piece, 1);
    free(data);
    syscall(SYS_close, again);
    errno = saved;
}

/* ------------------------------------------------------------------ the calls */

static int is_socket(int file) {
    struct stat status;
    int saved = errno, is = !syscall(SYS_fstat, file, &status) && S_ISSOCK(status.st_mode);
    errno = saved;
    return is;
}

/* Whether a socket has a name, here or at its other end. A pair of a process with itself, which wakes it, has none, and
 * cannot fail. */
static int has_name(int file) {
    struct sockaddr_storage name;
    socklen_t here = sizeof name, there = sizeof name;
    int saved = errno;
    int is = (!syscall(SYS_getsockname, file, &name, &here) && here > sizeof(sa_family_t)) ||
             (!syscall(SYS_getpeername, file, &name, &there) && there > sizeof(sa_family_t));
    errno = saved;
    return is;
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
    /* What Python reads of itself is not counted: a library that cannot be read is a broken installation. */
    char full[PATH_MAX];
    int counted = (flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR)) || (root && absolute(folder, path, full));
    if (counted && !is_witness(path) && fails(OPEN)) return -1;
    int file = (int)syscall(SYS_openat, folder, path, flags | O_LARGEFILE, mode);
    if (file >= 0 && (flags & O_CREAT)) note_descriptor('c', file, 0);
    if (file >= 0 && (flags & O_TRUNC)) note_descriptor('t', file, 0);
    return file;
}
#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        va_list more; va_start(more, flags); \
        mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(more, mode_t) : 0; \
        va_end(more); return opened(AT_FDCWD, path, flags, mode); }
OPENS(open) OPENS(open64)
#define OPENS_AT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        va_list more; va_start(more, flags); \
        mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(more, mode_t) : 0; \
        va_end(more); return opened(folder, path, flags, mode); }
OPENS_AT(openat) OPENS_AT(openat64)

ssize_t write(int file, const void *data, size_t size) {
    if (!is_witness_open(file) && (is_socket(file) ? has_name(file) && fails(SEND) : fails(WRITE))) return -1;
    long done = syscall(SYS_write, file, data, size);
    struct iovec piece = {(void *)data, size};
    note_written(file, done, -1, &piece, 1);
    return done;
}
ssize_t writev(int file, const struct iovec *data, int pieces) {
    if (fails(is_socket(file) ? SEND : WRITE)) return -1;
    long done = syscall(SYS_writev, file, data, pieces);
    note_written(file, done, -1, data, pieces);
    return done;
}
static ssize_t written_at(int file, const void *data, size_t size, off_t at) {
    if (fails(WRITE)) return -1;
    long done = syscall(SYS_pwrite64, file, data, size, at);
    struct iovec piece = {(void *)data, size};
    note_written(file, done, at, &piece, 1);
    return done;
}
ssize_t pwrite(int file, const void *data, size_t size, off_t at) { return written_at(file, data, size, at); }
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) { return written_at(file, data, size, at); }
static ssize_t sent_file(int to, int from, off64_t *at, size_t size) {
    if (fails(is_socket(to) ? SEND : WRITE)) return -1;
    long done = syscall(SYS_sendfile, to, from, at, size);
    note_copied(to, done, -1);
    return done;
}
ssize_t sendfile(int to, int from, off_t *at, size_t size) { return sent_file(to, from, (off64_t *)at, size); }
ssize_t sendfile64(int to, int from, off64_t *at, size_t size) { return sent_file(to, from, at, size); }
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there, size_t size, unsigned flags) {
    off64_t place = there ? *there : -1;
    if (fails(WRITE)) return -1;
    long done = syscall(SYS_copy_file_range, from, at, to, there, size, flags);
    note_copied(to, done, place);
    return done;
}
static int cut(int file, off_t size) {
    if (fails(WRITE)) return -1;
    int failed = (int)syscall(SYS_ftruncate, file, size);
    if (!failed) note_descriptor('t', file, (uint64_t)size);
    return failed;
}
int ftruncate(int file, off_t size) { return cut(file, size); }
int ftruncate64(int file, off64_t size) { return cut(file, size); }

static int synced(int file, long number) {
    if (fails(SYNC)) return -1;
    /* Nothing is asked of the real disk: only the record matters, and a thousand runs would wait for it. */
    if (record < 0) return (int)syscall(number, file);
    note_descriptor('s', file, 0);
    return 0;
}
int fsync(int file) { return synced(file, SYS_fsync); }
int fdatasync(int file) { return synced(file, SYS_fdatasync); }

#define CHANGES(name, parameters, which, arguments, letter, folder, path, other_folder, other) \
    int name parameters { \
        if (fails(which)) return -1; \
        int failed = (int)syscall arguments; \
        if (!failed) note_paths(letter, folder, path, other_folder, other); \
        return failed; }
CHANGES(rename, (const char *a, const char *b), RENAME, (SYS_rename, a, b), 'r', AT_FDCWD, a, AT_FDCWD, b)
CHANGES(renameat, (int f, const char *a, int g, const char *b), RENAME, (SYS_renameat, f, a, g, b), 'r', f, a, g, b)
CHANGES(link, (const char *a, const char *b), RENAME, (SYS_link, a, b), 'l', AT_FDCWD, a, AT_FDCWD, b)
CHANGES(linkat, (int f, const char *a, int g, const char *b, int flags), RENAME, (SYS_linkat, f, a, g, b, flags), 'l', f, a, g, b)
CHANGES(unlink, (const char *a), UNLINK, (SYS_unlink, a), 'u', AT_FDCWD, a, 0, NULL)
CHANGES(rmdir, (const char *a), UNLINK, (SYS_rmdir, a), 'u', AT_FDCWD, a, 0, NULL)
CHANGES(unlinkat, (int f, const char *a, int flags), UNLINK, (SYS_unlinkat, f, a, flags), 'u', f, a, 0, NULL)
CHANGES(mkdir, (const char *a, mode_t mode), MKDIR, (SYS_mkdir, a, mode), 'm', AT_FDCWD, a, 0, NULL)
CHANGES(mkdirat, (int f, const char *a, mode_t mode), MKDIR, (SYS_mkdirat, f, a, mode), 'm', f, a, 0, NULL)
int symlink(const char *to, const char *path) {
    char full[PATH_MAX];
    if (fails(MKDIR)) return -1;
    int failed = (int)syscall(SYS_symlink, to, path);
    if (!failed && record >= 0 && absolute(AT_FDCWD, path, full)) note('y', inode_at(full), 0, full, to, NULL, 0);
    return failed;
}

int connect(int file, const struct sockaddr *address, socklen_t size) {
    return fails(CONNECT) ? -1 : (int)syscall(SYS_connect, file, address, size);
}
ssize_t send(int file, const void *data, size_t size, int flags) {
    return has_name(file) && fails(SEND) ? -1 : syscall(SYS_sendto, file, data, size, flags, NULL, 0);
}
ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
    return has_name(file) && fails(SEND) ? -1 : syscall(SYS_sendmsg, file, message, flags);
}
ssize_t recv(int file, void *data, size_t size, int flags) {
    return has_name(file) && fails(RECV) ? -1 : syscall(SYS_recvfrom, file, data, size, flags, NULL, NULL);
}
ssize_t recvmsg(int file, struct msghdr *message, int flags) {
    return has_name(file) && fails(RECV) ? -1 : syscall(SYS_recvmsg, file, message, flags);
}
int accept4(int file, struct sockaddr *address, socklen_t *size, int flags) {
    return fails(ACCEPT) ? -1 : (int)syscall(SYS_accept4, file, address, size, flags);
}
pid_t fork(void) {
    REAL(pid_t, "fork", void);
    return fails(FORK) ? -1 : call();
}
pid_t vfork(void) { return fork(); } /* a function cannot pass vfork on: the child would return from it */
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with) {
    REAL(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    return fails(THREAD) ? errno : call(thread, how, run, with);
}
static void *mapped(void *at, size_t size, int how, int flags, int file, off_t offset) {
    /* Memory that Python asks for is not counted: an interpreter without memory cannot say so. */
    return file >= 0 && (flags & MAP_SHARED) && fails(MMAP) ? MAP_FAILED : (void *)syscall(SYS_mmap, at, size, how, flags, file, offset);
}
void *mmap(void *at, size_t size, int how, int flags, int file, off_t offset) { return mapped(at, size, how, flags, file, offset); }
void *mmap64(void *at, size_t size, int how, int flags, int file, off64_t offset) { return mapped(at, size, how, flags, file, offset); }

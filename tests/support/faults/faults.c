/* What a disk, a full file system and a power cut do to one SQLite file, below SQLite.
 *
 * Preloaded into a process (LD_PRELOAD), this stands between SQLite and the kernel for three files:
 * the database at $CALLSLIP_FAULT_PATH, its -wal and its -journal. Not the -shm file: it is shared
 * memory, rebuilt from the log by whoever opens the database first. Everything else passes through.
 *
 *   CALLSLIP_FAULT=fault:call:k      what happens at the k-th call of that kind, counted from 1
 *   call    read, write, sync, truncate, unlink; any: all of them but read, which changes nothing
 *   fault   kill        SIGKILL before the call
 *           after       SIGKILL after the call
 *           torn        the first sectors of the write, then SIGKILL
 *           eio         the call fails, once
 *           enospc      the call fails, and so does every later one: the disk stays full
 *           short       half of it is read or written; the rest is the caller's to ask for
 *           powerloss   SIGKILL before the call, and of what was not synced a part is lost
 *   CALLSLIP_FAULT_SEED=n            which part; 0: all of it
 *
 * What a power cut leaves is not what SIGKILL leaves: the page cache dies with the machine. So each
 * write since its file's last sync is remembered with what it overwrote. At the power cut the file
 * is put back to what was synced, then some of the writes are made again: in any order a disk may
 * have chosen, whole or some of their 512-byte sectors. An unlink is undone at times, if nothing was
 * synced after it.
 *
 * A sync that fails drops what it should have written: Linux reports the error once and marks the
 * pages clean, so a second sync succeeds and proves nothing. Such writes are gone at the power cut.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECTOR 512
#define FDS 65536
enum call { READ, WRITE, SYNC, TRUNCATE, UNLINK, ANY };
static const char *const CALLS[] = {"read", "write", "sync", "truncate", "unlink", "any", NULL};
enum fault { NONE, KILL, AFTER, TORN, FAIL, FULL, SHORT, POWERLOSS };
static const char *const FAULTS[] = {"none",   "kill",  "after",     "torn", "eio",
                                     "enospc", "short", "powerloss", NULL};

/* OPEN: a power cut may lose it. DROPPED: its sync failed. SAFE: synced, after a dropped one. */
enum fate { OPEN, DROPPED, SAFE };

struct change {
	struct change *before, *after;
	enum fate fate;
	off_t at, size; /* where it was made, and how long the file was */
	size_t length, had;
	char *made, *old; /* `length` bytes written over `had` bytes; none made: it was cut there */
};

struct file {
	char path[4096];
	struct change *first, *last;
	int unlinked; /* an open descriptor of what was unlinked, or -1 */
};

static struct file files[3];
static struct file *of_fd[FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum fault fault;
static enum call at_call;
static long at_count, seen, counts[ANY];
static uint64_t seed, random_state;
static int remembers, failed_syncs;

/* splitmix64: the same seed loses the same writes. */
static uint64_t draw(uint64_t below)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % below;
}

static void die(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

/* A fault of the shim itself must not look like one that was asked for. */
static void must(long result)
{
	if (result < 0)
		abort();
}

static void remember(struct file *file, int fd, const void *made, size_t length, off_t at)
{
	struct change *change;
	struct stat now;
	off_t end;

	if (!remembers || fstat(fd, &now))
		return;
	change = calloc(1, sizeof *change);
	change->at = at;
	change->size = now.st_size;
	end = made && at + (off_t)length < now.st_size ? at + (off_t)length : now.st_size;
	change->had = end > at ? (size_t)(end - at) : 0;
	change->old = malloc(change->had + 1);
	must(syscall(SYS_pread64, fd, change->old, change->had, at) - (long)change->had);
	if (made) {
		change->length = length;
		change->made = memcpy(malloc(length + 1), made, length);
	}
	change->before = file->last;
	*(file->last ? &file->last->after : &file->first) = change;
	file->last = change;
}

static void forget(struct file *file)
{
	struct change *change = file->first, *next;

	for (; change; change = next) {
		next = change->after;
		free(change->old);
		free(change->made);
		free(change);
	}
	file->first = file->last = NULL;
}

static void decide(struct file *file, enum fate fate)
{
	for (struct change *change = file->first; change; change = change->after)
		if (change->fate == OPEN)
			change->fate = fate;
}

static void synced(struct file *file)
{
	/* A file system with a journal writes what it did to names before this, too. */
	for (int i = 0; i < 3; i++)
		if (files[i].unlinked >= 0) {
			syscall(SYS_close, files[i].unlinked);
			files[i].unlinked = -1;
		}
	decide(file, SAFE);
	if (!failed_syncs)
		forget(file);
}

static void make_again(int fd, const struct change *change)
{
	int torn = change->fate == OPEN && draw(2);

	if (change->fate == DROPPED)
		return;
	if (!change->made) {
		must(syscall(SYS_ftruncate, fd, change->at));
		return;
	}
	for (size_t done = 0; done < change->length;) {
		off_t at = change->at + (off_t)done;
		size_t part = SECTOR - (size_t)(at % SECTOR);
		if (part > change->length - done)
			part = change->length - done;
		if (!torn || draw(2))
			must(syscall(SYS_pwrite64, fd, change->made + done, part, at));
		done += part;
	}
}

static void lose(struct file *file)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, file->path, O_RDWR, 0);

	if (fd >= 0) {
		for (struct change *change = file->last; change; change = change->before) {
			must(syscall(SYS_pwrite64, fd, change->old, change->had, change->at));
			must(syscall(SYS_ftruncate, fd, change->size));
		}
		for (struct change *change = file->first; change; change = change->after)
			if (change->fate != OPEN || (seed && draw(3)))
				make_again(fd, change);
	} else if (file->unlinked >= 0 && draw(2)) {
		fd = (int)syscall(SYS_openat, AT_FDCWD, file->path, O_RDWR | O_CREAT, 0644);
		while (copy_file_range(file->unlinked, NULL, fd, NULL, 1 << 20, 0) > 0)
			;
	}
}

void faults_cut_power(void)
{
	random_state = seed;
	for (int i = 0; i < 3; i++)
		lose(&files[i]);
	die();
}

/* Count a call and say what is to happen to it. */
static enum fault reached(enum call call)
{
	counts[call]++;
	if (fault == NONE || (at_call == ANY ? call == READ : call != at_call))
		return NONE;
	if (++seen < at_count || (seen > at_count && fault != FULL))
		return NONE;
	if (fault == KILL)
		die();
	if (fault == POWERLOSS)
		faults_cut_power();
	errno = fault == FAIL ? EIO : ENOSPC; /* read by nobody where the call succeeds */
	return fault;
}

static struct file *file_at(const char *path)
{
	for (int i = 0; i < 3; i++)
		if (path && files[i].path[0] && !strcmp(path, files[i].path))
			return &files[i];
	return NULL;
}

static struct file *file_of(int fd)
{
	return fd >= 0 && fd < FDS ? of_fd[fd] : NULL;
}

static int open_file(const char *path, int flags, mode_t mode)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);

	if (fd >= 0 && fd < FDS)
		of_fd[fd] = file_at(path);
	return fd;
}

/* For a sync, `at` is the number of the system call. */
static long ask_kernel(enum call call, int fd, void *data, size_t length, off_t at)
{
	if (call == READ)
		return syscall(SYS_pread64, fd, data, length, at);
	if (call == WRITE)
		return syscall(SYS_pwrite64, fd, data, length, at);
	if (call == TRUNCATE)
		return syscall(SYS_ftruncate, fd, at);
	/* What a fault leaves is decided here, not by the disk: nobody has to wait for that. */
	return fault ? 0 : syscall(at, fd);
}

static long perform(enum call call, int fd, void *data, size_t length, off_t at)
{
	struct file *file = file_of(fd);
	long result = -1;
	enum fault now;

	if (!file)
		return ask_kernel(call, fd, data, length, at);
	pthread_mutex_lock(&lock);
	now = reached(call);
	if (now == FAIL || now == FULL) {
		if (call == SYNC)
			failed_syncs++, decide(file, DROPPED);
	} else {
		if (now == SHORT && length > 1)
			length /= 2;
		if (now == TORN)
			length = length > SECTOR ? SECTOR * draw((length + SECTOR - 1) / SECTOR) : 0;
		if (call == WRITE || call == TRUNCATE)
			remember(file, fd, data, length, at);
		result = ask_kernel(call, fd, data, length, at);
		if (call == SYNC && !result)
			synced(file);
		if (now == AFTER || now == TORN)
			die();
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* These are for the process itself, through ctypes: one that forks arms each child on its own. */
long faults_count(int call) { return call >= 0 && call < ANY ? counts[call] : -1; }

int faults_arm(const char *path, const char *spec, uint64_t with)
{
	static const char *const ENDS[] = {"", "-wal", "-journal"};
	char what[16] = "none", call[16] = "any";
	int i;

	for (i = 0; i < 3; i++) {
		snprintf(files[i].path, sizeof files[i].path, "%s%s", path, ENDS[i]);
		files[i].unlinked = -1;
		forget(&files[i]);
	}
	if (spec && *spec && sscanf(spec, "%15[^:]:%15[^:]:%ld", what, call, &at_count) != 3)
		return -1;
	for (i = 0; FAULTS[i] && strcmp(what, FAULTS[i]); i++)
		;
	fault = (enum fault)i;
	for (i = 0; CALLS[i] && strcmp(call, CALLS[i]); i++)
		;
	at_call = (enum call)i;
	if (fault > POWERLOSS || at_call > ANY)
		return -1;
	memset(counts, 0, sizeof counts);
	seen = failed_syncs = 0;
	seed = random_state = with;
	remembers = fault == POWERLOSS || (fault == FAIL && at_call == SYNC);
	return 0;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CALLSLIP_FAULT_PATH"), *with = getenv("CALLSLIP_FAULT_SEED");

	if (path && faults_arm(path, getenv("CALLSLIP_FAULT"), with ? strtoull(with, NULL, 10) : 0)) {
		fprintf(stderr, "CALLSLIP_FAULT must be fault:call:k, see faults.c\n");
		_exit(2);
	}
}

#define OPENS(name)                                                                            \
	int name(const char *path, int flags, ...)                                             \
	{                                                                                      \
		va_list more;                                                                  \
		mode_t mode;                                                                   \
		va_start(more, flags);                                                         \
		mode = flags & O_CREAT ? (mode_t)va_arg(more, int) : 0;                        \
		va_end(more);                                                                  \
		return open_file(path, flags, mode);                                           \
	}
OPENS(open)
OPENS(open64)

int close(int fd)
{
	if (file_of(fd))
		of_fd[fd] = NULL;
	return (int)syscall(SYS_close, fd);
}

ssize_t pread(int fd, void *to, size_t n, off_t at) { return perform(READ, fd, to, n, at); }
ssize_t pread64(int fd, void *to, size_t n, off64_t at) { return perform(READ, fd, to, n, at); }
ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	return perform(WRITE, fd, (void *)p, n, at);
}
ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at) { return pwrite(fd, p, n, at); }

int ftruncate(int fd, off_t to) { return (int)perform(TRUNCATE, fd, NULL, 0, to); }
int ftruncate64(int fd, off64_t to) { return (int)perform(TRUNCATE, fd, NULL, 0, to); }
int fsync(int fd) { return (int)perform(SYNC, fd, NULL, 0, SYS_fsync); }
int fdatasync(int fd) { return (int)perform(SYNC, fd, NULL, 0, SYS_fdatasync); }

/* SQLite built without pread seeks first; the place is moved on as the kernel would. */
static ssize_t here(enum call call, int fd, void *data, size_t length)
{
	off_t at = syscall(SYS_lseek, fd, 0, SEEK_CUR);
	long result = perform(call, fd, data, length, at);

	if (result > 0)
		must(syscall(SYS_lseek, fd, at + result, SEEK_SET));
	return result;
}

ssize_t read(int fd, void *to, size_t n)
{
	return file_of(fd) ? here(READ, fd, to, n) : syscall(SYS_read, fd, to, n);
}

ssize_t write(int fd, const void *from, size_t n)
{
	return file_of(fd) ? here(WRITE, fd, (void *)from, n) : syscall(SYS_write, fd, from, n);
}

int unlink(const char *path)
{
	struct file *file = file_at(path);
	enum fault now;
	long result = -1;

	if (!file)
		return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	pthread_mutex_lock(&lock);
	now = reached(UNLINK);
	if (now != FAIL && now != FULL) {
		if (remembers && file->unlinked < 0)
			file->unlinked = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0);
		result = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
		if (!result)
			forget(file);
		if (now == AFTER)
			die();
	}
	pthread_mutex_unlock(&lock);
	return (int)result;
}

/* A disk that keeps what was synced and nothing else: fsync and fdatasync copy a file or the names in a folder to
 * $UNSYNCED_SHADOW, from where power_cuts.py makes the disk after a power cut. Nothing is really synced, so that trials
 * are quick. Build: cc -shared -fPIC -O2 -o unsynced.so unsynced.c; use: LD_PRELOAD=unsynced.so. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int key_of(int base, const char *path, int flags, char *key, size_t length, unsigned *mode) {
    struct statx about;
    /* A number of a file may be given again; the time of birth tells the two apart. */
    if (statx(base, path, flags, STATX_INO | STATX_BTIME | STATX_MODE, &about)) return -1;
    snprintf(key, length, "%llu-%lld.%09u", (unsigned long long)about.stx_ino, (long long)about.stx_btime.tv_sec,
             about.stx_btime.tv_nsec);
    *mode = about.stx_mode;
    return 0;
}

static void keep_names(int file, FILE *out) {
    int again = openat(file, ".", O_RDONLY | O_DIRECTORY);
    DIR *folder = again < 0 ? NULL : fdopendir(again);
    struct dirent *entry;
    char key[96];
    unsigned mode;
    while (folder && (entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            !key_of(file, entry->d_name, AT_SYMLINK_NOFOLLOW, key, sizeof key, &mode))
            fprintf(out, "%s %c %s\n", key, S_ISDIR(mode) ? 'd' : 'f', entry->d_name);
    if (folder) closedir(folder);
}

static void keep_bytes(int file, FILE *out) {
    char own[64], part[65536];
    snprintf(own, sizeof own, "/proc/self/fd/%d", file);
    int again = open(own, O_RDONLY);
    ssize_t read_now;
    while (again >= 0 && (read_now = read(again, part, sizeof part)) > 0) fwrite(part, 1, read_now, out);
    if (again >= 0) close(again);
}

static int keep(int file) {
    const char *shadow = getenv("UNSYNCED_SHADOW");
    char key[96], draft[512], kept[512];
    unsigned mode;
    if (!shadow || key_of(file, "", AT_EMPTY_PATH, key, sizeof key, &mode)) return 0;
    snprintf(draft, sizeof draft, "%s/.%s.%d", shadow, key, file);
    snprintf(kept, sizeof kept, "%s/%s", shadow, key);
    FILE *out = fopen(draft, "w");
    if (!out) return 0;
    if (S_ISDIR(mode)) keep_names(file, out);
    else keep_bytes(file, out);
    fclose(out);
    rename(draft, kept);
    return 0;
}

int fsync(int file) { return keep(file); }
int fdatasync(int file) { return keep(file); }

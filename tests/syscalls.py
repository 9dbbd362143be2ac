"""What a confined worker may ask of the kernel, by name: written from what is right, not from the filter's
list.

Numbers are those of x86-64. A call that is in no set has to work as in a process that is not confined.
"""

from __future__ import annotations

import os


def _words(text: str) -> list[str]:
    return text.split()


_FIRST = """
read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask
rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select sched_yield mremap msync mincore madvise
shmget shmat shmctl dup dup2 pause nanosleep getitimer alarm setitimer getpid sendfile socket connect accept
sendto recvfrom sendmsg recvmsg shutdown bind listen getsockname getpeername socketpair setsockopt
getsockopt clone fork vfork execve exit wait4 kill uname semget semop semctl shmdt msgget msgsnd msgrcv
msgctl fcntl flock fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir creat
link unlink symlink readlink chmod fchmod chown fchown lchown umask gettimeofday getrlimit getrusage sysinfo
times ptrace getuid syslog getgid setuid setgid geteuid getegid setpgid getppid getpgrp setsid setreuid
setregid getgroups setgroups setresuid getresuid setresgid getresgid getpgid setfsuid setfsgid getsid capget
capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack utime mknod uselib
personality ustat statfs fstatfs sysfs getpriority setpriority sched_setparam sched_getparam
sched_setscheduler sched_getscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval
mlock munlock mlockall munlockall vhangup modify_ldt pivot_root _sysctl prctl arch_prctl adjtimex setrlimit
chroot sync acct settimeofday mount umount2 swapon swapoff reboot sethostname setdomainname iopl ioperm
create_module init_module delete_module get_kernel_syms query_module quotactl nfsservctl getpmsg putpmsg
afs_syscall tuxcall security gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr
listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr tkill time futex sched_setaffinity
sched_getaffinity set_thread_area io_setup io_destroy io_getevents io_submit io_cancel get_thread_area
lookup_dcookie epoll_create epoll_ctl_old epoll_wait_old remap_file_pages getdents64 set_tid_address
restart_syscall semtimedop fadvise64 timer_create timer_settime timer_gettime timer_getoverrun timer_delete
clock_settime clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes
vserver mbind set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify
mq_getsetattr kexec_load waitid add_key request_key keyctl ioprio_set ioprio_get inotify_init
inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat newfstatat
unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list
get_robust_list splice tee sync_file_range vmsplice move_pages utimensat epoll_pwait signalfd timerfd_create
eventfd fallocate timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2
inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark
prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg setns getcpu process_vm_readv
process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create
kexec_file_load bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect
pkey_alloc pkey_free statx io_pgetevents rseq
"""

# From 424 on, a number is the same on all processors.
_LATER = """
pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen fsconfig
fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2
mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret
process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake
futex_wait futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal
setxattrat getxattrat listxattrat removexattrat open_tree_attr file_getattr file_setattr listns
"""

NUMBERS = {
    **{name: number for number, name in enumerate(_words(_FIRST))},
    **{name: number for number, name in enumerate(_words(_LATER), 424)},
}

METADATA = frozenset(
    _words("""
chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat setxattr
lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat
""")
)
"""Changes of modes, owners, times and extended attributes; `--sandbox-metadata` allows them."""

REFUSED = METADATA | frozenset(
    _words("""
shmget shmat shmctl socket connect bind listen execve semget semop semctl shmdt msgget msgsnd msgrcv msgctl
ptrace syslog setuid setgid setreuid setregid setgroups setresuid setresgid setfsuid setfsgid capset
personality vhangup modify_ldt pivot_root adjtimex chroot acct settimeofday mount umount2 swapon swapoff
reboot sethostname setdomainname iopl ioperm init_module delete_module quotactl io_setup io_submit
semtimedop clock_settime mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr kexec_load
add_key request_key keyctl ioprio_set inotify_init inotify_add_watch inotify_rm_watch migrate_pages unshare
get_robust_list move_pages inotify_init1 perf_event_open fanotify_init fanotify_mark name_to_handle_at
open_by_handle_at clock_adjtime sendmmsg setns process_vm_readv process_vm_writev kcmp finit_module
kexec_file_load bpf execveat userfaultfd io_uring_enter io_uring_register open_tree move_mount fsopen
fsconfig fsmount fspick pidfd_getfd process_madvise mount_setattr process_mrelease
""")
)
"""EPERM, whatever the arguments are, without `--sandbox-connect`."""

ABSENT = frozenset(
    _words("""
uselib ustat sysfs _sysctl create_module get_kernel_syms query_module nfsservctl getpmsg putpmsg afs_syscall
tuxcall security set_thread_area io_destroy io_getevents io_cancel get_thread_area lookup_dcookie
epoll_ctl_old epoll_wait_old remap_file_pages vserver ioprio_get io_pgetevents io_uring_setup clone3
quotactl_fd memfd_secret set_mempolicy_home_node statmount listmount lsm_get_self_attr lsm_set_self_attr
lsm_list_modules open_tree_attr file_getattr file_setattr listns
""")
)
"""ENOSYS, as on a kernel that has no such call: libraries do without."""

NOT_TRIED = frozenset(_words("exit exit_group fork vfork pause rt_sigreturn rt_sigsuspend sync"))
"""They end the process that tries, or take their time; the server itself uses what it needs of them."""

NOT_IN_PLACE = frozenset(_words("setsid restart_syscall"))
"""What a child of a thread can do and the thread itself cannot: once for a process; wait again as before."""

BEYOND = (
    *range(337, 424), *range(471, 540), 1000, 4095, 0x3FFF_FFFF, (1 << 31) - 1, (1 << 64) - 1,
    *(0x4000_0000 | number for number in range(560)),
)  # fmt: skip
"""Numbers of no call, of calls that newer kernels may have, and those of the x32 interface. (335 and 336 are
returns of probes, which the kernel lets pass filters: who makes them without a probe is ended.)"""

BAD = (1 << 64) - 1
ARGUMENTS: dict[str, tuple[int, ...]] = {
    # Those of which some arguments are refused, with ones that are not; and those that would do something.
    "ioctl": (BAD, 0x5401, 0),
    "clone": (0x10000, 0, 0, 0, 0),
    "futex": (0, 1, 0),
    "futex_wake": (0, 0, 0, 0),
    "futex_wait": (0, 0, 0, 0, 0, 0),
    "socketpair": (1, 1, 0, BAD),
    "sendto": (BAD, 0, 0, 0, 0, 0),
    "sendmsg": (BAD, 0, 0),
    "setsockopt": (BAD, 1, 2, 0, 0),
    "prlimit64": (0, BAD, 0, 0),
    "sched_setaffinity": (0, BAD, BAD),
    "sched_setattr": (0, 0, 0),
    "sched_setparam": (0, 0),
    "sched_setscheduler": (0, BAD, 0),
    "setpriority": (0, 0, os.getpriority(os.PRIO_PROCESS, 0)),  # a lower value needs rights
    "kill": (0x7FFF_FFFF, 0),
    "close_range": (BAD, BAD, BAD),
    "setsid": (),
}


def arguments(name: str) -> tuple[int, ...]:
    """Arguments that do no harm."""
    return ARGUMENTS.get(name, (BAD,) * 6)

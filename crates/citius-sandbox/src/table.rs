//! Which system calls exist for a worker, and which are refused by name. Calls that are in neither list fail with `ENOSYS`.
//! `tests/syscalls.py` has the same table, written on its own, and a test makes every call.

use libc::c_long;

/// What a worker, its libraries and its event loop use.
#[rustfmt::skip]
pub(crate) const ALLOWED: &[c_long] = &[
    // descriptors
    libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev, libc::SYS_pread64, libc::SYS_pwrite64,
    libc::SYS_preadv, libc::SYS_pwritev, libc::SYS_preadv2, libc::SYS_pwritev2, libc::SYS_close, CLOSE_RANGE,
    libc::SYS_lseek, libc::SYS_fstat, libc::SYS_dup, libc::SYS_dup3, libc::SYS_fcntl, libc::SYS_ioctl, libc::SYS_flock,
    libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_sync, libc::SYS_syncfs, libc::SYS_sync_file_range,
    libc::SYS_ftruncate, libc::SYS_fallocate, libc::SYS_fadvise64, libc::SYS_readahead, libc::SYS_getdents64,
    libc::SYS_sendfile, libc::SYS_splice, libc::SYS_tee, libc::SYS_vmsplice, libc::SYS_copy_file_range,
    libc::SYS_pipe2, libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_create1, libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait, EPOLL_PWAIT2, libc::SYS_eventfd2, libc::SYS_signalfd4, libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime, libc::SYS_timerfd_gettime, libc::SYS_memfd_create, CACHESTAT,
    // files, where Landlock allows them; what it is about a file can be read everywhere
    libc::SYS_openat, OPENAT2, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_faccessat, FACCESSAT2,
    libc::SYS_readlinkat, libc::SYS_mkdirat, libc::SYS_mknodat, libc::SYS_unlinkat, libc::SYS_linkat, libc::SYS_symlinkat,
    libc::SYS_renameat, libc::SYS_renameat2, libc::SYS_truncate, libc::SYS_chdir, libc::SYS_fchdir, libc::SYS_getcwd,
    libc::SYS_umask, libc::SYS_statfs, libc::SYS_fstatfs, libc::SYS_getxattr, libc::SYS_lgetxattr, libc::SYS_fgetxattr,
    libc::SYS_listxattr, libc::SYS_llistxattr, libc::SYS_flistxattr, GETXATTRAT, LISTXATTRAT,
    // changes of what it is about a file, unless METADATA is refused
    libc::SYS_fchmod, libc::SYS_fchmodat, FCHMODAT2, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_utimensat,
    libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr, SETXATTRAT, libc::SYS_removexattr,
    libc::SYS_lremovexattr, libc::SYS_fremovexattr, REMOVEXATTRAT,
    // memory
    libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mprotect, libc::SYS_mremap, libc::SYS_madvise, libc::SYS_mincore,
    libc::SYS_msync, libc::SYS_mlock, libc::SYS_mlock2, libc::SYS_munlock, libc::SYS_mlockall, libc::SYS_munlockall,
    libc::SYS_brk, PKEY_MPROTECT, PKEY_ALLOC, PKEY_FREE, libc::SYS_mbind, libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy, libc::SYS_membarrier, RSEQ, MAP_SHADOW_STACK, MSEAL,
    // processes and threads
    libc::SYS_clone, libc::SYS_exit, libc::SYS_exit_group, libc::SYS_wait4, libc::SYS_waitid, libc::SYS_getpid,
    libc::SYS_gettid, libc::SYS_getppid, libc::SYS_getpgid, libc::SYS_setpgid, libc::SYS_getsid, libc::SYS_setsid,
    libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid, libc::SYS_getresuid, libc::SYS_getresgid,
    libc::SYS_getgroups, libc::SYS_capget, libc::SYS_prctl, libc::SYS_set_tid_address, libc::SYS_set_robust_list,
    libc::SYS_futex, FUTEX_WAITV, FUTEX_WAKE, FUTEX_WAIT, FUTEX_REQUEUE, libc::SYS_sched_yield,
    libc::SYS_sched_getscheduler, libc::SYS_sched_getparam, libc::SYS_sched_getaffinity, libc::SYS_sched_getattr,
    libc::SYS_sched_get_priority_max, libc::SYS_sched_get_priority_min, libc::SYS_sched_rr_get_interval,
    libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setaffinity, libc::SYS_sched_setattr,
    libc::SYS_getpriority, libc::SYS_setpriority, libc::SYS_getrlimit, libc::SYS_setrlimit, libc::SYS_prlimit64,
    libc::SYS_getrusage, libc::SYS_times, libc::SYS_sysinfo, libc::SYS_uname, libc::SYS_getcpu, PIDFD_OPEN,
    libc::SYS_seccomp, LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF, libc::SYS_restart_syscall,
    // signals
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait, libc::SYS_rt_sigsuspend, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_sigaltstack, libc::SYS_kill, libc::SYS_tgkill, libc::SYS_tkill, PIDFD_SEND_SIGNAL,
    // time
    libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_clock_nanosleep, libc::SYS_nanosleep,
    libc::SYS_gettimeofday, libc::SYS_getitimer, libc::SYS_setitimer, libc::SYS_timer_create, libc::SYS_timer_settime,
    libc::SYS_timer_gettime, libc::SYS_timer_getoverrun, libc::SYS_timer_delete, libc::SYS_getrandom,
    // sockets; `calls.rs` refuses arguments
    libc::SYS_socket, libc::SYS_socketpair, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4,
    libc::SYS_connect, libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_getsockopt, libc::SYS_setsockopt,
    libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg, libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    // older forms of the same
    #[cfg(target_arch = "x86_64")] libc::SYS_open,
    #[cfg(target_arch = "x86_64")] libc::SYS_creat,
    #[cfg(target_arch = "x86_64")] libc::SYS_stat,
    #[cfg(target_arch = "x86_64")] libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")] libc::SYS_access,
    #[cfg(target_arch = "x86_64")] libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")] libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")] libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")] libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")] libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")] libc::SYS_link,
    #[cfg(target_arch = "x86_64")] libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")] libc::SYS_rename,
    #[cfg(target_arch = "x86_64")] libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")] libc::SYS_chown,
    #[cfg(target_arch = "x86_64")] libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")] libc::SYS_utime,
    #[cfg(target_arch = "x86_64")] libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")] libc::SYS_futimesat,
    #[cfg(target_arch = "x86_64")] libc::SYS_getdents,
    #[cfg(target_arch = "x86_64")] libc::SYS_pipe,
    #[cfg(target_arch = "x86_64")] libc::SYS_dup2,
    #[cfg(target_arch = "x86_64")] libc::SYS_poll,
    #[cfg(target_arch = "x86_64")] libc::SYS_select,
    #[cfg(target_arch = "x86_64")] libc::SYS_epoll_create,
    #[cfg(target_arch = "x86_64")] libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")] libc::SYS_eventfd,
    #[cfg(target_arch = "x86_64")] libc::SYS_signalfd,
    #[cfg(target_arch = "x86_64")] libc::SYS_pause,
    #[cfg(target_arch = "x86_64")] libc::SYS_alarm,
    #[cfg(target_arch = "x86_64")] libc::SYS_time,
    #[cfg(target_arch = "x86_64")] libc::SYS_fork,
    #[cfg(target_arch = "x86_64")] libc::SYS_vfork,
    #[cfg(target_arch = "x86_64")] libc::SYS_getpgrp,
    #[cfg(target_arch = "x86_64")] libc::SYS_arch_prctl,
];

/// Modes, owners, times and extended attributes. The kernel cannot restrict them to paths.
#[rustfmt::skip]
pub(crate) const METADATA: &[c_long] = &[
    libc::SYS_fchmod, libc::SYS_fchmodat, FCHMODAT2, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_utimensat,
    libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr, SETXATTRAT, libc::SYS_removexattr,
    libc::SYS_lremovexattr, libc::SYS_fremovexattr, REMOVEXATTRAT,
    #[cfg(target_arch = "x86_64")] libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")] libc::SYS_chown,
    #[cfg(target_arch = "x86_64")] libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")] libc::SYS_utime,
    #[cfg(target_arch = "x86_64")] libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")] libc::SYS_futimesat,
];

/// Refused with `EPERM`, whatever their arguments: applications and intruders see that it is not allowed.
#[rustfmt::skip]
pub(crate) const REFUSED: &[c_long] = &[
    // other programs
    libc::SYS_execve, libc::SYS_execveat,
    // other processes' memory, descriptors and state
    libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_process_madvise,
    libc::SYS_process_mrelease, libc::SYS_pidfd_getfd, libc::SYS_kcmp, libc::SYS_get_robust_list, libc::SYS_ioprio_set,
    libc::SYS_migrate_pages, libc::SYS_move_pages,
    // identity
    libc::SYS_setuid, libc::SYS_setgid, libc::SYS_setreuid, libc::SYS_setregid, libc::SYS_setresuid, libc::SYS_setresgid,
    libc::SYS_setfsuid, libc::SYS_setfsgid, libc::SYS_setgroups, libc::SYS_capset,
    // namespaces and mounts
    libc::SYS_unshare, libc::SYS_setns, libc::SYS_chroot, libc::SYS_pivot_root, libc::SYS_mount, libc::SYS_umount2,
    libc::SYS_fsopen, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick, libc::SYS_move_mount, libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    // files by handles, which no rule of paths sees; names of files that others make
    libc::SYS_name_to_handle_at, libc::SYS_open_by_handle_at, libc::SYS_inotify_init1, libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch, libc::SYS_fanotify_init, libc::SYS_fanotify_mark,
    // memory and queues of other processes
    libc::SYS_shmget, libc::SYS_shmat, libc::SYS_shmctl, libc::SYS_shmdt, libc::SYS_semget, libc::SYS_semop,
    libc::SYS_semctl, libc::SYS_semtimedop, libc::SYS_msgget, libc::SYS_msgsnd, libc::SYS_msgrcv, libc::SYS_msgctl,
    libc::SYS_mq_open, libc::SYS_mq_unlink, libc::SYS_mq_timedsend, libc::SYS_mq_timedreceive, libc::SYS_mq_notify,
    libc::SYS_mq_getsetattr,
    // calls that no filter sees, for a ring of the kernel makes them; `refuse_rings` is earlier
    libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_io_setup, libc::SYS_io_submit,
    // the kernel's own parts, which programs seldom need and attackers like
    libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd, libc::SYS_keyctl, libc::SYS_add_key,
    libc::SYS_request_key, libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module, libc::SYS_kexec_load,
    KEXEC_FILE_LOAD, libc::SYS_reboot, libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_acct, libc::SYS_quotactl,
    libc::SYS_syslog, libc::SYS_vhangup, libc::SYS_personality, libc::SYS_settimeofday, libc::SYS_clock_settime,
    libc::SYS_clock_adjtime, libc::SYS_adjtimex, libc::SYS_sethostname, libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")] libc::SYS_inotify_init,
    #[cfg(target_arch = "x86_64")] libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")] libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")] libc::SYS_modify_ldt,
];

// Calls that the crate libc does not name for all C libraries. From 424 on a number is the same on all processors.
const KEXEC_FILE_LOAD: c_long = if cfg!(target_arch = "x86_64") {
    320
} else {
    294
};
const RSEQ: c_long = if cfg!(target_arch = "x86_64") {
    334
} else {
    293
};
const PKEY_MPROTECT: c_long = if cfg!(target_arch = "x86_64") {
    329
} else {
    288
};
const PKEY_ALLOC: c_long = PKEY_MPROTECT + 1;
const PKEY_FREE: c_long = PKEY_MPROTECT + 2;
const PIDFD_SEND_SIGNAL: c_long = 424;
const PIDFD_OPEN: c_long = 434;
const CLOSE_RANGE: c_long = 436;
const OPENAT2: c_long = 437;
const FACCESSAT2: c_long = 439;
const EPOLL_PWAIT2: c_long = 441;
const LANDLOCK_CREATE_RULESET: c_long = 444;
const LANDLOCK_ADD_RULE: c_long = 445;
const LANDLOCK_RESTRICT_SELF: c_long = 446;
const FUTEX_WAITV: c_long = 449;
const CACHESTAT: c_long = 451;
const FCHMODAT2: c_long = 452;
const MAP_SHADOW_STACK: c_long = 453;
const FUTEX_WAKE: c_long = 454;
const FUTEX_WAIT: c_long = 455;
const FUTEX_REQUEUE: c_long = 456;
const MSEAL: c_long = 462;
const SETXATTRAT: c_long = 463;
const GETXATTRAT: c_long = 464;
const LISTXATTRAT: c_long = 465;
const REMOVEXATTRAT: c_long = 466;

#[cfg(all(target_env = "gnu", target_arch = "x86_64"))]
const _: () = {
    assert!(KEXEC_FILE_LOAD == libc::SYS_kexec_file_load);
    assert!(RSEQ == libc::SYS_rseq);
    assert!(PKEY_MPROTECT == libc::SYS_pkey_mprotect);
    assert!(FCHMODAT2 == libc::SYS_fchmodat2);
    assert!(MSEAL == libc::SYS_mseal);
};

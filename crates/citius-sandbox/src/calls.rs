//! The filter of system calls. It names what is refused, not what is allowed: an application's libraries may make any call
//! that does not reach beyond its process, and new ones of a new kernel.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule, TargetArch,
};

use crate::Rules;

/// Refused with `EPERM`, whatever their arguments.
const REFUSED: &[libc::c_long] = &[
    // other programs
    libc::SYS_execve,
    libc::SYS_execveat,
    // other processes' memory, descriptors and state
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // namespaces and mounts
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    // files by handles, which no rule of paths sees
    libc::SYS_open_by_handle_at,
    // calls that no filter sees, for a ring of the kernel makes them; `refuse_rings` is earlier
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // the kernel's own parts, which programs seldom need and attackers like
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_personality,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// `kexec_file_load`, which the crate libc does not name for musl on aarch64.
const KEXEC_FILE_LOAD: libc::c_long = if cfg!(target_arch = "x86_64") {
    320
} else {
    294
};
#[cfg(target_env = "gnu")]
const _: () = assert!(KEXEC_FILE_LOAD == libc::SYS_kexec_file_load);

/// What makes a new namespace when a process is forked.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Refuse the calls in every thread of the process.
pub(crate) fn confine(rules: &Rules) -> Result<(), Error> {
    let mut refused: BTreeMap<i64, Vec<Rule>> = REFUSED
        .iter()
        .map(|call| (number(*call), Vec::new()))
        .collect();
    refused.insert(number(libc::SYS_clone), forks_with_namespaces()?);
    refused.insert(number(libc::SYS_socket), sockets_besides(rules)?);
    refuse(refused, libc::EPERM)?;
    // Its flags are in memory, where a filter cannot read them. Where it is absent, libraries call `clone`.
    refuse(
        BTreeMap::from([(number(libc::SYS_clone3), Vec::new())]),
        libc::ENOSYS,
    )
}

/// Let the kernel seem to have no rings. An event loop that has made one aborts when it can no longer use it.
pub(crate) fn refuse_rings() -> Result<(), Error> {
    refuse(
        BTreeMap::from([(number(libc::SYS_io_uring_setup), Vec::new())]),
        libc::ENOSYS,
    )
}

fn refuse(calls: BTreeMap<i64, Vec<Rule>>, error: libc::c_int) -> Result<(), Error> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let errno = SeccompAction::Errno(error.unsigned_abs());
    let filter: BpfProgram =
        SeccompFilter::new(calls, SeccompAction::Allow, errno, architecture)?.try_into()?;
    seccompiler::apply_filter_all_threads(&filter)
}

/// One rule for each kind of namespace: a call that any rule matches is refused.
fn forks_with_namespaces() -> Result<Vec<Rule>, Error> {
    let rule = |flag: &libc::c_int| {
        let flag = u64::from(flag.unsigned_abs());
        Ok(Rule::new(vec![Condition::new(
            0,
            Length::Qword,
            Is::MaskedEq(flag),
            flag,
        )?])?)
    };
    NAMESPACES.iter().map(rule).collect()
}

/// The rule for `socket`: its family is none of those that are allowed. No rule at all matches every call.
fn sockets_besides(rules: &Rules) -> Result<Vec<Rule>, Error> {
    let mut families = Vec::new();
    if !rules.ports.is_empty() {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    if rules.unix {
        families.push(libc::AF_UNIX);
    }
    if families.is_empty() {
        return Ok(Vec::new());
    }
    let is_not = |family: libc::c_int| {
        Condition::new(0, Length::Dword, Is::Ne, u64::from(family.unsigned_abs()))
    };
    let others = families
        .into_iter()
        .map(is_not)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(vec![Rule::new(others)?])
}

/// A system call's number as the filter has it, on processors with longs of 32 bits too.
#[allow(
    clippy::useless_conversion,
    reason = "c_long is i64 on most processors, not on all"
)]
fn number(call: libc::c_long) -> i64 {
    i64::from(call)
}

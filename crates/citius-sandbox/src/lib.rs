//! `--sandbox`: what a worker gives up for good before it serves. Linux only, by two mechanisms of the kernel:
//!
//! - Landlock ([`Rules::readable`], [`Rules::writable`], [`Rules::ports`]): which files it may open and to which TCP ports it may
//!   connect. It holds for the calling thread and for threads that are started later.
//! - seccomp ([`calls`]): which system calls it may make: no programs, no tracing, no namespaces, and no sockets but those that
//!   the rules allow. It holds for all threads of the process.
//!
//! Both set `no_new_privs`, and neither can be undone. Descriptors that are open already keep their rights: the server's
//! sockets, its log and what the application opened at its start. Tests: `tests/deploy/test_sandbox.py`.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod calls;

use std::fmt;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

/// What the process keeps. Everything else is refused with an error that the application can handle.
#[derive(Debug, Default)]
pub struct Rules {
    /// Files, and directories with all that they hold, that may be read. A path that does not exist is skipped.
    pub readable: Vec<PathBuf>,
    /// As `readable`; these may also be written, made and removed.
    pub writable: Vec<PathBuf>,
    /// TCP ports to which it may connect. With any of them, sockets of IPv4 and IPv6 may be made.
    pub ports: Vec<u16>,
    /// Whether Unix sockets may be made.
    pub unix: bool,
}

/// How much of the rules the kernel enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforced {
    /// All of them.
    Wholly,
    /// Those that this kernel knows: an old one restricts neither connections nor signals.
    Partly,
}

/// Why the process is not confined.
#[derive(Debug)]
pub enum Error {
    /// The kernel has no Landlock, or it is turned off.
    NoLandlock,
    /// The kernel refused the rules for paths and ports.
    Landlock(RulesetError),
    /// The kernel, or the processor's architecture, has no such filter of system calls.
    Seccomp(seccompiler::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLandlock => formatter.write_str("the kernel has no Landlock (it needs Linux 5.13, with \"landlock\" among its LSMs)"),
            Self::Landlock(error) => write!(formatter, "Landlock: {error}"),
            Self::Seccomp(error) => write!(formatter, "seccomp: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<RulesetError> for Error {
    fn from(error: RulesetError) -> Self {
        Self::Landlock(error)
    }
}

impl From<seccompiler::Error> for Error {
    fn from(error: seccompiler::Error) -> Self {
        Self::Seccomp(error)
    }
}

/// Give up everything that the rules do not name, for good.
///
/// # Errors
/// The kernel lacks one of the mechanisms. The process may have given up a part by then, so it should end.
pub fn confine(rules: &Rules) -> Result<Enforced, Error> {
    let enforced = confine_files(rules)?;
    calls::confine(rules)?;
    Ok(enforced)
}

/// Let the kernel seem to have no `io_uring`, before anything has made a ring. To be called before [`confine`].
///
/// # Errors
/// The kernel has no filter of system calls.
pub fn refuse_rings() -> Result<(), Error> {
    Ok(calls::refuse_rings()?)
}

/// The newest interface that is used; of it, what the kernel has.
const NEWEST: ABI = ABI::V6;

fn confine_files(rules: &Rules) -> Result<Enforced, Error> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    // To execute is part of reading here: a library is mapped executable without this right, and programs are seccomp's.
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    for (paths, access) in [
        (&rules.readable, read),
        (
            &rules.writable,
            AccessFs::from_all(NEWEST) & !AccessFs::Execute,
        ),
    ] {
        for path in paths {
            let Ok(descriptor) = PathFd::new(path) else {
                continue;
            };
            let access = if path.is_dir() {
                access
            } else {
                access & AccessFs::from_file(NEWEST)
            };
            ruleset = ruleset.add_rule(PathBeneath::new(descriptor, access))?;
        }
    }
    for port in &rules.ports {
        ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    match ruleset.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Ok(Enforced::Wholly),
        RulesetStatus::PartiallyEnforced => Ok(Enforced::Partly),
        RulesetStatus::NotEnforced => Err(Error::NoLandlock),
    }
}

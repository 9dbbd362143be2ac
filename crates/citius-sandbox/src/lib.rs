//! `--sandbox`: what a worker gives up for good before it serves. Linux only, by three mechanisms of the kernel:
//!
//! - Landlock ([`Rules::readable`], [`Rules::writable`], [`Rules::ports`]): which files it may open and to which TCP ports it may
//!   connect. The kernel restricts a thread and those that it starts; [`threads`] has every thread do it.
//! - seccomp ([`calls`]): which system calls exist, and with which arguments: no programs, no tracing, no namespaces, and no
//!   sockets but those that the rules allow. [`table`] has the calls.
//! - Capabilities: of root's, those for files and low ports are left ([`threads`]).
//!
//! With `no_new_privs` none of them can be undone. [`confine`] ends with a look at every thread of the process. Descriptors
//! that are open already keep their rights: the server's sockets, its log and what the application opened at its start.
//! Tests: `tests/deploy/test_sandbox.py`, `tests/deploy/test_syscalls.py`.
#![cfg(target_os = "linux")]
#![expect(
    unsafe_code,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a signal to every thread, in one piece with its handler; callers get a safe interface"
)]

mod calls;
mod table;
mod threads;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::{fmt, io};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
};

/// What the process keeps. Everything else is refused with an error that the application can handle.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each one is a word of `--sandbox-connect` or an option of its own"
)]
pub struct Rules {
    /// Files, and directories with all that they hold, that may be read. A path that does not exist is skipped.
    pub readable: Vec<PathBuf>,
    /// As `readable`; these may also be written, made and removed.
    pub writable: Vec<PathBuf>,
    /// TCP ports to which it may connect. With any of them, TCP sockets can be made.
    pub ports: Vec<u16>,
    /// Whether UDP sockets can be made; they reach any address.
    pub udp: bool,
    /// Whether Unix sockets can be made.
    pub unix: bool,
    /// Whether a socket can be made to listen, as an event loop does that owns the server's sockets.
    pub listen: bool,
    /// Whether modes, owners, times and extended attributes can be changed: of any file of the same user.
    pub metadata: bool,
}

/// Why the process is not confined.
#[derive(Debug)]
pub enum Error {
    /// The kernel has no Landlock, or it is turned off.
    NoLandlock,
    /// The kernel is too old for a rule that was asked for.
    Ports,
    /// The kernel refused the rules for paths and ports.
    Landlock(RulesetError),
    /// A thread that could not be confined.
    Thread(io::Error),
    /// The kernel, or the processor's architecture, has no such filter of system calls.
    Seccomp(seccompiler::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLandlock => formatter.write_str("the kernel has no Landlock (it needs Linux 5.13, with \"landlock\" among its LSMs)"),
            Self::Ports => formatter.write_str("connections to named ports need Linux 6.7: an older kernel would allow all ports"),
            Self::Thread(error) => write!(formatter, "{error}"),
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

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Thread(error)
    }
}

/// Give up everything that the rules do not name, in all threads and for good. Returns what this kernel cannot restrict.
///
/// # Errors
/// The kernel lacks one of the mechanisms, or a thread is not confined. The process may have given up a part by then, so it
/// should end.
pub fn confine(rules: &Rules) -> Result<Vec<&'static str>, Error> {
    let landlock = threads::landlock_version();
    if landlock == 0 {
        return Err(Error::NoLandlock);
    }
    if landlock < PORTS && !rules.ports.is_empty() {
        return Err(Error::Ports);
    }
    let ruleset = ruleset(rules)?.ok_or(Error::NoLandlock)?;
    threads::restrict_all(&ruleset)?;
    calls::confine(rules, landlock)?;
    check_threads()?;
    let mut missing = Vec::new();
    if landlock < SCOPES {
        missing.push("processes that the application forks can send no signals (Linux 6.12)");
        if rules.unix {
            missing.push("abstract Unix sockets of all processes can be reached (Linux 6.12)");
        }
    }
    Ok(missing)
}

/// Versions of Landlock: rules for TCP; for signals and abstract Unix sockets.
const PORTS: u32 = 4;
const SCOPES: u32 = 6;

/// Every thread has the filters of this one. Those that are started later inherit them.
fn check_threads() -> Result<(), Error> {
    let state = |directory: PathBuf| -> io::Result<Vec<String>> {
        let text = std::fs::read_to_string(directory.join("status"))?;
        let names = [
            "CapInh:",
            "CapPrm:",
            "CapEff:",
            "NoNewPrivs:",
            "Seccomp:",
            "Seccomp_filters:",
        ];
        let lines = text
            .lines()
            .filter(|line| names.iter().any(|name| line.starts_with(name)));
        Ok(lines.map(str::to_owned).collect())
    };
    let here = state(PathBuf::from("/proc/thread-self"))?;
    for thread in threads::threads()? {
        match state(threads::directory(thread)) {
            Ok(found) if found != here => {
                let text = format!("a thread is not confined: {}", threads::name(thread));
                return Err(Error::Thread(io::Error::other(text)));
            }
            Ok(_) => {}
            // It has ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => return Err(Error::Thread(error)),
        }
    }
    Ok(())
}

/// Let the kernel seem to have no `io_uring`, before anything has made a ring. To be called before [`confine`].
///
/// # Errors
/// The kernel has no filter of system calls.
pub fn refuse_rings() -> Result<(), Error> {
    Ok(calls::refuse_rings()?)
}

/// Let descendants whose parents have ended become children of this process, which can then end them.
///
/// # Errors
/// The kernel refuses it.
pub fn adopt_orphans() -> io::Result<()> {
    let (one, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: the call takes numbers.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, one, none, none, none) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The newest interface that is used; of it, what the kernel has.
const NEWEST: ABI = ABI::V6;

/// The rules for paths and ports, as the kernel holds them.
fn ruleset(rules: &Rules) -> Result<Option<OwnedFd>, Error> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    // To execute is part of reading here: a library is mapped executable without this right, and programs are seccomp's.
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    // Who may make device files has the devices.
    let never = AccessFs::Execute | AccessFs::MakeBlock | AccessFs::MakeChar;
    for (paths, access) in [
        (&rules.readable, read),
        (&rules.writable, AccessFs::from_all(NEWEST) & !never),
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
    Ok(ruleset.into())
}

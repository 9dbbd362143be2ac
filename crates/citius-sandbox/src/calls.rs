//! The filters of system calls. The first one lists what exists for a worker: what it does not name fails with `ENOSYS`, as
//! on a kernel that has no such call, so that libraries do without. The second one refuses, with `EPERM`, what an intruder
//! would use, and those arguments of the calls that exist by which a worker would reach beyond itself.
//!
//! A filter sees numbers and registers, never memory: paths and addresses are Landlock's, or cannot be restricted.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule, TargetArch,
};

use crate::Rules;
use crate::table::{ALLOWED, METADATA, REFUSED};

/// What a process that is forked must not be: in a new namespace, or a child of the supervisor, which would outlive this one.
const FORKS: &[libc::c_int] = &[
    libc::CLONE_PARENT,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Commands of `ioctl`; no other one can be sent. `TIOCSTI` would type into the operator's terminal.
const IOCTLS: &[u64] = &[
    0x5401,      // TCGETS: whether it is a terminal
    0x5413,      // TIOCGWINSZ
    0x540f,      // TIOCGPGRP
    0x541b,      // FIONREAD
    0x5411,      // TIOCOUTQ, SIOCOUTQ
    0x5421,      // FIONBIO
    0x5450,      // FIONCLEX
    0x5451,      // FIOCLEX
    0x8905,      // SIOCATMARK
    0x8906,      // SIOCGSTAMP
    0x8912,      // SIOCGIFCONF
    0x8910,      // SIOCGIFNAME
    0x8933,      // SIOCGIFINDEX
    0x4004_9409, // FICLONE
    0x4020_940d, // FICLONERANGE
    0x802c_542a, // TCGETS2
];

/// Commands of `fcntl` that are refused: a signal to another process when there is data, and signals about changes of files.
const F_SETOWN_EX: u64 = 15;
const F_SETLEASE: u64 = 1024;
const F_NOTIFY: u64 = 1026;

/// Options of sockets that can be set, by their level. The server's listening sockets outlive the worker: with others of their
/// options an intruder would keep clients from all later workers (`SO_BINDTODEVICE`, `IP_MINTTL`) or take those of the
/// others (`SO_ATTACH_REUSEPORT_CBPF`); by `TCP_FASTOPEN_CONNECT` and `TCP_REPAIR` it would connect without `connect`.
#[rustfmt::skip]
const OPTIONS: &[(libc::c_int, &[libc::c_int])] = &[
    (libc::SOL_SOCKET, &[
        libc::SO_REUSEADDR, libc::SO_REUSEPORT, libc::SO_BROADCAST, libc::SO_SNDBUF, libc::SO_RCVBUF, libc::SO_KEEPALIVE,
        libc::SO_OOBINLINE, libc::SO_PRIORITY, libc::SO_LINGER, libc::SO_PASSCRED, libc::SO_RCVTIMEO, libc::SO_SNDTIMEO,
        libc::SO_TIMESTAMP, libc::SO_TIMESTAMPNS, RCVTIMEO_NEW, SNDTIMEO_NEW,
    ]),
    (libc::IPPROTO_TCP, &[
        libc::TCP_NODELAY, libc::TCP_KEEPIDLE, libc::TCP_KEEPINTVL, libc::TCP_KEEPCNT, libc::TCP_QUICKACK,
        libc::TCP_USER_TIMEOUT,
    ]),
    (libc::IPPROTO_IP, &[libc::IP_TOS]),
    (libc::IPPROTO_IPV6, &[libc::IPV6_V6ONLY, libc::IPV6_TCLASS]),
];

/// Those that exist where UDP is allowed: of the resolver, QUIC and multicast.
#[rustfmt::skip]
const UDP_OPTIONS: &[(libc::c_int, &[libc::c_int])] = &[
    (libc::IPPROTO_IP, &[
        libc::IP_PKTINFO, libc::IP_MTU_DISCOVER, libc::IP_RECVERR, libc::IP_RECVTOS, libc::IP_MULTICAST_IF,
        libc::IP_MULTICAST_TTL, libc::IP_MULTICAST_LOOP, libc::IP_ADD_MEMBERSHIP, libc::IP_DROP_MEMBERSHIP,
    ]),
    (libc::IPPROTO_IPV6, &[
        libc::IPV6_RECVPKTINFO, libc::IPV6_MTU_DISCOVER, libc::IPV6_RECVERR, libc::IPV6_DONTFRAG, libc::IPV6_RECVTCLASS,
        libc::IPV6_MULTICAST_IF, libc::IPV6_MULTICAST_HOPS, libc::IPV6_MULTICAST_LOOP, libc::IPV6_ADD_MEMBERSHIP,
        libc::IPV6_DROP_MEMBERSHIP,
    ]),
    (libc::IPPROTO_UDP, &[libc::UDP_GRO, libc::UDP_SEGMENT]),
];

/// The two time-outs with 64 bits, which the crate libc does not name.
const RCVTIMEO_NEW: libc::c_int = 66;
const SNDTIMEO_NEW: libc::c_int = 67;

/// Refuse the calls in every thread of the process.
pub(crate) fn confine(rules: &Rules, landlock: u32) -> Result<(), Error> {
    let allowed = ALLOWED.iter().map(|call| (number(*call), Vec::new()));
    apply(
        allowed.collect(),
        SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
        SeccompAction::Allow,
    )?;
    // Of two filters that refuse, the later one gives the error.
    refuse(refusals(rules, landlock)?, libc::EPERM)
}

/// Let the kernel seem to have no rings. An event loop that has made one aborts when it can no longer use it.
pub(crate) fn refuse_rings() -> Result<(), Error> {
    refuse(
        BTreeMap::from([(number(libc::SYS_io_uring_setup), Vec::new())]),
        libc::ENOSYS,
    )
}

type Calls = BTreeMap<i64, Vec<Rule>>;

fn refuse(calls: Calls, error: libc::c_int) -> Result<(), Error> {
    apply(
        calls,
        SeccompAction::Allow,
        SeccompAction::Errno(error.unsigned_abs()),
    )
}

fn apply(calls: Calls, otherwise: SeccompAction, matched: SeccompAction) -> Result<(), Error> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter: BpfProgram =
        SeccompFilter::new(calls, otherwise, matched, architecture)?.try_into()?;
    seccompiler::apply_filter_all_threads(&filter)
}

/// What is refused of the calls. No rule at all for a call matches whatever its arguments are.
fn refusals(rules: &Rules, landlock: u32) -> Result<Calls, Error> {
    let mut refused: Calls = REFUSED
        .iter()
        .map(|call| (number(*call), Vec::new()))
        .collect();
    if !rules.metadata {
        refused.extend(METADATA.iter().map(|call| (number(*call), Vec::new())));
    }
    let mut add = |call: libc::c_long, rules: Vec<Rule>| refused.insert(number(call), rules);

    add(libc::SYS_clone, forks()?);
    add(libc::SYS_ioctl, vec![none_of(1, IOCTLS)?]);
    let mut fcntl = vec![rule(&[is(1, F_SETLEASE)?])?, rule(&[is(1, F_NOTIFY)?])?];
    if landlock < SIGNALS {
        fcntl.push(rule(&[is(1, unsigned(libc::F_SETOWN))?])?);
        fcntl.push(rule(&[is(1, F_SETOWN_EX)?])?);
    }
    add(libc::SYS_fcntl, fcntl);
    for call in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
    ] {
        add(call, vec![rule(&[is_not(0, 0)?])?]);
    }
    add(
        libc::SYS_setpriority,
        vec![rule(&[is_not(0, 0)?])?, rule(&[is_not(1, 0)?])?],
    );
    if landlock < SIGNALS {
        let this = u64::from(std::process::id());
        for call in [libc::SYS_kill, libc::SYS_tgkill] {
            add(call, vec![rule(&[is_not(0, this)?])?]);
        }
        for call in [
            libc::SYS_tkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
            libc::SYS_pidfd_send_signal,
        ] {
            add(call, Vec::new());
        }
    }
    if landlock < TRUNCATE {
        add(libc::SYS_truncate, Vec::new());
    }
    sockets(rules, &mut add)?;
    Ok(refused)
}

/// Versions of Landlock that know the calls.
const TRUNCATE: u32 = 3;
const SIGNALS: u32 = 6;

/// What is refused of sockets.
fn sockets(
    rules: &Rules,
    add: &mut impl FnMut(libc::c_long, Vec<Rule>) -> Option<Vec<Rule>>,
) -> Result<(), Error> {
    add(libc::SYS_socket, made(rules)?);
    // One end of a pair of datagrams can send to any address.
    let mut pairs = vec![none_of(0, &[unsigned(libc::AF_UNIX)])?];
    let kinds = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET, libc::SOCK_DGRAM];
    let datagrams = if rules.unix { 3 } else { 2 };
    pairs.extend(kinds_besides(&kinds[..datagrams], None)?);
    add(libc::SYS_socketpair, pairs);

    let sends_anywhere = rules.udp || rules.unix;
    if !sends_anywhere {
        add(libc::SYS_bind, Vec::new());
        if rules.ports.is_empty() {
            add(libc::SYS_connect, Vec::new());
        }
    }
    if !rules.listen {
        // A socket that is not bound would get a port of its own.
        add(libc::SYS_listen, Vec::new());
    }
    // They connect with this flag, which Landlock does not see.
    let fast_open = |argument| {
        let flag = unsigned(libc::MSG_FASTOPEN);
        rule(&[Condition::new(
            argument,
            Length::Dword,
            Is::MaskedEq(flag),
            flag,
        )?])
    };
    let mut sendto = vec![fast_open(3)?];
    // The resolver sends several datagrams by it.
    let mut sendmmsg = vec![fast_open(3)?];
    if !sends_anywhere {
        sendto.push(rule(&[Condition::new(4, Length::Qword, Is::Ne, 0)?])?);
        sendmmsg.clear();
    }
    add(libc::SYS_sendto, sendto);
    add(libc::SYS_sendmmsg, sendmmsg);
    add(libc::SYS_sendmsg, vec![fast_open(2)?]);
    add(libc::SYS_setsockopt, options(rules.udp)?);
    Ok(())
}

/// Which options cannot be set: those of other levels, and the other ones of each level.
fn options(udp: bool) -> Result<Vec<Rule>, Error> {
    let mut allowed: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (level, options) in OPTIONS.iter().chain(UDP_OPTIONS.iter().filter(|_| udp)) {
        let numbers = options.iter().map(|option| unsigned(*option));
        allowed.entry(unsigned(*level)).or_default().extend(numbers);
    }
    let levels: Vec<_> = allowed.keys().copied().collect();
    let mut refused = vec![none_of(1, &levels)?];
    for (level, options) in allowed {
        let mut other = vec![is(1, level)?];
        for option in options {
            other.push(is_not(2, option)?);
        }
        refused.push(rule(&other)?);
    }
    Ok(refused)
}

/// Which sockets cannot be made. No rule: none can.
fn made(rules: &Rules) -> Result<Vec<Rule>, Error> {
    // Types, and the protocols that they have.
    let (mut inet, mut protocols) = (Vec::new(), vec![0]);
    if !rules.ports.is_empty() {
        inet.push(libc::SOCK_STREAM);
        protocols.push(unsigned(libc::IPPROTO_TCP));
    }
    if rules.udp {
        inet.push(libc::SOCK_DGRAM);
        protocols.push(unsigned(libc::IPPROTO_UDP));
    }
    let mut families = Vec::new();
    if !inet.is_empty() {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    if rules.unix {
        families.push(libc::AF_UNIX);
    }
    if families.is_empty() {
        return Ok(Vec::new());
    }
    let numbers: Vec<_> = families.iter().map(|family| unsigned(*family)).collect();
    let mut refused = vec![none_of(0, &numbers)?];
    refused.extend(kinds_besides(&[libc::SOCK_STREAM, libc::SOCK_DGRAM], None)?);
    for family in families {
        if family == libc::AF_UNIX {
            continue;
        }
        // MPTCP, SCTP and others have rules of their own in Landlock, or none.
        let mut other = vec![is(0, unsigned(family))?];
        for protocol in &protocols {
            other.push(is_not(2, *protocol)?);
        }
        refused.push(rule(&other)?);
        refused.extend(kinds_besides(&inet, Some(family))?);
    }
    Ok(refused)
}

/// A rule for each type of socket besides some. Its flags, such as `SOCK_NONBLOCK`, are in the same argument.
fn kinds_besides(kinds: &[libc::c_int], family: Option<libc::c_int>) -> Result<Vec<Rule>, Error> {
    const TYPE: u64 = 0xf;
    let others = (0..=TYPE).filter(|kind| kinds.iter().all(|known| unsigned(*known) != *kind));
    let rules = others.map(|kind| {
        let mut all = vec![Condition::new(1, Length::Dword, Is::MaskedEq(TYPE), kind)?];
        if let Some(family) = family {
            all.push(is(0, unsigned(family))?);
        }
        rule(&all)
    });
    rules.collect()
}

/// One rule for each flag: a call that any rule matches is refused.
fn forks() -> Result<Vec<Rule>, Error> {
    let refused = |flag: &libc::c_int| {
        let flag = unsigned(*flag);
        rule(&[Condition::new(0, Length::Qword, Is::MaskedEq(flag), flag)?])
    };
    FORKS.iter().map(refused).collect()
}

fn rule(all: &[Condition]) -> Result<Rule, Error> {
    Ok(Rule::new(all.to_vec())?)
}

fn none_of(argument: u8, values: &[u64]) -> Result<Rule, Error> {
    let all: Result<Vec<_>, _> = values
        .iter()
        .map(|value| is_not(argument, *value))
        .collect();
    rule(&all?)
}

// The kernel takes the lower half of the register for an `int`, and so does a condition on 32 bits.

fn is(argument: u8, value: u64) -> Result<Condition, Error> {
    Ok(Condition::new(argument, Length::Dword, Is::Eq, value)?)
}

fn is_not(argument: u8, value: u64) -> Result<Condition, Error> {
    Ok(Condition::new(argument, Length::Dword, Is::Ne, value)?)
}

fn unsigned(value: libc::c_int) -> u64 {
    u64::from(value.unsigned_abs())
}

/// A system call's number as the filter has it, on processors with longs of 32 bits too.
#[allow(
    clippy::useless_conversion,
    reason = "c_long is i64 on most processors, not on all"
)]
fn number(call: libc::c_long) -> i64 {
    i64::from(call)
}

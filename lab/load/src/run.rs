//! A run: threads started together, progress while they work, their books in the end.

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use crate::clock::{self, SECOND_NS, span_s};
use crate::engine::{Engine, Live, Seat};
use crate::kernel::Network;
use crate::plan::{Plan, Protocol};
use crate::quic::QuicEngine;
use crate::record::Counted;
use crate::report::{Progress, live_line};
use crate::stop::Window;
use crate::tally::Tally;
use crate::wire::Wire;
use crate::wire::h1::H1;
use crate::wire::h2::H2;
use crate::wire::rpc::Rpc;
use crate::wire::websocket::WebSocket;

/// How a run is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// A live line if standard error is a terminal.
    Line,
    /// JSON lines on standard error.
    Events,
    Nothing,
}

/// Runs `plan` to its end, or until `interrupted`.
/// # Errors  The machine does not allow it; nothing has been sent then.
pub(crate) fn run(
    plan: &Arc<Plan>,
    watch: Watch,
    interrupted: &Arc<AtomicBool>,
) -> Result<(Counted, Vec<Tally>), String> {
    raise_file_limit(plan.transport.connections)?;
    check_cpus(&plan.cpus)?;
    check_start(plan)?;
    let window = Arc::new(OnceLock::new());
    // The engines are made, and their memory with them, before any of them starts.
    let gate = Arc::new(Barrier::new(plan.threads + 1));
    let (ended, ends) = channel();
    let mut lives = Vec::new();
    let mut threads: Vec<JoinHandle<Result<Tally, String>>> = Vec::new();
    for index in 0..plan.threads {
        let live = Arc::new(Live::default());
        lives.push(Arc::clone(&live));
        let (plan, window, gate) = (Arc::clone(plan), Arc::clone(&window), Arc::clone(&gate));
        let (ended, interrupted) = (ended.clone(), Arc::clone(interrupted));
        threads.push(thread::spawn(move || {
            let prepared = prepare_thread(&plan, index);
            gate.wait();
            let window = *window.get_or_init(|| begin(&plan));
            prepared?;
            // The receiver lives until all threads are joined.
            let on_end = Box::new(move |end_ns| ended.send(end_ns).unwrap_or_default());
            let seat = Seat {
                thread: index,
                window,
                live,
                interrupted,
                on_end,
            };
            match plan.protocol {
                Protocol::Http1 => drive::<H1>(&plan, seat),
                Protocol::Http2 => drive::<H2>(&plan, seat),
                Protocol::Http3 | Protocol::RpcQuic | Protocol::Streams | Protocol::Datagrams => {
                    Ok(QuicEngine::new(&plan, seat)?.run())
                }
                Protocol::WebSocket => drive::<WebSocket>(&plan, seat),
                Protocol::Rpc => drive::<Rpc>(&plan, seat),
            }
        }));
    }
    drop(ended);
    wait_for_start(plan);
    gate.wait();
    let window = *window.get_or_init(|| begin(plan));
    let begin_unix_ns = clock::unix_ns() + window.begin_ns - clock::now_ns();
    let (end_ns, network) = Watcher {
        plan,
        window,
        watch,
        lives,
        ends,
    }
    .watch();
    let tallies = threads
        .into_iter()
        .map(|thread| {
            thread
                .join()
                .map_err(|_| "a load thread panicked".to_owned())?
        })
        .collect::<Result<_, _>>()?;
    let interrupted = interrupted.load(Ordering::Relaxed);
    Ok((
        Counted {
            begin_ns: window.begin_ns,
            end_ns,
            begin_unix_ns,
            network,
            interrupted,
        },
        tallies,
    ))
}

/// The window, from the instant that was asked for: waking takes the threads some microseconds.
fn begin(plan: &Plan) -> Window {
    let start_ns = plan.start_ns.unwrap_or_else(clock::now_ns);
    plan.stop.window(start_ns, plan.warmup_ns)
}

/// Sleeps until the instant at which the first request is due, if there is one.
#[expect(clippy::disallowed_methods, reason = "nothing is to be done before")]
fn wait_for_start(plan: &Plan) {
    if let Some(start_ns) = plan.start_ns {
        thread::sleep(Duration::from_nanos(
            start_ns.saturating_sub(clock::now_ns()),
        ));
    }
}

/// # Errors  The instant to start at is over: other generators would have started without this one.
fn check_start(plan: &Plan) -> Result<(), String> {
    let now_ns = clock::now_ns();
    match plan.start_ns {
        Some(start_ns) if start_ns < now_ns => Err(format!(
            "--start-at: that instant passed {:.3} s ago (CLOCK_MONOTONIC is {now_ns})",
            span_s(now_ns - start_ns)
        )),
        _ => Ok(()),
    }
}

fn drive<W: Wire>(plan: &Arc<Plan>, seat: Seat) -> Result<Tally, String> {
    let engine = Engine::<W>::new(plan, seat)
        .map_err(|error| format!("cannot make an epoll set: {error}"))?;
    Ok(engine.run())
}

/// Pins the calling thread and asks for timers that do not lag by the default 50 µs.
fn prepare_thread(plan: &Plan, index: usize) -> Result<(), String> {
    if !plan.cpus.is_empty() {
        let cpu = plan.cpus[index % plan.cpus.len()];
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set)
            .map_err(|error| format!("--cpus: cannot run on CPU {cpu}: {error}"))?;
    }
    set_current_timer_slack(NonZeroU64::new(1))
        .map_err(|error| format!("cannot set the timer slack: {error}"))
}

/// # Errors  A CPU of the list does not exist or is not allowed to this process.
fn check_cpus(cpus: &[usize]) -> Result<(), String> {
    let allowed = rustix::thread::sched_getaffinity(None).map_err(|error| error.to_string())?;
    match cpus.iter().find(|cpu| !allowed.is_set(**cpu)) {
        Some(cpu) => Err(format!(
            "--cpus: CPU {cpu} is not available to this process"
        )),
        None => Ok(()),
    }
}

/// # Errors  The hard limit is too low for the connections.
fn raise_file_limit(n_connections: usize) -> Result<(), String> {
    let needed = n_connections as u64 + FILES_BESIDES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        return Err(format!(
            "{n_connections} connections need {needed} open files, the hard limit (ulimit -Hn) is {}",
            limit.maximum.unwrap_or_default()
        ));
    }
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(needed),
            maximum: limit.maximum,
        },
    )
    .map_err(|error| format!("cannot raise the limit of open files to {needed}: {error}"))
}

/// Tells the world how the run goes.
struct Watcher<'a> {
    plan: &'a Plan,
    window: Window,
    watch: Watch,
    lives: Vec<Arc<Live>>,
    /// One end instant per thread.
    ends: Receiver<u64>,
}

impl Watcher<'_> {
    /// Returns when every thread has ended its counting, with the last end and what the kernel
    /// counted since the begin.
    fn watch(self) -> (u64, Option<Network>) {
        let shows_line = self.watch == Watch::Line && io::stderr().is_terminal();
        let mut end_ns = None;
        let mut n_running = self.lives.len();
        let mut has_begun = false;
        let mut network_at_begin = Network::read();
        let mut next_ns = self.window.begin_ns;
        while n_running > 0 {
            let wait_ns = next_ns.saturating_sub(clock::now_ns());
            match self.ends.recv_timeout(Duration::from_nanos(wait_ns)) {
                Ok(thread_end_ns) => {
                    n_running -= 1;
                    end_ns = end_ns.max(Some(thread_end_ns));
                }
                // A thread that failed hangs up without an end.
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if has_begun => {
                    self.show_progress(shows_line);
                    next_ns += SECOND_NS;
                }
                Err(RecvTimeoutError::Timeout) => {
                    has_begun = true;
                    network_at_begin = Network::read();
                    self.event_at("begin", self.window.begin_ns);
                    next_ns += SECOND_NS;
                }
            }
        }
        let end_ns = end_ns.unwrap_or(self.window.begin_ns);
        let network = Network::read()
            .zip(network_at_begin)
            .map(|(at_end, at_begin)| at_end.since(at_begin));
        if !has_begun {
            self.event_at("begin", self.window.begin_ns);
        }
        self.event_at("end", end_ns);
        if shows_line {
            // Leaves the line to the table.
            say(&format!("\r{:78}\r", ""));
        }
        (end_ns, network)
    }

    fn event_at(&self, name: &str, at_ns: u64) {
        if self.watch == Watch::Events {
            say(&format!(
                "{}\n",
                serde_json::json!({"event": name, "monotonic_ns": at_ns})
            ));
        }
    }

    fn show_progress(&self, shows_line: bool) {
        let progress = self.progress();
        if self.watch == Watch::Events {
            let event = serde_json::json!({
                "event": "progress",
                "elapsed_s": progress.elapsed_s,
                "remaining_s": progress.remaining_s,
                "requests": progress.requests,
                "requests_per_s": progress.requests_per_s,
                "errors": progress.errors,
            });
            say(&format!("{event}\n"));
        } else if shows_line {
            say(&format!("\r{:78}", live_line(&progress)));
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of a run fit 53 bits")]
    fn progress(&self) -> Progress {
        let now_ns = clock::now_ns();
        let sum = |of: fn(&Live) -> u64| self.lives.iter().map(|live| of(live)).sum::<u64>();
        let requests = sum(|live| live.completed.load(Ordering::Relaxed));
        let errors = sum(|live| live.errors.load(Ordering::Relaxed));
        let elapsed_s = span_s(now_ns.saturating_sub(self.window.begin_ns));
        let until_end_s = (self.window.end_ns != u64::MAX)
            .then(|| span_s(self.window.end_ns.saturating_sub(now_ns)));
        let n_done = requests + errors;
        let until_count_s = self
            .plan
            .stop
            .requests
            .filter(|_| n_done > 0)
            .map(|total| elapsed_s * total.saturating_sub(n_done) as f64 / n_done as f64);
        let remaining_s = match (until_end_s, until_count_s) {
            (Some(end_s), Some(count_s)) => Some(end_s.min(count_s)),
            (end_s, count_s) => end_s.or(count_s),
        };
        let requests_per_s = if elapsed_s > 0.0 {
            requests as f64 / elapsed_s
        } else {
            0.0
        };
        Progress {
            elapsed_s,
            remaining_s,
            requests,
            requests_per_s,
            errors,
        }
    }
}

/// Progress that cannot be written is lost; that is not an error.
fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

/// Standard streams, epoll sets and what the runtime holds.
const FILES_BESIDES: u64 = 64;

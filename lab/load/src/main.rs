//! `citius-load`: asks an HTTP server, judges the answers, measures how long they took.
//!
//! Three independent values make a load: pace (`pace.rs`, when requests are due), transport
//! (`wire.rs`, how they travel) and stop rule (`stop.rs`, when it ends). `options.rs` turns the
//! command line into a `plan.rs`; `run.rs` starts one `engine.rs` per thread; each engine keeps
//! its own books (`judge.rs`, `tally.rs`, `histogram.rs`); `record.rs` is what remains of them.
//! It shares no code with the servers it judges.

mod clock;
mod connection;
mod engine;
mod fail_if;
mod flight;
mod histogram;
mod judge;
mod kernel;
mod options;
mod pace;
mod plan;
mod quic;
mod record;
mod report;
mod request;
mod run;
mod series;
mod sessions;
mod stop;
mod tally;
mod tls;
mod wire;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::options::{Options, find_address};
use crate::record::{Record, Result as RunResult};
use crate::request::Url;
use crate::run::Watch;

fn main() -> ExitCode {
    let options = Options::parse();
    match execute(&options) {
        Ok(code) => code,
        Err(Failure { code, message }) => {
            complain(&message);
            ExitCode::from(code)
        }
    }
}

/// Why there is no result.
struct Failure {
    code: u8,
    message: String,
}

fn execute(options: &Options) -> Result<ExitCode, Failure> {
    let refuse = |message| Failure {
        code: BAD_ARGUMENTS,
        message,
    };
    let fail = |message| Failure {
        code: NOT_REACHABLE,
        message,
    };
    let url = Url::parse(&options.url).map_err(refuse)?;
    // Invalid options are refused before a connection is opened.
    let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], url.port));
    let mut plan = options.plan(&url, nowhere).map_err(refuse)?;
    let interrupted = watch_signals().map_err(fail)?;
    plan.address =
        find_address(&url, options.timeout, options.http3 || url.is_quic()).map_err(fail)?;
    let plan = Arc::new(plan);
    let watch = match options {
        Options { events: true, .. } => Watch::Events,
        Options { quiet: true, .. } => Watch::Nothing,
        Options { .. } => Watch::Line,
    };
    let (counted, tallies) = run::run(&plan, watch, &interrupted).map_err(refuse)?;
    let result = RunResult::new(options, &plan, counted, &tallies);
    publish(options, &result.record).map_err(fail)?;
    Ok(ExitCode::from(verdict(options, &result)))
}

/// A flag that Ctrl-C and SIGTERM set; the second one ends the program at once.
fn watch_signals() -> Result<Arc<AtomicBool>, String> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let end_at_once = signal_hook::flag::register_conditional_shutdown(
            signal,
            i32::from(INTERRUPTED),
            Arc::clone(&interrupted),
        );
        end_at_once
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
            .map_err(|error| format!("cannot watch for signal {signal}: {error}"))?;
    }
    Ok(interrupted)
}

/// Writes the record and the table to where they were asked for.
fn publish(options: &Options, record: &Record) -> Result<(), String> {
    let standard_output = Path::new("-");
    let mut json_on_output = false;
    if let Some(path) = &options.json {
        let json = serde_json::to_string(record).expect("a record has string keys") + "\n";
        json_on_output = path == standard_output;
        if json_on_output {
            print(&json)?;
        } else {
            std::fs::write(path, json)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
    }
    if json_on_output || options.quiet {
        Ok(())
    } else {
        print(&report::table(record))
    }
}

fn print(text: &str) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
        .map_err(|error| format!("cannot write to standard output: {error}"))
}

fn verdict(options: &Options, result: &RunResult) -> u8 {
    let held: Vec<String> = options
        .fail_if
        .iter()
        .filter_map(|condition| condition.held_by(result))
        .collect();
    for condition in &held {
        complain(&format!("failed: {condition}"));
    }
    if result.record.completed == 0 && !result.record.interrupted {
        complain("no valid answer was counted");
        if let Some(failure) = result
            .record
            .tls
            .as_ref()
            .and_then(|tls| tls.failure.as_ref())
        {
            complain(&format!("TLS: {failure}"));
        }
        return NOT_REACHABLE;
    }
    match (held.is_empty(), result.record.interrupted) {
        (false, _) => CONDITION_HELD,
        (true, true) => INTERRUPTED,
        (true, false) => 0,
    }
}

fn complain(message: &str) {
    // Without a standard error the message is lost.
    let _ = writeln!(std::io::stderr(), "citius-load: {message}");
}

const NOT_REACHABLE: u8 = 1;
const BAD_ARGUMENTS: u8 = 2;
const CONDITION_HELD: u8 = 3;
/// As shells report SIGINT.
const INTERRUPTED: u8 = 130;

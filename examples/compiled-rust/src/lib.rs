//! Handlers in Rust for app.py; see README.md for how to build them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use citius_handler::{Case, Chan, Mutex, Outcome, Request, Response, Slot, Status, WaitGroup};
use citius_handler::{go, select, sleep};

/// What all requests have been worth; several threads may add to it at once.
static TOTAL: AtomicI64 = AtomicI64::new(0);

/// `POST /add/{amount}`
fn add(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let amount = request.param_integer(0)?;
    let total = TOTAL.fetch_add(amount, Ordering::Relaxed) + amount;
    response.content_type(b"application/json")?;
    response.write_integer(total)
}

/// `GET /agent`
fn agent(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let agent = request.header("user-agent").ok_or(Status::NOT_FOUND)?;
    response.content_type(b"text/plain; charset=utf-8")?;
    response.header(b"vary", b"user-agent")?;
    let text = String::from_utf8_lossy(agent);
    writeln!(response, "{} characters", text.chars().count()).map_err(|_| Status::FAILED)
}

/// `GET /panic`: answered with 500, and the server goes on.
fn mishap(_: &Request<'_>, _: &mut Response<'_>) -> Outcome {
    panic!("on purpose");
}

/// `GET /squares?count=10`, with `serial=True`: a goroutine for each square, and their sum by a channel.
fn squares(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let count = request.query_integer("count", 10)?;
    let results = Chan::new(0)?;
    for number in 0..count {
        let results = results.clone();
        go(move || {
            // It fails if the client leaves: then nothing waits for the square.
            let _ = results.send(number * number);
        })?;
    }
    let mut sum = 0;
    for _ in 0..count {
        sum += results.recv()?.unwrap_or(0);
    }
    response.write_integer(sum)
}

/// `GET /words`, with `serial=True`: two senders, a receiver that gives up, and a list behind a lock.
fn words(_: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let (slow, fast) = (Chan::<String>::new(0)?, Chan::<String>::new(0)?);
    let said = Arc::new(Mutex::new(Vec::new()));
    let done = WaitGroup::new()?;
    for (word, ms, channel) in [("slow", 20, &slow), ("fast", 1, &fast)] {
        let (channel, said, finished) = (channel.clone(), Arc::clone(&said), done.clone());
        done.add(1)?;
        go(move || {
            if sleep(Duration::from_millis(ms)).is_ok() {
                if let Ok(mut said) = said.lock() {
                    said.push(word);
                }
                let _ = channel.send(word.to_string());
            }
            let _ = finished.done();
        })?;
    }
    for _ in 0..2 {
        let (mut first, mut second) = (Slot::empty(), Slot::empty());
        let mut cases = [
            Case::receive(&slow, &mut first),
            Case::receive(&fast, &mut second),
        ];
        select(&mut cases, Some(Duration::from_secs(5)))?;
        let word = first.take().or_else(|| second.take()).unwrap_or_default();
        response.write(word.as_bytes())?;
        response.write(b" ")?;
        response.flush()?;
    }
    done.wait()?;
    let count = said.lock()?.len();
    response.write_integer(i64::try_from(count).unwrap_or(i64::MAX))
}

/// `GET /unsent`, with `serial=True`: values that own memory, in a channel that is dropped with them.
fn unsent(_: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let counted = Arc::new(());
    let channel = Chan::new(3)?;
    for _ in 0..3 {
        channel
            .send(Arc::clone(&counted))
            .map_err(|(error, _)| error)?;
    }
    let (error, back) = match channel.send_within(Arc::clone(&counted), Some(Duration::ZERO)) {
        Ok(()) => return Err(Status::FAILED),
        Err(refused) => refused,
    };
    drop(back);
    drop(channel);
    let left = Arc::strong_count(&counted);
    write!(response, "{error}; {left} left").map_err(|_| Status::FAILED)
}

/// `GET /child`, with `serial=True`: a panic ends its goroutine only.
fn child(_: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let done = Chan::<()>::new(0)?;
    let told = done.clone();
    go(move || {
        let _told = OnDrop(told);
        panic!("in a goroutine, on purpose");
    })?;
    done.recv()?;
    response.write(b"lives")
}

/// Closes a channel, however the goroutine ends that has it.
struct OnDrop(Chan<()>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        let _ = self.0.close();
    }
}

citius_handler::export!(add, agent, mishap, squares, words, unsent, child);

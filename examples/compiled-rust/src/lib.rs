//! Handlers in Rust for app.py; see README.md for how to build them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use citius_handler::{Case, Chan, Mutex, Outcome, Request, Response, Slot, Status, WaitGroup};
use citius_handler::{Conn, HttpRequest, Postgres, Reason, Redis, Reply, go, select, sleep};

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

/// `GET /relay?port=8000`, with `serial=True`: the response of another server.
fn relay(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let port = request.query_integer("port", 8000)?;
    let url = format!("http://127.0.0.1:{port}/agent");
    let answer = HttpRequest::get(&url)
        .field("user-agent", "relay")
        .timeout(Duration::from_secs(5))
        .send()?;
    response.status(answer.status());
    let vary = answer.field("vary").unwrap_or_default();
    response.header(b"x-vary", vary)?;
    response.write(answer.body())
}

/// `GET /line?port=8000`, with `serial=True`: the first line that a server sends over TCP.
fn line(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let port = u16::try_from(request.query_integer("port", 8000)?);
    let timeout = Some(Duration::from_secs(5));
    let conn = match Conn::connect("127.0.0.1", port.unwrap_or(0), None, timeout) {
        Err(error) if error.reason == Reason::Refused => return response.write(b"refused"),
        conn => conn?,
    };
    conn.write(b"GET /agent HTTP/1.0\r\nhost: x\r\n\r\n", timeout)?;
    let mut buffer = [0; 4096];
    let got = conn.read(&mut buffer, timeout)?;
    let end = buffer[..got].iter().position(|&byte| byte == b'\r');
    response.write(&buffer[..end.unwrap_or(got)])
}

/// `POST /visits/{page}`, with `serial=True`: counts in the application's Redis.
fn visits(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let redis = Redis::find("cache").ok_or(Status::FAILED)?;
    let key = [b"visits:", request.param(0)?].concat();
    let reply = redis.call(&[b"INCR", &key], None)?;
    match reply.value() {
        Reply::Integer(count) => response.write_integer(count),
        other => write!(response, "{other:?}").map_err(|_| Status::FAILED),
    }
}

/// `GET /sum?of=3`, with `serial=True`: asks the application's PostgreSQL.
fn sum(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let db = Postgres::find("db").ok_or(Status::FAILED)?;
    let of = request.query_integer("of", 3)?;
    let sql = "SELECT sum(g), count(*) FROM generate_series(1, $1::bigint) AS g";
    match db.query(sql, &[of.into()], Some(Duration::from_secs(5))) {
        Ok(rows) => response.write_integer(rows.integer(0, 0).ok_or(Status::NOT_FOUND)?),
        Err(error) => {
            response.status(error.status.0);
            response.write(error.text.as_bytes())
        }
    }
}

citius_handler::export!(
    add, agent, mishap, squares, words, unsent, child, relay, line, visits, sum
);

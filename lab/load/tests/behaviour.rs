//! The program against servers that behave and misbehave, over real sockets.
//!
//! A server is a closure that is told which connection and which request of it is to be answered,
//! and answers, or does not. It ends with the test process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use serde_json::Value;

mod ports;

/// A request as the server read it.
#[derive(Clone, Debug)]
struct Asked {
    /// Of all connections that asked something, from 0.
    connection: usize,
    /// On this connection, from 0.
    request: usize,
    method: String,
    path: String,
    /// Names in lower case.
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

/// Whether the connection goes on after an answer.
#[derive(PartialEq)]
enum Then {
    KeepOpen,
    Close,
}

struct Server {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    fn start(answer: impl Fn(&Asked, &mut TcpStream) -> Then + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (books, answer) = (Arc::clone(&asked), Arc::new(answer));
        let n_connections = Arc::new(AtomicUsize::new(0));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (books, answer) = (Arc::clone(&books), Arc::clone(&answer));
                let n_connections = Arc::clone(&n_connections);
                thread::spawn(move || converse(stream, &n_connections, &books, &*answer));
            }
        });
        Self { url, asked }
    }

    /// Answers every request with these bytes.
    fn constant(bytes: &'static str) -> Self {
        Self::start(move |_, stream| send(stream, bytes))
    }

    fn n_asked(&self) -> usize {
        self.asked.lock().expect("no panic").len()
    }

    fn n_connections(&self) -> usize {
        let asked = self.asked.lock().expect("no panic");
        asked
            .iter()
            .map(|asked| asked.connection + 1)
            .max()
            .unwrap_or(0)
    }

    fn load(&self, arguments: &str) -> Run {
        let mut words: Vec<&str> = arguments.split_whitespace().collect();
        words.push(&self.url);
        Run::new(&words)
    }
}

fn converse(
    stream: TcpStream,
    n_connections: &AtomicUsize,
    books: &Mutex<Vec<Asked>>,
    answer: &(dyn Fn(&Asked, &mut TcpStream) -> Then + Send + Sync),
) {
    stream.set_nodelay(true).expect("a TCP socket");
    let mut writer = stream.try_clone().expect("a descriptor");
    let mut reader = BufReader::new(stream);
    let mut connection = None;
    for request in 0.. {
        let Some(mut asked) = read_request(&mut reader) else {
            return;
        };
        asked.connection =
            *connection.get_or_insert_with(|| n_connections.fetch_add(1, Ordering::Relaxed));
        asked.request = request;
        books.lock().expect("no panic").push(asked.clone());
        if answer(&asked, &mut writer) == Then::Close {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut start = lines[0].split(' ').map(str::to_owned);
    let headers: HashMap<String, String> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let n_body = headers
        .get("content-length")
        .map_or(0, |n| n.parse().expect("a number"));
    let mut body = vec![0; n_body];
    reader.read_exact(&mut body).ok()?;
    let (method, path) = (start.next()?, start.next()?);
    Some(Asked {
        connection: 0,
        request: 0,
        method,
        path,
        headers,
        body,
    })
}

/// Sends and keeps the connection. The peer may be gone, as is its right.
fn send(stream: &mut TcpStream, bytes: impl AsRef<[u8]>) -> Then {
    match stream.write_all(bytes.as_ref()) {
        Ok(()) => Then::KeepOpen,
        Err(_) => Then::Close,
    }
}

struct Run {
    output: Output,
    record: Value,
}

impl Run {
    fn new(arguments: &[&str]) -> Self {
        let output = program(arguments, &["--json", "-"])
            .output()
            .expect("the program runs");
        let record = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        Self { output, record }
    }

    fn code(&self) -> i32 {
        self.output.status.code().expect("no signal")
    }

    fn complaint(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    #[track_caller]
    fn number(&self, key: &str) -> u64 {
        let found = key.split('.').fold(&self.record, |value, key| &value[key]);
        found
            .as_u64()
            .unwrap_or_else(|| panic!("{key}: {found} in {}", self.shown()))
    }

    #[track_caller]
    fn float(&self, key: &str) -> f64 {
        let found = key.split('.').fold(&self.record, |value, key| &value[key]);
        found
            .as_f64()
            .unwrap_or_else(|| panic!("{key}: {found} in {}", self.shown()))
    }

    /// So many valid answers, and these errors and no others.
    #[track_caller]
    fn expect(&self, completed: u64, errors: &[(&str, u64)]) -> &Self {
        let found: Vec<(&str, u64)> = self.record["errors"]
            .as_object()
            .unwrap_or_else(|| panic!("no record: {}", self.shown()))
            .iter()
            .filter_map(|(class, count)| Some((class.as_str(), count.as_u64()?)))
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(
            (self.number("completed"), found.as_slice()),
            (completed, errors)
        );
        assert_eq!(
            self.number("latency_us.count"),
            completed,
            "only valid answers have a latency"
        );
        self
    }

    fn shown(&self) -> String {
        format!("{} {}", self.record, self.complaint())
    }
}

fn program(arguments: &[&str], more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_citius-load"));
    command.args(arguments).args(more).stdin(Stdio::null());
    command
}

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nWelcome!\n";
const LAST_HELLO: &str =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nWelcome!\n";
const EXPECT_LENGTH: &str = "--expect-length 9";

#[test]
fn counts_exactly_what_was_asked_for() {
    let server = Server::constant(HELLO);
    let run = server.load(&format!("-n 203 -c 4 -t 2 {EXPECT_LENGTH}"));
    run.expect(203, &[]);
    assert_eq!(
        (run.code(), server.n_asked(), server.n_connections()),
        (0, 203, 4)
    );
    for (key, value) in [
        ("sent", 203),
        ("connections_opened", 4),
        ("connections_lost", 0),
        ("statuses.200", 203),
        ("bytes_read", 203 * HELLO.len() as u64),
    ] {
        assert_eq!(run.number(key), value, "{key}");
    }
    assert!(run.float("requests_per_s") > 0.0 && run.float("cpu_us_per_request") > 0.0);
    assert!(run.float("latency_us.min") <= run.float("latency_us.p50"));
    assert!(run.float("latency_us.p99_9") <= run.float("latency_us.max"));
}

#[test]
fn pipelined_requests_are_all_answered() {
    let server = Server::constant(HELLO);
    server.load("-n 500 -c 3 -p 8").expect(500, &[]);
    assert_eq!((server.n_asked(), server.n_connections()), (500, 3));
}

#[test]
fn a_close_in_the_middle_is_short() {
    let server = Server::start(|_, stream| {
        send(stream, &HELLO[..HELLO.len() - 3]);
        Then::Close
    });
    let run = server.load("-n 20 -c 2");
    run.expect(0, &[("short", 20)]);
    assert_eq!(run.code(), 1);
    assert!(run.complaint().contains("no valid answer"));
}

#[test]
fn behind_a_short_answer_the_rest_of_the_pipeline_is_reset() {
    let server = Server::start(|asked, stream| match (asked.connection, asked.request) {
        (0, 3) => {
            send(stream, [HELLO, &HELLO[..5]].concat());
            Then::Close
        }
        (0, _) => Then::KeepOpen,
        _ => send(stream, HELLO),
    });
    let run = server.load("-n 9 -c 1 -p 4");
    // Whether the room that the whole answer made was used before the end is the kernel's business.
    let reset = run.number("errors.reset");
    assert!(matches!(reset, 2 | 3), "{}", run.shown());
    run.expect(8 - reset, &[("reset", reset), ("short", 1)]);
}

#[test]
fn a_close_without_an_answer_is_a_reset() {
    let server = Server::start(|_, _| Then::Close);
    server.load("-n 6 -c 2").expect(0, &[("reset", 6)]);
}

#[test]
fn a_closing_answer_costs_a_connection_and_no_error() {
    let server = Server::start(|_, stream| {
        send(stream, LAST_HELLO);
        Then::Close
    });
    let run = server.load("-n 20 -c 2");
    run.expect(20, &[]);
    assert_eq!(
        (
            run.number("connections_opened"),
            run.number("connections_lost")
        ),
        (20, 20)
    );
}

#[test]
fn what_a_closing_server_ignores_is_asked_again() {
    let server = Server::start(|asked, stream| match asked.request {
        0 | 1 => send(stream, HELLO),
        _ => {
            send(stream, LAST_HELLO);
            Then::Close
        }
    });
    let run = server.load("-n 30 -c 1 -p 8");
    run.expect(30, &[]);
    assert_eq!(run.number("connections_opened"), 10, "{}", run.shown());
}

#[test]
fn bodies_that_end_with_the_connection_are_complete() {
    let server = Server::start(|_, stream| {
        send(stream, "HTTP/1.1 200 OK\r\n\r\nWelcome!\n");
        Then::Close
    });
    server
        .load(&format!("-n 8 -c 2 {EXPECT_LENGTH}"))
        .expect(8, &[]);
}

#[test]
fn wrong_status_and_length_are_found_on_every_answer() {
    let server = Server::start(|asked, stream| match asked.request % 3 {
        0 => send(stream, HELLO),
        1 => send(stream, "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
        _ => send(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nWelcome!",
        ),
    });
    let run = server.load(&format!("-n 30 -c 1 {EXPECT_LENGTH}"));
    run.expect(10, &[("status", 10), ("length", 10)]);
    assert_eq!(
        (run.number("statuses.200"), run.number("statuses.500")),
        (20, 10)
    );
    assert_eq!(
        run.number("connections_opened"),
        1,
        "an invalid answer costs no connection"
    );
}

#[test]
fn wrong_content_is_found_where_it_is_looked_for() {
    let wrong_at = |place: usize, arguments: &str| {
        let server = Server::start(move |asked, stream| {
            let wrong = HELLO.replace('!', "?");
            send(
                stream,
                if asked.request == place {
                    &wrong
                } else {
                    HELLO
                },
            )
        });
        let body = "Welcome!\n";
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let run = Run::new(
            &[
                &arguments[..],
                &["-n", "10", "-c", "1", "--expect-body", body, &server.url],
            ]
            .concat(),
        );
        run.number("errors.content")
    };
    assert_eq!(
        wrong_at(0, "--check-every 1000"),
        1,
        "the first of a connection"
    );
    assert_eq!(
        wrong_at(9, "--check-every 1000"),
        1,
        "the last of a connection"
    );
    assert_eq!(wrong_at(5, "--check-every 1000"), 0, "not in the sample");
    assert_eq!(wrong_at(5, "--check-every 3"), 1, "every third");
    assert_eq!(wrong_at(4, "--check-every 1"), 1);
}

#[test]
fn a_hanging_server_times_out() {
    let server = Server::start(|asked, stream| match asked.request {
        0 => send(stream, HELLO),
        // Reads on, and never says a word.
        _ => Then::KeepOpen,
    });
    let run = server.load("-n 8 -c 2 --timeout 60ms");
    run.expect(4, &[("timeout", 4)]);
    assert!(run.float("elapsed_s") >= 0.12, "two timeouts in a row");
}

#[test]
fn garbage_is_a_protocol_error() {
    let server = Server::start(|_, stream| send(stream, "220 smtp.example.org ESMTP\r\n"));
    server.load("-n 5 -c 1").expect(0, &[("protocol", 5)]);
    let server = Server::start(|_, stream| send(stream, [HELLO, "more than asked"].concat()));
    let run = server.load("-n 5 -c 1");
    assert_eq!(
        run.number("completed"),
        5,
        "the answers before the garbage are valid"
    );
}

#[test]
fn a_server_that_dies_yields_connect_errors_and_an_end() {
    let listener = ports::listener();
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    // Accepts the connection that looks whether it is there, and none after it.
    thread::spawn(move || drop(listener.accept()));
    let run = Run::new(&["-n", "6", "-c", "2", &url]);
    assert_eq!(run.number("completed"), 0);
    assert!(run.number("errors.connect") >= 1);
    assert_eq!(run.number("errors.connect") + run.number("errors.reset"), 6);
    assert_eq!(run.code(), 1);
}

#[test]
fn nothing_reachable_is_said_at_once() {
    let listener = ports::listener();
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    drop(listener);
    let run = Run::new(&[&url]);
    assert_eq!((run.code(), &run.record), (1, &Value::Null));
    assert!(
        run.complaint().contains("nothing reachable at 127.0.0.1"),
        "{}",
        run.complaint()
    );
}

#[test]
fn bad_arguments_are_refused_before_anybody_is_asked() {
    let server = Server::constant(HELLO);
    for (arguments, part) in [
        ("--no-such-option", "--no-such-option"),
        ("-c 0", "--connections"),
        ("--fail-if p99>fast", "fail-if"),
        ("--cpus 900", "CPU 900"),
        ("--mix /no/such/file", "/no/such/file"),
    ] {
        let run = server.load(arguments);
        assert_eq!(run.code(), 2, "{arguments}");
        assert!(run.complaint().contains(part), "{}", run.complaint());
    }
    let run = Run::new(&["localhost"]);
    assert_eq!(run.code(), 2);
    assert!(run.complaint().contains("expected http[s]://"));
    assert_eq!(server.n_asked(), 0);
}

#[test]
fn answers_may_come_a_byte_at_a_time() {
    let server = Server::start(|_, stream| {
        HELLO
            .bytes()
            .fold(Then::KeepOpen, |_, byte| send(stream, [byte]))
    });
    server
        .load(&format!("-n 20 -c 2 {EXPECT_LENGTH}"))
        .expect(20, &[]);
}

#[test]
fn large_bodies_are_measured_whether_or_not_they_are_looked_at() {
    const N_BODY: usize = 300_000;
    let body = std::env::temp_dir().join(format!("citius-load-body-{}", std::process::id()));
    std::fs::write(&body, vec![b'x'; N_BODY]).expect("a temporary file");
    let path = body.to_str().expect("ASCII").to_owned();
    let answers = |last: &'static str, n_body: usize| {
        Server::start(move |_, stream| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {n_body}\r\n\r\n");
            let rest = "x".repeat(n_body - last.len());
            send(stream, [head.as_str(), &rest, last].concat())
        })
    };
    let arguments = |check_every: u32| {
        format!("-n 12 -c 2 --expect-body-file {path} --check-every {check_every}")
    };
    let run = answers("x", N_BODY).load(&arguments(5));
    run.expect(12, &[]);
    assert!(run.number("bytes_read") > 12 * N_BODY as u64);
    assert!(
        (3..12).contains(&run.number("bodies_compared")),
        "{}",
        run.shown()
    );
    let run = answers("y", N_BODY).load(&arguments(1));
    run.expect(0, &[("content", 12)]);
    answers("x", N_BODY - 1)
        .load(&arguments(5))
        .expect(0, &[("length", 12)]);
    std::fs::remove_file(body).expect("written above");
}

#[test]
fn chunked_answers_and_head_requests() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                   4\r\nWelc\r\n5\r\nome!\n\r\n0\r\n\r\n";
    let server = Server::constant(chunked);
    server
        .load(&format!("-n 10 -c 1 {EXPECT_LENGTH}"))
        .expect(10, &[]);
    let server = Server::constant("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    server
        .load(&format!("-m HEAD -n 10 -c 1 {EXPECT_LENGTH}"))
        .expect(10, &[]);
}

#[test]
fn large_requests_arrive_whole() {
    const N_BODY: usize = 3_000_000;
    let body = std::env::temp_dir().join(format!("citius-load-request-{}", std::process::id()));
    std::fs::write(&body, vec![b'q'; N_BODY]).expect("a temporary file");
    let server = Server::start(|_, stream| send(stream, HELLO));
    let arguments = format!(
        "-m POST -n 6 -c 2 --body-file {} -H X-Test:yes",
        body.display()
    );
    let run = server.load(&arguments);
    std::fs::remove_file(body).expect("written above");
    run.expect(6, &[]);
    assert!(run.number("bytes_written") > 6 * N_BODY as u64);
    for asked in server.asked.lock().expect("no panic").iter() {
        assert_eq!(
            (asked.method.as_str(), asked.headers["x-test"].as_str()),
            ("POST", "yes")
        );
        assert!(asked.body.len() == N_BODY && asked.body.iter().all(|byte| *byte == b'q'));
    }
}

#[test]
fn a_connection_per_request_is_one() {
    let server = Server::start(|asked, stream| {
        assert_eq!(asked.headers["connection"], "close");
        send(stream, LAST_HELLO);
        Then::Close
    });
    let run = server.load("-n 25 -c 4 --no-keepalive");
    run.expect(25, &[]);
    assert_eq!(
        (server.n_connections(), run.number("connections_opened")),
        (25, 25)
    );
    assert_eq!(
        run.number("connections_lost"),
        0,
        "they were to serve one request"
    );
}

#[test]
fn a_connection_is_replaced_after_its_requests() {
    // The first two connections serve side by side, and those that replace them wait for their end: on a busy machine the
    // thread of one connection may stand still while the others serve everything.
    let (both_asked, n_by_first_two) = (Barrier::new(2), AtomicUsize::new(0));
    let server = Server::start(move |asked, stream| {
        if asked.connection < 2 {
            if asked.request == 0 {
                both_asked.wait();
            }
            n_by_first_two.fetch_add(1, Ordering::Relaxed);
        } else {
            while n_by_first_two.load(Ordering::Relaxed) < 15 {
                thread::yield_now();
            }
        }
        send(stream, HELLO)
    });
    let run = server.load("-n 60 -c 2 --requests-per-connection 10");
    run.expect(60, &[]);
    assert_eq!(run.number("connections_lost"), 0, "{}", run.shown());
    let asked = server.asked.lock().expect("no panic");
    let mut by_connection = HashMap::new();
    for one in asked.iter() {
        *by_connection.entry(one.connection).or_insert(0) += 1;
    }
    assert!(
        by_connection.values().all(|count| *count <= 10),
        "{by_connection:?}"
    );
    // The first ones end after 5 and 10 requests, so that not all are replaced at once.
    let mut first: Vec<i32> = (0..2)
        .map(|connection| by_connection[&connection])
        .collect();
    first.sort_unstable();
    assert_eq!(first, [5, 10], "{by_connection:?}");
    let whole = by_connection.values().filter(|count| **count == 10).count();
    assert!(whole >= 4, "{by_connection:?}");
}

#[test]
fn pipelined_requests_end_with_their_connection() {
    let server = Server::constant(HELLO);
    let run = server.load("-n 40 -c 1 -p 4 --requests-per-connection 10");
    run.expect(40, &[]);
    assert_eq!(
        (run.number("connections_opened"), server.n_asked()),
        (4, 40)
    );
}

#[test]
fn every_user_has_one_connection_and_one_request() {
    let server = Server::constant(HELLO);
    let run = server.load("--users 40 --ramp 100ms -t 2");
    run.expect(40, &[]);
    assert_eq!((server.n_connections(), server.n_asked()), (40, 40));
    assert!(
        (0.095..2.0).contains(&run.float("elapsed_s")),
        "{}",
        run.shown()
    );
    assert!(run.float("schedule_lag_us.p50") < run.float("elapsed_s") * 1e6);
}

#[test]
fn a_user_sends_his_loops_on_one_connection() {
    let server = Server::constant(HELLO);
    let run = server.load("--users 7 --loops 5 --ramp 50ms -t 2");
    run.expect(35, &[]);
    assert_eq!((server.n_connections(), server.n_asked()), (7, 35));
    assert_eq!(run.number("connections.answers_min"), 5, "{}", run.shown());
    assert_eq!(run.number("connections.answers_max"), 5);
}

#[test]
fn a_user_whose_connection_is_closed_goes_on_with_another() {
    let server = Server::start(|asked, stream| {
        if asked.connection == 0 && asked.request == 1 {
            return Then::Close;
        }
        let last = asked.request == 2;
        send(stream, if last { LAST_HELLO } else { HELLO });
        if last { Then::Close } else { Then::KeepOpen }
    });
    let run = server.load("--users 1 --loops 8");
    run.expect(7, &[("reset", 1)]);
    // 1 and a failure, then 3, 3.
    assert_eq!((server.n_asked(), server.n_connections()), (8, 3));
}

#[test]
fn connections_are_timed_and_their_share_of_the_work_is_told() {
    // One of four connections is answered once only.
    let server = Server::start(|asked, stream| match (asked.connection, asked.request) {
        (0, 1..) => Then::KeepOpen,
        _ => send(stream, HELLO),
    });
    let run = server.load("-d 300ms -c 4 --timeout 10s");
    assert_eq!(run.number("connect_us.count"), 4, "{}", run.shown());
    assert_eq!(run.number("connects_over_1s"), 0);
    let connections = |key: &str| run.number(&format!("connections.{key}"));
    assert_eq!((connections("asked"), connections("open_max")), (4, 4));
    assert_eq!((connections("idle"), connections("answers_min")), (0, 1));
    assert!(connections("answers_max") > 1 && connections("answers_median") > 1);
    let steps = run.record["intervals"].as_array().expect("a list");
    let n_answers: u64 = steps
        .iter()
        .filter_map(|step| step["completed"].as_u64())
        .sum();
    assert_eq!((steps.len(), n_answers), (3, run.number("completed")));
    assert!(
        steps
            .iter()
            .all(|step| step["p99_us"].as_f64() <= step["max_us"].as_f64())
    );
    assert!(run.float("end_unix_s") > 1.7e9 && run.record["network"].is_object());
}

#[test]
fn why_connections_fail_is_told() {
    let server = Server::constant(HELLO);
    // A server that is reached once, by the look before the run, and then gone.
    let listener = ports::listener();
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    thread::spawn(move || {
        let looked = listener.accept();
        drop(listener); // before the look ends: the connections of the run are refused
        drop(looked);
    });
    let run = Run::new(&["-n", "3", "-c", "1", &url]);
    assert_eq!(run.number("errors.connect"), 3, "{}", run.shown());
    assert_eq!(run.number("connect_failures.refused"), 3);
    assert_eq!(run.number("connections.open_max"), 0);
    assert_eq!(
        server.load("-n 1 -c 1").number("connect_failures.refused"),
        0
    );
}

#[test]
fn a_rate_that_is_not_kept_fails_a_gate() {
    let server = Server::start(|asked, stream| match asked.request {
        0 => send(stream, HELLO),
        _ => Then::KeepOpen,
    });
    let run = server.load("-r 100 -d 200ms -c 1 --timeout 10s --fail-if achieved<99%");
    assert_eq!(run.code(), 3, "{}", run.shown());
    assert!((run.float("asked_per_s") - 100.0).abs() < 1e-9);
    assert!(run.float("sent_per_s") < 50.0);
    assert!(run.record["schedule_lag_histogram"].is_string());
}

#[test]
fn a_lua_script_is_refused_with_what_to_use_instead() {
    let run = Run::new(&["-s", "post.lua", "http://127.0.0.1:1/"]);
    assert_eq!(run.code(), 2);
    assert!(run.complaint().contains("--mix"), "{}", run.complaint());
}

/// Accepts the upgrade, and then hands whole frames, unmasked and as servers send them, to `answer`.
fn serve_messages(
    stream: &mut TcpStream,
    mut answer: impl FnMut(&mut TcpStream, &[u8]) -> Then,
) -> Then {
    let accept = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                  Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    send(stream, accept);
    loop {
        let (mut head, mut mask) = ([0; 2], [0; 4]);
        let read = stream
            .read_exact(&mut head)
            .and_then(|()| stream.read_exact(&mut mask));
        let mut frame = vec![0; usize::from(head[1] & 0x7F)];
        if read.and_then(|()| stream.read_exact(&mut frame)).is_err() {
            return Then::Close;
        }
        frame
            .iter_mut()
            .zip(mask.iter().cycle())
            .for_each(|(byte, key)| *byte ^= key);
        frame.splice(..0, [head[0], head[1] & 0x7F]);
        if answer(stream, &frame) == Then::Close {
            return Then::Close;
        }
    }
}

#[test]
fn web_socket_messages_come_back() {
    let server = Server::start(|asked, stream| {
        assert_eq!((asked.method.as_str(), asked.path.as_str()), ("GET", "/"));
        serve_messages(stream, |stream, frame| send(stream, frame))
    });
    let url = server.url.replace("http:", "ws:");
    let run = Run::new(&[
        "-n",
        "300",
        "-c",
        "3",
        "-p",
        "4",
        "--body",
        "hello",
        "--check-every",
        "1",
        &url,
    ]);
    run.expect(300, &[]);
    assert_eq!(
        (run.number("bodies_compared"), run.number("statuses.101")),
        (300, 300)
    );
    let run = Run::new(&[
        "-n",
        "20",
        "-c",
        "2",
        "--body",
        "hello",
        "--expect-body",
        "HELLO",
        &url,
    ]);
    assert!(run.number("errors.content") > 0, "{}", run.shown());
    let run = Run::new(&["--users", "5", "--loops", "4", &url]);
    run.expect(20, &[]);
}

#[test]
fn a_web_socket_that_is_refused_is_a_status() {
    let server = Server::start(|_, stream| {
        send(
            stream,
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
        );
        Then::Close
    });
    let url = server.url.replace("http:", "ws:");
    Run::new(&["-n", "4", "-c", "1", &url]).expect(0, &[("status", 4)]);
}

#[test]
fn every_copy_of_a_broadcast_is_counted() {
    let streams = Arc::new(Mutex::new(Vec::<TcpStream>::new()));
    let server = Server::start(move |_, stream| {
        let own = stream.try_clone().expect("a descriptor");
        let streams = Arc::clone(&streams);
        // A connection that was accepted receives everything from then on.
        let mut is_known = false;
        serve_messages(stream, |_, frame| {
            let mut streams = streams.lock().expect("no panic");
            if !is_known {
                streams.push(own.try_clone().expect("a descriptor"));
                is_known = true;
            }
            for stream in streams.iter_mut() {
                send(stream, frame);
            }
            Then::KeepOpen
        })
    });
    let url = server.url.replace("http:", "ws:");
    // Both send, so both are known from their first message on.
    let run = Run::new(&[
        "--broadcast",
        "--senders",
        "2",
        "-c",
        "2",
        "-d",
        "300ms",
        &url,
    ]);
    let (sent, completed) = (run.number("sent"), run.number("completed"));
    assert!(sent > 10, "{}", run.shown());
    assert!(
        (sent * 19 / 10..=sent * 2).contains(&completed),
        "{sent} became {completed}"
    );
    assert_eq!(run.number("connections.idle"), 0);
    let run = Run::new(&["--broadcast", "--senders", "3", "-c", "2", &url]);
    assert_eq!(run.code(), 2);
    assert!(run.complaint().contains("3 senders"), "{}", run.complaint());
}

#[test]
fn a_constant_rate_is_kept() {
    let server = Server::constant(HELLO);
    let run = server.load("-r 500 -n 100 -c 4");
    run.expect(100, &[]);
    // The last of 100 requests is due after 99 steps of 2 ms.
    assert!(run.float("elapsed_s") >= 0.198, "{}", run.shown());
    assert_eq!(run.number("unsent"), 0);
    assert!(run.float("schedule_lag_us.max") >= 0.0);
}

#[test]
fn a_stall_shows_in_the_latency_of_all_that_were_due_in_it() {
    let server = Server::start(|asked, stream| {
        if asked.request == 20 {
            #[expect(
                clippy::disallowed_methods,
                reason = "a stall is the subject of this test"
            )]
            thread::sleep(std::time::Duration::from_millis(300));
        }
        send(stream, HELLO)
    });
    let run = server.load("-r 400 -n 120 -c 1");
    run.expect(120, &[]);
    // Due 2.5 ms apart, the other 99 wait 297, 295… 50 ms: half of all requests more than 100 ms.
    // Only the one stalled has a long service time.
    assert!(run.float("latency_us.p50") > 80_000.0, "{}", run.shown());
    assert!(run.float("service_us.p50") < 80_000.0, "{}", run.shown());
    assert!(run.float("service_us.max") >= 299_000.0);
    // The lag is the generator's, and a wait for the only connection is not.
    assert!(run.float("schedule_lag_us.p50") < 80_000.0);
}

#[test]
fn what_an_overloaded_server_cannot_take_is_reported_unsent() {
    let server = Server::start(|asked, stream| match asked.request {
        0 => send(stream, HELLO),
        _ => Then::KeepOpen,
    });
    let run = server.load("-r 100 -d 300ms -c 1 --timeout 10s");
    run.expect(1, &[]);
    assert_eq!(run.number("unanswered"), 1);
    assert_eq!(
        run.number("unsent"),
        28,
        "30 were due, one answered, one waits"
    );
}

#[test]
fn a_poisson_rate_without_keepalive_opens_what_is_due() {
    let server = Server::start(|_, stream| {
        send(stream, LAST_HELLO);
        Then::Close
    });
    let run = server.load("-r 1000 --poisson -n 50 -c 8 --no-keepalive");
    run.expect(50, &[]);
    assert_eq!(server.n_connections(), 50);
}

#[test]
fn a_mix_is_drawn_by_weight_and_judged_by_entry() {
    let mix = std::env::temp_dir().join(format!("citius-load-mix-{}.json", std::process::id()));
    let json = r#"[{"weight": 3, "path": "/a", "expect_body": "a"},
                   {"method": "PUT", "path": "/b", "body": "x", "headers": {"Y": "z"},
                    "expect_status": 201, "expect_body": "bb"}]"#;
    std::fs::write(&mix, json).expect("a temporary file");
    let server = Server::start(|asked, stream| match asked.path.as_str() {
        "/a" => send(stream, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"),
        _ => send(stream, "HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nbb"),
    });
    let arguments = format!("-n 400 -c 4 -p 2 --check-every 1 --mix {}", mix.display());
    let run = server.load(&arguments);
    std::fs::remove_file(mix).expect("written above");
    run.expect(400, &[]);
    assert!(
        (60..140).contains(&run.number("statuses.201")),
        "{}",
        run.shown()
    );
    let asked = server.asked.lock().expect("no panic");
    let put = asked
        .iter()
        .find(|asked| asked.path == "/b")
        .expect("a hundred of them");
    assert_eq!(
        (
            put.method.as_str(),
            put.body.as_slice(),
            put.headers["y"].as_str()
        ),
        ("PUT", &b"x"[..], "z")
    );
}

#[test]
fn the_warm_up_is_asked_but_not_counted() {
    let server = Server::constant(HELLO);
    let run = server.load("-n 40 -c 2 --warmup 100ms");
    run.expect(40, &[]);
    assert!(server.n_asked() > 40);
    assert_eq!(run.number("sent"), 40);
}

#[test]
fn a_condition_that_holds_fails_the_run() {
    let server = Server::constant(HELLO);
    let run = server.load("-n 10 -c 1 --fail-if errors>0 --fail-if p50<1h");
    assert_eq!(run.code(), 3);
    assert!(
        run.complaint().contains("failed: p50<1h"),
        "{}",
        run.complaint()
    );
    assert!(!run.complaint().contains("errors"));
    assert_eq!(server.load("-n 10 -c 1 --fail-if errors>0").code(), 0);
}

fn parse_events(stderr: &str) -> Vec<Value> {
    stderr
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect()
}

#[test]
fn events_bound_the_window_exactly() {
    let server = Server::constant(HELLO);
    let run = server.load("-d 1100ms -c 2 --warmup 20ms --events");
    let events = parse_events(&run.complaint());
    let names: Vec<_> = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    assert_eq!(names, ["begin", "progress", "end"]);
    let at_ns = |index: usize| events[index]["monotonic_ns"].as_u64().expect("an instant");
    assert_eq!(at_ns(2) - at_ns(0), 1_100_000_000);
    assert_eq!(
        (at_ns(0), at_ns(2)),
        (run.number("begin_ns"), run.number("end_ns"))
    );
    for key in [
        "elapsed_s",
        "remaining_s",
        "requests",
        "requests_per_s",
        "errors",
    ] {
        assert!(events[1][key].is_number(), "{key}");
    }
    assert_eq!(
        run.record["intervals"].as_array().expect("a list").len(),
        11
    );
}

#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let server = Server::constant(HELLO);
    let mut child: Child = program(
        &["-d", "60", "-c", "2", "--events", &server.url],
        &["--json", "-"],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("the program runs");
    let mut events = BufReader::new(child.stderr.take().expect("piped")).lines();
    // The second line is a progress report: what it counts must be in the record.
    let progress = events.nth(1).expect("two events").expect("UTF-8");
    let progress: Value = serde_json::from_str(&progress).expect("JSON");
    assert_eq!(progress["event"], "progress");
    let reported = progress["requests"].as_u64().expect("a count");
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("a child");
    let output = child.wait_with_output().expect("it ends");
    let record: Value = serde_json::from_slice(&output.stdout).expect("a record");
    assert_eq!(
        (output.status.code(), &record["interrupted"]),
        (Some(130), &Value::Bool(true))
    );
    assert!(record["completed"].as_u64().expect("a count") >= reported.max(1));
    // The end is when a thread last looked at the clock, which may be before the report.
    let elapsed_s = record["elapsed_s"].as_f64().expect("a time");
    assert!((0.0..30.0).contains(&elapsed_s), "{elapsed_s}");
    let last: Value =
        serde_json::from_str(&events.last().expect("an end").expect("UTF-8")).expect("JSON");
    assert_eq!(last["event"], "end");
}

#[test]
fn without_json_there_is_a_table() {
    let server = Server::constant(HELLO);
    let run = |more: &[&str]| {
        let output = program(&["-n", "10", "-c", "1", &server.url], more)
            .output()
            .expect("it runs");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let table = run(&[]);
    for part in ["10 in ", "requests/s", "errors  none", "p99.9", "1 opened"] {
        assert!(table.contains(part), "{part} in {table}");
    }
    assert_eq!(run(&["--quiet"]), "");
    let path = std::env::temp_dir().join(format!("citius-load-record-{}.json", std::process::id()));
    assert!(run(&["--json", path.to_str().expect("ASCII")]).contains("requests/s"));
    let record = std::fs::read(&path).expect("written");
    std::fs::remove_file(path).expect("written");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    assert_eq!(record["completed"], 10);
}

//! The command line: what can be asked for, what contradicts what, and the plan that follows.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Parser};

use crate::clock::SECOND_NS;
use crate::fail_if::Condition;
use crate::histogram::HIGHEST_NS;
use crate::pace::Pace;
use crate::plan::{Plan, Protocol, Transport};
use crate::request::{
    Entry, Expectation, Kind, Mix, Request, Url, check_header, check_method, read_file,
};
use crate::stop::Stop;
use crate::tls::Security;
use crate::wire::websocket::STAMP_BYTES;
use crate::wire::webtransport::SERIAL_BYTES;

/// HTTP load generator of the Citius lab: closed loop, constant or Poisson rate, ramped users.
///
/// Only valid answers count: the expected status, the expected length, and on a sample the
/// expected bytes. Exit codes: 0 done, 1 nothing reachable or no valid answer, 2 bad arguments,
/// 3 a --fail-if condition held, 130 interrupted.
#[derive(Clone, Debug, Parser)]
#[command(version, max_term_width = 100)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
#[expect(clippy::doc_markdown, reason = "these comments are the text of --help")]
pub(crate) struct Options {
    /// What to ask: http[s]://host[:port]/path, ws[s]://… for WebSocket messages that come back, or rpc://…/procedure
    /// for MessagePack-RPC, quic://…/procedure for its calls on streams of QUIC, wt://… for messages of WebTransport
    /// that come back
    pub(crate) url: String,

    /// Connections kept busy, over all threads
    #[arg(short, long, value_name = "N", default_value_t = 64)]
    pub(crate) connections: usize,
    /// Threads, each with its own epoll set and its share of connections
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,
    /// How long to count: 10, 10s, 500ms or 2m [default: 10s unless -n or --users says otherwise]
    #[arg(short, long, value_name = "TIME", value_parser = parse_span)]
    pub(crate) duration: Option<Span>,
    /// How many requests to count; with -d, whichever comes first
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "users")]
    pub(crate) requests: Option<u64>,
    /// Requests under way at once on each connection
    #[arg(short, long, value_name = "DEPTH", default_value_t = 1)]
    pub(crate) pipeline: u16,
    /// HTTP/2: chosen by ALPN over TLS, by prior knowledge in clear text
    #[arg(long, conflicts_with = "pipeline")]
    pub(crate) http2: bool,
    /// HTTP/3, on QUIC at the port of an https URL; in the closed loop
    #[arg(long, conflicts_with_all = ["pipeline", "http2", "rate", "users", "no_keepalive", "requests_per_connection", "broadcast"])]
    pub(crate) http3: bool,
    /// WebTransport: messages are datagrams instead of streams; one that does not come back within a second is an error
    #[arg(long)]
    pub(crate) datagrams: bool,
    /// Streams under way at once on each connection of HTTP/2 or HTTP/3, if the server allows so many
    #[arg(long, short_alias = 'S', value_name = "N", conflicts_with_all = ["pipeline", "users", "no_keepalive"])]
    pub(crate) streams: Option<u16>,
    /// WebSocket: the server sends every message to all connections, and each copy counts
    #[arg(long, conflicts_with_all = ["http2", "users", "mix"])]
    pub(crate) broadcast: bool,
    /// Connections that send the messages of a broadcast; the others listen
    #[arg(long, value_name = "N", requires = "broadcast", default_value_t = 1)]
    pub(crate) senders: usize,
    /// Refuse servers whose certificate is not signed by one of this PEM file, instead of none
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// A full TLS handshake for every connection
    #[arg(long)]
    pub(crate) no_resumption: bool,
    /// Constant rate over all threads, requests per second; latency is from the due instant
    #[arg(short, short_alias = 'R', long, value_name = "REQ/S", value_parser = parse_rate)]
    pub(crate) rate: Option<f64>,
    /// Exponentially distributed gaps instead of equal ones, at the same mean rate
    #[arg(long, requires = "rate")]
    pub(crate) poisson: bool,
    /// So many users instead of a fixed set of connections, each with a connection of its own
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "connections", "pipeline"])]
    pub(crate) users: Option<u64>,
    /// The time over which the users arrive evenly
    #[arg(long, value_name = "TIME", requires = "users", value_parser = parse_span)]
    pub(crate) ramp: Option<Span>,
    /// Requests of each user, one after the other [default: 1]
    #[arg(long, value_name = "N", requires = "users")]
    pub(crate) loops: Option<u64>,

    /// Method
    #[arg(short, long, default_value = "GET")]
    pub(crate) method: String,
    /// A header, "Name: value"; repeatable
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// Body of every request
    #[arg(short, long, value_name = "TEXT", conflicts_with = "body_file")]
    pub(crate) body: Option<String>,
    /// The same, from a file
    #[arg(long, value_name = "FILE")]
    pub(crate) body_file: Option<PathBuf>,
    /// Several requests drawn by weight: a JSON list of objects with weight, method, path,
    /// headers, body or body_file, expect_status, expect_length, expect_body or expect_body_file
    #[arg(long, value_name = "FILE")]
    pub(crate) mix: Option<PathBuf>,
    /// A connection per request, as ab does without -k
    #[arg(long, conflicts_with = "pipeline")]
    pub(crate) no_keepalive: bool,
    /// Another connection takes the place of each that has served N requests; in the closed loop
    #[arg(long, value_name = "N", conflicts_with_all = ["no_keepalive", "users", "rate", "broadcast"])]
    pub(crate) requests_per_connection: Option<u64>,
    /// Connections that serve many requests; this is the default, unlike ab's
    #[arg(short, long, conflicts_with = "no_keepalive")]
    pub(crate) keepalive: bool,
    /// How long a connection may take to open, and an answer to come
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_span)]
    pub(crate) timeout: Span,
    /// Send requests this long before counting
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_span)]
    pub(crate) warmup: Span,
    /// Send the first request at this instant of CLOCK_MONOTONIC, in nanoseconds: generators that start together
    #[arg(long, value_name = "NS")]
    pub(crate) start_at: Option<u64>,
    /// Seed of Poisson arrivals and of the mix
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// The status of a valid answer
    #[arg(long, value_name = "STATUS", default_value_t = 200,
          value_parser = clap::value_parser!(u16).range(200..=999))]
    pub(crate) expect_status: u16,
    /// The body of a valid answer; its length is checked always, its bytes on a sample
    #[arg(long, value_name = "TEXT", conflicts_with = "expect_body_file")]
    pub(crate) expect_body: Option<String>,
    /// The same, from a file
    #[arg(long, value_name = "FILE")]
    pub(crate) expect_body_file: Option<PathBuf>,
    /// The body length of a valid answer
    #[arg(long, value_name = "BYTES")]
    pub(crate) expect_length: Option<u64>,
    /// Compare every K-th body, besides the first and last of every connection
    #[arg(long, value_name = "K", default_value_t = 64)]
    pub(crate) check_every: u64,

    /// Pin thread i to the i-th CPU of this list, round robin: 1 or 1,3 or 4-7
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    pub(crate) cpus: Option<Cpus>,
    /// Write the record as JSON to a file, or to standard output (-) in place of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// JSON lines on standard error: begin, progress every second, end
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) events: bool,
    /// No progress, no table
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Not supported: wrk's Lua scripts. -m, -H, -b, --mix and --expect-* do what most of them do
    #[arg(short, long, value_name = "FILE", value_parser = refuse_script, hide = true)]
    pub(crate) script: Option<String>,
    /// Accepted for wrk's sake; percentiles are always shown
    #[arg(long, hide = true)]
    pub(crate) latency: bool,
    /// Exit with 3 if this holds, as in 'p99>20ms', 'errors>0.1%', 'rps<1000'; repeatable
    #[arg(long, value_name = "EXPR", value_parser = Condition::parse, action = ArgAction::Append)]
    pub(crate) fail_if: Vec<Condition>,
}

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span(pub(crate) u64);

/// CPU numbers, in the order given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cpus(pub(crate) Vec<usize>);

impl Options {
    /// The plan without its address.
    /// # Errors  Two options contradict each other, or a value cannot be; the message says which.
    pub(crate) fn plan(&self, url: &Url, address: SocketAddr) -> Result<Plan, String> {
        self.check_numbers()?;
        let protocol = self.protocol(url)?;
        let pace = self.pace();
        let is_users = matches!(pace, Pace::Users { .. });
        let n_users = self
            .users
            .map(|users| usize::try_from(users).unwrap_or(usize::MAX));
        let transport = Transport {
            connections: n_users.unwrap_or(self.connections),
            pipeline: self.streams.unwrap_or(self.pipeline),
            keep_alive: !self.no_keepalive && (!is_users || self.n_loops() > 1),
            requests_per_connection: self.requests_per_connection,
        };
        if self.threads > transport.connections {
            return Err(format!(
                "every thread needs a connection: there are {} threads and {} {}",
                self.threads,
                transport.connections,
                if is_users { "users" } else { "connections" }
            ));
        }
        let n_of_users = self.users.map(|users| users.saturating_mul(self.n_loops()));
        let requests = self.requests.or(n_of_users);
        let default_span = requests.is_none().then_some(Span(10 * SECOND_NS));
        let stop = Stop {
            after_ns: self.duration.or(default_span).map(|Span(span_ns)| span_ns),
            requests,
        };
        Ok(Plan {
            address,
            security: self.security(url, protocol)?,
            protocol,
            senders: self.broadcast.then_some(self.senders),
            pace,
            transport,
            stop,
            mix: self.read_mix(url)?,
            check_every: self.check_every,
            timeout_ns: self.timeout.0,
            warmup_ns: self.warmup.0,
            start_ns: self.start_at,
            threads: self.threads,
            cpus: self.cpus.clone().map(|Cpus(cpus)| cpus).unwrap_or_default(),
            seed: self.seed,
        })
    }

    fn security(&self, url: &Url, protocol: Protocol) -> Result<Option<Security>, String> {
        if !url.is_secure {
            return match (&self.ca, self.no_resumption) {
                (None, false) => Ok(None),
                _ => Err("--ca and --no-resumption need an https or wss URL".into()),
            };
        }
        let name = match protocol {
            Protocol::Http1 | Protocol::WebSocket | Protocol::Rpc => "http/1.1",
            Protocol::Http2 => "h2",
            Protocol::Http3 | Protocol::Streams | Protocol::Datagrams => "h3",
            Protocol::RpcQuic => "citius-rpc",
        };
        Security::new(&url.host, name, self.ca.as_deref(), !self.no_resumption).map(Some)
    }

    fn protocol(&self, url: &Url) -> Result<Protocol, String> {
        let is_websocket = match url.kind {
            Kind::Rpc => return self.check_rpc(url),
            Kind::WebTransport => return self.check_webtransport(),
            Kind::WebSocket => true,
            Kind::Http => false,
        };
        if self.datagrams {
            return Err("--datagrams needs a wt URL".into());
        }
        if self.streams.is_some() && !self.http2 && !self.http3 {
            return Err("--streams needs --http2 or --http3".into());
        }
        if self.http3 {
            return match (url.is_secure, is_websocket) {
                (true, false) => Ok(Protocol::Http3),
                _ => Err("--http3 needs an https URL".into()),
            };
        }
        match (is_websocket, self.http2) {
            (true, true) => Err("WebSocket over HTTP/2 is not spoken; leave --http2 out".into()),
            (true, false) if self.mix.is_some() => {
                Err("a mix is of HTTP requests; a ws URL takes its message from --body".into())
            }
            (true, false) if self.broadcast && self.senders > self.connections => Err(format!(
                "there are {} senders and {} connections",
                self.senders, self.connections
            )),
            (true, false) => Ok(Protocol::WebSocket),
            (false, _) if self.broadcast => Err("--broadcast needs a ws or wss URL".into()),
            (false, true) => Ok(Protocol::Http2),
            (false, false) => Ok(Protocol::Http1),
        }
    }

    fn check_rpc(&self, url: &Url) -> Result<Protocol, String> {
        let name = url.target.trim_start_matches('/');
        if name.is_empty() || name.len() > 255 {
            return Err(
                "an rpc URL ends in the name of a procedure, such as rpc://host:port/hello".into(),
            );
        }
        if self.http2 || self.http3 || self.broadcast || self.mix.is_some() {
            return Err(
                "--http2, --http3, --broadcast and --mix mean nothing to an rpc URL".into(),
            );
        }
        if self.datagrams {
            return Err("--datagrams needs a wt URL".into());
        }
        if !url.is_quic() {
            return Ok(Protocol::Rpc);
        }
        self.check_quic("quic")?;
        Ok(Protocol::RpcQuic)
    }

    fn check_webtransport(&self) -> Result<Protocol, String> {
        if self.http2 || self.http3 || self.broadcast || self.mix.is_some() {
            return Err("--http2, --http3, --broadcast and --mix mean nothing to a wt URL".into());
        }
        if self.streams.is_some() {
            return Err("messages under way at once are --pipeline, not --streams".into());
        }
        self.check_quic("wt")?;
        Ok(if self.datagrams {
            Protocol::Datagrams
        } else {
            Protocol::Streams
        })
    }

    fn check_quic(&self, scheme: &str) -> Result<(), String> {
        let is_closed = self.rate.is_none() && self.users.is_none();
        if is_closed && !self.no_keepalive && self.requests_per_connection.is_none() {
            return Ok(());
        }
        Err(format!(
            "a {scheme} URL is asked in the closed loop, on connections that live on"
        ))
    }

    fn check_numbers(&self) -> Result<(), String> {
        let least_one = [
            ("--connections", self.connections as u64),
            ("--senders", self.senders as u64),
            ("--threads", self.threads as u64),
            ("--pipeline", u64::from(self.pipeline)),
            ("--streams", self.streams.map_or(1, u64::from)),
            ("--check-every", self.check_every),
            ("--requests", self.requests.unwrap_or(1)),
            ("--users", self.users.unwrap_or(1)),
            (
                "--requests-per-connection",
                self.requests_per_connection.unwrap_or(1),
            ),
            ("--loops", self.n_loops()),
            ("--timeout", self.timeout.0),
            ("--duration", self.duration.map_or(1, |span| span.0)),
        ];
        if let Some((name, _)) = least_one.iter().find(|(_, value)| *value == 0) {
            return Err(format!("{name} must be more than 0"));
        }
        if self.timeout.0 > HIGHEST_NS {
            return Err("--timeout may be an hour at most".into());
        }
        if self.users.is_some() && self.warmup.0 > 0 {
            return Err("--warmup would take users from the ramp; leave one of the two out".into());
        }
        Ok(())
    }

    fn n_loops(&self) -> u64 {
        self.loops.unwrap_or(1)
    }

    fn pace(&self) -> Pace {
        match (self.users, self.rate) {
            (Some(users), _) => Pace::Users {
                users,
                ramp_ns: self.ramp.map_or(0, |Span(ramp_ns)| ramp_ns),
                loops: self.n_loops(),
            },
            (None, Some(per_s)) if self.poisson => Pace::Poisson { per_s },
            (None, Some(per_s)) => Pace::Constant { per_s },
            (None, None) => Pace::Closed,
        }
    }

    fn read_mix(&self, url: &Url) -> Result<Mix, String> {
        let headers = self.headers.iter().map(|line| match line.split_once(':') {
            Some((name, value)) => check_header(name, value),
            None => Err(format!("a header is \"Name: value\", got {line:?}")),
        });
        let base = Entry {
            request: Request {
                method: check_method(self.method.clone())?,
                target: url.target.clone(),
                authority: url.authority.clone(),
                headers: headers.collect::<Result<_, _>>()?,
                body: text_or_file(self.body.as_ref(), self.body_file.as_deref())?
                    .unwrap_or_default(),
                is_chunked: false,
            },
            expectation: Expectation::new(
                self.expect_status,
                self.expect_length,
                text_or_file(self.expect_body.as_ref(), self.expect_body_file.as_deref())?,
            )?,
            weight: 1,
            is_background: false,
        };
        let base = match url.kind {
            Kind::WebSocket => self.message(base, 101)?,
            Kind::WebTransport => self.message(base, 200)?,
            Kind::Http | Kind::Rpc => base,
        };
        let Some(path) = &self.mix else {
            return Mix::new(vec![base]);
        };
        let json = String::from_utf8(read_file(path)?)
            .map_err(|_| format!("{} is not UTF-8", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Mix::read(&json, folder, &base).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// A message in place of a request: it comes back, unless something else is expected.
    fn message(&self, mut entry: Entry, status: u16) -> Result<Entry, String> {
        let body = &mut entry.request.body;
        if body.is_empty() {
            body.resize(MESSAGE_BYTES, b'x');
        }
        if self.broadcast && body.len() < STAMP_BYTES {
            return Err(format!(
                "a message of a broadcast holds the {STAMP_BYTES} digits it is timed by; --body has {} bytes",
                body.len()
            ));
        }
        if self.datagrams && body.len() < SERIAL_BYTES {
            return Err(format!(
                "a datagram holds the {SERIAL_BYTES} bytes it is told by; --body has {} bytes",
                body.len()
            ));
        }
        let expectation = &mut entry.expectation;
        expectation.status = status;
        if expectation.length.is_none() {
            expectation.length = Some(body.len() as u64);
            expectation.body = Some(body.clone());
        }
        Ok(entry)
    }
}

fn text_or_file(text: Option<&String>, file: Option<&Path>) -> Result<Option<Vec<u8>>, String> {
    match (text, file) {
        (Some(text), _) => Ok(Some(text.clone().into_bytes())),
        (None, Some(file)) => read_file(file).map(Some),
        (None, None) => Ok(None),
    }
}

/// The first address of the host that accepts a connection, which is closed at once; of HTTP/3, the first address.
/// # Errors  A sentence that says what was tried.
pub(crate) fn find_address(url: &Url, timeout: Span, is_quic: bool) -> Result<SocketAddr, String> {
    let what = || format!("nothing reachable at {}:{}", url.host, url.port);
    let addresses = (url.host.as_str(), url.port)
        .to_socket_addrs()
        .map_err(|error| format!("{}: the name does not resolve: {error}", what()))?;
    let mut refusals = Vec::new();
    for address in addresses {
        if is_quic {
            return Ok(address);
        }
        match std::net::TcpStream::connect_timeout(&address, Duration::from_nanos(timeout.0)) {
            Ok(_) => return Ok(address),
            Err(error) => refusals.push(format!("{address}: {error}")),
        }
    }
    Err(format!("{}: {}", what(), refusals.join("; ")))
}

/// A number with a unit, seconds if it has none.
pub(crate) fn parse_span(text: &str) -> Result<Span, String> {
    let n_number = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(n_number);
    let unit_ns = match unit.trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "" | "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3_600e9,
        _ => return Err("expected a time such as 10, 10s, 500ms or 2m".into()),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "expected a time such as 10, 10s, 500ms or 2m".to_owned())?;
    let span = Duration::try_from_secs_f64(number * unit_ns / 1e9).map_err(|e| e.to_string())?;
    u64::try_from(span.as_nanos())
        .map(Span)
        .map_err(|_| "a time of centuries".into())
}

fn refuse_script(_: &str) -> Result<String, String> {
    Err(
        "Lua scripts are not run, they would make the generator the slower side; say the request \
         with -m, -H and -b, several requests with --mix, pipelining with -p, and what a valid \
         answer is with --expect-status, --expect-body or --expect-length"
            .into(),
    )
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (1e-3..=1e9).contains(&rate) => Ok(rate),
        _ => Err("expected requests per second, from 0.001 to 1000000000".into()),
    }
}

/// `1`, `1,3`, `4-7` and mixtures.
fn parse_cpus(text: &str) -> Result<Cpus, String> {
    let fault = || "expected CPU numbers such as 1 or 1,3 or 4-7".to_owned();
    let number = |text: &str| {
        let cpu: usize = text.trim().parse().map_err(|_| fault())?;
        (cpu < rustix::thread::CpuSet::MAX_CPU)
            .then_some(cpu)
            .ok_or_else(fault)
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            Some((first, last)) => cpus.extend(number(first)?..=number(last)?),
            None => cpus.push(number(part)?),
        }
    }
    if cpus.is_empty() {
        Err(fault())
    } else {
        Ok(Cpus(cpus))
    }
}

/// The size of a message of WebSocket or WebTransport without given content.
const MESSAGE_BYTES: usize = 32;

#[cfg(test)]
mod tests;

//! Files in responses, over real sockets: order, lengths, slow readers, files that change, and the limit.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use citius_http::{Action, Fault, Fields, FileRange, Head, Limits, Payload, ResponseHead, Status};
use citius_reactor::{
    ConnectionId, File, Files, ListenerProtocol, Peer, Reactor, Reply, ResponseAction, Service,
    StreamCommand, StreamId,
};
use rustix::io::Errno;
use support::options;

mod support;

/// Answers every path with the file, `/late` when told to, `/plain` with a word.
struct Serves {
    file: Arc<File>,
    range: (u64, u64),
    late: Vec<StreamId>,
    failed: Vec<String>,
}

impl Service for Serves {
    fn request(&mut self, head: Box<Head>, _ended: bool, reply: &mut Reply<'_>) {
        let body = match head.path() {
            b"/late" => return self.late.push(reply.id()),
            b"/plain" => Payload::Copied(b"word"),
            _ => Payload::File(FileRange::new(
                Arc::clone(&self.file),
                self.range.0,
                self.range.1,
            )),
        };
        reply
            .send(Action::Respond(ANSWER, body))
            .expect("a valid response");
    }
    fn data(&mut self, _bytes: &[u8], _reply: &mut Reply<'_>) {}
    fn end(&mut self, _trailers: Fields, _reply: &mut Reply<'_>) {}
    fn broken(&mut self, _id: StreamId, _fault: Fault) {}
    fn writable(&mut self, _reply: &mut Reply<'_>) {}
    fn disconnected(&mut self, _connection: ConnectionId) {}
    fn refused(&mut self, _id: StreamId, fault: Fault) {
        panic!("{}", fault.text());
    }
    fn file_failed(&mut self, _connection: ConnectionId, message: &str) {
        self.failed.push(message.to_owned());
    }
    fn panicked(&mut self, _connection: ConnectionId) {
        panic!("a handler panicked");
    }
}

/// Each waits a millisecond if there is nothing to do.
const TURNS_MAX: usize = 20_000;

const ANSWER: ResponseHead<'_> = ResponseHead {
    status: Status::OK,
    content_type: None,
    fields: &Fields::EMPTY,
};

/// A reactor that listens on a Unix socket, in a directory of its own.
struct Rig {
    reactor: Reactor,
    service: Serves,
    directory: PathBuf,
}

impl Rig {
    fn new(name: &str, content: &[u8]) -> Self {
        Self::with_limits(name, content, Limits::default())
    }

    fn with_limits(name: &str, content: &[u8], limits: Limits) -> Self {
        let directory =
            std::env::temp_dir().join(format!("citius-files-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).expect("a writable place");
        fs::write(directory.join("file"), content).expect("room on the disk");
        let mut reactor = Reactor::new(options(limits)).expect("an epoll set");
        let listener = UnixListener::bind(directory.join("socket")).expect("a fresh name");
        listener.set_nonblocking(true).expect("a socket");
        reactor
            .listen(OwnedFd::from(listener).into(), ListenerProtocol::Http)
            .expect("it listens");
        let file = reactor
            .files()
            .open(&directory.join("file"))
            .expect("it was written");
        let range = (0, file.len());
        let service = Serves {
            file,
            range,
            late: Vec::new(),
            failed: Vec::new(),
        };
        Self {
            reactor,
            service,
            directory,
        }
    }

    fn connect(&self) -> UnixStream {
        let peer = UnixStream::connect(self.directory.join("socket")).expect("a listener");
        peer.set_nonblocking(true).expect("a socket");
        peer
    }

    fn turn(&mut self) {
        let soon = Duration::from_millis(1);
        self.reactor.poll(Some(soon)).expect("no signals here");
        self.reactor.turn(&mut self.service);
    }

    /// Takes turns and reads until `count` bytes are there or the connection ends.
    fn read(&mut self, peer: &mut UnixStream, count: usize) -> Vec<u8> {
        let (mut all, mut turns) = (Vec::new(), 0);
        let mut buffer = vec![0; 64 * 1024];
        while all.len() < count {
            self.turn();
            turns += 1;
            assert!(turns < TURNS_MAX, "stuck");
            while all.len() < count {
                let most = buffer.len().min(count - all.len());
                match peer.read(&mut buffer[..most]) {
                    Ok(0) => return all,
                    Ok(n) => all.extend_from_slice(&buffer[..n]),
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(_) => return all,
                }
            }
        }
        all
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // What is left over is a few files in the system's own temporary place.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn requests(paths: &[&str]) -> Vec<u8> {
    paths
        .iter()
        .flat_map(|p| format!("GET {p} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes())
        .collect()
}

fn head(length: usize) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes()
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| u8::try_from((at * 7 + at / 251) % 256).expect("a remainder"))
        .collect()
}

#[test]
fn files_and_words_leave_in_the_order_of_their_requests() {
    let content = pattern(700_001);
    let mut rig = Rig::new("order", &content);
    rig.service.range = (3, 600_000);
    let mut peer = rig.connect();
    peer.write_all(&requests(&["/plain", "/file", "/plain", "/file", "/plain"]))
        .expect("it fits the buffer");
    let (word, file) = (
        [&head(4)[..], b"word"].concat(),
        [&head(600_000)[..], &content[3..600_003]].concat(),
    );
    let expected = [&word[..], &file, &word, &file, &word].concat();
    assert!(rig.read(&mut peer, expected.len()) == expected);
    assert!(rig.service.failed.is_empty());
}

#[test]
fn a_parked_file_waits_for_the_answer_before_it() {
    let content = pattern(100_000);
    let mut rig = Rig::new("parked", &content);
    let mut peer = rig.connect();
    peer.write_all(&requests(&["/late", "/file", "/file"]))
        .expect("it fits the buffer");
    for _ in 0..3 {
        rig.turn();
    }
    // One parked file is more than may wait, so the third request is not taken yet.
    assert_eq!(rig.reactor.requests_total(), 2);
    let body = rig.service.file.payload(10, 50_000).expect("it is there");
    let command = StreamCommand::Act(ResponseAction::Respond {
        status: Status::OK,
        content_type: None,
        fields: Fields::EMPTY,
        body,
    });
    if rig.reactor.mailbox().post(rig.service.late[0], command) {
        rig.reactor.mailbox().wake();
    }
    let file = [&head(100_000)[..], &content].concat();
    let expected = [&head(50_000)[..], &content[10..50_010], &file, &file].concat();
    assert!(rig.read(&mut peer, expected.len()) == expected);
}

#[test]
fn a_huge_file_to_a_fast_reader_lets_others_through() {
    const HUGE: u64 = 1 << 32;
    let mut rig = Rig::new("huge", b"");
    let path = rig.directory.join("file");
    // Sparse: it takes no room on the disk.
    fs::File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_len(HUGE))
        .expect("a sparse file");
    rig.service.range = (0, HUGE);
    let (mut greedy, mut modest) = (rig.connect(), rig.connect());
    greedy.write_all(&requests(&["/file"])).expect("room");
    rig.read(&mut greedy, 1 << 20);
    modest.write_all(&requests(&["/plain"])).expect("room");
    let mut drained = vec![0; 1 << 20];
    let mut response = vec![0; head(4).len() + 4];
    for turns in 0.. {
        assert!(turns < 20, "the modest one is starved");
        while greedy.read(&mut drained).is_ok_and(|n| n > 0) {}
        rig.turn();
        if modest.read_exact(&mut response).is_ok() {
            break;
        }
    }
    assert!(response.ends_with(b"word"));
}

#[test]
fn a_reader_that_takes_nothing_is_reset_after_the_stall() {
    let limits = Limits {
        write_stall_ms: 50,
        ..Limits::default()
    };
    let mut rig = Rig::with_limits("stall", &pattern(4 << 20), limits);
    let mut peer = rig.connect();
    peer.write_all(&requests(&["/file"])).expect("room");
    let mut turns = 0;
    while rig.reactor.connections() > 0 || rig.reactor.requests_total() == 0 {
        rig.turn();
        turns += 1;
        assert!(turns < TURNS_MAX, "never cut");
    }
    assert!(rig.service.failed.is_empty(), "it is not the file's fault");
}

#[test]
fn a_file_that_shrinks_cuts_the_connection_and_is_named() {
    let mut rig = Rig::new("shrinks", &pattern(4 << 20));
    let path = rig.directory.join("file");
    let mut peer = rig.connect();
    peer.write_all(&requests(&["/file", "/plain"]))
        .expect("room");
    rig.turn();
    fs::File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_len(1000))
        .expect("it is ours");
    let all = rig.read(&mut peer, usize::MAX);
    assert!(all.len() < 4 << 20, "no padding");
    assert_eq!(rig.reactor.connections(), 0);
    let [message] = rig.service.failed.as_slice() else {
        panic!("one notice, not {:?}", rig.service.failed);
    };
    assert!(message.contains("/file has become shorter"), "{message}");
}

#[test]
fn a_connection_in_memory_gets_the_same_bytes() {
    let content = pattern(300_000);
    let mut rig = Rig::new("memory", &content);
    let id = rig.reactor.open_memory(Peer::Local, None);
    let paths = requests(&["/plain", "/file", "/plain"]);
    rig.reactor.feed_memory(id, &paths, &mut rig.service);
    let mut taken = rig.reactor.take_memory(id).expect("open");
    for _ in 0..100 {
        rig.turn();
        taken.extend(rig.reactor.take_memory(id).expect("open"));
    }
    let word = [&head(4)[..], b"word"].concat();
    let expected = [&word[..], &head(300_000), &content, &word].concat();
    assert!(taken == expected);
}

#[test]
fn only_so_many_files_are_open_and_only_regular_ones() {
    let limits = Limits {
        files_open_max: 2,
        ..Limits::default()
    };
    let rig = Rig::with_limits("limit", b"content", limits);
    let files: Files = rig.reactor.files();
    let path = rig.directory.join("file");
    let second = files.open(&path).expect("the second of two");
    assert_eq!(files.open(&path).err(), Some(Errno::NFILE));
    drop(second);
    assert_eq!(files.open_count(), 1);
    files.open(&path).expect("there is room again");
    assert_eq!(files.open(&rig.directory).err(), Some(Errno::INVAL));
    assert_eq!(files.open("/dev/zero".as_ref()).err(), Some(Errno::INVAL));
    assert_eq!(
        files.open(&rig.directory.join("none")).err(),
        Some(Errno::NOENT)
    );
    assert_eq!(
        rig.service.file.payload(4, 100).err(),
        Some(Errno::NODATA),
        "shorter than asked for"
    );
}

#[test]
fn a_name_cannot_begin_a_line_of_the_log() {
    let mut rig = Rig::new("label", b"content");
    let path = rig.directory.join("file");
    let forged = rig.directory.join("a\nERROR \u{202e}forged");
    fs::rename(path, &forged).expect("the same directory");
    let file = rig.reactor.files().open(&forged).expect("it is there");
    assert!(
        file.label().ends_with("/a\\nERROR \\u{202e}forged"),
        "{}",
        file.label()
    );
    rig.service.file = file;
}

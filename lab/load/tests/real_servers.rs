//! The program against servers that others wrote: nghttpd (HTTP/2) and h2o (all of it), in clear
//! text and over TLS. Skipped, with a word about it, where they are not installed (Debian:
//! nghttp2-server, h2o).

use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

mod ports;

const WELCOME: &str = "Welcome!\n";

/// A server with a folder of its own, both gone when it is dropped.
struct Server {
    process: Child,
    folder: PathBuf,
    authority: String,
}

impl Server {
    /// `None` if it is not installed.
    fn nghttpd(name: &str, is_secure: bool) -> Option<Self> {
        Self::start("nghttpd", name, |folder, port, command| {
            command.args(["-a", "127.0.0.1", "-d"]).arg(folder);
            if is_secure {
                command.arg(port).args(make_certificate(folder)?);
            } else {
                command.args(["--no-tls", port]);
            }
            Some(())
        })
    }

    fn h2o(name: &str) -> Option<Self> {
        Self::start("h2o", name, |folder, port, command| {
            let [key, certificate] = make_certificate(folder)?;
            let configuration = folder.join("h2o.conf");
            let text = format!(
                "num-threads: 1\nlisten:\n  host: 127.0.0.1\n  port: {port}\n  ssl:\n    \
                 key-file: {}\n    certificate-file: {}\nhosts:\n  default:\n    paths:\n      \
                 /:\n        file.dir: {}\n",
                key.display(),
                certificate.display(),
                folder.display()
            );
            fs::write(&configuration, text).expect("a file");
            command.arg("-c").arg(configuration);
            Some(())
        })
    }

    fn start(
        program: &str,
        name: &str,
        configure: impl FnOnce(&Path, &str, &mut Command) -> Option<()>,
    ) -> Option<Self> {
        let folder =
            std::env::temp_dir().join(format!("citius-load-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        fs::write(folder.join("index.html"), WELCOME).expect("a file");
        fs::write(folder.join("large"), vec![b'x'; 300_000]).expect("a file");
        let listener = ports::listener();
        let port = listener.local_addr().expect("bound").port().to_string();
        drop(listener);
        let mut command = Command::new(program);
        configure(&folder, &port, &mut command)?;
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut process = match process {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("skipped: there is no {program} here");
                return None;
            }
            process => process.expect("it runs"),
        };
        let authority = format!("127.0.0.1:{port}");
        while TcpStream::connect(&authority).is_err() {
            let ended = process.try_wait().expect("a child");
            assert_eq!(ended, None, "{program} does not listen");
            std::thread::yield_now();
        }
        Some(Self {
            process,
            folder,
            authority,
        })
    }

    fn load(&self, url: &str, arguments: &str) -> (Value, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_citius-load"))
            .args(arguments.split_whitespace())
            .args(["--json", "-", &url.replace("SERVER", &self.authority)])
            .output()
            .expect("the program runs");
        let record = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        (record, String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, and what is left of the folder is the system's to clear.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A key and a certificate for it, or `None` where nothing makes them.
fn make_certificate(folder: &Path) -> Option<[PathBuf; 2]> {
    let (key, certificate) = (folder.join("key.pem"), folder.join("certificate.pem"));
    let made = Command::new("openssl")
        .args(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split(' '),
        )
        .args("-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1".split(' '))
        .args("-addext basicConstraints=critical,CA:FALSE".split(' '))
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    match made {
        Ok(output) if output.status.success() => Some([key, certificate]),
        _ => {
            eprintln!("skipped: openssl makes no certificate here");
            None
        }
    }
}

#[track_caller]
fn expect(run: &(Value, String), completed: u64) {
    let (record, complaint) = run;
    assert_eq!(record["completed"], completed, "{record} {complaint}");
    let errors = record["errors"].as_object().expect("errors by class");
    assert!(errors.values().all(|count| count == 0), "{errors:?}");
    assert_eq!(record["latency_us"]["count"], completed);
}

#[test]
fn streams_in_clear_text() {
    let Some(server) = Server::nghttpd("clear", false) else {
        return;
    };
    let run = server.load(
        "http://SERVER/",
        "--http2 --streams 20 -c 3 -n 2000 --check-every 1 --expect-body Welcome!\n",
    );
    // The words are split at white space, which takes the end of line away.
    assert_eq!(run.0["errors"]["length"], 2000, "{}", run.0);
    let run = server.load(
        "http://SERVER/",
        "--http2 --streams 20 -c 3 -n 2000 --expect-length 9",
    );
    expect(&run, 2000);
    assert_eq!(run.0["connections"]["open_max"], 3);
    assert_eq!(run.0["options"]["protocol"], "h2");
    let run = server.load(
        "http://SERVER/large",
        "--http2 --streams 5 -n 100 -c 2 --expect-length 300000",
    );
    expect(&run, 100);
    let run = server.load(
        "http://SERVER/none",
        "--http2 -n 10 -c 1 --expect-status 404",
    );
    expect(&run, 10);
}

#[test]
fn other_paces_and_methods_over_streams() {
    let Some(server) = Server::nghttpd("paces", false) else {
        return;
    };
    let run = server.load("http://SERVER/", "--http2 --streams 10 -c 2 -r 1000 -n 200");
    expect(&run, 200);
    assert_eq!(run.0["unsent"], 0);
    let run = server.load("http://SERVER/", "--http2 --users 20 --ramp 50ms --loops 3");
    expect(&run, 60);
    let body = server.folder.join("large");
    let post = format!(
        "--http2 -m POST --body-file {} -n 40 -c 2 --streams 4",
        body.display()
    );
    expect(&server.load("http://SERVER/", &post), 40);
    expect(
        &server.load("http://SERVER/large", "--http2 -m HEAD -n 5 -c 1"),
        5,
    );
}

#[test]
fn streams_over_tls() {
    let Some(server) = Server::nghttpd("tls", true) else {
        return;
    };
    let run = server.load("https://SERVER/", "--http2 -n 30 -c 3 --expect-length 9");
    expect(&run, 30);
    let tls = &run.0["tls"];
    assert_eq!((&tls["count"], &tls["failure"]), (&3.into(), &Value::Null));
    assert!(
        tls["suite"]
            .as_str()
            .is_some_and(|suite| suite.starts_with("TLSv1_")),
        "{tls}"
    );
    assert!(tls["handshake_us"]["p50"].as_f64() > Some(0.0));
    let large = "--http2 --streams 4 -n 40 -c 2 --expect-length 300000";
    expect(&server.load("https://SERVER/large", large), 40);
}

#[test]
fn sessions_are_resumed_unless_they_may_not() {
    let Some(server) = Server::h2o("resumption") else {
        return;
    };
    for protocol in ["--http2", ""] {
        let many = format!("{protocol} -n 30 -c 1 --no-keepalive --expect-length 9");
        let run = server.load("https://SERVER/", &many);
        expect(&run, 30);
        assert_eq!(run.0["tls"]["count"], 30);
        let resumed = run.0["tls"]["resumed"].as_u64().expect("a count");
        assert!((5..30).contains(&resumed), "{}", run.0["tls"]);
        let run = server.load("https://SERVER/", &format!("{many} --no-resumption"));
        expect(&run, 30);
        assert_eq!(run.0["tls"]["resumed"], 0);
    }
    // More connections begin at once than a store of eight tickets has for them.
    let at_once = "-n 6400 -c 64 --requests-per-connection 10 --expect-length 9";
    let run = server.load("https://SERVER/", at_once);
    expect(&run, 6400);
    let resumed = run.0["tls"]["resumed"].as_u64().expect("a count");
    // h2o gives few tickets: 450 and more of 705 are resumed, and with eight kept at most 290.
    assert!(resumed >= 370, "{resumed} of {}", run.0["tls"]["count"]);
    let pipelined = "-n 300 -c 2 -p 8 --check-every 1 --expect-length 300000";
    expect(&server.load("https://SERVER/large", pipelined), 300);
}

#[test]
fn one_request_in_a_hundred_resumes_a_session() {
    let Some(server) = Server::h2o("one-in-a-hundred") else {
        return;
    };
    let words = "-n 3000 -c 4 --requests-per-connection 100 --expect-length 9";
    let run = server.load("https://SERVER/", words);
    expect(&run, 3000);
    let tls = &run.0["tls"];
    let (count, resumed) = (tls["in_window"].as_u64(), tls["resumed_in_window"].as_u64());
    // The first four have no session yet, and live shorter, so that not all end at once.
    assert!((30..=34).contains(&count.expect("a count")), "{tls}");
    // h2o gives no new ticket with every resumed session; a connection without one shakes hands in full.
    assert!(
        resumed.expect("a count") >= count.expect("a count") / 3,
        "{tls}"
    );
    assert_eq!(run.0["connections_lost"], 0);
}

#[test]
fn certificates_and_protocols_that_do_not_do() {
    let Some(server) = Server::nghttpd("certificates", true) else {
        return;
    };
    let authorities = server.folder.join("certificate.pem");
    let checked = format!("--http2 -n 5 -c 1 --ca {}", authorities.display());
    // The certificate is its own authority, which is one to be trusted only if we say so.
    expect(&server.load("https://SERVER/", &checked), 5);
    let other = make_certificate(&std::env::temp_dir()).expect("as above");
    let checked = format!("--http2 -n 2 -c 1 --ca {}", other[1].display());
    let (record, complaint) = server.load("https://SERVER/", &checked);
    assert_eq!(record["connect_failures"]["tls"], 2, "{record} {complaint}");
    assert!(complaint.contains("certificate"), "{complaint}");
    let (record, complaint) = server.load("https://SERVER/", "-n 1 -c 1");
    assert_eq!(
        record["completed"], 0,
        "nghttpd speaks HTTP/2 only: {complaint}"
    );
}

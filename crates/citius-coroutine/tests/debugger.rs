//! gdb shows what coroutines are suspended in, and leaves them as they were: `scripts/gdb_goroutines.py`.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

#[test]
fn gdb_shows_the_frames_of_those_that_are_suspended() {
    if Command::new("gdb").arg("--version").output().is_err() {
        return;
    }
    // Cargo builds the examples beside the tests.
    let test = std::env::current_exe().expect("a test has a path");
    let built = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("target/PROFILE/deps");
    let mut program = Command::new(built.join("examples/parked"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example is built");
    let mut output = BufReader::new(program.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "parked\n");

    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scripts/gdb_goroutines.py"
    );
    let told = Command::new("gdb")
        .args([
            "-batch",
            "-nx",
            "-iex",
            "set debuginfod enabled off",
            "-p",
            &program.id().to_string(),
        ])
        .args([
            "-x",
            script,
            "-ex",
            "info goroutines",
            "-ex",
            "goroutine all",
        ])
        .output()
        .expect("gdb runs");
    let shown = String::from_utf8_lossy(&told.stdout);
    let errors = String::from_utf8_lossy(&told.stderr);

    // It goes on as if nothing had been.
    drop(program.stdin.take());
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("the rest");
    assert!(program.wait().expect("it ends").success());
    assert_eq!(rest, "ended\n");

    if errors.contains("Operation not permitted") {
        return;
    }
    assert!(shown.contains("3 goroutines wait"), "{shown}{errors}");
    let traces: Vec<&str> = shown.split("\ngoroutine ").skip(1).collect();
    assert_eq!(traces.len(), 3, "{shown}");
    for (trace, depth) in traces.iter().zip([0, 3, 7]) {
        assert!(trace.contains("citius_coroutine_suspend"), "{trace}");
        assert_eq!(trace.matches("::descend").count(), depth + 1, "{trace}");
        assert_eq!(trace.matches("::begin").count(), 1, "{trace}");
        assert!(!trace.contains("corrupt stack"), "{trace}");
    }
}

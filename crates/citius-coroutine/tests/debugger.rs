//! gdb shows what coroutines are suspended in, and leaves them as they were: `scripts/gdb_goroutines.py`.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// The example `parked`, when it waits.
fn start() -> (Child, impl Read) {
    // Cargo builds the examples beside the tests.
    let test = std::env::current_exe().expect("a test has a path");
    let deps = test.parent().expect("target/PROFILE/deps");
    let mut program = Command::new(deps.with_file_name("examples").join("parked"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example is built; with --test give --examples too");
    let mut output = BufReader::new(program.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "parked\n");
    (program, output)
}

/// What gdb says to both commands of the script; `None`: it may not look at other processes.
fn ask_gdb(pid: u32) -> Option<String> {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scripts/gdb_goroutines.py"
    );
    let told = Command::new("gdb")
        .args(["-batch", "-nx", "-iex", "set debuginfod enabled off"])
        .args(["-p", &pid.to_string(), "-x", script])
        .args(["-ex", "info goroutines", "-ex", "goroutine all"])
        .output()
        .expect("gdb runs");
    let errors = String::from_utf8_lossy(&told.stderr);
    let shown = String::from_utf8_lossy(&told.stdout);
    (!errors.contains("Operation not permitted")).then(|| format!("{shown}\n{errors}"))
}

#[test]
fn gdb_shows_the_frames_of_those_that_are_suspended() {
    if Command::new("gdb").arg("--version").output().is_err() {
        return;
    }
    let (mut program, mut output) = start();
    let shown = ask_gdb(program.id());

    // It goes on as if nothing had been.
    drop(program.stdin.take());
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("the rest");
    assert!(program.wait().expect("it ends").success());
    assert_eq!(rest, "ended\n");

    let Some(shown) = shown else {
        return;
    };
    assert!(shown.contains("3 goroutines wait"), "{shown}");
    let traces: Vec<&str> = shown.split("\ngoroutine ").skip(1).collect();
    assert_eq!(traces.len(), 3, "{shown}");
    for (trace, depth) in traces.iter().zip([0, 3, 7]) {
        assert!(trace.contains("citius_coroutine_suspend"), "{trace}");
        assert_eq!(trace.matches("::descend").count(), depth + 1, "{trace}");
        assert_eq!(trace.matches("::begin").count(), 1, "{trace}");
        assert!(!trace.contains("corrupt stack"), "{trace}");
    }
}

//! The program as an operator meets it: starting, refusing, stopping.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

fn ottla() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ottla"));
    command.env_clear();
    command
}

/// A broker process and the lines it logs.
struct Process {
    child: Child,
    lines: mpsc::Receiver<String>,
    address: String,
}

impl Process {
    fn start(directory: &Path, more: &[&str]) -> Self {
        let mut child = ottla()
            .arg("start")
            .args(base(directory))
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("spawn");
        let output = child.stdout.take().expect("output");
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let mut process = Self { child, lines, address: String::new() };
        let ready = process.line_with("ready");
        let listeners = ready.split("PLAINTEXT://").nth(1).expect("a listener");
        process.address = listeners.split(['"', ',']).next().expect("an address").to_owned();
        process
    }

    fn line_with(&mut self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("a line");
            if line.contains(text) {
                return line;
            }
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().expect("kill");
        assert!(sent.success());
    }

    fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().expect("exit").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn base(directory: &Path) -> Vec<String> {
    let overrides = [
        format!("log.dirs={}", directory.display()),
        "listeners=PLAINTEXT://127.0.0.1:0".to_owned(),
        "ottla.http.listener=none".to_owned(),
    ];
    overrides.into_iter().flat_map(|setting| ["--override".to_owned(), setting]).collect()
}

/// Runs to the end; for starts that must be refused.
fn refused(directory: &Path, more: &[&str]) -> String {
    let Output { status, stderr, .. } =
        ottla().arg("start").args(base(directory)).args(more).output().expect("run");
    assert_eq!(status.code(), Some(1));
    String::from_utf8(stderr).expect("text")
}

fn ping(address: &str, message: &str) -> String {
    let arguments = ["ping", "--bootstrap", address, message];
    let Output { status, stdout, stderr } = ottla().args(arguments).output().expect("run");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("text")
}

#[test]
fn a_broker_starts_serves_stops_cleanly_and_starts_again() {
    let dir = tempfile::tempdir().expect("directory");
    let mut broker = Process::start(dir.path(), &[]);
    let said = ping(&broker.address, "hello");
    assert!(said.contains("\"hello\" at offset 0"), "{said}");
    broker.signal("-TERM");
    assert_eq!(broker.exit_code(), Some(0));
    assert!(dir.path().join(".kafka_cleanshutdown").exists());
    let mut broker = Process::start(dir.path(), &[]);
    assert!(!dir.path().join(".kafka_cleanshutdown").exists());
    assert!(ping(&broker.address, "again").contains("at offset 1"));
    broker.signal("-INT");
    assert_eq!(broker.exit_code(), Some(0));
}

#[test]
fn a_killed_broker_has_what_it_acknowledged() {
    let dir = tempfile::tempdir().expect("directory");
    for number in 0..3 {
        let mut broker = Process::start(dir.path(), &[]);
        let said = ping(&broker.address, "kept");
        assert!(said.contains(&format!("at offset {number} ")), "{said}");
        broker.signal("-KILL");
        broker.exit_code();
    }
}

#[test]
fn wrong_settings_are_refused_all_at_once_and_nothing_is_touched() {
    let dir = tempfile::tempdir().expect("directory");
    let data = dir.path().join("data");
    let said = refused(
        &data,
        &["--override", "log.retention.ms=soon", "--override", "compression.type=best"],
    );
    for part in ["log.retention.ms=soon", "compression.type=best", "--override"] {
        assert!(said.contains(part), "{said}");
    }
    let said = refused(&data, &["--override", "zookeeper.connect=localhost:2181"]);
    assert!(
        said.contains("zookeeper.connect=localhost:2181: clusters are not built yet"),
        "{said}"
    );
    let said = refused(&data, &["--override", "advertised.listeners=PLAINTEXT://0.0.0.0:9092"]);
    assert!(said.contains("advertised.listeners"), "{said}");
    assert!(!data.exists());
}

#[test]
fn a_taken_port_is_refused_before_any_directory_is_touched() {
    let dir = tempfile::tempdir().expect("directory");
    let data = dir.path().join("data");
    let taken = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = taken.local_addr().expect("address").port();
    let listeners = format!("listeners=PLAINTEXT://127.0.0.1:{port}");
    let said = refused(&data, &["--override", &listeners]);
    assert!(said.contains(&listeners) && said.contains("in use"), "{said}");
    assert!(!data.exists());
}

#[test]
fn a_directory_that_is_not_this_brokers_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().expect("directory");
    let mut broker = Process::start(dir.path(), &[]);
    let said = refused(dir.path(), &[]);
    assert!(said.contains("in use by another process"), "{said}");
    broker.signal("-TERM");
    broker.exit_code();
    let meta = dir.path().join("meta.properties");
    let before = std::fs::read_to_string(&meta).expect("meta");
    let said = refused(dir.path(), &["--override", "node.id=7"]);
    assert!(said.contains("node.id=1") && said.contains('7'), "{said}");
    assert!(dir.path().join(".kafka_cleanshutdown").exists());
    let other = tempfile::tempdir().expect("directory");
    Process::start(other.path(), &[]).signal("-TERM");
    std::fs::copy(other.path().join("meta.properties"), &meta).expect("copy");
    let said = refused(dir.path(), &[]);
    assert!(said.contains("cluster.id="), "{said}");
    std::fs::write(&meta, before.replace("version=1", "version=9")).expect("write");
    assert!(refused(dir.path(), &[]).contains("version=9"));
    assert!(dir.path().join(".kafka_cleanshutdown").exists());
}

#[test]
fn settings_are_printed_with_where_they_come_from() {
    let dir = tempfile::tempdir().expect("directory");
    let file = dir.path().join("server.properties");
    std::fs::write(&file, "num.partitions=7\nlog.retention.hours=5\nbogus.key=1\n").expect("write");
    let output = ottla()
        .args(["config", "--config"])
        .arg(&file)
        .args(["--override", "log.retention.hours=6"])
        .env("KAFKA_LOG_SEGMENT_BYTES", "1000")
        .env("KAFKA_HEAP_OPTS", "-Xmx1g")
        .output()
        .expect("run");
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).expect("text");
    let line = |key: &str| {
        let found = printed.lines().find(|line| line.split_whitespace().next() == Some(key));
        found.unwrap_or_else(|| panic!("{key} is not in:\n{printed}")).to_owned()
    };
    assert!(line("num.partitions").contains("server.properties:1"));
    assert!(line("log.retention.hours").contains("--override"));
    assert!(line("log.segment.bytes").contains("KAFKA_LOG_SEGMENT_BYTES"));
    let warned = String::from_utf8(output.stderr).expect("text");
    assert!(warned.contains("bogus.key") && warned.contains("KAFKA_HEAP_OPTS"), "{warned}");
}

#[test]
fn logs_can_be_objects() {
    let dir = tempfile::tempdir().expect("directory");
    let mut broker = Process::start(dir.path(), &["--log-format", "json", "--log", "debug"]);
    broker.signal("-TERM");
    let line = broker.line_with("stopped");
    let parsed: serde_json::Value = serde_json::from_str(&line).expect("an object");
    assert_eq!(parsed["level"], "INFO");
    let mut rest = String::new();
    let said = ottla().args(["start", "--log", "loud"]).stderr(Stdio::piped()).spawn();
    said.expect("run").stderr.expect("stderr").read_to_string(&mut rest).expect("text");
    assert!(rest.contains("LOUD is no log level"), "{rest}");
}

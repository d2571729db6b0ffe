//! The broker's binary as a child process that is killed and started again on the same port.

use crate::support::{Client, PATIENCE, text, wait_for};
use bytes::{Buf, Bytes};
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// A broker in a process of its own.
pub struct Process {
    child: Option<Child>,
    pub port: u16,
    log_dir: PathBuf,
    /// What it prints.
    output: PathBuf,
    settings: Vec<(String, String)>,
}

impl Process {
    /// With data in `log_dir` and its output in `beside`. It is not started yet.
    pub fn new(log_dir: &Path, beside: &Path, settings: &[(&str, &str)]) -> Self {
        // A port that was free a moment ago; it must be the same after each start.
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Self {
            child: None,
            port,
            log_dir: log_dir.to_owned(),
            output: beside.join("broker.log"),
            settings: settings.iter().map(owned).collect(),
        }
    }

    /// Starts it, and returns before it serves.
    pub fn spawn(&mut self) {
        assert!(self.child.is_none(), "it runs already");
        let output = File::options().create(true).append(true).open(&self.output).expect("output");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ottla"));
        command.arg("start").env("RUST_BACKTRACE", "1");
        let own = [
            ("log.dirs", self.log_dir.display().to_string()),
            ("listeners", format!("PLAINTEXT://127.0.0.1:{}", self.port)),
            ("ottla.http.listener", "127.0.0.1:0".to_owned()),
            ("group.initial.rebalance.delay.ms", "0".to_owned()),
        ];
        for (key, value) in own {
            command.arg("--override").arg(format!("{key}={value}"));
        }
        for (key, value) in &self.settings {
            command.arg("--override").arg(format!("{key}={value}"));
        }
        command.stdout(output.try_clone().expect("output")).stderr(output);
        self.child = Some(command.spawn().expect("the broker's binary"));
    }

    /// Starts it and waits for the first answer.
    pub fn start(&mut self) {
        self.spawn();
        wait_for("the broker to answer", || {
            self.assert_running();
            self.connect().and_then(|mut client| versions(&mut client).ok())
        });
    }

    /// A connection, when it takes one.
    pub fn connect(&self) -> Option<Client> {
        Client::try_connect(&format!("127.0.0.1:{}", self.port)).ok()
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("kill");
        child.wait().expect("wait");
    }

    /// Has it stand still, with none of its threads within a call to the kernel.
    pub fn pause(&self) {
        let child = self.child.as_ref().expect("it runs");
        let id = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(id, rustix::process::Signal::STOP).expect("pause");
        let is_still = |task: io::Result<fs::DirEntry>| {
            let stat = fs::read_to_string(task.expect("a thread").path().join("stat"));
            let stat = stat.expect("its state");
            stat.rsplit(") ").next().is_some_and(|state| state.starts_with('T'))
        };
        wait_for("all threads to stand still", || {
            let mut tasks = fs::read_dir(format!("/proc/{}/task", child.id())).expect("threads");
            tasks.all(is_still).then_some(())
        });
    }

    /// Has it go on.
    pub fn resume(&self) {
        let child = self.child.as_ref().expect("it runs");
        let id = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(id, rustix::process::Signal::CONT).expect("resume");
    }

    /// Stops it as SIGTERM does, and says whether it ended well.
    pub fn stop(&mut self) -> bool {
        let mut child = self.child.take().expect("it runs");
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("terminate");
        child.wait().expect("wait").success()
    }

    /// Fails when it ended by itself.
    pub fn assert_running(&mut self) {
        let child = self.child.as_mut().expect("it was started");
        if let Some(status) = child.try_wait().expect("wait") {
            panic!("the broker ended: {status}\n{}", self.printed());
        }
    }

    /// The end of what it printed.
    pub fn printed(&self) -> String {
        let all = std::fs::read_to_string(&self.output).unwrap_or_default();
        let lines: Vec<_> = all.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("the broker printed:\n{}", self.printed());
        }
    }
}

/// Sends without minding whether anybody is there.
pub fn try_send<Q: Encodable>(
    client: &mut Client,
    key: ApiKey,
    version: i16,
    request: &Q,
) -> io::Result<()> {
    let frame = client.frame(key, version, request);
    client.stream.write_all(&frame)
}

/// The next answer, if the broker lives long enough to give one.
pub fn try_receive<A: Decodable>(client: &mut Client, key: ApiKey, version: i16) -> io::Result<A> {
    let mut length = [0; 4];
    client.stream.read_exact(&mut length)?;
    let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length)).expect("length")];
    client.stream.read_exact(&mut frame)?;
    let mut frame = Bytes::from(frame);
    ResponseHeader::decode(&mut frame, key.response_header_version(version)).expect("header");
    let answer = A::decode(&mut frame, version).expect("body");
    assert!(!frame.has_remaining(), "bytes follow the answer");
    Ok(answer)
}

/// Asks, if the broker lives long enough to answer.
pub fn try_ask<Q: Encodable, A: Decodable>(
    client: &mut Client,
    key: ApiKey,
    version: i16,
    request: &Q,
) -> io::Result<A> {
    try_send(client, key, version, request)?;
    try_receive(client, key, version)
}

/// Fails unless this is how a connection ends when the broker is killed.
pub fn expect_dead(error: &io::Error) {
    let kinds = [
        ErrorKind::UnexpectedEof,
        ErrorKind::ConnectionReset,
        ErrorKind::ConnectionAborted,
        ErrorKind::BrokenPipe,
    ];
    assert!(kinds.contains(&error.kind()), "no answer within {PATIENCE:?}: {error}");
}

fn versions(client: &mut Client) -> io::Result<ApiVersionsResponse> {
    try_ask(client, ApiKey::ApiVersions, 0, &ApiVersionsRequest::default())
}

/// Deletes a topic, which must be there.
pub fn delete(client: &mut Client, topic: &str) {
    let request = DeleteTopicsRequest::default()
        .with_topic_names(vec![TopicName(text(topic))])
        .with_timeout_ms(5_000);
    let answer: DeleteTopicsResponse =
        try_ask(client, ApiKey::DeleteTopics, 5, &request).expect("an answer");
    assert_eq!(answer.responses[0].error_code, 0, "{topic}");
}

/// Commits one offset of a group that manages its members itself; gives the error code.
pub fn commit(client: &mut Client, group: &str, topic: &str, offset: i64) -> io::Result<i16> {
    let row = OffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(offset);
    let topic = OffsetCommitRequestTopic::default()
        .with_name(TopicName(text(topic)))
        .with_partitions(vec![row]);
    let request = OffsetCommitRequest::default()
        .with_group_id(GroupId(text(group)))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic]);
    let answer: OffsetCommitResponse = try_ask(client, ApiKey::OffsetCommit, 8, &request)?;
    Ok(answer.topics[0].partitions[0].error_code)
}

/// The offset a group committed, or the error code.
pub fn committed(client: &mut Client, group: &str, topic: &str) -> io::Result<Result<i64, i16>> {
    let topic = OffsetFetchRequestTopic::default()
        .with_name(TopicName(text(topic)))
        .with_partition_indexes(vec![0]);
    let request = OffsetFetchRequest::default()
        .with_group_id(GroupId(text(group)))
        .with_topics(Some(vec![topic]));
    let answer: OffsetFetchResponse = try_ask(client, ApiKey::OffsetFetch, 7, &request)?;
    if answer.error_code != 0 {
        return Ok(Err(answer.error_code));
    }
    let row = &answer.topics[0].partitions[0];
    Ok(if row.error_code == 0 { Ok(row.committed_offset) } else { Err(row.error_code) })
}

/// Has the broker make the topic that groups are kept in.
pub fn find_coordinator(client: &mut Client, group: &str) -> io::Result<i16> {
    let request =
        FindCoordinatorRequest::default().with_key_type(0).with_coordinator_keys(vec![text(group)]);
    let answer: FindCoordinatorResponse = try_ask(client, ApiKey::FindCoordinator, 4, &request)?;
    Ok(answer.coordinators[0].error_code)
}

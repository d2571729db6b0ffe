//! Runs `testdata/*.txt`. A script's first line names its rule. Then blocks: a line of what
//! happens, and below it what came of it. `UPDATE=1 cargo test` writes the outcomes anew; review
//! the diff. Requests get the tickets t1, t2, … and joins make the ids `<client>-<ticket>`.

use super::{Seen, World, config, print};
use crate::machine::group::*;
use crate::protocol::ErrorCode;
use crate::types::{LeaderEpoch, Offset, TopicPartition};
use std::fmt::Write as _;
use std::path::Path;

#[test]
fn scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/machine/group/testdata");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    let mut changed = Vec::new();
    for path in paths {
        let before = std::fs::read_to_string(&path).unwrap();
        let after = run(&before);
        if before != after {
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(&path, &after).unwrap();
            } else {
                changed.push(format!("{}\n{}", path.display(), difference(&before, &after)));
            }
        }
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

fn difference(before: &str, after: &str) -> String {
    let lines = before.lines().zip(after.lines()).enumerate();
    let differ = lines.map(|(at, (b, a))| (at + 1, b, a)).find(|(_, b, a)| b != a);
    match differ {
        Some((at, before, after)) => format!("line {at}\n  was {before}\n  is  {after}"),
        None => "one goes on where the other ends".into(),
    }
}

fn run(script: &str) -> String {
    let mut out = String::new();
    let mut config = config();
    let mut world = None;
    for line in script.lines() {
        if line.starts_with("  ") {
            continue; // an outcome of the last run
        }
        writeln!(out, "{line}").unwrap();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words = Words::new(line);
        if words.verb == "config" {
            configure(&mut config, &words);
            continue;
        }
        let world = world.get_or_insert_with(|| World::new(config.clone()));
        for line in perform(world, &words) {
            writeln!(out, "  {line}").unwrap();
        }
    }
    out
}

/// `verb plain plain key=value key=value`
struct Words<'a> {
    verb: &'a str,
    plain: Vec<&'a str>,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Self {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap_or_default();
        let (mut plain, mut pairs) = (Vec::new(), Vec::new());
        for word in words {
            match word.split_once('=') {
                Some(pair) => pairs.push(pair),
                None => plain.push(word),
            }
        }
        Self { verb, plain, pairs }
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn text(&self, key: &str, default: &'a str) -> std::sync::Arc<str> {
        self.get(key).unwrap_or(default).into()
    }

    fn list(&self, key: &str) -> Vec<&'a str> {
        self.get(key).map(|value| value.split(',').collect()).unwrap_or_default()
    }

    fn group(&self) -> GroupId {
        self.plain.first().copied().unwrap_or_default().trim_matches('"').into()
    }

    fn member(&self) -> MemberClaim {
        let generation = self.get("gen").map_or(-1, |text| text.parse().unwrap());
        MemberClaim {
            member_id: self.text("member", ""),
            instance_id: self.get("instance").map(Into::into),
            generation: Generation(generation),
        }
    }
}

fn configure(config: &mut Config, words: &Words<'_>) {
    for (key, value) in &words.pairs {
        match *key {
            "delay" => config.initial_rebalance_delay = span(value),
            "size" => config.group_max_size = value.parse().unwrap(),
            "retention" => config.offsets_retention = span(value),
            other => panic!("no setting {other}"),
        }
    }
}

fn span(text: &str) -> Duration {
    for (unit, millis) in [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)] {
        if let Some(count) = text.strip_suffix(unit)
            && let Ok(count) = count.parse::<u64>()
        {
            return Duration::from_millis(count * millis);
        }
    }
    panic!("{text} is no span of time")
}

fn pair((left, right): (&str, &str)) -> (TopicPartition, i64) {
    (partition(left), right.parse().unwrap())
}

fn partition(text: &str) -> TopicPartition {
    let (topic, index) = text.rsplit_once('-').unwrap();
    TopicPartition::new(topic, index.parse().unwrap())
}

fn perform(world: &mut World, words: &Words<'_>) -> Vec<String> {
    let lines = |seen: Vec<Seen>| seen.iter().map(print::line).collect();
    match words.verb {
        "pass" => pass(world, span(words.plain[0])),
        // The shell was kept from calling in time.
        "stall" => {
            world.advance(span(words.plain[0]));
            lines(world.event(|m, at, effects| m.handle_timeout(at, effects)))
        }
        "refuse" => {
            world.refuse_next = Some(match words.plain[0] {
                "NotEnoughReplicas" => ErrorCode::NotEnoughReplicas,
                "MessageTooLarge" => ErrorCode::MessageTooLarge,
                other => panic!("no reason {other}"),
            });
            Vec::new()
        }
        "fail-over" => {
            for (key, value) in words.pairs.iter().filter(|(key, _)| *key == "size") {
                configure(&mut world.config, &Words::new(&format!("config {key}={value}")));
            }
            lines(world.fail_over())
        }
        "expire" => lines(world.event(|m, at, effects| m.handle_expire_offsets(at, effects))),
        "topics-deleted" => {
            let topics = words.plain.iter().map(|topic| (*topic).into()).collect();
            lines(world.event(|m, at, effects| m.handle_topics_deleted(at, &topics, effects)))
        }
        _request => {
            let ticket = world.ticket();
            lines(world.event(|m, at, effects| request(m, at, (ticket, words), effects)))
        }
    }
}

/// Time passes; what a timer did is told with when.
fn pass(world: &mut World, span: Duration) -> Vec<String> {
    let end = world.at.now + span;
    let mut lines = Vec::new();
    while let Some(due) = world.machine.poll_timeout().filter(|due| *due <= end) {
        let seen = world.pass(due.saturating_since(world.at.now));
        let at = world.at.now.saturating_since(crate::types::Instant::ZERO).as_millis();
        lines.extend(seen.iter().map(|seen| format!("{at}ms {}", print::line(seen))));
    }
    world.pass(end.saturating_since(world.at.now));
    lines
}

fn request(
    machine: &mut GroupMachine,
    at: Moment,
    (ticket, words): (Ticket, &Words<'_>),
    effects: &mut Vec<Effect>,
) {
    let group = words.group();
    match words.verb {
        "join" => machine.handle_join_group(at, join(ticket, words), effects),
        "sync" => machine.handle_sync_group(at, sync(ticket, words), effects),
        "beat" => {
            let beat = Heartbeat { ticket, group, member: words.member() };
            machine.handle_heartbeat(at, &beat, effects);
        }
        "leave" => {
            let members = words.plain[1..].iter().map(|who| {
                let (id, name) = who.split_once('/').unwrap_or((who, ""));
                let instance_id = Some(name.into()).filter(|_| who.contains('/'));
                Leaver { member_id: id.into(), instance_id }
            });
            let members = members.collect();
            machine.handle_leave_group(at, LeaveGroup { ticket, group, members }, effects);
        }
        "commit" => machine.handle_offset_commit(at, commit(ticket, words), effects),
        "fetch" => {
            let asked: Vec<_> = words.plain[1..].iter().map(|text| partition(text)).collect();
            let partitions = Some(asked).filter(|asked| !asked.is_empty());
            let fetch = OffsetFetch { ticket, group, partitions };
            machine.handle_offset_fetch(at, fetch, effects);
        }
        "forget" => {
            let partitions = words.plain[1..].iter().map(|text| partition(text)).collect();
            machine.handle_offset_delete(at, OffsetDelete { ticket, group, partitions }, effects);
        }
        "list" => {
            let names = |key| words.list(key).into_iter().map(Into::into).collect();
            let list = ListGroups { ticket, states: names("states"), types: names("types") };
            machine.handle_list_groups(at, &list, effects);
        }
        "describe" => {
            machine.handle_describe_group(at, &DescribeGroup { ticket, group }, effects);
        }
        "delete" => machine.handle_delete_group(at, DeleteGroup { ticket, group }, effects),
        other => panic!("no verb {other}"),
    }
}

/// v9 unless `v=` says otherwise; protocols are `name:metadata`, best first.
fn join(ticket: Ticket, words: &Words<'_>) -> JoinGroup {
    let version: i16 = words.get("v").map_or(9, |text| text.parse().unwrap());
    let protocols = words.get("protocols").unwrap_or("range").split(',');
    let protocols = protocols.filter(|text| !text.is_empty()).map(|text| {
        let (name, said) = text.split_once(':').unwrap_or((text, ""));
        Protocol { name: name.into(), metadata: metadata(said).into() }
    });
    let rebalance = Some(span(words.get("rebalance").unwrap_or("30s")));
    JoinGroup {
        ticket,
        group: words.group(),
        member_id: words.text("member", ""),
        instance_id: words.get("instance").map(Into::into),
        client_id: words.text("client", "c"),
        client_host: words.text("host", "/h"),
        unique: ticket.0.to_string().into(),
        session_timeout: span(words.get("session").unwrap_or("10s")),
        rebalance_timeout: rebalance.filter(|_| version >= 1),
        protocol_type: words.text("type", "consumer"),
        protocols: protocols.collect(),
        takes_member_id_first: version >= 4,
        can_skip_assignment: version >= 9,
    }
}

/// `@a+b` stands for a consumer's subscription to the topics a and b; all else for itself.
fn metadata(text: &str) -> Vec<u8> {
    let Some(topics) = text.strip_prefix('@') else { return text.as_bytes().to_vec() };
    let topics: Vec<&str> = topics.split('+').collect();
    let mut bytes = vec![0, 0];
    bytes.extend(i32::try_from(topics.len()).unwrap().to_be_bytes());
    for topic in topics {
        bytes.extend(i16::try_from(topic.len()).unwrap().to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes
}

fn sync(ticket: Ticket, words: &Words<'_>) -> SyncGroup {
    let assignments = words.list("assign").into_iter().map(|text| {
        let (id, given) = text.split_once(':').unwrap();
        (id.into(), given.as_bytes().into())
    });
    SyncGroup {
        ticket,
        group: words.group(),
        member: words.member(),
        protocol_type: words.get("type").map(Into::into),
        protocol: words.get("protocol").map(Into::into),
        assignments: assignments.collect(),
    }
}

/// Pairs whose key ends in a partition's number are rows.
fn commit(ticket: Ticket, words: &Words<'_>) -> OffsetCommit {
    let is_row = |(key, _): &&(&str, &str)| {
        key.rsplit_once('-').is_some_and(|(_, index)| index.parse::<i32>().is_ok())
    };
    let rows = words.pairs.iter().filter(is_row).map(|row| {
        let (partition, offset) = pair(*row);
        OffsetToCommit {
            partition,
            offset: Offset(offset),
            leader_epoch: LeaderEpoch(words.get("epoch").map_or(-1, |text| text.parse().unwrap())),
            metadata: words.get("note").map(Into::into),
        }
    });
    OffsetCommit {
        ticket,
        group: words.group(),
        member: words.member(),
        retention: words.get("retention").map(span),
        knows_group_id_not_found: words.get("v").is_none_or(|version| version == "9"),
        rows: rows.collect(),
    }
}

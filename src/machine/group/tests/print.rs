//! What happened, in lines a reviewer can read.

use super::Seen;
use crate::machine::group::*;
use crate::protocol::ErrorCode;
use crate::types::TopicPartition;

/// One line each; `since` is the script's beginning of time.
pub(super) fn line(seen: &Seen) -> String {
    match seen {
        Seen::Appended(record) => format!("append {}", record_line(record)),
        Seen::Refused(record, error) => format!("refused {error:?}: {}", record_line(record)),
        Seen::Replied(ticket, response) => format!("t{} {}", ticket.0, response_line(response)),
    }
}

pub(super) fn record_line(record: &Record) -> String {
    match record {
        Record::GroupMetadata { group, metadata } => {
            let members: Vec<String> = metadata
                .members
                .iter()
                .map(|member| {
                    let name = member.instance_id.as_ref().map(|name| format!("/{name}"));
                    let name = name.unwrap_or_default();
                    let assignment = text(&member.assignment);
                    format!("{}{name}={assignment:?}", member.member_id)
                })
                .collect();
            format!(
                "group {group} generation={} protocol={} leader={} members=[{}]",
                metadata.generation.0,
                or_none(metadata.protocol.as_deref()),
                or_none(metadata.leader.as_deref()),
                members.join(" "),
            )
        }
        Record::GroupTombstone { group } => format!("group {group} ends"),
        Record::OffsetCommit { group, partition, committed } => {
            let epoch = committed.leader_epoch.0;
            let end = committed.expires_at.map(|end| format!(" expires={}", end.0));
            let end = end.unwrap_or_default();
            let note = &committed.metadata;
            format!("offset {group} {partition}={} epoch={epoch} {note:?}{end}", committed.offset)
        }
        Record::OffsetTombstone { group, partition } => format!("offset {group} {partition} ends"),
    }
}

fn response_line(response: &Response) -> String {
    match response {
        Response::JoinGroup(joined) => join_line(joined),
        Response::SyncGroup(synced) if synced.error != ErrorCode::None => {
            format!("sync {:?}", synced.error)
        }
        Response::SyncGroup(synced) => {
            let protocol = or_none(synced.protocol.as_deref());
            format!("sync assignment={:?} protocol={protocol}", text(&synced.assignment))
        }
        Response::Heartbeat(error) => format!("heartbeat {error:?}"),
        Response::LeaveGroup(left) => {
            let members = left.members.iter().map(|(leaver, error)| {
                let name = leaver.instance_id.as_ref().map(|name| format!("/{name}"));
                format!(" {}{}:{error:?}", leaver.member_id, name.unwrap_or_default())
            });
            format!("leave {:?}{}", left.error, members.collect::<String>())
        }
        Response::OffsetCommit(rows) => format!("commit{}", rows_text(rows)),
        Response::OffsetFetch(rows) => {
            let rows = rows.iter().map(|(partition, fetched)| match fetched {
                Some(at) => {
                    format!(
                        " {partition}={} epoch={} {:?}",
                        at.offset, at.leader_epoch, at.metadata
                    )
                }
                None => format!(" {partition}=none"),
            });
            format!("fetch{}", rows.collect::<String>())
        }
        Response::OffsetDelete(done) => {
            format!("forget {:?}{}", done.error, rows_text(&done.rows))
        }
        Response::ListGroups(rows) => {
            let rows = rows.iter().map(|row| {
                let kind = row.kind.name();
                format!(" {}({:?} {} {kind})", row.group, row.protocol_type, row.state.name())
            });
            format!("list{}", rows.collect::<String>())
        }
        Response::DescribeGroup(Err(error)) => format!("describe {error:?}"),
        Response::DescribeGroup(Ok(group)) => describe_line(group),
        Response::DeleteGroup(error) => format!("delete {error:?}"),
    }
}

fn join_line(joined: &Joined) -> String {
    let id = &joined.member_id;
    if joined.error != ErrorCode::None {
        return format!("join {:?} member={id:?}", joined.error);
    }
    let members: Vec<String> = joined
        .members
        .iter()
        .map(|member| format!("{}={:?}", member.member_id, text(&member.metadata)))
        .collect();
    let skip = if joined.skip_assignment { " skip-assignment" } else { "" };
    format!(
        "join member={id} generation={} protocol={} leader={} members=[{}]{skip}",
        joined.generation.0,
        or_none(joined.protocol.as_deref()),
        joined.leader,
        members.join(" "),
    )
}

fn describe_line(group: &DescribedGroup) -> String {
    let members: Vec<String> = group
        .members
        .iter()
        .map(|member| {
            let (id, client, host) = (&member.member_id, &member.client_id, &member.client_host);
            let (said, given) = (text(&member.metadata), text(&member.assignment));
            format!("{id} client={client} host={host} {said:?} -> {given:?}")
        })
        .collect();
    let (state, kind, protocol) = (group.state.name(), &group.protocol_type, &group.protocol);
    format!("describe {state} type={kind:?} protocol={protocol:?} members=[{}]", members.join("; "))
}

fn rows_text(rows: &[(TopicPartition, ErrorCode)]) -> String {
    rows.iter().map(|(partition, error)| format!(" {partition}:{error:?}")).collect()
}

fn or_none(text: Option<&str>) -> &str {
    text.unwrap_or("none")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

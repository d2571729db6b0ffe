//! A file and a directory of the crashing disk: what is durable, and what happened since.

use super::Dice;
use std::collections::BTreeMap;

/// What a disk writes whole.
const SECTOR_BYTES: usize = 512;

#[derive(Clone, Debug)]
pub(super) enum Node {
    File(Content),
    Directory(Directory),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) now: Vec<u8>,
    pub(super) durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    pub(super) now: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    unsynced: Vec<NameChange>,
}

#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Set { name: String, node: usize },
    Remove { name: String },
    Rename { from: String, to: String, node: usize },
}

impl Content {
    /// All of it durable.
    pub(super) fn durable(content: Vec<u8>) -> Self {
        Self { now: content.clone(), durable: content, unsynced: Vec::new() }
    }

    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        put(&mut self.now, at, bytes);
        self.unsynced.push(Change::Write { at, bytes: bytes.to_vec() });
    }

    /// Makes all of it durable, or, when the sync fails, nothing, ever.
    pub(super) fn sync(&mut self, fails: bool) {
        // The pages count as clean from now on although they may never have reached the disk.
        let unsynced = std::mem::take(&mut self.unsynced);
        for change in unsynced.into_iter().filter(|_| !fails) {
            match change {
                Change::Write { at, bytes } => put(&mut self.durable, at, &bytes),
                Change::Length(length) => self.durable.resize(length, 0),
            }
        }
    }

    pub(super) fn set_length(&mut self, length: usize) {
        self.now.resize(length, 0);
        self.unsynced.push(Change::Length(length));
    }

    /// What may be found of it after a loss of power; `kept` percent of what was not synced.
    pub(super) fn after_crash(&self, dice: &mut Dice, kept: u64) -> Vec<u8> {
        let mut lengths = vec![self.durable.len()];
        let mut content = self.durable.clone();
        let mut length = self.durable.len();
        for change in &self.unsynced {
            match change {
                Change::Length(new) => {
                    length = *new;
                    if dice.chance(kept) {
                        content.resize(length, 0);
                    }
                }
                Change::Write { at, bytes } => {
                    length = length.max(at + bytes.len());
                    for (at, sector) in sectors(*at, bytes) {
                        if dice.chance(kept) {
                            put(&mut content, at, sector);
                        }
                    }
                }
            }
            lengths.push(length);
        }
        let length = match kept {
            0 => self.durable.len(),
            100 => length,
            _ => *dice.pick(&lengths),
        };
        content.resize(length, 0);
        content
    }
}

impl Directory {
    /// All of it durable.
    pub(super) fn durable(names: BTreeMap<String, usize>) -> Self {
        Self { now: names.clone(), durable: names, unsynced: Vec::new() }
    }

    pub(super) fn change(&mut self, change: NameChange) {
        change.apply(&mut self.now);
        self.unsynced.push(change);
    }

    /// Makes the names durable, or, when the sync fails, none, ever.
    pub(super) fn sync(&mut self, fails: bool) {
        self.unsynced.clear();
        if !fails {
            self.durable = self.now.clone();
        }
    }

    /// The names that may be found after a loss of power.
    pub(super) fn after_crash(&self, dice: &mut Dice, kept: u64) -> BTreeMap<String, usize> {
        let mut names = self.durable.clone();
        for change in &self.unsynced {
            if dice.chance(kept) {
                change.apply(&mut names);
            }
        }
        names
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Set { name, node } => drop(names.insert(name.clone(), *node)),
            Self::Remove { name } => drop(names.remove(name)),
            Self::Rename { from, to, node } => {
                names.remove(from);
                // A file has one name: the one it had between two renames is gone too.
                names.retain(|_, other| other != node);
                names.insert(to.clone(), *node);
            }
        }
    }
}

fn put(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[at..end].copy_from_slice(bytes);
}

/// The parts of a write that lie in one sector each.
fn sectors(mut at: usize, mut bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let room = SECTOR_BYTES - at % SECTOR_BYTES;
        let (part, rest) = bytes.split_at(room.min(bytes.len()));
        parts.push((at, part));
        at += part.len();
        bytes = rest;
    }
    parts
}

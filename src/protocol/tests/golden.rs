//! `compat-tests/golden`, read into memory.

use std::sync::LazyLock;

/// One message body that Kafka made.
#[derive(Debug)]
pub(super) struct Line {
    /// A request, or else a response.
    pub(super) is_request: bool,
    /// Its API.
    pub(super) key: i16,
    /// Its version.
    pub(super) version: i16,
    /// Its bytes, without a header.
    pub(super) body: Vec<u8>,
}

/// How many lines the file has; a shorter one would prove less than the tests say.
const LINES: usize = 11_668;

/// Every line.
pub(super) fn lines() -> &'static [Line] {
    static LINES_READ: LazyLock<Vec<Line>> = LazyLock::new(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/compat-tests/golden/wire-4.1.txt");
        let text = std::fs::read_to_string(path).expect("golden bytes");
        let lines: Vec<Line> = text.lines().map(parse).collect();
        assert_eq!(lines.len(), LINES);
        lines
    });
    &LINES_READ
}

/// The requests.
pub(super) fn requests() -> impl Iterator<Item = &'static Line> {
    lines().iter().filter(|line| line.is_request)
}

/// Lines of one API, requests or responses.
pub(super) fn of(is_request: bool, key: i16) -> impl Iterator<Item = &'static Line> {
    lines().iter().filter(move |line| line.is_request == is_request && line.key == key)
}

fn parse(line: &str) -> Line {
    let mut words = line.split(' ');
    let mut word = || words.next().expect("four words");
    let is_request = match word() {
        "request" => true,
        "response" => false,
        other => panic!("{other}"),
    };
    let key = word().parse().expect("a key");
    let version = word().parse().expect("a version");
    Line { is_request, key, version, body: unhex(word()) }
}

/// Bytes from hexadecimal text.
pub(super) fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2));
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(byte).collect()
}

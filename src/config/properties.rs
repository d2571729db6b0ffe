//! Reads the text of Java's `.properties` files, as `java.util.Properties.load` does.

use std::iter::Peekable;
use std::str::Chars;

/// One setting of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: String,
    /// The line it begins on, from 1.
    pub(super) line: usize,
}

/// An escape that says nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: \\u wants four hexadecimal digits")]
pub(super) struct BadEscape {
    pub(super) line: usize,
}

/// A file's text: UTF-8, or else ISO 8859-1, which is what Java itself reads.
pub(super) fn decode(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// The settings in the order of the file; a key may be there twice.
pub(super) fn parse(text: &str) -> Result<Vec<Entry>, BadEscape> {
    let mut lines = natural_lines(text).enumerate();
    let mut entries = Vec::new();
    while let Some((index, first)) = lines.next() {
        let first = first.trim_start_matches(BLANK);
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = first.to_owned();
        while continues(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start_matches(BLANK));
        }
        let line = index + 1;
        let (key, value) = split(&logical).map_err(|BadHex| BadEscape { line })?;
        entries.push(Entry { key, value, line });
    }
    Ok(entries)
}

const BLANK: [char; 3] = [' ', '\t', '\u{c}'];

/// Lines end with `\n`, `\r`, or both.
fn natural_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        line.split('\r')
    })
}

/// Whether an odd number of backslashes ends the line.
fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

struct BadHex;

fn split(line: &str) -> Result<(String, String), BadHex> {
    let mut chars = line.chars().peekable();
    let key = unescape(&mut chars, |c| BLANK.contains(&c) || c == '=' || c == ':')?;
    skip_blank(&mut chars);
    if chars.next_if(|c| *c == '=' || *c == ':').is_some() {
        skip_blank(&mut chars);
    }
    let value = unescape(&mut chars, |_| false)?;
    Ok((key, value))
}

fn skip_blank(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| BLANK.contains(c)).is_some() {}
}

/// Takes characters up to an unescaped one that `ends`, which stays.
fn unescape(
    chars: &mut Peekable<Chars<'_>>,
    ends: impl Fn(char) -> bool,
) -> Result<String, BadHex> {
    let mut text = String::new();
    while let Some(c) = chars.next_if(|c| !ends(*c)) {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('f') => text.push('\u{c}'),
            Some('u') => text.push(utf16(chars)?),
            Some(other) => text.push(other),
            None => {}
        }
    }
    Ok(text)
}

/// What follows `\u`; a second `\u` with the other half where the first is half a character.
fn utf16(chars: &mut Peekable<Chars<'_>>) -> Result<char, BadHex> {
    let high = hex(chars)?;
    if !(0xd800..0xdc00).contains(&high) {
        return Ok(char::from_u32(high.into()).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    let mut ahead = chars.clone();
    if ahead.next() != Some('\\') || ahead.next() != Some('u') {
        return Ok(char::REPLACEMENT_CHARACTER);
    }
    let low = hex(&mut ahead)?;
    match char::decode_utf16([high, low]).next() {
        Some(Ok(whole)) => {
            *chars = ahead;
            Ok(whole)
        }
        Some(Err(_)) | None => Ok(char::REPLACEMENT_CHARACTER),
    }
}

fn hex(chars: &mut Peekable<Chars<'_>>) -> Result<u16, BadHex> {
    let digits: String = chars.by_ref().take(4).collect();
    let plain = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if plain { u16::from_str_radix(&digits, 16).map_err(|_| BadHex) } else { Err(BadHex) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap().into_iter().map(|entry| (entry.key, entry.value)).collect()
    }

    fn one(text: &str) -> (String, String) {
        let [pair] = pairs(text).try_into().unwrap();
        pair
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn separators_comments_and_blanks() {
        for text in ["a=b", "a:b", "a b", " a = b", "a\t:\tb", "a  b", "\u{c}a=b", "a=b\r", "a=b\n"]
        {
            assert_eq!(one(text), pair("a", "b"), "{text:?}");
        }
        assert_eq!(pairs("# no\n! no\n\n   \n  # no\r\n"), []);
        assert_eq!(one("a"), pair("a", ""));
        assert_eq!(one("a = = b "), pair("a", "= b "));
        assert_eq!(one("a=b # c"), pair("a", "b # c"));
        assert_eq!(one("=b"), pair("", "b"));
        assert_eq!(pairs("a=1\rb=2\r\nc=3"), [pair("a", "1"), pair("b", "2"), pair("c", "3")]);
    }

    #[test]
    fn a_line_goes_on_after_a_backslash() {
        assert_eq!(one("a=b,\\\n   c"), pair("a", "b,c"));
        assert_eq!(one("a=b\\\n# c"), pair("a", "b# c"));
        assert_eq!(one("a=b\\\\"), pair("a", "b\\"));
        assert_eq!(one("a=b\\"), pair("a", "b"));
        assert_eq!(pairs("a=b\\\n\nc=d"), [pair("a", "b"), pair("c", "d")]);
        let lines: Vec<_> =
            parse("a=b\\\nc\nd=e").unwrap().iter().map(|entry| entry.line).collect();
        assert_eq!(lines, [1, 3]);
    }

    #[test]
    fn escapes() {
        assert_eq!(one(r"a\=b\:c\ d=\t\n\r\f\q\\"), pair("a=b:c d", "\t\n\r\u{c}q\\"));
        assert_eq!(one(r"a=\u00e9\uD83D\uDE00"), pair("a", "é😀"));
        assert_eq!(one(r"a=\uD83Dx"), pair("a", "\u{fffd}x"));
        assert_eq!(parse("a=b\nc=\\u12"), Err(BadEscape { line: 2 }));
        assert_eq!(parse("c=\\u+123"), Err(BadEscape { line: 1 }));
    }

    #[test]
    fn text_is_utf_8_or_latin_1() {
        assert_eq!(decode("a=é".as_bytes()), "a=é");
        assert_eq!(decode(b"a=\xe9"), "a=é");
        assert_eq!(decode(b"\xef\xbb\xbfa=b"), "a=b");
    }

    /// As `java.util.Properties.store` writes it.
    fn written(text: &str, key: bool) -> String {
        let mut out = String::new();
        for (index, c) in text.chars().enumerate() {
            match c {
                ' ' if key || index == 0 => out.push_str("\\ "),
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\u{c}' => out.push_str("\\f"),
                '=' | ':' | '#' | '!' | '\\' => out.extend(['\\', c]),
                ' '..='~' => out.push(c),
                _ => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(pairs in prop::collection::vec(("(?s).*", "(?s).*"), 0..8)) {
            let text: String = pairs
                .iter()
                .map(|(key, value)| {
                    // A key that is nothing begins no line that Java would write.
                    format!("{}={}\n", written(key, true), written(value, false))
                })
                .collect();
            let read: Vec<_> =
                parse(&text).unwrap().into_iter().map(|entry| (entry.key, entry.value)).collect();
            prop_assert_eq!(read, pairs);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(?s)[a-c=:\\\\ u0-9#!\n\r\t]{0,60}") {
            let _ = parse(&text);
        }
    }
}

//! The primitives at their bounds.

use crate::limits;
use crate::protocol::reader::Reader;

/// Reads one varint and says how many bytes it took.
fn varint(bytes: &[u8]) -> Result<(u32, usize), &'static str> {
    let mut reader = Reader::new(bytes, true);
    let value = reader.varint().map_err(|fault| fault.what)?;
    Ok((value, reader.at()))
}

#[test]
fn a_varint_has_one_spelling() {
    assert_eq!(varint(&[0x00]), Ok((0, 1)));
    assert_eq!(varint(&[0x7f]), Ok((127, 1)));
    assert_eq!(varint(&[0x80, 0x01]), Ok((128, 2)));
    assert_eq!(varint(&[0xff, 0xff, 0xff, 0x7f]), Ok(((1 << 28) - 1, 4)));
    assert_eq!(varint(&[0x80, 0x80, 0x80, 0x80, 0x01]), Ok((1 << 28, 5)));
    assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok((u32::MAX, 5)));

    assert_eq!(varint(&[]), Err("cut short"));
    assert_eq!(varint(&[0x80]), Err("cut short"));
    assert_eq!(varint(&[0x80, 0x00]), Err("varint padded"));
    assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0x1f]), Err("varint too large"));
    assert_eq!(varint(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x01]), Err("varint too long"));
}

#[test]
fn a_string_is_as_long_as_a_classic_one_can_be() {
    let text = |length: u32| {
        let [low, high] = [(length + 1) as u8 | 0x80, ((length + 1) >> 7) as u8 | 0x80];
        let mut bytes = vec![low, high, ((length + 1) >> 14) as u8];
        bytes.resize(bytes.len() + length as usize, b'a');
        Reader::new(&bytes, true).string().map(str::len).map_err(|fault| fault.what)
    };
    let most = limits::STRING_BYTES_MAX;
    assert_eq!(text(most as u32), Ok(most));
    assert_eq!(text(most as u32 + 1), Err("string too long"));
}

#[test]
fn an_array_has_elements_up_to_the_limit_that_fit() {
    let count = |count: usize, follow: usize, element_min: usize| {
        let mut bytes = u32::try_from(count).expect("short").to_be_bytes().to_vec();
        bytes.resize(bytes.len() + follow, 0);
        Reader::new(&bytes, false).array_len(element_min).map_err(|fault| fault.what)
    };
    let most = limits::ARRAY_ELEMENTS_MAX;
    assert_eq!(count(most, most, 1), Ok(most));
    assert_eq!(count(most + 1, most + 1, 1), Err("array too long"));
    assert_eq!(count(5, 20, 4), Ok(5));
    assert_eq!(count(5, 19, 4), Err("count beyond the bytes that remain"));
    assert_eq!(count(1, 0, 0), Err("count beyond the bytes that remain"));
    assert_eq!(count(0, 0, 4), Ok(0));
}

#[test]
fn a_tagged_field_ends_where_its_size_says() {
    // Tag 3 of two bytes, then a byte that is not part of it.
    let bytes = [1, 3, 2, 0x12, 0x34, 0x56];
    let mut reader = Reader::new(&bytes, true);
    let mut tags = reader.tags().expect("a count");
    let (tag, mut field) = tags.next(&mut reader).expect("a field").expect("one");
    assert_eq!((tag, field.at(), field.remaining()), (3, 3, 2));
    assert_eq!(field.i32().expect_err("too far").what, "cut short");
    assert_eq!(field.i16(), Ok(0x1234));
    assert_eq!(field.finish(), Ok(()));
    assert!(tags.next(&mut reader).expect("the end").is_none());
    assert_eq!(reader.i8(), Ok(0x56));
}

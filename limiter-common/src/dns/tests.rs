//! The walk of a question's name and its hashes, against a plain reading.

extern crate std;

use std::{vec, vec::Vec};

use proptest::prelude::*;

use super::{
    InlineNameLoops, MOST_BYTES, Message,
    ends::{hash, sum},
    walk,
};
use crate::{
    name_hash::{NameKeys, hash_of_name, unkeyed_hash},
    table::HashKey,
};

const KEY: HashKey = HashKey {
    first: 0x0706_0504_0302_0100,
    second: 0x0f0e_0d0c_0b0a_0908,
};

/// The offset of questions.
const HEADER: usize = 12;

/// Returns a message of these bytes.
fn message(bytes: &[u8]) -> Message {
    let mut message = Message::EMPTY;
    let length = bytes.len().min(MOST_BYTES);
    // Bytes left behind by an earlier message.
    message.begin(0).fill(0xa5);
    message.begin(length as u64)[..length].copy_from_slice(&bytes[..length]);
    message
}

/// Returns a query with a question that starts with these bytes.
fn query(question: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    bytes.extend(question);
    bytes
}

/// Returns the labels of the name in a message's first question, by a plain reading of RFC 1035.
fn labels(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut labels = Vec::new();
    let mut rest = bytes.get(HEADER..)?;
    loop {
        let (length, behind) = rest.split_first()?;
        if *length > 63 {
            return None;
        }
        if *length == 0 {
            rest = behind;
            break;
        }
        labels.push(behind.get(..usize::from(*length))?);
        rest = &behind[usize::from(*length)..];
    }
    let on_the_wire = labels.iter().map(|label| label.len() + 1).sum::<usize>() + 1;
    (on_the_wire <= 255 && rest.len() >= 4).then_some(labels)
}

/// Returns labels as they are on the wire, in lower case.
fn wire(labels: &[&[u8]]) -> Vec<u8> {
    let mut wire = Vec::new();
    for label in labels {
        wire.push(u8::try_from(label.len()).unwrap());
        wire.extend(label.to_ascii_lowercase());
    }
    wire.push(0);
    wire
}

/// Checks that a message has the question of a plain reading.
fn check_question(bytes: &[u8], message: &mut Message) {
    let is_query = bytes.len() >= HEADER && bytes[2] & 0x80 == 0 && bytes[4..6] == [0, 1];
    let asked = labels(bytes).filter(|_| is_query);
    let question = message.question();
    assert_eq!(question.is_some(), asked.is_some(), "{bytes:x?}");
    let (Some(question), Some(asked)) = (question, asked) else {
        return;
    };
    assert_eq!(question.name.to_ascii_lowercase(), wire(&asked));
    assert!(bytes[HEADER..].starts_with(question.name));
    let behind = &bytes[HEADER + question.name.len()..];
    let numbers = [question.of_type, question.class].map(u16::to_be_bytes);
    assert!(behind.starts_with(numbers.as_flattened()), "{bytes:x?}");
}

/// Checks the walk over a message, and the hash of each end of its name.
fn check(bytes: &[u8]) {
    let keys = NameKeys::new(&KEY);
    let mut message = message(bytes);
    check_question(bytes, &mut message);
    let walked = walk(&mut message);
    let Some(labels) = labels(bytes) else {
        assert_eq!(walked, 0, "{bytes:x?}");
        return;
    };
    let (end, count) = ((walked >> 32) as usize, (walked & 0xffff_ffff) as usize);
    assert_eq!(count, labels.len(), "{bytes:x?}");
    assert_eq!(end, HEADER + wire(&labels).len(), "{bytes:x?}");
    let end = u32::try_from(end).unwrap();
    let start = message.label(0);
    sum(&keys, &mut message, start, end, &InlineNameLoops);
    for first in 0..count {
        let start = message.label(first as u64);
        let hash = hash(&keys, &message, start, end, &InlineNameLoops);
        assert_eq!(hash, hash_of_name(&keys, &wire(&labels[first..])));
    }
}

/// A name of 255 bytes on the wire, and one of 256.
#[test]
fn the_longest_name() {
    for (last, is_name) in [(61, true), (62, false)] {
        let mut question = Vec::new();
        for length in [63, 63, 63, last] {
            question.push(length);
            question.extend(std::iter::repeat_n(b'x', length.into()));
        }
        question.extend([0, 0, 1, 0, 1]);
        let bytes = query(&question);
        assert_eq!(labels(&bytes).is_some(), is_name);
        check(&bytes);
    }
    // And one of as many labels as possible.
    let mut question: Vec<u8> = [1, b'a'].repeat(127);
    question.extend([0, 0, 1, 0, 1]);
    assert_eq!(labels(&query(&question)).unwrap().len(), 127);
    check(&query(&question));
}

#[test]
fn what_is_no_name() {
    for question in [
        // Compressed; to itself, too.
        &b"\xc0\x0c\0\x01\0\x01"[..],
        b"\x03www\xc0\x0c\0\x01\0\x01",
        // Reserved kinds of labels.
        b"\x40a\0\0\x01\0\x01",
        b"\x80a\0\0\x01\0\x01",
        // Cut short: in the name, before the type, in the class.
        b"\x03www\x07exam",
        b"\x03www\0",
        b"\x03www\0\0\x01\0",
        b"",
    ] {
        let bytes = query(question);
        assert_eq!(walk(&mut message(&bytes)), 0, "{question:x?}");
        check(&bytes);
    }
}

#[test]
fn letters_alone_are_folded() {
    for byte in 0..=255_u8 {
        let mut question = vec![9];
        question.extend([byte; 9]);
        question.extend([0, 0, 1, 0, 1]);
        check(&query(&question));
    }
    let keys = NameKeys::new(&KEY);
    let hash = |name: &[u8]| hash_of_name(&keys, name);
    assert_eq!(hash(b"\x07EXAMPLE\x03Com\0"), hash(b"\x07example\x03com\0"));
    assert_ne!(hash(b"\x07example\x03com\0"), hash(b"\x07example\x03net\0"));
    // Labels are part of it.
    assert_ne!(hash(b"\x03a.b\0"), hash(b"\x01a\x01b\0"));
}

/// The standard library's hasher is the same function, with a key of zeros.
#[test]
fn a_names_unkeyed_hash_is_siphash() {
    use std::hash::{DefaultHasher, Hasher as _};
    for name in [
        &b"\0"[..],
        b"\x03com\0",
        b"\x07example\x03com\0",
        b"\x05eight\0\0",
    ] {
        let mut hasher = DefaultHasher::new();
        hasher.write(name);
        assert_eq!(unkeyed_hash(name), hasher.finish());
    }
}

proptest! {
    #[test]
    fn names_are_read_as_a_plain_reading_does(
        labels in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..70), 0..9),
        kind: [u8; 4],
        cut in 0..300_usize,
    ) {
        let mut question = Vec::new();
        for label in &labels {
            question.push(u8::try_from(label.len()).unwrap());
            question.extend(label);
        }
        question.push(0);
        question.extend(kind);
        let bytes = query(&question);
        check(&bytes);
        check(&bytes[..cut.min(bytes.len())]);
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes);
    }

    /// Small labels, so that many names end.
    #[test]
    fn any_small_bytes(bytes in proptest::collection::vec(0..5_u8, 0..400)) {
        check(&bytes);
    }
}

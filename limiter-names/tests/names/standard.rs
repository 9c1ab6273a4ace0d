//! The examples in the standards, byte for byte.

use limiter_names::{
    Protocol, Reader, Segment, Settings,
    testing::{Initial, Version},
};

use super::{assert_named, flow};

/// The frame of RFC 9001, A.2, and RFC 9369, A.2: a hello for example.com.
const FRAME: &str = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69\
    484c00000413011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d0017\
    001800100007000504616c706e000500050100000000003300260024001d00209370b2c9caa47fbabaf4559fedba753d\
    e171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e0403050306030203080408050806002d000201\
    01001c00024001003900320408ffffffffffffffff05048000ffff07048000ffff0801100104800075300901100f0883\
    94c8f03e51570806048000ffff";

const CONNECTION: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        let text = str::from_utf8(pair).expect("digits are text");
        u8::from_str_radix(text, 16).expect("two digits are a byte")
    };
    digits.chunks(2).map(byte).collect()
}

/// Makes the packet of a standard and reads it. Also compares its beginning, and its end, which
/// depends on all bytes before.
#[track_caller]
fn assert_read(version: Version, begin: &str, end: &str) {
    let initial = Initial {
        version,
        keyed_by: &CONNECTION,
        connection: &CONNECTION,
        token: &[],
        number: 2,
    };
    let packet = initial.sealed(&bytes(FRAME), 1200);
    let (begin, end) = (bytes(begin), bytes(end));
    assert!(packet.starts_with(&begin), "{packet:02x?}");
    assert!(packet.ends_with(&end), "{packet:02x?}");
    let mut reader = Reader::new(Settings::default());
    let segment = Segment::Udp { payload: &packet };
    let outcome = reader.feed(0, flow(Protocol::Udp), segment);
    assert_named(outcome.as_ref(), "example.com");
}

#[test]
fn version_1() {
    let begin = "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9b";
    assert_read(Version::One, begin, "e221af44860018ab0856972e194cd934");
}

#[test]
fn version_2() {
    let begin = "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485dd04de806071bf03\
        dceebfa162e75d6c96058bdbfb127cdfcbf903388e99ad04";
    assert_read(Version::Two, begin, "a18b2faa745b6fe189cf772a9f84cbfc");
}

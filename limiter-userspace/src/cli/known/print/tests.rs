use jiff::Timestamp;

use super::*;
use crate::protocol::known::ShortageStatus;

const MINUTE_NS: u64 = 60_000_000_000;
const DAY_NS: u64 = 1_440 * MINUTE_NS;

fn proven(source: &str) -> SourceStatus {
    SourceStatus {
        source: source.parse().unwrap(),
        standing: Standing::Proven,
        by: Some(KnownBy::Handshake),
        list: None,
        since: Some(Timestamp::UNIX_EPOCH),
        since_ns: Some(3 * DAY_NS),
        until: None,
        ends_in_ns: None,
        last_visit: Some(Timestamp::UNIX_EPOCH),
        last_visit_ns: Some(61_500_000_000),
        visits: 0,
    }
}

fn text(print: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    print(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_newest_in_eighty_columns() {
    let vouched = SourceStatus {
        by: Some(KnownBy::Operator),
        since: None,
        since_ns: None,
        until: Some(Timestamp::UNIX_EPOCH),
        ends_in_ns: Some(719 * DAY_NS / 24),
        ..proven("ffff:ffff:ffff:ffff::/64")
    };
    let list = KnownList {
        capacity: 1_000_000,
        standings: [("proven".to_owned(), 12_000), ("unknown".to_owned(), 3)].into(),
        vouched: 1,
        shortage: Some(ShortageStatus {
            since: Timestamp::UNIX_EPOCH,
            lasts_ns: 3 * MINUTE_NS,
        }),
        handshakes_unseen: None,
        newest: vec![vouched, proven("192.0.2.1/32")],
    };
    let told = text(|out| super::list(out, &list));
    assert_eq!(
        told,
        "\
SHORTAGE since 1970-01-01T00:00:00Z, for 3 min
12 003 known sources of up to 1 000 000, 1 of them vouched for

standing  sources
proven     12 000
familiar        0
fresh           0
retried         0
unknown         3

newest                    standing  by         since           last visit
ffff:ffff:ffff:ffff::/64  proven    operator   29.9 days left  1.02 min ago
192.0.2.1                 proven    handshake  3 days ago      1.02 min ago
"
    );
    assert!(told.lines().all(|line| line.chars().count() <= 80));
    let calm = KnownList {
        shortage: None,
        vouched: 0,
        newest: Vec::new(),
        handshakes_unseen: Some("why".to_owned()),
        ..list
    };
    let told = text(|out| super::list(out, &calm));
    let begins = "HANDSHAKES NOT SEEN: why\nno shortage\n12 003 known sources of up to 1 000 000\n";
    assert!(told.starts_with(begins), "{told}");
    assert!(!told.contains("newest"), "{told}");
}

#[test]
fn one_source() {
    let told = |address: &str, told: &SourceStatus| {
        text(|out| source(out, address.parse().unwrap(), told))
    };
    assert_eq!(
        told("192.0.2.1", &proven("192.0.2.1/32")),
        "\
192.0.2.1 is proven: it completed a handshake
  since       1970-01-01T00:00:00Z (3 days ago)
  last visit  1970-01-01T00:00:00Z (1.02 min ago)
"
    );
    let nothing = SourceStatus {
        standing: Standing::Unknown,
        by: None,
        since: None,
        since_ns: None,
        last_visit: None,
        last_visit_ns: None,
        ..proven("2001:db8::/64")
    };
    assert_eq!(
        told("2001:db8::7", &nothing),
        "2001:db8::/64, the source of 2001:db8::7, is unknown: nothing is known of it\n"
    );
    let listed = SourceStatus {
        by: Some(KnownBy::List),
        list: Some("office".to_owned()),
        since: None,
        ..proven("192.0.2.1/32")
    };
    let expected = "192.0.2.1 is proven: it is on the list office\n  last visit  ";
    assert!(told("192.0.2.1", &listed).starts_with(expected));
    let visited = SourceStatus {
        standing: Standing::Unknown,
        by: Some(KnownBy::Visits),
        visits: 2,
        ..proven("192.0.2.1/32")
    };
    let told = told("192.0.2.1", &visited);
    assert!(told.starts_with("192.0.2.1 is unknown: it came, on too few occasions yet\n"));
    assert!(told.ends_with("  occasions   2\n"), "{told}");
}

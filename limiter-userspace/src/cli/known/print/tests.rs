use limiter_protocol::ShortageStatus;

use super::*;

const MINUTE_NS: u64 = 60_000_000_000;
const DAY_NS: u64 = 1_440 * MINUTE_NS;

fn proven(source: &str) -> StandingExplanation {
    StandingExplanation {
        source: source.parse().unwrap(),
        standing: Standing::Proven,
        why: StandingReason::Handshake,
        fresh: false,
        visits: 0,
        gained_ago_ns: Some(3 * DAY_NS),
        ends_in_ns: None,
        last_visit_ago_ns: Some(61_500_000_000),
        shortage: None,
    }
}

fn text(print: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    print(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_newest_in_eighty_columns() {
    let trusted = StandingExplanation {
        why: StandingReason::Trusted,
        gained_ago_ns: None,
        ends_in_ns: Some(719 * DAY_NS / 24),
        ..proven("ffff:ffff:ffff:ffff::/64")
    };
    let list = KnownList {
        capacity: 1_000_000,
        standings: [("proven".to_owned(), 12_000), ("unknown".to_owned(), 3)].into(),
        trusted: 1,
        shortage: Some(ShortageStatus {
            began_ago_ns: 3 * MINUTE_NS,
            last_refused_ago_ns: 30_000_000_000,
        }),
        handshakes_error: None,
        newest: vec![trusted, proven("192.0.2.1/32")],
    };
    let reported = text(|out| super::list(out, &list));
    assert_eq!(
        reported,
        "\
SHORTAGE for 3 min: packets are refused for reserves, last 30 s ago
12 003 known sources of up to 1 000 000, 1 of them trusted

standing     sources
proven        12 000
familiar           0
fresh              0
retried            0
unknown yet        3

newest                    standing  by         gained          last seen
ffff:ffff:ffff:ffff::/64  proven    operator   29.9 days left  1.02 min ago
192.0.2.1                 proven    handshake  3 days ago      1.02 min ago
"
    );
    assert!(reported.lines().all(|line| line.chars().count() <= 80));
    let calm = KnownList {
        shortage: None,
        trusted: 0,
        newest: Vec::new(),
        handshakes_error: Some("why".to_owned()),
        ..list
    };
    let reported = text(|out| super::list(out, &calm));
    let begins = "HANDSHAKES PROVE NO SOURCE: why\n\
                  no shortage: no packet is refused for a reserve\n\
                  12 003 known sources of up to 1 000 000\n";
    assert!(reported.starts_with(begins), "{reported}");
    assert!(!reported.contains("newest"), "{reported}");
}

#[test]
fn one_source() {
    let reported = |address: &str, reported: &StandingExplanation| {
        text(|out| source(out, address.parse().unwrap(), reported))
    };
    assert_eq!(
        reported("192.0.2.1", &proven("192.0.2.1/32")),
        "\
192.0.2.1 is proven:
  it completed a TCP handshake or sent a valid DNS cookie
  gained 3 days ago
  last seen 1.02 min ago
"
    );
    let trusted = StandingExplanation {
        why: StandingReason::Trusted,
        gained_ago_ns: None,
        last_visit_ago_ns: None,
        ends_in_ns: Some(DAY_NS / 2),
        ..proven("2001:db8::/64")
    };
    assert_eq!(
        reported("2001:db8::7", &trusted),
        "\
2001:db8::/64, the source of 2001:db8::7, is proven:
  an operator trusts it
  ends in 12 h
"
    );
    let nothing = StandingExplanation {
        standing: Standing::Unknown,
        why: StandingReason::Nothing,
        ends_in_ns: None,
        ..trusted
    };
    let expected =
        "2001:db8::/64, the source of 2001:db8::7, is unknown:\n  nothing is known of it\n";
    assert_eq!(reported("2001:db8::7", &nothing), expected);
}

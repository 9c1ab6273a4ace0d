//! Keys that are zones or DNS questions are shown by the names in the capture, with both engines.

use anyhow::Result;
use serde_json::{Value, json};
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

use crate::command::replay;

const RATE: &str = "cost: packets, burst: 2, count: 1, period: 1h";

/// Returns a query for a name in wire format, with this type and class.
fn query(name: &[u8], [of_type, class]: [u16; 2]) -> Vec<u8> {
    let header = [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let last = [of_type, class].map(u16::to_be_bytes);
    [&header, name, last.as_flattened()].concat()
}

/// Replays messages to port 53 under a configuration, and checks the key shown for each.
fn check(configuration: &str, messages: &[(Vec<u8>, Value)]) -> Result<()> {
    let frame = Frame::new("10.0.0.1".parse()?, "10.9.9.9".parse()?);
    let packets = messages.iter().map(|(message, _)| {
        let frame = frame.udp(40_000, 53, message)?;
        Ok(Packet::whole(0, frame))
    });
    let capture = PCAP.write(&packets.collect::<Result<Vec<_>>>()?);
    for engine in ["native", "kernel"] {
        let replayed = replay(
            configuration,
            &capture,
            false,
            &["--json", "--engine", engine],
        )?;
        assert!(replayed.success, "{}", replayed.stderr);
        let mut lines = replayed.lines()?;
        lines.pop();
        let reported: Vec<_> = lines.iter().map(|line| &line["id"]).collect();
        let expected: Vec<_> = messages.iter().map(|(_, id)| id).collect();
        assert_eq!(reported, expected, "{engine}");
    }
    Ok(())
}

#[test]
fn questions() -> Result<()> {
    let reply = {
        let mut message = query(b"\x07example\0", [1, 1]);
        message[2] |= 0x80;
        message
    };
    check(
        &format!("limits: {{Questions: {{id: question, {RATE}}}}}\n"),
        &[
            (
                query(b"\x03wWw\x07Example\0", [1, 1]),
                json!("www.example A"),
            ),
            (
                query(b"\x03www\x07example\0", [16, 1]),
                json!("www.example TXT"),
            ),
            (
                query(b"\x07version\x04bind\0", [16, 3]),
                json!("version.bind CLASS3 TXT"),
            ),
            (query(b"\0", [255, 1]), json!(". ANY")),
            // Bytes that no host name has are shown escaped, so that none can control the terminal.
            (
                query(b"\x06\x1b[31m\"\x03a.b\0", [1, 1]),
                json!(r#"\027[31m".a\.b A"#),
            ),
            // No limit counts a message without a question.
            (reply, Value::Null),
            (b"no message".to_vec(), Value::Null),
        ],
    )
}

/// The key shown is that of the strictest limit, even if other limits count by question or zone.
#[test]
fn zones_beside_questions() -> Result<()> {
    let www = || query(b"\x03www\x07example\0", [1, 1]);
    check(
        &format!(
            "zones: [Example., x.example]\nlimits:\n  Questions: {{id: question, {RATE}}}\n  \
             Zones: {{id: zone, cost: packets, burst: 4, count: 2, period: 1h}}\n  \
             PacketsPerIPAddress: {{burst: 5, count: 1, period: 1h}}\n"
        ),
        &[
            (www(), json!("www.example A")),
            (www(), json!("www.example A")),
            (query(b"\x01a\x07example\0", [1, 1]), json!("a.example A")),
            // The zone's last token; the question has one left.
            (query(b"\x01b\x07example\0", [1, 1]), json!("example")),
            (query(b"\x01c\x07example\0", [1, 1]), json!("example")),
            // The address's last token.
            (query(b"\x01y\x01x\x07example\0", [1, 1]), json!("10.0.0.1")),
            (query(b"\x01y\x01x\x07example\0", [1, 1]), json!("10.0.0.1")),
        ],
    )
}

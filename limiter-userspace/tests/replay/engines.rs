//! A random capture through both engines: the outputs are equal byte for byte.

use anyhow::Result;
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use testbed::{
    Frame, Tag,
    capture::{Container, Format, PCAP, PCAPNG, Packet},
};

use crate::command::replay;

const PACKETS: usize = 1_500;

const CONFIG: &str = r#"
limits:
  PacketsPerIPAddress: {burst: 5, count: 700, period: 1s}
  PacketsPerIPv6Range: {burst: 9, count: 1100, period: 1s}
  PacketsPerIPv4Range: {burst: 12, count: 1300, period: 1s}
  BytesPerIPAddress: {burst: 2000, count: 300000, period: 1s}
  BytesPerIPv6Range: {burst: 4000, count: 777777, period: 1s}
  NewConnectionsPerIPAddress: {burst: 2, count: 90, period: 1s}
overrides:
  - PacketsPerIPAddress: {burst: 50, count: 7, period: 7777777ns, ids: [10.0.0.1, "2001:db8::1"]}
  - BytesPerIPAddress: {burst: 1514, count: 1000, period: 1ms, ids: [10.0.1.1]}
  - BytesPerIPv6Range: {burst: 1600, count: 1, period: 1us, ids: ["2001:db8:1::/48"]}
"#;

/// Refused packets get an answer, as long as the answers' buckets have tokens.
const ANSWERED: &str = "\
answers: {per-prefix: {burst: 9, count: 300, period: 1s}, total: {burst: 30, count: 500, period: 1s}}
limits:
  PacketsPerIPAddress: {burst: 5, count: 700, period: 1s, deny: prohibited}
  BytesPerIPAddress: {burst: 2000, count: 300000, period: 1s, deny: prohibited}
  NewConnectionsPerIPAddress: {burst: 2, count: 90, period: 1s, deny: reset}
";

fn source() -> impl Strategy<Value = std::net::IpAddr> {
    prop_oneof![
        (0u8..2, 0u8..4).prop_map(|(net, host)| [10, 0, net, host].into()),
        (0u16..2, 0u16..4).prop_map(|(net, host)| [0x2001, 0xdb8, net, 0, 0, 0, 0, host].into()),
    ]
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    // Mostly within one page, sometimes across several.
    let payload = prop_oneof![9 => 0usize..2_000, 1 => 2_000usize..9_000];
    let good = (source(), any::<bool>(), 0usize..3, payload);
    let good = good.prop_map(|(source, tcp, tags, payload)| {
        let destination = if source.is_ipv4() {
            [10, 9, 9, 9].into()
        } else {
            [0x2001, 0xdb8, 99, 0, 0, 0, 0, 1].into()
        };
        let mut frame = Frame::new(source, destination);
        for _ in 0..tags {
            frame = frame.tagged(Tag::Customer(5));
        }
        let bytes = if tcp {
            frame.tcp_syn(1, 2, 0)
        } else {
            frame.udp(1, 2, &vec![0; payload])
        };
        bytes.expect("a frame of one family")
    });
    let spoilt = prop::option::weighted(0.2, (any::<prop::sample::Index>(), any::<u8>()));
    let short = prop::option::weighted(0.1, any::<prop::sample::Index>());
    (good, spoilt, short).prop_map(|(mut frame, spoilt, short)| {
        if let Some((position, value)) = spoilt {
            let headers = frame.len().min(80);
            frame[position.index(headers)] = value;
        }
        if let Some(position) = short {
            // Some frames are shorter than the kernel accepts.
            frame.truncate(1 + position.index(frame.len()));
        }
        frame
    })
}

/// Some captures have a snapshot length.
fn packets(step: impl Strategy<Value = i64>) -> impl Strategy<Value = Vec<Packet>> {
    let cut = prop::option::weighted(0.2, 0usize..120);
    prop::collection::vec((step, frame(), cut), PACKETS).prop_map(|packets| {
        let mut now = 1_700_000_000_000_000_000_u64;
        packets
            .into_iter()
            .map(|(step, frame, cut)| {
                now = now.saturating_add_signed(step);
                let packet = Packet::whole(now, frame);
                match cut {
                    Some(captured) => packet.cut_to(captured),
                    None => packet,
                }
            })
            .collect()
    })
}

#[test]
fn both_engines_print_the_same() -> Result<()> {
    // Times sometimes go back.
    let step = prop_oneof![9 => 0i64..3_000_000, 1 => -2_000_000i64..0];
    assert_same(CONFIG, &packets(step)).map(drop)
}

#[test]
fn both_engines_answer_the_same() -> Result<()> {
    // The answers' buckets have the same keys. The times must not go back: the kernel forgets full
    // buckets, which would then show.
    let printed = assert_same(ANSWERED, &packets(0i64..3_000_000))?;
    for answer in ["prohibited", "reset"] {
        assert!(printed.contains(answer), "{printed}");
    }
    Ok(())
}

/// Returns the last line of both outputs.
fn assert_same(config: &str, packets: &impl Strategy<Value = Vec<Packet>>) -> Result<String> {
    let mut runner = TestRunner::default();
    let mut printed = String::new();
    for container in [Container::Pcap, Container::Pcapng] {
        let format = Format {
            container,
            ..PCAPNG
        };
        let tree = packets
            .new_tree(&mut runner)
            .expect("the strategy rejects nothing");
        let capture = format.write(&tree.current());
        for output in [&["--json"][..], &[]] {
            let native = replay(config, &capture, false, output)?;
            let kernel = replay(
                config,
                &capture,
                true,
                &[output, &["--engine", "kernel"]].concat(),
            )?;
            assert!(native.success, "{}", native.stderr);
            assert!(kernel.success, "{}", kernel.stderr);
            for (native, kernel) in native.stdout.lines().zip(kernel.stdout.lines()) {
                assert_eq!(native, kernel);
            }
            assert_eq!(native.stdout, kernel.stdout);
            printed = native.stdout;
        }
    }
    Ok(printed)
}

#[test]
fn frames_that_the_kernel_cannot_run_end_its_replay() -> Result<()> {
    let frame = Frame::new("10.0.0.2".parse()?, "10.0.0.1".parse()?);
    // One page less the room around the frame, and 17 more pages, mostly padding.
    let mut longest = frame.udp(1, 2, &[0; 9_000])?;
    longest.resize(3_520 + 17 * 4_096, 0);
    let longer = [&longest[..], &[0]].concat();
    let packets = [Packet::whole(0, longest), Packet::whole(0, longer)];
    let config = "limits: {PacketsPerIPAddress: {burst: 5, count: 1, period: 1s}}\n";
    let capture = PCAP.write(&packets);
    let kernel = replay(config, &capture, false, &["--json", "--engine", "kernel"])?;
    assert!(!kernel.success);
    assert_eq!(
        kernel.stderr,
        "{\"level\":\"error\",\"message\":\"packet 2: the frame has 73153 bytes, but the kernel runs a \
         program on at most 73152: replay it with `--engine native`\"}\n"
    );
    let first = &kernel.lines()?[0];
    assert_eq!(first["remaining"], 4, "{first}");
    assert!(replay(config, &capture, false, &[])?.success);
    Ok(())
}

//! Limits that count datagrams by the name of their QUIC flow: both engines count alike.

use anyhow::Result;
use limiter_common::{
    address::Address,
    connection::Ends,
    reason::Reason::{OverLimit, Unlimited, WithinLimits},
};
use limiter_policy::config::Store;

use crate::server_names::{ENDS, Scene, scenes};

const RATE: &str = "cost: packets, burst: 1, count: 1, period: 1h";

/// In nanoseconds.
const MINUTE: u64 = 60_000_000_000;

#[test]
fn a_limit_counts_the_flows_with_its_names() -> Result<()> {
    let text = format!(
        "limits: {{B: {{id: total, {RATE}, match: {{server-name: '*.b.example', protocol: [tcp, udp]}}}}}}\n"
    );
    scenes(&text, |mut scene| {
        assert_eq!(scene.send_datagram(1)?, Unlimited);
        scene.ask_by_quic(1, "a.example")?;
        scene.ask_by_quic(2, "x.b.example")?;
        scene.ask_by_quic(3, "y.b.example")?;
        for (port, reason) in [
            (2, WithinLimits),
            (2, OverLimit),
            (3, OverLimit),
            (1, Unlimited),
        ] {
            assert_eq!(scene.send_datagram(port)?, reason, "{port}");
        }
        // A TCP connection with the same ports is separate.
        assert_eq!(scene.send(2)?, Unlimited);
        scene.ask(4, "x.b.example")?;
        assert_eq!(scene.send_datagram(4)?, Unlimited);
        assert_eq!(scene.send(4)?, OverLimit);
        Ok(())
    })
}

#[test]
fn each_name_has_a_bucket_for_both_protocols_and_overrides() -> Result<()> {
    let text = format!(
        "server-names: [a.example, b.example]\n\
         limits: {{Names: {{id: server-name, {RATE}, match: {{protocol: [tcp, udp]}}}}}}\n\
         overrides: [{{Names: {{burst: 2, count: 1, period: 1h, ids: [b.example]}}}}]\n"
    );
    scenes(&text, |mut scene| {
        for port in [1, 2] {
            scene.ask(port, "a.example")?;
            scene.ask_by_quic(port, "b.example")?;
        }
        scene.ask_by_quic(3, "www.a.example")?;
        assert_eq!(scene.send(1)?, WithinLimits);
        assert_eq!(scene.send_datagram(3)?, OverLimit);
        assert_eq!(scene.send_datagram(1)?, WithinLimits);
        assert_eq!(scene.send_datagram(2)?, WithinLimits);
        assert_eq!(scene.send_datagram(2)?, OverLimit);
        Ok(())
    })
}

#[test]
fn what_no_other_limit_counts_is_counted_by_protocol() -> Result<()> {
    let text = format!(
        "limits:\n  \
         A: {{id: total, {RATE}, match: {{server-name: a.example, protocol: tcp}}}}\n  \
         Others: {{id: total, {RATE}, otherwise: true, match: {{server-name: '*', protocol: udp}}}}\n"
    );
    scenes(&text, |mut scene| {
        scene.ask(1, "a.example")?;
        scene.ask(2, "c.example")?;
        scene.ask_by_quic(1, "a.example")?;
        scene.ask_by_quic(2, "c.example")?;
        for (port, reason) in [(1, WithinLimits), (1, OverLimit), (2, Unlimited)] {
            assert_eq!(scene.send(port)?, reason, "{port}");
        }
        for (port, reason) in [(1, WithinLimits), (2, OverLimit), (3, Unlimited)] {
            assert_eq!(scene.send_datagram(port)?, reason, "{port}");
        }
        Ok(())
    })
}

#[test]
fn nothing_is_held_and_another_policys_names_count_for_nothing() -> Result<()> {
    let text = format!(
        "limits: {{B: {{id: total, {RATE}, match: {{server-name: b.example, protocol: udp}}}}}}\n\
         names: {{tls: {{until-known: hold}}}}\n"
    );
    scenes(&text, |mut scene| {
        let mut meaning = scene.engines.quic_meaning("b.example");
        meaning.compiled_by ^= 1;
        let ends = scene.ends(1);
        scene.engines.name_quic(ends, meaning, 0)?;
        for port in [1, 1, 2] {
            assert_eq!(scene.send_datagram(port)?, Unlimited);
        }
        scene.ask_by_quic(1, "b.example")?;
        assert_eq!(scene.send_datagram(1)?, WithinLimits);
        assert_eq!(scene.send_datagram(1)?, OverLimit);
        Ok(())
    })
}

#[test]
fn a_flow_ends_when_nothing_was_heard_of_it_for_two_minutes() -> Result<()> {
    let text = format!(
        "limits: {{B: {{id: total, {RATE}, match: {{server-name: b.example, protocol: udp}}}}}}\n"
    );
    scenes(&text, |mut scene| {
        scene.ask_by_quic(1, "b.example")?;
        assert_eq!(scene.send_datagram(1)?, WithinLimits);
        for _ in 0..3 {
            scene.time += 2 * MINUTE - 2_000_000_000;
            assert_eq!(scene.send_datagram(1)?, OverLimit);
        }
        scene.time += 2 * MINUTE;
        assert_eq!(scene.send_datagram(1)?, Unlimited);
        scene.ask_by_quic(1, "b.example")?;
        assert_eq!(scene.send_datagram(1)?, OverLimit);
        Ok(())
    })
}

/// A forger makes more flows than there are entries, and never uses them again. Live flows keep their
/// entries.
#[test]
fn forged_flows_do_not_drive_out_those_that_live() -> Result<()> {
    let text = format!(
        "limits: {{B: {{id: total, {RATE}, match: {{server-name: b.example, protocol: udp}}}}}}\n"
    );
    let mut scene = Scene::new(&text, Store::Table, ENDS[0])?;
    for port in 1..=100 {
        scene.ask_by_quic(port, "b.example")?;
    }
    scene.send_datagram(1)?;
    let meaning = scene.engines.quic_meaning("b.example");
    let server = Address::v4([198, 51, 100, 1]);
    for number in 0..400_000_u32 {
        let peer = Address::v4((0x0b00_0000 + number).to_be_bytes());
        let ends = Ends::new(&peer, 4000, &server, 443);
        scene.engines.name_quic_in_kernel(ends, meaning)?;
        // Each live flow is active three times while all entries are taken anew.
        if number % 400 == 0 {
            let port = u16::try_from(number / 400 % 100)? + 1;
            assert_eq!(scene.send_datagram(port)?, OverLimit, "{port}, {number}");
        }
    }
    Ok(())
}

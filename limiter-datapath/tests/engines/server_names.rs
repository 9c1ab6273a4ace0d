//! Limits that count packets by the name of their connection: both engines count alike.

use std::{collections::HashMap, net::IpAddr};

use anyhow::{Result, anyhow};
use limiter_common::{
    connection::Ends,
    packet::PROTOCOL_TCP,
    reason::Reason,
    server_name::{FlowRecord, Meaning, Records},
};
use limiter_policy::config::{self, Store};
use testbed::Frame;

use crate::engine::Engines;

use Reason::{
    NameAwaited, NameContradicted, OverLimit, TooManyConnections, Unlimited, WithinLimits,
};

const RATE: &str = "cost: packets, burst: 1, count: 1, period: 1h";

/// The offset of the IP header, behind Ethernet's header.
const IP: usize = 14;

/// A client of a web server.
pub(crate) struct Scene {
    pub(crate) engines: Engines,
    frame: Frame,
    ends: [IpAddr; 2],
    pub(crate) time: u64,
}

impl Scene {
    pub(crate) fn new(text: &str, store: Store, ends: [&str; 2]) -> Result<Self> {
        let config = config::parse(text, "test").map_err(|errors| anyhow!("{errors}"))?;
        let [client, server]: [IpAddr; 2] = [ends[0].parse()?, ends[1].parse()?];
        Ok(Self {
            engines: Engines::with(&config.policy, store)?,
            frame: Frame::new(client, server),
            ends: [client, server],
            time: 0,
        })
    }

    pub(crate) fn ends(&self, port: u16) -> Ends {
        let [client, server] = self.ends;
        Ends::new(&client.into(), port, &server.into(), 443)
    }

    /// Has a connection from a port ask for a name.
    pub(crate) fn ask(&mut self, port: u16, name: &str) -> Result<()> {
        let mut flow = self.engines.flow_with_name(name);
        // Each connection has its own socket.
        flow.cookie = port.into();
        Ok(self.engines.name(self.ends(port), flow)?)
    }

    /// The outcome of data from a port.
    pub(crate) fn send(&mut self, port: u16) -> Result<Reason> {
        let frame = self.frame.tcp_data(port, 443, (1, 1), b"x")?;
        self.time += 1;
        Ok(self.engines.judge(self.time, &frame))
    }

    /// The outcome of data from a port; `sequence`: the number of its first byte.
    fn send_at(&mut self, port: u16, sequence: u32, data: &[u8]) -> Result<Reason> {
        let frame = self.frame.tcp_data(port, 443, (sequence, 1), data)?;
        self.time += 1;
        Ok(self.engines.judge(self.time, &frame))
    }

    /// Does the same with the first fragment of the data. The rest comes in other fragments.
    fn send_fragment(&mut self, port: u16, sequence: u32, data: &[u8]) -> Result<Reason> {
        let mut frame = self.frame.tcp_data(port, 443, (sequence, 1), data)?;
        if frame[IP] >> 4 == 4 {
            frame[IP + 6] |= 0x20;
        } else {
            // The header of fragments (RFC 8200, 4.5).
            let header = [PROTOCOL_TCP, 0, 0, 1, 0, 0, 0, 7];
            frame[IP + 5] += 8;
            frame[IP + 6] = 44;
            frame.splice(IP + 40..IP + 40, header);
        }
        self.time += 1;
        Ok(self.engines.judge(self.time, &frame))
    }

    /// Has a QUIC flow from a port ask for a name.
    pub(crate) fn ask_by_quic(&mut self, port: u16, name: &str) -> Result<()> {
        let meaning = self.engines.quic_meaning(name);
        Ok(self
            .engines
            .name_quic(self.ends(port), meaning, self.time)?)
    }

    /// The outcome of a datagram from a port.
    pub(crate) fn send_datagram(&mut self, port: u16) -> Result<Reason> {
        let frame = self.frame.udp(port, 443, b"x")?;
        self.time += 1;
        Ok(self.engines.judge(self.time, &frame))
    }
}

pub(crate) const ENDS: [[&str; 2]; 2] = [
    ["192.0.2.7", "198.51.100.1"],
    ["2001:db8:1::7", "2001:db8:f::1"],
];

/// Each family once and each store once: the two are independent.
pub(crate) fn scenes(text: &str, mut each: impl FnMut(Scene) -> Result<()>) -> Result<()> {
    for (ends, store) in ENDS.into_iter().zip([Store::Table, Store::Hash]) {
        each(Scene::new(text, store, ends)?)?;
    }
    Ok(())
}

#[test]
fn a_limit_counts_the_connections_with_its_names() -> Result<()> {
    let text =
        format!("limits: {{B: {{id: total, {RATE}, match: {{server-name: '*.b.example'}}}}}}\n");
    scenes(&text, |mut scene| {
        // Their names are not known yet.
        assert_eq!(scene.send(1)?, Unlimited);
        assert_eq!(scene.send(1)?, Unlimited);
        scene.ask(1, "a.example")?;
        scene.ask(2, "x.b.example")?;
        scene.ask(3, "y.b.example")?;
        assert_eq!(scene.send(2)?, WithinLimits);
        assert_eq!(scene.send(2)?, OverLimit);
        assert_eq!(scene.send(3)?, OverLimit);
        assert_eq!(scene.send(1)?, Unlimited);
        // Datagrams belong to no connection.
        assert_eq!(scene.send_datagram(2)?, Unlimited);
        Ok(())
    })
}

#[test]
fn each_name_of_the_section_has_a_bucket() -> Result<()> {
    let text = format!(
        "server-names: [example, b.example]\nlimits: {{Names: {{id: server-name, {RATE}}}}}\n"
    );
    scenes(&text, |mut scene| {
        for (port, name) in [
            (1, "a.example"),
            (2, "c.example"),
            (3, "x.b.example"),
            (4, "b.example"),
            (5, "other"),
        ] {
            scene.ask(port, name)?;
        }
        let mut reasons = Vec::new();
        for port in 1..=5 {
            reasons.push(scene.send(port)?);
        }
        assert_eq!(
            reasons,
            [WithinLimits, OverLimit, WithinLimits, OverLimit, Unlimited]
        );
        assert_eq!(scene.send(5)?, Unlimited);
        Ok(())
    })
}

#[test]
fn what_another_policy_said_of_a_name_counts_for_nothing() -> Result<()> {
    let text = format!("limits: {{B: {{id: total, {RATE}, match: {{server-name: b.example}}}}}}\n");
    scenes(&text, |mut scene| {
        let flow = scene.engines.flow_with_name("b.example");
        let mut of_another = flow;
        of_another.meaning.compiled_by ^= 1;
        let ends = scene.ends(1);
        scene.engines.name(ends, of_another)?;
        assert_eq!(scene.send(1)?, Unlimited);
        assert_eq!(scene.send(1)?, Unlimited);
        scene.engines.name(ends, flow)?;
        assert_eq!(scene.send(1)?, WithinLimits);
        assert_eq!(scene.send(1)?, OverLimit);
        Ok(())
    })
}

#[test]
fn data_asks_for_admission_and_gets_it() -> Result<()> {
    let text = "limits:\n  \
                B: {id: total, cost: connections, limit: 2, match: {server-name: b.example}}\n  \
                Others: {id: total, cost: connections, limit: 1, otherwise: true, match: {server-name: '*'}}\n";
    scenes(text, |mut scene| {
        for port in 1..=3 {
            scene.ask(port, "b.example")?;
        }
        scene.ask(4, "a.example")?;
        scene.ask(5, "c.example")?;
        for (port, reason) in [
            (1, WithinLimits),
            (2, WithinLimits),
            (3, TooManyConnections),
            // An admitted connection does not concern the limit any more.
            (1, Unlimited),
            (3, TooManyConnections),
            (4, WithinLimits),
            (5, TooManyConnections),
            (4, Unlimited),
        ] {
            assert_eq!(scene.send(port)?, reason, "{port}");
        }
        // Segments without data are neither refused nor in need of admission.
        let ack = scene.frame.tcp_ack(3, 443, 1, 1)?;
        assert_eq!(scene.engines.judge(99, &ack), Unlimited);
        Ok(())
    })
}

#[test]
fn data_is_held_until_its_name_is_read_but_not_for_ever() -> Result<()> {
    let text = format!(
        "limits: {{B: {{id: total, {RATE}, match: {{server-name: b.example}}}}}}\n\
         names: {{tls: {{until-known: hold}}}}\n"
    );
    scenes(&text, |mut scene| {
        let ends = [1, 2].map(|port| scene.ends(port));
        for ends in ends {
            scene.engines.name(ends, FlowRecord::new(1, 1))?;
        }
        assert_eq!(scene.send(1)?, NameAwaited);
        assert_eq!(scene.send(2)?, NameAwaited);
        let ack = scene.frame.tcp_ack(1, 443, 1, 1)?;
        assert_eq!(scene.engines.judge(3, &ack), Unlimited);
        scene.ask(1, "b.example")?;
        assert_eq!(scene.send(1)?, WithinLimits);
        scene.time = 2_000_000_000;
        assert_eq!(scene.send(2)?, Unlimited);
        // It is not recorded.
        assert_eq!(scene.send(3)?, Unlimited);
        Ok(())
    })
}

/// A client cannot have its data pass by sending its hello in many segments, or by waiting.
#[test]
fn data_of_a_client_that_is_to_blame_is_held_until_its_name_is_read() -> Result<()> {
    let text = format!(
        "limits: {{B: {{id: total, {RATE}, match: {{server-name: b.example}}}}}}\n\
         names: {{tls: {{until-known: hold}}}}\n"
    );
    scenes(&text, |mut scene| {
        let ends = scene.ends(1);
        let mut flow = FlowRecord::new(1, 1);
        scene.engines.name(ends, flow)?;
        // More segments than are reported at one moment: userspace cannot have read them yet.
        for position in 0..40 {
            assert_eq!(
                scene.send_at(1, 1 + position, b"x")?,
                NameAwaited,
                "{position}"
            );
        }
        assert!(flow.hold(1, true));
        scene
            .engines
            .name(ends, flow.unfinished().expect("it was held"))?;
        for time in [2_000_000_000, 3_600_000_000_000] {
            scene.time = time;
            assert_eq!(scene.send(1)?, NameAwaited);
        }
        let ack = scene.frame.tcp_ack(1, 443, 1, 1)?;
        assert_eq!(scene.engines.judge(scene.time, &ack), Unlimited);
        // The name may be in bytes that are not read.
        let hidden = flow.read(Meaning::NONE).hidden();
        scene.engines.name(ends, hidden)?;
        assert_eq!(scene.send(1)?, NameAwaited);
        assert_eq!(scene.engines.judge(scene.time, &ack), Unlimited);
        scene.ask(1, "b.example")?;
        assert_eq!(scene.send(1)?, WithinLimits);
        Ok(())
    })?;
    // Nothing is held for a limit that does not hold.
    scenes(&text.replace("hold", "pass"), |mut scene| {
        let ends = scene.ends(1);
        let mut flow = FlowRecord::new(1, 1);
        assert!(flow.hold(1, true));
        for flow in [
            flow.unfinished().expect("it was held"),
            flow.read(Meaning::NONE).hidden(),
        ] {
            scene.engines.name(ends, flow)?;
            assert_eq!(scene.send(1)?, Unlimited);
        }
        Ok(())
    })
}

/// Segments in fragments cannot be read or compared, and need admission like any other.
#[test]
fn fragments_do_not_get_round_what_holds_for_segments() -> Result<()> {
    let text = format!(
        "limits: {{B: {{id: total, {RATE}, match: {{server-name: b.example}}}}, \
         C: {{id: total, cost: connections, limit: 1, match: {{server-name: c.example}}}}}}\n\
         names: {{tls: {{until-known: hold}}}}\n"
    );
    scenes(&text, |mut scene| {
        let ends = [1, 2, 3, 4].map(|port| scene.ends(port));
        scene.engines.name(ends[0], FlowRecord::new(1, 1))?;
        scene.time = 1;
        assert_eq!(scene.send(1)?, NameAwaited);
        scene.time = 2_000_000_000;
        assert_eq!(scene.send(1)?, Unlimited);
        for data in [&b"x"[..], b""] {
            assert_eq!(scene.send_fragment(1, 1, data)?, NameAwaited);
        }
        let named = scene.engines.flow_with_name("b.example");
        let flow = FlowRecord::new(1, 1)
            .read(named.meaning)
            .with_first_bytes(5, Records::Read);
        scene.engines.name(ends[1], flow)?;
        scene.engines.add_first_bytes(ends[1], b"hello")?;
        for (sequence, reason) in [(1, NameAwaited), (5, NameAwaited), (6, WithinLimits)] {
            assert_eq!(scene.send_fragment(2, sequence, b"hello")?, reason);
        }
        for (port, reason) in [(3, WithinLimits), (4, TooManyConnections)] {
            scene.ask(port, "c.example")?;
            assert_eq!(scene.send_fragment(port, 1, b"hello")?, reason);
        }
        scene.engines.assert_same_state();
        Ok(())
    })
}

/// Segments with first bytes of a connection pass only with the same bytes that were read.
#[test]
fn data_has_the_bytes_that_were_read_at_their_positions() -> Result<()> {
    let many = "burst: 1M, count: 1, period: 1h";
    for (mode, is_enforced) in [("", true), (", mode: observe", false)] {
        let text = format!(
            "limits: {{B: {{id: total, cost: packets, {many}, match: {{server-name: b.example}}{mode}}}}}\n"
        );
        scenes(&text, |mut scene| {
            let mut random = fastrand::Rng::with_seed(7);
            let read: Vec<u8> = (0..1500).map(|_| random.u8(..)).collect();
            let first = u32::MAX - 700;
            let ends = scene.ends(1);
            let named = scene.engines.flow_with_name("b.example");
            let bytes_read = u32::try_from(read.len())?;
            let flow = FlowRecord::new(1, first)
                .read(named.meaning)
                .with_first_bytes(bytes_read, Records::Read);
            scene.engines.name(ends, flow)?;
            let dropped = |reason| if is_enforced { reason } else { WithinLimits };
            // The bytes are not known here; the bytes behind them need no comparison.
            assert_eq!(scene.send_at(1, first, &read)?, dropped(NameAwaited));
            assert_eq!(
                scene.send_at(1, first.wrapping_add(bytes_read), b"x")?,
                WithinLimits
            );
            scene.engines.add_first_bytes(ends, &read)?;
            for _ in 0..40 {
                let from = random.usize(..read.len());
                let to = random.usize(from + 1..=read.len());
                let before = random.usize(..3) * usize::from(from == 0);
                let behind = random.usize(..20) * usize::from(to == read.len());
                let mut payload = vec![0; before];
                payload.extend(&read[from..to]);
                payload.extend(vec![0; behind]);
                let position = u32::try_from(from)?.wrapping_sub(u32::try_from(before)?);
                let sequence = first.wrapping_add(position);
                assert_eq!(scene.send_at(1, sequence, &payload)?, WithinLimits);
                payload[before + random.usize(..to - from)] ^= 1 << random.u8(..8);
                let found = scene.send_at(1, sequence, &payload)?;
                assert_eq!(found, dropped(NameContradicted), "{from}..{to}");
            }
            // A connection that contradicts itself is over, even for segments without data.
            scene.engines.name(ends, flow.contradictory())?;
            assert_eq!(
                scene.send_at(1, first.wrapping_add(bytes_read), b"x")?,
                dropped(NameContradicted)
            );
            let ack = scene.frame.tcp_ack(1, 443, 1, 1)?;
            assert_eq!(scene.engines.judge(99, &ack), dropped(NameContradicted));
            scene.engines.assert_same_state();
            Ok(())
        })?;
    }
    Ok(())
}

/// A second hello does not pass before userspace has read it, in any form. Other data behind a hello passes.
#[test]
fn a_second_hello_is_held() -> Result<()> {
    const HELLO: &[u8] = b"a hello";
    let ccs = &b"\x14\x03\x03\0\x01\x01"[..];
    let data = &b"\x17\x03\x03\0\x35 and so on"[..];
    let second = &b"\x16\x03\x03\x02\0\x01 and so on"[..];
    let text = "limits: {B: {id: total, cost: packets, burst: 1M, count: 1, period: 1h, \
                match: {server-name: b.example}}}\nnames: {tls: {until-known: hold}}\n";
    scenes(text, |mut scene| {
        let named = scene.engines.flow_with_name("b.example");
        let first = u32::MAX - 9;
        let bytes_read = u32::try_from(HELLO.len())?;
        let flow = FlowRecord::new(1, first).read(named.meaning);
        for (port, segments, reasons) in [
            (1, &[data, second][..], [WithinLimits; 2]),
            (2, &[ccs, data], [WithinLimits; 2]),
            (3, &[ccs, second], [WithinLimits, NameAwaited]),
            (4, &[second, data], [NameAwaited; 2]),
            (5, &[&second[..5], &second[5..]], [NameAwaited; 2]),
            (6, &[&data[..5], data], [NameAwaited; 2]),
            (7, &[&[HELLO, ccs, second].concat(), data], [NameAwaited; 2]),
        ] {
            let ends = scene.ends(port);
            let flow = flow.with_first_bytes(bytes_read, Records::Awaited);
            scene.engines.name(ends, flow)?;
            scene.engines.add_first_bytes(ends, HELLO)?;
            let has_hello = segments[0].starts_with(HELLO);
            let mut position = if has_hello { 0 } else { bytes_read };
            for (segment, reason) in segments.iter().zip(reasons) {
                let found = scene.send_at(port, first.wrapping_add(position), segment)?;
                assert_eq!(found, reason, "{port} {segment:?}");
                position += u32::try_from(segment.len())?;
            }
        }
        // Records that were read cannot come again with other bytes.
        let ccs_position = first.wrapping_add(bytes_read);
        assert_eq!(scene.send_at(3, ccs_position, ccs)?, WithinLimits);
        assert_eq!(scene.send_at(3, ccs_position, second)?, NameContradicted);
        assert_eq!(scene.send_at(1, ccs_position, second)?, NameContradicted);
        // The read bytes are not known.
        scene.engines.name(
            scene.ends(8),
            flow.with_first_bytes(bytes_read, Records::Awaited),
        )?;
        assert_eq!(scene.send_at(8, ccs_position, data)?, NameAwaited);
        scene.engines.assert_same_state();
        Ok(())
    })
}

/// The flag of urgent data, in the byte of flags.
const URGENT: u8 = 0x20;

/// The offset of a frame's TCP header.
fn tcp_header(frame: &[u8]) -> usize {
    IP + if frame[IP] >> 4 == 4 { 20 } else { 40 }
}

/// A frame's TCP segment with options, whole words.
fn with_options(mut frame: Vec<u8>, options: &[u8]) -> Result<Vec<u8>> {
    let header = tcp_header(&frame);
    let added = u8::try_from(options.len())?;
    frame[header + 12] += added << 2;
    frame.splice(header + 20..header + 20, options.iter().copied());
    let length = if header == IP + 20 { IP + 3 } else { IP + 5 };
    frame[length] += added;
    Ok(frame)
}

/// The network stack leaves out urgent data, and puts data of multipath TCP elsewhere.
#[test]
fn data_of_which_the_server_may_read_others_is_dropped() -> Result<()> {
    let many = "burst: 1M, count: 1, period: 1h";
    for (mode, is_enforced) in [("enforce", true), ("observe", false)] {
        let text = format!(
            "limits: {{B: {{id: total, cost: packets, {many}, mode: {mode}, match: {{server-name: b.example}}}}}}\n"
        );
        scenes(&text, |mut scene| {
            let named = scene.engines.flow_with_name("b.example");
            let flow = FlowRecord::new(1, 1)
                .read(named.meaning)
                .with_first_bytes(5, Records::Read);
            scene.engines.name(scene.ends(1), FlowRecord::new(1, 1))?;
            scene.engines.name(scene.ends(2), flow)?;
            scene.engines.add_first_bytes(scene.ends(2), b"hello")?;
            for (port, passes) in [(1, Unlimited), (2, WithinLimits), (3, Unlimited)] {
                // The third is unknown, and may be forwarded.
                let dropped = if is_enforced && port < 3 {
                    NameContradicted
                } else {
                    passes
                };
                let data = scene.frame.tcp_data(port, 443, (1, 1), b"hello")?;
                let ack = scene.frame.tcp_ack(port, 443, 1, 1)?;
                let urgent = [&data, &ack].map(|frame| {
                    let mut frame = frame.clone();
                    let header = tcp_header(&frame);
                    frame[header + 13] |= URGENT;
                    frame
                });
                let timestamps = [&[1, 1, 8, 10][..], &[0x1e; 8]].concat();
                // A mapping, behind timestamps and padding.
                let mapping = [&[30, 18, 0x20, 0x05][..], &[7; 14], &[1, 1]].concat();
                let both = [&timestamps[..], &mapping].concat();
                for (frame, expected) in [
                    (data.clone(), passes),
                    (ack.clone(), passes),
                    (with_options(data.clone(), &timestamps)?, passes),
                    (with_options(ack, &mapping)?, passes),
                    (with_options(data.clone(), &mapping)?, dropped),
                    (with_options(data, &both)?, dropped),
                    (urgent[0].clone(), dropped),
                    (urgent[1].clone(), dropped),
                ] {
                    scene.time += 1;
                    let found = scene.engines.judge(scene.time, &frame);
                    assert_eq!(found, expected, "{mode} {port} {frame:02x?}");
                }
            }
            scene.engines.assert_same_state();
            Ok(())
        })?;
    }
    Ok(())
}

/// A server reads the data of a first segment before userspace can read the name.
#[test]
fn data_of_a_first_segment_is_held() -> Result<()> {
    for (until_known, held) in [("hold", NameAwaited), ("pass", Unlimited)] {
        let text = format!(
            "limits: {{B: {{id: total, {RATE}, match: {{server-name: b.example}}}}}}\n\
             names: {{tls: {{until-known: {until_known}}}}}\n"
        );
        scenes(&text, |mut scene| {
            for (data, expected) in [(&b""[..], Unlimited), (b"hello", held)] {
                let frame = scene.frame.tcp_fast_open(1, 443, 1, data)?;
                assert_eq!(scene.engines.judge(1, &frame), expected, "{until_known}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Data passes some time after the first bytes. Neither a byte behind the bytes to be read nor a byte before the
/// first one starts that time.
#[test]
fn the_time_of_holding_begins_with_the_first_bytes() -> Result<()> {
    let text = format!(
        "limits: {{B: {{id: total, {RATE}, match: {{server-name: b.example}}}}}}\n\
         names: {{tls: {{until-known: hold}}}}\n"
    );
    scenes(&text, |mut scene| {
        for (port, position) in [(1, 4096), (2, u32::MAX)] {
            scene
                .engines
                .name(scene.ends(port), FlowRecord::new(1, 1))?;
            let position = 1_u32.wrapping_add(position);
            for _ in 0..2 {
                scene.time += 3_000_000_000;
                assert_eq!(scene.send_at(port, position, b"x")?, NameAwaited);
            }
            assert_eq!(scene.send(port)?, NameAwaited);
            scene.time += 2_000_000_000;
            assert_eq!(scene.send(port)?, Unlimited);
        }
        scene.engines.assert_same_state();
        Ok(())
    })
}

/// The client's transport to the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ClientTransport {
    Tcp,
    Quic,
}

/// A model without a table of names: the name of each connection and each QUIC flow, and the tokens spent from
/// each bucket.
#[derive(Default)]
struct Model {
    asked: HashMap<(ClientTransport, u16), String>,
    spent: HashMap<String, u32>,
}

impl Model {
    const NAMES: [&str; 4] = ["example", "b.example", "c.b.example", "other"];
    const BURST: u32 = 3;

    fn is_below(name: &str, above: &str) -> bool {
        name.strip_suffix(above)
            .is_some_and(|rest| rest.ends_with('.'))
    }

    /// The outcome of data from a port.
    fn send(&mut self, from: (ClientTransport, u16)) -> Reason {
        let asked = self.asked.get(&from).map_or("", String::as_str);
        let mut keys = Self::NAMES
            .into_iter()
            .filter(|name| asked == *name || Self::is_below(asked, name));
        // Later names in the list are longer.
        let key = keys.next_back().map(str::to_owned);
        let matching = Self::is_below(asked, "b.example").then(|| "*.b.example".to_owned());
        let buckets: Vec<String> = key.into_iter().chain(matching).collect();
        if buckets.is_empty() {
            return Unlimited;
        }
        let has_left = |bucket| {
            self.spent
                .get(bucket)
                .is_none_or(|spent| *spent < Self::BURST)
        };
        if !buckets.iter().all(has_left) {
            return OverLimit;
        }
        for bucket in buckets {
            *self.spent.entry(bucket).or_default() += 1;
        }
        WithinLimits
    }
}

/// Connections and QUIC flows that ask for random names, and for other names when their ports are used again.
#[test]
fn random_names() -> Result<()> {
    let rate = "cost: packets, burst: 3, count: 1, period: 1h";
    let text = format!(
        "server-names: {:?}\nlimits:\n  Names: {{id: server-name, {rate}, match: {{protocol: [tcp, udp]}}}}\n  \
         Below: {{id: total, {rate}, match: {{server-name: '*.b.example', protocol: [tcp, udp]}}}}\n",
        Model::NAMES
    );
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..10 {
        scenes(&text, |mut scene| {
            let mut model = Model::default();
            for _ in 0..100 {
                let port = random.u16(1..12);
                let by = if random.bool() {
                    ClientTransport::Tcp
                } else {
                    ClientTransport::Quic
                };
                if random.u8(..4) == 0 {
                    let labels = ["a", "b", "c", "example", "other"];
                    let count = random.usize(1..5);
                    let name: Vec<_> = (0..count)
                        .map(|_| labels[random.usize(..labels.len())])
                        .collect();
                    let mut name = name.join(".");
                    if random.bool() {
                        name.push_str(".b.example");
                    }
                    match by {
                        ClientTransport::Tcp => scene.ask(port, &name)?,
                        ClientTransport::Quic => scene.ask_by_quic(port, &name)?,
                    }
                    model.asked.insert((by, port), name);
                } else {
                    let asked = model.asked.get(&(by, port)).cloned();
                    let reason = match by {
                        ClientTransport::Tcp => scene.send(port)?,
                        ClientTransport::Quic => scene.send_datagram(port)?,
                    };
                    assert_eq!(reason, model.send((by, port)), "{asked:?}");
                }
            }
            scene.engines.assert_same_state();
            Ok(())
        })?;
    }
    Ok(())
}

//! The first bytes of connections with a known outcome: retransmissions at their positions must be the same.

use crate::{flow::Flow, table::Table};

/// The bytes from which outcomes were read. The oldest connection's bytes are evicted first.
#[derive(Debug)]
pub(crate) struct FirstBytesCache {
    /// The most bytes of all connections.
    most: usize,
    kept: Table<FirstBytes>,
    /// The bytes of all connections.
    bytes: usize,
}

#[derive(Debug)]
struct FirstBytes {
    /// The sequence number of the first byte.
    first: u32,
    bytes: Box<[u8]>,
}

impl FirstBytesCache {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            kept: Table::new(),
            bytes: 0,
        }
    }

    /// Keeps the bytes from which a connection's outcome was read.
    pub(crate) fn keep(&mut self, now_ns: u64, flow: Flow, first: u32, bytes: &[u8]) {
        self.forget(&flow);
        while self.bytes + bytes.len() > self.most
            && let Some((oldest, _)) = self.kept.oldest()
        {
            self.forget(&oldest);
        }
        self.bytes += bytes.len();
        let bytes = bytes.into();
        self.kept.insert(flow, now_ns, FirstBytes { first, bytes });
    }

    pub(crate) fn bytes(&self, flow: &Flow) -> &[u8] {
        self.kept.get(flow).map_or(&[], |kept| &kept.bytes)
    }

    /// Whether a segment has the kept bytes at their positions. Evicted bytes agree with no segment.
    pub(crate) fn agrees(&self, flow: &Flow, sequence: u32, payload: &[u8]) -> bool {
        let Some(FirstBytes { first, bytes }) = self.kept.get(flow) else {
            return false;
        };
        let start = i64::from(sequence.wrapping_sub(*first).cast_signed());
        // The starts of the common part in both.
        let in_payload = usize::try_from(-start).unwrap_or(0);
        let in_bytes = usize::try_from(start).unwrap_or(0);
        let both = [payload.get(in_payload..), bytes.get(in_bytes..)];
        let [payload, bytes] = both.map(Option::unwrap_or_default);
        payload.iter().zip(bytes).all(|(one, other)| one == other)
    }

    pub(crate) fn forget(&mut self, flow: &Flow) {
        if let Some(kept) = self.kept.remove(flow) {
            self.bytes -= kept.bytes.len();
        }
    }

    /// The allocated memory, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.kept.memory() + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::flow::Protocol;

    fn flow(client_port: u16) -> Flow {
        Flow {
            client: Ipv4Addr::new(192, 0, 2, 1).into(),
            server: Ipv4Addr::new(192, 0, 2, 2).into(),
            client_port,
            server_port: 443,
            protocol: Protocol::Tcp,
        }
    }

    #[test]
    fn only_the_same_bytes_agree_wherever_a_segment_begins_and_ends() {
        let mut cache = FirstBytesCache::new(100);
        // The numbers wrap.
        let first = u32::MAX - 2;
        cache.keep(0, flow(1), first, b"0123456789");
        assert_eq!(cache.bytes(&flow(1)), b"0123456789");
        assert_eq!(cache.bytes(&flow(2)), b"");
        for (position, payload, agrees) in [
            (0, &b"0123456789"[..], true),
            (0, b"012345678X", false),
            (3, b"345", true),
            (4, b"345", false),
            (8, b"89and what comes behind", true),
            (8, b"8Xand what comes behind", false),
            (10, b"anything", true),
            (u32::MAX, b"?0123", true),
            (u32::MAX, b"?X123", false),
            (u32::MAX - 4, b"far", true),
            (1 << 31, b"far", true),
        ] {
            let sequence = first.wrapping_add(position);
            assert_eq!(
                cache.agrees(&flow(1), sequence, payload),
                agrees,
                "{position}"
            );
        }
    }

    #[test]
    fn what_gave_way_cannot_be_compared() {
        let mut cache = FirstBytesCache::new(25);
        for port in 1..=3 {
            cache.keep(0, flow(port), 7, b"0123456789");
        }
        let agreeing = [1, 2, 3].map(|port| cache.agrees(&flow(port), 7, b"0"));
        assert_eq!(agreeing, [false, true, true]);
        cache.forget(&flow(2));
        cache.keep(0, flow(3), 7, b"abc");
        assert_eq!(cache.bytes, 3);
        assert!(cache.agrees(&flow(3), 7, b"abcd") && !cache.agrees(&flow(2), 7, b"0"));
    }
}

//! The part of a policy that is constant to the program: the verifier skips code for unused
//! features.

use super::{Child, FallbackLimits, MOST_OTHERWISE};
use crate::{
    address::Family,
    limit::{MAX_CONNECTION_LIMITS, QueueSettings},
    packet::{Link, PacketKind, TcpState},
    standing::{Settings, Standing},
    table::HashKey,
};

/// A property that is looked up in ranges of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// IPv4 sources; each range has a class.
    SourceV4,
    /// IPv6 sources; each range has a class.
    SourceV6,
    /// IPv4 destinations; from here on, each range has a set of limits.
    DestinationV4,
    /// IPv6 destinations.
    DestinationV6,
    /// Source ports.
    SourcePort,
    /// Destination ports.
    DestinationPort,
    /// The types of questions.
    DnsType,
}

impl Dimension {
    /// The number of dimensions.
    pub const COUNT: usize = 7;
}

/// The indices of the sets of limits.
pub struct Masks;

impl Masks {
    /// The first of the sets by IP protocol number.
    pub const PROTOCOLS: u32 = 0;
    /// The first of the sets by the number of a [`PacketKind`].
    pub const KINDS: u32 = 256;
    /// The first of the sets by the kind and flags of a DNS message: the number has the message's
    /// OPCODE in its upper four bits, then whether recursion is desired, then whether it has the
    /// record `OPT`.
    pub const DNS: u32 = Self::KINDS + PacketKind::COUNT as u32;
    /// The first of the sets by range, as many as the policy has.
    pub const RANGES: u32 = Self::DNS + 64;
}

/// The features of a policy, as constants: the sizes of its parts, and its limits by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Features {
    /// The number of limits; their indices begin with 0.
    pub limit_count: u32,
    /// 1: malformed packets pass.
    pub malformed_pass: u32,
    /// 1: look up [`Masks::PROTOCOLS`].
    pub matches_protocols: u32,
    /// 1: look up [`Masks::KINDS`] for TCP segments.
    pub matches_tcp_flags: u32,
    /// The number of lines of the table of buckets, a power of two; 0: buckets are in the hash map.
    pub table_lines: u32,
    /// The action for a full line: the number of a [`crate::table::WhenFull`].
    pub when_full: u32,
    /// 1: some units have states other than TATs in nanoseconds.
    pub odd_units: u32,
    /// The number of uses of sieves; 0: no source is scored.
    pub sieve_uses: u32,
    /// 1: some limits have another strategy than GCRA.
    pub windows: u32,
    /// The header at the start of the interface's frames.
    pub link: Link,
    /// 1: look up [`Masks::KINDS`] for packets without ports; else no limit counts neighbour discovery.
    pub matches_icmp_types: u64,
    /// The fewest labels of a name in the table of names; `u64::MAX`: it has none.
    pub fewest_labels: u64,
    /// The number of labels at the end of a question's name in the first look-up: the fewest, or
    /// the next larger count.
    pub first_labels: u64,
    /// The most labels hashed at the end of a question's name: as many as names in the table have,
    /// and domains if domains are keys; all labels if questions are keys.
    pub hashed_labels: u64,
    /// The limits that count packets by their question: none of a packet without a question.
    pub by_name: u64,
    /// The limits with zones as keys.
    pub by_zone: u64,
    /// The limits with registered domains as keys.
    pub by_domain: u64,
    /// The limits with questions as keys.
    pub by_question: u64,
    /// The limits that count questions for names that are not [cached](crate::cached_names), if they
    /// have tokens.
    pub by_new_name: u64,
    /// The number of lines of the table of cached names, a power of two; 0: no limit needs it.
    pub name_lines: u64,
    /// The time that a name stays cached after a question for it, in nanoseconds.
    pub names_cached_for_ns: u64,
    /// The limits that count questions for names outside the table, and all limits that are not in
    /// `by_name`.
    pub of_any_name: u64,
    /// The limits that count packets by the server name that their client asks for: none of a
    /// connection with an unknown name.
    pub by_server_name: u64,
    /// The number of the policy's rules on server names; 0: none. Policies with equal rules have
    /// equal numbers.
    pub server_names: u64,
    /// The limits that have overrides for names.
    pub overridden_by_name: u64,
    /// Among them the limits that have rates only in overrides.
    pub only_overridden: u64,
    /// The limits of `by_server_name` that hold data until its connection's name is read.
    pub holding: u64,
    /// The secret of the hashes of buckets, sieves and names.
    pub hash_key: HashKey,
    /// The limits that only observe.
    pub observing: u64,
    /// The limits that count packets other than TCP.
    pub without_tcp: u64,
    /// The limits that count packets without ports.
    pub without_ports: u64,
    /// The limits that count later fragments of the protocols that they count.
    pub later_fragments: u64,
    /// The limits that count later fragments even if their protocol is unknown.
    pub of_any_protocol: u64,
    /// The limits that reserve a part of their buckets for sources of higher standing. All use
    /// GCRA, and a policy with any [uses standing](Self::uses_standing).
    pub reserving: u64,
    /// The limits on connections that reserve some for sources of higher standing; a policy with
    /// any uses standing.
    pub reserving_connections: u64,
    /// The limits with an automatic rate. All use GCRA, and a packet costs them one token.
    pub automatic: u64,
    /// The shared limits (`scope: fleet`). All use GCRA.
    pub shared: u64,
    /// The limits with answers that depend on the source's standing; a policy with any [uses
    /// standing](Self::uses_standing).
    pub answering_by_standing: u64,
    /// The UDP port for DNS cookies: a query to it may prove its source when limits refuse it for
    /// their reserves; 0: none. A policy with a port has limits that reserve.
    pub cookie_port: u64,
    /// 1: limits and sieves refuse no packet of a TCP connection that the host itself began.
    pub own_connections: u64,
    /// The limits on connections open at once, at most [`MAX_CONNECTION_LIMITS`]. No packet is
    /// charged to them.
    pub connections: u64,
    /// Among them the limits with queues.
    pub queueing: u64,
    /// The queue of each limit on connections, in their order.
    pub queues: [QueueSettings; MAX_CONNECTION_LIMITS],
    /// For each limit on connections, in their order: the earlier limits that share its count.
    pub earlier_of_group: [u64; MAX_CONNECTION_LIMITS],
    /// The limits on handshakes, at most
    /// [`MAX_HANDSHAKE_LIMITS`](crate::limit::MAX_HANDSHAKE_LIMITS). Packets ask them; only
    /// handshakes are charged.
    pub handshakes: u64,
    /// The limits that count the packets no other limit of their kind counts.
    pub otherwise: [FallbackLimits; MOST_OTHERWISE],
    /// The limits of answers to packets of each family, by [`Family::index`]; empty: nothing is
    /// answered.
    pub of_answers: [u64; 2],
    /// The limits of connections made by SYN cookies, from each family.
    pub of_cookies: [u64; 2],
    /// The limits that count packets of sources of each standing, in the order of
    /// [`Standing::ALL`].
    pub of_standing: [u64; Standing::COUNT],
    /// The limits that count TCP segments of connections in each state, in the order of
    /// [`TcpState::ALL`].
    pub of_tcp_state: [u64; TcpState::COUNT],
    /// The rules by which sources get their standing.
    pub standing: Settings,
    /// The number of slots of the table of names, a power of two; 0: the policy has no names.
    pub name_slots: u32,
    /// The child at which the look-up in each dimension starts.
    pub starts: [Child; Dimension::COUNT],
}

impl Features {
    /// The features of a policy without limits.
    pub const EMPTY: Self = Self {
        limit_count: 0,
        link: Link::Ethernet,
        malformed_pass: 0,
        matches_protocols: 0,
        matches_tcp_flags: 0,
        matches_icmp_types: 0,
        table_lines: 0,
        when_full: 0,
        odd_units: 0,
        sieve_uses: 0,
        windows: 0,
        name_slots: 0,
        fewest_labels: u64::MAX,
        first_labels: u64::MAX,
        hashed_labels: 0,
        by_name: 0,
        by_zone: 0,
        by_domain: 0,
        by_question: 0,
        by_new_name: 0,
        name_lines: 0,
        names_cached_for_ns: 0,
        of_any_name: u64::MAX,
        by_server_name: 0,
        server_names: 0,
        overridden_by_name: 0,
        only_overridden: 0,
        holding: 0,
        hash_key: HashKey {
            first: 0,
            second: 0,
        },
        observing: 0,
        without_tcp: 0,
        without_ports: 0,
        later_fragments: 0,
        of_any_protocol: 0,
        reserving: 0,
        reserving_connections: 0,
        automatic: 0,
        shared: 0,
        answering_by_standing: 0,
        cookie_port: 0,
        own_connections: 0,
        connections: 0,
        queueing: 0,
        queues: [QueueSettings::NONE; MAX_CONNECTION_LIMITS],
        earlier_of_group: [0; MAX_CONNECTION_LIMITS],
        handshakes: 0,
        otherwise: [FallbackLimits::NONE; MOST_OTHERWISE],
        of_answers: [0; 2],
        of_cookies: [0; 2],
        of_standing: [u64::MAX; Standing::COUNT],
        of_tcp_state: [u64::MAX; TcpState::COUNT],
        standing: Settings::NONE,
        starts: [Child::UNUSED; Dimension::COUNT],
    };

    /// Whether the standing of a packet's source matters.
    #[must_use]
    #[inline(always)]
    pub const fn uses_standing(&self) -> bool {
        self.standing.lines != 0
    }

    /// Whether any refused packet is answered.
    #[must_use]
    #[inline(always)]
    pub const fn answers(&self) -> bool {
        let [of_v4, of_v6] = self.of_answers;
        of_v4 | of_v6 != 0
    }

    /// The limits that reserve a part of their buckets or of their connections.
    #[must_use]
    #[inline(always)]
    pub const fn reserving_anything(&self) -> u64 {
        self.reserving | self.reserving_connections
    }

    /// The limits of answers to packets of a family.
    #[must_use]
    #[inline(always)]
    pub const fn of_answers(&self, family: Family) -> u64 {
        self.of_answers[family.index()]
    }

    /// The limits of connections made by SYN cookies from a family.
    #[must_use]
    #[inline(always)]
    pub const fn of_cookies(&self, family: Family) -> u64 {
        self.of_cookies[family.index()]
    }

    /// Whether the limit at an index has an automatic rate.
    #[must_use]
    #[inline(always)]
    pub const fn is_automatic(&self, limit_index: u32) -> bool {
        self.automatic & (1 << (limit_index & 63)) != 0
    }

    /// Whether the limit at an index is a shared limit.
    #[must_use]
    #[inline(always)]
    pub const fn is_shared(&self, limit_index: u32) -> bool {
        self.shared & (1 << (limit_index & 63)) != 0
    }

    /// Whether the rate of the limit at an index moves while the policy stays.
    #[must_use]
    #[inline(always)]
    pub const fn is_moving(&self, limit_index: u32) -> bool {
        (self.automatic | self.shared) & (1 << (limit_index & 63)) != 0
    }

    /// The limits that count packets of sources of a standing.
    #[must_use]
    #[inline(always)]
    pub const fn of_standing(&self, standing: Standing) -> u64 {
        self.of_standing[standing as usize]
    }

    /// The limits that count packets of sources with the standing of a number: with the enum the
    /// verifier would walk the rest once for each standing. Other numbers have no limits.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "it is below five")]
    pub const fn of_standing_number(&self, standing: u64) -> u64 {
        if standing < Standing::COUNT as u64 {
            self.of_standing[standing as usize]
        } else {
            0
        }
    }

    /// The limits that count packets independent of their source's standing.
    #[must_use]
    #[inline(always)]
    pub const fn of_every_standing(&self) -> u64 {
        let [proven, familiar, fresh, retried, unknown] = self.of_standing;
        proven & familiar & fresh & retried & unknown
    }

    /// The limits that count TCP segments of connections in the state with a number. Other numbers
    /// have no limits.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "it is below five")]
    pub const fn of_tcp_state_number(&self, state: u64) -> u64 {
        if state < TcpState::COUNT as u64 {
            self.of_tcp_state[state as usize]
        } else {
            0
        }
    }

    /// The limits that count TCP segments independent of their connection's state, and limits that
    /// count other packets.
    #[must_use]
    #[inline(always)]
    pub const fn of_every_tcp_state(&self) -> u64 {
        let [established, new, none, cookie, unclear] = self.of_tcp_state;
        established & new & none & cookie & unclear
    }

    /// Whether the state of a segment's connection matters to any limit.
    #[must_use]
    #[inline(always)]
    pub const fn needs_tcp_states(&self) -> bool {
        self.of_every_tcp_state() != u64::MAX
    }

    /// The limits that count packets independent of their question.
    #[must_use]
    #[inline(always)]
    pub const fn of_every_question(&self) -> u64 {
        !self.by_name
    }

    /// The limits that count packets independent of their connection's server name.
    #[must_use]
    #[inline(always)]
    pub const fn of_every_server_name(&self) -> u64 {
        !self.by_server_name
    }

    /// The limits on connections of a server name.
    #[must_use]
    #[inline(always)]
    pub const fn named_connections(&self) -> u64 {
        self.connections & self.by_server_name
    }

    /// The limits on connections that count only first segments.
    #[must_use]
    #[inline(always)]
    pub const fn nameless_connections(&self) -> u64 {
        self.connections & !self.by_server_name
    }

    /// The limits that may refuse a packet at the charge: all but observing limits and limits on
    /// connections.
    #[must_use]
    #[inline(always)]
    pub const fn enforcing(&self) -> u64 {
        let all = match 1u64.checked_shl(self.limit_count) {
            Some(bit) => bit - 1,
            None => u64::MAX,
        };
        all & !self.observing & !self.connections
    }

    /// The limits that packets are charged to and that only observe.
    #[must_use]
    #[inline(always)]
    pub const fn charged_observing(&self) -> u64 {
        self.observing & !self.connections
    }

    /// Returns the index, among the limits on connections, of the limit that keeps the count of the
    /// limit at `index`: its own, or the first of its group.
    #[must_use]
    pub const fn first_of_group(&self, index: usize) -> usize {
        let earlier = self.earlier_of_group[index % MAX_CONNECTION_LIMITS];
        if earlier == 0 {
            return index;
        }
        let before_first = (earlier & earlier.wrapping_neg()) - 1;
        (self.connections & before_first).count_ones() as usize
    }

    /// Returns the queue of the limit with that interned id. If it has none any more, clients in
    /// its lines are turned away.
    #[must_use]
    #[inline(always)]
    pub const fn queue_of(&self, limit: u64) -> QueueSettings {
        let mut index = 0;
        while index < MAX_CONNECTION_LIMITS {
            let queue = self.queues[index];
            if queue.size != 0 && queue.limit == limit {
                return queue;
            }
            index += 1;
        }
        QueueSettings {
            limit,
            size: 0,
            max_age_ns: 1,
        }
    }

    /// The child at which the look-up in a dimension starts.
    #[must_use]
    #[inline(always)]
    pub const fn start(&self, dimension: Dimension) -> Child {
        self.starts[dimension as usize]
    }
}

//! The table of reasons: the one vocabulary of counters, metrics, replay, logs and docs.

/// The action on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Action {
    /// Hand it to the network stack.
    Pass,
    /// Drop it before the network stack sees it.
    Drop,
}

impl Action {
    /// The name in metrics and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Drop => "drop",
        }
    }
}

/// The action in a row of the table. For malformed packets the policy chooses it.
macro_rules! action {
    (Malformed, $malformed:ident) => {
        $malformed
    };
    ($action:ident, $malformed:ident) => {
        Action::$action
    };
}

macro_rules! reasons {
    ($($variant:ident $name:literal $action:ident $meaning:literal,)+) => {
        /// Why a packet passed or was dropped: each packet has exactly one reason.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Reason {
            $(#[doc = $meaning] $variant,)+
        }

        impl Reason {
            /// Every reason, in the order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name in metrics, JSON and logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The action on a packet for this reason; `malformed` is the policy's action on
            /// malformed packets.
            #[must_use]
            #[inline(always)]
            pub const fn action(self, malformed: Action) -> Action {
                match self {
                    $(Self::$variant => action!($action, malformed),)+
                }
            }

            /// The reason with this number.
            #[must_use]
            pub const fn of_number(number: u32) -> Option<Self> {
                match number {
                    $(number if number == Self::$variant as u32 => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// A sentence that explains the reason.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)+
                }
            }
        }
    };
}

reasons! {
    WithinLimits "within_limits" Pass
        "Every matching limit that enforces had the tokens; all were charged.",
    Unlimited "unlimited" Pass
        "An IP packet that no configured limit matches.",
    NotIp "not_ip" Pass
        "Neither IPv4 nor IPv6 (ARP, LLDP, …).",
    OverLimit "over_limit" Drop
        "A matching limit had too few tokens; no other was charged.",
    LargerThanBurst "larger_than_burst" Drop
        "The packet costs more than a full bucket of a matching limit holds.",
    Contended "contended" Drop
        "Other CPUs changed the bucket on every attempt to charge it; nothing was charged.",
    BucketUnavailable "bucket_unavailable" Drop
        "There was no room for a new bucket; nothing was charged.",
    Untracked "untracked" Pass
        "There was no room for a new bucket; the matching limit let the packet pass uncharged.",
    Excluded "excluded" Pass
        "The source is on a list that is excluded: it is neither limited nor scored.",
    BlockedList "blocked_list" Drop
        "The source is on a list that the policy or a matching limit blocks.",
    Banned "banned" Drop
        "The source is banned, by itself or with its range.",
    Iprep "iprep" Drop
        "Under pressure, and the source is in too low a list of a sieve.",
    IprepPerma "iprep_perma" Drop
        "Under pressure, and the source is in the perma-block list of a sieve.",
    MalformedEthernet "malformed_ethernet" Malformed
        "The frame is shorter than an Ethernet header.",
    MalformedVlan "malformed_vlan" Malformed
        "The frame ends inside a VLAN tag, or has more than eight of them.",
    MalformedIpv4 "malformed_ipv4" Malformed
        "The IPv4 header is cut short or contradicts itself or the frame's length.",
    MalformedIpv6 "malformed_ipv6" Malformed
        "An IPv6 header is cut short or contradicts itself or the frame's length, or the source is an \
         IPv4-mapped address.",
    MalformedTcp "malformed_tcp" Malformed
        "The TCP header is cut short or contradicts the packet's length.",
    MalformedUdp "malformed_udp" Malformed
        "The UDP header is cut short or contradicts the packet's length.",
    MalformedIcmp "malformed_icmp" Malformed
        "The ICMP or ICMPv6 header is cut short.",
    MalformedTransport "malformed_transport" Malformed
        "An SCTP, DCCP or UDP-Lite header is cut short.",
    MissedTailCall "missed_tail_call" Drop
        "A stage of the program was missing: the pinned array of stages was emptied or removed.",
    Reserved "reserved" Drop
        "A matching limit keeps what is left of its bucket for sources of a higher standing.",
    ListenerHasRoom "listener_has_room" Pass
        "A limit that answers with SYN cookies refused the SYN, but the listening socket still has room.",
    ValidSynCookie "valid_syn_cookie" Pass
        "A limit that answers with SYN cookies refused the ACK, but it has a valid one.",
    TooManyConnections "too_many_connections" Drop
        "It opens a TCP connection, and a matching limit allows no more of them at once; nothing was charged.",
    OwnConnection "own_connection" Pass
        "A limit or a sieve refused it, or would have, but it answers on a TCP connection that this host began.",
    NameAwaited "name_awaited" Drop
        "It has data of a TCP connection whose name is not read yet, and the policy holds that until it is.",
    NameContradicted "name_contradicted" Drop
        "It is of a TCP connection whose client has sent different bytes at one position, so that nobody knows its name, \
         or has what servers leave out of a connection's bytes.",
    MalformedDns "malformed_dns" Malformed
        "A DNS query whose question cannot be read, and a limit counts queries by it.",
}

impl Reason {
    /// Whether a sieve dropped the packet.
    #[must_use]
    #[inline(always)]
    pub const fn is_of_sieve(self) -> bool {
        matches!(self, Self::Iprep | Self::IprepPerma)
    }

    /// Whether a limit refused the packet because its bucket had too few tokens.
    #[must_use]
    #[inline(always)]
    pub const fn is_of_budget(self) -> bool {
        matches!(
            self,
            Self::OverLimit | Self::LargerThanBurst | Self::Reserved
        )
    }

    /// Whether a list decided, so that no limit was asked for tokens.
    #[must_use]
    #[inline(always)]
    pub const fn is_of_list(self) -> bool {
        matches!(self, Self::Excluded | Self::BlockedList)
    }
}

/// The number of reasons.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the table above has a few dozen rows"
)]
pub const REASON_COUNT: u32 = Reason::ALL.len() as u32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_table_and_names_are_unique() {
        for (number, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, number);
            assert_eq!(Reason::of_number(*reason as u32), Some(*reason));
            let namesakes = Reason::ALL.iter().filter(|r| r.name() == reason.name());
            assert_eq!(namesakes.count(), 1, "{}", reason.name());
        }
        assert_eq!(Reason::of_number(REASON_COUNT), None);
    }

    #[test]
    fn only_malformed_packets_are_the_policy_s() {
        for reason in Reason::ALL {
            let is_the_policy_s = reason.action(Action::Pass) != reason.action(Action::Drop);
            assert_eq!(is_the_policy_s, reason.name().starts_with("malformed_"));
        }
    }
}

//! Warns of limits that ban for packets with sources that anybody can forge.

use std::fmt;

use limiter_policy::policy::{
    BanMode, BanOnly, ForgeryReason, Limit, Mode, Policy, configured_name,
};

/// A limit that a forger can make ban any address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgedBan<'p> {
    /// The limit's name, as configured.
    pub limit: &'p str,
    /// The easiest forgery of the packets it counts.
    pub forgeable: ForgeryReason,
    /// The sources it bans; `None`: all.
    pub only: Option<BanOnly>,
}

impl fmt::Display for ForgedBan<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = match self.only {
            None => "anybody who forges an address has it banned",
            // A proven source is a real client, but its packets can still be forged.
            Some(BanOnly::Proven) => {
                "with `only: proven` strangers are not banned, but anybody who forges a proven \
                 client's address has it banned"
            }
        };
        write!(
            formatter,
            "limit {} bans by sources that can be forged ({}): {effect}. Put those you cannot do \
             without on a list under `never-ban`; or let the limit only drop (`ban: {{…, mode: \
             observe}}`), and use `limiter ban` for sources that a server saw misbehave over an \
             established connection. Against forged floods, a limit with id total and a `reserve` \
             keeps known clients served without a ban",
            self.limit,
            self.forgeable.why()
        )
    }
}

/// Returns each banning limit once.
#[must_use]
pub fn bans(policy: &Policy) -> Vec<ForgedBan<'_>> {
    let bans = |limit: &&Limit| {
        let enforces = limit.ban.is_some_and(|ban| ban.mode == BanMode::Enforce);
        limit.mode == Mode::Enforce && enforces && limit.is_first_part()
    };
    let limits = policy.limits.iter().filter(bans);
    limits
        .map(|limit| ForgedBan {
            limit: configured_name(&limit.name),
            forgeable: ForgeryReason::of(&limit.matching),
            only: limit.ban.and_then(|ban| ban.only),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing;

    #[test]
    fn nothing_that_is_matched_proves_a_source() {
        const BAN: &str = "{after: 100, within: 1s, for: 1m}";
        let found = |more: &str| {
            let configuration = format!(
                "limits: {{Own: {{id: ipAddress, cost: packets, burst: 1, count: 1, period: 1s, \
                 {more}}}}}"
            );
            let policy = testing::policy(&configuration);
            let found = bans(&policy);
            assert!(found.iter().all(|ban| ban.limit == "Own"));
            found.iter().map(|ban| ban.forgeable).collect::<Vec<_>>()
        };
        for (matching, expected) in [
            ("protocol: udp", ForgeryReason::NoHandshake),
            ("protocol: [tcp, udp]", ForgeryReason::NoHandshake),
            ("destination-port: 443", ForgeryReason::NoHandshake),
            ("protocol: tcp", ForgeryReason::Syn),
            ("tcp-flags: syn", ForgeryReason::Syn),
            ("tcp-flags: 'syn,!ack'", ForgeryReason::Syn),
            ("tcp-flags: rst", ForgeryReason::Syn),
            ("tcp-flags: ack", ForgeryReason::Segment),
            ("tcp-flags: '!syn'", ForgeryReason::Segment),
        ] {
            let ban = format!("match: {{{matching}}}, ban: {BAN}");
            assert_eq!(found(&ban), [expected], "{matching}");
            // A limit that bans no source is no weapon.
            assert_eq!(found(&format!("{ban}, mode: observe")), []);
            let observed = ban.replace("for: 1m", "for: 1m, mode: observe");
            assert_eq!(found(&observed), []);
            assert_eq!(found(&format!("match: {{{matching}}}")), []);
        }
        assert_eq!(found(&format!("ban: {BAN}")), [ForgeryReason::NoHandshake]);
    }
    #[test]
    fn proven_sources_can_be_forged_too() {
        let reported = |only: &str| {
            let configuration = format!(
                "limits: {{PacketsPerIPAddress: {{burst: 1, count: 1, period: 1s, ban: {{after: 9, \
                 within: 1s, for: 1m{only}}}}}}}"
            );
            let policy = testing::policy(&configuration);
            bans(&policy)[0].to_string()
        };
        let all = "(it counts packets without a handshake): anybody who forges an address has";
        assert!(reported("").contains(all));
        let proven = "(it counts packets without a handshake): with `only: proven` strangers are not \
                      banned, but anybody who forges a proven client's address has it banned. Put";
        let reported = reported(", only: proven");
        assert!(reported.contains(proven), "{reported}");
    }
}

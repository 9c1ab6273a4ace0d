//! The policy: a whole configuration of limits, validated and interned.

mod answers;
pub mod automatic;
mod automatic_ban;
pub mod bans;
mod compile;
mod connections;
mod counted;
mod deny;
pub mod diff;
mod digest;
mod dns_cookies;
mod dns_match;
mod dns_name;
mod embedded;
mod exempt;
mod forgeable;
mod icmp_types;
mod in_use;
mod key_id;
mod limit;
mod list;
mod listing;
mod matching;
mod name_settings;
mod names;
mod overridden_name;
mod override_id;
mod parts;
mod public_suffix;
mod question;
mod redundant_limit;
pub mod serial;
pub mod shared_limits;
mod sieve;
mod standing;
mod units;
mod uses;

use std::{collections::BTreeMap, net::IpAddr};

use ipnet::{IpNet, Ipv6Net};
use limiter_common::{
    limit::{KeyPart, NameKind},
    reason::Action,
};
use serde::{Deserialize, Serialize};

pub use self::{
    answers::AnswerRates,
    automatic_ban::{AutomaticBan, BanMode, BanOnly, Escalation},
    compile::{
        CompileError, CompiledPolicy, KeyShares, MOST_KEYS, NameTable, ServerNames,
        server_names_by_number, zones_by_number,
    },
    connections::{CountedConnections, OwnConnections, Queue},
    deny::Deny,
    digest::digest,
    dns_cookies::DnsCookies,
    dns_match::DnsMatch,
    dns_name::{DnsName, InvalidDnsName, NamePattern},
    embedded::{Embedding, embedding_of},
    forgeable::ForgeryReason,
    icmp_types::{IcmpTypes, NamedIcmpType},
    key_id::{KeyNames, bucket_id, id_text, key_id},
    limit::{FlatMetrics, Limit, Mode, Override, Rate},
    list::List,
    listing::{BanExemption, Listing},
    matching::{Fragments, Match, PortRange, TcpFlags},
    name_settings::{CachedNames, UntilKnown},
    names::{Names, TooManyNames},
    overridden_name::{InvalidOverriddenName, OverriddenName},
    override_id::{OverrideId, SubscriberNumber},
    parts::{configured_name, part_name},
    public_suffix::{DomainLabels, InvalidSuffixRule, SuffixKind, SuffixRule, rule_in_line},
    question::{HashedName, Question, QuestionNames, QuestionText, RequestedName, hashed_names},
    redundant_limit::RedundantLimit,
    sieve::{InvalidPercentage, Percentage, PermaBlock, PressureOf, Sieve, SieveSizes, SieveUse},
    standing::{
        ExhaustibleLimit, FORGED_SOURCES, Proof, Reserve, ReserveSize, Retry, SourceBound,
        StandingSettings, Step, Visits,
    },
    units::{TooManyUnits, Units},
    uses::{ListUse, Overlap, Purpose},
};
pub(crate) use self::{embedded::NAT64_LENGTHS, limit::most_bits, overridden_name::key_part};

/// A whole configuration of limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The limits, in the order of their interned ids.
    pub limits: Vec<Limit>,
    /// The prefixes of each subscriber; no prefix belongs to two.
    #[serde(deserialize_with = "serial::subscribers")]
    pub subscribers: BTreeMap<SubscriberNumber, Vec<IpNet>>,
    /// The sieves, in the order of the file, with distinct names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sieves: Vec<Sieve>,
    /// The action for malformed packets.
    pub malformed: Action,
    /// The treatment of TCP connections that the host began.
    #[serde(default, skip_serializing_if = "OwnConnections::is_default")]
    pub own_connections: OwnConnections,
    /// The treatment of a connection's data until its name is known.
    #[serde(default, skip_serializing_if = "UntilKnown::is_default")]
    pub until_known: UntilKnown,
    /// The size and time of the table of cached names, for limits on new names.
    #[serde(default, skip_serializing_if = "CachedNames::is_default")]
    #[serde(rename = "known_names")]
    pub cached_names: CachedNames,
    /// The TCP connections that limits on open connections count.
    #[serde(default, skip_serializing_if = "CountedConnections::is_default")]
    pub connections: CountedConnections,
    /// The lists, with distinct names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<List>,
    /// The lists with addresses that are never limited, blocked or banned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The lists with addresses that are always dropped, unless excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<String>,
    /// The lists with addresses that are never banned, but limited like any other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_ban: Vec<String>,
    /// The prefixes of this site's NAT64 translators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nat64: Vec<Ipv6Net>,
    /// The rules for standing; `None`: the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<StandingSettings>,
    /// The rates of answers; `None`: the default rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswerRates>,
    /// The DNS cookies that prove sources; `None`: cookies prove none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_cookies: Option<DnsCookies>,
    /// The zones that limits with the id `zone` tell apart, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<DnsName>,
    /// The public suffixes that divide names into domains for limits with the id `domain`, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub public_suffixes: Vec<SuffixRule>,
    /// The names that limits with the id `server-name` tell apart, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_names: Vec<DnsName>,
}

/// Makes a policy with these limits, without subscribers and lists; malformed packets are dropped.
impl From<Vec<Limit>> for Policy {
    fn from(limits: Vec<Limit>) -> Self {
        Self {
            limits,
            subscribers: BTreeMap::new(),
            sieves: Vec::new(),
            malformed: Action::Drop,
            own_connections: OwnConnections::default(),
            until_known: UntilKnown::default(),
            cached_names: CachedNames::default(),
            connections: CountedConnections::default(),
            lists: Vec::new(),
            exclude: Vec::new(),
            block: Vec::new(),
            never_ban: Vec::new(),
            nat64: Vec::new(),
            standing: None,
            answers: None,
            dns_cookies: None,
            zones: Vec::new(),
            public_suffixes: Vec::new(),
            server_names: Vec::new(),
        }
    }
}

impl Policy {
    /// Returns the policy with its limits' interned ids taken from `known`, or new ones; and all names for
    /// the next policy. The names `in_force` keep their ids.
    ///
    /// # Errors
    ///
    /// The limits and the names in force need too many ids.
    pub fn with_names(
        mut self,
        known: &Names,
        in_force: &[String],
    ) -> Result<(Self, Names), TooManyNames> {
        let current = self.limits.iter().map(|limit| &*limit.name);
        let names = known.intern_beside(current, in_force)?;
        for limit in &mut self.limits {
            limit.id = names.id(&limit.name).ok_or(TooManyNames)?;
        }
        self.limits.sort_unstable_by_key(|limit| limit.id);
        Ok((self, names))
    }

    /// Returns the number of overrides in all limits.
    #[must_use]
    pub fn override_count(&self) -> usize {
        self.limits.iter().map(|limit| limit.overrides.len()).sum()
    }

    /// Returns the subscriber of an address, by the longest prefix.
    #[must_use]
    pub fn subscriber_of(&self, address: IpAddr) -> Option<SubscriberNumber> {
        self.subscribers
            .iter()
            .flat_map(|(number, prefixes)| prefixes.iter().map(move |prefix| (*number, prefix)))
            .filter(|(_, prefix)| prefix.contains(&address))
            .max_by_key(|(_, prefix)| prefix.prefix_len())
            .map(|(number, _)| number)
    }

    /// Returns a limit's override for an address without regard to names: the longest prefix.
    #[must_use]
    pub fn override_of<'a>(&self, limit: &'a Limit, address: IpAddr) -> Option<&'a Override> {
        self.override_among(limit, address, None)
    }

    /// Returns a limit's override for packets from an address that ask for a name: the override for the
    /// source and the name, else for the name, else for the source.
    #[must_use]
    pub fn override_by_name<'a>(
        &self,
        limit: &'a Limit,
        address: IpAddr,
        name: &OverriddenName,
    ) -> Option<&'a Override> {
        let of_all = || {
            let mut overrides = limit.overrides.iter();
            overrides.find(|other| matches!(&other.id, OverrideId::Name(one) if one == name))
        };
        self.override_among(limit, address, Some(name))
            .or_else(of_all)
            .or_else(|| self.override_of(limit, address))
    }

    /// Returns the name that a limit charges for a packet's name; `None`: the limit ignores names, or the
    /// name is in no zone or section `server-names`. `suffixes` are the policy's.
    #[must_use]
    pub fn name_charged(
        &self,
        limit: &Limit,
        requested_name: &RequestedName,
        suffixes: &DomainLabels,
    ) -> Option<OverriddenName> {
        let question = match requested_name {
            RequestedName::Question(question) => question,
            RequestedName::ServerName(name) => {
                let is_named = limit.id_format.key_part() == Some(KeyPart::ServerName);
                let key = longest_of(&self.server_names, name).filter(|_| is_named);
                return key.map(OverriddenName::from);
            }
        };
        match limit.name_kind()? {
            NameKind::Zone => self.zone_of(&question.name).map(OverriddenName::from),
            NameKind::Domain => Some(suffixes.domain(&question.name).into()),
            NameKind::Question => Some(question.into()),
        }
    }

    /// Returns the longest zone that contains a name.
    pub(crate) fn zone_of(&self, name: &DnsName) -> Option<DnsName> {
        longest_of(&self.zones, name)
    }

    /// Returns a limit's override for an address and a name (`None`: any name), by the longest prefix.
    fn override_among<'a>(
        &self,
        limit: &'a Limit,
        address: IpAddr,
        name: Option<&OverriddenName>,
    ) -> Option<&'a Override> {
        let subscriber = self.subscriber_of(address);
        limit
            .overrides
            .iter()
            .filter(|other| other.id.name() == name)
            .filter_map(|other| match other.id.source()? {
                OverrideId::Prefix(prefix) => prefix
                    .contains(&address)
                    .then(|| (prefix.prefix_len(), other)),
                OverrideId::Subscriber(number) => {
                    (subscriber == Some(number)).then_some((0, other))
                }
                _ => None,
            })
            .max_by_key(|(prefix_length, _)| *prefix_length)
            .map(|(_, other)| other)
    }
}

/// Returns the longest of some sorted names that is the name itself or an ancestor.
fn longest_of(names: &[DnsName], name: &DnsName) -> Option<DnsName> {
    let mut ends = name.with_ancestors();
    ends.find(|one| names.binary_search(one).is_ok())
}

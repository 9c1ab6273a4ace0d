//! The policy: a whole configuration of limits, validated and interned.

mod answering;
mod answers;
mod asked_for;
pub mod automatic;
mod automatic_ban;
pub mod bans;
mod compile;
mod counted;
mod counted_connections;
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
mod implied;
pub mod in_common;
mod known_names;
mod limit;
mod list;
mod listing;
mod matching;
mod names;
mod overridden_name;
mod override_id;
mod own_connections;
mod owner_id;
mod parts;
mod public_suffix;
mod question;
mod queue;
pub mod serial;
mod sieve;
mod standing;
mod units;
mod until_known;
mod uses;

use std::{collections::BTreeMap, net::IpAddr};

use ipnet::{IpNet, Ipv6Net};
use limiter_common::{
    limit::{NameKind, NamedBy},
    reason::Action,
};
use serde::{Deserialize, Serialize};

pub use self::{
    answers::AnswerRates,
    asked_for::AskedFor,
    automatic_ban::{AutomaticBan, BanMode, BanOnly, Escalation},
    compile::{
        CompileError, CompiledPolicy, MOST_OWNERS, NameTable, OwnerShares, ServerNames,
        server_names_by_number, zones_by_number,
    },
    counted_connections::CountedConnections,
    deny::Deny,
    digest::digest,
    dns_cookies::DnsCookies,
    dns_match::DnsMatch,
    dns_name::{DnsName, InvalidDnsName, NamePattern},
    embedded::{Embedding, embedding_of},
    forgeable::Forgeable,
    icmp_types::{IcmpTypes, NamedIcmpType},
    implied::Implied,
    known_names::KnownNames,
    limit::{FlatMetrics, Limit, Mode, Override, Rate},
    list::List,
    listing::{Listing, NeverBanned},
    matching::{Fragments, Match, PortRange, TcpFlags},
    names::{Names, TooManyNames},
    overridden_name::{InvalidOverriddenName, OverriddenName},
    override_id::{OverrideId, SubscriberNumber},
    own_connections::OwnConnections,
    owner_id::{OwnerNames, bucket_id, id_text, owner_id},
    parts::{configured_name, part_name},
    public_suffix::{DomainLabels, InvalidSuffixRule, SuffixKind, SuffixRule, rule_in_line},
    question::{HashedName, Question, QuestionNames, QuestionText, hashed_names},
    queue::Queue,
    sieve::{InvalidPercentage, Percentage, PermaBlock, PressureOf, Sieve, SieveSizes, SieveUse},
    standing::{
        FORGED_SOURCES, Proof, Reserve, Reserved, Retry, StandingSettings, Step, TakenBy,
        TakenByFew, Visits,
    },
    units::{TooManyUnits, Units},
    until_known::UntilKnown,
    uses::{ListUse, Overlap, Purpose},
};
pub(crate) use self::{embedded::NAT64_LENGTHS, limit::most_bits, overridden_name::named_by};

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
    /// What becomes of packets of TCP connections that the host itself began.
    #[serde(default, skip_serializing_if = "OwnConnections::is_default")]
    pub own_connections: OwnConnections,
    /// The fate of data of connections until their names are known.
    #[serde(default, skip_serializing_if = "UntilKnown::is_default")]
    pub until_known: UntilKnown,
    /// How many names are known to limits on new ones, and for how long.
    #[serde(default, skip_serializing_if = "KnownNames::is_default")]
    pub known_names: KnownNames,
    /// Which TCP connections limits on connections open at once count.
    #[serde(default, skip_serializing_if = "CountedConnections::is_default")]
    pub connections: CountedConnections,
    /// The lists, with distinct names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<List>,
    /// The names of the lists whose addresses are never limited, blocked or banned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The names of the lists whose addresses are always dropped, unless excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<String>,
    /// The names of the lists whose addresses are never banned, but limited like any other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_ban: Vec<String>,
    /// The prefixes in which this site's translators put IPv4 addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nat64: Vec<Ipv6Net>,
    /// How sources get their standing, where a limit uses it; `None`: by the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<StandingSettings>,
    /// How many answers are sent, where a limit answers; `None`: the default number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswerRates>,
    /// Which DNS cookies prove sources; `None`: none do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_cookies: Option<DnsCookies>,
    /// The zones that limits with the id `zone` tell apart, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<DnsName>,
    /// The public suffixes by which limits with the id `domain` tell domains apart, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub public_suffixes: Vec<SuffixRule>,
    /// The names that limits with the id `server-name` tell apart, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_names: Vec<DnsName>,
}

/// Makes a policy of limits, without subscribers and lists; malformed packets are dropped.
impl From<Vec<Limit>> for Policy {
    fn from(limits: Vec<Limit>) -> Self {
        Self {
            limits,
            subscribers: BTreeMap::new(),
            sieves: Vec::new(),
            malformed: Action::Drop,
            own_connections: OwnConnections::default(),
            until_known: UntilKnown::default(),
            known_names: KnownNames::default(),
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
    /// Returns the policy with its limits' interned ids taken from `known`, or new ones, and all
    /// names afterwards. The names `in_force` keep their ids.
    ///
    /// # Errors
    ///
    /// Its limits and those in force are too many.
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

    /// Returns how many overrides all limits have together.
    #[must_use]
    pub fn override_count(&self) -> usize {
        self.limits.iter().map(|limit| limit.overrides.len()).sum()
    }

    /// Returns the subscriber that an address belongs to, by the longest prefix.
    #[must_use]
    pub fn subscriber_of(&self, address: IpAddr) -> Option<SubscriberNumber> {
        self.subscribers
            .iter()
            .flat_map(|(number, prefixes)| prefixes.iter().map(move |prefix| (*number, prefix)))
            .filter(|(_, prefix)| prefix.contains(&address))
            .max_by_key(|(_, prefix)| prefix.prefix_len())
            .map(|(number, _)| number)
    }

    /// Returns the override of a limit that applies to an address, whatever it asks for: the longest prefix.
    #[must_use]
    pub fn override_of<'a>(&self, limit: &'a Limit, address: IpAddr) -> Option<&'a Override> {
        self.override_among(limit, address, None)
    }

    /// Returns the override of a limit that applies to packets from an address which ask for a name that the
    /// limit knows so: that for its source and the name, else that for the name, else that for the source.
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

    /// Returns the name by which a limit charges what is asked for; `None`: no name matters to it, or it is in
    /// no zone or no name of the section `server-names`. `suffixes` are the policy's.
    #[must_use]
    pub fn name_charged(
        &self,
        limit: &Limit,
        asked_for: &AskedFor,
        suffixes: &DomainLabels,
    ) -> Option<OverriddenName> {
        let question = match asked_for {
            AskedFor::Question(question) => question,
            AskedFor::ServerName(name) => {
                let is_named = limit.id_format.named_by() == Some(NamedBy::ServerName);
                let owner = longest_of(&self.server_names, name).filter(|_| is_named);
                return owner.map(OverriddenName::from);
            }
        };
        match limit.name_kind()? {
            NameKind::Zone => self.zone_of(&question.name).map(OverriddenName::from),
            NameKind::Domain => Some(suffixes.domain(&question.name).into()),
            NameKind::Question => Some(question.into()),
        }
    }

    /// Returns the longest zone that has a name.
    pub(crate) fn zone_of(&self, name: &DnsName) -> Option<DnsName> {
        longest_of(&self.zones, name)
    }

    /// Returns the override of a limit for sources that include an address, and for that name or whatever they
    /// ask for: the longest prefix.
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

/// Returns the longest of some names, in order, that a name is or is below.
fn longest_of(names: &[DnsName], name: &DnsName) -> Option<DnsName> {
    let mut ends = name.with_ancestors();
    ends.find(|one| names.binary_search(one).is_ok())
}

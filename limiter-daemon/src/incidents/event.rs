//! Events of incidents, and their log lines.

use std::time::Duration;

use limiter_common::{
    address::Address,
    key::Key,
    limit::{KeyPart, LimitId},
};
use limiter_datapath::kernel::Datapath;
use limiter_protocol::Grouping;
use tracing::{info, warn};

use crate::{
    offenders::{key_text, limit_name, prefix_length},
    texts::Texts,
};

/// The subject of an incident: a limit, and the source or the name that it drops packets of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Subject {
    pub(super) limit: LimitId,
    pub(super) source: Source,
}

/// The source of dropped packets, or the name that they ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// Packets of one address.
    Address(Address),
    /// Packets of many addresses of an IPv4 /24 or IPv6 /64, given by its first address.
    Range(Address),
    /// Packets that ask for the name with that number.
    Name(KeyPart, u64),
    /// Packets of unknown sources, or of many sources that are each dropped seldom.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Packets begin to be dropped.
    Began {
        subject: Subject,
        /// The number of source addresses; 0: unknown, also for a name.
        addresses: u64,
        /// At least this many packets were dropped so far.
        drops: u64,
    },
    /// No packet is dropped any more.
    Ended {
        subject: Subject,
        /// The number of dropped packets.
        drops: u64,
        /// Whether more may have been dropped.
        is_lower_bound: bool,
        /// From the first drop to the last.
        duration_ns: u64,
    },
    /// This many further sources and names began to be dropped, without a line for each.
    More { sources: u64 },
}

impl Source {
    pub(super) const fn range_of(address: Address) -> Self {
        Self::Range(address.masked(prefix_length(Grouping::Range, address.family)))
    }

    /// Returns the key of the packets; `None`: they have none.
    const fn key(self) -> Option<Key> {
        let (by, address) = match self {
            Self::Address(address) => (Grouping::Address, address),
            Self::Range(address) => (Grouping::Range, address),
            Self::Name(key_part, number) => return Some(Key::Number(key_part, number)),
            Self::Any => return None,
        };
        Some(Key::Source {
            address,
            prefix_length: prefix_length(by, address.family),
        })
    }
}

/// The texts of a subject.
struct SubjectTexts {
    limit: String,
    address: Option<String>,
    range: Option<String>,
    name: Option<String>,
    /// The dropped packets, as the object of the sentence.
    object: String,
}

impl Event {
    pub(super) const fn is_beginning(&self) -> bool {
        !matches!(self, Self::Ended { .. })
    }

    pub(super) const fn is_of_name(&self) -> bool {
        match self {
            Self::Began { subject, .. } | Self::Ended { subject, .. } => {
                matches!(subject.source, Source::Name(..))
            }
            Self::More { .. } => false,
        }
    }

    /// Logs the event, with limits' names from this datapath's policy and other names from `texts`. Returns the line.
    pub(super) fn log(&self, datapath: &Datapath, texts: &Texts) -> String {
        match self {
            Self::Began {
                subject,
                addresses,
                drops,
            } => {
                let SubjectTexts {
                    limit,
                    address,
                    range,
                    name,
                    object,
                } = subject.subject_texts(datapath, texts);
                let of_many = match range {
                    Some(_) => format!(": {addresses} addresses"),
                    None => String::new(),
                };
                let message = format!("{limit} began to drop{object}{of_many}");
                warn!(limit, address, range, name, addresses, drops, "{message}");
                message
            }
            Self::Ended {
                subject,
                drops,
                is_lower_bound,
                duration_ns,
            } => {
                let SubjectTexts {
                    limit,
                    address,
                    range,
                    name,
                    object,
                } = subject.subject_texts(datapath, texts);
                let at_least = if *is_lower_bound { "at least " } else { "" };
                let duration = Duration::from_nanos(*duration_ns);
                let message = format!(
                    "{limit} no longer drops{object}: {at_least}{drops} packets in {duration:.1?}"
                );
                info!(
                    limit,
                    address, range, name, drops, is_lower_bound, duration_ns, "{message}"
                );
                message
            }
            Self::More { sources } => {
                warn!(
                    sources,
                    "and {sources} more sources or names began to be dropped: see `limiter offenders`"
                );
                format!("and {sources} more sources or names began to be dropped")
            }
        }
    }
}

impl Subject {
    /// Returns the texts, with limits' names from this datapath's policy and other names from `texts`.
    fn subject_texts(&self, datapath: &Datapath, texts: &Texts) -> SubjectTexts {
        // The limit may have left the policy meanwhile.
        let limit = limit_name(&datapath.manifest().policy, self.limit.0);
        let limit = limit.unwrap_or_else(|| format!("limit {}", self.limit.0));
        let key = self.source.key();
        let key = key.map(|key| key_text(datapath, Some(texts), &key));
        let object = match (&key, self.source) {
            (Some(name), Source::Name(..)) => format!(" packets for {name}"),
            (Some(source), _) => format!(" {source}"),
            (None, _) => String::new(),
        };
        let mut words = SubjectTexts {
            limit,
            address: None,
            range: None,
            name: None,
            object,
        };
        match self.source {
            Source::Address(_) => words.address = key,
            Source::Range(_) => words.range = key,
            Source::Name(..) => words.name = key,
            Source::Any => {}
        }
        words
    }
}

//! A configuration as a whole: as far as it is read, and checked.

use std::path::PathBuf;

use ipnet::Ipv6Net;
use limiter_common::{reason::Action, table::HashKey};
use limiter_fleet::Keys;

use super::{
    ip_rep::IpRep,
    limits::Limits,
    list_names::ListNames,
    listening::{Metrics, Page},
    lists::Lists,
    name_sections::Suffixes,
    overrides,
    room::{Bans, Buckets, Offenders},
    settings::{AttachMode, Control},
    standing,
    subscribers::Subscribers,
};
use crate::{
    fleet::Fleet,
    interface::InterfaceName,
    lists::{Feeds, ListSource},
    policy::{
        AnswerRates, CachedNames, CountedConnections, DnsCookies, DnsName, OwnConnections, Policy,
        UntilKnown,
    },
    secrets::Secrets,
};

/// The sections of a configuration, as far as they are known.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) limits: Limits,
    pub(super) overrides: overrides::Section,
    /// Whether every override was readable. If not, a limit without overrides is no error.
    pub(super) overrides_known: bool,
    /// `None`: missing or invalid.
    pub(super) subscribers: Option<Subscribers>,
    /// Whether the file lacks the section `subscribers`.
    pub(super) subscribers_missing: bool,
    pub(super) lists: Lists,
    pub(super) exclude: ListNames,
    pub(super) block: ListNames,
    pub(super) never_ban: ListNames,
    pub(super) nat64: Vec<Ipv6Net>,
    pub(super) ip_rep: IpRep,
    /// `None`: the file has no such section.
    pub(super) standing: Option<standing::Section>,
    /// `None`: the file has no such section.
    pub(super) answers: Option<AnswerRates>,
    /// `None`: the file has no such section.
    pub(super) dns_cookies: Option<DnsCookies>,
    pub(super) secrets: Option<Secrets>,
    /// Sorted; `None`: the file has no such section.
    pub(super) zones: Option<Vec<DnsName>>,
    /// Sorted; `None`: the file has no such section.
    pub(super) server_names: Option<Vec<DnsName>>,
    pub(super) public_suffixes: Suffixes,
    /// `None`: the default.
    pub(super) malformed: Option<Action>,
    pub(super) own_connections: OwnConnections,
    pub(super) connections: CountedConnections,
    pub(super) until_known: UntilKnown,
    pub(super) cached_names: CachedNames,
    pub(super) interfaces: Vec<InterfaceName>,
    pub(super) mode: AttachMode,
    pub(super) buckets: Buckets,
    pub(super) offenders: Offenders,
    pub(super) bans: Bans,
    /// Whether the file has the section `bans`: then a policy without limits is still useful, for operators'
    /// bans.
    pub(super) has_bans: bool,
    pub(super) state: Option<PathBuf>,
    pub(super) metrics: Metrics,
    pub(super) page: Page,
    pub(super) control: Control,
    /// `None`: the host is alone, or an error was reported.
    pub(super) fleet: Option<Fleet>,
    pub(super) fleet_keys: Option<Keys>,
}

/// A checked configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The files it was read from, the configuration file first, and the folder of further ones,
    /// which need not exist. Files that came through a descriptor, such as `/dev/stdin`, cannot be read
    /// again and are not included.
    pub files: Vec<PathBuf>,
    /// The interfaces to attach to; may be empty, since the command line can name them too.
    pub interfaces: Vec<InterfaceName>,
    /// The way of attaching.
    pub mode: AttachMode,
    /// The storage of limits' state.
    pub buckets: Buckets,
    /// The capacity for offenders.
    pub offenders: Offenders,
    /// The capacity for bans.
    pub bans: Bans,
    /// The file for debts while the daemon does not run; `None`: debts are lost.
    pub state: Option<PathBuf>,
    /// The address of the metrics.
    pub metrics: Metrics,
    /// The address of the page.
    pub page: Page,
    /// The users that may query the daemon.
    pub control: Control,
    /// The fleet of this host; `None`: it is alone.
    pub fleet: Option<Fleet>,
    /// The secret for numbering names alike on all nodes; `None`: no limit needs it, and each host makes its
    /// own.
    pub names_key: Option<HashKey>,
    /// The sources of the lists' addresses, in the policy's order.
    pub lists: Vec<ListSource>,
    /// The content of each list's files, by the list's name, in the order of the files.
    pub feeds: Feeds,
    /// The secrets of the DNS server for checking its cookies; `None`: cookies prove no source.
    pub secrets: Option<Secrets>,
    /// The limits and lists, at least one of either. Limit names are interned without regard to
    /// earlier policies; [`Policy::with_names`] keeps another policy's interned ids.
    pub policy: Policy,
}

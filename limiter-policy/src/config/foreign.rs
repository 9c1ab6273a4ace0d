//! Words of other programs: their meaning here, or the reason why they have none.
//!
//! In Boulder's file a limit's name implies its unit and its keys. Here a file must state both, since
//! Boulder's units (accounts, orders, certificates) appear in no packet.

use limiter_common::limit::{IPV6_RANGE, IdFormat};

/// Words of other programs, with our words for the same thing.
pub(super) const SYNONYMS: [(&str, &str); 20] = [
    ("proto", "protocol"),
    ("port", "destination-port"),
    ("ports", "destination-port"),
    ("dport", "destination-port"),
    ("sport", "source-port"),
    ("dst", "destination"),
    ("flags", "tcp-flags"),
    ("ping", "echo-request"),
    ("dry-run", "observe"),
    ("dryrun", "observe"),
    ("monitor", "observe"),
    ("log", "observe"),
    ("ip", "ipAddress"),
    ("address", "ipAddress"),
    ("whitelist", "exclude"),
    ("allowlist", "exclude"),
    ("allow", "exclude"),
    ("blacklist", "block"),
    ("blocklist", "block"),
    ("interval", "period"),
];

/// Names that belong elsewhere: if the second name is known here, the third text says where the first
/// belongs.
pub(super) const ELSEWHERE: [(&str, &str, &str); 6] = [
    ("source", "source-port", SOURCES),
    ("source-address", "source-port", SOURCES),
    ("src", "source-port", SOURCES),
    ("observe", "generic", MODES),
    ("dry-run", "generic", MODES),
    ("enforce", "generic", MODES),
];

const SOURCES: &str = "sources are chosen by 'exclude', 'block' and 'overrides'";
const MODES: &str = "'mode: observe' and 'mode: enforce' belong to a limit, and this mode, auto, \
                     native or generic, to interfaces";

/// The id of the set of names of a certificate. A packet asks for one name, so it is the set of one.
pub(super) const FQDN_SET: &str = "fqdnSet";

/// The id of the pair of an account and a domain.
pub(super) const REG_ID_DOMAIN: &str = "regId:domain";

/// The limits, each with the matching id here; `None`: no packet shows the limit's unit.
const BOULDER_LIMITS: [(&str, Option<&str>); 9] = [
    (
        "NewRegistrationsPerIPAddress",
        Some(IdFormat::IpAddress.name()),
    ),
    (
        "NewRegistrationsPerIPv6Range",
        Some(
            IdFormat::Ipv6RangeCidr {
                prefix_length: IPV6_RANGE,
            }
            .name(),
        ),
    ),
    ("NewOrdersPerAccount", Some(IdFormat::RegId.name())),
    ("FailedAuthorizationsPerDomainPerAccount", None),
    ("CertificatesPerDomain", Some(IdFormat::Domain.name())),
    ("CertificatesPerDomainPerAccount", Some(REG_ID_DOMAIN)),
    ("CertificatesPerFQDNSet", Some(FQDN_SET)),
    ("FailedAuthorizationsForPausingPerDomainPerAccount", None),
    (
        "LimitOverrideRequestsPerIPAddress",
        Some(IdFormat::IpAddress.name()),
    ),
];

/// Returns the error for a limit of Boulder that the file does not define; `None`: not a name of Boulder's.
pub(super) fn boulder_limit(name: &str) -> Option<String> {
    let (_, id) = BOULDER_LIMITS.iter().find(|(limit, _)| *limit == name)?;
    Some(match id {
        Some(id) => format!(
            "unknown limit '{name}': what Boulder counts by it is in no packet; to limit packets of the same \
             keys, give it 'id: {id}', a 'cost' and a rate for that"
        ),
        None => {
            format!("'{name}' has no meaning here: no packet shows whether a validation failed")
        }
    })
}

/// The options that a Traffic Server user may write, and the reasons why we lack them.
const TRAFFIC_SERVER_OPTIONS: [(&str, &str); 9] = [
    ("selector", "it is a section of its own"),
    (
        "sni",
        "it is of the section 'selector'; use `match: {server-name: …}` of a limit",
    ),
    (
        "aliases",
        "it is of the section 'selector'; use `match: {server-name: …}` of a limit",
    ),
    (
        "queue",
        "clients wait for a limit with 'cost: connections', and it belongs there",
    ),
    (
        "maxage",
        "use 'max-age' of the 'queue' of a limit with 'cost: connections'",
    ),
    ("error", "it is an HTTP status, and packets get no answer"),
    ("retry", "it is an HTTP header, and packets get no answer"),
    ("header", "it is an HTTP header, which packets do not have"),
    (
        "conntrack",
        "use a limit with 'cost: new-connections' to count new connections",
    ),
];

/// Returns the error for such an option; `None`: another name.
pub(super) fn traffic_server_option(name: &str) -> Option<String> {
    let (name, why) = TRAFFIC_SERVER_OPTIONS
        .iter()
        .find(|(option, _)| *option == name)?;
    Some(format!("'{name}' has no meaning here: {why}"))
}

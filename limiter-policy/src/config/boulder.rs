//! Boulder's names of limits and ids, translated to packets.
//!
//! In Boulder's file a limit's name implies its unit and its keys. Here a file must state both, since
//! Boulder's units (accounts, orders, certificates) appear in no packet.

use limiter_common::limit::{IPV6_RANGE, IdFormat};

/// The id of the set of names of a certificate. A packet asks for one name, so it is the set of one.
pub(super) const FQDN_SET: &str = "fqdnSet";

/// The id of the pair of an account and a domain.
pub(super) const REG_ID_DOMAIN: &str = "regId:domain";

/// The limits, each with the matching id here; `None`: no packet shows the limit's unit.
const LIMITS: [(&str, Option<&str>); 9] = [
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
pub(super) fn undefined(name: &str) -> Option<String> {
    let (_, id) = LIMITS.iter().find(|(limit, _)| *limit == name)?;
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

//! The ids of limits on new names.

use limiter_common::limit::{Cost, IdFormat, NameKind};

use super::{
    limit_id::{ID, LimitKeys},
    reader::{Fields, Reader},
};

/// Reports an id with unbounded buckets for made-up sources, destinations or names. Each new name would get a
/// fresh bucket, so the limit would never refuse. As admitted names are cached, a flood would then evict
/// all other names.
pub(super) fn check_id<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>, id: LimitKeys) {
    let is_bounded = match id.format {
        IdFormat::Total | IdFormat::RegId => matches!(id.per_name, None | Some(NameKind::Zone)),
        // A DNS query has no server name: another check reports it.
        IdFormat::Zone | IdFormat::ServerName => true,
        IdFormat::IpAddress
        | IdFormat::Ipv4RangeCidr { .. }
        | IdFormat::Ipv6RangeCidr { .. }
        | IdFormat::Destination
        | IdFormat::Domain
        | IdFormat::Question => false,
    };
    if let Some(node) = fields.get(ID)
        && !is_bounded
    {
        let name = match id.per_name {
            Some(name_kind) => format!("[{}, {}]", id.format.name(), name_kind.name()),
            None => id.format.name().to_owned(),
        };
        let message = format!(
            "id {name} has a bucket for whatever a forger makes up, so cost {} would bound nothing: set \
             '{ID}' to zone, total, regId or [regId, zone]",
            Cost::NewNames.name()
        );
        reader.error(node.at, message);
    }
}

//! The ids of limits on new names.

use limiter_common::limit::{Cost, IdFormat, NameKind};

use super::{
    limit_id::{ID, LimitOwners},
    reader::{Fields, Reader},
};

/// Notes an id that has as many buckets as somebody makes up sources, destinations or names. Names become known
/// as fast as such limits let them pass, so a flood would push out all others; and a bucket for each new name
/// would never be empty.
pub(super) fn check_id<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>, id: LimitOwners) {
    let is_bounded = match id.format {
        IdFormat::Total | IdFormat::RegId => matches!(id.per_name, None | Some(NameKind::Zone)),
        // A server name is in no DNS query: another check tells.
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

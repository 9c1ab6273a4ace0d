//! The fields of limits on handshakes, which no packet spends.

use super::{
    automatic_ban,
    limit::IP_REP,
    reader::{Fields, Reader},
    strategy,
};

/// Notes the fields of a limit that need packets that spend something.
pub(super) fn refuse_others(reader: &mut Reader<'_, '_>, fields: &Fields<'_>) {
    for field in [strategy::FIELD, automatic_ban::FIELD, IP_REP] {
        if let Some((name, _)) = fields.named(field) {
            let message = format!(
                "'{field}' is not for cost handshakes, which no packet spends: leave it out, or give \
                 it to a second limit with cost new-connections"
            );
            reader.error(name.at, message);
        }
    }
}

//! How long a ban lasts, and why it was made.

use clap::Args;

use super::parse;
use crate::protocol::bans::BanReason;

/// The defaults for all bans that do not give their own.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Terms {
    /// How long the ban lasts, such as 10m or 24h; by default until it is lifted
    #[arg(
        long = "for",
        value_name = "DURATION",
        value_parser = parse::duration_ns,
        allow_hyphen_values = true
    )]
    pub(super) for_ns: Option<u64>,

    /// The reason for the ban: up to 88 bytes of text
    #[arg(long, value_name = "TEXT", value_parser = parse::reason, default_value = "")]
    pub(super) reason: BanReason,
}

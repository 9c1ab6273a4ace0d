//! For how long somebody is banned, and why.

use clap::Args;

use super::parse;
use crate::protocol::bans::BanReason;

/// What holds for all bans that do not say otherwise.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Terms {
    /// For how long, such as 10m or 24h; until the ban is lifted unless it is given
    #[arg(
        long = "for",
        value_name = "DURATION",
        value_parser = parse::duration_ns,
        allow_hyphen_values = true
    )]
    pub(super) for_ns: Option<u64>,

    /// Why: up to 88 bytes of text
    #[arg(long, value_name = "TEXT", value_parser = parse::reason, default_value = "")]
    pub(super) reason: BanReason,
}

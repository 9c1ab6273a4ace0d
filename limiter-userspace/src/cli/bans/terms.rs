//! The length, reason and origin of a ban.

use clap::Args;
use limiter_policy::policy::bans::Origin;
use limiter_protocol::bans::BanReason;

use super::parse::{self, BanLength};
use crate::cli::parse::ParsedValue;

/// The defaults for all bans that do not give their own.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct Terms {
    /// How long the ban lasts, such as 10m or 7d; without it, or with -1, until it is lifted
    #[arg(
        long = "for",
        value_name = "DURATION",
        value_parser = parse::length,
        default_value = "-1",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub(in crate::cli) length: ParsedValue<BanLength>,

    /// The reason for the ban, of which 88 bytes less the bytes of --origin are kept
    #[arg(long, value_name = "TEXT", value_parser = parse::reason, default_value = "")]
    pub(in crate::cli) reason: BanReason,

    /// Who bans, such as sshd (a jail of fail2ban's), and alone has these bans replaced or, in a
    /// stream, lifted; without it, the operator, and crowdsec for its decisions
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) origin: Option<Origin>,
}

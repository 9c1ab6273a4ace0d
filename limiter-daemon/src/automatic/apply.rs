//! Bans the sources that the decider finds, unless the guard or the policy protects them.

use limiter_common::{ban::Ban, limit::LimitId};
use limiter_datapath::kernel::{BanMaps, DatapathError, monotonic_now};
use limiter_host::guard::ProtectedAddresses;
use limiter_policy::{
    policy::{
        AutomaticBan, BanMode, Policy,
        bans::{Origin, prefix_of},
    },
    text::short,
};
use limiter_protocol::bans::BanReason;
use limiter_reputation::automatic::{Decider, Offence, REFUSED_NS};
use tracing::info;

use super::{
    BanContext, Outcome,
    event::{Event, EventKind},
};
use crate::{
    bans::{BanError, BanOrigin, Bans, NewBan, SharedBans},
    offenders::limit_name,
};

/// Bans the sources; returns the events to log.
pub(super) fn apply(
    context: &BanContext,
    decider: &mut Decider,
    protected: &ProtectedAddresses,
    offences: &[Offence],
) -> Result<Vec<Event>, DatapathError> {
    context.bans.change(|datapath, bans| {
        let policy = &datapath.manifest().policy;
        let mut events = Vec::new();
        for offence in offences {
            let LimitId(limit) = offence.limit();
            // A reload may have come in between.
            let terms = decider.terms(offence.limit()).copied();
            let (Some(terms), Some(limit)) = (terms, limit_name(policy, limit)) else {
                continue;
            };
            let refusal = refusal(policy, protected, offence);
            if let Some(kind) = one(decider, bans, refusal, offence, &terms)? {
                context.outcomes.add(offence.limit(), kind.outcome(), 1);
                events.push(Event {
                    limit,
                    prefix: short(prefix_of(&offence.prefix())),
                    drops: offence.drops,
                    reason: offence.reason(&terms),
                    kind,
                });
            }
        }
        Ok(events)
    })
}

/// Lifts automatic bans that the policy in force forbids.
pub(super) fn lift_never_banned(bans: &SharedBans) -> Result<(), DatapathError> {
    bans.change(|datapath, bans| {
        let policy = &datapath.manifest().policy;
        if policy.never_ban.is_empty() && policy.nat64.is_empty() {
            return Ok(());
        }
        // Other nodes may have other policies, so they decide for themselves.
        bans.skip_journal();
        let lifted = bans.unban_chosen(|prefix, ban| {
            ban.is_automatic() && policy.never_banned(prefix).is_some()
        })?;
        if lifted > 0 {
            info!(
                lifted,
                "automatic bans that `never-ban` or `nat64` forbids were lifted (bans: {lifted})"
            );
        }
        Ok(())
    })
}

impl EventKind {
    const fn outcome(&self) -> Outcome {
        match self {
            Self::Bans { .. } => Outcome::Banned,
            Self::WouldBan { .. } => Outcome::WouldBan,
            Self::Refuses { .. } => Outcome::Refused,
        }
    }
}

fn refusal(policy: &Policy, protected: &ProtectedAddresses, offence: &Offence) -> Option<String> {
    let prefix = prefix_of(&offence.prefix());
    let guarded = protected.refusal(prefix).map(|refusal| refusal.to_string());
    guarded.or_else(|| Some(policy.never_banned(prefix)?.to_string()))
}

/// Bans a source, unless there is a reason not to. `None`: it was banned meanwhile.
fn one(
    decider: &mut Decider,
    bans: &mut Bans<'_, BanMaps>,
    refusal: Option<String>,
    offence: &Offence,
    terms: &AutomaticBan,
) -> Result<Option<EventKind>, DatapathError> {
    let (prefix, now_ns) = (prefix_of(&offence.prefix()), monotonic_now());
    let refused_until_ns = now_ns.saturating_add(REFUSED_NS);
    if let Some(why) = refusal {
        decider.refused(offence, refused_until_ns);
        return Ok(Some(EventKind::Refuses { why }));
    }
    if terms.mode == BanMode::Observe {
        // Observing counts and logs a source as often as a ban would.
        decider.ignore(offence, now_ns.saturating_add(terms.for_ns));
        return Ok(Some(EventKind::WouldBan {
            for_ns: terms.for_ns,
        }));
    }
    let remembered = bans.bans_of(prefix)?;
    if let Some(ban) = remembered.first().filter(|ban| ban.holds(now_ns)) {
        decider.banned(offence, ban.until_ns);
        return Ok(None);
    }
    let before = remembered.iter().find(|ban| ban.is_automatic());
    let ban = offence.ban(terms, before, now_ns);
    let for_ns = ban.until_ns.saturating_sub(now_ns);
    let made = bans.ban(&NewBan {
        prefix,
        for_ns: Some(for_ns),
        reason: BanReason::try_from(offence.reason(terms)).unwrap_or_default(),
        origin: BanOrigin::Limit(offence.limit()),
    });
    match made {
        Ok(made) => {
            for part in decider.banned(offence, made.ban.until_ns) {
                replace(bans, offence, prefix_of(&part), made.ban.until_ns)?;
            }
            Ok(Some(EventKind::Bans {
                for_ns,
                times: made.ban.times,
            }))
        }
        Err(BanError::Datapath(error)) => Err(error),
        Err(error) => {
            decider.ignore(offence, refused_until_ns);
            let why = error.to_string();
            Ok(Some(EventKind::Refuses { why }))
        }
    }
}

/// Lifts the ban of a subprefix of a new ban, if it is the same limit's and ends no later.
fn replace(
    bans: &mut Bans<'_, BanMaps>,
    offence: &Offence,
    part: ipnet::IpNet,
    until_ns: u64,
) -> Result<(), DatapathError> {
    let is_replaced = |ban: &Ban| ban.limit == offence.limit().0 && ban.until_ns <= until_ns;
    if bans.bans_of(part)?.iter().any(is_replaced) {
        bans.unban(part, Some(&Origin::AUTOMATIC))?;
    }
    Ok(())
}

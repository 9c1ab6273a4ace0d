//! Checks the references between limits and sieves.

use limiter_common::limit::{Cost, KeyPart};

use super::{
    super::{
        diagnostics::{FilePosition, Problems},
        limit::{self, Definition},
        limits::Limits,
        nearest,
    },
    IpRep,
};
use crate::policy::PressureOf;

/// Reports unusable references, and sieves that nothing uses.
pub(in super::super) fn check(ip_rep: &IpRep, limits: &Limits, problems: &mut Problems) {
    for (_, limit) in limits.iter() {
        if let (Some(named), Some(position)) = (&limit.ip_rep, limit.fields.ip_rep) {
            check_use(ip_rep, limit, (named, position), problems);
        }
    }
    let named = || limits.iter().filter_map(|(_, limit)| limit.ip_rep.as_ref());
    let used = |name: &str| named().any(|named| named == name);
    // A misspelt name may mean any sieve.
    let all_are_known = named().all(|named| ip_rep.definition(named).is_some());
    let uses_are_known = all_are_known && !limits.are_incomplete();
    for definition in &ip_rep.definitions {
        let sieve = &definition.sieve;
        let is_used = used(&sieve.name);
        match (&sieve.pressure, definition.pressure) {
            (Some(PressureOf::Limit(name)), Some(position)) => {
                check_measure(limits, name, position, problems);
            }
            (_, None) if sieve.is_on() && !is_used && uses_are_known => {
                let message = format!(
                    "nothing uses the sieve '{}': name it as 'ip-rep' of a limit, or give it a \
                     'pressure' to apply it to all packets",
                    sieve.name
                );
                problems.report_at(definition.position, message);
            }
            _ => {}
        }
    }
}

fn check_use(
    ip_rep: &IpRep,
    limit: &Definition,
    (named, position): (&str, FilePosition),
    problems: &mut Problems,
) {
    let Some(definition) = ip_rep.definition(named) else {
        if !ip_rep.incomplete {
            problems.report_at(position, unknown(ip_rep, named));
        }
        return;
    };
    if definition.pressure.is_some() {
        return;
    }
    if limit.id_format.key_part() == Some(KeyPart::Interface) {
        check_rate(limit, position, problems);
    } else {
        let message = format!(
            "{} has one budget per {}, so its total does not measure pressure: give the sieve '{}' \
             a 'pressure', {{packets-per-second: N}} or {{limit: NAME}} with the name of a limit \
             with id total",
            limit.name,
            limit.id_format.name(),
            named,
        );
        problems.report_at(position, message);
    }
}

fn unknown(ip_rep: &IpRep, name: &str) -> String {
    if ip_rep.definitions.is_empty() {
        return format!("unknown sieve '{name}': no section 'ip-rep' defines sieves");
    }
    let sieves = ip_rep.definitions.iter();
    let known: Vec<&str> = sieves
        .map(|definition| definition.sieve.name.as_str())
        .collect();
    nearest::unknown("sieve", name, &known)
}

fn check_measure(limits: &Limits, name: &str, position: FilePosition, problems: &mut Problems) {
    let mut all = limits.iter();
    let found = all.find(|(_, limit)| limit.name == name);
    let id_format = match found {
        Some((_, limit)) if limit.id_format.key_part() == Some(KeyPart::Interface) => {
            check_rate(limit, position, problems);
            return;
        }
        Some((_, limit)) => limit.id_format,
        None if limits.are_incomplete() => return,
        None => {
            let Some(built_in) = limit::built_in(name) else {
                problems.report_at(position, unknown_limit(limits, name));
                return;
            };
            built_in.id_format
        }
    };
    let message = format!(
        "{name} has one budget per {}, so it does not measure pressure: name a limit with id \
         total, or use {{packets-per-second: N}}",
        id_format.name()
    );
    problems.report_at(position, message);
}

/// Reports a limit that measures pressure without a rate to measure against. A limit that only blocks needs
/// no rate.
fn check_rate(limit: &Definition, position: FilePosition, problems: &mut Problems) {
    let rate = if limit.cost == Cost::Handshakes {
        "cost handshakes, of which no packet is one, and no rate"
    } else if limit.ceiling.is_some() {
        "an automatic rate, and no rate that stays"
    } else if limit.fields.fleet.is_some() {
        "a rate that a fleet shares, and no rate that stays"
    } else if limit.lacks_rate && !limit.needs_overrides() {
        "no rate"
    } else {
        return;
    };
    let message = format!(
        "{} has {rate} to measure pressure by: give it burst, count and period, or give the sieve a \
         'pressure' of {{packets-per-second: N}}",
        limit.name
    );
    problems.report_at(position, message);
}

fn unknown_limit(limits: &Limits, name: &str) -> String {
    let known: Vec<&str> = limits.iter().map(|(_, limit)| &*limit.name).collect();
    if known.is_empty() {
        return format!("unknown limit '{name}': there are no limits");
    }
    nearest::unknown("limit", name, &known)
}

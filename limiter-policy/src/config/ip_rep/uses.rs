//! What limits and sieves have to have of each other.

use limiter_common::limit::NumberOf;

use super::{
    super::{
        diagnostics::{Place, Problems},
        limit::{self, Definition},
        limits::Limits,
        nearest,
    },
    IpRep,
    named::NamedSieve,
};
use crate::policy::PressureOf;

/// Notes what does not fit.
pub(in super::super) fn check(ip_rep: &IpRep, limits: &Limits, problems: &mut Problems) {
    for (_, limit) in limits.iter() {
        if let Some(named) = &limit.ip_rep {
            check_use(ip_rep, limit, named, problems);
        }
    }
    let named = || limits.iter().filter_map(|(_, limit)| limit.ip_rep.as_ref());
    let used = |name: &str| named().any(|named| named.name == name);
    // Whoever is misspelt may be used.
    let all_are_known = named().all(|named| ip_rep.definition(&named.name).is_some());
    let uses_are_known = all_are_known && !limits.are_incomplete();
    for definition in &ip_rep.definitions {
        let sieve = &definition.sieve;
        let is_used = used(&sieve.name);
        match (&sieve.pressure, definition.pressure) {
            (Some(PressureOf::Limit(name)), Some(place)) => {
                check_measure(limits, name, place, problems);
            }
            (_, None) if sieve.is_on() && !is_used && uses_are_known => {
                let message = format!(
                    "nothing uses the sieve '{}': name it as 'ip-rep' of a limit, or say of what \
                     'pressure' it is on all packets",
                    sieve.name
                );
                problems.note_at(definition.place, message);
            }
            _ => {}
        }
    }
}

/// A limit's use of a sieve.
fn check_use(ip_rep: &IpRep, limit: &Definition, named: &NamedSieve, problems: &mut Problems) {
    let Some(definition) = ip_rep.definition(&named.name) else {
        if !ip_rep.incomplete {
            problems.note_at(named.place, unknown(ip_rep, &named.name));
        }
        return;
    };
    if definition.pressure.is_some() {
        return;
    }
    if limit.id_format.number() == Some(NumberOf::Interface) {
        check_rate(limit, named.place, problems);
    } else {
        let message = format!(
            "{} has a budget for each {}, so what it counts in all says nothing of its pressure: \
             give the sieve '{}' a 'pressure' of its own, {{limit: NAME}} of one with id total or \
             {{packets-per-second: N}}",
            limit.name,
            limit.id_format.name(),
            named.name,
        );
        problems.note_at(named.place, message);
    }
}

fn unknown(ip_rep: &IpRep, name: &str) -> String {
    if ip_rep.definitions.is_empty() {
        return format!("unknown sieve '{name}': there is no section 'ip-rep' that has sieves");
    }
    let sieves = ip_rep.definitions.iter();
    let known: Vec<&str> = sieves
        .map(|definition| definition.sieve.name.as_str())
        .collect();
    nearest::unknown("sieve", name, &known)
}

/// The limit by which a sieve's pressure is measured.
fn check_measure(limits: &Limits, name: &str, place: Place, problems: &mut Problems) {
    let mut all = limits.iter();
    let found = all.find(|(_, limit)| limit.name == name);
    let id_format = match found {
        Some((_, limit)) if limit.id_format.number() == Some(NumberOf::Interface) => {
            check_rate(limit, place, problems);
            return;
        }
        Some((_, limit)) => limit.id_format,
        None if limits.are_incomplete() => return,
        None => {
            let Some(built_in) = limit::built_in(name) else {
                problems.note_at(place, unknown_limit(limits, name));
                return;
            };
            built_in.id_format
        }
    };
    let message = format!(
        "{name} has a budget for each {}: pressure is that of a limit with id total, or \
         {{packets-per-second: N}}",
        id_format.name()
    );
    problems.note_at(place, message);
}

/// A limit by which pressure is measured needs a rate, though it may do without to block somebody.
fn check_rate(limit: &Definition, place: Place, problems: &mut Problems) {
    if limit.lacks_rate && !limit.needs_overrides {
        let message = format!(
            "{} has no rate by which pressure could be measured: give it burst, count and period, \
             or the sieve a 'pressure' of {{packets-per-second: N}}",
            limit.name
        );
        problems.note_at(place, message);
    }
}

fn unknown_limit(limits: &Limits, name: &str) -> String {
    let known: Vec<&str> = limits.iter().map(|(_, limit)| &*limit.name).collect();
    if known.is_empty() {
        return format!("unknown limit '{name}': there are no limits");
    }
    nearest::unknown("limit", name, &known)
}

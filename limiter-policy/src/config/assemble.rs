//! Builds the configuration from the parsed sections. Checks here span sections: they run after all sections are
//! read, because a limit may name a list, a sieve or a subscriber that the file defines later. Interns limit
//! ids.

use std::{
    collections::{HashMap, hash_map::Entry},
    mem,
};

use limiter_common::{
    limit::{Cost, KeyPart, MAX_CONNECTION_LIMITS, MAX_HANDSHAKE_LIMITS, NameKind},
    reason::Action,
};

use super::{
    diagnostics::Problems,
    fleet, ip_rep,
    limit::Definition,
    limits::{self, LimitIndex, Limits},
    name_id, name_sections,
    overrides::Overrides,
    parts::{Config, Parts},
    reader::Surroundings,
    room::{Buckets, Offenders, Scope},
    standing,
};
use crate::policy::{FlatMetrics, Limit, Names, Policy, SuffixRule};

/// Makes the configuration; `None`, with errors reported, if anything is wrong.
pub(super) fn config(
    mut parts: Parts,
    surroundings: &Surroundings<'_>,
    problems: &mut Problems,
) -> Option<Config> {
    let public_suffixes = check(&mut parts, problems);
    if !problems.is_empty() {
        return None;
    }
    let names = match intern(&parts) {
        Ok(names) => names,
        Err(error) => {
            problems.report(surroundings.file, None, error);
            return None;
        }
    };
    let mut overrides = parts.overrides.overrides;
    let fleet_nodes = parts.fleet.as_ref().map(|fleet| fleet.nodes);
    let limits = parts.limits.into_iter();
    let limits = limits.flat_map(|(index, definition)| {
        limits_of(index, &definition, &names, &mut overrides, fleet_nodes)
    });
    let mut limits: Vec<Limit> = limits.collect();
    limits.sort_unstable_by_key(|limit| limit.id);
    let policy = Policy {
        limits,
        subscribers: parts.subscribers.unwrap_or_default(),
        sieves: parts.ip_rep.into_sieves(),
        malformed: parts.malformed.unwrap_or(Action::Drop),
        own_connections: parts.own_connections,
        connections: parts.connections,
        until_known: parts.until_known,
        cached_names: parts.cached_names,
        lists: parts.lists.lists(surroundings.now),
        exclude: parts.exclude.to_names(),
        block: parts.block.to_names(),
        never_ban: parts.never_ban.to_names(),
        nat64: parts.nat64,
        standing: (parts.standing.as_ref()).map(standing::Section::to_settings),
        answers: parts.answers,
        dns_cookies: parts.dns_cookies,
        zones: parts.zones.unwrap_or_default(),
        server_names: parts.server_names.unwrap_or_default(),
        public_suffixes,
    };
    Some(Config {
        files: problems.files_read().to_vec(),
        interfaces: parts.interfaces,
        mode: parts.mode,
        buckets: parts.buckets,
        offenders: parts.offenders,
        bans: parts.bans,
        state: parts.state,
        metrics: parts.metrics,
        page: parts.page,
        control: parts.control,
        names_key: fleet::names_key(parts.fleet.as_ref().zip(parts.fleet_keys), &policy),
        fleet: parts.fleet,
        lists: parts.lists.sources,
        feeds: parts.lists.feeds,
        secrets: parts.secrets,
        policy,
    })
}

/// Reports all errors that span sections. Returns the public suffixes that the limits need.
fn check(parts: &mut Parts, problems: &mut Problems) -> Vec<SuffixRule> {
    check_offenders_recorded(&parts.limits, parts.offenders, problems);
    check_scope(&parts.limits, parts.buckets, problems);
    for (index, limit) in parts.limits.iter() {
        check_needs(parts, index, limit, problems);
    }
    parts.limits.check_number(problems);
    check_connections(&parts.limits, problems);
    limits::check_groups(&parts.limits, problems);
    limits::check_otherwise(&parts.limits, problems);
    parts.lists.check(&parts.exclude, problems);
    parts.lists.check(&parts.block, problems);
    parts.lists.check(&parts.never_ban, problems);
    if let Some(standing) = &parts.standing {
        parts.lists.check(&standing.proven, problems);
    }
    check_distinct_metrics(&parts.limits, problems);
    ip_rep::check_uses(&parts.ip_rep, &parts.limits, problems);
    let by_name = &parts.overrides.named;
    let known = name_id::DeclaredNames {
        zones: parts.zones.as_deref(),
        server_names: parts.server_names.as_deref(),
    };
    name_id::check_owned(by_name, &parts.limits, &known, problems);
    let public_suffixes = mem::take(&mut parts.public_suffixes);
    let public_suffixes = name_sections::suffix_rules(public_suffixes, &parts.limits, problems);
    if problems.is_empty() {
        name_id::check_domains(by_name, &parts.limits, &public_suffixes, problems);
    }
    public_suffixes
}

/// Interns the names of the limits, or says why the configuration has no use.
fn intern(parts: &Parts) -> Result<Names, String> {
    let has_lists = !(parts.exclude.is_empty() && parts.block.is_empty());
    let has_limits = parts.limits.iter().next().is_some();
    if !(has_limits || has_lists || parts.ip_rep.is_used() || parts.has_bans) {
        let message =
            "limits nothing: it needs a section 'limits', 'overrides', 'block', 'ip-rep' or 'bans'";
        return Err(message.to_owned());
    }
    let limits = parts.limits.iter();
    let current: Vec<String> = limits.flat_map(|(_, limit)| limit.part_names()).collect();
    let names = Names::default().intern(current.iter().map(String::as_str));
    names.map_err(|error| error.to_string())
}

/// Returns one limit for each rate of a definition.
fn limits_of(
    index: LimitIndex,
    definition: &Definition,
    names: &Names,
    overrides: &mut Overrides,
    fleet_nodes: Option<u32>,
) -> Vec<Limit> {
    let parts = definition.part_names().enumerate();
    parts
        .filter_map(|(part, name)| {
            Some(Limit {
                id: names.id(&name)?,
                name,
                default: definition.rates.get(part).copied(),
                overrides: overrides.remove(&(index, part)).unwrap_or_default(),
                exclude: definition.exclude_lists.to_names(),
                block: definition.block_lists.to_names(),
                fleet_nodes: fleet_nodes.filter(|_| definition.fields.fleet.is_some()),
                // A sieve scores each packet once.
                ip_rep: definition.ip_rep.clone().filter(|_| part == 0),
                metrics: (definition.metrics.as_ref()).map(|metrics| metrics.of_part(part)),
                ..definition.limit.clone()
            })
        })
        .collect()
}

/// Reports uses of sections that are missing: overrides, subscribers, zones, server names, nodes of a fleet.
fn check_needs(parts: &Parts, index: LimitIndex, limit: &Definition, problems: &mut Problems) {
    let name = &limit.name;
    let needed = if limit.cost == Cost::Connections {
        "limit"
    } else {
        "burst, count and period, or rate"
    };
    parts.lists.check(&limit.exclude_lists, problems);
    parts.lists.check(&limit.block_lists, problems);
    if limit.id_format.key_part() == Some(KeyPart::Subscriber) && parts.subscribers_missing {
        let message = format!(
            "{name} needs a section 'subscribers' with each subscriber's number and prefixes"
        );
        problems.report_at(limit.position, message);
    }
    if limit.name_kind() == Some(NameKind::Zone) && parts.zones.is_none() {
        let message =
            format!("{name} needs a section 'zones' with the names of zones, or a file of them");
        problems.report_at(limit.position, message);
    }
    if limit.id_format.key_part() == Some(KeyPart::ServerName) && parts.server_names.is_none() {
        let message = format!(
            "{name} needs a section 'server-names' with the names that get buckets, or a file of them"
        );
        problems.report_at(limit.position, message);
    }
    if !limit.needs_overrides() {
        return;
    }
    if limit
        .id_format
        .key_part()
        .is_some_and(|of| of.why_no_overrides().is_some())
    {
        let message = format!("{name} limits nothing: it needs {needed}");
        problems.report_at(limit.position, message);
    } else if parts.overrides_known && !parts.overrides.overrides.contains_key(&(index, 0)) {
        let message = format!("{name} limits nothing: it needs {needed}, or overrides");
        problems.report_at(limit.position, message);
    }
}

/// Reports limits on connections and handshakes beyond the number that the datapath can count.
fn check_connections(limits: &Limits, problems: &mut Problems) {
    for (cost, most) in [
        (Cost::Connections, MAX_CONNECTION_LIMITS),
        (Cost::Handshakes, MAX_HANDSHAKE_LIMITS),
    ] {
        let of_cost = limits.iter().map(|(_, limit)| limit);
        let mut of_cost = of_cost.filter(|limit| limit.cost == cost);
        if let Some(limit) = of_cost.nth(most) {
            let message = format!(
                "{} is one too many: at most {most} limits have cost {}",
                limit.name,
                cost.name()
            );
            problems.report_at(limit.position, message);
        }
    }
}

/// Reports limits on handshakes if each interface has its own buckets.
fn check_scope(limits: &Limits, buckets: Buckets, problems: &mut Problems) {
    if buckets.scope == Scope::Host {
        return;
    }
    for (_, limit) in limits
        .iter()
        .filter(|(_, limit)| limit.cost == Cost::Handshakes)
    {
        let message = format!(
            "{} needs `buckets: {{scope: host}}`: nobody can say on which interface a handshake was \
             completed",
            limit.name
        );
        problems.report_at(limit.position, message);
    }
}

fn check_distinct_metrics(limits: &Limits, problems: &mut Problems) {
    let mut seen = HashMap::<(String, String), String>::new();
    for (_, limit) in limits.iter() {
        let (Some(metrics), Some(position)) = (&limit.metrics, limit.fields.metrics) else {
            continue;
        };
        for (part, name) in limit.part_names().enumerate() {
            let FlatMetrics { prefix, tag } = metrics.of_part(part);
            match seen.entry((prefix, tag)) {
                Entry::Vacant(entry) => {
                    entry.insert(name);
                }
                Entry::Occupied(entry) => {
                    let (prefix, tag) = entry.key();
                    let message = format!(
                        "duplicate metrics '{prefix}.sni.{tag}', already those of {}: choose \
                         another 'tag' or 'prefix'",
                        entry.get()
                    );
                    problems.report_at(position, message);
                }
            }
        }
    }
}

/// Reports limits with a ban if no offenders are recorded.
fn check_offenders_recorded(limits: &Limits, offenders: Offenders, problems: &mut Problems) {
    if offenders != Offenders::OFF {
        return;
    }
    for (_, limit) in limits.iter() {
        if let Some(position) = limit.fields.ban {
            let message = "'ban' needs offenders, but `offenders: {capacity: 0}` records none: \
                           raise the capacity, such as to 65536";
            problems.report_at(position, message.to_owned());
        }
    }
}

//! Puts a configuration in force: the first one, and each later one.

use std::{collections::BTreeMap, sync::Arc};

use limiter_datapath::kernel::{
    DatapathError, LogLevel, Manifest, PreviousPolicy, interface::Interface, possible_cpus,
    wall_clock_now,
};
use limiter_host::guard;
use limiter_policy::{
    interface,
    lists::ListRecord,
    policy::{
        CompiledPolicy, List,
        diff::{self, DiscardedState},
    },
};
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use super::{
    candidate::Candidate,
    confirm::{self, Confirmation},
    enforcement::Enforcement,
    error::ReloadError,
    memory,
    messages::{log_attached, log_begun_anew, log_migrated},
    state::ResumeState,
    watch,
};

/// Puts a configuration in force, with the debts of `resumed`. With a `confirmation`, it is reverted unless
/// it is confirmed. Returns the names of the limits with new buckets, because their strategy changed.
pub(super) async fn put_in_force(
    enforcement: &Arc<Enforcement>,
    candidate: Candidate,
    resumed: Option<ResumeState>,
    confirmation: Option<Confirmation>,
) -> Result<DiscardedState, ReloadError> {
    let elsewhere = {
        let names = &candidate.interfaces;
        enforcement
            .datapath()
            .limited_elsewhere(names, &candidate.lookup.named)
    };
    let missing = interface::names(&candidate.lookup.missing);
    for interface in missing.filter(|name| elsewhere.iter().all(|found| found.name != **name)) {
        warn!(
            interface,
            "{interface} is not there: it is limited as soon as it appears"
        );
    }
    guard::warn_of(&candidate.config.policy).await;
    let to_apply = Arc::clone(enforcement);
    // The kernel's verifier is slow; packets and requests do not wait for it.
    let previous = spawn_blocking(move || {
        let previous = apply(&to_apply, candidate, resumed)?;
        to_apply.cookies.read(&to_apply.datapath);
        Ok::<_, DatapathError>(previous)
    });
    let begun_anew = conclude(enforcement, previous.await??, confirmation)?;
    // Attaches to the interfaces that patterns select, one by one, so that one failure does not affect the others.
    Box::pin(watch::interfaces::poll(enforcement)).await;
    memory::give_back();
    Ok(begun_anew)
}

/// Concludes the change to a policy that is in force, or has it wait for a `confirmation`.
fn conclude(
    enforcement: &Arc<Enforcement>,
    previous: PreviousPolicy,
    confirmation: Option<Confirmation>,
) -> Result<DiscardedState, ReloadError> {
    let begun_anew = report_changes(enforcement, &previous);
    log_begun_anew(&begun_anew);
    if let Some(migrated) = previous.migrated() {
        log_migrated(migrated);
    }
    match confirmation {
        Some(confirmation) => confirm::request(enforcement, previous, confirmation),
        None => enforcement.datapath_mut().settle(previous)?,
    }
    Ok(begun_anew)
}

/// Logs new attachments and missing abilities of the policy in force; returns the limits whose buckets begin anew.
fn report_changes(enforcement: &Enforcement, previous: &PreviousPolicy) -> DiscardedState {
    let datapath = enforcement.datapath();
    let attachments = datapath.attachments().iter();
    for attachment in attachments.filter(|found| previous.is_without(found)) {
        log_attached(attachment);
    }
    if let Err(error) = datapath.own_connection_status() {
        warn!(
            "connections that this host began are limited like others: {error}; `limiter reload` \
             tries again"
        );
    }
    if let Err(error) = datapath.flow_status() {
        warn!(
            "connections get no server names: {error}; limits by server name do not count them; \
             `limiter reload` tries again"
        );
    }
    if let Err(error) = datapath.handshake_status() {
        if datapath.counts_connections() || datapath.limits_handshakes() {
            warn!(
                "connections are counted only once a second: {error}; `limiter reload` tries again"
            );
        } else if datapath.known_sources().is_ok() {
            warn!(
                "handshakes prove no source: {error}; sources still get a standing by their visits \
                 and retries, by lists and by operators; `limiter reload` tries again"
            );
        }
    }
    diff::discarded_state(&previous.manifest().policy, &datapath.manifest().policy)
}

fn apply(
    enforcement: &Enforcement,
    candidate: Candidate,
    resumed: Option<ResumeState>,
) -> Result<PreviousPolicy, DatapathError> {
    let Candidate {
        config,
        lists,
        feeds: _,
        begun_at: _,
        names,
        policy,
        interfaces,
        lookup,
    } = candidate;
    let log = if enforcement.options.log_datapath {
        LogLevel::Verdicts
    } else {
        LogLevel::Off
    };
    let prepared = {
        let datapath = enforcement.datapath();
        let manifest = Manifest {
            generation: datapath.manifest().generation + 1,
            maps_generation: datapath.manifest().maps_generation,
            loaded_at: wall_clock_now(),
            interfaces,
            interface_numbers: BTreeMap::new(),
            mode: enforcement.options.mode.unwrap_or(config.mode),
            settings: datapath.settings().with(&config, log),
            policy: config.policy,
            lists,
            names,
            units: policy.units.clone(),
        };
        let mut interfaces = lookup.named;
        interfaces.extend(datapath.limited_elsewhere(&manifest.interfaces, &interfaces));
        let mut selected = lookup.selected;
        let is_limited = |found: &mut Interface| {
            datapath
                .attachments()
                .iter()
                .any(|other| other.is_on(found))
        };
        interfaces.extend(selected.extract_if(.., is_limited));
        let expected: Vec<_> = selected.into_iter().map(|found| found.name).collect();
        datapath.prepare(manifest, policy, &interfaces, &expected)?
    };
    if let Some(resumed) = resumed {
        resumed.restore(&prepared)?;
    }
    enforcement.datapath_mut().apply(prepared)
}

/// Replaces the lists in force and nothing else. This needs no confirmation.
pub(super) async fn put_lists_in_force(
    enforcement: &Arc<Enforcement>,
    lists: Vec<List>,
    records: Vec<ListRecord>,
) -> Result<(), ReloadError> {
    let before = sizes(&enforcement.datapath().manifest().policy.lists);
    let to_apply = Arc::clone(enforcement);
    let previous = spawn_blocking(move || apply_lists(&to_apply, lists, records));
    let previous = previous.await??;
    enforcement.datapath_mut().settle(previous)?;
    let policy = {
        let datapath = enforcement.datapath();
        let manifest = datapath.manifest();
        let generation = manifest.generation;
        info!(
            generation,
            "policy {generation} is in force: its lists are renewed"
        );
        manifest.policy.clone()
    };
    for (list, prefixes) in sizes(&policy.lists) {
        let had = before.get(&list).copied().unwrap_or_default();
        if prefixes != had {
            info!(
                list,
                prefixes, "list {list} has {prefixes} prefixes (before: {had})"
            );
        }
    }
    guard::warn_of_blocked(&policy).await;
    memory::give_back();
    Ok(())
}

/// Returns the number of prefixes of each list, by name.
fn sizes(lists: &[List]) -> BTreeMap<String, usize> {
    let lists = lists.iter();
    lists
        .map(|list| (list.name.clone(), list.prefixes.len()))
        .collect()
}

fn apply_lists(
    enforcement: &Enforcement,
    lists: Vec<List>,
    records: Vec<ListRecord>,
) -> Result<PreviousPolicy, ReloadError> {
    let prepared = {
        let datapath = enforcement.datapath();
        let manifest = datapath.manifest();
        let mut manifest = Manifest {
            generation: manifest.generation + 1,
            loaded_at: wall_clock_now(),
            lists: records,
            ..manifest.clone()
        };
        manifest.policy.lists = lists;
        let policy =
            CompiledPolicy::with_units(&manifest.policy, &manifest.units, possible_cpus())?;
        manifest.units = policy.units.clone();
        datapath.prepare(manifest, policy, &datapath.limited(), &[])?
    };
    Ok(enforcement.datapath_mut().apply(prepared)?)
}

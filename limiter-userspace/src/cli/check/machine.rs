//! Checks a policy against this machine in its present state.

use std::io::Write as _;

use limiter_datapath::kernel::interface;
use limiter_host::{
    fit::{self, SkippedInterface},
    guard::{self, CountedPeer},
    syn_cookies,
};
use limiter_policy::{
    config::{AttachMode, Config},
    interface::names,
};

use super::super::output::{self, stderr};

/// Warns on stderr of sessions and hosts that the policy would lock out of this machine, and of SYN cookies
/// that the machine does not make. Returns the machine's peers with replies that limits count.
///
/// # Errors
///
/// `interfaces`, which may be absent, cannot be limited together, or the policy does not fit one.
pub(super) fn inspect(config: &Config) -> anyhow::Result<Vec<CountedPeer<'_>>> {
    let (policy, interfaces) = (&config.policy, &config.interfaces);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if !interfaces.is_empty() {
        let lookup = runtime.block_on(interface::find(interfaces))?;
        let named: Vec<_> = lookup.named.iter().collect();
        for interface in &named {
            fit::check(policy, interface, &named, &lookup.all)?;
        }
        for name in names(&lookup.missing) {
            output::warn(&format!(
                "no interface is named '{name}' here yet: the daemon waits for it"
            ));
        }
        let waiting = names(&lookup.missing).count();
        let (selected, misfits) = fit::choose(policy, &lookup, waiting);
        for (interface, misfit) in misfits {
            let passed_over = SkippedInterface {
                interface: interface.name.clone(),
                reason: misfit.to_string(),
            };
            output::warn(&passed_over.to_string());
        }
        for interface in named.iter().chain(&selected) {
            if let Some(unseen) = fit::unseen(interface, &lookup.all) {
                output::warn(&unseen);
            }
            if (config.mode == AttachMode::Generic || fit::is_generic(interface))
                && let Some(whole_drop) = fit::whole_drop(policy, interface)
            {
                output::warn(&whole_drop.to_string());
            }
        }
    }
    for warning in runtime.block_on(guard::warnings(policy)) {
        output::warn(&warning);
    }
    if syn_cookies::are_used(policy) {
        let host = runtime.block_on(syn_cookies::Host::read());
        for (limit, warning) in syn_cookies::warnings(policy, &host) {
            let _ = writeln!(stderr(), "warning: limit {limit}: {warning}");
        }
    }
    let peers = runtime.block_on(guard::counted_peers(policy));
    Ok(peers.unwrap_or_else(|unknown| {
        output::warn(&unknown.to_string());
        Vec::new()
    }))
}

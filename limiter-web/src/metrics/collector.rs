//! Reads the kernel's counters at each scrape.

mod answers;
mod automatic_bans;
mod bans;
mod fleet;
mod labelled;
mod server_names;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use limiter_common::{
    counters::{LimitTraffic, Traffic},
    reason::{Action, Reason},
    standing::Standing,
};
use limiter_daemon::{Daemon, connections, open_by_limit, queues};
use limiter_datapath::kernel::{BucketUse, Datapath, DatapathError, OffenderRecords};
use limiter_policy::interface::names;
use limiter_protocol::{History, StateStatus};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use self::labelled::{LabelledRow, counters};
use super::{
    cached_names, capacity, census::Census, number::gauge_of, sieves, standing::Standings,
};

pub(super) struct DaemonCollector {
    daemon: Arc<Daemon>,
    failure: Failure,
    known: Census<[u64; Standing::COUNT]>,
    names: Census<Option<u64>>,
    buckets: Census<BucketUse>,
}

/// Keeps the cause of a failed read, since an encoder's error cannot carry it.
#[derive(Clone, Default)]
pub(super) struct Failure(Arc<Mutex<Option<DatapathError>>>);

impl Failure {
    /// Takes the cause; further calls return `None`.
    pub(super) fn take(&self) -> Option<DatapathError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl DaemonCollector {
    pub(super) fn new(daemon: Arc<Daemon>, failure: Failure) -> Self {
        Self {
            daemon,
            failure,
            known: Census::default(),
            names: Census::default(),
            buckets: Census::default(),
        }
    }

    /// Stores the error of a failed read, and converts it to an encoder's.
    fn read<T>(&self, read: Result<T, DatapathError>) -> Result<T, fmt::Error> {
        read.map_err(|error| {
            let mut failure = self
                .failure
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *failure = Some(error);
            fmt::Error
        })
    }
}

impl fmt::Debug for DaemonCollector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DaemonCollector")
    }
}

impl Collector for DaemonCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let datapath = &*self.daemon.datapath();
        let manifest = datapath.manifest();
        let by_reason = self.read(by_reason(datapath))?;
        let by_limit = self.read(by_limit(datapath))?;
        let packets = |traffic: &Traffic| traffic.packets;
        let bytes = |traffic: &Traffic| traffic.bytes;
        counters(
            &mut encoder,
            "limiter_packets",
            "Packets by interface, verdict and reason",
            &numbers(&by_reason, packets),
        )?;
        counters(
            &mut encoder,
            "limiter_bytes",
            "Bytes of these packets, from the Ethernet header on",
            &numbers(&by_reason, bytes),
        )?;
        counters(
            &mut encoder,
            "limiter_limit_packets",
            "Packets that each limit passed, dropped, or would have dropped if it enforced",
            &numbers(&by_limit, packets),
        )?;
        counters(
            &mut encoder,
            "limiter_limit_bytes",
            "Bytes of these packets, from the Ethernet header on",
            &numbers(&by_limit, bytes),
        )?;
        let by_answer = self.read(answers::by_answer(datapath))?;
        counters(
            &mut encoder,
            "limiter_answers",
            "Answers that were sent for packets that each limit dropped",
            &numbers(&by_answer, packets),
        )?;
        counters(
            &mut encoder,
            "limiter_answer_bytes",
            "Bytes of these answers, from the Ethernet header on",
            &numbers(&by_answer, bytes),
        )?;

        interfaces(datapath, &self.daemon.misfits(), &mut encoder)?;
        let counted = self
            .buckets
            .numbers(datapath, || datapath.buckets_in_debt());
        buckets(&self.read(counted)?.0, &mut encoder)?;
        let evictions = self.read(datapath.lossy_evictions())?;
        ConstCounter::new(evictions).encode(encoder.encode_descriptor(
            "limiter_bucket_lossy_evictions",
            "Buckets forgotten in debt for lack of room",
            None,
            MetricType::Counter,
        )?)?;

        offenders(&self.read(datapath.offenders())?, &mut encoder)?;
        super::lists::encode(&manifest.list_statuses(Timestamp::now()), &mut encoder)?;
        bans::encode(&self.daemon.ban_counts(), datapath, &mut encoder)?;
        automatic_bans::encode(self.daemon.automatic_bans(), &manifest.policy, &mut encoder)?;
        automatic_bans::guard(&self.daemon.guard_status(), &mut encoder)?;
        if let Some(status) = self.daemon.fleet_status() {
            fleet::encode(&status, &mut encoder)?;
        }
        sieves::limit_info(&manifest.policy, &mut encoder)?;
        let briefs = self.read(self.daemon.sieves(datapath))?;
        sieves::sieves(&briefs, &mut encoder)?;
        let rates = self.read(capacity::read(&self.daemon, datapath))?;
        capacity::encode(&rates, &mut encoder)?;
        if let Some(standings) = self.read(Standings::read(datapath, &self.known))? {
            standings.encode(&mut encoder)?;
        }
        if let Some(names) = self.read(cached_names::read(datapath, &self.names))? {
            cached_names::encode(names, &mut encoder)?;
        }
        if let Some(status) = self.read(connections(datapath))? {
            super::connections::encode(&status, &open_by_limit(datapath), &mut encoder)?;
        }
        if let Some(status) = self.read(self.daemon.server_names(datapath))? {
            server_names::encode(&status, &mut encoder)?;
        }
        super::queues::encode(&self.read(queues(datapath))?, &mut encoder)?;
        reloads(&self.daemon.history(), &mut encoder)?;
        if let Some(status) = self.daemon.state_status() {
            state(&status, &mut encoder)?;
        }

        super::limits::overrides(&manifest.policy, &mut encoder)?;
        super::limits::rates(&manifest.policy, &mut encoder)?;
        super::process::encode(&mut encoder)?;
        let loaded_at = ConstGauge::new(manifest.loaded_at.as_second());
        loaded_at.encode(encoder.encode_descriptor(
            "limiter_policy_loaded_timestamp_seconds",
            "When the policy in force was loaded, in seconds since 1970",
            None,
            MetricType::Gauge,
        )?)
    }
}

/// Encodes the interfaces with the program attached. `misfits`: also interfaces that a pattern selects and the
/// daemon passes over.
fn interfaces(
    datapath: &Datapath,
    misfits: &BTreeMap<String, String>,
    encoder: &mut DescriptorEncoder,
) -> fmt::Result {
    let missing = datapath.missing();
    let mut family = encoder.encode_descriptor(
        "limiter_interface_attached",
        "1: the interface is limited; 0: it should be, but does not exist, has another program, or is passed over",
        None,
        MetricType::Gauge,
    )?;
    let manifest = datapath.manifest();
    let attachments = datapath.attachments().iter();
    let attached = attachments.filter(|found| found.is_attached());
    let attached: BTreeSet<_> = attached.map(|found| found.interface.as_str()).collect();
    let mut meant = attached.clone();
    meant.extend(names(&manifest.interfaces));
    meant.extend(misfits.keys().map(String::as_str));
    for name in meant {
        let labels = [("interface", name)];
        ConstGauge::new(i64::from(attached.contains(name)))
            .encode(family.encode_family(&labels)?)?;
    }
    let mut family = encoder.encode_descriptor(
        "limiter_interface_mode",
        "1 for the mode in which the program runs on the interface",
        None,
        MetricType::Gauge,
    )?;
    for attachment in datapath.attachments() {
        if !missing.contains(&attachment.interface.as_str()) {
            let labels = [
                ("interface", attachment.interface.as_str()),
                ("mode", attachment.mode.name()),
            ];
            ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn buckets(found: &BucketUse, encoder: &mut DescriptorEncoder) -> fmt::Result {
    for (name, help, number) in [
        (
            "limiter_buckets_in_debt",
            "Buckets that are not full, of all sets; the others take no room",
            found.in_debt,
        ),
        (
            "limiter_buckets_capacity",
            "Buckets that there is room for",
            found.capacity,
        ),
    ] {
        let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(gauge_of(number)).encode(descriptor)?;
    }
    Ok(())
}

fn offenders(recorded: &OffenderRecords, encoder: &mut DescriptorEncoder) -> fmt::Result {
    for (name, help, number) in [
        (
            "limiter_offender_records",
            "Drops recorded under their offender",
            recorded.counts.recorded,
        ),
        (
            "limiter_offender_records_skipped",
            "Drops not recorded for lack of allowance or room",
            recorded.counts.skipped,
        ),
        (
            "limiter_offender_insertions",
            "Offenders and names inserted into the record; the ones that limiter_offenders lacks were forgotten",
            recorded.counts.inserted,
        ),
    ] {
        let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(number).encode(descriptor)?;
    }
    let remembered = gauge_of(recorded.remembered());
    ConstGauge::new(remembered).encode(encoder.encode_descriptor(
        "limiter_offenders",
        "Offenders, and names that they asked for, that are remembered",
        None,
        MetricType::Gauge,
    )?)
}

fn state(status: &StateStatus, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let saved_at = status.saved_at.map_or(0, Timestamp::as_second);
    ConstGauge::new(saved_at).encode(encoder.encode_descriptor(
        "limiter_state_last_save_timestamp_seconds",
        "When the state file was last saved, or needed no saving, in seconds since 1970; 0: not since \
         the start",
        None,
        MetricType::Gauge,
    )?)?;
    ConstCounter::new(status.errors).encode(encoder.encode_descriptor(
        "limiter_state_save_errors",
        "Failed saves of the state file",
        None,
        MetricType::Counter,
    )?)
}

fn reloads(history: &History, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let by_result = [
        ([("result", "success".to_owned())], history.succeeded),
        ([("result", "failure".to_owned())], history.failed),
    ];
    counters(
        encoder,
        "limiter_reloads",
        "Reloads of the configuration since the daemon started; a failed one changed nothing",
        &by_result,
    )?;
    let last_failed = history
        .last
        .as_ref()
        .is_some_and(|last| last.error.is_some());
    ConstGauge::new(i64::from(last_failed)).encode(encoder.encode_descriptor(
        "limiter_last_reload_failed",
        "1: the last reload failed and changed nothing",
        None,
        MetricType::Gauge,
    )?)
}

fn by_reason(datapath: &Datapath) -> Result<Vec<LabelledRow<3, Traffic>>, DatapathError> {
    let mut rows = Vec::new();
    for attachment in datapath.attachments() {
        for reason in Reason::ALL {
            let traffic = datapath.reason_traffic(attachment, *reason)?;
            let labels = [
                ("interface", attachment.interface.clone()),
                (
                    "verdict",
                    reason
                        .action(datapath.manifest().policy.malformed)
                        .name()
                        .to_owned(),
                ),
                ("reason", reason.name().to_owned()),
            ];
            rows.push((labels, traffic));
        }
    }
    Ok(rows)
}

fn by_limit(datapath: &Datapath) -> Result<Vec<LabelledRow<2, Traffic>>, DatapathError> {
    let mut rows = Vec::new();
    for limit in &datapath.manifest().policy.limits {
        let LimitTraffic {
            passed,
            dropped,
            would_drop,
        } = datapath.limit_traffic(limit.id)?;
        for (decision, traffic) in [
            (Action::Pass.name(), passed),
            (Action::Drop.name(), dropped),
            ("would_drop", would_drop),
        ] {
            let labels = [
                ("limit", limit.name.clone()),
                ("decision", decision.to_owned()),
            ];
            rows.push((labels, traffic));
        }
    }
    Ok(rows)
}

fn numbers<const N: usize>(
    rows: &[LabelledRow<N, Traffic>],
    number: impl Fn(&Traffic) -> u64,
) -> Vec<LabelledRow<N, u64>> {
    rows.iter()
        .map(|(labels, traffic)| (labels.clone(), number(traffic)))
        .collect()
}

//! A limiter's store and counters after a run.

use anyhow::{Context as _, Result, bail};
use aya::maps::Map;
use limiter_common::{reason::Reason, table::WAYS};
use limiter_datapath::kernel::{Instance, Settings, SharedMaps};
use limiter_policy::config::Store;
use serde::Serialize;

use crate::{float::to_f64, map_memory};

/// The buckets and counters of a limiter.
pub(crate) struct LimiterMemory {
    maps: SharedMaps,
    /// Kernel memory of a bucket, in bytes.
    bucket_bytes: f64,
}

/// The results.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct MemoryReport {
    /// Kernel memory of the existing buckets, in bytes, divided by the number of sources.
    pub(crate) bytes_a_source: f64,
    /// The share of packets that passed, in percent.
    pub(crate) passed_percent: f64,
}

impl LimiterMemory {
    /// Takes an instance's own buckets and counters.
    pub(super) fn take(instance: &mut Instance, settings: Settings) -> Result<Self> {
        let (name, buckets_in_entry) = match settings.buckets.store {
            Store::Table => ("TABLE", u64::try_from(WAYS)?),
            Store::Hash => ("BUCKETS", 1),
        };
        let map = instance.ebpf_mut().map(name);
        let map = match map.with_context(|| format!("the object has no {name}"))? {
            Map::Array(map) | Map::LruHashMap(map) => map,
            other => bail!("{name} has an unexpected type: {other:?}"),
        };
        let room = u64::from(map.info()?.max_entries()) * buckets_in_entry;
        Ok(Self {
            bucket_bytes: to_f64(map_memory::of(map.fd())?) / to_f64(room),
            maps: instance.take_maps(settings)?,
        })
    }

    /// Reads both after a flood from `sources` sources.
    pub(crate) fn measure(&self, sources: u64) -> Result<MemoryReport> {
        let buckets = u64::try_from(self.maps.bucket_count()?)?;
        let mut packets = 0;
        for reason in Reason::ALL {
            packets += self.maps.reason_traffic(0, *reason)?.packets;
        }
        let passed = self.maps.reason_traffic(0, Reason::WithinLimits)?.packets;
        Ok(MemoryReport {
            bytes_a_source: to_f64(buckets) * self.bucket_bytes / to_f64(sources),
            passed_percent: to_f64(passed) * 100.0 / to_f64(packets.max(1)),
        })
    }
}

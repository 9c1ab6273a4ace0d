//! Limiters of one ABI, older and newer, can read each other's pins.

use anyhow::{Context as _, Result, ensure};
use aya::maps::{MapInfo, MapType};
use limiter_common::reason::Reason;
use limiter_datapath::kernel::pins::ABI;

use crate::pinned::Pinned;

/// A map, as the kernel describes it.
#[derive(Debug, PartialEq)]
struct Shape<'n> {
    name: &'n str,
    map_type: MapType,
    /// Bytes.
    key: u32,
    /// Bytes, for one CPU.
    value: u32,
    /// The configuration sets the size of `BUCKETS`, `TABLE`, `OFFENDERS`, `KNOWN`, `FIRST_TRIES`, `CONNECTIONS`,
    /// `CONNECTION_COUNTS`, `FIRST_SYNS`, `OWN_CONNECTIONS`, `QUEUES`, `TICKETS`, `TICKET_KEYS`, `SERVER_FLOWS`,
    /// `QUIC_FLOWS`, `STANDING_FILTER`, `FIRST_BYTES` and `FIRST_BYTES_READ`; its shared limits set the size of `OWNERS`, `OWNER_SHARES`
    /// and `WANTING`.
    entries: u32,
    flags: u32,
}

const CONFIGURATION: &str = "buckets: {store: table, capacity: 4096}\noffenders: {capacity: 1024}\n\
                             limits: {PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}}\n";

/// The ABI of the table below. It must equal `ABI`.
const TABLE_OF: u32 = 23;

const SHAPES: [Shape<'static>; 48] = [
    shape("ANSWER_TRAFFIC", MapType::PerCpuArray, 4, 16, 1280, 0),
    shape("BUCKETS", MapType::LruHash, 24, 16, 1, 0),
    shape("LIMIT_TRAFFIC", MapType::PerCpuArray, 4, 48, 256, 0),
    shape("OFFENDERS", MapType::LruHash, 24, 24, 1024, 0),
    shape("REASON_TRAFFIC", MapType::PerCpuArray, 4, 16, 1920, 0),
    shape("RECORDING", MapType::PerCpuArray, 4, 32, 1, 0),
    shape("STANDING_TRAFFIC", MapType::PerCpuArray, 4, 48, 1280, 0),
    shape("STORE_COUNTS", MapType::PerCpuArray, 4, 8, 1, 0),
    shape("TABLE", MapType::Array, 4, 64, 1024, BPF_F_MMAPABLE),
    shape("UNITS", MapType::Array, 4, 48, 65536, BPF_F_RDONLY_PROG),
    shape(
        "BANS",
        MapType::Hash,
        24,
        112,
        524_288,
        BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG,
    ),
    shape("BAN_FILTER", MapType::Array, 4, 8, 131_080, BPF_F_MMAPABLE),
    shape(
        "BAN_HITS",
        MapType::Hash,
        24,
        16,
        524_288,
        BPF_F_NO_PREALLOC,
    ),
    shape(
        "BAN_LENGTHS",
        MapType::Array,
        4,
        8,
        3,
        BPF_F_MMAPABLE | BPF_F_RDONLY_PROG,
    ),
    shape("CONNECTIONS", MapType::Array, 4, 64, 1, BPF_F_MMAPABLE),
    shape(
        "CONNECTION_COUNTS",
        MapType::Array,
        4,
        64,
        1,
        BPF_F_MMAPABLE,
    ),
    shape("COOKIE_CHECKS", MapType::PerCpuArray, 4, 8, 6, 0),
    shape("COOKIE_KEYS", MapType::Array, 4, 56, 1, BPF_F_RDONLY_PROG),
    shape(
        "CURRENT_RATES",
        MapType::Array,
        4,
        8,
        256,
        BPF_F_RDONLY_PROG,
    ),
    shape("FIRST_BYTES", MapType::RingBuf, 0, 0, 65_536, 0),
    shape("FIRST_BYTES_LOST", MapType::PerCpuArray, 4, 8, 5, 0),
    shape("FIRST_BYTES_READ", MapType::LruHash, 40, 4096, 1, 0),
    shape("FIRST_SYNS", MapType::Array, 4, 64, 1, BPF_F_MMAPABLE),
    shape("FIRST_TRIES", MapType::Array, 4, 64, 1, BPF_F_MMAPABLE),
    shape("FULL_AT", MapType::Array, 4, 8, 1, 0),
    shape("KNOWN", MapType::Array, 4, 64, 1, BPF_F_MMAPABLE),
    shape("KNOWN_NAMES", MapType::Array, 4, 64, 1, BPF_F_MMAPABLE),
    shape(
        "OWNERS",
        MapType::Hash,
        24,
        8,
        1,
        BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG,
    ),
    shape("OWNER_SHARES", MapType::Array, 4, 24, 1, BPF_F_MMAPABLE),
    shape(
        "OWN_ADDRESSES",
        MapType::Hash,
        24,
        8,
        1025,
        BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG,
    ),
    shape("OWN_CONNECTIONS", MapType::LruHash, 40, 8, 65_536, 0),
    shape("PRESSURE", MapType::Array, 4, 16, 320, BPF_F_RDONLY_PROG),
    shape("QUEUES", MapType::Hash, 8, 32, 1, 0),
    shape("QUEUE_TRAFFIC", MapType::Array, 4, 128, 256, 0),
    shape("QUIC_FLOWS", MapType::LruHash, 40, 32, 1, 0),
    shape("REFUSED_QUESTIONS", MapType::RingBuf, 0, 0, 65_536, 0),
    shape("RMEM_MAX", MapType::Array, 4, 8, 1, BPF_F_RDONLY_PROG),
    shape("SERVER_FLOWS", MapType::Hash, 40, 64, 1, BPF_F_NO_PREALLOC),
    shape("SHORTAGE", MapType::Array, 4, 8, 1, BPF_F_MMAPABLE),
    shape("SIEVE_ENTRIES", MapType::Array, 4, 64, 1, BPF_F_MMAPABLE),
    shape("SIEVE_HEADS", MapType::Array, 4, 8, 1, BPF_F_MMAPABLE),
    shape("SIEVE_SHARDS", MapType::Array, 4, 64, 1, BPF_F_MMAPABLE),
    shape("SIEVE_TRAFFIC", MapType::PerCpuArray, 4, 64, 320, 0),
    shape("STANDING_FILTER", MapType::Array, 4, 8, 8, BPF_F_MMAPABLE),
    shape("TICKETS", MapType::Hash, 16, 32, 1, 0),
    shape("TICKET_KEYS", MapType::Hash, 8, 16, 1, 0),
    shape("UNCOUNTED", MapType::Array, 4, 8, 1, 0),
    shape("WANTING", MapType::LruHash, 24, 8, 1, 0),
];

// From linux/bpf.h.
const BPF_F_NO_PREALLOC: u32 = 1;
const BPF_F_RDONLY_PROG: u32 = 1 << 7;
const BPF_F_MMAPABLE: u32 = 1 << 10;

/// The reasons, in the order of their counters.
const REASONS: [&str; 30] = [
    "within_limits",
    "unlimited",
    "not_ip",
    "over_limit",
    "larger_than_burst",
    "contended",
    "bucket_unavailable",
    "untracked",
    "excluded",
    "blocked_list",
    "banned",
    "iprep",
    "iprep_perma",
    "malformed_ethernet",
    "malformed_vlan",
    "malformed_ipv4",
    "malformed_ipv6",
    "malformed_tcp",
    "malformed_udp",
    "malformed_icmp",
    "malformed_transport",
    "missed_tail_call",
    "reserved",
    "listener_has_room",
    "valid_syn_cookie",
    "too_many_connections",
    "own_connection",
    "name_awaited",
    "name_contradicted",
    "malformed_dns",
];

const fn shape(
    name: &str,
    map_type: MapType,
    key: u32,
    value: u32,
    entries: u32,
    flags: u32,
) -> Shape<'_> {
    Shape {
        name,
        map_type,
        key,
        value,
        entries,
        flags,
    }
}

/// If this test fails, an upgraded limiter would misread the previous version's pins: raise `datapath::pins::ABI`, and
/// update the tables and `TABLE_OF`.
#[test]
fn the_shared_maps_belong_to_the_abi() -> Result<()> {
    let pinned = Pinned::start(CONFIGURATION)?;
    let mut files = pinned.pins.files()?;
    let directories = ["host", "reputation"].map(|set| format!("v{ABI}/kept/0/{set}"));
    files.retain(|file| {
        let is_in = |directory| {
            file.parent()
                .is_some_and(|parent| parent.ends_with(directory))
        };
        directories.iter().any(is_in)
    });
    files.sort_unstable();
    let found = files.iter().map(|file| {
        let info = MapInfo::from_pin(file)?;
        let name = file.file_name().and_then(|name| name.to_str());
        Ok((name.context("the name is not UTF-8")?.to_owned(), info))
    });
    let found = found.collect::<Result<Vec<_>>>()?;
    let shapes: Vec<_> = found
        .iter()
        .map(|(name, info)| {
            Ok(Shape {
                name,
                map_type: info.map_type()?,
                key: info.key_size(),
                value: info.value_size(),
                entries: info.max_entries(),
                flags: info.map_flags(),
            })
        })
        .collect::<Result<_>>()?;
    ensure!(
        ABI == TABLE_OF && shapes == SHAPES,
        "the shared maps of ABI {ABI} are {shapes:#?}"
    );
    let reasons: Vec<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
    ensure!(
        reasons == REASONS,
        "the reasons of ABI {ABI} are {reasons:#?}"
    );
    Ok(())
}

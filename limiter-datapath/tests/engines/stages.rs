//! The stages of the kernel's program: the loaded stages, and the outcome of a packet that cannot be handed
//! over to one.

use anyhow::{Context as _, Result, anyhow};
use aya::{
    maps::{MapData, ProgramArray},
    programs::Xdp,
};
use limiter_common::{decide::Stage, reason::Reason};
use limiter_datapath::kernel::{
    ClockSource, Instance, LogLevel, Settings, SharedMaps, possible_cpus,
};
use limiter_policy::{
    config::{self, Buckets, Offenders},
    policy::{CompiledPolicy, SieveSizes},
};
use testbed::Frame;

use crate::engine::START;

/// A limit that enforces, and limits that need another stage; and a sieve under pressure from any packet.
const ENFORCING: &str = "PacketsPerIPAddress: {burst: 10, count: 1, period: 1h}";
const ANSWERING: &str =
    "Answering: {id: ipAddress, cost: packets, burst: 10, count: 1, period: 1h, deny: truncate}";
const MAKING_COOKIES: &str = "Syns: {id: total, cost: new-connections, burst: 10, count: 1, period: 1h, \
                              deny: syn-cookie}";
const OBSERVING: &str = "PacketsPerIPv4Range: {burst: 10, count: 1, period: 1h, mode: observe}";
const RESERVING: &str = "Everybody: {id: total, cost: packets, burst: 1000, count: 1, period: 1h, reserve: {unknown: 100}}";
const COUNTING: &str = "Open: {id: ipAddress, cost: connections, limit: 5}";
const BY_STATE: &str =
    "Stray: {id: ipAddress, cost: packets, burst: 10, count: 1, period: 1h, match: {state: none}}";
const BY_NAME: &str = "Names: {id: ipAddress, cost: packets, burst: 10, count: 1, period: 1h, match: {dns-type: ANY}}";
const NEW_NAMES: &str = "New: {id: total, cost: new-names, burst: 10, count: 1, period: 1h}";
const COUNTING_BY_NAME: &str =
    "Web: {id: ipAddress, cost: connections, limit: 1, match: {server-name: a.example}}";
const BY_SERVER_NAME: &str = "Web: {id: ipAddress, cost: packets, burst: 10, count: 1, period: 1h, match: {server-name: a.example}}";
const SIEVE: &str = "ip-rep: [{name: all, size: 12, pressure: {packets-per-second: 1}}]\n";

struct Scene {
    instance: Instance,
    maps: SharedMaps,
}

impl Scene {
    fn new(limits: &[&str], rest: &str) -> Result<Self> {
        let text = if limits.is_empty() {
            rest.to_owned()
        } else {
            format!("limits: {{{}}}\n{rest}", limits.join(", "))
        };
        let config = config::parse(&text, "test").map_err(|errors| anyhow!("{errors}"))?;
        let policy = CompiledPolicy::new(&config.policy, possible_cpus())?;
        let mut settings = Settings::new(Buckets::default(), Offenders::default(), LogLevel::Off)?;
        settings.sieves = SieveSizes::of(&policy.sieves);
        let mut instance = Instance::load(&policy, 0, settings, ClockSource::Test)?;
        instance.set_clock(START)?;
        let maps = instance.take_maps(settings)?;
        Ok(Self { instance, maps })
    }

    fn array(&mut self) -> Result<ProgramArray<&mut MapData>> {
        let name = match self.instance.program_name() {
            "limiter" => "STAGES",
            _ => "STAGES_LINEAR",
        };
        let map = self.instance.ebpf_mut().map_mut(name);
        Ok(map.context(name)?.try_into()?)
    }

    /// The stages with loaded programs.
    fn loaded(&mut self) -> Result<Vec<Stage>> {
        let mut loaded = Vec::new();
        for stage in Stage::ALL {
            if self.program(*stage)?.fd().is_ok() {
                loaded.push(*stage);
            }
        }
        Ok(loaded)
    }

    fn program(&mut self, stage: Stage) -> Result<&mut Xdp> {
        let entry = self.instance.program_name();
        let suffix = entry.strip_prefix("limiter").context("the entry's name")?;
        let name = format!("limiter_{}{suffix}", stage.name());
        let program = self.instance.ebpf_mut().program_mut(&name).context(name)?;
        Ok(program.try_into()?)
    }

    /// Sends a packet of a source; returns the count of packets under a reason so far.
    fn send(&self, source: u8, reason: Reason) -> Result<u64> {
        let frame = Frame::new([192, 0, 2, source].into(), [198, 51, 100, 1].into());
        // A DNS response, which has no question.
        let frame = frame.udp(9, 53, b"\0\0\x80\0\0\0\0\0\0\0\0\0")?;
        self.instance.hammer(&frame, 1)?;
        Ok(self.maps.reason_traffic(0, reason)?.packets)
    }
}

#[test]
fn a_stage_that_a_policy_does_not_use_is_not_loaded() -> Result<()> {
    let [
        names,
        server_names,
        tcp_state,
        connections,
        admit,
        standing,
        sieves,
        charge,
        observe,
        enter_name,
        answer,
    ] = [
        Stage::Names,
        Stage::ServerNames,
        Stage::TcpState,
        Stage::Connections,
        Stage::Admit,
        Stage::Standing,
        Stage::Sieves,
        Stage::Charge,
        Stage::Observe,
        Stage::EnterName,
        Stage::Answer,
    ];
    for (limits, rest, used) in [
        (&[ENFORCING][..], "", &[charge][..]),
        (&[OBSERVING], "", &[observe]),
        (&[ENFORCING, OBSERVING], "", &[charge, observe]),
        (&[ANSWERING], "", &[charge, answer]),
        (&[MAKING_COOKIES], "", &[tcp_state, charge, answer]),
        (&[RESERVING], "", &[standing, charge]),
        (&[COUNTING], "", &[connections]),
        (&[COUNTING, ENFORCING], "", &[connections, charge]),
        (&[BY_NAME], "", &[names, charge]),
        (&[NEW_NAMES], "", &[names, charge, enter_name]),
        (&[BY_SERVER_NAME], "", &[server_names, charge]),
        (&[COUNTING_BY_NAME], "", &[server_names, connections, admit]),
        (&[BY_STATE], "", &[tcp_state, charge]),
        (&[ENFORCING], SIEVE, &[sieves, charge]),
        (&[], SIEVE, &[sieves]),
        (&[ENFORCING, OBSERVING], SIEVE, &[sieves, charge, observe]),
    ] {
        let mut scene = Scene::new(limits, rest)?;
        // Bans need no policy.
        let used = [used, &[Stage::Banned]].concat();
        assert_eq!(scene.loaded()?, used, "{limits:?} {rest}");
    }
    Ok(())
}

/// It fails closed, visibly.
#[test]
fn a_packet_that_cannot_be_handed_over_is_dropped_and_counted() -> Result<()> {
    // Only refused packets meet two of the others, packets of banned sources the third, and data of connections
    // that are admitted the fourth.
    let met = |stage: &&Stage| {
        !matches!(
            stage,
            Stage::Cookies | Stage::Admit | Stage::Answer | Stage::Banned
        )
    };
    let limits = [
        BY_NAME,
        BY_SERVER_NAME,
        BY_STATE,
        COUNTING,
        ENFORCING,
        NEW_NAMES,
        OBSERVING,
        RESERVING,
    ];
    let mut scene = Scene::new(&limits, SIEVE)?;
    for (source, stage) in (1..).zip(Stage::ALL.iter().filter(met)) {
        let tried = u64::from(source);
        let within = scene.send(source, Reason::WithinLimits)?;
        assert_eq!(within, tried, "{stage:?}");
        let index = *stage as u32;
        scene.array()?.clear_index(&index)?;
        let missed = scene.send(source, Reason::MissedTailCall)?;
        assert_eq!(missed, tried, "{stage:?}");
        let within = scene.maps.reason_traffic(0, Reason::WithinLimits)?;
        assert_eq!(within.packets, tried, "{stage:?}");
        let program = scene.program(*stage)?.fd()?.try_clone()?;
        scene.array()?.set(index, &program, 0)?;
    }
    Ok(())
}

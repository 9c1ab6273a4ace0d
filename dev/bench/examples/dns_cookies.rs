//! Measures the kernel cost of a refusal, and of looking for a DNS cookie. Needs root.
//!
//! A test run repeats one frame, so all of its data is in the cache: this shows instructions, not
//! cache misses. The minimum of several runs counts, because other processes use the machine, too.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, anyhow};
use comfy_table::{Table, presets};
use limiter_common::{
    cookie::{CookieKeys, Secret},
    standing::{Event, SourceId},
};
use limiter_datapath::kernel::{
    ClockSource, Instance, LogLevel, Settings, SourceMaps, monotonic_now, possible_cpus,
    unix_ahead_ns,
};
use limiter_policy::{
    config::{self, Buckets, Offenders},
    policy::{CompiledPolicy, DnsCookies},
};
use testbed::{Frame, dns_cookie, dns_cookie_query};

/// Unknown sources are refused after one packet, and stay unknown: none comes again late enough to
/// be retried, and the table has room for few.
const POLICY: &str = "\
limits: {All: {id: total, cost: packets, burst: 100, count: 1, period: 10h, reserve: {fresh: 99, retried: 99, unknown: 99}}}
standing: {capacity: 1024, retry: {after: 11950ms, within: 12s}}
";

/// Enough trusted sources to fill that table, so that no other source is remembered.
const TRUSTED: u32 = 20_000;

const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

const RUNS: u32 = 200_000;
const REPEATS: usize = 15;

fn secret(number: u8) -> Result<Secret> {
    Secret::new([number; 16]).context("no secret")
}

/// Returns a query with a cookie by a secret.
fn query(number: u8) -> Result<Vec<u8>> {
    let now = SystemTime::UNIX_EPOCH.elapsed()?;
    let cookie = dns_cookie(
        &secret(number)?,
        CLIENT.into(),
        u32::try_from(now.as_secs())?,
    );
    Ok(dns_cookie_query(&cookie))
}

/// The program with a policy, in which unknown sources are refused.
struct Scene {
    instance: Instance,
    /// The instance's maps, kept alive here.
    _maps: SourceMaps,
}

impl Scene {
    /// Loads the program with this many secrets; with none, it does not look for cookies.
    fn new(secrets: u8) -> Result<Self> {
        let config = config::parse(POLICY, "policy").map_err(|errors| anyhow!("{errors}"))?;
        let mut policy = config.policy;
        policy.dns_cookies = (secrets > 0).then(|| DnsCookies {
            secret_file: "secret".into(),
            port: DnsCookies::DEFAULT_PORT,
        });
        let tables = CompiledPolicy::new(&policy, possible_cpus())?;
        let settings = Settings::new(Buckets::default(), Offenders::default(), LogLevel::Off)?
            .sized_for(&tables);
        let mut instance = Instance::load(&tables, 0, settings, ClockSource::Kernel)?;
        let maps = instance.take_source_maps(settings)?;
        let secrets = (1..=secrets).map(secret).collect::<Result<Vec<_>>>()?;
        maps.cookies()
            .set(CookieKeys::new(&secrets, unix_ahead_ns()))?;
        let (features, now) = (instance.features(), monotonic_now());
        for number in 0..TRUSTED {
            let address = IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + number));
            let source = SourceId::new(&features.standing, &address.into());
            let until_ns = now + 3_600_000_000_000;
            (maps.standing()).record_event(features, source, Event::Trust { until_ns }, now)?;
        }
        Ok(Self {
            instance,
            _maps: maps,
        })
    }

    /// Returns the nanoseconds for a frame with this payload.
    fn cost(&self, payload: &[u8]) -> Result<u128> {
        let frame = Frame::new(CLIENT.into(), [198, 51, 100, 1].into()).udp(4321, 53, payload)?;
        let mut least = Duration::MAX;
        for _ in 0..REPEATS {
            least = least.min(self.instance.hammer(&frame, RUNS)?);
        }
        Ok(least.as_nanos() / u128::from(RUNS))
    }
}

fn main() -> Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let mut row = |label: &str, cost: u128| {
        table.add_row([label.to_owned(), format!("{cost} ns")]);
    };
    let without = query(1)?;
    let none = Scene::new(0)?;
    row("refused, no cookies looked for", none.cost(&without)?);
    let one = Scene::new(1)?;
    row("refused, too short for a cookie", one.cost(&without[..30])?);
    let mut absent = without.clone();
    // No additional record.
    absent[11] = 0;
    row("refused, without a cookie", one.cost(&absent)?);
    row("refused, wrong by one secret", one.cost(&query(9)?)?);
    let three = Scene::new(3)?;
    row("refused, wrong by three secrets", three.cost(&query(9)?)?);
    row("valid, decided on twice", one.cost(&query(1)?)?);
    println!("{table}");
    Ok(())
}

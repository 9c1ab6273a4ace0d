//! A local user opens many UDP sockets while the daemon derives a rate from sockets' losses.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array, Map, MapData};
use limiter_common::strategy::gcra::CurrentRate;
use testbed::{Namespace, monotonic_ns};

use super::assert_responds;
use crate::{pinned::Pinned, wait_for};

/// How often the rate is renewed while the sockets are open.
const RENEWALS: u64 = 6;

const PROCESSES: usize = 4;

/// Opens 5 000 sockets on distinct ports, and keeps them open until its input ends.
const CROWD: &str = "\
ulimit -n 5100
for ((opened = 0; opened < 5000; opened++)); do exec {socket}<>/dev/udp/127.0.0.1/9 || exit; done
echo opened
read
";

/// The other user's sockets. Dropping the value closes them.
struct Sockets(Vec<Child>);

impl Sockets {
    fn open(namespace: &Namespace) -> Result<Self> {
        let mut sockets = Self(Vec::new());
        for _ in 0..PROCESSES {
            let mut command = namespace.command("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command.args(["bash", "-c", CROWD]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            sockets.0.push(command.spawn()?);
        }
        for child in &mut sockets.0 {
            let output = child.stdout.take().context("an output")?;
            let mut reported = String::new();
            BufReader::new(output).read_line(&mut reported)?;
            assert_eq!(reported, "opened\n");
        }
        Ok(sockets)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Errors do not matter: the process has ended or ends now.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The automatic rate in the kernel, watched from outside.
struct Rate {
    rates: Array<MapData, u64>,
    index: u32,
}

impl Rate {
    fn pinned(pinned: &Pinned) -> Result<Self> {
        let files = pinned.pins.files()?;
        let mut files = files.iter();
        let file = files.find(|file| file.ends_with("CURRENT_RATES"));
        let data = MapData::from_pin(file.context("no rates are pinned")?)?;
        let rates: Array<_, u64> = Map::from_map_data(data)?.try_into()?;
        let mut index = None;
        wait_for(|| {
            index = rates
                .iter()
                .position(|word| word.is_ok_and(|word| word != 0));
            Ok(index.is_some())
        })?;
        let index = index.context("no rate")?.try_into()?;
        Ok(Self { rates, index })
    }

    /// Fails if the rate expires while `goes_on`; counts its renewals.
    fn watch(&self, goes_on: impl Fn() -> bool, renewals: &AtomicU64) -> Result<()> {
        const LAPSED: u64 = u64::MAX;
        let mut before = 0;
        while goes_on() {
            // Take the time first: a late read must not make the rate look expired.
            let now_ns = monotonic_ns();
            let word = self.rates.get(&self.index, 0)?;
            let rate = CurrentRate(word);
            ensure!(
                rate.interval(now_ns, 0, LAPSED) != LAPSED,
                "the rate lapsed"
            );
            renewals.fetch_add(u64::from(word != before), Ordering::Relaxed);
            before = word;
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// Starts a limiter that finds a rate for these ports, and lets another user open many sockets. The
/// daemon must answer, and the rate must stay valid.
fn crowd(ports: &str) -> Result<Pinned> {
    let pinned = Pinned::start(&format!(
        "limits: {{All: {{id: total, cost: packets, count: auto, match: {{protocol: udp, \
         destination-port: {ports}}}}}}}\n"
    ))?;
    let rate = Rate::pinned(&pinned)?;
    let (over, renewals) = (AtomicBool::new(false), AtomicU64::new(0));
    let goes_on = || !over.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let watch = scope.spawn(|| rate.watch(goes_on, &renewals));
        let act = || -> Result<()> {
            let _sockets = Sockets::open(&pinned.pair.server)?;
            let before = renewals.load(Ordering::Relaxed);
            wait_for(|| {
                assert_responds(&pinned)?;
                Ok(renewals.load(Ordering::Relaxed) >= before + RENEWALS || watch.is_finished())
            })
        };
        let done = act();
        over.store(true, Ordering::Relaxed);
        watch.join().ok().context("the watch panicked")??;
        done
    })?;
    Ok(pinned)
}

#[test]
fn many_sockets_elsewhere_hold_nothing_up() -> Result<()> {
    let pinned = crowd("5300")?;
    let log = pinned.limiter.log()?;
    ensure!(!log.contains("WARN"), "{log}");
    Ok(())
}

#[test]
fn many_sockets_on_the_ports_of_the_limit_hold_nothing_up() -> Result<()> {
    let pinned = crowd("1024-65535")?;
    let log = pinned.limiter.log()?;
    let reported = log
        .matches("automatic rates: there are more than 2000")
        .count();
    ensure!(reported == 1, "{log}");
    Ok(())
}

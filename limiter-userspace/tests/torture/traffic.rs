//! The clients, and the arrivals of their packets.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::NonZeroU32,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use ipnet::{IpNet, Ipv4Net};
use testbed::{Load, Pair, Progress, SendReport, UdpSink, UdpSource, monotonic_ns};

use crate::policies::{BURST, PER_SECOND, SWITCHED, SWITCHED_COUNT, SWITCHED_PER_SECOND};

const PORT: u16 = 7000;
const PAYLOAD: usize = 32;
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// Sends at half its limit. If a busy machine delays the client for seconds, the burst has room for
/// the backlog.
pub(crate) const WITHIN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const WITHIN_PER_SECOND: NonZeroU32 = NonZeroU32::new(200).unwrap();

/// Sends many times its limit.
const BEYOND: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);
const BEYOND_PER_SECOND: NonZeroU32 = NonZeroU32::new(5_000).unwrap();

/// Also sends within its limit, but is listed or banned at times.
pub(crate) const SUSPECT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 4);

/// The rate of [`SWITCHED`]: many times its limit.
const SWITCHED_SENDS_PER_SECOND: NonZeroU32 = NonZeroU32::new(1_000).unwrap();

/// Packets sent without an arrival that show that a source is dropped.
const QUIET: u64 = 20;

/// Longer than any run, because clients send until they are stopped.
const FOREVER: Duration = Duration::from_hours(24);

/// The longest delay of a packet on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Makes a pair of namespaces with the clients' addresses.
pub(crate) fn pair() -> Result<Pair> {
    let network = |address: Ipv4Addr| Ipv4Net::new(address, 24).map(IpNet::from);
    let clients = [WITHIN, BEYOND, SUSPECT, SWITCHED].map(network);
    let clients = clients.into_iter().collect::<Result<Vec<_>, _>>()?;
    Pair::new(&clients, &[network(SERVER)?])
}

/// The clients while they send.
#[derive(Debug)]
pub(crate) struct Traffic {
    within: Client,
    beyond: Client,
    suspect: Client,
    switched: Client,
    /// How often the strategy or rate of `switched` may have changed.
    switches: u64,
    /// How many packets of the suspect had arrived when it was shut out; `None` if it is not shut
    /// out.
    shut_out_at: Option<u64>,
    sink: UdpSink,
    /// [`monotonic_ns`] before the first packet.
    since_ns: u64,
}

#[derive(Debug)]
struct Client {
    progress: Progress,
    thread: Option<JoinHandle<Result<SendReport>>>,
}

impl Traffic {
    pub(crate) fn start(pair: &Pair) -> Result<Self> {
        Ok(Self {
            sink: UdpSink::new(&pair.server, PORT)?,
            since_ns: monotonic_ns(),
            within: Client::start(pair, WITHIN, WITHIN_PER_SECOND)?,
            beyond: Client::start(pair, BEYOND, BEYOND_PER_SECOND)?,
            suspect: Client::start(pair, SUSPECT, WITHIN_PER_SECOND)?,
            switched: Client::start(pair, SWITCHED, SWITCHED_SENDS_PER_SECOND)?,
            switches: 0,
            shut_out_at: None,
        })
    }

    /// Allows one change of the strategy and rate from now on.
    pub(crate) fn may_switch(&mut self) {
        self.switches += 1;
    }

    /// Waits until the suspect's packets are all dropped, or all pass; fails on a time-out.
    pub(crate) fn shut_out(&mut self, is_shut_out: bool) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // While the sink is delayed, no packet of any source arrives.
            self.catch_up()?;
            let (sent, arrived) = (self.suspect.progress.sent(), self.arrived(SUSPECT));
            while self.suspect.progress.sent() < sent + QUIET {
                ensure!(Instant::now() < deadline, "{SUSPECT} stopped sending");
                thread::sleep(Duration::from_millis(1));
            }
            self.catch_up()?;
            let is_quiet = self.arrived(SUSPECT) == arrived;
            if is_quiet == is_shut_out {
                self.shut_out_at = is_shut_out.then_some(arrived);
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "{SUSPECT} is {}",
                if is_quiet {
                    "still dropped"
                } else {
                    "not dropped"
                }
            );
        }
    }

    /// Fails if a packet within the limit was lost, or if too many passed from a source beyond its
    /// limit or shut out.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(before) = self.shut_out_at {
            let arrived = self.arrived(SUSPECT);
            ensure!(
                arrived == before,
                "{} packets of {SUSPECT} passed while it is shut out",
                arrived - before
            );
        }
        // Count before computing the bounds, which grow with time.
        let passed = [BEYOND, SWITCHED].map(|source| (source, self.arrived(source)));
        let most = [self.most(), self.most_switched()];
        for ((source, passed), most) in passed.into_iter().zip(most) {
            ensure!(
                passed <= most,
                "{passed} packets of {source} passed, at most {most} may"
            );
        }
        self.catch_up()
    }

    /// Waits until all packets within the limit have arrived; earlier packets of other sources have
    /// then arrived, too.
    fn catch_up(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Read arrivals before the sent count.
            let arrived = self.arrived(WITHIN);
            let sent = self.within.progress.sent();
            if arrived >= sent {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "{WITHIN} keeps within its limit, but lost {} of {sent} packets",
                sent - arrived
            );
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends the traffic, and fails unless exactly the allowed packets have passed.
    pub(crate) fn finish(mut self) -> Result<()> {
        let beyond = self.beyond.stop()?;
        let within = self.within.stop()?;
        let switched = self.switched.stop()?;
        self.suspect.stop()?;
        self.check()?;
        let (most, least_switched) = (self.most(), self.least_switched());
        let most_switched = self.most_switched();
        let tally = self.sink.finish()?;
        ensure!(tally.lost == 0, "the sink lost {} packets", tally.lost);
        let arrived = tally.of(WITHIN.into()).packets;
        ensure!(
            arrived == within.packets,
            "{arrived} of the {} packets arrived that {WITHIN} sent within its limit",
            within.packets
        );
        let arrived = tally.of(BEYOND.into()).packets;
        println!(
            "{WITHIN} sent {} and lost none; {BEYOND} sent {}, of which {arrived} passed: at most \
             {most} in {:.2} s",
            within.packets,
            beyond.packets,
            Duration::from_nanos(monotonic_ns() - self.since_ns).as_secs_f64(),
        );
        ensure!(
            arrived <= most,
            "{arrived} packets of {BEYOND} passed, at most {most} may"
        );
        // This client always has more to send, and a dropped packet adds no debt.
        ensure!(
            arrived * 10 >= most * 9,
            "only {arrived} of {most} possible packets of {BEYOND} passed"
        );
        let arrived = tally.of(SWITCHED.into()).packets;
        println!(
            "{SWITCHED} sent {}, of which {arrived} passed: {least_switched} to {most_switched}, \
             after at most {} changes of its strategy and rate",
            switched.packets, self.switches
        );
        ensure!(
            (least_switched..=most_switched).contains(&arrived),
            "{arrived} packets of {SWITCHED} passed instead of {least_switched} to {most_switched}"
        );
        Ok(())
    }

    fn arrived(&self, source: Ipv4Addr) -> u64 {
        self.sink.so_far().of(IpAddr::V4(source)).packets
    }

    /// Returns the most packets that may have passed from [`BEYOND`]: a full bucket, and the tokens
    /// since before the first packet.
    fn most(&self) -> u64 {
        BURST + (monotonic_ns() - self.since_ns) * PER_SECOND / 1_000_000_000
    }

    /// Returns the most packets that may have passed from [`SWITCHED`]. Any strategy admits one
    /// count per period, and two more for the partial periods at both ends; each change of the
    /// strategy starts over.
    fn most_switched(&self) -> u64 {
        self.of_switched_rate() + 2 * SWITCHED_COUNT * (1 + self.switches)
    }

    /// Returns the least packets that must have passed from [`SWITCHED`]: half of its rate. It
    /// loses a window that ends while a busy machine delays it, and tokens beyond its small bucket.
    fn least_switched(&self) -> u64 {
        self.of_switched_rate() / 2
    }

    fn of_switched_rate(&self) -> u64 {
        (monotonic_ns() - self.since_ns) * SWITCHED_PER_SECOND / 1_000_000_000
    }
}

impl Client {
    fn start(pair: &Pair, source: Ipv4Addr, per_second: NonZeroU32) -> Result<Self> {
        let destination = SocketAddr::from((SERVER, PORT));
        let source = UdpSource::new(&pair.client, source.into(), destination)?;
        Ok(Self {
            progress: source.progress(),
            thread: Some(thread::spawn(move || {
                source.send(Load::steady(per_second, FOREVER), PAYLOAD)
            })),
        })
    }

    fn stop(&mut self) -> Result<SendReport> {
        self.progress.stop();
        let thread = self
            .thread
            .take()
            .context("the client was stopped already")?;
        thread.join().ok().context("a client panicked")?
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.progress.stop();
    }
}

//! The clients' packets, and the part of them that passes.

use std::{
    net::IpAddr,
    num::NonZeroU32,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use testbed::{Load, Pair, Progress, UdpSource};

use super::super::{PACE, PATIENCE};
use super::{BURST, Five, PORT, RATE};

/// Clients end by themselves after this time.
const LONGEST: Duration = Duration::from_hours(1);

/// Packets a second from each node's flooding client: nearly as many as all nodes admit together.
const FLOOD: NonZeroU32 = NonZeroU32::new(1_000).unwrap();

/// Packets a second of a client that fits every node's minimum share, which is 12.
const GOOD: NonZeroU32 = NonZeroU32::new(9).unwrap();

/// A part of the budget, in percent.
const NEARLY_ALL: i64 = 85;

/// Packets that may wait uncounted in the servers' sockets at the earlier measurement.
const UNCOUNTED: i64 = 5 * 60;

/// A host's server, a flooding client and a good one.
pub(super) fn pair(number: usize) -> Result<Pair> {
    let network = |last: u8| format!("10.90.{number}.{last}/32").parse();
    Pair::new(&[network(2)?, network(3)?], &[network(1)?])
}

fn address(number: usize, last: u8) -> Result<IpAddr> {
    Ok(format!("10.90.{number}.{last}").parse()?)
}

/// A client that sends until it is stopped.
pub(super) struct Client {
    number: usize,
    progress: Progress,
    thread: Option<JoinHandle<Result<u64>>>,
}

impl Client {
    /// Starts a client that floods.
    pub(super) fn flood(five: &Five, number: usize) -> Result<Self> {
        Self::start(five, number, address(number, 2)?, FLOOD)
    }

    /// Starts a client with little traffic.
    pub(super) fn good(five: &Five, number: usize) -> Result<Self> {
        Self::start(five, number, address(number, 3)?, GOOD)
    }

    fn start(five: &Five, number: usize, own: IpAddr, rate: NonZeroU32) -> Result<Self> {
        let client = &five.hosts[number - 1].pair.client;
        let source = UdpSource::new(client, own, (address(number, 1)?, PORT).into())?;
        let progress = source.progress();
        let load = Load::steady(rate, LONGEST);
        let thread = thread::spawn(move || Ok(source.send(load, 1)?.packets));
        Ok(Self {
            number,
            progress,
            thread: Some(thread),
        })
    }

    /// Stops it; returns the number of packets sent.
    fn stop(mut self) -> Result<u64> {
        self.progress.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(sent)) => sent,
            _ => bail!("the client of node {} has panicked", self.number),
        }
    }

    /// Stops it, and checks that all its packets have arrived; returns their number.
    pub(super) fn check_all_arrived(self, five: &Five) -> Result<u64> {
        let (number, begun) = (self.number, Instant::now());
        let sent = self.stop()?;
        let host = &five.hosts[number - 1];
        // A busy machine may drop a packet before the limiter sees it. No other client of the node sends,
        // so the loss is this client's.
        let lost = host.pair.lost()?;
        loop {
            let arrived = host.sink.so_far().of(address(number, 3)?).packets;
            if arrived + lost == sent {
                println!(
                    "of {sent} packets of the good client of node {number} {lost} were lost before it"
                );
                return Ok(arrived);
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "{arrived} of {sent} packets of the good client of node {number} arrived, {lost} never reached it"
            );
            thread::sleep(PACE);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.progress.stop();
    }
}

/// The floods, one per flooded node.
pub(super) struct Floods(Vec<Client>);

impl Floods {
    pub(super) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Floods exactly these nodes.
    pub(super) fn only(&mut self, five: &Five, numbers: &[usize]) -> Result<()> {
        let had = std::mem::take(&mut self.0);
        for client in had {
            if numbers.contains(&client.number) {
                self.0.push(client);
            } else {
                client.stop()?;
            }
        }
        for &number in numbers {
            if self.0.iter().all(|client| client.number != number) {
                self.0.push(Client::flood(five, number)?);
            }
        }
        Ok(())
    }
}

/// The packets that pass from the start on, compared with one bucket that has the whole budget.
pub(super) struct Watch {
    begun: Instant,
    polled: Instant,
    passed: u64,
    left: i64,
}

impl Watch {
    pub(super) fn start() -> Self {
        let now = Instant::now();
        Self {
            begun: now,
            polled: now,
            passed: 0,
            left: BURST,
        }
    }

    /// Checks that the bucket would have admitted all packets since any earlier measurement; returns the
    /// number since the last one.
    fn poll(&mut self, five: &Five) -> Result<u64> {
        let sinks = five.hosts.iter().map(|host| host.sink.so_far());
        let passed: u64 = sinks.map(|tally| tally.packets()).sum();
        let now = Instant::now();
        let new = passed - self.passed;
        self.left = self.left.min(BURST) + most_in(now - self.polled) - i64::try_from(new)?;
        (self.polled, self.passed) = (now, passed);
        ensure!(self.left >= -UNCOUNTED, "{} too many passed", -self.left);
        Ok(new)
    }

    /// Waits; returns the part of the budget that passed, in percent.
    pub(super) fn phase(&mut self, five: &Five, what: &str, time: Duration) -> Result<i64> {
        self.poll(five)?;
        let begun = Instant::now();
        thread::sleep(time);
        let passed = self.poll(five)?;
        let used = i64::try_from(passed)? * 100 / most_in(begun.elapsed());
        println!(
            "{what}: {passed} passed in {:?}: {used} %; one bucket would have {} left",
            begun.elapsed(),
            self.left
        );
        Ok(used)
    }

    /// Repeats such phases until nearly all of the budget passes: on a busy machine, clients send too
    /// little.
    pub(super) fn reach(&mut self, five: &Five, what: &str) -> Result<()> {
        let begun = Instant::now();
        while self.phase(five, what, Duration::from_secs(2))? < NEARLY_ALL {
            ensure!(begun.elapsed() < PATIENCE, "{what}: too little passes");
        }
        Ok(())
    }

    /// Checks the totals after all traffic has ended.
    pub(super) fn finish(self, five: Five) -> Result<()> {
        let time = self.begun.elapsed();
        let Five { fleet, hosts, .. } = five;
        let mut arrived = 0;
        // A live daemon would pin its programs again, so remove the pins last.
        let mut pins = Vec::new();
        for host in hosts {
            let tally = host.sink.finish().context("cannot count")?;
            arrived += tally.packets() + tally.lost;
            pins.push(host.pins);
        }
        let most = u64::try_from(BURST + most_in(time))?;
        println!("in {time:?} {arrived} passed, of at most {most}");
        ensure!(arrived <= most, "{arrived} passed, of at most {most}");
        fleet.stop()?;
        drop(pins);
        Ok(())
    }
}

/// Returns the tokens that refill in a time, by clocks that run a thousandth too fast.
fn most_in(time: Duration) -> i64 {
    let ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    RATE * (ms + 1) * 1_001 / 1_000_000 + 1
}

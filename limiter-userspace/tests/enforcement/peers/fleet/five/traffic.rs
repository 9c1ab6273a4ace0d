//! Packets of clients, and the part of them that passes.

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

/// Nearly as many packets a second from each node's clients as all nodes admit together.
const FLOOD: NonZeroU32 = NonZeroU32::new(5_000).unwrap();

/// Packets a second of a client that every node has room for, whatever happens: its floor is 60.
const GOOD: NonZeroU32 = NonZeroU32::new(45).unwrap();

/// A part of the budget, in percent.
const NEARLY_ALL: i64 = 85;

/// As many packets as may wait in the servers' sockets, uncounted, at the look before.
const UNCOUNTED: i64 = 5 * 300;

/// A host's server, and its clients: one that floods, and one that does not.
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
    /// Starts one that sends far more than is admitted.
    pub(super) fn flood(five: &Five, number: usize) -> Result<Self> {
        Self::start(five, number, address(number, 2)?, FLOOD)
    }

    /// Starts one that sends little.
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

    /// Returns how many packets it has sent.
    fn stop(mut self) -> Result<u64> {
        self.progress.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(sent)) => sent,
            _ => bail!("the client of node {} has panicked", self.number),
        }
    }

    /// Stops it, and checks that all that it has sent has arrived; returns how many packets.
    pub(super) fn check_all_arrived(self, five: &Five) -> Result<u64> {
        let (number, begun) = (self.number, Instant::now());
        let sent = self.stop()?;
        let host = &five.hosts[number - 1];
        // A busy machine may have no room for a packet, which the limiter then never sees: no other client
        // of the node sends.
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

/// The floods of the nodes that have one.
pub(super) struct Floods(Vec<Client>);

impl Floods {
    pub(super) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Has clients of these nodes, and no others, flood them.
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

/// The packets that pass, from before the first one on, and one bucket with the whole budget, as it would be after that.
pub(super) struct Watch {
    begun: Instant,
    looked: Instant,
    passed: u64,
    left: i64,
}

impl Watch {
    pub(super) fn start() -> Self {
        let now = Instant::now();
        Self {
            begun: now,
            looked: now,
            passed: 0,
            left: BURST,
        }
    }

    /// Checks that the bucket would have admitted all, since any earlier look; returns how many packets passed since
    /// the last one.
    fn look(&mut self, five: &Five) -> Result<u64> {
        let sinks = five.hosts.iter().map(|host| host.sink.so_far());
        let passed: u64 = sinks.map(|tally| tally.packets()).sum();
        let now = Instant::now();
        let new = passed - self.passed;
        self.left = self.left.min(BURST) + most_in(now - self.looked) - i64::try_from(new)?;
        (self.looked, self.passed) = (now, passed);
        ensure!(self.left >= -UNCOUNTED, "{} too many passed", -self.left);
        Ok(new)
    }

    /// Lets a time pass; returns the part of the budget that passed, in percent.
    pub(super) fn phase(&mut self, five: &Five, what: &str, time: Duration) -> Result<i64> {
        self.look(five)?;
        let begun = Instant::now();
        thread::sleep(time);
        let passed = self.look(five)?;
        let used = i64::try_from(passed)? * 100 / most_in(begun.elapsed());
        println!(
            "{what}: {passed} passed in {:?}: {used} %; one bucket would have {} left",
            begun.elapsed(),
            self.left
        );
        Ok(used)
    }

    /// Lets such phases pass until nearly all of the budget passes: while the machine has much else to do, clients
    /// send too little.
    pub(super) fn reach(&mut self, five: &Five, what: &str) -> Result<()> {
        let begun = Instant::now();
        while self.phase(five, what, Duration::from_secs(2))? < NEARLY_ALL {
            ensure!(begun.elapsed() < PATIENCE, "{what}: too little passes");
        }
        Ok(())
    }

    /// Checks the whole, when nothing is sent any more.
    pub(super) fn finish(self, five: Five) -> Result<()> {
        let time = self.begun.elapsed();
        let Five { fleet, hosts, .. } = five;
        let mut arrived = 0;
        // A daemon that lives pins again the programs that lose their pins.
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

/// Returns the tokens that come back in a time, by clocks that run a thousandth too fast.
fn most_in(time: Duration) -> i64 {
    let ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    RATE * (ms + 1) * 1_001 / 1_000_000 + 1
}

//! Packets of clients, and the part of them that passes.

use std::{
    net::IpAddr,
    num::NonZeroU32,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use testbed::{Load, Pair, Progress, UdpSource};

use super::{BURST, Five, PORT, RATE};

/// The senders of all packets end after this time by themselves.
const LONGEST: Duration = Duration::from_mins(4);

/// Nearly as many packets a second from each node's clients as all nodes admit together.
const FLOOD: NonZeroU32 = NonZeroU32::new(5_000).unwrap();

/// Packets a second of a client that every node has room for, whatever happens: its floor is 60.
const GOOD: NonZeroU32 = NonZeroU32::new(45).unwrap();

/// As many packets as may wait in the servers' sockets, uncounted, when a phase begins.
const UNCOUNTED: u64 = 5 * 300;

/// A host's server, and its clients: one that floods, and one that does not.
pub(super) fn pair(number: usize) -> Result<Pair> {
    let network = |last: u8| format!("10.90.{number}.{last}/32").parse();
    Ok(Pair::new(&[network(2)?, network(3)?], &[network(1)?])?)
}

fn address(number: usize, last: u8) -> Result<IpAddr> {
    Ok(format!("10.90.{number}.{last}").parse()?)
}

/// A client that sends until it is stopped.
pub(super) struct Client {
    number: usize,
    progress: Progress,
    thread: JoinHandle<Result<u64>>,
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
            thread,
        })
    }

    /// Returns how many packets it has sent.
    pub(super) fn stop(self) -> Result<u64> {
        self.progress.stop();
        match self.thread.join() {
            Ok(sent) => sent,
            Err(_) => bail!("the client of node {} has panicked", self.number),
        }
    }

    /// Stops it, and checks that all that it has sent has arrived; returns how many packets.
    pub(super) fn check_all_arrived(self, five: &Five) -> Result<u64> {
        let (number, begun) = (self.number, Instant::now());
        let sent = self.stop()?;
        loop {
            let tally = five.hosts[number - 1].sink.so_far();
            let arrived = tally.of(address(number, 3)?).packets;
            if arrived == sent {
                println!("all {sent} packets of the good client of node {number} arrived");
                return Ok(sent);
            }
            ensure!(
                begun.elapsed() < Duration::from_secs(3),
                "{arrived} of {sent} packets of the good client of node {number} arrived"
            );
            thread::sleep(super::super::PACE);
        }
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

/// What passes, from before the first packet on.
pub(super) struct Watch(Instant);

impl Watch {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Checks that one bucket with the whole budget would have admitted all; returns how much that is.
    pub(super) fn check(&self, five: &Five) -> Result<u64> {
        let arrived = five
            .hosts
            .iter()
            .map(|host| host.sink.so_far().packets())
            .sum();
        let most = BURST + most_in(self.0.elapsed());
        ensure!(arrived <= most, "{arrived} passed, of at most {most}");
        Ok(arrived)
    }

    /// Lets a time pass in which some are flooded: then no bucket has anything left, and so no more than what
    /// comes back may pass. Returns the part of the budget that passed, in percent.
    pub(super) fn phase(&self, five: &Five, what: &str, time: Duration) -> Result<u64> {
        let (before, begun) = (self.check(five)?, Instant::now());
        thread::sleep(time);
        let passed = self.check(five)? - before;
        let most = most_in(begun.elapsed());
        let used = passed * 100 / most;
        println!("{what}: {passed} passed in {:?}: {used} %", begun.elapsed());
        ensure!(passed <= most + UNCOUNTED, "{what}: {passed} of {most}");
        Ok(used)
    }

    /// Checks the whole, when nothing is sent any more.
    pub(super) fn finish(self, five: Five) -> Result<()> {
        let time = self.0.elapsed();
        let Five { fleet, hosts, .. } = five;
        let mut arrived = 0;
        for host in hosts {
            let tally = host.sink.finish().context("cannot count")?;
            arrived += tally.packets() + tally.lost;
        }
        let most = BURST + most_in(time);
        println!("in {time:?} {arrived} passed, of at most {most}");
        ensure!(arrived <= most, "{arrived} passed, of at most {most}");
        fleet.stop()
    }
}

/// Returns the tokens that come back in a time, by clocks that run a thousandth too fast.
fn most_in(time: Duration) -> u64 {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    RATE * (ms + 1) * 1_001 / 1_000_000 + 1
}

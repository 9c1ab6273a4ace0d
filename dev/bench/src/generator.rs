//! Makes the flood: the generator program, run on live frames by `BPF_PROG_TEST_RUN`.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, anyhow, bail};
use aya::{
    Ebpf, EbpfLoader, TestRun as _, TestRunAttrs, TestRunOptions,
    maps::Array,
    programs::{ProgramError, Xdp},
};
use bench_common::{CLIENTS, Client, Sink};
use limiter_datapath::kernel::verify;
use nix::net::if_::if_nametoindex;
use testbed::{CLIENT_INTERFACE, Interrupt, Namespace, Pair};

use crate::{cpu, drawing::Drawing, float::to_f64, objects, scenario::Scenario};

/// Frames in flight: as many as the receiver takes at once (NAPI's budget), and a quarter of the
/// veth pair's ring.
const BATCH: u32 = 64;

/// The number of frames in the first system call, and the least number in any.
const FIRST_CHUNK: u32 = 1 << 14;

/// The target duration of a system call, without the kernel's set-up and tear-down of about twenty
/// milliseconds.
const CHUNK_TIME: Duration = Duration::from_secs(1);

/// Floods one end of a pair from the other.
pub(crate) struct Generator {
    ebpf: Ebpf,
    program: &'static str,
    namespace: Namespace,
    frame: Vec<u8>,
    cpus: usize,
    interrupt: Interrupt,
}

/// The number of frames sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendRate {
    pub(crate) frames: u64,
    /// Frames per second, of all CPUs together.
    pub(crate) rate: f64,
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopCondition {
    /// The generator's running time.
    pub(crate) time: Duration,
    /// The number of frames of all CPUs together.
    pub(crate) frames: u64,
}

impl Generator {
    /// Makes a generator of the flood alone.
    pub(crate) fn flood(pair: &Pair, scenario: &Scenario, interrupt: &Interrupt) -> Result<Self> {
        Self::new("flood", pair, scenario, interrupt)
    }

    /// Makes a generator of the flood with clients in between.
    pub(crate) fn flood_and_clients(
        pair: &Pair,
        scenario: &Scenario,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        Self::new("flood_and_clients", pair, scenario, interrupt)
    }

    fn new(
        program: &'static str,
        pair: &Pair,
        scenario: &Scenario,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let interface = pair
            .client
            .enter(|| Ok(if_nametoindex(CLIENT_INTERFACE)?))?;
        let mut ebpf = EbpfLoader::new()
            .override_global("INTERFACE", &interface, true)
            .load(objects::BENCH)?;
        let drawing = Drawing {
            layout: Some(scenario.layout),
            sources_log2: scenario.sources_log2,
            sink: Sink::Nothing,
        };
        drawing.apply(&mut ebpf)?;
        let generator: &mut Xdp = ebpf
            .program_mut(program)
            .with_context(|| format!("the object has no {program}"))?
            .try_into()?;
        verify(|| generator.load())?;
        Ok(Self {
            ebpf,
            program,
            namespace: pair.client.clone(),
            frame: scenario.frame()?,
            cpus: scenario.cpus,
            interrupt: interrupt.clone(),
        })
    }

    /// Sends as fast as possible, on every CPU of the scenario.
    pub(crate) fn send(&self, until: StopCondition) -> Result<SendRate> {
        let each = StopCondition {
            frames: until.frames.div_ceil(u64::try_from(self.cpus)?),
            ..until
        };
        let sent: Vec<Result<SendRate>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.cpus)
                .map(|cpu| scope.spawn(move || self.namespace.enter(|| self.send_on(cpu, each))))
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    let sent = thread.join();
                    sent.map_err(|_| anyhow!("a generator's thread panicked"))?
                })
                .collect()
        });
        let mut total = SendRate::default();
        for sent in sent {
            let sent = sent?;
            total.frames += sent.frames;
            total.rate += sent.rate;
        }
        Ok(total)
    }

    fn send_on(&self, cpu: usize, until: StopCondition) -> Result<SendRate> {
        cpu::pin(cpu)?;
        let (mut frames, mut time) = (0, Duration::ZERO);
        let mut chunk = FIRST_CHUNK;
        while frames < until.frames && time < until.time {
            self.interrupt.check()?;
            let took = self.send_chunk(chunk)?;
            frames += u64::from(chunk);
            time += took;
            chunk = next_chunk(chunk, took, until.time.saturating_sub(time).min(CHUNK_TIME));
        }
        Ok(SendRate {
            frames,
            rate: to_f64(frames) / time.as_secs_f64(),
        })
    }

    /// Sends `frames` frames; returns the time taken, except when another process had the CPU.
    ///
    /// This includes the receiver's work: each batch goes through the veth pair and everything
    /// behind it on this CPU before the next batch is made.
    fn send_chunk(&self, frames: u32) -> Result<Duration> {
        let program: &Xdp = self
            .ebpf
            .program(self.program)
            .context("the generator is gone")?
            .try_into()?;
        let options = TestRunOptions {
            data_in: Some(&self.frame),
            repeat: frames,
            attrs: TestRunAttrs::new().xdp_live_frames(BATCH),
            ..TestRunOptions::new()
        };
        match program.test_run(options) {
            // The kernel returns the mean, rounded down to a nanosecond.
            Ok(result) => {
                Ok(result.duration * frames + Duration::from_nanos(u64::from(frames) / 2))
            }
            // A signal ends the call early.
            Err(ProgramError::SyscallError(_)) if self.interrupt.has_arrived() => {
                bail!("interrupted")
            }
            Err(error) => Err(error).context("cannot send live frames"),
        }
    }

    /// Sets the clients' pace. They start at once.
    pub(crate) fn set_clients(&mut self, clients: &[Client]) -> Result<()> {
        let map = self.ebpf.map_mut("CLIENT").context("no map CLIENT")?;
        let mut map = Array::<_, [u64; 5]>::try_from(map)?;
        for (number, client) in (0..CLIENTS).zip(clients) {
            map.set(number, client.words(), 0)?;
        }
        Ok(())
    }

    /// Returns the clients' progress.
    pub(crate) fn clients(&self) -> Result<Vec<Client>> {
        let map = self.ebpf.map("CLIENT").context("no map CLIENT")?;
        let map = Array::<_, [u64; 5]>::try_from(map)?;
        (0..CLIENTS)
            .map(|number| Ok(Client::of_words(map.get(&number, 0)?)))
            .collect()
    }
}

/// Returns as many frames as will take `time`, judging by the last chunk, and at most eight times
/// as many as in it.
fn next_chunk(chunk: u32, took: Duration, time: Duration) -> u32 {
    let wanted = u128::from(chunk) * time.as_nanos() / took.as_nanos().max(1);
    let most = chunk.saturating_mul(8).max(FIRST_CHUNK);
    u32::try_from(wanted)
        .unwrap_or(u32::MAX)
        .clamp(FIRST_CHUNK, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_grow_to_their_time() {
        let ms = Duration::from_millis;
        let (first, time) = (FIRST_CHUNK, ms(200));
        assert_eq!(next_chunk(first, ms(1), time), 8 * first);
        assert_eq!(next_chunk(first, ms(100), time), 2 * first);
        assert_eq!(next_chunk(4 * first, ms(400), time), 2 * first);
        assert_eq!(next_chunk(first, ms(10_000), time), first);
        assert_eq!(next_chunk(first, Duration::ZERO, time), 8 * first);
    }
}

//! Sends a flood at its pace from one CPU, until it is stopped.

use std::{
    fs::File,
    os::unix::thread::JoinHandleExt as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use aya::{
    Ebpf, EbpfLoader, TestRun as _, TestRunAttrs, TestRunOptions,
    maps::{Array, MapData},
    programs::{ProgramError, Xdp},
};
use bench_common::{FORGE_SENT, FORGE_WORDS, Forge, Frame, Pace};
use limiter_datapath::kernel::verify;
use nix::{
    net::if_::if_nametoindex,
    sched::{CloneFlags, setns},
    sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction},
};
use testbed::{CLIENT_INTERFACE, Pair};

use super::{
    flood::{Flood, Rate},
    growth::growing,
    setup::CLIENTS_CPU,
};
use crate::{cpu, float::to_f64, objects};

/// How many frames the kernel makes at once, without yielding the CPU.
const BATCH: u32 = 64;

/// How many sources a flood remembers for use after a second: as many as any flood sends in a
/// second.
const REMEMBERED: u32 = 1 << 21;

/// The longest flood, even if it is stopped late.
const LONGEST: Duration = Duration::from_mins(2);

/// Any signal that ends a system call.
const WAKE: Signal = Signal::SIGUSR1;

/// A flood in progress. It ends on drop.
pub(super) struct Forger {
    words: Array<MapData, [u64; FORGE_WORDS]>,
    started: Instant,
    is_to_stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

growing! {
    /// The number of frames sent, and the time taken.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct SendCounts {
        pub(super) frames: u64,
        time: Duration,
    }
}

impl SendCounts {
    /// Returns frames per second.
    pub(super) fn rate(&self) -> f64 {
        to_f64(self.frames) / self.time.as_secs_f64()
    }
}

impl Forger {
    /// Starts a flood. `per_second` is the pace of [`Rate::Most`]; `None` means without a pause.
    pub(super) fn start(flood: &Flood, pair: &Pair, per_second: Option<u64>) -> Result<Self> {
        let pace = match flood.rate {
            Rate::PerSecond(packets) => Pace::per_second(packets),
            Rate::Most => per_second.map_or(Pace::UNBOUNDED, Pace::per_second),
            Rate::None => anyhow::bail!("there is no flood"),
        };
        let mut template = flood.frame()?;
        let forge = forge(&mut template, flood, pace)?;
        let interface = pair
            .client
            .enter(|| Ok(if_nametoindex(CLIENT_INTERFACE)?))?;
        let remembered = if flood.again_after.is_some() {
            REMEMBERED
        } else {
            1
        };
        let mut ebpf = EbpfLoader::new()
            .override_global("INTERFACE", &interface, true)
            .override_global("FIRST_USED_MASK", &u64::from(remembered - 1), true)
            .map_max_entries("FIRST_USED", remembered)
            .load(objects::BENCH)?;
        let forger = program(&mut ebpf)?;
        verify(|| forger.load())?;
        let words = ebpf.take_map("FORGE").context("the object has no FORGE")?;
        let mut words = Array::try_from(words)?;
        words.set(0, forge.words(), 0)?;
        ignore(WAKE)?;
        let is_to_stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let is_to_stop = Arc::clone(&is_to_stop);
            let namespace = File::open(pair.client.path())?;
            // The signal must reach this thread, so it enters the namespace itself.
            thread::spawn(move || {
                setns(namespace, CloneFlags::CLONE_NEWNET)?;
                send(&mut ebpf, &template, &is_to_stop)
            })
        };
        Ok(Self {
            words,
            started: Instant::now(),
            is_to_stop,
            thread: Some(thread),
        })
    }

    /// Returns the frames sent so far; fails if the flood has ended.
    pub(super) fn sent(&self) -> Result<SendCounts> {
        let is_over = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        ensure!(!is_over, "the flood ended early");
        Ok(SendCounts {
            frames: self.words.get(&0, 0)?[FORGE_SENT],
            time: self.started.elapsed(),
        })
    }

    /// Ends the flood.
    pub(super) fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        self.is_to_stop.store(true, Ordering::Relaxed);
        // A signal may come just before the system call that it should end.
        while !thread.is_finished() {
            // SAFETY: the thread has not been joined, so its handle is valid.
            unsafe { libc::pthread_kill(thread.as_pthread_t(), WAKE as libc::c_int) };
            thread::sleep(Duration::from_millis(1));
        }
        thread
            .join()
            .map_err(|_| anyhow!("the flood's thread panicked"))?
    }
}

impl Drop for Forger {
    fn drop(&mut self) {
        // `stop` reports errors; on a plain drop, another error is already on its way.
        let _ = self.end();
    }
}

/// Returns the flood of frames like this one.
fn forge(template: &mut [u8], flood: &Flood, pace: Pace) -> Result<Forge> {
    let again_after = flood.again_after.unwrap_or_default();
    let start = template.as_mut_ptr().addr();
    ensure!(
        start.is_multiple_of(2),
        "the frame starts at an odd address"
    );
    // SAFETY: the bytes are ours until this function ends, and the address is even.
    let frame = unsafe { Frame::new(start, start + template.len()) };
    Forge::new(
        &frame,
        flood.origin,
        pace,
        u64::try_from(again_after.as_nanos())?,
    )
    .context("no frame of a flood")
}

fn program(ebpf: &mut Ebpf) -> Result<&mut Xdp> {
    let program = ebpf
        .program_mut("forge")
        .context("the object has no forge")?;
    Ok(program.try_into()?)
}

/// Lets a signal end system calls, and do nothing else.
fn ignore(signal: Signal) -> Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // Without SA_RESTART, the call fails.
    let action = SigAction::new(
        SigHandler::Handler(nothing),
        SaFlags::empty(),
        SigSet::empty(),
    );
    // SAFETY: the handler does nothing, which is always allowed.
    unsafe { sigaction(signal, &action) }.context("cannot handle a signal")?;
    Ok(())
}

fn send(ebpf: &mut Ebpf, template: &[u8], is_to_stop: &AtomicBool) -> Result<()> {
    cpu::pin(CLIENTS_CPU)?;
    cpu::hurry(0)?;
    let program = program(ebpf)?;
    let start = Instant::now();
    while !is_to_stop.load(Ordering::Relaxed) {
        ensure!(start.elapsed() < LONGEST, "the flood was not told to stop");
        let options = TestRunOptions {
            data_in: Some(template),
            // Frames that are not due count as well, so this is never reached.
            repeat: u32::MAX,
            attrs: TestRunAttrs::new().xdp_live_frames(BATCH),
            ..TestRunOptions::new()
        };
        match program.test_run(options) {
            Ok(_) => {}
            Err(ProgramError::SyscallError(_)) if is_to_stop.load(Ordering::Relaxed) => {}
            Err(error) => return Err(error).context("cannot send live frames"),
        }
    }
    Ok(())
}

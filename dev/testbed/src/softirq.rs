//! Waits for packets that the kernel has deferred.

use std::{
    fs,
    path::PathBuf,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

/// The time limit. Floods of other tests may keep a CPU busy for longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The interval between checks.
const TICK: Duration = Duration::from_millis(2);

/// The state files of the `ksoftirqd` threads, one for each CPU, which process deferred interrupt work. Empty
/// if another process namespace hides them.
static THREADS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .map(|process| process.path())
        .filter(|process| {
            fs::read_to_string(process.join("comm"))
                .is_ok_and(|name| name.starts_with("ksoftirqd/"))
        })
        .map(|process| process.join("stat"))
        .collect()
});

/// Waits until every CPU has processed its deferred packets, a second at most.
///
/// On a busy machine, a sent packet may wait for a CPU's `ksoftirqd`, which competes for the CPU like any
/// process. No socket shows such a packet.
pub(crate) fn settle() {
    let end = Instant::now() + PATIENCE;
    for thread in &*THREADS {
        while is_runnable(thread) && Instant::now() < end {
            thread::sleep(TICK);
        }
    }
}

/// Returns whether a thread runs or waits for a CPU. In its state file, the state follows the name in
/// parentheses (proc_pid_stat(5)).
fn is_runnable(thread: &PathBuf) -> bool {
    let stat = fs::read_to_string(thread).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|state| state.starts_with('R'))
}

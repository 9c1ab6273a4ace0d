//! Processes, as described in /proc.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result};
use nix::unistd::{SysconfVar, sysconf};

/// The positions of the process group, and of the ticks in user and kernel mode, after the
/// process's name in its stat file (proc_pid_stat(5)).
const GROUP: usize = 2;
const TICKS: [usize; 2] = [11, 12];

/// Returns the ids of all processes.
pub(super) fn ids() -> Result<impl Iterator<Item = i32>> {
    let processes = fs::read_dir("/proc").context("cannot read /proc")?;
    let processes = processes.flatten();
    Ok(processes.filter_map(|process| process.file_name().to_str()?.parse().ok()))
}

/// Returns the processes of a group, with the CPU time of each.
pub(super) fn of_group(wanted: u32) -> Result<Vec<(i32, Duration)>> {
    ids()?
        .filter_map(|process| {
            // The process may have ended.
            let (group, ticks) = group_and_ticks(&stat(process).ok()?)?;
            (group == wanted).then(|| of_ticks(ticks).map(|time| (process, time)))
        })
        .collect()
}

/// Returns the CPU time of a process or a thread.
pub(super) fn time_of(process: i32) -> Result<Duration> {
    let (_, ticks) = group_and_ticks(&stat(process)?).context("a strange /proc/PID/stat")?;
    of_ticks(ticks)
}

fn stat(process: i32) -> Result<String> {
    let path = format!("/proc/{process}/stat");
    fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
}

/// Returns the process group and the ticks of a process.
fn group_and_ticks(stat: &str) -> Option<(u32, u64)> {
    let fields: Vec<_> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = TICKS.map(|index| fields.get(index)?.parse::<u64>().ok());
    Some((fields.get(GROUP)?.parse().ok()?, ticks[0]? + ticks[1]?))
}

fn of_ticks(ticks: u64) -> Result<Duration> {
    let a_second = sysconf(SysconfVar::CLK_TCK)?.context("no clock ticks")?;
    Ok(Duration::from_millis(
        ticks * 1000 / u64::try_from(a_second)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_time_of_a_process_with_a_strange_name() {
        let stat = "77 (a) R (b) S 1 55 55 0 -1 4194304 9 0 0 0 120 34 0 0 20 0 1 0";
        assert_eq!(group_and_ticks(stat), Some((55, 154)));
        assert_eq!(group_and_ticks("77"), None);
    }

    #[test]
    fn finds_this_process_in_its_group() {
        let this = i32::try_from(std::process::id()).unwrap();
        let group = u32::try_from(nix::unistd::getpgrp().as_raw()).unwrap();
        let found = of_group(group).unwrap();
        assert!(found.iter().any(|(process, _)| *process == this));
    }
}

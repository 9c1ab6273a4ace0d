//! The kernel's counters: the fates of packets, and the users of the CPUs.

mod cpu_time;
mod turns;
mod way;

use std::{fs, time::Duration};

use anyhow::{Context as _, Result};
use testbed::Pair;

use self::{
    cpu_time::CpuTime,
    turns::{of_processes, of_thread},
};
pub(super) use self::{turns::Turns, way::Way};
use super::{
    growth::growing,
    processes,
    setup::{CLIENTS_CPU, SERVER_CPU},
};

growing! {
    /// Counters at one time, for comparison with later ones.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Counters {
        pub(super) way: Way,
        /// The CPU time of the server.
        pub(super) server: Duration,
        /// The CPU time of the thread that receives.
        pub(super) receiver: Duration,
        pub(super) receiver_turns: Turns,
        /// The turns of the thread that receives the packets sent back by the defence.
        pub(super) answers_turns: Turns,
        pub(super) server_turns: Turns,
        pub(super) clients_cpu: CpuTime,
        pub(super) server_cpu: CpuTime,
    }
}

impl Counters {
    /// Reads the counters. The server's processes are one group. `answers`: the thread that
    /// receives packets sent back by the defence, if there is one.
    pub(super) fn read(
        pair: &Pair,
        server_group: u32,
        receiver: i32,
        answers: Option<i32>,
    ) -> Result<Self> {
        let server = processes::of_group(server_group)?;
        let stat = fs::read_to_string("/proc/stat")?;
        let cpu_time = |cpu| CpuTime::of(&stat, cpu).context("a strange /proc/stat");
        Ok(Self {
            way: Way::read(pair)?,
            server: server.iter().map(|(_, time)| *time).sum(),
            receiver: processes::time_of(receiver)?,
            receiver_turns: of_thread(receiver),
            answers_turns: answers.map(of_thread).unwrap_or_default(),
            server_turns: of_processes(server.iter().map(|(process, _)| *process)),
            clients_cpu: cpu_time(CLIENTS_CPU)?,
            server_cpu: cpu_time(SERVER_CPU)?,
        })
    }
}

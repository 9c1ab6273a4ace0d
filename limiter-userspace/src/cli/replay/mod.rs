//! `limiter replay`.

mod json;
mod open;
mod print;

use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use clap::{Args, ValueEnum};

use super::OutputArgs;
use crate::{
    config::{self, Config},
    datapath::preflight,
    policy::{CompiledPolicy, Policy},
    replay::{
        Judged, Replay, Sources, Summary,
        capture::Capture,
        engine::{Engine, KernelEngine, NativeEngine},
    },
};

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// The configuration file
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,

    /// The capture, pcap or pcapng of Ethernet; `-` for standard input
    capture: PathBuf,

    /// Who decides
    #[arg(long, value_enum, default_value_t)]
    engine: EngineChoice,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum EngineChoice {
    /// This process; needs no privilege
    #[default]
    Native,
    /// The XDP program in the kernel, attached to nothing; needs root
    Kernel,
}

pub(super) fn replay(args: &ReplayArgs) -> anyhow::Result<()> {
    let config = config::load(&args.config)?;
    let tables = CompiledPolicy::new(&config.policy)?;
    let reader = open::capture(&args.capture)?;
    let mut capture = Capture::new(reader)?;
    let engine = engine(args.engine, &tables, &config)?;
    let mut replay = Replay::new(tables, engine, args.output.json);

    let mut out = Output {
        policy: &config.policy,
        json: args.output.json,
        writer: BufWriter::new(io::stdout().lock()),
        summary: Summary::new(config.policy.limits.len()),
        sources: Sources::default(),
    };
    // What was read is told, also when the rest cannot be.
    let end: anyhow::Result<()> = loop {
        let packet = match capture.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.into()),
        };
        match replay.judge(&packet) {
            Ok(judged) => out.packet(&judged)?,
            Err(error) => break Err(error.into()),
        }
    };
    out.finish()?;
    end
}

fn engine(
    choice: EngineChoice,
    tables: &CompiledPolicy,
    config: &Config,
) -> anyhow::Result<Box<dyn Engine>> {
    Ok(match choice {
        EngineChoice::Native => Box::new(NativeEngine::default()),
        EngineChoice::Kernel => {
            preflight::check()?;
            Box::new(KernelEngine::new(tables, config.buckets.capacity)?)
        }
    })
}

/// Where the packets' verdicts go.
struct Output<'a, W> {
    policy: &'a Policy,
    json: bool,
    writer: W,
    summary: Summary,
    sources: Sources,
}

impl<W: Write> Output<'_, W> {
    fn packet(&mut self, packet: &Judged) -> anyhow::Result<()> {
        self.summary.add(packet);
        if self.json {
            json::packet(&mut self.writer, self.policy, packet)
        } else {
            self.sources.add(packet);
            Ok(())
        }
    }

    fn finish(mut self) -> anyhow::Result<()> {
        if self.json {
            json::summary(&mut self.writer, self.policy, &self.summary)?;
        } else {
            print::summary(&mut self.writer, self.policy, &self.summary, &self.sources)?;
        }
        self.writer.flush()?;
        Ok(())
    }
}

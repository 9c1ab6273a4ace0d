//! `limiter replay`.

mod answers;
mod at_end;
mod automatic;
mod bans;
mod connections;
mod json;
mod plot;
mod print;
mod sieves;
mod standing;

use std::{
    collections::HashMap,
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use limiter_common::limit::Cost;
use limiter_datapath::kernel::{possible_cpus, preflight, wall_clock_now};
use limiter_offline::replay::{
    Replay, ReplayedBans, ReplayedPacket, Sources, Summary, Timeline, Usage,
    engine::{Engine, KernelEngine, NativeEngine},
};
use limiter_policy::{
    config::{self, Config, Offenders},
    policy::{
        CompiledPolicy, DnsName, KeyNames, Limit, Mode, Policy, QuestionNames, zones_by_number,
    },
};

use self::{answers::AnswersFile, at_end::FinalState, sieves::SieveStates, standing::ProofCounts};
use super::{
    args::{ConfigOption, OutputArgs},
    output::{stdout, stdout_of_json},
    traffic_file,
};

/// The name of the single interface in a replay, as a capture names none: a limit on each interface has one
/// bucket.
const ALL_INTERFACES: &str = "total";

/// The most CPUs of Linux on any architecture.
const MOST_CPUS: i64 = 8192;

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    config: ConfigOption,

    /// The Ethernet capture, pcap or pcapng, also compressed by gzip or zstd; `-` for standard
    /// input
    capture: PathBuf,

    /// The judge of the packets
    #[arg(long, value_enum, default_value_t)]
    engine: EngineChoice,

    /// Lay sieves out for a machine with at most N CPUs; without it, for this machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_CPUS))]
    cpus: Option<u32>,

    /// Treat the addresses and prefixes in a file, one a line, as proven from the start
    #[arg(long, value_name = "FILE")]
    assume_known: Option<PathBuf>,

    /// Judge automatic rates at so many tokens a second; without it: at their floors
    #[arg(long, value_name = "RATE", value_parser = automatic::parse)]
    assume_rate: Option<u64>,

    #[command(flatten)]
    output: OutputArgs,

    /// Draw packets over time, passed and dropped by each limit, as an SVG
    #[arg(long, value_name = "OUT.svg", value_parser = svg)]
    plot: Option<PathBuf>,

    /// Write the frames that would be sent back, at the times of the packets that they answer
    #[arg(long, value_name = "OUT.pcap")]
    answers: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum EngineChoice {
    /// This process; needs no privileges
    #[default]
    Native,
    /// The XDP program in the kernel, attached to nothing; needs root
    Kernel,
}

/// Parses the name of an SVG. A name without an extension, such as `/dev/stdout`, is valid.
fn svg(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension() {
        Some(extension) if !extension.eq_ignore_ascii_case("svg") => {
            let named = path.with_extension("svg");
            Err(format!(
                "a plot is an SVG: name it {}; programs such as rsvg-convert make other images of it",
                named.display()
            ))
        }
        _ => Ok(path),
    }
}

/// Refuses to count connections in the kernel: only the connections of its own network stack exist there.
fn refuse_connections(policy: &Policy) -> anyhow::Result<()> {
    let counts = |limit: &&Limit| limit.cost == Cost::Connections && limit.mode != Mode::Off;
    match policy.limits.iter().find(counts) {
        None => Ok(()),
        Some(limit) => bail!(
            "limit {} has cost connections, and the kernel counts those of its own network stack, not \
             those of a capture: replay with `--engine native`",
            limit.name
        ),
    }
}

/// Warns on stderr of limits by server name, as a replay reads no names.
fn warn_of_server_names(policy: &Policy) {
    let counts = |limit: &&Limit| limit.counts_by_server_name() && limit.mode != Mode::Off;
    for limit in policy.limits.iter().filter(counts) {
        crate::cli::output::warn(&format_args!(
            "limit {} counts no packet here: a replay reads no server names; `limiter names` shows those \
             of a capture",
            limit.name
        ));
    }
}

pub(super) fn replay(args: &ReplayArgs) -> anyhow::Result<()> {
    let mut config = config::load(&args.config.config, wall_clock_now())?;
    warn_of_server_names(&config.policy);
    if matches!(args.engine, EngineChoice::Kernel) {
        refuse_connections(&config.policy)?;
    }
    let assumed = standing::assume(&mut config.policy, args.assume_known.as_deref())?;
    automatic::assume(&mut config.policy, args.assume_rate)?;
    for limit in &mut config.policy.limits {
        // A capture is of one host, which is judged as if it had the whole budget.
        limit.fleet_nodes = None;
    }
    let cpus = args.cpus.unwrap_or_else(possible_cpus);
    let mut tables = CompiledPolicy::new(&config.policy, cpus)?;
    // The capture does not tell how many packets each CPU will get.
    tables.features.standing.recorded_visits = u64::MAX;
    let mut capture = traffic_file::open(&args.capture)?;
    let engine = engine(args.engine, &tables, &config)?;
    let secrets = config.secrets.as_ref();
    let secrets = secrets.map_or(&[][..], |read| &read.secrets);
    let replay = Replay::new(&config.policy, tables, engine, args.output.json);
    let mut replay = replay.with_secrets(secrets);
    let plot = args.plot.as_deref();
    let plot = plot.map(|path| create("plot", path, &args.capture));
    let plot = plot.transpose()?;
    let answers = args.answers.as_deref();
    let answers = answers.map(|path| create("capture of answers", path, &args.capture));
    let mut answers = answers.transpose()?.map(AnswersFile::begin).transpose()?;

    let limits = config.policy.limits.len();
    let mut out = Output {
        policy: &config.policy,
        zones: zones_by_number(&config.policy),
        json: args.output.json,
        writer: BufWriter::new(if args.output.json {
            stdout_of_json()
        } else {
            stdout()
        }),
        summary: Summary::new(limits),
        sources: Sources::default(),
        plot: plot.map(|file| Plot::new(file, limits)),
    };
    // Report the packets so far even if reading fails.
    let end: anyhow::Result<()> = loop {
        let packet = match capture.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.into()),
        };
        match replay.judge(&packet) {
            Ok(replayed) => {
                if let Some(file) = &mut answers
                    && let Some(answer) = replay.answer(&packet, &replayed)
                {
                    file.write(packet.time_ns, &answer)?;
                }
                out.packet(&replayed, replay.question(&packet).as_ref())?;
            }
            Err(error) => break Err(error.into()),
        }
    };
    answers.map(AnswersFile::finish).transpose()?;
    // Removes the progress bar before the summary is printed.
    drop(capture);
    let sieves = replay.sieves(&config.policy)?;
    let handshakes = replay.handshakes();
    let valid_cookies = replay.valid_cookies()?;
    let connections = replay.connections();
    let (bans, end) = match replay.finish() {
        Ok(bans) => (bans, end),
        Err(error) => (None, end.and(Err(error.into()))),
    };
    let known = ProofCounts {
        assumed,
        handshakes,
        valid_cookies,
    };
    let at_end = FinalState {
        sieves: SieveStates { cpus, sieves },
        connections,
    };
    out.finish(&args.capture, bans, &at_end, known)?;
    end
}

/// Creates a file first, so that a failure does not waste hours of replay.
fn create(kind: &str, path: &Path, capture: &Path) -> anyhow::Result<File> {
    if path
        .canonicalize()
        .is_ok_and(|path| capture.canonicalize().is_ok_and(|capture| path == capture))
    {
        bail!("the {kind} {} would replace the capture", path.display());
    }
    match File::create(path) {
        Ok(file) => Ok(file),
        Err(error) => bail!("cannot write the {kind} {}: {error}", path.display()),
    }
}

fn engine(
    choice: EngineChoice,
    tables: &CompiledPolicy,
    config: &Config,
) -> anyhow::Result<Box<dyn Engine>> {
    // A replay reports sources by itself, so only bans need the record of offenders.
    let records = config.policy.limits.iter().any(|limit| limit.ban.is_some());
    Ok(match choice {
        EngineChoice::Native => Box::new(NativeEngine::new(tables, records)),
        EngineChoice::Kernel => {
            preflight::check()?;
            let offenders = if records {
                config.offenders
            } else {
                Offenders::OFF
            };
            Box::new(KernelEngine::new(tables, config.buckets, offenders)?)
        }
    })
}

/// The receiver of verdicts.
struct Output<'a, W> {
    policy: &'a Policy,
    /// The zones, by the numbers of their buckets.
    zones: HashMap<u64, DnsName>,
    json: bool,
    writer: W,
    summary: Summary,
    sources: Sources,
    plot: Option<Plot>,
}

/// The data of the plot, and its file.
struct Plot {
    file: File,
    timeline: Timeline,
    usage: Usage,
}

impl Plot {
    fn new(file: File, limits: usize) -> Self {
        Self {
            file,
            timeline: Timeline::new(limits),
            usage: Usage::default(),
        }
    }
}

impl<W: Write> Output<'_, W> {
    /// Reports a packet. `question_names`: the texts of its question, if limits have buckets of questions.
    fn packet(
        &mut self,
        packet: &ReplayedPacket,
        question_names: Option<&QuestionNames>,
    ) -> anyhow::Result<()> {
        self.summary.add(packet);
        if let Some(plot) = &mut self.plot {
            plot.timeline.add(packet);
            plot.usage.add(packet);
        }
        if self.json {
            let names = KeyNames {
                interface: ALL_INTERFACES,
                zones: Some(&self.zones),
                // A replay reads no server names.
                server_names: None,
                question_names,
            };
            json::packet(&mut self.writer, self.policy, &names, packet)
        } else {
            self.sources.add(packet);
            Ok(())
        }
    }

    fn finish(
        mut self,
        capture: &Path,
        bans: Option<ReplayedBans<'_>>,
        at_end: &FinalState,
        known: ProofCounts,
    ) -> anyhow::Result<()> {
        let (policy, summary) = (self.policy, &self.summary);
        if self.json {
            json::summary(&mut self.writer, policy, summary, bans, at_end, known)?;
        } else {
            print::summary(&mut self.writer, policy, summary, &self.sources)?;
            automatic::print(&mut self.writer, policy)?;
            standing::print(&mut self.writer, policy, summary, known)?;
            if let Some(bans) = bans {
                bans::print(&mut self.writer, self.policy, bans)?;
            }
            connections::print(&mut self.writer, at_end.connections)?;
            sieves::print(&mut self.writer, self.policy, &at_end.sieves)?;
        }
        self.writer.flush()?;
        if let Some(plot) = self.plot {
            let name = capture.file_name().unwrap_or(capture.as_os_str());
            let title = format!("Replay of {}", name.display());
            let mut file = BufWriter::new(plot.file);
            plot::draw(&mut file, &title, self.policy, &plot.timeline, &plot.usage)
                .and_then(|()| file.flush())
                .map_err(|error| anyhow!("cannot write the plot: {error}"))?;
        }
        Ok(())
    }
}

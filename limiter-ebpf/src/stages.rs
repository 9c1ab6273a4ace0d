//! The stages after the entry: separate programs, which hand over by tail calls.
//!
//! The CPU's scratch memory carries the packet's state between them. Each stage has a program for frames
//! in any number of pieces, and one for kernels that support only frames of one piece: the kernel
//! does not mix programs of the two kinds in one array.

use aya_ebpf::{
    bindings::xdp_action,
    btf_maps::ProgramArray,
    macros::{btf_map, xdp},
    programs::XdpContext,
};
use limiter_common::{
    answer::{Answer, AnswerOutcome},
    counters::Traffic,
    decide::{Pipeline, Progress, STAGE_COUNT, Scratch, Stage, Verdict},
    policy::Tables as _,
    reason::Reason,
};

use crate::{
    answers,
    buckets::{self, BucketLocation, IN_ANY, MOST_INLINE, MapBuckets},
    clock::KernelClock,
    connections, finish, names,
    offenders::MapOffenders,
    server_names,
    source_tables::MapSourceTables,
    tables::MapTables,
    tcp_state,
};

/// The programs of the policy's stages, by the stages' numbers. The loader inserts them before it
/// attaches the entry.
#[btf_map]
static STAGES: ProgramArray<STAGE_COUNT> = ProgramArray::new();

/// The same for kernels that support only frames of one piece.
#[btf_map]
static STAGES_LINEAR: ProgramArray<STAGE_COUNT> = ProgramArray::new();

/// The pipeline over buckets as [`MapBuckets`] describes them.
#[inline(always)]
pub(crate) const fn pipeline<const WINDOWS: bool, const INLINE: u32>() -> Pipeline<
    'static,
    KernelClock,
    MapTables,
    MapBuckets<WINDOWS, IN_ANY, INLINE>,
    MapOffenders,
    MapSourceTables,
> {
    Pipeline {
        clock: &KernelClock,
        tables: &MapTables,
        buckets: &MapBuckets::<WINDOWS, IN_ANY, INLINE>,
        offenders: &MapOffenders,
        source_tables: &MapSourceTables,
    }
}

macro_rules! programs {
    ($($name:ident $linear:ident $stage:ident;)+) => {
        $(
            #[doc = concat!("[`Stage::", stringify!($stage), "`].")]
            #[xdp(frags)]
            fn $name(context: XdpContext) -> u32 {
                run::<true>(&context, Stage::$stage)
            }

            #[doc = concat!("[`Stage::", stringify!($stage), "`] for frames of one piece.")]
            #[xdp]
            fn $linear(context: XdpContext) -> u32 {
                run::<false>(&context, Stage::$stage)
            }
        )+
    };
}

programs! {
    limiter_names limiter_names_linear Names;
    limiter_server_names limiter_server_names_linear ServerNames;
    limiter_tcp_state limiter_tcp_state_linear TcpState;
    limiter_connections limiter_connections_linear Connections;
    limiter_standing limiter_standing_linear Standing;
    limiter_cookies limiter_cookies_linear Cookies;
    limiter_sieves limiter_sieves_linear Sieves;
    limiter_admit limiter_admit_linear Admit;
    limiter_charge limiter_charge_linear Charge;
    limiter_observe limiter_observe_linear Observe;
    limiter_enter_name limiter_enter_name_linear EnterName;
    limiter_answer limiter_answer_linear Answer;
    limiter_banned limiter_banned_linear Banned;
}

#[inline(always)]
fn run<const FRAGS: bool>(context: &XdpContext, stage: Stage) -> u32 {
    let Some(scratch) = buckets::scratch() else {
        // Never happens: the map has this element for each CPU.
        return finish(
            context,
            Traffic::default(),
            &Verdict::without_limits(Reason::BucketUnavailable),
        );
    };
    if stage == Stage::Answer {
        return answer::<FRAGS>(context, scratch);
    }
    if stage == Stage::Banned {
        return count_hit(context, scratch);
    }
    if stage == Stage::Names {
        names::find(context, scratch);
    }
    if stage == Stage::ServerNames {
        server_names::find::<FRAGS>(context, scratch);
    }
    if stage == Stage::TcpState {
        tcp_state::find::<FRAGS>(context, scratch);
    }
    if stage == Stage::Connections {
        connections::record_full_limits(context, scratch);
    }
    if stage == Stage::Admit {
        connections::admit(scratch);
    }
    if stage == Stage::Cookies {
        answers::find_cookie::<FRAGS, _>(context, scratch);
    }
    let progress = if matches!(
        stage,
        Stage::Names
            | Stage::ServerNames
            | Stage::TcpState
            | Stage::Connections
            | Stage::Admit
            | Stage::Standing
            | Stage::Cookies
            | Stage::EnterName
    ) {
        // Only limits of GCRA reserve, and most policies have few reserving limits.
        pipeline::<false, 16>().run(stage, scratch)
    } else if MapTables.features().windows == 0 {
        // Most policies use only GCRA: the code of other strategies is not verified then.
        pipeline::<false, MOST_INLINE>().run(stage, scratch)
    } else {
        // The verifier walks all strategies for each limit that is prepared inline.
        pipeline::<true, 1>().run(stage, scratch)
    };
    let next = match progress {
        Progress::Decided => None,
        Progress::Undecided => stage.next(MapTables.features()),
        Progress::Answer => Some(Stage::Answer),
        Progress::Again => Some(Stage::Standing),
        Progress::Admit => Some(Stage::Admit),
        Progress::Cookie => Some(Stage::Cookies),
    };
    if let Some(next) = next {
        hand_over::<FRAGS>(context, next, scratch.traffic())
    } else {
        finish(context, scratch.traffic(), scratch.verdict())
    }
}

/// Counts the current packet, which a ban drops.
#[inline(always)]
fn count_hit(context: &XdpContext, scratch: &mut Scratch<BucketLocation>) -> u32 {
    pipeline::<false, 0>().run(Stage::Banned, scratch);
    // A constant, not the verdict in scratch memory: so the code for other verdicts is removed.
    let verdict = Verdict::without_limits(Reason::Banned);
    finish(context, scratch.traffic(), &verdict)
}

/// Answers the dropped packet, if that is possible and the limits of answers allow it.
#[inline(always)]
fn answer<const FRAGS: bool>(context: &XdpContext, scratch: &mut Scratch<BucketLocation>) -> u32 {
    let written = if pipeline::<false, 0>().is_awaited(scratch) {
        answers::write::<FRAGS>(context, scratch.verdict().answer())
    } else {
        Err(AnswerOutcome::Nothing)
    };
    let outcome = match &written {
        Ok(written) => written.outcome(),
        Err(outcome) => *outcome,
    };
    if scratch.set_answer_outcome(outcome).is_some() {
        // The limits of answers are of GCRA, and prepared by calls.
        pipeline::<false, 0>().run(Stage::Answer, scratch);
    }
    let mut sent = None;
    if let Ok(written) = written
        && scratch.verdict().answer() != Answer::Drop
    {
        if written.replaces(context) {
            sent = Some(written);
        } else {
            scratch.verdict_mut().set_answer(Answer::Drop);
        }
    }
    let action = finish(context, scratch.traffic(), scratch.verdict());
    match sent {
        Some(written) => {
            written.count(scratch.verdict());
            xdp_action::XDP_TX
        }
        None => action,
    }
}

#[inline(always)]
pub(crate) fn hand_over<const FRAGS: bool>(
    context: &XdpContext,
    stage: Stage,
    carried: Traffic,
) -> u32 {
    let number = stage as u32;
    // SAFETY: no value remains that would have to be dropped.
    unsafe {
        if FRAGS {
            STAGES.tail_call(context, number);
        } else {
            STAGES_LINEAR.tail_call(context, number);
        }
    }
    // The tail call returns only if the stage is missing.
    let missed = Verdict::without_limits(Reason::MissedTailCall);
    finish(context, carried, &missed)
}

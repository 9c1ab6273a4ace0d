//! The stages after the entry: separate programs, which hand over by tail calls.
//!
//! The CPU's workspace carries the packet's state between them. Each stage has a program for frames
//! in any number of pieces, and one for kernels that support only frames of one piece: the kernel
//! does not mix programs of the two kinds in one array.

use aya_ebpf::{
    bindings::xdp_action,
    btf_maps::ProgramArray,
    macros::{btf_map, xdp},
    programs::XdpContext,
};
use limiter_common::{
    answer::{Answer, Response},
    counters::Traffic,
    decide::{Pipeline, Progress, STAGE_COUNT, Stage, Verdict, Workspace},
    limit::MAX_LIMITS,
    policy::Tables as _,
    reason::Reason,
};

use crate::{
    answers,
    buckets::{self, BucketLocation, IN_ANY, MapBuckets},
    clock::KernelClock,
    connections, finish, names,
    offenders::MapOffenders,
    reputation::MapReputation,
    server_names,
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
    MapReputation,
> {
    Pipeline {
        clock: &KernelClock,
        tables: &MapTables,
        buckets: &MapBuckets::<WINDOWS, IN_ANY, INLINE>,
        offenders: &MapOffenders,
        reputation: &MapReputation,
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
    limiter_place limiter_place_linear Place;
    limiter_charge limiter_charge_linear Charge;
    limiter_observe limiter_observe_linear Observe;
    limiter_enter_name limiter_enter_name_linear EnterName;
    limiter_answer limiter_answer_linear Answer;
    limiter_banned limiter_banned_linear Banned;
}

#[inline(always)]
fn run<const FRAGS: bool>(context: &XdpContext, stage: Stage) -> u32 {
    let Some(workspace) = buckets::workspace() else {
        // Never happens: the map has this element for each CPU.
        return finish(
            context,
            Traffic::default(),
            &Verdict::without_limits(Reason::BucketUnavailable),
        );
    };
    if stage == Stage::Answer {
        return answer::<FRAGS>(context, workspace);
    }
    if stage == Stage::Banned {
        return count_hit(context, workspace);
    }
    if stage == Stage::Names {
        names::find(context, workspace);
    }
    if stage == Stage::ServerNames {
        server_names::find::<FRAGS>(context, workspace);
    }
    if stage == Stage::TcpState {
        tcp_state::find::<FRAGS>(context, workspace);
    }
    if stage == Stage::Connections {
        connections::note_full(context, workspace);
    }
    if stage == Stage::Place {
        connections::take_place(workspace);
    }
    if stage == Stage::Cookies {
        answers::find_cookie::<FRAGS, _>(context, workspace);
    }
    let progress = if matches!(
        stage,
        Stage::Names
            | Stage::ServerNames
            | Stage::TcpState
            | Stage::Connections
            | Stage::Place
            | Stage::Standing
            | Stage::Cookies
            | Stage::EnterName
    ) {
        // Only limits of GCRA reserve, and most policies have few reserving limits.
        pipeline::<false, 16>().run(stage, workspace)
    } else if MapTables.shape().windows == 0 {
        // Most policies use only GCRA: the code of other strategies is not verified then.
        pipeline::<false, MAX_LIMITS>().run(stage, workspace)
    } else {
        // The verifier walks all strategies for each limit that is prepared inline.
        pipeline::<true, 1>().run(stage, workspace)
    };
    let next = match progress {
        Progress::Decided => None,
        Progress::Undecided => stage.next(MapTables.shape()),
        Progress::Answer => Some(Stage::Answer),
        Progress::Again => Some(Stage::Standing),
        Progress::Place => Some(Stage::Place),
        Progress::Cookie => Some(Stage::Cookies),
    };
    if let Some(next) = next {
        hand_over::<FRAGS>(context, next, workspace.traffic())
    } else {
        finish(context, workspace.traffic(), workspace.verdict())
    }
}

/// Counts the workspace's packet, which a ban drops.
#[inline(always)]
fn count_hit(context: &XdpContext, workspace: &mut Workspace<BucketLocation>) -> u32 {
    pipeline::<false, 0>().run(Stage::Banned, workspace);
    // A constant, not the workspace's verdict: so the code for other verdicts is removed.
    let verdict = Verdict::without_limits(Reason::Banned);
    finish(context, workspace.traffic(), &verdict)
}

/// Answers the workspace's dropped packet, if that is possible and the limits of answers allow it.
#[inline(always)]
fn answer<const FRAGS: bool>(
    context: &XdpContext,
    workspace: &mut Workspace<BucketLocation>,
) -> u32 {
    let written = if pipeline::<false, 0>().is_awaited(workspace) {
        answers::write::<FRAGS>(context, workspace.verdict().answer())
    } else {
        Err(Response::Nothing)
    };
    let response = match &written {
        Ok(written) => written.response(),
        Err(response) => *response,
    };
    if workspace.set_response(response).is_some() {
        // The limits of answers are of GCRA, and prepared by calls.
        pipeline::<false, 0>().run(Stage::Answer, workspace);
    }
    let mut sent = None;
    if let Ok(written) = written
        && workspace.verdict().answer() != Answer::Drop
    {
        if written.replaces(context) {
            sent = Some(written);
        } else {
            workspace.verdict_mut().set_answer(Answer::Drop);
        }
    }
    let action = finish(context, workspace.traffic(), workspace.verdict());
    match sent {
        Some(written) => {
            written.count(workspace.verdict());
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

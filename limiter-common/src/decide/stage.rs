//! The table of stages.

use super::{DecisionSteps, Pipeline, Progress, Scratch};
use crate::{
    clock::Clock,
    offender::OffenderTable,
    policy::{Features, Tables},
    source_tables::SourceTables,
};

macro_rules! stages {
    ($($(#[doc = $meaning:literal])+ $stage:ident $name:literal $run:ident if $is_used:expr;)+) => {
        /// A part of the pipeline after the entry. In the kernel each stage is a program with its
        /// own stack, verified by itself and entered by a tail call; stages that a policy does not
        /// use are not loaded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Stage {
            $($(#[doc = $meaning])+ $stage,)+
        }

        impl Stage {
            /// Every stage, in the order in which packets pass through them; some are [off this
            /// path](Self::is_on_the_way).
            pub const ALL: &'static [Self] = &[$(Self::$stage,)+];

            /// The stage's name, a part of its program's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$stage => $name,)+
                }
            }

            /// Whether packets pass through the stage under a policy with these features.
            #[must_use]
            #[inline(always)]
            pub fn is_used(self, features: &Features) -> bool {
                match self {
                    $(Self::$stage => ($is_used)(features),)+
                }
            }

            /// Returns the first used stage on the way with at least this `number`. There is no
            /// loop, so that with a constant policy the kernel program reduces this to one number.
            #[inline(always)]
            fn used_from(number: u32, features: &Features) -> Option<Self> {
                $(if number <= Self::$stage as u32
                    && Self::$stage.is_on_the_way()
                    && Self::$stage.is_used(features)
                {
                    return Some(Self::$stage);
                })+
                None
            }
        }

        impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
        where
            C: Clock,
            T: Tables,
            B: DecisionSteps,
            O: OffenderTable,
            R: SourceTables,
        {
            /// Runs one stage on the packet in scratch memory.
            #[inline(always)]
            pub fn run(&self, stage: Stage, scratch: &mut Scratch<B::Location>) -> Progress {
                match stage {
                    $(Stage::$stage => self.$run(scratch),)+
                }
            }
        }
    };
}

stages! {
    /// Selects the limits that count the packet by its DNS question.
    Names "names" select_by_question if |features: &Features| features.by_name != 0;
    /// Selects the limits that count the packet by the server name that its client asks for.
    ServerNames "server_names" select_by_server_name if |features: &Features| features.by_server_name != 0;
    /// Selects the limits that count the packet by the state of its connection.
    TcpState "tcp_state" select_by_state if |features: &Features| features.needs_tcp_states();
    /// Looks up the source's standing, and drops packets that would take tokens reserved for
    /// sources of higher standing.
    Standing "standing" check_standing if |features: &Features| features.uses_standing();
    /// Looks for a valid DNS cookie in a packet that limits refuse for their reserves. Only
    /// [`Progress::Cookie`] leads to it.
    Cookies "cookies" check_cookie if |features: &Features| features.cookie_port != 0;
    /// Drops sources that are too busy, under pressure.
    Sieves "sieves" sift if |features: &Features| features.sieve_uses != 0;
    /// Refuses packets that would open a connection more than a limit allows at once.
    Connections "connections" limit_connections if |features: &Features| features.connections != 0;
    /// Admits the packet's connection among the connections of its name. Only
    /// [`Progress::Admit`] leads to it.
    Admit "admit" admit if |features: &Features| features.named_connections() != 0;
    /// Charges the packet to the limits that enforce.
    Charge "charge" charge if |features: &Features| features.enforcing() != 0;
    /// Charges the packet to the limits that only observe.
    Observe "observe" observe if |features: &Features| features.charged_observing() != 0;
    /// Adds the name that the packet asks for to the cached names.
    EnterName "enter_name" enter_name if |features: &Features| features.by_new_name != 0;
    /// Charges the written answer to a refused packet to the limits of answers. Only
    /// [`Progress::Answer`] leads to it.
    Answer "answer" answer if |features: &Features| features.answers();
    /// Counts the dropped packet of a banned source. Only
    /// [`EntryOutcome::Banned`](super::EntryOutcome::Banned) leads to it. Bans need no policy, so it is
    /// always used.
    Banned "banned" count_hit if |_: &Features| true;
}

/// The number of stages.
pub const STAGE_COUNT: usize = Stage::ALL.len();

impl Stage {
    /// Returns the first stage for a packet that the limits in `matched` count, or `None` if the
    /// policy uses no stage. It skips the stage of names if no matching limit depends on a name.
    #[must_use]
    #[inline(always)]
    pub fn first(features: &Features, matched: u64) -> Option<Self> {
        let first = if Self::Names.is_used(features) && matched & features.by_name == 0 {
            Self::Names.next(features)
        } else {
            Self::used_from(0, features)
        };
        if first == Some(Self::ServerNames) && matched & features.by_server_name == 0 {
            return Self::ServerNames.next(features);
        }
        first
    }

    /// The next stage, or `None` after the last.
    #[must_use]
    #[inline(always)]
    pub fn next(self, features: &Features) -> Option<Self> {
        Self::used_from(self as u32 + 1, features)
    }

    /// Whether undecided packets pass through the stage.
    #[inline(always)]
    const fn is_on_the_way(self) -> bool {
        !matches!(
            self,
            Self::Cookies | Self::Admit | Self::Answer | Self::Banned
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standing::Settings;

    #[test]
    fn packets_meet_the_stages_that_the_policy_uses() {
        let path = |features: &Features| {
            let mut path = [None; STAGE_COUNT];
            let mut next = Stage::first(features, u64::MAX);
            for stage in &mut path {
                *stage = next;
                next = next.and_then(|stage| stage.next(features));
            }
            assert_eq!(next, None);
            path
        };
        let nothing = Features::EMPTY;
        assert_eq!(path(&nothing), [None; STAGE_COUNT]);
        let enforcing = Features {
            limit_count: 64,
            ..nothing
        };
        let only = |stage| {
            let mut path = [None; STAGE_COUNT];
            path[0] = Some(stage);
            path
        };
        assert_eq!(path(&enforcing), only(Stage::Charge));
        let answering = Features {
            of_answers: [0b10, 0b10],
            ..enforcing
        };
        assert!(Stage::Answer.is_used(&answering) && !Stage::Answer.is_used(&enforcing));
        assert_eq!(path(&answering), only(Stage::Charge));
        let observing = Features {
            limit_count: 2,
            observing: 0b11,
            ..nothing
        };
        assert_eq!(path(&observing), only(Stage::Observe));
        let all = Features {
            limit_count: 3,
            observing: 0b10,
            sieve_uses: 1,
            cookie_port: 53,
            connections: 0b100,
            of_tcp_state: [u64::MAX, u64::MAX, !0b100, u64::MAX, u64::MAX],
            by_name: 0b10,
            by_new_name: 0b10,
            by_server_name: 0b1000,
            standing: Settings {
                lines: 1,
                ..Settings::NONE
            },
            ..nothing
        };
        let counting = Features {
            limit_count: 2,
            observing: 0b10,
            connections: 0b11,
            ..nothing
        };
        assert_eq!(path(&counting), only(Stage::Connections));
        let stages = [
            Stage::Names,
            Stage::ServerNames,
            Stage::TcpState,
            Stage::Standing,
            Stage::Sieves,
            Stage::Connections,
            Stage::Charge,
            Stage::Observe,
            Stage::EnterName,
        ];
        assert_eq!(path(&all)[..9], stages.map(Some));
        assert_eq!(path(&all)[9..], [None; STAGE_COUNT - 9]);
        assert_eq!(Stage::first(&all, 0b101), Some(Stage::TcpState));
        assert_eq!(Stage::first(&all, 0b1001), Some(Stage::ServerNames));
        assert!(Stage::Cookies.is_used(&all) && Stage::Banned.is_used(&nothing));
        assert_eq!(Stage::Cookies.next(&all), Some(Stage::Sieves));
    }
}

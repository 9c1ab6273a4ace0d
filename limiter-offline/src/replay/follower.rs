//! Follows the handshakes and connections of a capture, for policies that need them.

use limiter_capture::CapturedFrame;
use limiter_common::{
    packet::{Facts, TcpState},
    standing::{Event, SourceId},
};
use limiter_policy::policy::CompiledPolicy;

use super::{
    connection::Connection,
    connections::{Change, ConnectionCounts, Connections, SegmentFacts},
    engine::{Engine, EngineError},
    handshakes::{HandshakeCounts, Handshakes},
};

/// The handshakes and connections of a capture so far.
#[derive(Debug, Default)]
pub(super) struct Follower {
    handshakes: Handshakes,
    connections: Connections,
}

impl Follower {
    /// Sets the state of a segment's connection in the engine before the verdict, if the policy needs states.
    pub(super) fn prepare(
        &self,
        engine: &mut dyn Engine,
        policy: &CompiledPolicy,
        facts: &Facts,
    ) -> Result<(), EngineError> {
        if !policy.features.needs_tcp_states() {
            return Ok(());
        }
        let [one, other] = [Connection::of_client(facts), Connection::of_server(facts)];
        let state = if self.connections.are_open(&one) || self.connections.are_open(&other) {
            TcpState::Established
        } else if self.handshakes.are_half_open(&one) || self.handshakes.are_half_open(&other) {
            TcpState::New
        } else {
            TcpState::None
        };
        engine.assume_tcp_state(state)
    }

    /// Follows a packet after its verdict, and tells the engine of completed handshakes and changed
    /// connections. `passed`: the packet reached its destination.
    pub(super) fn follow(
        &mut self,
        engine: &mut dyn Engine,
        policy: &CompiledPolicy,
        (frame, facts): (&CapturedFrame<'_>, &Facts),
        passed: bool,
        now: u64,
    ) -> Result<(), EngineError> {
        let features = &policy.features;
        let proves = features.standing.handshakes_prove != 0;
        let counts = features.connections != 0;
        let follows = counts || features.needs_tcp_states();
        if !proves && !follows {
            return Ok(());
        }
        let client = self.handshakes.follow(frame, facts, passed);
        if let Some(client) = client.filter(|_| proves) {
            let source = SourceId::new(&features.standing, &client);
            engine.record_event(policy, source, Event::Handshake, now)?;
        }
        if !follows {
            return Ok(());
        }
        let seen = SegmentFacts {
            passed,
            completes: client.is_some(),
            has_replies: self.handshakes.has_replies(),
        };
        match self.connections.follow(facts, seen) {
            Some(Change::Opened(ends)) => {
                if features.handshakes != 0 {
                    engine.completed(policy, &ends, now)?;
                }
                if counts {
                    engine.opened(policy, &ends, now)?;
                }
            }
            Some(Change::Closed(ends)) if counts => engine.closed(policy, &ends)?,
            _ => {}
        }
        Ok(())
    }

    pub(super) const fn connections(&self) -> ConnectionCounts {
        self.connections.counts()
    }

    pub(super) const fn handshakes(&self) -> HandshakeCounts {
        self.handshakes.counts()
    }
}

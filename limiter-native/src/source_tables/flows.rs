//! Connections and QUIC flows with names that the caller declares.

use std::cell::RefCell;

use limiter_common::{
    connection::Ends,
    server_name::{FirstBytes, FlowRecord, Meaning, QuicFlow, SegmentFate},
};

/// The connections and the QUIC flows; by default none.
#[derive(Debug, Default)]
pub struct MemoryFlows {
    connections: RefCell<Vec<(Ends, FlowRecord)>>,
    first_bytes: RefCell<Vec<(Ends, FirstBytes)>>,
    quic: RefCell<Vec<(Ends, QuicFlow)>>,
}

impl MemoryFlows {
    /// Records or updates a connection.
    pub fn set(&mut self, ends: Ends, flow: FlowRecord) {
        set(&mut self.connections, ends, flow);
    }

    /// Records the read first bytes of a connection.
    pub fn set_first_bytes(&mut self, ends: Ends, bytes: FirstBytes) {
        set(&mut self.first_bytes, ends, bytes);
    }

    /// Records or updates a QUIC flow.
    pub fn set_quic(&mut self, ends: Ends, flow: QuicFlow) {
        set(&mut self.quic, ends, flow);
    }

    pub(super) fn flow(&self, ends: &Ends) -> Option<FlowRecord> {
        change(&self.connections, ends, |flow| *flow)
    }

    pub(super) fn first_bytes(&self, ends: &Ends) -> Option<FirstBytes> {
        change(&self.first_bytes, ends, |bytes| *bytes)
    }

    pub(super) fn hold(&self, ends: &Ends, (sequence, length): (u32, u32), now_ns: u64) -> bool {
        let held = change(&self.connections, ends, |flow| {
            let is_reported = flow.should_report(sequence, length);
            flow.hold(now_ns, is_reported)
        });
        held.unwrap_or_default()
    }

    pub(super) fn follow(
        &self,
        ends: &Ends,
        segment: (u32, u32),
        load: impl Fn(u32, u32) -> Option<u64>,
    ) -> Option<SegmentFate> {
        change(&self.first_bytes, ends, |first| {
            change(&self.connections, ends, |flow| {
                flow.follow(first, segment, load)
            })
        })
        .flatten()
    }

    pub(super) fn serve(&self, ends: &Ends) {
        change(&self.connections, ends, FlowRecord::serve);
    }

    pub(super) fn make_wait(&self, ends: &Ends) {
        change(&self.connections, ends, FlowRecord::make_wait);
    }

    pub(super) fn see_quic(&self, ends: &Ends, now_ns: u64) -> Option<Meaning> {
        change(&self.quic, ends, |flow| flow.see(now_ns).copied()).flatten()
    }
}

fn set<F>(flows: &mut RefCell<Vec<(Ends, F)>>, ends: Ends, flow: F) {
    let flows = flows.get_mut();
    flows.retain(|(other, _)| *other != ends);
    flows.push((ends, flow));
}

fn change<F, T>(
    flows: &RefCell<Vec<(Ends, F)>>,
    ends: &Ends,
    change: impl FnOnce(&mut F) -> T,
) -> Option<T> {
    let mut flows = flows.borrow_mut();
    let found = flows.iter_mut().find(|(other, _)| other == ends);
    found.map(|(_, flow)| change(flow))
}

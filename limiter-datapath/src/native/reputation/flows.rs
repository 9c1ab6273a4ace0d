//! The connections with names that somebody has read.

use std::cell::RefCell;

use limiter_common::{connection::Ends, server_name::Flow};

/// The connections; by default none.
#[derive(Debug, Default)]
pub struct MemoryFlows(RefCell<Vec<(Ends, Flow)>>);

impl MemoryFlows {
    /// Notes a connection, or something else about it.
    pub fn set(&mut self, ends: Ends, flow: Flow) {
        let flows = self.0.get_mut();
        flows.retain(|(other, _)| *other != ends);
        flows.push((ends, flow));
    }

    pub(super) fn flow(&self, ends: &Ends) -> Option<Flow> {
        self.change(ends, |flow| *flow)
    }

    pub(super) fn hold(&self, ends: &Ends, now_ns: u64) -> bool {
        let held = self.change(ends, |flow| flow.hold(now_ns));
        held.unwrap_or_default()
    }

    pub(super) fn serve(&self, ends: &Ends) {
        self.change(ends, Flow::serve);
    }

    pub(super) fn make_wait(&self, ends: &Ends) {
        self.change(ends, Flow::make_wait);
    }

    fn change<T>(&self, ends: &Ends, change: impl FnOnce(&mut Flow) -> T) -> Option<T> {
        let mut flows = self.0.borrow_mut();
        let found = flows.iter_mut().find(|(other, _)| other == ends);
        found.map(|(_, flow)| change(flow))
    }
}

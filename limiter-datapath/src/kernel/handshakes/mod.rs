//! The program that records completed TCP handshakes of this host and counts its open TCP connections,
//! and the program's link to the root cgroup. It runs beside other software's programs.
//!
//! The limiter also works without it: the XDP programs see visits and retries.

mod cgroup;
mod error;
mod load;

use std::mem;

pub use self::error::HandshakesError;
pub(super) use self::load::{load, load_pinned, prepare};
use super::{
    link::Link,
    pins::{Pins, PinsError},
    program::Program,
};

/// A policy's program for handshakes; `None`: the policy needs none. The error: the policy needs a
/// program, but there is none.
pub(super) type PolicyProgram = Result<Option<Program>, HandshakesError>;

/// The program of the policy in force, on the root cgroup. Dropping it detaches the program, unless
/// the link is pinned.
#[derive(Debug)]
pub(super) struct Handshakes {
    // Declared first: the link is dropped before its program.
    link: Option<Link>,
    program: PolicyProgram,
}

impl Handshakes {
    /// No program attached, for a policy that needs none.
    pub(super) const NONE: Self = Self {
        link: None,
        program: Ok(None),
    };

    /// Takes over a link. Its program is replaced later.
    pub(super) const fn of_link(link: Option<Link>) -> Self {
        Self { link, ..Self::NONE }
    }

    /// Takes over the pins of a policy in force: its program, and the link, which may still hold
    /// another policy's program.
    pub(super) fn adopt(program: PolicyProgram, pins: &Pins) -> Result<Self, PinsError> {
        let mut adopted = Self::of_link(pins.handshakes()?);
        if pins.are_taken() {
            drop(adopted.switch(program, Some(pins)));
        } else {
            adopted.program = program;
        }
        Ok(adopted)
    }

    pub(super) const fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    pub(super) fn program(&self) -> Option<&Program> {
        self.program.as_ref().ok()?.as_ref()
    }

    /// Whether handshakes prove sources.
    pub(super) fn status(&self) -> Result<bool, &HandshakesError> {
        match &self.program {
            Ok(Some(program)) if self.holds(program) => Ok(true),
            // Another process may have detached it, or may be about to replace it.
            Ok(Some(_)) => Err(&HandshakesError::NotAttached),
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn holds(&self, program: &Program) -> bool {
        let held = self.link.as_ref().and_then(|link| link.info().ok());
        held.is_some_and(|info| info.program == program.id() && info.interface != 0)
    }

    /// Replaces the present program by another policy's in one step; returns the old program. On
    /// failure the program is detached, and no handshake counts.
    pub(super) fn switch(&mut self, program: PolicyProgram, pins: Option<&Pins>) -> PolicyProgram {
        let program = match program {
            Ok(Some(program)) => self.attach(&program, pins).map(|()| Some(program)),
            other => other,
        };
        if !matches!(program, Ok(Some(_))) {
            self.detach(pins);
        }
        mem::replace(&mut self.program, program)
    }

    fn attach(&mut self, program: &Program, pins: Option<&Pins>) -> Result<(), HandshakesError> {
        if let Some(link) = self.link.take() {
            if !link.is_detached() && link.replace(None, program).is_ok() {
                self.link = Some(link);
                return Ok(());
            }
            // Another process has detached it, or another version has left a link of another kind.
            drop(link);
            pins.map_or(Ok(()), Pins::remove_handshakes)?;
        }
        let cgroup = cgroup::open_root()?;
        let link = Link::to_cgroup(program, &cgroup).map_err(HandshakesError::Attach)?;
        if let Some(pins) = pins {
            pins.add_handshakes(&link)?;
        }
        self.link = Some(link);
        Ok(())
    }

    /// Takes the program off the cgroup, if it is attached.
    fn detach(&mut self, pins: Option<&Pins>) {
        if let Some(link) = self.link.take() {
            // If either fails, the program stays pinned until the next daemon takes the link over.
            let _ = link.detach();
            let _ = pins.map(Pins::remove_handshakes);
        }
    }
}

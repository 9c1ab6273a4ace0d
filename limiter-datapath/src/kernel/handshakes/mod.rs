//! The program that notes sources that complete a TCP handshake with this host, and counts the TCP
//! connections that are open, and its link to the root cgroup. It runs beside other people's programs.
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

/// A policy's program for handshakes; `None`: they do not prove by it. The error: they should, but
/// there is no program.
pub(super) type OfPolicy = Result<Option<Program>, HandshakesError>;

/// The program of the policy in force, on the root cgroup. Dropping it detaches the program, unless
/// its link is pinned.
#[derive(Debug)]
pub(super) struct Handshakes {
    // Dropped before what it holds.
    link: Option<Link>,
    program: OfPolicy,
}

impl Handshakes {
    /// Attaches nothing, for a policy under which handshakes do not prove.
    pub(super) const NONE: Self = Self {
        link: None,
        program: Ok(None),
    };

    /// Takes over a link, whose program will be replaced.
    pub(super) const fn of_link(link: Option<Link>) -> Self {
        Self { link, ..Self::NONE }
    }

    /// Takes over the pins of a policy in force: its program, and the link, which may hold another
    /// policy's.
    pub(super) fn adopt(program: OfPolicy, pins: &Pins) -> Result<Self, PinsError> {
        let mut adopted = Self::of_link(pins.handshakes()?);
        if pins.are_taken() {
            drop(adopted.switch(program, Some(pins)));
        } else {
            adopted.program = program;
        }
        Ok(adopted)
    }

    /// Returns the link to the cgroup, if there is one.
    pub(super) const fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// Returns the program of the policy in force, if it has one.
    pub(super) fn program(&self) -> Option<&Program> {
        self.program.as_ref().ok()?.as_ref()
    }

    /// Returns whether handshakes prove.
    pub(super) fn are_noted(&self) -> Result<bool, &HandshakesError> {
        match &self.program {
            Ok(Some(program)) if self.holds(program) => Ok(true),
            // Another process may have detached it, or may be about to replace it.
            Ok(Some(_)) => Err(&HandshakesError::NotAttached),
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a program is on the cgroup.
    fn holds(&self, program: &Program) -> bool {
        let held = self.link.as_ref().and_then(|link| link.info().ok());
        held.is_some_and(|info| info.program == program.id() && info.interface != 0)
    }

    /// Puts the program of another policy in place of the present one, in one step; returns the
    /// old one. If that fails, nobody's handshakes count.
    pub(super) fn switch(&mut self, program: OfPolicy, pins: Option<&Pins>) -> OfPolicy {
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

    /// Takes the program off the cgroup, if it is there.
    fn detach(&mut self, pins: Option<&Pins>) {
        if let Some(link) = self.link.take() {
            // If either fails, the program stays pinned until the next daemon takes the link over.
            let _ = link.detach();
            let _ = pins.map(Pins::remove_handshakes);
        }
    }
}

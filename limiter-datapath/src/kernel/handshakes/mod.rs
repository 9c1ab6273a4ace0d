//! The program that notes who completes a TCP handshake with this host, and its link to the root
//! cgroup. It runs beside other people's programs.
//!
//! The limiter also works without it: the XDP programs see visits and retries.

mod cgroup;
mod error;
mod load;

use std::mem;

pub use self::error::HandshakesError;
pub(super) use self::load::{load, load_pinned};
use super::{
    link::Link,
    pins::{Pins, PinsError},
    program::Program,
};

/// What a policy has for handshakes: its program, if handshakes prove, or why there is none.
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
            adopted.program = adopted.seen(program);
        }
        Ok(adopted)
    }

    /// Returns what a process that only looks may say.
    fn seen(&self, program: OfPolicy) -> OfPolicy {
        let held = self.link.as_ref().and_then(|link| link.info().ok());
        match program? {
            Some(program) if held.is_none_or(|info| info.program != program.id()) => {
                Err(HandshakesError::NotAttached)
            }
            program => Ok(program),
        }
    }

    /// Returns whether handshakes prove.
    pub(super) const fn are_noted(&self) -> Result<bool, &HandshakesError> {
        match &self.program {
            Ok(program) => Ok(program.is_some()),
            Err(error) => Err(error),
        }
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
        // A link that another process has detached is gone.
        if let Some(link) = self.link.take_if(|link| link.is_detached())
            && let Some(pins) = pins
        {
            drop(link);
            pins.remove_handshakes()?;
        }
        if let Some(link) = &self.link {
            return link.replace(None, program).map_err(HandshakesError::Attach);
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

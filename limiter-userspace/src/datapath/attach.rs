//! Attaching an instance to an interface, in the best mode it can.

use aya::programs::{ProgramError, XdpMode};
use jiff::Timestamp;

use super::{DatapathError, Instance, interface::Interface};
use crate::config::AttachMode;

/// The mode in which a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachedMode {
    /// In the driver, before the kernel allocates anything.
    Native,
    /// In the network stack: works everywhere, several times slower.
    Generic,
}

impl AttachedMode {
    /// The mode's name on screens and in configuration files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }

    const fn flags(self) -> XdpMode {
        match self {
            Self::Native => XdpMode::Driver,
            Self::Generic => XdpMode::Skb,
        }
    }
}

/// An instance on an interface. Dropping it detaches the program.
pub struct Attachment {
    /// The interface's name when it was attached to.
    pub interface: String,
    /// The interface's index, which no other interface gets while the machine runs.
    pub index: u32,
    /// The block of reason counters.
    pub slot: u32,
    /// The mode in which it runs.
    pub mode: AttachedMode,
    /// Native mode was wished for and refused, for this cause.
    pub fell_back: Option<String>,
    /// When it was attached.
    pub since: Timestamp,
    /// The program; its link goes with it.
    pub instance: Instance,
}

impl Attachment {
    /// Attaches an instance, which must be loaded for `slot`.
    pub(super) fn new(
        mut instance: Instance,
        interface: &Interface,
        slot: u32,
        mode: AttachMode,
    ) -> Result<Self, DatapathError> {
        let (mode, fell_back) = match mode {
            AttachMode::Native => {
                attach(&mut instance, interface, AttachedMode::Native)?;
                (AttachedMode::Native, None)
            }
            AttachMode::Generic => {
                attach(&mut instance, interface, AttachedMode::Generic)?;
                (AttachedMode::Generic, None)
            }
            AttachMode::Auto => match attach(&mut instance, interface, AttachedMode::Native) {
                Ok(()) => (AttachedMode::Native, None),
                Err(DatapathError::NoNativeMode { reason, .. }) => {
                    attach(&mut instance, interface, AttachedMode::Generic)?;
                    (AttachedMode::Generic, Some(reason.to_string()))
                }
                Err(error) => return Err(error),
            },
        };
        Ok(Self {
            interface: interface.name.clone(),
            index: interface.index,
            slot,
            mode,
            fell_back,
            since: super::wall_clock_now(),
            instance,
        })
    }

    /// Whether the interface still exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        super::interface::name_of(self.index).is_some()
    }
}

fn attach(
    instance: &mut Instance,
    interface: &Interface,
    mode: AttachedMode,
) -> Result<(), DatapathError> {
    let Err(error) = instance
        .program()?
        .attach_to_if_index(interface.index, mode.flags())
    else {
        return Ok(());
    };
    Err(match os_error(&error) {
        Some(libc::EBUSY | libc::EEXIST) => DatapathError::Occupied {
            interface: interface.name.clone(),
            program: "of another process".to_owned(),
            hook: "xdp",
        },
        // A driver without XDP, or whose present settings (MTU, rings, offloads) forbid it.
        Some(code) if mode == AttachedMode::Native => DatapathError::NoNativeMode {
            interface: interface.name.clone(),
            reason: std::io::Error::from_raw_os_error(code),
        },
        _ => DatapathError::Attach {
            interface: interface.name.clone(),
            mode: mode.name(),
            source: error,
        },
    })
}

/// The system's error number inside an error of aya's.
fn os_error(error: &ProgramError) -> Option<i32> {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>()
            && let Some(code) = error.raw_os_error()
        {
            return Some(code);
        }
        cause = error.source();
    }
    None
}

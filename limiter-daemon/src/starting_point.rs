//! The state in which the daemon finds its pins at its start: a policy, or nothing.

use std::path::Path;

use limiter_datapath::kernel::{
    Adoption, Attachment, Datapath, DatapathError, PreviousPolicy, Settings, pins::Pins,
};
use limiter_policy::lists::Feeds;
use tracing::{info, warn};

use super::{candidate::Inheritance, error::StartupError, feeds::stand_ins};

/// The starting point of a new daemon.
pub(super) enum StartingPoint {
    /// A policy in force.
    Datapath(Box<Datapath>),
    /// The directory of pins, with the links that another version has pinned, if any.
    Links(Pins, Vec<Attachment>),
    /// Nothing is to be pinned.
    Nothing,
}

impl StartingPoint {
    /// Takes over the pins in a directory.
    pub(super) fn take_over(directory: &Path) -> Result<Self, StartupError> {
        match Datapath::adopt(Pins::take(directory)?)? {
            Adoption::Datapath(mut datapath, previous) => {
                go_back(&mut datapath, previous.map(|previous| *previous))?;
                Ok(Self::Datapath(datapath))
            }
            Adoption::Links(pins, attachments) => {
                for version in pins.other_versions()? {
                    warn!(
                        "this version cannot read the pins of ABI {version}, of buckets, \
                         counters, offenders, bans, sieves and known sources: they begin anew, or \
                         as the state file has them"
                    );
                }
                Ok(Self::Links(pins, attachments))
            }
        }
    }

    /// Returns the inheritance of the next policy. `None`: there is no policy, or only a first one that was never
    /// settled, which does not replace a saved state.
    pub(super) fn inherited(&self) -> Option<Inheritance> {
        match self {
            Self::Datapath(datapath) => {
                let manifest = datapath.manifest();
                (manifest.generation > 0).then(|| Inheritance::of(manifest))
            }
            Self::Links(..) | Self::Nothing => None,
        }
    }

    /// Returns stand-ins for feeds without known contents.
    pub(super) fn feeds(&self) -> Feeds {
        match self {
            Self::Datapath(datapath) => {
                let manifest = datapath.manifest();
                stand_ins(&manifest.lists, &manifest.policy.lists)
            }
            Self::Links(..) | Self::Nothing => Feeds::new(),
        }
    }

    /// Returns the ids of the programs on interfaces.
    pub(super) fn program_ids(&self) -> Vec<u32> {
        match self {
            Self::Datapath(datapath) => datapath.program_ids(),
            Self::Links(_, attachments) => {
                let attachments = attachments.iter();
                attachments.filter_map(Attachment::program_id).collect()
            }
            Self::Nothing => Vec::new(),
        }
    }

    /// Returns the datapath, as it is or still without a policy. `settings` are for a new one, which is needed if
    /// `resumes`: saved state goes into empty maps.
    pub(super) fn into_datapath(
        self,
        resumes: bool,
        settings: impl FnOnce() -> Result<Settings, DatapathError>,
    ) -> Result<Datapath, DatapathError> {
        match self {
            Self::Datapath(datapath) if resumes => match datapath.without_policy() {
                Ok((pins, attachments)) => Datapath::with_pins(settings()?, pins, attachments),
                Err(datapath) => Ok(*datapath),
            },
            Self::Datapath(datapath) => Ok(*datapath),
            Self::Links(pins, attachments) => Datapath::with_pins(settings()?, pins, attachments),
            Self::Nothing => Datapath::new(settings()?),
        }
    }
}

/// Reverts a policy that was not settled, because it was not confirmed, or the daemon was killed while putting it in
/// force. The caller may put another policy in force afterwards.
fn go_back(datapath: &mut Datapath, previous: Option<PreviousPolicy>) -> Result<(), DatapathError> {
    let generation = datapath.manifest().generation;
    let Some(previous) = previous else {
        info!(
            generation,
            "taking over policy {generation}, which is pinned"
        );
        return Ok(());
    };
    let before = previous.manifest().generation;
    datapath.revert(previous)?;
    let instead = match before {
        0 => "there was none before it".to_owned(),
        before => format!("taking over policy {before}"),
    };
    warn!(
        generation,
        "the pinned policy {generation} was not confirmed or only partly put in force: {instead}"
    );
    Ok(())
}

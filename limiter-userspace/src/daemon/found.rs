//! What the daemon finds when it starts: a policy that is pinned, or nothing.

use std::path::Path;

use limiter_datapath::kernel::{
    Adopted, Attachment, Datapath, DatapathError, Previous, Settings, pins::Pins,
};
use limiter_policy::lists::Feeds;
use tracing::{info, warn};

use super::{candidate::Known, error::StartupError, feeds::stand_ins};

/// What there is to go on with.
pub(super) enum Found {
    /// A policy in force.
    Datapath(Box<Datapath>),
    /// Links that another version has pinned, or nothing, where things are to be pinned.
    Links(Pins, Vec<Attachment>),
    /// Nothing is to be pinned.
    Nothing,
}

impl Found {
    /// Takes over what is pinned in a directory.
    pub(super) fn take_over(directory: &Path) -> Result<Self, StartupError> {
        match Datapath::adopt(Pins::take(directory)?)? {
            Adopted::Datapath(mut datapath, previous) => {
                go_back(&mut datapath, previous.map(|previous| *previous))?;
                Ok(Self::Datapath(datapath))
            }
            Adopted::Links(pins, attachments) => {
                for version in pins.other_versions()? {
                    warn!(
                        "buckets, counters and offenders of ABI {version}, which are pinned, \
                         cannot be read by this version: they begin anew"
                    );
                }
                Ok(Self::Links(pins, attachments))
            }
        }
    }

    /// What the next policy goes on with; `None`: there was none, or only a first one that was never
    /// settled, which stands for nothing that was saved before.
    pub(super) fn known(&self) -> Option<Known> {
        match self {
            Self::Datapath(datapath) => {
                let manifest = datapath.manifest();
                (manifest.generation > 0).then(|| Known::of(manifest))
            }
            Self::Links(..) | Self::Nothing => None,
        }
    }

    /// What stands for feeds of which nothing else is known.
    pub(super) fn feeds(&self) -> Feeds {
        match self {
            Self::Datapath(datapath) => {
                let manifest = datapath.manifest();
                stand_ins(&manifest.lists, &manifest.policy.lists)
            }
            Self::Links(..) | Self::Nothing => Feeds::new(),
        }
    }

    /// The ids of the programs that are on interfaces.
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

    /// The datapath, as it is or without a policy yet. `settings` are for a new one, which there has
    /// to be if `resumes`: what was saved is put into maps that are empty.
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

/// A policy that was not settled, because nobody confirmed it or the daemon was killed while it
/// put it in force, gives way to the one before it; whether or not there will be another.
fn go_back(datapath: &mut Datapath, previous: Option<Previous>) -> Result<(), DatapathError> {
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
        "policy {generation}, which is pinned, was not confirmed or not wholly put in force: \
         {instead}"
    );
    Ok(())
}

//! Finds pins that have vanished: removed by hand, or with their filesystem. Each function returns the path of one
//! lost pin; `None`: all are there.

use std::{
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::{FACTS, HANDSHAKES, LINK, MANIFEST, Pins, STAGES};
use crate::kernel::{link::Link, program::Program};

impl Pins {
    /// Whether the taken directory has vanished from its path, or another directory has replaced it.
    pub(in crate::kernel) fn lost_directory(&self) -> Option<PathBuf> {
        let id = |found: &std::fs::Metadata| (found.dev(), found.ino());
        let here = self.directory.metadata();
        let is_here = match &self.lock {
            Some(lock) => lock
                .metadata()
                .is_ok_and(|taken| here.is_ok_and(|here| id(&here) == id(&taken))),
            None => here.is_ok(),
        };
        (!is_here).then(|| self.directory.clone())
    }

    /// Checks the maps of one set.
    pub(in crate::kernel) fn lost_shared_maps(
        &self,
        generation: u64,
        owner: &str,
        maps: impl IntoIterator<Item = &'static str>,
    ) -> Option<PathBuf> {
        let directory = self.shared_maps(generation, owner);
        let mut paths = maps.into_iter().map(|map| directory.join(map));
        paths.find(|path| !path.exists())
    }

    /// Checks the link to an interface.
    pub(in crate::kernel) fn lost_interface(&self, index: u32, link: &Link) -> Option<PathBuf> {
        let directory = self.interface(index);
        let facts = directory.join(FACTS);
        lost(directory.join(LINK), |path| {
            Ok(Link::open(path)?.id() == link.id())
        })
        .or_else(|| (!facts.exists()).then_some(facts))
    }

    /// Checks the manifest of a policy.
    pub(in crate::kernel) fn lost_manifest(&self, generation: u64) -> Option<PathBuf> {
        let manifest = self.policy(generation).join(MANIFEST);
        (!manifest.exists()).then_some(manifest)
    }

    /// Checks the program of an interface, and its stages: without them it drops every packet.
    pub(in crate::kernel) fn lost_program(
        &self,
        generation: u64,
        index: u32,
        program: Option<&Program>,
    ) -> Option<PathBuf> {
        let (directory, name) = (self.policy(generation), index.to_string());
        let stages = directory.join(STAGES).join(&name);
        lost_program(directory.join(name), program).or_else(|| (!stages.exists()).then_some(stages))
    }

    /// Checks the link to the root cgroup.
    pub(in crate::kernel) fn lost_handshakes(&self, link: &Link) -> Option<PathBuf> {
        lost(self.directory.join(HANDSHAKES), |path| {
            Ok(Link::open(path)?.id() == link.id())
        })
    }

    /// Checks a policy's program for the root cgroup.
    pub(in crate::kernel) fn lost_handshakes_of(
        &self,
        generation: u64,
        program: &Program,
    ) -> Option<PathBuf> {
        lost_program(self.policy(generation).join(HANDSHAKES), Some(program))
    }
}

fn lost_program(path: PathBuf, program: Option<&Program>) -> Option<PathBuf> {
    lost(path, |path| {
        let found = Program::open_alone(path)?;
        Ok(program.is_some_and(|program| program.id() == found.id()))
    })
}

fn lost(path: PathBuf, is_it: impl FnOnce(&Path) -> io::Result<bool>) -> Option<PathBuf> {
    (!is_it(&path).unwrap_or(false)).then_some(path)
}

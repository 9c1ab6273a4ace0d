//! The search path of programs.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The directories to search for programs.
#[derive(Debug, Clone)]
pub struct SearchPath {
    path: Vec<PathBuf>,
    system: PathBuf,
}

impl SearchPath {
    /// Returns the search path of this process, cargo's own directory of installed programs, and
    /// the distribution's.
    #[must_use]
    pub fn of_this_process() -> Self {
        let mut path: Vec<PathBuf> = env::var_os("PATH")
            .map(|path| env::split_paths(&path).collect())
            .unwrap_or_default();
        path.extend(cargo_home().map(|home| home.join("bin")));
        Self::new(path, PathBuf::from("/usr/bin"))
    }

    /// Makes a search path: `path` is searched in order; `system` has the distribution's compiler.
    #[must_use]
    pub fn new(path: Vec<PathBuf>, system: PathBuf) -> Self {
        Self { path, system }
    }

    /// Returns the first file with this name.
    #[must_use]
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        self.path
            .iter()
            .map(|directory| directory.join(program))
            .find(|file| file.is_file())
    }

    /// Returns the distribution's directory of programs.
    #[must_use]
    pub fn system(&self) -> &Path {
        &self.system
    }
}

fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")))
}

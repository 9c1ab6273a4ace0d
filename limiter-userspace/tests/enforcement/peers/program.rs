//! Finds the programs: installed ones, or ones unpacked below target/ by `cargo xtask setup`.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use testbed::Namespace;

use super::binary;

/// Where `xtask/src/peers.rs` unpacks Debian's packages, below target/.
const UNPACKED: &str = "peers/root";

/// The directories of programs, of Python's modules, and of libraries in the packages.
const PROGRAMS: [&str; 4] = ["usr/bin", "bin", "usr/sbin", "sbin"];
const MODULES: [&str; 1] = ["usr/lib/python3/dist-packages"];
const LIBRARIES: [&str; 3] = [
    "usr/lib/x86_64-linux-gnu",
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/pulseaudio",
];

/// Chromium's own directory, because its start script only finds an installed one; and the fonts.
const CHROMIUM: [&str; 1] = ["usr/lib/chromium"];
const FONTS: [&str; 1] = ["usr/share/fonts"];

/// The public suffix list.
const SUFFIXES: [&str; 1] = ["usr/share/publicsuffix/public_suffix_list.dat"];

/// Returns a command that runs a program in a namespace.
pub(super) fn command(namespace: &Namespace, name: &str) -> Result<Command> {
    let mut command = namespace.command(find(name)?);
    command.env("LD_LIBRARY_PATH", libraries()?);
    Ok(command)
}

/// Returns a command that runs a program here.
pub(super) fn local(name: &str) -> Result<Command> {
    let mut command = Command::new(find(name)?);
    command.env("LD_LIBRARY_PATH", libraries()?);
    Ok(command)
}

/// Returns a command that runs a Python program in a namespace.
pub(super) fn python(namespace: &Namespace, name: &str) -> Result<Command> {
    let mut command = command(namespace, "python3")?;
    let modules = env::join_paths(unpacked(&MODULES)).context("a strange path")?;
    command.env("PYTHONPATH", modules).arg(find(name)?);
    Ok(command)
}

/// Returns a command that runs a server in a namespace. Killing it ends all of its processes, and
/// it ends with the thread that starts it.
pub(super) fn server(namespace: &Namespace, name: &str) -> Result<Command> {
    let mut command = command(namespace, "unshare")?;
    command.args(["--pid", "--fork", "--kill-child=KILL"]);
    command.arg(find(name)?);
    Ok(command)
}

/// Returns Chromium's path.
pub(super) fn chromium() -> Result<PathBuf> {
    let directories = [PathBuf::from("/usr/lib/chromium")].into_iter();
    let mut files = directories
        .chain(unpacked(&CHROMIUM))
        .map(|directory| directory.join("chromium"));
    let found = files.find(|file| file.is_file());
    found.context("chromium is missing: run `cargo xtask setup`")
}

/// Returns the path of the public suffix list.
pub(super) fn public_suffixes() -> Result<PathBuf> {
    let directories = [PathBuf::from("/").join(SUFFIXES[0])].into_iter();
    let mut files = directories.chain(unpacked(&SUFFIXES));
    let found = files.find(|file| file.is_file());
    found.context("the public suffix list is missing: run `cargo xtask setup`")
}

/// Returns a fontconfig configuration that finds all fonts.
pub(super) fn fonts() -> String {
    let directories = [PathBuf::from("/usr/share/fonts")].into_iter();
    let directories = directories.chain(unpacked(&FONTS));
    let directories = directories.map(|directory| format!("<dir>{}</dir>", directory.display()));
    format!(
        "<fontconfig>{}</fontconfig>",
        directories.collect::<String>()
    )
}

/// Returns the path of a package's configuration.
pub(super) fn etc(name: &str) -> Result<PathBuf> {
    let mut directories = [PathBuf::from("/etc")]
        .into_iter()
        .chain(unpacked(&["etc"]));
    let found = directories.find(|directory| directory.join(name).is_dir());
    let directory =
        found.with_context(|| format!("/etc/{name} is missing: run `cargo xtask setup`"))?;
    Ok(directory.join(name))
}

/// Returns a program's path.
pub(super) fn find(name: &str) -> Result<PathBuf> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let installed = env::split_paths(&paths).collect::<Vec<_>>();
    let directories = installed.into_iter().chain(unpacked(&PROGRAMS));
    let mut files = directories.map(|directory| directory.join(name));
    let found = files.find(|file| file.is_file());
    found.with_context(|| format!("{name} is missing: run `cargo xtask setup`"))
}

/// Returns the library path, with the unpacked libraries last.
fn libraries() -> Result<OsString> {
    let others = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let others = env::split_paths(&others).filter(|directory| directory.is_absolute());
    let all = others.chain(unpacked(&LIBRARIES)).collect::<Vec<_>>();
    env::join_paths(all).context("a strange path")
}

fn unpacked(directories: &'static [&'static str]) -> impl Iterator<Item = PathBuf> {
    let roots = binary()
        .ancestors()
        .map(|directory: &Path| directory.join(UNPACKED));
    let root = roots.into_iter().find(|root| root.is_dir());
    let directories = directories.iter();
    root.into_iter().flat_map(move |root| {
        directories
            .clone()
            .map(move |directory| root.join(directory))
    })
}

//! The pins of standing: the next process takes them over. Without a limit on standing, almost
//! nothing is pinned.

use anyhow::{Result, bail};
use aya::maps::MapData;
use testbed::{Listener, Namespace, PinDirectory};

use super::{
    known::UNUSED,
    peers::{PORT, connect, pair, wait},
    scene::Scene,
};

#[test]
fn a_pinned_program_goes_on_without_a_daemon_until_it_is_detached() -> Result<()> {
    let pair = pair()?;
    let _listener = Listener::new(&pair.server, PORT)?;
    let directory = PinDirectory::new()?;
    drop(Scene::with_pins(&pair.server, "", Some(&directory))?);
    connect(&pair.client, "10.0.0.2")?;
    let adopt = || {
        let (scene, None) = Scene::adopt(&pair.server, &directory)? else {
            bail!("the pinned policy is not settled");
        };
        Ok(scene)
    };
    let mut scene = adopt()?;
    assert!(scene.records_handshakes()?);
    assert_eq!(wait(&scene)?, ["10.0.0.1"]);
    // Another policy has the same link.
    scene.replace("visits: off")?;
    connect(&pair.client, "2001:db8:2::2")?;
    assert_eq!(scene.everybody()?, ["10.0.0.1", "2001:db8:1::"]);
    drop(scene);
    let mut scene = adopt()?;
    scene.replace("visits: off, proven-by: [list]")?;
    assert_eq!(pinned(&directory)?, 0);
    scene.replace("visits: off")?;
    // The link's pin, and the pin of the policy's program.
    assert_eq!(pinned(&directory)?, 2);
    scene.datapath.detach()?;
    assert!(!directory.path().exists());
    Ok(())
}

#[test]
fn without_a_limit_that_asks_there_is_no_memory_and_no_program() -> Result<()> {
    let directory = PinDirectory::new()?;
    let mut scene = Scene::with_pins(&Namespace::new()?, "", Some(&directory))?;
    // By default for a million sources, four in a line, and 32 MiB of first tries.
    assert_eq!(entries(&directory, "KNOWN")?, [1 << 20]);
    assert_eq!(entries(&directory, "FIRST_TRIES")?, [1 << 19]);
    assert_eq!(pinned(&directory)?, 2);
    scene.replace_by(UNUSED)?;
    // No map is smaller.
    assert_eq!(entries(&directory, "KNOWN")?, [1]);
    assert_eq!(entries(&directory, "FIRST_TRIES")?, [1]);
    assert_eq!(pinned(&directory)?, 0);
    Ok(())
}

/// The number of entries of each pinned map of that name.
fn entries(directory: &PinDirectory, map: &str) -> Result<Vec<u32>> {
    let files = directory.files()?.into_iter();
    let maps = files.filter(|path| path.file_name().is_some_and(|name| name == map));
    maps.map(|path| Ok(MapData::from_pin(path)?.info()?.max_entries()))
        .collect()
}

/// The number of pins that belong to handshakes.
pub(super) fn pinned(directory: &PinDirectory) -> Result<usize> {
    let files = directory.files()?;
    let names = files.iter().filter_map(|path| path.file_name());
    Ok(names.filter(|name| *name == "handshakes").count())
}

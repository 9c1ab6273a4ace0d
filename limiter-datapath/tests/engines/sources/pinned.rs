//! The program that notes handshakes is pinned, and the next process takes it over.

use anyhow::{Result, bail};
use testbed::{Listener, PinDirectory};

use super::{
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
    assert!(scene.notes_handshakes()?);
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
    // The link's, and the policy's program.
    assert_eq!(pinned(&directory)?, 2);
    scene.datapath.detach()?;
    assert!(!directory.path().exists());
    Ok(())
}

/// Returns how many pins belong to handshakes.
pub(super) fn pinned(directory: &PinDirectory) -> Result<usize> {
    let files = directory.files()?;
    let names = files.iter().filter_map(|path| path.file_name());
    Ok(names.filter(|name| *name == "handshakes").count())
}

//! A policy that is given up leaves handshakes recorded as they were before it.

use anyhow::{Context as _, Result};
use testbed::{Listener, Pair, PinDirectory};

use super::{
    peers::{PORT, connect, pair, wait_for},
    pinned::pinned,
    scene::Scene,
};

/// The fields of a section `standing`, and whether handshakes prove a source then.
type Settings = (&'static str, bool);

const HANDSHAKES: Settings = ("capacity: 1024", true);
const LISTS: Settings = ("capacity: 1024, proven-by: [list]", false);

/// The settings in force, and the settings that replace them and are given up.
const CHANGES: [[Settings; 2]; 4] = [
    [HANDSHAKES, ("capacity: 1024, visits: off", true)],
    // Known sources move to another table and back.
    [HANDSHAKES, ("capacity: 5000", true)],
    [HANDSHAKES, LISTS],
    [LISTS, HANDSHAKES],
];

/// Fails unless `wanted` says whether handshakes prove a source.
fn assert_recorded(pair: &Pair, scene: &Scene, wanted: bool) -> Result<()> {
    assert_eq!(scene.records_handshakes()?, wanted);
    connect(&pair.client, "2001:db8:2::2")?;
    let client = "2001:db8:1::".to_owned();
    if wanted {
        return wait_for(|| Ok(scene.everybody()?.contains(&client).then_some(())))
            .context("the client is not proven");
    }
    assert!(!scene.everybody()?.contains(&client));
    Ok(())
}

#[test]
fn a_revert_brings_the_program_back() -> Result<()> {
    for has_pins in [false, true] {
        for [(before, proves), (meanwhile, proved)] in CHANGES {
            let pair = pair()?;
            let _listener = Listener::new(&pair.server, PORT)?;
            let directory = has_pins.then(PinDirectory::new).transpose()?;
            let mut scene = Scene::with_pins(&pair.server, before, directory.as_ref())?;
            let previous = scene.apply(meanwhile)?;
            assert_eq!(scene.records_handshakes()?, proved);
            connect(&pair.client, "10.0.0.2")?;
            let met = if proved { &["10.0.0.1"][..] } else { &[] };
            wait_for(|| Ok((scene.everybody()? == met).then_some(())))?;

            scene.datapath.revert(previous)?;
            assert_eq!(scene.everybody()?, met, "{before} → {meanwhile}");
            assert_recorded(&pair, &scene, proves)?;
            if let Some(directory) = &directory {
                assert_eq!(pinned(directory)?, if proves { 2 } else { 0 });
            }
        }
    }
    Ok(())
}

/// The next daemon goes back.
#[test]
fn a_death_before_it_is_settled_brings_the_program_back() -> Result<()> {
    for [(before, proves), (meanwhile, proved)] in CHANGES {
        let pair = pair()?;
        let _listener = Listener::new(&pair.server, PORT)?;
        let directory = PinDirectory::new()?;
        let mut scene = Scene::with_pins(&pair.server, before, Some(&directory))?;
        drop(scene.apply(meanwhile)?);
        drop(scene);

        let (mut scene, previous) = Scene::adopt(&pair.server, &directory)?;
        assert_eq!(
            scene.records_handshakes()?,
            proved,
            "{before} → {meanwhile}"
        );
        let previous = previous.context("the policy before is lost")?;
        scene.datapath.revert(previous)?;
        assert_recorded(&pair, &scene, proves)?;
        assert_eq!(pinned(&directory)?, if proves { 2 } else { 0 });
    }
    Ok(())
}

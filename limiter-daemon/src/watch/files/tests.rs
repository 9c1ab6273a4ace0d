use std::{io, os::unix::fs::symlink};

use tempfile::TempDir;
use tokio::time::timeout;

use super::*;

const QUICK: Pace = Pace {
    quiet: Duration::from_millis(50),
    patience: Duration::from_millis(400),
    // Longer than any test: only an event can reveal a change.
    poll_interval: Duration::from_mins(10),
};

/// Longer than it takes to report a change.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longer than `QUICK` waits for further events.
const A_WHILE: Duration = Duration::from_millis(250);

/// A directory with `limiter.yaml` and other files.
struct Scene(TempDir);

impl Scene {
    fn new() -> io::Result<Self> {
        let scene = Self(tempfile::tempdir()?);
        fs::write(scene.path("limiter.yaml"), "1")?;
        Ok(scene)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn watch(&self, names: &[&str]) -> FileWatch {
        FileWatch::with_pace(names.iter().map(|name| self.path(name)), QUICK)
    }
}

async fn is_reported(watch: &mut FileWatch) -> bool {
    timeout(PATIENCE, watch.changed()).await.is_ok()
}

async fn is_quiet(watch: &mut FileWatch) -> bool {
    timeout(A_WHILE, watch.changed()).await.is_err()
}

/// Each step is one change of `limiter.yaml`.
async fn check(
    prepare: impl FnOnce(&Scene) -> io::Result<()>,
    steps: &[fn(&Scene) -> io::Result<()>],
) -> io::Result<()> {
    let scene = Scene::new()?;
    prepare(&scene)?;
    let mut watch = scene.watch(&["limiter.yaml"]);
    for (number, step) in steps.iter().enumerate() {
        assert!(is_quiet(&mut watch).await, "reported before step {number}");
        step(&scene)?;
        assert!(
            is_reported(&mut watch).await,
            "step {number} is not reported"
        );
    }
    assert!(is_quiet(&mut watch).await, "reported at the end");
    Ok(())
}

#[tokio::test]
async fn written_in_place() -> io::Result<()> {
    check(
        |_| Ok(()),
        &[
            |scene| fs::write(scene.path("limiter.yaml"), "22"),
            |scene| fs::write(scene.path("limiter.yaml"), "33"),
        ],
    )
    .await
}

#[tokio::test]
async fn replaced_as_editors_do() -> io::Result<()> {
    let replace = |scene: &Scene| {
        fs::write(scene.path("new"), "2")?;
        fs::rename(scene.path("new"), scene.path("limiter.yaml"))
    };
    check(|_| Ok(()), &[replace, replace]).await
}

#[tokio::test]
async fn deleted_and_made_again() -> io::Result<()> {
    check(
        |_| Ok(()),
        &[
            |scene| fs::remove_file(scene.path("limiter.yaml")),
            |scene| fs::write(scene.path("limiter.yaml"), "1"),
        ],
    )
    .await
}

/// limiter.yaml → ..data/limiter.yaml, ..data → 1: the link in the middle is replaced.
#[tokio::test]
async fn mounted_as_kubernetes_does() -> io::Result<()> {
    fn publish(scene: &Scene, version: &str) -> io::Result<()> {
        fs::create_dir(scene.path(version))?;
        fs::write(scene.path(version).join("limiter.yaml"), "1")?;
        symlink(version, scene.path("..data_tmp"))?;
        fs::rename(scene.path("..data_tmp"), scene.path("..data"))
    }
    check(
        |scene| {
            publish(scene, "1")?;
            fs::remove_file(scene.path("limiter.yaml"))?;
            symlink("..data/limiter.yaml", scene.path("limiter.yaml"))
        },
        &[
            |scene| publish(scene, "2"),
            |scene| fs::remove_dir_all(scene.path("1")).and_then(|()| publish(scene, "3")),
            |scene| fs::write(scene.path("3/limiter.yaml"), "22"),
        ],
    )
    .await
}

/// current/limiter.yaml, current → 1: a link above the file's directory is replaced.
#[tokio::test]
async fn below_a_link_that_is_turned() -> io::Result<()> {
    let scene = Scene::new()?;
    for version in ["1", "2"] {
        fs::create_dir_all(scene.path(version).join("etc"))?;
        fs::write(scene.path(version).join("etc/limiter.yaml"), "1")?;
    }
    symlink(scene.path("1"), scene.path("current"))?;
    let mut watch = scene.watch(&["current/etc/limiter.yaml"]);
    assert!(is_quiet(&mut watch).await);
    fs::remove_file(scene.path("current"))?;
    symlink(scene.path("2"), scene.path("current"))?;
    assert!(is_reported(&mut watch).await);
    fs::write(scene.path("1/etc/limiter.yaml"), "of no use any more")?;
    assert!(is_quiet(&mut watch).await);
    fs::write(scene.path("2/etc/limiter.yaml"), "22")?;
    assert!(is_reported(&mut watch).await);
    Ok(())
}

#[tokio::test]
async fn a_burst_is_one_change() -> io::Result<()> {
    let scene = Scene::new()?;
    let mut watch = scene.watch(&["limiter.yaml", "limits.yaml"]);
    for round in 0..200 {
        fs::write(scene.path("limiter.yaml"), round.to_string())?;
        fs::write(scene.path("limits.yaml"), round.to_string())?;
    }
    assert!(is_reported(&mut watch).await);
    assert!(is_quiet(&mut watch).await);
    Ok(())
}

/// Writing without end does not delay the report for ever.
#[test]
fn patience_ends() -> io::Result<()> {
    let mut watch = Scene::new()?.watch(&["limiter.yaml"]);
    let start = Instant::now();
    for (event_ms, due_ms) in [(0, 50), (49, 99), (340, 390), (380, 400), (399, 400)] {
        watch.wait_out(start + Duration::from_millis(event_ms));
        assert_eq!(watch.due, start + Duration::from_millis(due_ms));
    }
    Ok(())
}

#[tokio::test]
async fn a_folder_of_its_own_making_is_followed_but_not_reported() -> io::Result<()> {
    let scene = Scene::new()?;
    let mut watch = scene.watch(&["limiter.yaml", "limiter.d"]);
    fs::create_dir(scene.path("limiter.d"))?;
    watch.mark_seen_at(&scene.path("limiter.d"));
    assert!(is_quiet(&mut watch).await);
    fs::write(scene.path("limiter.d/fleet.yaml"), "1")?;
    assert!(is_reported(&mut watch).await);
    Ok(())
}

#[tokio::test]
async fn it_is_told_which() -> io::Result<()> {
    let scene = Scene::new()?;
    let mut watch = scene.watch(&["limiter.yaml", "drop.txt", "tor.txt"]);
    fs::write(scene.path("drop.txt"), "1")?;
    fs::remove_file(scene.path("limiter.yaml"))?;
    let reported = timeout(PATIENCE, watch.changed()).await?;
    assert_eq!(
        reported,
        ["drop.txt", "limiter.yaml"]
            .map(|name| scene.path(name))
            .into()
    );
    fs::write(scene.path("tor.txt"), "1")?;
    assert_eq!(watch.mark_seen(), [scene.path("tor.txt")].into());
    assert!(is_quiet(&mut watch).await);
    Ok(())
}

#[tokio::test]
async fn others_in_the_directory() -> io::Result<()> {
    let scene = Scene::new()?;
    let mut watch = scene.watch(&["limiter.yaml"]);
    fs::write(scene.path("other.yaml"), "1")?;
    fs::rename(scene.path("other.yaml"), scene.path("another.yaml"))?;
    fs::read(scene.path("limiter.yaml"))?;
    assert!(is_quiet(&mut watch).await);
    Ok(())
}

#[tokio::test]
async fn other_files_from_now_on() -> io::Result<()> {
    let scene = Scene::new()?;
    let mut watch = scene.watch(&["limiter.yaml", "limits.yaml"]);
    // A change just before the files are replaced is not missed.
    fs::write(scene.path("limiter.yaml"), "22")?;
    watch.replace(
        ["limiter.yaml", "overrides.yaml"]
            .map(|name| scene.path(name))
            .into_iter(),
    );
    assert!(is_reported(&mut watch).await);
    fs::write(scene.path("limits.yaml"), "1")?;
    assert!(is_quiet(&mut watch).await);
    fs::write(scene.path("overrides.yaml"), "1")?;
    assert!(is_reported(&mut watch).await);
    Ok(())
}

/// Without events, the watch polls at intervals.
#[tokio::test]
async fn a_directory_that_is_not_there_yet() -> io::Result<()> {
    let scene = Scene::new()?;
    let pace = Pace {
        poll_interval: Duration::from_millis(100),
        ..QUICK
    };
    let path = scene.path("etc/limiter/limiter.yaml");
    let mut watch = FileWatch::with_pace([path.clone()].into_iter(), pace);
    for _ in 0..2 {
        assert!(is_quiet(&mut watch).await);
        fs::create_dir_all(scene.path("etc/limiter"))?;
        fs::write(&path, "1")?;
        assert!(is_reported(&mut watch).await);
        fs::remove_dir_all(scene.path("etc"))?;
        assert!(is_reported(&mut watch).await);
    }
    Ok(())
}

#[tokio::test]
async fn waiting_may_be_broken_off() -> io::Result<()> {
    let scene = Scene::new()?;
    let mut watch = scene.watch(&["limiter.yaml"]);
    fs::write(scene.path("limiter.yaml"), "22")?;
    let begun = Instant::now();
    while timeout(QUICK.quiet / 10, watch.changed()).await.is_err() {
        assert!(begun.elapsed() < PATIENCE);
    }
    assert!(is_quiet(&mut watch).await);
    Ok(())
}

#[test]
fn links_that_lead_nowhere() -> io::Result<()> {
    let scene = Scene::new()?;
    symlink("round", scene.path("round"))?;
    let found = directories(&scene.path("round"));
    assert!(found.contains(scene.0.path()), "{found:?}");
    Ok(())
}

#[tokio::test]
async fn files_come_into_a_folder() -> io::Result<()> {
    let scene = Scene::new()?;
    let mut watch = scene.watch(&["limiter.d"]);
    assert!(is_quiet(&mut watch).await);
    fs::create_dir(scene.path("limiter.d"))?;
    assert!(is_reported(&mut watch).await, "the folder");
    for name in ["limiter.d/10.yaml", "limiter.d/20.yaml"] {
        fs::write(scene.path(name), "1")?;
        assert!(is_reported(&mut watch).await, "{name}");
    }
    fs::remove_file(scene.path("limiter.d/10.yaml"))?;
    assert!(is_reported(&mut watch).await, "one less");
    // As while a package is upgraded.
    fs::write(scene.path("limiter.d/README.dpkg-new"), "1")?;
    assert!(is_quiet(&mut watch).await, "it is not read");
    Ok(())
}

//! Interfaces that change their name or network namespace, while others take the name. Operators configure names, so
//! the program follows the name.

use std::{os::unix::fs::MetadataExt as _, path::Path, thread, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use testbed::{Limiter, Namespace, PinDirectory};

use crate::{BINARY, GOOD, pinned::program, wait_for};

/// A namespace with the interface `wan0`, its limiter, and pins if the test wants them.
struct Scene {
    limiter: Limiter,
    server: Namespace,
    pins: Option<PinDirectory>,
}

impl Scene {
    fn start(is_pinned: bool) -> Result<Self> {
        let server = Namespace::new()?;
        make(&server, "wan0")?;
        let pins = is_pinned.then(PinDirectory::new).transpose()?;
        let mut arguments = vec!["--metrics", "off", "--log-format", "human"];
        let pin = pins.as_ref().map(PinDirectory::argument);
        arguments.extend(pin.as_deref());
        let configuration = format!("interfaces: [wan0]\n{GOOD}");
        let limiter = Limiter::start(Path::new(BINARY), &server, &configuration, &arguments)?;
        ensure!(program(&server, "wan0")?.is_some());
        Ok(Self {
            limiter,
            server,
            pins,
        })
    }

    fn status(&self) -> Result<Value> {
        let status = self.limiter.status()?;
        let interfaces = status["interfaces"].as_array().context("a list")?;
        ensure!(interfaces.len() == 1, "{status:#}");
        Ok(interfaces[0].clone())
    }

    fn program(&self, interface: &str) -> Result<Option<u64>> {
        program(&self.server, interface)
    }

    /// Fails unless only the interface with the name has a program, and every command says so.
    fn assert_followed(&self, former: Option<(&Namespace, &str)>) -> Result<()> {
        wait_for(|| Ok(self.program("wan0")?.is_some()))?;
        if let Some((namespace, name)) = former {
            wait_for(|| Ok(program(namespace, name)?.is_none()))?;
        }
        let status = self.status()?;
        ensure!(
            status["name"] == "wan0" && status["attached"] == true,
            "{status}"
        );
        if let Some(pins) = &self.pins {
            let files = pins.files()?;
            let links = files.iter().filter(|file| file.ends_with("link")).count();
            ensure!(links == 1, "{files:?}");
        }
        Ok(())
    }

    fn assert_reported(&self, expected: &[&str]) -> Result<()> {
        let mut expected = expected.iter();
        expected.try_for_each(|expected| self.limiter.wait_for_log(expected))
    }
}

fn make(namespace: &Namespace, name: &str) -> Result<()> {
    namespace
        .ip(&["link", "add", name, "type", "veth"])
        .map(drop)
}

#[test]
fn a_name_that_another_interface_gets() -> Result<()> {
    for is_pinned in [false, true] {
        let scene = Scene::start(is_pinned)?;
        scene
            .server
            .ip_batch("link set wan0 name old0\nlink add wan0 type veth\n")?;
        scene.assert_followed(Some((&scene.server, "old0")))?;
        scene.assert_reported(&[
            "wan0 is another interface now",
            "detached from old0, which had the name wan0 before",
        ])?;
        // Back again, with a third interface in between: the former program does not block it.
        scene
            .server
            .ip_batch("link set wan0 name second0\nlink set old0 name wan0\n")?;
        scene.assert_followed(Some((&scene.server, "second0")))?;
    }
    Ok(())
}

#[test]
fn an_interface_that_went_to_another_namespace() -> Result<()> {
    for is_pinned in [false, true] {
        let scene = Scene::start(is_pinned)?;
        let elsewhere = Namespace::new()?;
        let path = elsewhere.path();
        // It stays limited there until another interface gets its name.
        scene.server.ip(&["link", "set", "wan0", "netns", &path])?;
        wait_for(|| {
            Ok(scene
                .limiter
                .log()?
                .contains("in another network namespace"))
        })?;
        ensure!(program(&elsewhere, "wan0")?.is_some());
        let status = scene.status()?;
        ensure!(
            status["attached"] == true && status["elsewhere"] == true,
            "{status}"
        );
        make(&scene.server, "wan0")?;
        scene.assert_followed(Some((&elsewhere, "wan0")))?;
    }
    Ok(())
}

/// The same index does not make it the same interface.
#[test]
fn an_index_that_another_interface_gets() -> Result<()> {
    for is_pinned in [false, true] {
        let scene = Scene::start(is_pinned)?;
        let elsewhere = Namespace::new()?;
        let path = elsewhere.path();
        let reported = scene.server.ip(&["-json", "link", "show", "wan0"])?;
        let index = serde_json::from_str::<Value>(&reported)?[0]["ifindex"].to_string();
        scene.server.ip_batch(&format!(
            "link set wan0 netns {path}\nlink add wan0 index {index} type veth\n"
        ))?;
        scene.assert_followed(Some((&elsewhere, "wan0")))?;
    }
    Ok(())
}

/// While the name is unused, the program stays on the renamed interface and follows reloads.
#[test]
fn a_renamed_interface_is_limited_until_another_has_its_name() -> Result<()> {
    for is_pinned in [false, true] {
        let mut scene = Scene::start(is_pinned)?;
        let first = scene.program("wan0")?;
        scene.server.ip(&["link", "set", "wan0", "name", "old0"])?;
        wait_for(|| Ok(scene.status()?["renamed"] == "old0"))?;
        ensure!(scene.program("old0")? == first);
        ensure!(scene.status()?["attached"] == true);
        scene.assert_reported(&["wan0 is called old0 now"])?;
        let shown = scene.limiter.show(&["status"])?;
        ensure!(
            shown.contains("wan0: attached in native mode since "),
            "{shown}"
        );
        ensure!(shown.contains("it is now called old0"), "{shown}");

        scene.limiter.show(&["reload"])?;
        let second = scene.program("old0")?;
        ensure!(second.is_some() && second != first, "{second:?}");
        if is_pinned {
            scene.limiter.kill()?;
            scene.limiter.restart()?;
            let third = scene.program("old0")?;
            ensure!(third.is_some() && third != second, "{third:?}");
        }
        // If the configuration has the new name, it stays the same interface.
        let configuration = format!("interfaces: [old0]\n{GOOD}");
        scene.limiter.configure(&configuration)?;
        scene.limiter.show(&["reload"])?;
        let status = scene.status()?;
        ensure!(
            status["name"] == "old0" && status["attached"] == true && status["renamed"].is_null(),
            "{status}"
        );
        ensure!(scene.limiter.log()?.matches("attached to ").count() == 1);
    }
    Ok(())
}

#[test]
fn two_interfaces_that_change_names() -> Result<()> {
    let server = Namespace::new()?;
    make(&server, "one0")?;
    make(&server, "two0")?;
    let configuration = format!("interfaces: [one0, two0]\n{GOOD}");
    let limiter = Limiter::start(
        Path::new(BINARY),
        &server,
        &configuration,
        &["--metrics", "off"],
    )?;
    let before = (program(&server, "one0")?, program(&server, "two0")?);
    server.ip_batch("link set one0 name x0\nlink set two0 name one0\nlink set x0 name two0\n")?;
    // However the daemon observes the renames, both interfaces end up with a program, and no program is left over.
    wait_for(|| {
        let both = limiter.status()?["interfaces"].clone();
        let is_well = |index: usize, name: &str| {
            both[index]["attached"] == true
                && both[index]["renamed"].is_null()
                && both
                    .as_array()
                    .is_some_and(|all| all.iter().any(|one| one["name"] == name))
        };
        Ok(is_well(0, "one0") && is_well(1, "two0") && both.as_array().map(Vec::len) == Some(2))
    })?;
    ensure!(before.0.is_some() && before.1.is_some());
    ensure!(program(&server, "one0")?.is_some() && program(&server, "two0")?.is_some());
    Ok(())
}

/// No daemon ran during the change.
#[test]
fn a_name_that_another_interface_got_while_no_daemon_ran() -> Result<()> {
    let mut scene = Scene::start(true)?;
    scene.limiter.kill()?;
    scene
        .server
        .ip_batch("link set wan0 name old0\nlink add wan0 type veth\n")?;
    // The pinned program is on the former interface.
    let status = scene.status()?;
    ensure!(status["attached"] == false, "{status}");
    let shown = scene.limiter.command(&["status"]);
    let mut shown = shown;
    let pins = scene.pins.as_ref().context("pins")?;
    let shown = shown.arg("--pin").arg(pins.path()).output()?;
    let shown = String::from_utf8(shown.stdout)?;
    ensure!(
        shown.contains("wan0: NOT attached: another interface now has this name"),
        "{shown}"
    );
    scene.limiter.restart()?;
    scene.assert_followed(Some((&scene.server, "old0")))
}

/// The kernel reuses the inode number of a removed namespace at once, and each namespace counts its interfaces from 1.
#[test]
fn pins_of_a_namespace_that_is_gone() -> Result<()> {
    let configuration = format!("interfaces: [wan0]\n{GOOD}");
    let start = |namespace: &Namespace, pin: &str| {
        namespace.ip(&["link", "add", "wan0", "index", "77", "type", "veth"])?;
        let arguments = ["--metrics", "off", "--log-format", "human", pin];
        Limiter::start(Path::new(BINARY), namespace, &configuration, &arguments)
    };
    // Another test may have taken the number, for minutes. Then try another number.
    for _ in 0..10 {
        let pins = PinDirectory::new()?;
        let pin = pins.argument();
        let first = Namespace::new()?;
        let limiter = start(&first, &pin)?;
        limiter.show(&["ban", "192.0.2.7"])?;
        let inode = inode(&first)?;
        drop(limiter);
        drop(first);
        let Some(second) = namespace_with(inode)? else {
            continue;
        };
        let limiter = start(&second, &pin)?;
        wait_for(|| Ok(limiter.status()?["interfaces"][0]["attached"] == true))?;
        ensure!(program(&second, "wan0")?.is_some());
        let log = limiter.log()?;
        ensure!(!log.contains("cannot"), "{log}");
        // Its bans stay, because no other program enforces these pins.
        ensure!(limiter.show(&["bans"])?.contains("192.0.2.7"));
        return Ok(());
    }
    bail!("no number was given out again")
}

/// Makes a namespace with an inode number that was just released, or returns `None` if another test has taken it.
fn namespace_with(number: u64) -> Result<Option<Namespace>> {
    // The kernel removes namespaces with a delay, and gives out the lowest free number: keep namespaces with lower
    // numbers open for a while.
    let mut others = Vec::new();
    for _ in 0..200 {
        let next = Namespace::new()?;
        if inode(&next)? == number {
            return Ok(Some(next));
        }
        others.push(next);
        if others.len() == 100 {
            others.clear();
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(None)
}

fn inode(namespace: &Namespace) -> Result<u64> {
    Ok(std::fs::metadata(namespace.path())?.ino())
}

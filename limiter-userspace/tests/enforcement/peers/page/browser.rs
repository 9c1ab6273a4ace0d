//! Headless Chromium, controlled by its driver, which takes WebDriver commands as JSON over HTTP.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Child, Stdio},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::Namespace;

use super::super::program;
use crate::{PACE, PATIENCE};

/// The driver's address in the namespace.
const DRIVER: &str = "http://127.0.0.1:9515";

/// A browser in a namespace, with a page loaded. Dropping it ends the browser.
pub(super) struct Browser {
    namespace: Namespace,
    driver: Child,
    /// The session's path at the driver.
    session: String,
    /// The browser's profile and fonts.
    _directory: TempDir,
}

impl Browser {
    pub(super) fn start(namespace: &Namespace) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let fonts = directory.path().join("fonts.conf");
        fs::write(&fonts, program::fonts())?;
        let driver = program::server(namespace, "chromedriver")?
            .arg("--port=9515")
            .env("FONTCONFIG_FILE", &fonts)
            // It must not contact other programs on this machine.
            .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run chromedriver")?;
        let mut browser = Self {
            namespace: namespace.clone(),
            driver,
            session: String::new(),
            _directory: directory,
        };
        browser.open()?;
        Ok(browser)
    }

    fn open(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.ask("GET", "/status", None).is_err() {
            ensure!(Instant::now() < deadline, "chromedriver does not answer");
            thread::sleep(PACE);
        }
        let arguments = [
            "--headless",
            // Tests run as root, and in containers.
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
        ];
        let options = json!({"binary": program::chromium()?, "args": arguments});
        let capabilities = json!({
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        });
        let wanted = json!({"capabilities": {"alwaysMatch": capabilities}});
        let session = self.ask("POST", "/session", Some(&wanted))?;
        let id = session["sessionId"].as_str().context("no session")?;
        self.session = format!("/session/{id}");
        Ok(())
    }

    /// Loads the page at an address.
    pub(super) fn go(&self, address: &str) -> Result<()> {
        self.command("url", &json!({"url": address}))?;
        Ok(())
    }

    /// Runs a function's body in the page; returns its result.
    pub(super) fn run(&self, script: &str) -> Result<Value> {
        self.command("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Does the same, and waits until the script has called `done` with its result.
    pub(super) fn run_until_done(&self, script: &str) -> Result<Value> {
        let script = format!("const done = arguments[0]; {script}");
        self.command("execute/async", &json!({"script": script, "args": []}))
    }

    /// Sets the screen's width in pixels, and whether it is a phone's screen.
    pub(super) fn resize(&self, width: u32, is_phone: bool) -> Result<()> {
        let screen =
            json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": is_phone});
        self.development("Emulation.setDeviceMetricsOverride", &screen)
    }

    /// Sets the user's preferred colour scheme: `dark` or `light`.
    pub(super) fn prefer(&self, scheme: &str) -> Result<()> {
        let preference = json!({"name": "prefers-color-scheme", "value": scheme});
        self.development(
            "Emulation.setEmulatedMedia",
            &json!({"features": [preference]}),
        )
    }

    /// Sets whether pages may run their own scripts.
    pub(super) fn run_scripts(&self, may: bool) -> Result<()> {
        let disabled = json!({"value": !may});
        self.development("Emulation.setScriptExecutionDisabled", &disabled)
    }

    /// Returns the browser's warnings and errors since the last call.
    pub(super) fn warnings(&self) -> Result<Vec<Value>> {
        let log = self.command("se/log", &json!({"type": "browser"}))?;
        Ok(log.as_array().context("a log")?.clone())
    }

    fn development(&self, command: &str, parameters: &Value) -> Result<()> {
        let command = json!({"cmd": command, "params": parameters});
        self.command("goog/cdp/execute", &command)?;
        Ok(())
    }

    fn command(&self, path: &str, parameters: &Value) -> Result<Value> {
        let path = format!("{}/{path}", self.session);
        self.ask("POST", &path, Some(parameters))
    }

    /// Sends a request to the driver, by curl.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let mut curl = self.namespace.command("curl");
        curl.args(["--silent", "--max-time", "60", "--request", method]);
        if body.is_some() {
            curl.args(["--header", "Content-Type: application/json"]);
            curl.args(["--data-binary", "@-"]);
        }
        let mut child = curl
            .arg(format!("{DRIVER}{path}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run curl")?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut stdin = child.stdin.take().context("curl has no input")?;
        // If curl has ended, its exit code says why.
        let _ = stdin.write_all(body.as_bytes());
        drop(stdin);
        let output = child.wait_with_output()?;
        ensure!(
            output.status.success(),
            "{method} {path}: {}",
            output.status
        );
        let mut response: Value = serde_json::from_slice(&output.stdout)?;
        let value = response["value"].take();
        ensure!(value.get("error").is_none(), "{method} {path}: {value}");
        Ok(value)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Killing the driver ends all of its processes.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Returns the text of a script in the tests' files.
pub(super) fn script(name: &str) -> Result<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = directory
        .join("tests/enforcement/peers/page/vendor")
        .join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

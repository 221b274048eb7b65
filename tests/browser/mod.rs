//! Debian's Chromium without a window, told what to do over its debugging protocol.
//! Tests that need it are skipped with a word where it is not installed.

mod wire;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use serde_json::{Value, json};
use wire::Wire;

/// A browser with one page.
pub struct Browser {
    child: Child,
    wire: Wire,
    session: String,
    _profile: tempfile::TempDir,
}

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// How long anything may take. Generous: only a hang is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

impl Browser {
    /// Starts it; `None`, with a word, where there is none.
    pub fn start() -> Option<Browser> {
        let path = std::env::var_os("PATH")?;
        let mut places =
            std::env::split_paths(&path).flat_map(|dir| NAMES.map(|name| dir.join(name)));
        let Some(program) = places.find(|place| place.is_file()) else {
            eprintln!("skipped: chromium is not installed");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let child = Command::new(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--allow-pre-commit-input",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .args([
                "--disable-sync",
                "--disable-dev-shm-usage",
                "--remote-debugging-port=0",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut wire = Wire::connect(&address(profile.path()));
        let target = wire.call(None, "Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = wire.call(None, "Target.attachToTarget", attach);
        let session = session["sessionId"].as_str().unwrap().to_owned();
        let mut browser = Browser {
            child,
            wire,
            session,
            _profile: profile,
        };
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.resize(1280, 900);
        Some(browser)
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.wire.call(Some(&self.session), method, params)
    }

    /// The size of the page's window.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Dark or light, as a person's system would say, and paper instead of a screen.
    pub fn media(&mut self, scheme: &str, media: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "media": media, "features": features }),
        );
    }

    /// Opens an address and waits until it is there. How long it took.
    pub fn open(&mut self, address: &str) -> Duration {
        self.wire.events.clear();
        let since = Instant::now();
        self.call("Page.navigate", json!({ "url": address }));
        let loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        self.wire.wait(loaded, PATIENCE);
        since.elapsed()
    }

    /// Opens a file.
    pub fn open_file(&mut self, file: &Path) -> Duration {
        self.open(&format!("file://{}", file.display()))
    }

    /// What an expression gives; a promise is waited for.
    pub fn ask(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}\n{answer}"
        );
        answer["result"]["value"].clone()
    }

    /// What an expression gives, as text.
    pub fn text(&mut self, expression: &str) -> String {
        match self.ask(expression) {
            Value::String(text) => text,
            other => panic!("{expression} is {other}"),
        }
    }

    /// What an expression gives, as a number.
    pub fn number(&mut self, expression: &str) -> f64 {
        self.ask(expression)
            .as_f64()
            .unwrap_or_else(|| panic!("{expression} is no number"))
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str) {
        let since = Instant::now();
        while self.ask(expression) != json!(true) {
            assert!(since.elapsed() < PATIENCE, "never true: {expression}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Clicks until an expression is true: on a busy machine Chromium may drop a click, and a person clicks again.
    pub fn click_until(&mut self, selector: &str, expression: &str) {
        let since = Instant::now();
        let there = format!("!!document.querySelector(\"{selector}\")");
        loop {
            if self.ask(&there) == json!(true) {
                self.click(selector);
            }
            let clicked = Instant::now();
            while clicked.elapsed() < Duration::from_secs(10) {
                if self.ask(expression) == json!(true) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            assert!(since.elapsed() < PATIENCE, "never true: {expression}");
        }
    }

    /// Clicks on the middle of an element, as a mouse does. Chromium drops what is clicked before a page is first
    /// drawn, and a loaded page need not be, so that two frames are waited for.
    pub fn click(&mut self, selector: &str) {
        let place = self.ask(&format!(
            "(async () => {{ const frame = () => new Promise(done => {{ requestAnimationFrame(done); setTimeout(done, 1000); }}); \
             await frame(); await frame(); const e = document.querySelector({selector:?}); e.scrollIntoView({{ block: 'center', inline: 'center' }}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses a key where the focus is.
    pub fn press(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { "" };
        let code = match key {
            "Enter" => 13,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            _ => 27,
        };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "text": text, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Sets a field as a person would, and lets its listeners know.
    pub fn set(&mut self, selector: &str, value: &str) {
        self.ask(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.value = {value:?}; \
             e.dispatchEvent(new Event('input', {{ bubbles: true }})); e.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
        ));
    }

    /// Errors that the page's console has seen since it was opened: exceptions, messages, and
    /// whatever its content security policy has stopped.
    pub fn errors(&mut self) -> Vec<String> {
        // One more round trip, so that events which are on their way have come.
        self.ask("1");
        let wrong = self
            .wire
            .events
            .iter()
            .filter(|event| match event["method"].as_str() {
                Some("Runtime.exceptionThrown") => true,
                Some("Runtime.consoleAPICalled") => event["params"]["type"] == "error",
                Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
                _ => false,
            });
        wrong.map(|event| event["params"].to_string()).collect()
    }

    /// What the window shows, kept for people to look at.
    pub fn screenshot(&mut self, name: &str) {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        keep(&format!("{name}.png"), &shot["data"]);
    }

    /// The page as it is printed, kept beside the screenshots.
    pub fn print(&mut self, name: &str) {
        let paper = self.call("Page.printToPDF", json!({ "printBackground": true }));
        keep(&format!("{name}.pdf"), &paper["data"]);
    }
}

fn keep(name: &str, bytes: &Value) {
    let bytes = base64::prelude::BASE64_STANDARD.decode(bytes.as_str().unwrap());
    let folder = screenshots();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), bytes.unwrap()).unwrap();
}

/// Where screenshots are kept: `ABLATE_SCREENSHOTS`, or the build's folder for such things.
fn screenshots() -> PathBuf {
    match std::env::var_os("ABLATE_SCREENSHOTS") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots"),
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The browser writes where it listens into its profile.
fn address(profile: &Path) -> String {
    let since = Instant::now();
    loop {
        let text = std::fs::read_to_string(profile.join("DevToolsActivePort")).unwrap_or_default();
        if let Some((port, path)) = text.trim().split_once('\n') {
            return format!("ws://127.0.0.1:{port}{path}");
        }
        assert!(since.elapsed() < PATIENCE, "chromium does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

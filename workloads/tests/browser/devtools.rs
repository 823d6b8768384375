//! A headless Chromium, driven over its DevTools pipe: JSON messages, each ended by a NUL.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

/// A browser with one tab.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last: u64,
    session: Option<String>,
    /// What the page complained of: errors, warnings, dialogs that nobody should see.
    pub complaints: Vec<String>,
    loaded: bool,
}

/// The browser to test with.
fn program() -> PathBuf {
    if let Some(given) = env::var_os("DEPOSED_CHROMIUM") {
        return given.into();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = env::split_paths(&path).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names
        .iter()
        .flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
    found.into_iter().find(|program| program.is_file()).expect(
        "no chromium on the PATH: apt-get install chromium, or name one in DEPOSED_CHROMIUM",
    )
}

impl Browser {
    /// Starts one whose profile is in this directory.
    pub fn start(profile: &Path) -> Self {
        let _ = fs::remove_dir_all(profile);
        fs::create_dir_all(profile).expect("room for a profile");
        // It reads from descriptor 3 and writes to 4; what it says otherwise is kept aside.
        let mut process = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >"$LOG" 2>&1"#])
            .arg(program())
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .env("LOG", profile.join("log"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let to = process.stdin.take().expect("piped");
        let from = BufReader::new(process.stdout.take().expect("piped"));
        let mut browser = Self {
            process,
            to,
            from,
            last: 0,
            session: None,
            complaints: Vec::new(),
            loaded: false,
        };
        let tab = browser.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attached = json!({"targetId": tab["targetId"], "flatten": true});
        let attached = browser.ask("Target.attachToTarget", attached);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime", "Log", "Page"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        let size = json!({"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        browser.ask("Emulation.setDeviceMetricsOverride", size);
        browser
    }

    /// The answer to a command.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let message = format!("{message}\0");
        self.to
            .write_all(message.as_bytes())
            .expect("the browser reads");
        loop {
            let message = self.hear();
            if message["id"] == json!(self.last) {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
        }
    }

    fn hear(&mut self) -> Value {
        let mut message = Vec::new();
        self.from
            .read_until(0, &mut message)
            .expect("the browser answers");
        message.pop();
        assert!(!message.is_empty(), "the browser has ended");
        let message: Value = serde_json::from_slice(&message).expect("JSON");
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Page.loadEventFired") => self.loaded = true,
            Some("Page.javascriptDialogOpening" | "Runtime.exceptionThrown") => {
                self.complaints.push(params.to_string());
            }
            Some("Runtime.consoleAPICalled") if params["type"] != "log" => {
                self.complaints.push(params.to_string());
            }
            Some("Log.entryAdded") if params["entry"]["level"] != "verbose" => {
                self.complaints.push(params.to_string());
            }
            _ => {}
        }
        message
    }

    /// Opens a page and waits until it has drawn its history.
    pub fn open(&mut self, page: &Path) {
        self.complaints.clear();
        self.loaded = false;
        let url = format!("file://{}", page.display());
        self.ask("Page.navigate", json!({"url": url}));
        while !self.loaded {
            self.hear();
        }
        self.eval(
            "new Promise((done, failed) => {
                setTimeout(() => failed(document.body.innerText), 60000);
                const look = () => document.documentElement.dataset.ready
                    ? requestAnimationFrame(() => requestAnimationFrame(done))
                    : requestAnimationFrame(look);
                look();
            }).then(() => {
                // A copy to read from: reading the page's own would slow it down.
                window.pixels = () => {
                    const { width, height } = canvas;
                    const copy = new OffscreenCanvas(width, height);
                    const pen = copy.getContext('2d', { willReadFrequently: true });
                    pen.drawImage(canvas, 0, 0);
                    return pen.getImageData(0, 0, width, height);
                };
                return true;
            })",
        );
    }

    /// The value of an expression in the page, awaited.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.ask("Runtime.evaluate", params);
        let failed = &result["exceptionDetails"];
        assert!(failed.is_null(), "{expression}: {failed}");
        result["result"]["value"].clone()
    }

    /// The same as text.
    pub fn text(&mut self, expression: &str) -> String {
        let value = self.eval(expression);
        value
            .as_str()
            .unwrap_or_else(|| panic!("{expression}: {value}"))
            .to_owned()
    }

    /// Waits until what was asked for is drawn.
    pub fn drawn(&mut self) {
        self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");
    }

    /// A mouse event on the page.
    pub fn mouse(&mut self, kind: &str, (x, y): (f64, f64), more: Value) {
        let mut params = json!({"type": kind, "x": x, "y": y});
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        self.ask("Input.dispatchMouseEvent", params);
        self.drawn();
    }

    /// A key that writes a character.
    pub fn key(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.ask("Input.dispatchKeyEvent", json!({"type": kind, "key": key}));
        }
        self.drawn();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! The page of a history in a real browser. Ignored in a plain `cargo test`, since it needs
//! one: `apt-get install chromium` (or name another in `DEPOSED_CHROMIUM`), then
//! `cargo test -p deposed-workloads --test browser -- --ignored`.

mod devtools;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use deposed::{
    checkers::writer::event_line,
    cli::{self, Suite},
    flaw::Flaw,
    run::{Header, run},
    system::{Deposed, System},
    workload::{SECOND, Workload},
};
use devtools::Browser;
use serde_json::{Value, json};

/// An empty directory of the test's own.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("room");
    dir
}

fn deposed(args: &[&str]) -> u8 {
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    let suite = Suite {
        workloads: deposed_workloads::all(),
        systems,
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["deposed"].into_iter().chain(args.iter().copied());
    cli::run(&suite, args, &mut out, &mut err)
}

/// The page of a history file.
fn page_of(history: &Path) -> PathBuf {
    let page = history.with_extension("page.html");
    let (from, to) = (
        history.to_str().expect("UTF-8"),
        page.to_str().expect("UTF-8"),
    );
    assert_eq!(deposed(&["show", from, "--html", to]), 0);
    page
}

/// A failing run's page, as the README's first failure.
fn failing(dir: &Path) -> PathBuf {
    let out = dir.to_str().expect("UTF-8");
    let args = [
        "run",
        "gc-pause",
        "--flaw",
        "accepts-anything",
        "--seed",
        "2",
        "--out",
        out,
    ];
    assert_eq!(deposed(&args), 1);
    page_of(&dir.join("gc-pause-accepts-anything-2.jsonl"))
}

/// What the canvas shows, as a number.
const PICTURE: &str = "(() => {
    const { data } = pixels();
    return data.reduce((sum, byte) => (sum * 31 + byte) | 0, 7);
})()";

/// How many colours it shows.
const COLOURS: &str = "(() => {
    const { data } = pixels();
    return new Set(new Uint32Array(data.buffer)).size;
})()";

/// Where an event is on the screen.
fn place_of(browser: &mut Browser, at: &str) -> (f64, f64) {
    let place = browser.eval(&format!(
        "(() => {{
            const box = canvas.getBoundingClientRect(), lane = chart.lanes[chart.lane[{at}]];
            const track = lane.tracks.find((track) => track.points);
            return [box.left + xOf(chart.time[{at}]), box.top + lane.y + track.top + track.height / 2];
        }})()"
    ));
    let number = |value: &Value| value.as_f64().expect("a number");
    (number(&place[0]), number(&place[1]))
}

fn range(browser: &mut Browser) -> (f64, f64) {
    let text = browser.text("document.getElementById('range').textContent");
    let numbers: Vec<f64> = text
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    (numbers[0], numbers[1])
}

#[test]
#[ignore = "needs chromium: apt-get install chromium, then cargo test -p deposed-workloads --test browser -- --ignored"]
fn a_page_draws_zooms_and_finds_the_violation() {
    let dir = scratch("failing");
    let page = failing(&dir);
    let mut browser = Browser::start(&dir.join("profile"));
    browser.open(&page);

    let title = browser.text("document.title");
    assert_eq!(title, "gc-pause seed 2 flaw accepts-anything");
    let drawn = browser.eval(COLOURS).as_u64().expect("a number");
    assert!(drawn > 30, "{drawn} colours are no drawing");
    let (whole, picture) = (range(&mut browser), browser.eval(PICTURE));
    assert!(whole.1 - whole.0 > 5.0, "{whole:?}");

    // The wheel zooms where the pointer is, the keys where the middle is.
    let middle = (700.0, 300.0);
    browser.mouse("mouseWheel", middle, json!({"deltaX": 0, "deltaY": -300}));
    let closer = range(&mut browser);
    assert!(
        closer.1 - closer.0 < 0.6 * (whole.1 - whole.0),
        "{closer:?}"
    );
    assert_ne!(browser.eval(PICTURE), picture);
    browser.key("+");
    let closest = range(&mut browser);
    assert!(
        closest.1 - closest.0 < 0.6 * (closer.1 - closer.0),
        "{closest:?}"
    );

    // Dragging to the left goes on in time, without another zoom.
    let pressed = json!({"button": "left", "buttons": 1, "clickCount": 1});
    browser.mouse("mousePressed", middle, pressed.clone());
    browser.mouse("mouseMoved", (500.0, 300.0), pressed.clone());
    browser.mouse("mouseReleased", (500.0, 300.0), pressed.clone());
    let later = range(&mut browser);
    assert!(later.0 > closest.0, "{closest:?} {later:?}");
    assert!(((later.1 - later.0) - (closest.1 - closest.0)).abs() < 0.003);
    browser.key("0");
    assert_eq!(
        (range(&mut browser), browser.eval(PICTURE)),
        (whole, picture.clone())
    );

    // The violation is told, gone to, and its JSON shown.
    let told = browser.text("document.querySelector('#violations button').textContent");
    assert!(
        told.starts_with("storage-safety: a write with token 1 landed after"),
        "{told}"
    );
    browser.key("v");
    let said = browser.text("document.getElementById('said').textContent");
    assert!(
        said.contains("storage") && said.contains("applied write"),
        "{said}"
    );
    let json = browser.text("document.getElementById('json').textContent");
    let event: Value = serde_json::from_str(&json).expect("the event's JSON");
    assert_eq!(
        (&event["f"], &event["value"]["token"]),
        (&json!("applied"), &json!(1))
    );
    let near = range(&mut browser);
    assert!(near.1 - near.0 < 0.2 * (whole.1 - whole.0), "{near:?}");

    // Hover tells the event, a click on another shows its JSON.
    let at = place_of(&mut browser, "chosen");
    browser.mouse("mouseMoved", at, json!({}));
    let tip = browser.text(
        "document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent",
    );
    assert!(tip.contains("applied write"), "{tip}");
    let other = place_of(&mut browser, "chart.violations[0].evidence[0]");
    browser.mouse("mousePressed", other, pressed.clone());
    browser.mouse("mouseReleased", other, pressed);
    let said = browser.text("document.getElementById('said').textContent");
    assert!(said.contains("fenced 2"), "{said}");

    // By the keys alone: to the next event, to the lanes below and above.
    let chosen = |browser: &mut Browser| browser.eval("[chart.lane[chosen], chosen]");
    let (before, pressed) = (chosen(&mut browser), ["n", "p", "j", "k"]);
    let after = pressed.map(|key| {
        browser.key(key);
        chosen(&mut browser)
    });
    assert_eq!(after[0][0], before[0], "n stays in its lane");
    assert!(after[0][1].as_u64() > before[1].as_u64(), "{after:?}");
    assert_eq!(after[1], before, "p goes back");
    assert!(after[2][0].as_u64() > before[0].as_u64(), "{after:?}");
    assert_eq!(after[3][0], before[0], "k is the way back");
    browser.key("v");

    // Every sign that is drawn is told beside itself, as it is drawn.
    let told = browser.text("document.getElementById('legend').textContent");
    for sign in [
        "the violation",
        "what shows it",
        "believes to lead",
        "paused",
        "failed",
    ] {
        assert!(told.contains(sign), "{sign}: {told}");
    }
    assert!(!told.contains("starved"), "{told}");

    // A process and a kind that are not wanted are not drawn.
    for list in ["processes", "kinds"] {
        let before = browser.eval(PICTURE);
        let wanted = match list {
            "processes" => "storage",
            _ => "write",
        };
        browser.eval(&format!(
            "[...document.querySelectorAll('#{list} label')].find((label) => label.textContent.trim() === '{wanted}').click()"
        ));
        browser.drawn();
        assert_ne!(browser.eval(PICTURE), before, "{list}");
    }
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
#[ignore = "needs chromium: apt-get install chromium, then cargo test -p deposed-workloads --test browser -- --ignored"]
fn a_page_is_legible_in_the_dark_in_the_light_and_without_colour() {
    let dir = scratch("legible");
    let page = failing(&dir);
    let mut browser = Browser::start(&dir.join("profile"));
    browser.open(&page);
    // The contrast of what is written and drawn with, against its ground.
    let contrasts = "(() => {
        const lit = (css) => {
            ink.fillStyle = css;
            const hex = ink.fillStyle;
            const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
                .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const against = (a, b) => (Math.max(lit(a), lit(b)) + 0.05) / (Math.min(lit(a), lit(b)) + 0.05);
        const inks = ['text', 'faint', 'good', 'bad', 'open', 'fault', 'focus'];
        const terms = [...Array(40).keys()].map((token) => against(palette.text, termColour(String(token))));
        return Math.min(...inks.map((name) => against(palette[name], palette.ground)), ...terms);
    })()";
    let mut grounds = Vec::new();
    for scheme in ["light", "dark"] {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.ask("Emulation.setEmulatedMedia", media);
        browser.drawn();
        let least = browser.eval(contrasts).as_f64().expect("a number");
        assert!(least >= 4.5, "{scheme}: {least}");
        grounds.push(browser.eval("[...pixels().data.slice(-4)]"));
    }
    assert_ne!(grounds[0], grounds[1]);
    // Without colour: what differs by its hatching and its words still differs.
    let hatches = browser
        .eval("Object.keys(HATCHES).map((what) => JSON.stringify(HATCHES[what][1])).toSorted()");
    let hatches = hatches.as_array().expect("a list");
    assert!(
        hatches.windows(2).all(|pair| pair[0] != pair[1]),
        "{hatches:?}"
    );
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
#[ignore = "needs chromium: apt-get install chromium, then cargo test -p deposed-workloads --test browser -- --ignored"]
fn a_hostile_history_cannot_make_the_page_run_anything() {
    const EVIL: &str = concat!(
        r#"</script><script>window.harm=1</script><img src=x onerror='window.harm=2'>"#,
        "\" onload=window.harm=3 '-->]]></style></title>\u{2028}window.harm=4\u{2029}\u{0}",
        "${window.harm=5}`javascript:window.harm=6&lt;script&gt;&#x3c;{{script}}",
    );
    let visible = EVIL
        .replace('\u{2028}', "\\u{2028}")
        .replace('\u{2029}', "\\u{2029}");
    let visible = visible.replace('\u{0}', "\\u{0}");
    let dir = scratch("hostile");
    let evil = json!(EVIL);
    let header = json!({"deposed": 1, "workload": EVIL, "seed": 0, "schedule": [], "flaw": EVIL});
    let mut text = format!("{header}\n");
    let value =
        json!({"lease": EVIL, "holder": EVIL, "token": 1, "key": EVIL, "value": {EVIL: EVIL}});
    let events = [
        json!({"index": 0, "time": 0, "process": EVIL, "type": "invoke", "f": "write", "value": value}),
        json!({"index": 1, "time": 10, "process": EVIL, "type": "fail", "f": "write", "value": null, "error": {"kind": EVIL}}),
        json!({"index": 2, "time": 20, "process": "nemesis", "type": "info", "f": EVIL, "value": {"node": EVIL}}),
        json!({"index": 3, "time": 30, "process": "nemesis", "type": "info", "f": "pause", "value": {"node": EVIL, "for": 20}}),
        json!({"index": 4, "time": 90, "process": EVIL, "type": "info", "f": "lead", "value": {"lease": EVIL, "holder": EVIL, "token": 1}}),
        json!({"index": 5, "time": 99, "process": "__proto__", "type": "info", "f": "constructor", "value": evil}),
    ];
    events
        .iter()
        .for_each(|event| text += &format!("{event}\n"));
    let file = dir.join("evil.jsonl");
    fs::write(&file, text).expect("room");
    let page = page_of(&file);
    let mut browser = Browser::start(&dir.join("profile"));
    browser.open(&page);
    // Everything that writes into the page, once.
    for at in 0..events.len() {
        browser.eval(&format!("choose({at})"));
        let at = place_of(&mut browser, &at.to_string());
        browser.mouse("mouseMoved", at, json!({}));
    }
    let begun = &visible[..100];
    assert!(browser.text("document.title").contains(begun));
    for list in ["kinds", "processes"] {
        let text = browser.text(&format!("document.getElementById('{list}').textContent"));
        assert!(text.contains(begun), "{list}: {text}");
    }
    assert_eq!(
        browser.eval("window.harm === undefined && document.images.length"),
        json!(0)
    );
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
#[ignore = "needs chromium: apt-get install chromium, then cargo test -p deposed-workloads --test browser -- --ignored"]
fn names_of_megabytes_are_cut_off_and_their_events_still_told() {
    let dir = scratch("huge");
    // Noise, which does not pack.
    let mut noise: u64 = 1;
    let words = std::iter::repeat_with(|| {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        format!("{noise:016x}")
    });
    let huge: String = words.take(4_000_000 / 16).collect();
    let lead = json!({"lease": huge, "holder": "a#1", "token": 1, "until": 90});
    let events = [
        json!({"index": 0, "time": 0, "process": huge, "type": "info", "f": "mood", "value": null}),
        json!({"index": 1, "time": 10, "process": "a", "type": "info", "f": huge, "value": {"x": huge}}),
        json!({"index": 2, "time": 20, "process": "a", "type": "info", "f": "lead", "value": lead}),
        json!({"index": 3, "time": 99, "process": "a", "type": "info", "f": "mood", "value": "small"}),
    ];
    let mut text = "{\"deposed\":1}\n".to_owned();
    events
        .iter()
        .for_each(|event| text += &format!("{event}\n"));
    let file = dir.join("huge.jsonl");
    fs::write(&file, text).expect("room");
    let page = page_of(&file);
    let bytes = fs::metadata(&page).expect("written").len();
    assert!(bytes <= 5_000_000, "{bytes} bytes");
    let mut browser = Browser::start(&dir.join("profile"));
    browser.open(&page);
    let summary = browser.text("document.getElementById('summary').textContent");
    assert!(
        summary.contains("the JSON of 3 events is cut off"),
        "{summary}"
    );
    for (at, event) in events.iter().enumerate() {
        browser.eval(&format!("choose({at})"));
        let place = place_of(&mut browser, &at.to_string());
        browser.mouse("mouseMoved", place, json!({}));
        let json = browser.text("document.getElementById('json').textContent");
        match at {
            3 => assert_eq!(&serde_json::from_str::<Value>(&json).expect("whole"), event),
            _ => assert!(
                json.starts_with(&format!("{{\"index\":{at},")) && json.ends_with('…'),
                "{at}"
            ),
        }
    }
    // The gutter tells a name that does not fit in it, as far as it is there.
    let lane = browser.eval("chart.lanes.find((lane) => lane.name.length > 20).y");
    let at = browser.eval("canvas.getBoundingClientRect().top");
    let y = lane.as_f64().expect("a number") + at.as_f64().expect("a number") + 13.0;
    browser.mouse("mouseMoved", (30.0, y), json!({}));
    let tip = browser.text("document.getElementById('tip').textContent");
    assert!(tip.starts_with(&huge[..100]) && tip.contains('…'), "{tip}");
    assert_eq!(browser.complaints, [""; 0]);
}

/// The page of a hundred thousand events of chaos, and the first violation's culprit.
fn long(dir: &Path) -> (PathBuf, u64) {
    let chaos = deposed_workloads::all()
        .into_iter()
        .find(|workload| workload.name == "chaos");
    let long = Workload {
        chaos: 450 * SECOND,
        ..chaos.expect("chaos")
    };
    let system: Arc<dyn System> = Arc::new(Deposed);
    let header = Header::of(&long, 0, system.name(), Some(Flaw::AcceptsAnything));
    let outcome = run(&header, &system).expect("it runs");
    assert!(
        outcome.history.len() >= 100_000,
        "{} events",
        outcome.history.len()
    );
    let file = dir.join("long.jsonl");
    let mut text = serde_json::to_string(&header).expect("a header") + "\n";
    for event in &outcome.history {
        text += &event_line(event);
        text.push('\n');
    }
    fs::write(&file, text).expect("room");
    let first = outcome.verdicts.violated().next();
    let (_, evidence) = first.expect("a violation");
    (page_of(&file), evidence.culprit)
}

/// Zooms into the whole, moves along, and out again, a step a frame: how long drawing took in
/// each, and how far the frames were apart, in milliseconds.
const FRAMES: &str = "(async () => {
    const drawing = [], apart = [], inner = draw;
    draw = (chart) => {
        const from = performance.now();
        inner(chart);
        drawing.push(performance.now() - from);
    };
    const frame = () => new Promise(requestAnimationFrame);
    whole();
    await frame();
    let last = await frame();
    drawing.length = 0;
    const go = async (times, move) => {
        for (let i = 0; i < times; i++) {
            move(i);
            const now = await frame();
            apart.push(now - last);
            last = now;
        }
    };
    await go(60, (i) => look(view.from + (i % 2 ? 1 : -1) * 1e7, view.to + (i % 2 ? 1 : -1) * 1e7));
    await go(60, () => zoom(0.9, 500));
    await go(60, () => pan(0.05));
    await go(60, () => zoom(1 / 0.9, 900));
    draw = inner;
    return [drawing, apart];
})()";

#[test]
#[ignore = "prints figures: cargo test -p deposed-workloads --test browser frame -- --ignored --nocapture"]
fn how_long_a_frame_takes_of_few_events_and_of_a_hundred_thousand() {
    let dir = scratch("frames");
    let pages = [failing(&dir), long(&dir).0];
    let mut browser = Browser::start(&dir.join("profile"));
    println!("   events  drawing a frame: median, worst    frames apart: median, worst");
    for page in pages {
        browser.open(&page);
        let events = browser.eval("chart.count").as_u64().expect("a number");
        let measured = browser.eval(FRAMES);
        let told = |times: &Value| {
            let times = times.as_array().expect("a list").iter();
            let mut times: Vec<f64> = times.filter_map(Value::as_f64).collect();
            assert_eq!(times.len(), 240, "a frame was not drawn");
            times.sort_by(f64::total_cmp);
            format!("{:6.1} ms {:6.1} ms", times[120], times[239])
        };
        let (drawing, apart) = (told(&measured[0]), told(&measured[1]));
        println!("{events:9}              {drawing}             {apart}");
    }
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
#[ignore = "needs chromium: apt-get install chromium, then cargo test -p deposed-workloads --test browser -- --ignored"]
fn a_hundred_thousand_events_are_drawn_in_a_bounded_number_of_strokes() {
    let dir = scratch("long");
    let (page, culprit) = long(&dir);
    let bytes = fs::metadata(&page).expect("written").len();
    assert!(bytes <= 5_000_000, "{bytes} bytes");
    let mut browser = Browser::start(&dir.join("profile"));
    browser.open(&page);
    assert!(
        browser
            .text("document.getElementById('summary').textContent")
            .contains("events")
    );
    // However many events there are, no more is drawn than the screen has pixels for.
    browser.eval(
        "window.strokes = 0;
        for (const name of ['fill', 'stroke', 'fillRect', 'strokeRect', 'fillText', 'moveTo']) {
            for (const kind of [CanvasRenderingContext2D, Path2D]) {
                const drawn = kind.prototype[name];
                if (!drawn) continue;
                kind.prototype[name] = function (...args) { strokes++; return drawn.apply(this, args); };
            }
        } 0",
    );
    for key in ["0", "+", "+", "+", "+", "+", "+", "+", "+"] {
        browser.eval("strokes = 0");
        browser.key(key);
        let strokes = browser.eval("strokes").as_u64().expect("a number");
        assert!((20..30_000).contains(&strokes), "{strokes} strokes");
    }
    browser.key("v");
    let json = browser.text("document.getElementById('json').textContent");
    assert!(json.contains(&format!("\"index\": {culprit},")), "{json}");
    assert_eq!(browser.complaints, [""; 0]);
}

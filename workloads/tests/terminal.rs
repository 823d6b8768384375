//! What the binary writes into: a pipe, a pipe that nobody reads, a terminal of any width.

use std::{
    fs,
    io::pipe,
    path::PathBuf,
    process::{Command, Stdio},
};

const DEPOSED: &str = env!("CARGO_BIN_EXE_deposed");

/// A failure that is kept.
fn history() -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let file = root.parent().expect("a workspace").join("histories");
    let file = file.join("paused-leader.jsonl");
    file.to_str().expect("a path in UTF-8").to_owned()
}

/// The binary, which is to do this to the history FILE, in an environment without opinions.
fn deposed(command: &str) -> Command {
    let mut deposed = Command::new(DEPOSED);
    for opinion in [
        "CI",
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
        "RUST_LOG",
    ] {
        deposed.env_remove(opinion);
    }
    let args = command.split_whitespace();
    let args = args.map(|word| word.replace("FILE", &history()));
    deposed.args(args).env("TERM", "xterm-256color");
    deposed
}

#[test]
fn who_stops_reading_is_told_nothing_and_a_verdict_stands() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("terminal-unread");
    let run = format!("run calm --seeds 1 --out {}", out.display());
    let out = out.display();
    let failing = format!("run gc-pause --flaw no-barrier --seeds 1 --out {out}");
    let prove = format!("prove --ttl 1 --in-flight 1 --out {out}");
    let proving = format!("prove --flaw fence-is-a-no-op --out {out}");
    let over = format!("prove --for 0s --out {out}");
    let cases = [
        ("show FILE", 0),
        ("show FILE --timeline", 0),
        ("show FILE --html -", 0),
        ("list", 0),
        ("--help", 0),
        ("completions bash", 0),
        ("check FILE", 1),
        ("check FILE --json", 1),
        ("replay FILE", 0),
        (&run, 0),
        (&failing, 1),
        (&prove, 0),
        (&proving, 1),
        (&over, 3),
    ];
    for (command, code) in cases {
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        let ended = deposed(command).stdout(writer).output().expect("it runs");
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &*told), (Some(code), ""), "{command}");
    }
}

#[test]
fn what_nobody_reads_is_kept_nevertheless() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("terminal-kept");
    let _ = fs::remove_dir_all(&out);
    for (command, kept) in [
        (
            "prove --flaw fence-is-a-no-op",
            "prove-fence-is-a-no-op-0.jsonl",
        ),
        (
            "run gc-pause --flaw no-barrier",
            "gc-pause-no-barrier-0.jsonl",
        ),
    ] {
        let out = out.join(command.replace(' ', "-"));
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        let command = format!("{command} --out {}", out.display());
        let ended = deposed(&command).stdout(writer).status().expect("it runs");
        assert_eq!(ended.code(), Some(1), "{command}");
        assert!(out.join(kept).is_file(), "{command}");
    }
}

#[test]
fn a_pipe_gets_plain_text_of_a_width_that_does_not_depend_on_who_asks() {
    let piped = |mut command: Command| {
        let ended = command.stdin(Stdio::null()).output().expect("it runs");
        assert!(ended.stderr.is_empty(), "{command:?}");
        String::from_utf8(ended.stdout).expect("UTF-8")
    };
    for command in ["show FILE", "show FILE --timeline", "check FILE", "--help"] {
        let plain = piped(deposed(command));
        assert!(!plain.contains('\u{1b}'), "{command}");
        let mut wide = deposed(command);
        wide.env("COLUMNS", "37");
        assert_eq!(piped(wide), plain, "{command}");
        // Colours where they are asked for by name, and the same text beneath them.
        let mut forced = deposed(command);
        forced.env("CLICOLOR_FORCE", "1");
        let forced = piped(forced);
        let coloured = command != "check FILE";
        assert_eq!(forced.contains('\u{1b}'), coloured, "{command}");
        assert_eq!(without_escapes(&forced), plain, "{command}");
        let mut both = deposed(command);
        both.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
        assert_eq!(piped(both), plain, "{command}");
    }
    let drawn = piped(deposed("show FILE --timeline"));
    assert!(drawn.lines().all(|line| line.len() <= 100), "{drawn}");
}

/// Text without its ANSI escapes.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once('m').map_or("", |(_, rest)| rest)
    })
}

/// What the binary writes on a terminal of so many columns, with this in its environment.
fn on_a_terminal(columns: usize, environment: &str, command: &str) -> String {
    let command = command.replace("FILE", &history());
    let script = format!(
        "zmodload zsh/zpty
        zpty terminal 'stty rows 24 cols {columns} -onlcr; {environment} {DEPOSED} {command}'
        while zpty -r terminal line; do print -rn -- \"$line\"; done"
    );
    let mut zsh = Command::new("zsh");
    for opinion in [
        "CI",
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
        "RUST_LOG",
    ] {
        zsh.env_remove(opinion);
    }
    zsh.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
    let ended = zsh.args(["-f", "-c", &script]).output().expect("zsh");
    assert!(ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stdout).expect("UTF-8")
}

#[test]
#[ignore = "needs a terminal, which zsh makes: apt-get install zsh, then cargo test -p deposed-workloads --test terminal -- --ignored"]
fn a_terminal_gets_its_width_and_colours_unless_it_or_its_user_objects() {
    let timeline = "show FILE --timeline";
    for columns in [59, 100, 173] {
        let drawn = without_escapes(&on_a_terminal(columns, "", timeline));
        let widest = drawn.lines().map(|line| line.chars().count()).max();
        assert_eq!(widest, Some(columns), "{drawn}");
    }
    // One that does not know its width, and one in which nothing fits.
    for (columns, at_most) in [(0, 100), (3, 60)] {
        let drawn = without_escapes(&on_a_terminal(columns, "", timeline));
        let widest = drawn.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(at_most), "{columns}: {drawn}");
    }
    let coloured = on_a_terminal(100, "", timeline);
    assert!(
        coloured.contains('\u{1b}') && coloured.contains('━'),
        "{coloured}"
    );
    for objection in ["NO_COLOR=1", "CLICOLOR=0", "TERM=dumb"] {
        let plain = on_a_terminal(100, objection, timeline);
        assert_eq!(plain, without_escapes(&coloured), "{objection}");
    }
    let ascii = on_a_terminal(100, "LC_ALL=C NO_COLOR=1", timeline);
    assert!(ascii.is_ascii() && ascii.contains("=="), "{ascii}");
    // Nothing waits for a key, however long it is; and no bar where it cannot be drawn.
    let listed = on_a_terminal(100, "", "list");
    assert!(listed.lines().count() > 100, "{listed}");
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("terminal-dumb");
    let run = format!("run calm --seeds 2 --out {}", out.display());
    let dumb = on_a_terminal(100, "TERM=dumb", &run);
    assert!(
        dumb.starts_with("ok      calm") && !dumb.contains('\r'),
        "{dumb}"
    );
}

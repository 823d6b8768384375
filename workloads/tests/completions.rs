//! Names are completed: by the binary, as a shell asks it, and by the shells themselves.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const DEPOSED: &str = env!("CARGO_BIN_EXE_deposed");

/// What could follow these words, each with its story cut off.
fn completed(words: &str) -> Vec<String> {
    let asked = Command::new(DEPOSED)
        .env("DEPOSED_COMPLETE", "fish")
        .arg("--")
        .args(words.split(' '))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the binary is there");
    let told = (asked.status.code(), &*asked.stderr);
    assert_eq!(told, (Some(0), &b""[..]), "{words}");
    let lines = String::from_utf8(asked.stdout).expect("UTF-8");
    let word = |line: &str| line.split('\t').next().unwrap_or(line).to_owned();
    lines.lines().map(word).collect()
}

#[test]
fn every_name_of_the_suite_is_completed_where_it_may_stand() {
    let cases = [
        ("deposed sh", "shrink show"),
        ("deposed run gc", "gc-pause"),
        ("deposed run calm gc", "gc-pause"),
        ("deposed run --flaw stale-e", "stale-expiry"),
        ("deposed run --system de", "deposed"),
        ("deposed replay gc", "gc-pause gc_pause.rs"),
        ("deposed replay gc-pause 7 --flaw off", "off-by-one"),
        ("deposed flaws calm no-b", "no-barrier"),
        ("deposed compare unf", "unfenced-effect"),
        // It compares nothing.
        ("deposed compare gc", ""),
        ("deposed shrink --check zom", "zombie-write"),
        (
            "deposed check --only conduct,belief",
            "conduct,belief-safety",
        ),
        ("deposed sweep --preset etcd,ku", "etcd,kubernetes"),
        ("deposed sweep --pause vm", "vm-migration"),
        ("deposed show --kind write,gra", "write,granted"),
        ("deposed show gc", "gc_pause.rs"),
        ("deposed completions fi", "fish"),
    ];
    for (words, expected) in cases {
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(completed(words), expected, "{words}");
    }
}

/// What a shell prints that runs this, `deposed` being our binary.
fn said(shell: &str, options: &[&str], script: &str) -> String {
    let bin = Path::new(DEPOSED).parent().expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(shell)
        .args(options)
        .arg(script)
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("TERM", "dumb")
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{shell}: {error}"));
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((output.status.code(), &*err), (Some(0), ""), "{out}");
    out
}

/// An empty directory of the test's own.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("completions-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("room");
    dir
}

#[test]
#[ignore = "needs bash, zsh and fish: apt-get install zsh fish, then cargo test -p deposed-workloads --test completions -- --ignored"]
fn bash_completes_a_command_and_a_workload() {
    let complete = |words: &str, nth: usize| {
        format!(
            "COMP_WORDS=({words}); COMP_CWORD={nth}; COMP_TYPE=9
            _clap_complete_deposed deposed \"${{COMP_WORDS[{nth}]}}\" \"${{COMP_WORDS[{nth}-1]}}\"
            printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        )
    };
    let script = [
        "set -e; source <(deposed completions bash); complete -p deposed\n",
        &complete("deposed shr", 1),
        &complete("deposed run gc", 2),
    ]
    .concat();
    let out = said("bash", &["--norc", "--noprofile", "-c"], &script);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].contains("-F _clap_complete_deposed"), "{out}");
    assert_eq!(lines[1..], ["shrink", "gc-pause"], "{out}");
}

#[test]
#[ignore = "needs bash, zsh and fish: apt-get install zsh fish, then cargo test -p deposed-workloads --test completions -- --ignored"]
fn zsh_completes_a_command_and_a_workload_sourced_or_from_its_path() {
    let dir = scratch("zsh");
    let script = said("zsh", &["-f", "-c"], "deposed completions zsh");
    fs::write(dir.join("_deposed"), script).expect("room");
    let sourced = "compinit -u -D; source <(deposed completions zsh)";
    let on_path = format!("fpath=({} $fpath); compinit -u -D", dir.display());
    for load in [sourced, &on_path] {
        // A terminal, in which each key is pressed once what was before it has been answered;
        // what the line has become is told, not run.
        let script = format!(
            r#"zmodload zsh/zpty
            awaited() {{
                local said all=
                repeat 600; do
                    while zpty -r -t shell said; do all+=$said; done
                    [[ $all == *$1* ]] && return
                    sleep 0.05
                done
                print -r -- "'$1' never came: $all"
                exit 1
            }}
            zpty shell zsh -f -i
            zpty -w shell 'PS1=rea""dy; autoload -Uz compinit; {load}'
            awaited ready
            zpty -w shell 'tell() {{ print -r -- "line:$BUFFER:"; BUFFER= }}; zle -N tell; bindkey "^J" tell'
            awaited ready
            zpty -w shell $'deposed shr\t'
            awaited 'line:deposed shrink :'
            zpty -w shell $'deposed run gc\t'
            awaited 'line:deposed run gc-pause :'
            zpty -d shell
            print completed"#
        );
        let out = said("zsh", &["-f", "-c"], &script);
        assert_eq!(out, "completed\n", "{load}");
    }
}

#[test]
#[ignore = "needs bash, zsh and fish: apt-get install zsh fish, then cargo test -p deposed-workloads --test completions -- --ignored"]
fn fish_completes_a_command_and_a_workload() {
    let script = "deposed completions fish | source; or exit 1
        complete -C 'deposed shr'; complete -C 'deposed run gc'";
    let out = said("fish", &["--no-config", "-c"], script);
    let words = out.lines().map(|line| line.split('\t').next());
    let words: Vec<&str> = words.map(Option::unwrap_or_default).collect();
    assert_eq!(words, ["shrink", "gc-pause"], "{out}");
}

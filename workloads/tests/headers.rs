//! Whatever a workload or a case draws can be run, and what would show nothing is told.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use deposed::{
    cli::{self, Suite},
    rng::stream,
    run::Header,
    system::{Deposed, System},
};
use deposed_workloads::{all, cases};

const SEEDS: u64 = 200;

#[test]
fn every_schedule_that_is_drawn_can_be_injected_and_does_something() {
    for workload in all() {
        for seed in 0..SEEDS {
            let mut header = Header::of(&workload, seed, "deposed", None);
            assert_eq!(header.validate(), Ok(()), "{} {seed}", workload.name);
            let mut rng = stream(seed, "schedule", 0);
            let lease = &workload.lease;
            header.schedule = workload
                .nemesis
                .draw_uniform(&mut rng, lease, workload.chaos);
            assert_eq!(
                header.validate(),
                Ok(()),
                "{} uniform {seed}",
                workload.name
            );
        }
        for arm in &workload.compares {
            let header = Header::of(&arm.of(&workload), 0, "deposed", None);
            assert_eq!(header.validate(), Ok(()), "{} {}", workload.name, arm.name);
        }
    }
    for case in cases::all() {
        let header = case.header(0, "deposed", true);
        assert_eq!(header.validate(), Ok(()), "{}", case.name);
    }
}

#[test]
fn a_flaw_lives_where_it_is_caught() {
    for workload in all() {
        for (flaw, _) in &workload.catches {
            assert!(
                flaw.lives_in(&workload.cluster),
                "{flaw} in {}",
                workload.name
            );
        }
    }
    for case in cases::all() {
        let lives = case
            .flaw
            .is_none_or(|flaw| flaw.lives_in(&case.workload.cluster));
        assert!(lives, "{}", case.name);
    }
}

fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("headers-{name}"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("cargo's directory for tests can be written to");
    dir
}

/// Exit code, standard output, standard error.
fn deposed(dir: &Path, command: &str) -> (u8, String, String) {
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    let suite = Suite {
        workloads: all(),
        systems,
    };
    let dir = dir.to_str().expect("a path in UTF-8");
    let args = command.split(' ').map(|arg| arg.replace("DIR", dir));
    let args = ["deposed".to_owned()].into_iter().chain(args);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::run(&suite, args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (code, text(out), text(err))
}

#[test]
fn a_flaw_that_cannot_show_is_told() {
    let dir = scratch("flaw");
    let told = "the flaw 'minority-ack' cannot show in calm: the cluster has nothing that it is a \
                flaw of";
    for command in [
        "run calm --flaw minority-ack --out DIR",
        "replay calm 0 --flaw minority-ack",
    ] {
        let (code, out, err) = deposed(&dir, command);
        assert_eq!((code, out.as_str()), (2, ""), "{command}");
        assert_eq!(
            err,
            format!("deposed: {told}; `deposed list` tells which workloads catch it\n")
        );
    }
    let (code, _, err) = deposed(
        &dir,
        "run calm quorum --seed 0 --flaw minority-ack --out DIR",
    );
    assert_ne!(code, 2);
    assert_eq!(err, format!("deposed: {told}\n"), "one of them can show it");
}

/// What is malformed is bad input, from a file and from a pipe.
#[test]
fn standard_input_is_read_as_a_file_is() {
    let dir = scratch("stdin");
    assert_eq!(deposed(&dir, "run calm --seed 0 --keep --out DIR").0, 0);
    let kept = std::fs::read_to_string(dir.join("calm-0.jsonl")).expect("it was kept");
    let lines: Vec<&str> = kept.lines().collect();
    let malformed = [&lines[..5], &["{\"index\":"], &lines[6..]]
        .concat()
        .join("\n")
        + "\n";
    let ended = lines[..5].join("\n") + "\n";
    let alone = lines[0].to_owned() + "\n";
    for (text, code) in [(&kept, 0), (&malformed, 2), (&ended, 1), (&alone, 0)] {
        std::fs::write(dir.join("h.jsonl"), text).expect("room");
        let file = dir.join("h.jsonl").display().to_string();
        let of_file = deposed(&dir, "replay DIR/h.jsonl --out DIR/runs");
        let of_file = (
            of_file.0,
            of_file.1.replace(&file, "-"),
            of_file.2.replace(&file, "-"),
        );
        assert_eq!(of_file.0, code, "{}{}", of_file.1, of_file.2);
        let mut piped = Command::new(env!("CARGO_BIN_EXE_deposed"))
            .args(["replay", "-", "--out"])
            .arg(dir.join("runs"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary");
        let mut stdin = piped.stdin.take().expect("a pipe");
        // Who has seen enough may close it.
        let _ = stdin.write_all(text.as_bytes());
        drop(stdin);
        let piped = piped.wait_with_output().expect("it ends");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let of_pipe = (code, text(piped.stdout), text(piped.stderr));
        assert_eq!(piped.status.code(), Some(i32::from(code)));
        assert_eq!(of_pipe, of_file);
    }
}

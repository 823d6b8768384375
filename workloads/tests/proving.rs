//! `deposed prove` as a process that is short of memory.

#![cfg(target_os = "linux")]

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// A search that nobody sees the end of.
fn endless(memory: &str) -> Child {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("proving");
    Command::new(env!("CARGO_BIN_EXE_deposed"))
        .args(["prove", "--clients", "4", "--ttl", "30", "--in-flight", "6"])
        .args(["--max-memory", memory, "--out"])
        .arg(out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// What the system tells of a process that has not ended yet.
fn status(process: &Child, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).ok()?;
    let told = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(told.trim_start_matches(':').trim().to_owned())
}

#[test]
fn the_process_stays_within_the_memory_that_it_is_allowed() {
    for allowed in [64, 128] {
        let mut search = endless(&format!("{allowed}MB"));
        // The most that it ever had, as long as it can be asked.
        let mut most = 0;
        while search.try_wait().expect("its state").is_none() {
            let peak = status(&search, "VmHWM");
            let kib = peak.and_then(|peak| peak.split(' ').next()?.parse::<u64>().ok());
            most = most.max(kib.unwrap_or(0) * 1_024);
            std::thread::yield_now();
        }
        let ended = search.wait_with_output().expect("its end");
        let out = String::from_utf8(ended.stdout).expect("UTF-8");
        assert_eq!(ended.status.code(), Some(3), "{out}");
        assert!(out.contains("then the memory was full"), "{out}");
        let told = out.split_once("at most ").expect("what it took").1;
        let told: u64 = told
            .split(' ')
            .next()
            .expect("a number")
            .parse()
            .expect("a number");
        println!(
            "allowed {allowed} MB, told {told} MB, taken {} MB",
            most / 1_000_000
        );
        assert!(told <= allowed, "{told} of {allowed} MB");
        assert!(most <= told * 1_000_000, "{most} bytes of {told} MB");
        // The peak itself may fall between two looks.
        assert!(most > 0, "it was never seen to run");
    }
}

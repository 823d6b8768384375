//! `deposed sweep` as its user meets it.

mod forger;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use deposed::{
    cli::{self, Suite},
    prelude::*,
};
use forger::Forger;

/// A folder that does not exist yet.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sweep-{name}"));
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// Exit code, standard output, standard error.
fn deposed(system: Arc<dyn System>, folder: &Path, options: &str) -> (u8, String, String) {
    let suite = Suite {
        workloads: Vec::new(),
        systems: vec![system],
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let folder = folder.to_str().expect("a path in UTF-8");
    let args = ["deposed", "sweep", "--out", folder];
    let args = args.into_iter().chain(options.split_whitespace());
    let code = cli::run(&suite, args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("reports are UTF-8");
    (code, text(out), text(err))
}

fn swept(folder: &Path, options: &str) -> (u8, String, String) {
    deposed(Arc::new(Deposed), folder, options)
}

/// Two settings, long pauses.
const SMALL: &str = "--ttl 1s,6s --renew 1/3 --pause 2s,0.5,12 --net 1ms..4ms --seeds 2 --faults 6";

/// Every file of a folder, by name.
#[expect(clippy::disallowed_methods, reason = "the map is in order")]
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy();
            (name.into_owned(), fs::read(&path).expect("a file"))
        })
        .collect()
}

/// The cells' rows by the setting's name, each by the column's name.
fn cells(folder: &Path) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(folder.join("cells.csv")).expect("the cells");
    let rows = reader.deserialize().map(|row| row.expect("a row"));
    rows.map(|row: BTreeMap<String, String>| (row["setting"].clone(), row))
        .collect()
}

#[test]
fn the_files_do_not_depend_on_jobs_nor_on_an_interruption() {
    let (one, two) = (folder("one"), folder("two"));
    let (code, out, err) = swept(&one, &format!("{SMALL} --jobs 1"));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 120), "{out}");
    let whole = files(&one);
    let names: Vec<&str> = whole.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "availability.svg",
            "cells.csv",
            "false-failovers.svg",
            "leaderless.svg",
            "renewals.svg",
            "runs.csv"
        ]
    );
    let (code, _, _) = swept(&two, &format!("{SMALL} --jobs 2"));
    assert_eq!(code, 0);
    assert!(files(&two) == whole, "other bytes on two threads");
    // Cut off in the plan, after it, in a row, and between two.
    let journal = &whole["runs.csv"];
    let ends: Vec<usize> = (0..journal.len())
        .filter(|&at| journal[at] == b'\n')
        .collect();
    assert_eq!(ends.len(), 2 + 4, "the plan, the columns, a row a run");
    for cut in [0, 10, ends[1] + 1, ends[2] - 3, ends[3] + 1, ends[4] + 9] {
        let again = folder("again");
        fs::create_dir(&again).expect("room");
        fs::write(again.join("runs.csv"), &journal[..cut]).expect("room");
        let (code, again_out, err) = swept(&again, &format!("{SMALL} --resume"));
        assert_eq!((code, err.as_str()), (0, ""), "{again_out}");
        assert!(files(&again) == whole, "other bytes after {cut} bytes");
    }
    // What is done is told again, and nothing is run.
    let (code, told, _) = swept(&one, &format!("{SMALL} --resume"));
    assert_eq!((code, told), (0, out));
    assert!(files(&one) == whole);
}

#[test]
fn a_longer_ttl_deposes_fewer_paused_leaders_and_is_slower_to_replace_a_dead_one() {
    let dir = folder("monotone");
    let (code, out, err) = swept(&dir, &format!("{SMALL} --takeover 0s --crashes-per-day 24"));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let cells = cells(&dir);
    let number =
        |setting: &str, column: &str| -> f64 { cells[setting][column].parse().expect("a number") };
    let both = |column: &str| (number("1s 1/3", column), number("6s 1/3", column));
    let (short, long) = both("false_failovers_per_hour");
    assert!(short > 2.0 * long, "{short} and {long} an hour");
    let (short, long) = both("failover_p50");
    assert!(short < 2.0, "a lease of 1s is over: {short}");
    assert!(long > 3.0, "a lease of 6s is not: {long}");
    let (short, long) = both("renewals_per_hour");
    assert!(short > 4.0 * long, "{short} and {long} an hour");
    for setting in ["1s 1/3", "6s 1/3"] {
        assert_eq!(number(setting, "crashes_met"), 4.0, "2 a run");
        assert_eq!(number(setting, "pauses_met"), 8.0, "4 a run");
        for column in ["availability", "renewals_per_hour"] {
            let bound = |which: &str| number(setting, &format!("{column}{which}"));
            assert!(bound("_low") <= bound("") && bound("") <= bound("_high"));
        }
        // In one of sixteen cases even the median is above four crashes.
        for column in ["failover_p50", "failover_p95", "failover_p99"] {
            assert!(number(setting, &format!("{column}_low")) <= number(setting, column));
            assert_eq!(cells[setting][&format!("{column}_high")], "", "{column}");
        }
    }
    assert!(out.contains(" to -) "), "{out}");
}

#[test]
fn the_plots_are_svg_and_name_the_settings_on_the_front() {
    let dir = folder("plots");
    let (code, out, _) = swept(&dir, &format!("{SMALL} --pause 1ms,0.1"));
    assert_eq!(code, 0, "{out}");
    for (name, text) in files(&dir)
        .iter()
        .filter(|(name, _)| name.ends_with(".svg"))
    {
        let text = std::str::from_utf8(text).expect("text");
        let svg = roxmltree::Document::parse(text).expect("well-formed");
        assert_eq!(svg.root_element().tag_name().name(), "svg", "{name}");
        let texts = svg.descendants().filter(|node| node.is_text());
        let texts: Vec<&str> = texts.filter_map(|node| node.text()).collect();
        let says = |what: &str| texts.iter().filter(|text| text.trim() == what).count();
        assert_eq!(says("1/3"), 2, "{name}: the series, a panel an environment");
    }
    let text = fs::read_to_string(dir.join("leaderless.svg")).expect("a plot");
    assert!(text.contains("Time without a leader: p50 (dashed) and p99"));
    let mut reader = csv::Reader::from_path(dir.join("cells.csv")).expect("the cells");
    let mut unbounded = 0;
    for row in reader.deserialize() {
        let row: BTreeMap<String, String> = row.expect("a row");
        for part in ["p50", "p99"] {
            let is_empty = |bound: &str| row[&format!("leaderless_{part}{bound}")].is_empty();
            unbounded += usize::from(!is_empty("") && is_empty("_high"));
        }
    }
    assert!(
        unbounded > 0,
        "so few faults do not bound a 99th percentile"
    );
    assert_eq!(text.matches("<polygon").count(), unbounded, "an arrow each");
    let text = fs::read_to_string(dir.join("availability.svg")).expect("a plot");
    let rows = fs::read_to_string(dir.join("cells.csv")).expect("the cells");
    for setting in ["1s 1/3", "6s 1/3"] {
        let mine = rows.lines().filter(|row| row.contains(setting));
        let places = mine.map(|row| row.rsplit(',').take(2).collect::<Vec<_>>());
        let places: Vec<_> = places.collect();
        for (settled, name) in [
            ("true", setting.to_owned()),
            ("false", format!("{setting} ?")),
        ] {
            let on_front = places
                .iter()
                .filter(|place| **place == [settled, "true"])
                .count();
            let marked = text.lines().filter(|line| line.trim() == name).count();
            assert_eq!(marked, on_front, "{name}");
            // And in the table, one line an environment.
            let told = out.lines().filter(|line| {
                let of_it = line.trim_start().strip_prefix(&*name);
                of_it.is_some_and(|rest| rest.starts_with("  "))
            });
            assert_eq!(told.count(), on_front, "{name}: {out}");
        }
    }
    assert!(rows.lines().any(|row| row.contains(",true,")), "{rows}");
}

#[test]
fn a_setting_is_recommended_for_an_availability_or_none_is() {
    let dir = folder("recommended");
    let (code, out, _) = swept(&dir, &format!("{SMALL} --availability 50%"));
    assert_eq!(code, 0);
    let sentence = "ttl 6s renewed every 2.0s: available ";
    let line = out.lines().find(|line| line.starts_with(sentence));
    let line = line.unwrap_or_else(|| panic!("{out}"));
    let cheapest = "the cheapest in renewals of the 2 settings that reach 50 % with 95 % \
                    confidence under pauses";
    assert!(line.contains(cheapest), "{line}");
    let (code, out, _) = swept(&dir, &format!("{SMALL} --availability 100% --resume"));
    assert_eq!(code, 0);
    assert!(
        out.contains("No setting reaches 100 % with 95 % confidence under"),
        "{out}"
    );
    let dir = folder("recommended-preset");
    let preset = "--preset etcd --net 1ms..4ms --seeds 1 --faults 4 --availability 1%";
    let (code, out, _) = swept(&dir, preset);
    assert_eq!(code, 0);
    assert!(
        out.lines().any(|line| line.starts_with("etcd: ttl ")),
        "{out}"
    );
}

#[test]
fn a_run_that_breaks_a_rule_is_kept_and_told_also_when_it_is_resumed() {
    let dir = folder("broken");
    let small = "--ttl 1s --renew 1/3 --pause gc --seeds 2 --faults 3";
    let (code, _, err) = deposed(Arc::new(Forger), &dir, small);
    assert_eq!(code, 1, "{err}");
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines.len(), 3, "{err}");
    assert!(
        lines[0].contains("the run of sweep-0  seed 0  system forger failed, "),
        "{err}"
    );
    assert!(lines[2].contains("2 runs of 2 broke a rule"), "{err}");
    assert_eq!(files(&dir.join("failed")).len(), 2);
    let (code, _, err) = deposed(Arc::new(Forger), &dir, &format!("{small} --resume"));
    assert_eq!(code, 1, "{err}");
}

#[test]
fn nothing_is_overwritten() {
    let dir = folder("there");
    fs::create_dir(&dir).expect("room");
    let refused = |options: &str, says: &str| {
        let before = files(&dir);
        let (code, out, err) = swept(&dir, options);
        assert_eq!((code, out.as_str()), (2, ""), "{options}: {err}");
        assert!(err.contains(says), "{options}: {err}");
        assert_eq!(err.lines().count(), 1, "{options}: {err}");
        assert!(files(&dir) == before, "{options}");
    };
    let small = "--ttl 1s --renew 1/3 --pause gc --seeds 1 --faults 3";
    refused(small, "exists: go on with the sweep in it with --resume");
    refused(&format!("{small} --resume"), "there is no sweep in");
    fs::write(dir.join("runs.csv"), "name,age\n").expect("room");
    refused(&format!("{small} --resume"), "is no journal of a sweep");
    fs::remove_dir_all(&dir).expect("there");
    let (code, _, err) = swept(&dir, small);
    assert_eq!((code, err.as_str()), (0, ""));
    refused(&format!("{small} --takeover 3s --resume"), "another plan");
    let journal = fs::read_to_string(dir.join("runs.csv")).expect("a journal");
    let last = journal.lines().last().expect("a row");
    fs::write(dir.join("runs.csv"), format!("{journal}{last}\n")).expect("room");
    refused(&format!("{small} --resume"), "line 4 of");
    fs::write(dir.join("runs.csv"), format!("{journal}0,x\n")).expect("room");
    refused(&format!("{small} --resume"), "is no run");
    let (code, _, err) = swept(&dir.join("cells.csv"), small);
    assert_eq!(code, 2);
    assert!(
        err.contains("cells.csv' is no folder: name another"),
        "{err}"
    );
    let below = dir.join("runs.csv").join("sweep");
    let (code, _, err) = swept(&below, small);
    assert_eq!(code, 2);
    assert!(err.contains("cannot be made"), "{err}");
}

#[test]
fn of_two_sweeps_in_one_folder_the_second_is_refused() {
    let dir = folder("two");
    let small = "--ttl 1s --renew 1/3 --pause gc --seeds 1 --faults 3";
    let (code, _, err) = swept(&dir, small);
    assert_eq!((code, err.as_str()), (0, ""));
    let whole = files(&dir);
    let first = fs::File::open(dir.join("runs.csv")).expect("a journal");
    first.lock().expect("nobody else writes to it");
    let (code, out, err) = swept(&dir, &format!("{small} --resume"));
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("another sweep is writing to"), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(files(&dir) == whole, "untouched");
    drop(first);
    assert_eq!(swept(&dir, &format!("{small} --resume")).0, 0);
}

#[test]
fn bad_input_is_one_sentence() {
    let dir = folder("bad");
    for (options, says) in [
        ("--ttl 0s", "nothing does not do"),
        ("--ttl=", "is no duration"),
        ("--renew=", "is no number"),
        ("--preset=", "no preset is called ''"),
        ("--ttl x", "is no duration"),
        ("--ttl 1us", "the setting '0.001ms 1/4' cannot be run"),
        ("--ttl 2h", "every store refuses it"),
        ("--ttl 40m", "give fewer --faults"),
        ("--renew 1", "between 0 and 1"),
        ("--renew NaN", "from 0 up"),
        ("--preset kubernets", "these are: kubernetes, etcd"),
        ("--pause 1s,-1", "from 0 up"),
        ("--pause 1s", "as in 200ms,1.2,6"),
        ("--crashes-per-day NaN", "from 0 up"),
        ("--net 20ms..1ms", "upside down; turn it: 1ms..20ms"),
        ("--net 1us..1ms", "a millisecond"),
        ("--drift 1%..0%", "upside down"),
        ("--drift 50%", "keep no lease"),
        ("--drift 49.8%", "cannot be run: the drift bound"),
        ("--net 10s..20s --ttl 1s", "with --renew, or a faster --net"),
        ("--net 1ms..2h", "or a faster --net"),
        ("--ttl 1ms", "give a longer --ttl"),
        ("--seeds 0", "0 is not in 1..=10000"),
        ("--seeds 99999999999 --dry-run", "is not in 1..=10000"),
        ("--faults 0", "0 is not in 3..=10000"),
        ("--availability 101%", "more than all"),
        ("--availability -1", "'-1'"),
        ("--system x", "no system is called 'x'"),
        ("--dry-run --resume", "--resume"),
    ] {
        let (code, out, err) = swept(&dir, options);
        assert_eq!((code, out.as_str()), (2, ""), "{options}: {err}");
        assert!(err.contains(says), "{options}: {err}");
        assert!(
            !err.contains("header"),
            "nobody wrote one, {options}: {err}"
        );
        assert_eq!(err.lines().count(), 1, "{options}: {err}");
        assert!(!dir.exists(), "{options} left a folder");
    }
}

#[test]
fn a_dry_run_lists_the_settings_and_runs_nothing() {
    let dir = folder("dry");
    let (code, out, err) = swept(&dir, "--preset kubernetes --ttl 5s --renew 1/2 --dry-run");
    assert_eq!((code, err.as_str()), (0, ""));
    let row = |name: &str| {
        let row = out.lines().find(|line| line.starts_with(name));
        let words = row.unwrap_or_else(|| panic!("{out}")).split_whitespace();
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("kubernetes")[1], "15s");
    assert_eq!(row("5s 1/2")[2], "5s");
    assert!(
        out.contains("4 cells, 60 runs, "),
        "two kinds of pauses: {out}"
    );
    assert!(
        out.contains("each under pauses of 200ms (sigma 1.2), 6 an hour"),
        "{out}"
    );
    assert!(!dir.exists());
}

//! `deposed flaws` as its user meets it, and what its figures rest on.

use std::sync::Arc;

use deposed::{
    cli::{self, Suite},
    hunt::{Hunt, Schedules},
    prelude::*,
    run::{Header, run},
};

fn deposed(workloads: Vec<Workload>, args: &[&str]) -> (u8, String, String) {
    let systems = vec![Arc::new(Deposed) as _];
    let suite = Suite { workloads, systems };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["deposed", "flaws"].iter().chain(args).copied();
    let exit = cli::run(&suite, args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (exit, text(out), text(err))
}

#[test]
fn a_flaw_that_is_convicted_everywhere_is_exit_0() {
    let (exit, out, err) = deposed(deposed_workloads::all(), &["no-barrier", "--bases", "2"]);
    assert_eq!((exit, err.as_str()), (0, ""), "{out}");
    for workload in ["calm", "write-before-fence"] {
        let row = out.lines().find(|line| line.contains(workload));
        let row = row.unwrap_or_else(|| panic!("no row for {workload}: {out}"));
        assert!(row.starts_with("no-barrier"), "{row}");
        assert!(
            row.contains("election-barrier") && row.ends_with("latent"),
            "{row}"
        );
    }
    assert!(out.contains("2 rows: all convicted"), "{out}");
}

#[test]
fn a_flaw_that_nothing_provokes_escapes_and_is_exit_1() {
    let harmless = Workload {
        catches: vec![(Flaw::BeliefIsAFlag, Check::BeliefSafety)],
        ..Workload::named("harmless")
    };
    let (exit, out, _) = deposed(vec![harmless], &["belief-is-a-flag", "--seeds", "2"]);
    assert_eq!(exit, 1, "{out}");
    let row = out
        .lines()
        .find(|line| line.starts_with("belief-is-a-flag"));
    assert!(row.is_some_and(|row| row.ends_with("ESCAPED")), "{out}");
    assert!(out.contains("1 row: 1 ESCAPED"), "{out}");
}

#[test]
fn bad_usage_is_one_sentence_and_exit_2() {
    let nobody = vec![Workload::named("nobody")];
    for (workloads, args, said) in [
        (
            deposed_workloads::all(),
            vec!["no-barier"],
            "did you mean 'no-barrier'?",
        ),
        (deposed_workloads::all(), vec!["--bases", "0"], "1 or more"),
        (
            deposed_workloads::all(),
            vec!["--against", "chance"],
            "uniform",
        ),
        (
            nobody,
            vec!["no-barrier"],
            "lists the flaw 'no-barrier' in its 'catches'",
        ),
    ] {
        let (exit, out, err) = deposed(workloads, &args);
        assert_eq!((exit, out.as_str()), (2, ""), "{args:?}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.contains(said), "{err}");
    }
}

/// A hunt judges while the run goes on and ends it there. What it says is what the whole
/// run says, seed by seed.
#[test]
fn ending_a_run_at_its_conviction_changes_no_verdict() {
    let system: Arc<dyn System> = Arc::new(Deposed);
    let mut convicted = 0;
    for workload in deposed_workloads::all() {
        for &(flaw, check) in &workload.catches {
            let hunt = Hunt {
                flaw,
                workload: &workload,
                check,
                schedules: Schedules::Workload,
            };
            let spoils = hunt.run(&system, 3, 1);
            let whole = run(
                &Header::of(&workload, 3, system.name(), Some(flaw)),
                &system,
            )
            .expect("the run goes through");
            let violated = whole.verdicts.violated().any(|(found, _)| found == check);
            assert_eq!(spoils.convicted, violated, "{flaw} in {}", workload.name);
            assert_eq!(spoils.defect, None);
            convicted += u32::from(violated);
        }
    }
    assert!(
        convicted > 20,
        "{convicted} only: the rule was hardly tried"
    );
}

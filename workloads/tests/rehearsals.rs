//! What a search finds in the cores shows in the system around them: each counterexample is
//! walked as the history of its story, and as a run that goes the same way.

use std::{num::NonZero, sync::Arc, sync::atomic::AtomicBool};

use deposed::{
    flaw::Flaw,
    prove::{
        Broken, End, Expected, Scope, Search, Story, expected, history, rehearse, rules_for,
        scope_of,
    },
    system::{Deposed, System},
};
use deposed::checkers::verdict::Check;

#[test]
fn probe() {
    let system: Arc<dyn System> = Arc::new(Deposed);
    for (flaw, scope, check, story) in counterexamples() {
        let start = std::time::Instant::now();
        let r = rehearse(&story, &scope, Some(flaw), check, &system);
        let v: Vec<_> = r.outcome.verdicts.violated().map(|(c, _)| c.name()).collect();
        println!("{flaw:28} {check:20} {} runs {} {:?} {v:?} events {}", r.convicted, r.runs, start.elapsed(), r.outcome.history.len());
        let first = deposed::prove::schedule(&story, &scope, Some(flaw), deposed::prove::Pace::FIRST);
        std::fs::write(format!("/tmp/rr/{flaw}.jsonl"), serde_json::to_string(&first).unwrap()).unwrap();
    }
}

fn counterexamples() -> Vec<(Flaw, Scope, Check, Story)> {
    let mut all = Vec::new();
    for &flaw in Flaw::ALL {
        let Expected::Counterexample(check, _) = expected(flaw) else {
            continue;
        };
        let bounds = Scope {
            in_flight: 2,
            ..Scope::default()
        };
        let scope = scope_of(flaw, &bounds);
        let search = Search {
            scope: scope.clone(),
            rules: rules_for(Some(flaw)),
            jobs: NonZero::<usize>::MIN,
            max_memory: 1 << 30,
            within: None,
            max_depth: usize::MAX,
            stop: &AtomicBool::new(false),
        };
        let End::Broken(broken, story) = search.run().end else {
            panic!("{flaw} escaped");
        };
        assert_eq!(broken, Broken::Check(check), "{flaw}");
        all.push((flaw, scope, check, story));
    }
    all
}

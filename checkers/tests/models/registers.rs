//! Registers, with `cas` and without.

use deposed_checkers::budget::Budget;
use deposed_checkers::model::Model::{CasRegister, Register};
use deposed_checkers::model::judge_first;
use deposed_checkers::verdict::{Check, Verdict};

use crate::{convicts, history, passes, try_judge, verdict};

#[test]
fn a_register_is_nil_at_first() {
    passes("1 invoke read\n1 ok read nil", Register);
    let gone = "1 invoke write 3\n1 ok write 3\n2 invoke read\n2 ok read nil";
    convicts(
        gone,
        Register,
        "process 2 found the register absent",
        &[0, 1, 2, 3],
    );
}

/// A write of a value that can still be read, again: the pass gives it to the search.
#[test]
fn a_value_may_be_written_again() {
    let last = |read: u8| {
        format!(
            "1 invoke write 3\n1 ok write 3\n1 invoke write 3\n1 ok write 3\n1 invoke write 4\n\
             1 ok write 4\n2 invoke read\n2 ok read {read}"
        )
    };
    passes(&last(4), Register);
    let evidence = convicts(
        &last(3),
        Register,
        "process 2 read 3 of the register, which can only have held 4 then; the last write of 3, \
         by process 1, had been overwritten by process 1 with 4",
        // With the last write of 3.
        &[2, 3, 4, 5, 6, 7],
    );
    assert_eq!((evidence.culprit, evidence.expected.as_str()), (7, "4"));
}

#[test]
fn a_cas_finds_what_it_replaces() {
    let from = |from: u8| {
        format!("1 invoke write 3\n1 ok write 3\n2 invoke cas [{from} 5]\n2 ok cas [{from} 5]")
    };
    passes(&from(3), CasRegister);
    convicts(
        &from(4),
        CasRegister,
        "process 2's cas of the register from 4 to 5 succeeded, though it can only have held 3",
        // Nobody wrote 4, ever.
        &[2, 3],
    );
}

/// What surely did not happen explains nothing; what was not answered may explain it.
#[test]
fn only_what_may_have_happened_explains_a_read() {
    let ended = |kind: &str| {
        format!(
            "1 invoke write 1\n1 ok write 1\n2 invoke cas [1 2]\n2 {kind} cas [1 2]\n\
             3 invoke read\n3 ok read 2\n3 invoke cas [2 1]\n3 ok cas [2 1]"
        )
    };
    passes(&ended("info"), CasRegister);
    convicts(
        &ended("fail"),
        CasRegister,
        "process 3 read 2 of the register, which can only have held 1 then",
        &[4, 5],
    );
}

/// It can take effect at any later time, and then once.
#[test]
fn a_lost_write_takes_effect_once() {
    let reads = |last: u8| {
        format!(
            "1 invoke write 1\n1 info write 1\n2 invoke write 2\n2 ok write 2\n3 invoke read\n\
             3 ok read 1\n2 invoke cas [1 2]\n2 ok cas [1 2]\n3 invoke read\n3 ok read {last}"
        )
    };
    passes(&reads(2), CasRegister);
    convicts(
        &reads(1),
        CasRegister,
        "process 3 read 1 of the register",
        // With the only write of 1, which the cas has found.
        &[0, 6, 7, 8, 9],
    );
}

/// The lost write of 2 hides the write of 1 that was under way, though 2 was there already.
#[test]
fn setting_a_value_again_hides_a_write_under_way() {
    let text = "1 invoke write 2\n1 ok write 2\n2 invoke write 2\n2 info write 2\n\
                3 invoke cas [2 3]\n4 invoke write 1\n3 ok cas [2 3]\n4 ok write 1\n\
                1 invoke read\n1 ok read 3";
    passes(text, CasRegister);
    let without = text.replace("2 info", "2 fail");
    // With all that makes a 3: the cas, and the last write of the 2 that it needs.
    convicts(
        &without,
        CasRegister,
        "process 1 read 3",
        &[0, 1, 4, 5, 6, 7, 8, 9],
    );
}

#[test]
fn a_read_without_an_answer_shows_nothing() {
    let text = "1 invoke write 1\n1 ok write 1\n2 invoke read\n2 info read nil\n3 invoke read";
    assert_eq!(verdict(text, CasRegister).word(), "not-claimed");
}

#[test]
fn keys_are_registers_of_their_own() {
    let text = |key: u8| {
        format!(
            "1 invoke write [1 3]\n1 ok write [1 3]\n2 invoke cas [{key} [3 4]]\n\
             2 ok cas [{key} [3 4]]"
        )
    };
    passes(&text(1), CasRegister);
    convicts(
        &text(2),
        CasRegister,
        "cas of key 2 from 3 to 4 succeeded, though it can only have held nil then",
        &[2, 3],
    );
}

/// Of several keys the one that goes wrong first is reported, on any number of threads.
#[test]
fn the_first_violation_is_reported() {
    let text = "1 invoke cas [7 [1 2]]\n2 invoke cas [3 [1 2]]\n2 ok cas [3 [1 2]]\n\
                1 ok cas [7 [1 2]]";
    for jobs in [1, 2, 8] {
        let budget = Budget {
            jobs,
            ..Budget::default()
        };
        let judged = try_judge(text, None, budget).unwrap();
        let Some(Verdict::Violated(evidence)) = judged.verdicts.of(Check::RegisterLinearizable)
        else {
            panic!("not convicted")
        };
        assert_eq!(evidence.events, [1, 2], "{jobs} jobs");
    }
}

/// What was proven before the budget ended is said.
#[test]
fn a_budget_that_ends_is_unknown() {
    let text = "1 invoke cas [7 [nil 2]]\n1 ok cas [7 [nil 2]]\n1 invoke cas [8 [nil 2]]\n\
                1 ok cas [8 [nil 2]]\n1 invoke cas [8 [2 3]]\n1 ok cas [8 [2 3]]";
    let unknown = |steps, bytes| {
        let budget = Budget {
            steps,
            bytes,
            jobs: 1,
        };
        let judged = try_judge(text, None, budget).unwrap();
        match judged.verdicts.of(Check::RegisterLinearizable) {
            Some(Verdict::Unknown(why)) => Some(why.clone()),
            _ => None,
        }
    };
    assert_eq!(unknown(2, 1 << 20), None);
    let why = unknown(1, 1 << 20).unwrap();
    assert_eq!(
        why,
        "the operations of key 8 have an order up to index 5, and the other key searched has one; \
         1 steps were not enough: give more (--max-steps)"
    );
}

/// Nobody wrote 9 before it was found: that needs no search, whatever the budget.
#[test]
fn what_nobody_wrote_needs_no_search() {
    for (found, words) in [
        (
            "read\n999 ok read 9",
            "process 999 read 9 of the register, which nobody had written",
        ),
        (
            "cas [9 1]\n999 ok cas [9 1]",
            "process 999's cas of the register from 9 to 1 succeeded, and nobody had written 9",
        ),
    ] {
        let text = thirty_clients(100);
        let lines = text.lines().count() as u64;
        let text = format!("{text}999 invoke {found}\n999 invoke write 9\n999 ok write 9");
        let budget = Budget {
            steps: 5,
            ..Budget::default()
        };
        let judged = try_judge(&text, Some(CasRegister), budget).unwrap();
        let Some(Verdict::Violated(evidence)) = judged.verdicts.of(Check::RegisterLinearizable)
        else {
            panic!("not convicted: {:?}", judged.verdicts)
        };
        assert!(
            evidence.sentence.starts_with(words),
            "{}",
            evidence.sentence
        );
        assert_eq!(evidence.events, [lines, lines + 1]);
    }
}

/// A history that is still being written is not read past a violation, whether the key had few
/// calls or many.
#[test]
fn a_violation_is_certain_on_its_line() {
    for calls in 2..20 {
        let writes =
            (0..calls).map(|value| format!("1 invoke write {value}\n1 ok write {value}\n"));
        let text: String = writes.collect();
        let text = format!(
            "{text}2 invoke read\n2 ok read {}\n2 invoke read",
            calls - 2
        );
        let mut read = 0;
        let entries = history(&text).into_iter().inspect(|_| read += 1);
        let entries = entries.map(Ok::<_, std::convert::Infallible>);
        let (budget, stop) = (Budget::default(), false.into());
        let judged = judge_first(entries, Some(Register), budget, &stop).unwrap();
        let verdict = judged.verdicts.of(Check::RegisterLinearizable).unwrap();
        assert!(verdict.is_violated(), "{verdict:?}");
        assert_eq!(read, 2 * calls + 2);
    }
}

/// So is what must be kept and does not fit, though each call under way does.
#[test]
fn a_history_that_cannot_be_kept_is_unknown() {
    let twice = "1 invoke write 2\n1 ok write 2\n".repeat(200);
    let text = format!("{twice}1 invoke read\n1 ok read 2");
    let judged = |bytes| {
        let budget = Budget {
            bytes,
            ..Budget::default()
        };
        let judged = try_judge(&text, None, budget).unwrap();
        judged.verdicts.of(Check::RegisterLinearizable).cloned()
    };
    let Some(Verdict::Unknown(why)) = judged(5_000) else {
        panic!("not unknown")
    };
    assert!(
        why.starts_with("the history does not fit into memory from index"),
        "{why}"
    );
    assert!(
        why.ends_with("give more memory than 5 kB (--max-memory)"),
        "{why}"
    );
    assert_eq!(judged(1_000_000), Some(Verdict::Valid));
}

/// Timed-out operations that do the same are counted, not told apart: two hundred of
/// them need few steps.
#[test]
fn operations_that_stay_open_cost_little() {
    let mut text = String::new();
    for at in 0..200 {
        let process = 10 + at;
        text += &format!("{process} invoke cas [{} {}]\n", at % 5, (at + 1) % 5);
        text += &format!("1 invoke write {0}\n1 ok write {0}\n", at % 3);
        text += &format!("2 invoke read\n2 ok read {}\n", (at % 3 + at % 2) % 5);
    }
    let budget = Budget {
        steps: 20_000,
        ..Budget::default()
    };
    let judged = try_judge(&text, Some(CasRegister), budget).unwrap();
    let verdict = judged.verdicts.of(Check::RegisterLinearizable).unwrap();
    assert_ne!(verdict.word(), "unknown", "{verdict:?}");
}

/// What was not answered by then may have been there too, though the search need not try it.
#[test]
fn a_sentence_leaves_out_no_value_that_may_have_been_there() {
    convicts(
        "3 invoke write 0\n4 invoke write 1\n5 invoke write 0\n6 invoke read\n6 ok read 0\n\
         6 invoke read\n6 ok read 2",
        Register,
        "process 6 read 2 of the register, which can only have held 0 or 1 then",
        &[5, 6],
    );
}

/// Nor one that was there while the read was under way, until another write ended.
#[test]
fn a_sentence_leaves_out_no_value_that_was_there_for_a_while() {
    convicts(
        "1 invoke cas [nil 3]\n1 ok cas [nil 3]\n1 invoke write 1\n1 ok write 1\n2 invoke read\n\
         1 invoke write 2\n1 ok write 2\n2 ok read 3",
        CasRegister,
        "process 2 read 3 of the register, and no order of its writes explains that; the last \
         write of 3, by process 1, had been overwritten by process 1 with 1",
        &[0, 1, 2, 3, 4, 7],
    );
}

/// A cas that began before a write may have been just before it, after another write that
/// nobody saw: however many are under way that does not depend on which of them end first.
#[test]
fn what_nobody_saw_before_a_write_explains_a_cas() {
    let text = |before: &str, after: &str| {
        format!(
            "{before}1 invoke write 5\n2 invoke write 1\n1 ok write 5\n{after}4 invoke read\n\
             4 ok read 5\n3 ok cas [1 2]\n2 ok write 1\n4 invoke read\n4 ok read 5"
        )
    };
    let cas = "3 invoke cas [1 2]\n";
    passes(&text(cas, ""), CasRegister);
    convicts(
        &text("", cas),
        CasRegister,
        "process 4 read 5 of the register, which can only have held 2 then; the last write of 5, \
         by process 1, had been overwritten by process 3 with 2",
        // With the last write of 5, and that of the 1 that the cas needs.
        &[0, 1, 2, 3, 6, 7, 8, 9],
    );
}

/// Thirty clients that read, write and use `cas` at once, of which one call in `lost` is never
/// answered.
fn thirty_clients(lost: u64) -> String {
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut any = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) % below
    };
    let mut text = String::new();
    let mut held = "nil".to_owned();
    let mut open: Vec<Option<(String, Option<String>)>> = vec![None; 30];
    let mut processes: Vec<u64> = (0..30).collect();
    for _ in 0..9_000 {
        let client = any(30) as usize;
        let process = processes[client];
        match open[client].take() {
            None => {
                let (from, by) = (any(5), any(4));
                let call = match any(3) {
                    0 => "read".to_owned(),
                    1 => format!("write {from}"),
                    _ => format!("cas [{from} {}]", (from + 1 + by) % 5),
                };
                text += &format!("{process} invoke {call}\n");
                open[client] = Some((call, None));
            }
            Some((call, None)) => {
                let mut kind = "ok";
                let mut ended = call.clone();
                match call.split_once(' ') {
                    None => ended = format!("read {held}"),
                    Some(("write", value)) => held = value.to_owned(),
                    Some((_, pair)) => match pair[1..4].split_once(' ') {
                        Some((from, to)) if from == held => held = to.to_owned(),
                        _ => kind = "fail",
                    },
                }
                open[client] = Some((call, Some(format!("{kind} {ended}"))));
            }
            Some((call, Some(_))) if any(lost) == 0 => {
                text += &format!("{process} info {call}\n");
                processes[client] += 30;
            }
            Some((_, Some(ended))) => text += &format!("{process} {ended}\n"),
        }
    }
    text
}

/// Some dozens of steps an operation, where a few ways are enough, and where a read that is
/// wrong needs all of them for a short while.
#[test]
fn clients_that_all_use_cas_need_few_steps() {
    for lost in [u64::MAX, 100] {
        let text = thirty_clients(lost);
        let wrong = format!("{text}9999 invoke read\n9999 ok read 7\n");
        for (text, expected) in [(&text, "valid"), (&wrong, "violated")] {
            let budget = Budget {
                steps: 150_000,
                ..Budget::default()
            };
            let judged = try_judge(text, Some(CasRegister), budget).unwrap();
            let verdict = judged.verdicts.of(Check::RegisterLinearizable).unwrap();
            assert_eq!(verdict.word(), expected, "{verdict:?}");
        }
    }
}

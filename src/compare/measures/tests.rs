//! What counts as what, on tales of one lease.

use deposed_checkers::reader::Reader;

use super::*;

/// Builds a history of one lease, an event every ten milliseconds.
#[derive(Default)]
struct Tale(Vec<String>);

impl Tale {
    fn line(mut self, process: &str, kind: &str, call: u64, f: &str, value: &str) -> Self {
        let index = self.0.len() as u64;
        let call = match call {
            0 => String::new(),
            call => format!(r#""call":{call},"#),
        };
        let time = index * 10_000_000;
        self.0.push(format!(
            r#"{{"index":{index},"time":{time},"process":"{process}","type":"{kind}",{call}"f":"{f}","value":{value}}}"#
        ));
        self
    }

    /// Three events.
    fn acquires(self, who: &str, call: u64, token: u64) -> Self {
        let lease = format!(r#""lease":"leader","holder":"{who}#1","request":{token},"ttl":9"#);
        self.line(who, "invoke", call, "acquire", &format!("{{{lease}}}"))
            .line(
                "store",
                "info",
                0,
                "granted",
                &format!(r#"{{{lease},"token":{token},"clock":1}}"#),
            )
            .line(
                who,
                "ok",
                call,
                "acquire",
                &format!(r#"{{"token":{token}}}"#),
            )
    }

    fn writes(self, who: &str, call: u64, token: Option<u64>, value: &str) -> Self {
        let write = write(token, value);
        self.line(who, "invoke", call, "write", &write)
    }

    fn lands(self, node: &str, token: Option<u64>, value: &str) -> Self {
        let f = r#"{"f":"write","#;
        let applied = f.to_owned() + &write(token, value)[1..];
        self.line(node, "info", 0, "applied", &applied)
    }

    fn fenced(self, token: u64) -> Self {
        let fenced = format!(r#"{{"lease":"leader","token":{token}}}"#);
        self.line("storage", "info", 0, "fenced", &fenced)
    }

    fn answered(self, who: &str, call: u64) -> Self {
        self.line(who, "ok", call, "write", "null")
    }

    fn measured(self) -> Measures {
        let text = format!("{{\"deposed\":1}}\n{}\n", self.0.join("\n"));
        let (_, events) = Reader::new(text.as_bytes(), "tale").expect("a header");
        let history: Vec<Event> = events.map(|event| event.expect("an event")).collect();
        Measures::of(&history)
    }
}

fn write(token: Option<u64>, value: &str) -> String {
    let token = token.map_or(String::new(), |token| {
        format!(r#""token":{token},"seq":1,"#)
    });
    format!(r#"{{"lease":"leader",{token}"key":"k0","value":"{value}"}}"#)
}

/// a leads and has sent a write, b leads: seven events.
fn two_terms(token: Option<u64>) -> Tale {
    Tale::default()
        .acquires("a", 1, 1)
        .writes("a", 2, token, "1/1.1")
        .acquires("b", 3, 2)
}

fn verdict(measures: &Measures) -> [u64; 4] {
    let Measures {
        tried,
        refused,
        early,
        landed,
        ..
    } = *measures;
    [tried, refused, early, landed]
}

#[test]
fn a_write_is_a_deposed_leaders_once_another_was_granted_the_lease() {
    let own = Tale::default()
        .acquires("a", 1, 1)
        .writes("a", 2, Some(1), "1/1.1")
        .lands("storage", Some(1), "1/1.1");
    assert_eq!(verdict(&own.measured()), [0, 0, 0, 0]);
    // Before its successor did anything, and after its fence.
    let early = two_terms(Some(1)).lands("storage", Some(1), "1/1.1");
    assert_eq!(verdict(&early.measured()), [1, 0, 1, 0]);
    let late = two_terms(Some(1))
        .fenced(2)
        .lands("storage", Some(1), "1/1.1");
    assert_eq!(verdict(&late.measured()), [1, 0, 0, 1]);
    let refused = r#"{"f":"write","lease":"leader","token":1,"seq":1,"seen":2}"#;
    let refused = two_terms(Some(1))
        .fenced(2)
        .line("storage", "info", 0, "refused", refused);
    assert_eq!(verdict(&refused.measured()), [1, 1, 0, 0]);
}

#[test]
fn what_the_deposed_leader_did_before_is_no_work_of_its_successor() {
    let early = Tale::default()
        .acquires("a", 1, 1)
        .writes("a", 2, Some(1), "1/1.1")
        .answered("a", 2)
        .acquires("b", 3, 2)
        .lands("storage", Some(1), "1/1.1");
    assert_eq!(verdict(&early.measured()), [1, 0, 1, 0]);
}

#[test]
fn a_refused_fence_is_no_write_that_was_tried() {
    let refused = r#"{"f":"fence","lease":"leader","token":1,"seen":2}"#;
    let fence = two_terms(Some(1))
        .fenced(2)
        .line("storage", "info", 0, "refused", refused);
    assert_eq!(verdict(&fence.measured()), [0, 0, 0, 0]);
}

#[test]
fn a_successors_read_is_its_first_operation() {
    let read = r#"{"lease":"leader","token":2,"key":"k0"}"#;
    let late = two_terms(Some(1))
        .line("b", "invoke", 4, "read", read)
        .line("b", "ok", 4, "read", r#"{"value":null}"#)
        .lands("storage", Some(1), "1/1.1");
    assert_eq!(verdict(&late.measured()), [1, 0, 0, 1]);
}

#[test]
fn a_write_without_a_token_is_its_senders() {
    let late = two_terms(None)
        .writes("b", 4, None, "2/2.1")
        .lands("storage", None, "2/2.1")
        .lands("storage", None, "1/1.1")
        .measured();
    assert_eq!((verdict(&late), late.doubled), ([1, 0, 0, 1], 0));
    assert!(late.windows.is_empty(), "such a resource never refuses");
    let dropped = r#"{"lease":"leader","key":"k0","value":"1/1.1"}"#;
    let dropped = two_terms(None).line("storage", "info", 0, "dropped", dropped);
    assert_eq!(verdict(&dropped.measured()), [1, 1, 0, 0]);
}

#[test]
fn a_job_done_again_is_doubled_whoever_does_it() {
    let tale = two_terms(None)
        .writes("b", 4, None, "1/2.1")
        .lands("storage", None, "1/2.1");
    assert_eq!(tale.measured().doubled, 0);
    let tale = two_terms(None)
        .writes("b", 4, None, "1/2.1")
        .lands("storage", None, "1/2.1")
        .lands("storage", None, "1/1.1")
        .lands("storage", None, "1/1.1");
    assert_eq!(tale.measured().doubled, 2);
}

#[test]
fn the_window_closes_when_storage_has_seen_the_successor() {
    // The grant is the sixth event.
    let fenced = two_terms(Some(1))
        .fenced(2)
        .lands("storage", Some(2), "2/2.1");
    assert_eq!(fenced.measured().windows, [20_000_000], "once a grant");
    let unfenced =
        two_terms(Some(1))
            .writes("b", 4, Some(2), "2/2.1")
            .lands("storage", Some(2), "2/2.1");
    assert_eq!(unfenced.measured().windows, [30_000_000]);
    let one_machine = two_terms(Some(1)).lands("store", Some(2), "2/2.1");
    assert!(one_machine.measured().windows.is_empty(), "it has none");
    let first = Tale::default().acquires("a", 1, 1).fenced(1);
    assert!(first.measured().windows.is_empty(), "it deposed nobody");
}

#[test]
fn a_failover_is_from_the_last_write_of_one_to_the_first_of_another() {
    let measures = Tale::default()
        .acquires("a", 1, 1)
        .writes("a", 2, Some(1), "1/1.1")
        .answered("a", 2)
        .writes("a", 5, Some(1), "1/1.2")
        .answered("a", 5)
        .acquires("b", 3, 2)
        .writes("b", 4, Some(2), "2/2.1")
        .answered("b", 4)
        .measured();
    assert_eq!(measures.failovers, [50_000_000]);
    assert_eq!(measures.leader_changes, 1);
}

#[test]
fn an_answer_that_comes_after_the_successors_is_no_failover_back() {
    let measures = two_terms(Some(1))
        .writes("b", 4, Some(2), "2/2.1")
        .answered("b", 4)
        .answered("a", 2)
        .writes("b", 5, Some(2), "2/2.2")
        .answered("b", 5)
        .measured();
    assert!(measures.failovers.is_empty(), "{:?}", measures.failovers);
}

#[test]
fn a_write_without_a_token_is_its_own_senders_whatever_ids_others_chose() {
    // Both ask with the first id of their own.
    let mut tale = Tale::default();
    for (who, call) in [("a", 1), ("b", 2)] {
        let lease = format!(r#""lease":"leader","holder":"{who}#1","request":1,"ttl":9"#);
        let granted = format!(r#"{{{lease},"clock":1}}"#);
        tale = tale
            .line(who, "invoke", call, "acquire", &format!("{{{lease}}}"))
            .line("store", "info", 0, "granted", &granted);
    }
    let dropped = r#"{"lease":"leader","key":"k0","value":"1/1.1"}"#;
    let measures = tale
        .line("a", "ok", 1, "acquire", "null")
        .writes("a", 3, None, "1/1.1")
        .line("storage", "info", 0, "dropped", dropped)
        .measured();
    assert_eq!(verdict(&measures), [1, 1, 0, 0]);
}

#[test]
fn the_measures_of_two_histories_are_added() {
    let one = Measures {
        tried: 10,
        refused: 4,
        early: 3,
        landed: 3,
        doubled: 7,
        leader_changes: 4,
        windows: vec![1],
        failovers: vec![2],
    };
    let mut sum = one.clone();
    sum.add(one);
    let both = Measures {
        tried: 20,
        refused: 8,
        early: 6,
        landed: 6,
        doubled: 14,
        leader_changes: 8,
        windows: vec![1, 1],
        failovers: vec![2, 2],
    };
    assert_eq!(sum, both);
}

#[test]
fn the_middle_and_the_longest() {
    assert_eq!(middle_and_longest(&[]), None);
    assert_eq!(middle_and_longest(&[3, 1, 9]), Some((3, 9)));
    assert_eq!(middle_and_longest(&[4, 1]), Some((4, 4)));
}

use deposed::timeline::Role;

use super::{STORY, chart, told};

/// Every span, as `lane from..to what`, times in ms.
fn spans(text: &str) -> Vec<String> {
    let chart = chart(text);
    let said = chart.spans.iter().map(|span| {
        let (lane, what) = (&chart.lanes[span.lane].name, &span.what);
        let label = match what {
            deposed::timeline::Condition::Leads { token, .. } => {
                format!(
                    "leads {}",
                    token.map_or("-".to_owned(), |token| token.to_string())
                )
            }
            deposed::timeline::Condition::OffRate { rate, inborn } => {
                format!(
                    "rate {}{}",
                    rate / 1_000_000,
                    if *inborn { " inborn" } else { "" }
                )
            }
            other => other.word().to_owned(),
        };
        format!(
            "{lane} {}..{} {label}",
            span.from / 1_000_000,
            span.to / 1_000_000
        )
    });
    said.collect()
}

const PLAIN: &str = r#"{"deposed":1}"#;

#[test]
fn a_belief_lasts_from_lead_until_its_end_or_follow_whichever_is_first() {
    let lead = |time: u64, until: u64| {
        let (time, until) = (time * 1_000_000, until * 1_000_000);
        format!(r#"{time} a lead {{"lease":"l","holder":"a#1","token":3,"until":{until}}}"#)
    };
    let follow = r#"90000000 a follow {"lease":"l","holder":"a#1","token":3}"#;
    let last = "200000000 a mood null";
    let cases: [(&[&str], &str); 4] = [
        (&[&lead(0, 50), last], "a 0..50 leads 3"),
        (
            &[&lead(0, 50), &lead(40, 95), follow, last],
            "a 0..90 leads 3",
        ),
        (&[&lead(0, 500), last], "a 0..200 leads 3"),
        // The record of a clock that was slowed down takes the end forward.
        (
            &[&lead(0, 80), &lead(10, 40), follow, last],
            "a 0..40 leads 3",
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(spans(&told(PLAIN, lines)), [expected]);
    }
    // Two terms of one client: the gap between them is not bridged.
    let apart = told(PLAIN, &[&lead(0, 20), &lead(60, 80), last]);
    assert_eq!(spans(&apart), ["a 0..20 leads 3", "a 60..80 leads 3"]);
}

#[test]
fn a_pause_ends_by_its_resume_or_by_the_crash_of_its_process() {
    let lines = [
        r#"0 nemesis pause {"node":"a","for":50000000}"#,
        r#"1000000 nemesis suspend {"node":"a","for":20000000}"#,
        r#"21000000 nemesis resume {"fault":"suspend","node":"a"}"#,
        r#"50000000 nemesis resume {"node":"a"}"#,
        r#"60000000 nemesis paused {"node":"b","for":90000000,"before":"write"}"#,
        r#"70000000 nemesis crash {"node":"b","for":10000000}"#,
        r#"80000000 nemesis restart {"node":"b"}"#,
    ];
    let expected = [
        "a 0..50 paused",
        "a 1..21 suspended",
        "b 60..70 paused",
        "b 70..80 down",
    ];
    assert_eq!(spans(&told(PLAIN, &lines)), expected);
}

#[test]
fn of_several_cuts_of_one_kind_the_one_that_is_due_first_is_healed_first() {
    let lines = [
        r#"0 nemesis isolate {"node":"a","for":90000000}"#,
        r#"10000000 nemesis isolate {"node":"b","for":20000000}"#,
        r#"11000000 nemesis isolate {"node":"c","for":49000000}"#,
        r#"12000000 nemesis partition-oneway {"from":["a"],"to":["store"],"for":1000000000}"#,
        r#"30000000 nemesis heal {"fault":"isolate","nodes":["a","b","c","store"]}"#,
        r#"60000000 nemesis heal {"fault":"isolate","nodes":["a","b","c","store"]}"#,
        r#"90000000 nemesis heal {"fault":"isolate","nodes":["a","b","c","store"]}"#,
        r#"95000000 nemesis hold {"nodes":["a","store"],"for":5000000}"#,
        r#"99000000 nemesis heal {"fault":"hold","nodes":["a","store"]}"#,
    ];
    let expected = [
        "a 0..90 cut off",
        "a 12..99 cut off",
        "a 95..99 slow or lossy links",
        "b 10..30 cut off",
        "c 11..60 cut off",
        "store 12..99 cut off",
        "store 95..99 slow or lossy links",
    ];
    assert_eq!(spans(&told(PLAIN, &lines)), expected);
}

#[test]
fn clocks_are_drawn_where_they_do_not_run_true() {
    let header = r#"{"deposed":1,"clocks":{"a":990000000,"b":990000000}}"#;
    let lines = [
        "0 a mood null",
        r#"10000000 nemesis rate {"node":"a","rate_ppb":1250000000}"#,
        r#"30000000 nemesis rate {"node":"a","rate_ppb":990000000}"#,
        r#"40000000 nemesis rate {"node":"c","rate_ppb":500000000}"#,
        r#"50000000 nemesis rate {"node":"c","rate_ppb":1000000000}"#,
        "60000000 a mood null",
    ];
    let expected = [
        "a 0..10 rate 990 inborn",
        "a 10..30 rate 1250",
        "a 30..60 rate 990 inborn",
        "b 0..60 rate 990 inborn",
        "c 40..50 rate 500",
    ];
    assert_eq!(spans(&told(header, &lines)), expected);
}

#[test]
fn an_expired_lease_is_closed_for_its_lock_delay_and_a_released_one_is_not() {
    let header = r#"{"deposed":1,"lease":{"ttl":20000000,"lock_delay":30000000}}"#;
    let granted = |time: u64, token: u64| {
        let time = time * 1_000_000;
        format!(
            r#"{time} store granted {{"lease":"l","holder":"a","token":{token},"ttl":20000000,"clock":0}}"#
        )
    };
    let released = r#"75000000 store released {"lease":"l","holder":"a","token":2,"clock":0}"#;
    let lines = [
        &*granted(0, 1),
        &granted(60, 2),
        released,
        &granted(90, 3),
        "200000000 store mood null",
    ];
    let expected = ["store 20..50 lock-delay", "store 110..140 lock-delay"];
    assert_eq!(spans(&told(header, &lines)), expected);
}

#[test]
fn a_history_from_elsewhere_has_lanes_of_those_who_called() {
    let text = r#"{"deposed":1}
{"index":0,"time":5,"process":"10","type":"invoke","f":"write","value":{"lease":"l","key":"x","value":1}}
{"index":1,"time":6,"process":"9","type":"invoke","f":"read","value":{"lease":"l","key":"x"}}
{"index":2,"time":7,"process":"10","type":"ok","f":"write","value":null}
{"index":3,"time":8,"process":"9","type":"info","f":"read","value":null}
{"index":4,"time":9,"process":"nemesis","type":"info","f":"kill-everything","value":["n1","n2"]}
"#;
    let chart = chart(text);
    let lanes: Vec<_> = chart
        .lanes
        .iter()
        .map(|lane| (lane.role, &*lane.name))
        .collect();
    assert_eq!(
        lanes,
        [
            (Role::Client, "9"),
            (Role::Client, "10"),
            (Role::Nemesis, "nemesis")
        ]
    );
    assert_eq!((chart.start, chart.end), (5, 9));
    let mates: Vec<_> = chart.points.iter().map(|point| point.mate).collect();
    assert_eq!(mates, [Some(2), Some(3), Some(0), Some(1), None]);
}

#[test]
fn a_node_that_said_nothing_has_its_lane_from_the_header() {
    let header = r#"{"deposed":1,"cluster":{"clients":2}}"#;
    let chart = chart(&told(header, &["0 a mood null"]));
    let lanes: Vec<_> = chart
        .lanes
        .iter()
        .map(|lane| (lane.role, &*lane.name))
        .collect();
    let expected = [
        (Role::Client, "a"),
        (Role::Client, "b"),
        (Role::Store, "store"),
        (Role::Storage, "storage"),
    ];
    assert_eq!(lanes, expected);
}

#[test]
fn the_story_has_two_terms_and_a_pause_between_them() {
    let expected = [
        "a 20..300 leads 7",
        "a 200..800 paused",
        "b 400..690 leads 8",
    ];
    assert_eq!(spans(STORY), expected);
}

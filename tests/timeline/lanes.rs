use deposed::{
    report::{
        lanes::{Screen, lanes},
        text::Colour,
    },
    timeline::selection::Selection,
};

use super::{STORY, chart, kept, shown, told};

fn drawn(text: &str, screen: &Screen) -> String {
    lanes(&chart(text), &Selection::default(), "made", screen)
}

fn narrow() -> Screen {
    Screen {
        width: 59,
        ..Screen::PLAIN
    }
}

#[test]
fn lanes_show_terms_pauses_calls_and_point_at_the_violation() {
    // 50 columns for a second: the pause from 200 to 800 ms is in the 10th to the 40th.
    let expected = "
made
0.000s to 0.999s, 19.98ms a column

         |0s       |200ms    |400ms    |600ms    |800ms
a         7==============
         .*                                      !  w
                   zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz
b                            8==============
                            .*  f                         .
store    g                  g
storage                        *                   !
nemesis            +                             -
                             storage-safety 0.850s ^
                               zombie-write 0.850s ^
                         election-barrier 0.810s ^

storage-safety: a write with token 7 landed after storage
had seen token 8: it was a's, and token 8 was b's
zombie-write: a write by a, deposed since, landed after the
first operation of its successor b
election-barrier: a sent a write with token 7 without a
fence(7)

! the violation   * what shows it
= believes to lead, from its token on   g granted
f fenced   w written   + a fault strikes   - a fault ends
. another event   z paused
";
    assert_eq!(format!("\n{}", drawn(STORY, &narrow())), expected);
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for width in [40, 59, 80, 100, 173] {
        let screen = Screen {
            width,
            ..Screen::PLAIN
        };
        for line in drawn(STORY, &screen).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn a_pipe_gets_plain_ascii_and_a_terminal_more() {
    let (_dir, file) = kept("plain", STORY);
    let (code, out, _) = shown(&file, "--timeline");
    assert_eq!(code, 0);
    assert!(out.is_ascii(), "{out}");
    assert!(out.lines().all(|line| line.len() <= 100), "{out}");
    let fine = Screen {
        unicode: true,
        colour: Colour::Always,
        ..narrow()
    };
    let fine = drawn(STORY, &fine);
    assert!(fine.contains('━') && fine.contains('▒'), "{fine}");
    assert!(
        fine.contains("\u{1b}[1m\u{1b}[31m!\u{1b}[0m"),
        "the violation in red: {fine}"
    );
}

#[test]
fn a_violation_outside_the_part_that_is_shown_is_still_told() {
    let selection = Selection {
        to: Some(500_000_000),
        ..Selection::default()
    };
    let drawn = lanes(&chart(STORY), &selection, "made", &narrow());
    assert!(!drawn.contains('^'), "{drawn}");
    let drawn = drawn.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(drawn.contains("(at 0.850s, not in this part)"), "{drawn}");
}

#[test]
fn a_token_that_does_not_fit_is_left_out_and_never_cut() {
    let lead = r#"10000000 a lead {"lease":"l","holder":"a#1","token":1234,"until":40000000}"#;
    let text = told(
        r#"{"deposed":1}"#,
        &["0 a mood null", lead, "999000000 a mood null"],
    );
    let drawing = drawn(&text, &narrow());
    assert!(
        drawing.contains("a  ==\n") || drawing.contains("a  ===\n"),
        "{drawing}"
    );
}

#[test]
fn text_from_a_history_cannot_talk_to_the_terminal() {
    let text = told(
        r#"{"deposed":1}"#,
        &[r"0 \u001b[2J mood null", "5 b mood null"],
    );
    let drawing = drawn(&text, &Screen::PLAIN);
    assert!(!drawing.contains('\u{1b}'), "{drawing}");
    assert!(drawing.contains(r"\u{1b}[2J"), "{drawing}");
}

#[test]
fn each_lease_that_a_client_led_has_a_row_of_its_own() {
    let lead = |time: u64, lease: &str| {
        format!(r#"{time} a lead {{"lease":"{lease}","holder":"a#1","token":5,"until":900000000}}"#)
    };
    let lines = [
        &*lead(0, "shard-0"),
        &lead(100_000_000, "shard-1"),
        "999000000 a mood null",
    ];
    let drawing = drawn(&told(r#"{"deposed":1}"#, &lines), &Screen::PLAIN);
    let rows: Vec<_> = drawing
        .lines()
        .filter(|line| line.contains("5===="))
        .collect();
    assert_eq!(rows.len(), 2, "{drawing}");
    assert!(rows[0].starts_with("a shard-0  5="), "{drawing}");
    assert!(rows[1].starts_with("a shard-1     "), "{drawing}");
}

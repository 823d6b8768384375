//! Histories as text: one event a line, plain or in colour.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write};

use anstyle::{AnsiColor, Style};
use deposed_checkers::history::{Body, Event, Kind, Name};

use super::words;

/// One event as one line, without its time and process.
pub fn line(event: &Event) -> String {
    let (action, outcome) = words::of(event, None);
    match outcome.is_empty() {
        true => action,
        false => format!("{action} {outcome}"),
    }
}

/// Whether text may carry colours: on a terminal, and nobody objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// ANSI escapes.
    Always,
}

/// The calls of a history, so that a completion can say what it completes.
#[derive(Default)]
pub(super) struct Calls {
    by_id: BTreeMap<u64, String>,
    /// Calls without an id: one open a process.
    by_process: BTreeMap<Name, String>,
}

impl Calls {
    /// The event's action and its outcome. To be asked for every event, in order.
    pub(super) fn words(&mut self, event: &Event) -> (String, String) {
        let asked = match (&event.body, event.call) {
            (Body::Complete(..), Some(id)) => self.by_id.remove(&id),
            (Body::Complete(..), None) => self.by_process.remove(&event.process),
            _ => None,
        };
        let (action, outcome) = words::of(event, asked.as_deref());
        if let Body::Invoke(_) = event.body {
            match event.call {
                Some(id) => self.by_id.insert(id, action.clone()),
                None => self
                    .by_process
                    .insert(event.process.clone(), action.clone()),
            };
        }
        (action, outcome)
    }
}

/// A history as a timeline: `12.980s  a        acquire          token 7`.
pub struct Timeline {
    calls: Calls,
    colour: Colour,
}

impl Timeline {
    /// An empty timeline.
    pub fn new(colour: Colour) -> Self {
        Self {
            calls: Calls::default(),
            colour,
        }
    }

    /// The line of the next event.
    pub fn line(&mut self, event: &Event) -> String {
        let (action, outcome) = self.calls.words(event);
        let (time, process) = (words::time(event.time), &event.process);
        let line = printable(&format!("{time:>9}  {process:<8} {action:<16} {outcome}"));
        let line = line.trim_end();
        match self.colour {
            Colour::Never => line.to_owned(),
            Colour::Always => {
                let style = style_of(event);
                format!("{style}{line}{style:#}")
            }
        }
    }
}

/// Faults stand out, what only the inside sees stands back.
fn style_of(event: &Event) -> Style {
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    match (&event.body, event.kind) {
        (Body::Nemesis(..), _) => colour(AnsiColor::Magenta),
        (Body::Complete(..), Kind::Fail) => colour(AnsiColor::Red),
        (Body::Complete(..), Kind::Info) => colour(AnsiColor::Yellow),
        (Body::Complete(..), _) => colour(AnsiColor::Green),
        (Body::Observed(_) | Body::Foreign(..), _) => Style::new().dimmed(),
        (Body::Invoke(_), _) => Style::new(),
    }
}

/// What a terminal obeys instead of showing it: control characters, and those that end a
/// line, turn its direction, or are not seen at all.
pub(crate) fn is_obeyed(c: char) -> bool {
    let unseen = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0001}'..='\u{e007f}'
    );
    c.is_control() || unseen
}

/// Text from a file, with nothing in it that a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    text.chars().fold(String::new(), |mut shown, c| {
        if is_obeyed(c) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "{}", c.escape_default());
        } else {
            shown.push(c);
        }
        shown
    })
}

/// Text of at most so many characters; what is cut off is seen to be.
pub(crate) fn clipped(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        // The last character makes room for the sign.
        Some(_) => text
            .chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect(),
        None => Cow::Borrowed(text),
    }
}

/// So many of a thing: `1 seed`, `20 seeds`.
pub fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

/// A path as an argument of a shell command.
pub(crate) fn argument(path: &str) -> String {
    let safe = |c: char| c.is_alphanumeric() || "/._-+,@%:".contains(c);
    match !path.is_empty() && path.chars().all(safe) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use deposed_checkers::reader::Reader;

    use super::*;

    /// Two terms, one partition, one stale write, all kinds of lines.
    pub(crate) const STORY: &str = r#"{"deposed":1,"workload":"made","system":"made","seed":0}
{"index":0,"time":12976000000,"process":"a","type":"invoke","call":1,"f":"acquire","value":{"lease":"leader","holder":"a#1","request":1,"ttl":500000000}}
{"index":1,"time":12978000000,"process":"store","type":"info","f":"granted","value":{"lease":"leader","holder":"a#1","request":1,"token":7,"ttl":500000000,"clock":12978000000}}
{"index":2,"time":12980000000,"process":"a","type":"ok","call":1,"f":"acquire","value":{"token":7}}
{"index":3,"time":12980000000,"process":"a","type":"info","f":"lead","value":{"lease":"leader","holder":"a#1","token":7,"until":13471000000,"sent":12976000000}}
{"index":4,"time":13100000000,"process":"nemesis","type":"info","f":"isolate","value":{"target":"leader","node":"a","for":1050000000}}
{"index":5,"time":13940000000,"process":"b","type":"invoke","call":2,"f":"acquire","value":{"lease":"leader","holder":"b#1","request":1,"ttl":500000000}}
{"index":6,"time":13944000000,"process":"b","type":"ok","call":2,"f":"acquire","value":{"token":8}}
{"index":7,"time":13945000000,"process":"b","type":"invoke","call":3,"f":"fence","value":{"lease":"leader","token":8}}
{"index":8,"time":13950000000,"process":"storage","type":"info","f":"fenced","value":{"lease":"leader","token":8}}
{"index":9,"time":13951000000,"process":"b","type":"ok","call":3,"f":"fence","value":null}
{"index":10,"time":14000000000,"process":"nemesis","type":"info","f":"pause","value":{"node":"c","for":1000000}}
{"index":11,"time":14150000000,"process":"nemesis","type":"info","f":"heal","value":{"fault":"isolate","nodes":["store","storage","a","b"]}}
{"index":12,"time":14200000000,"process":"a","type":"invoke","call":4,"f":"write","value":{"lease":"leader","token":7,"seq":1,"key":"x","value":40}}
{"index":13,"time":14203000000,"process":"a","type":"ok","call":4,"f":"write","value":null}
{"index":14,"time":14204000000,"process":"a","type":"invoke","call":5,"f":"write","value":{"lease":"leader","token":7,"seq":2,"key":"x","value":41}}
{"index":15,"time":14206000000,"process":"a","type":"fail","call":5,"f":"write","value":null,"error":{"kind":"stale-token","presented":7,"seen":8}}
{"index":16,"time":14206500000,"process":"b","type":"invoke","call":6,"f":"read","value":{"lease":"shard-1","token":8,"key":"x"}}
{"index":17,"time":14400000000,"process":"b","type":"info","call":6,"f":"read","value":null,"error":{"kind":"timeout"}}
{"index":18,"time":14400000000,"process":"b","type":"info","f":"mood","value":"a\u001b[31mb"}
"#;

    pub(crate) fn story() -> Vec<Event> {
        let (_, reader) = Reader::new(STORY.as_bytes(), "story").expect("a header");
        reader.map(|event| event.expect("an event")).collect()
    }

    #[test]
    fn a_timeline_has_one_event_a_line() {
        let mut timeline = Timeline::new(Colour::Never);
        let lines: Vec<String> = story().iter().map(|event| timeline.line(event)).collect();
        let expected = "
  12.976s  a        acquire
  12.978s  store    granted token 7 to a#1
  12.980s  a        acquire          token 7
  12.980s  a        leads @7 until 13.471s
  13.100s  nemesis  isolate a for 1.05s
  13.940s  b        acquire
  13.944s  b        acquire          token 8
  13.945s  b        fence 8
  13.950s  storage  fenced 8
  13.951s  b        fence 8          ok
  14.000s  nemesis  pause c for 1ms
  14.150s  nemesis  heal isolate
  14.200s  a        write x=40 @7
  14.203s  a        write x=40 @7    ok
  14.204s  a        write x=41 @7
  14.206s  a        write x=41 @7    refused, storage had seen 8
14.206500s  b        read x @8 on shard-1
  14.400s  b        read x @8 on shard-1 unknown: timeout
  14.400s  b        mood \"a\\u001b[31mb\"";
        assert_eq!(format!("\n{}", lines.join("\n")), expected);
    }

    #[test]
    fn a_line_stands_alone_in_a_log() {
        let lines: Vec<String> = story().iter().map(line).collect();
        assert_eq!(lines[2], "acquire token 7");
        assert_eq!(lines[9], "fence ok");
        assert_eq!(lines[12], "write x=40 @7");
    }

    #[test]
    fn colours_are_there_when_asked_for_and_never_otherwise() {
        let (story, nemesis) = (story(), 4);
        let coloured = Timeline::new(Colour::Always).line(&story[nemesis]);
        assert_eq!(
            coloured,
            "\u{1b}[35m  13.100s  nemesis  isolate a for 1.05s\u{1b}[0m"
        );
    }

    #[test]
    fn a_name_from_a_file_cannot_talk_to_the_terminal() {
        let mut event = story().remove(0);
        event.process = "\u{1b}[2J".into();
        let line = Timeline::new(Colour::Never).line(&event);
        assert_eq!(line, "  12.976s  \\u{1b}[2J     acquire");
        // Nor turn the line around, break it, or pass for another name.
        for (c, escaped) in [
            ('\u{202e}', "\\u{202e}"),
            ('\u{2028}', "\\u{2028}"),
            ('\u{2066}', "\\u{2066}"),
            ('\u{200b}', "\\u{200b}"),
        ] {
            assert_eq!(printable(&format!("a{c}b")), format!("a{escaped}b"));
        }
        assert_eq!(
            printable("Zoë läuft 走る \u{1f3c3}"),
            "Zoë läuft 走る \u{1f3c3}"
        );
    }

    #[test]
    fn a_text_is_cut_between_characters_and_only_where_it_is_too_long() {
        assert_eq!(clipped("läuft", 5), "läuft");
        assert_eq!(clipped("läuft!", 5), "läuf…");
        assert_eq!(clipped("走る", 1), "…");
        assert_eq!(clipped("", 0), "");
    }

    #[test]
    fn counts_and_arguments_read_well() {
        assert_eq!(counted(1, "seed"), "1 seed");
        assert_eq!(counted(0, "seed"), "0 seeds");
        assert_eq!(argument("runs/gc-pause-4.jsonl"), "runs/gc-pause-4.jsonl");
        assert_eq!(argument("my runs/it's"), r"'my runs/it'\''s'");
    }
}

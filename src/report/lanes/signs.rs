//! The signs that a terminal's lanes are drawn with, and what they mean.

use anstyle::{AnsiColor, Style};
use deposed_checkers::history::{Kind, Name};

use crate::timeline::{Condition, Role};

/// A sign; of several in one column the first is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    Violation,
    Evidence,
    Leads,
    Refused,
    Unknown,
    Granted,
    Fenced,
    Wrote,
    Calm,
    Strike,
    End,
    Meddled,
    Other,
    Down,
    Paused,
    Suspended,
    Starved,
    CutOff,
    BadLinks,
    BadDisk,
    OffRate,
    LockDelay,
}

impl Sign {
    /// The sign of what lasts; a belief is drawn as its token, and a clock that has always
    /// run so tells nothing.
    pub(super) fn of(what: &Condition) -> Option<Self> {
        Some(match what {
            Condition::Leads { .. } | Condition::OffRate { inborn: true, .. } => return None,
            Condition::OffRate { .. } => Sign::OffRate,
            Condition::LockDelay { .. } => Sign::LockDelay,
            Condition::Down => Sign::Down,
            Condition::Paused => Sign::Paused,
            Condition::Suspended => Sign::Suspended,
            Condition::Starved => Sign::Starved,
            Condition::CutOff => Sign::CutOff,
            Condition::BadLinks => Sign::BadLinks,
            Condition::BadDisk => Sign::BadDisk,
        })
    }

    /// The sign of an event.
    pub(super) fn of_event(role: Role, name: &Name, kind: Kind) -> Self {
        let work = matches!(name.as_str(), "fence" | "write" | "delete" | "read");
        match (role, name.as_str(), kind) {
            (Role::Nemesis, "calm", _) => Sign::Calm,
            (Role::Nemesis, "heal" | "resume" | "restart", _) => Sign::End,
            (Role::Nemesis, "lost" | "delayed" | "duplicated", _) => Sign::Meddled,
            (Role::Nemesis, "void", _) => Sign::Other,
            (Role::Nemesis, ..) => Sign::Strike,
            (_, "refused", _) => Sign::Refused,
            (_, "granted", _) | (_, "acquire", Kind::Ok) => Sign::Granted,
            (_, "fenced", _) | (_, "fence", Kind::Ok) => Sign::Fenced,
            (_, "applied", _) | (_, "write" | "delete", Kind::Ok) => Sign::Wrote,
            // A lease that somebody else has is refused all the time.
            (_, _, Kind::Fail) if work => Sign::Refused,
            (_, _, Kind::Info) if work => Sign::Unknown,
            _ => Sign::Other,
        }
    }

    pub(super) fn glyph(self, unicode: bool) -> char {
        let (plain, fine) = match self {
            Sign::Violation => ('!', '!'),
            Sign::Evidence => ('*', '*'),
            Sign::Leads => ('=', '━'),
            Sign::Refused => ('n', '✗'),
            Sign::Unknown => ('?', '?'),
            Sign::Granted => ('g', '◆'),
            Sign::Fenced => ('f', '▲'),
            Sign::Wrote => ('w', '•'),
            Sign::Other => ('.', '·'),
            Sign::Calm => ('C', '○'),
            Sign::Strike => ('+', '▼'),
            Sign::End => ('-', '△'),
            Sign::Meddled => (':', ':'),
            Sign::Down => ('x', '×'),
            Sign::Paused => ('z', '▒'),
            Sign::Suspended => ('s', '░'),
            Sign::Starved => ('%', '┄'),
            Sign::CutOff => ('/', '╱'),
            Sign::BadLinks => ('~', '≈'),
            Sign::BadDisk => ('d', '▤'),
            Sign::OffRate => ('@', '◷'),
            Sign::LockDelay => ('L', '┈'),
        };
        if unicode { fine } else { plain }
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Sign::Violation => "the violation",
            Sign::Evidence => "what shows it",
            Sign::Leads => "believes to lead, from its token on",
            Sign::Refused => "refused or failed",
            Sign::Unknown => "outcome unknown",
            Sign::Granted => "granted",
            Sign::Fenced => "fenced",
            Sign::Wrote => "written",
            Sign::Other => "another event",
            Sign::Calm => "calm begins",
            Sign::Strike => "a fault strikes",
            Sign::End => "a fault ends",
            Sign::Meddled => "a frame lost, late or doubled",
            Sign::Down => "down",
            Sign::Paused => "paused",
            Sign::Suspended => "suspended",
            Sign::Starved => "starved",
            Sign::CutOff => "cut off",
            Sign::BadLinks => "slow or lossy links",
            Sign::BadDisk => "slow or full disk",
            Sign::OffRate => "clock off its rate",
            Sign::LockDelay => "lock-delay",
        }
    }

    pub(super) fn style(self) -> Style {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        match self {
            Sign::Violation => colour(AnsiColor::Red).bold(),
            Sign::Evidence => Style::new().bold(),
            Sign::Refused => colour(AnsiColor::Red),
            Sign::Unknown => colour(AnsiColor::Yellow),
            Sign::Wrote | Sign::Granted | Sign::Fenced => colour(AnsiColor::Green),
            Sign::Other => Style::new().dimmed(),
            Sign::Leads => Style::new(),
            _ => colour(AnsiColor::Magenta),
        }
    }
}

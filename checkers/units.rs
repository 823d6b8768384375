//! Times and spans, as a person reads them.

use crate::history::Nanos;

/// A time as seconds with three decimals, more where it needs them: `12.980s`.
pub fn time(nanos: Nanos) -> String {
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    match rest {
        _ if rest % 1_000_000 == 0 => format!("{seconds}.{:03}s", rest / 1_000_000),
        _ if rest % 1_000 == 0 => format!("{seconds}.{:06}s", rest / 1_000),
        _ => format!("{seconds}.{rest:09}s"),
    }
}

/// A duration in the largest unit that keeps it short: `900ms`, `1.05s`.
pub fn span(nanos: Nanos) -> String {
    let (unit, name) = match nanos {
        0 => return "0s".to_owned(),
        1_000_000_000.. => (1_000_000_000, "s"),
        1_000_000.. => (1_000_000, "ms"),
        1_000.. => (1_000, "us"),
        _ => (1, "ns"),
    };
    let decimals = format!("{:03}", (nanos % unit) * 1_000 / unit);
    match decimals.trim_end_matches('0') {
        "" => format!("{}{name}", nanos / unit),
        decimals => format!("{}.{decimals}{name}", nanos / unit),
    }
}

/// A word with its article: `a write`, `an acquire`.
pub(crate) fn a(word: &str) -> String {
    match word.starts_with(['a', 'e', 'i', 'o', 'u']) {
        true => format!("an {word}"),
        false => format!("a {word}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_show_milliseconds_and_finer_only_where_it_matters() {
        assert_eq!(time(0), "0.000s");
        assert_eq!(time(12_980_000_000), "12.980s");
        assert_eq!(time(12_980_007_000), "12.980007s");
        assert_eq!(time(50), "0.000000050s");
        assert_eq!(time(u64::MAX), "18446744073.709551615s");
    }

    #[test]
    fn spans_are_short() {
        assert_eq!(span(0), "0s");
        assert_eq!(span(900_000_000), "900ms");
        assert_eq!(span(1_050_000_000), "1.05s");
        assert_eq!(span(152_913_442), "152.913ms");
        assert_eq!(span(7), "7ns");
    }
}
